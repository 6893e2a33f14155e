"""anchord's entry in the text of a settings file, and its hooks: functions from text to text."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator, Sequence
from typing import Any

from anchord.agents import json_edit, toml_edit
from anchord.agents.clients import HOME_VARIABLE, SERVER_NAME, Form, Server
from anchord.agents.json_text import JsonTextError
from anchord.agents.toml_edit import TomlTextError

TextError = (JsonTextError, TomlTextError)
"""What the functions raise for a text that is wrong or that they do not edit; it has the place."""

HOOK_EVENTS = ("SessionStart", "UserPromptSubmit")
_HOOK_WORDS = "recall hook || true"
"""Claude Code blocks a prompt when a hook exits with 2, as an anchord without `recall` does."""
_OWN_HOOK = re.compile(r"(?:.*[/\s'])?anchord'? recall hook(?: \|\| true)?", re.DOTALL)
"""Of this version, and of an earlier one, by whatever path."""
_HOOK_TIMEOUT_S = 5


def find_entry(text: str, form: Form) -> Server | None:
    """Return the server that the entry called anchord starts; None without an entry.

    The server of a foreign entry has no command.
    """
    if is_foreign(text, form):
        return Server(command=())
    entry = _entry(text, form)
    return None if entry is None else form.server(entry)


def is_foreign(text: str, form: Form) -> bool:
    """Return whether there is an entry called anchord that does not start anchord by its command.

    It is one over HTTP, starts another program, or is none at all.
    """
    entry = _entry(text, form)
    if entry is None:
        return False
    is_remote = isinstance(entry, dict) and any("url" in key.lower() for key in entry)
    return is_remote or not _is_anchord(form.server(entry).command)


def _is_anchord(command: Sequence[str]) -> bool:
    """Return whether a command is `anchord mcp` or `python -m anchord mcp`, by whatever path."""
    program, *arguments = command or [""]
    as_script = program.rpartition("/")[2] == SERVER_NAME and arguments == ["mcp"]
    return as_script or arguments == ["-m", SERVER_NAME, "mcp"]


def with_entry(text: str, form: Form, server: Server) -> str:
    """Return a text in which the entry starts a server; what else the entry has stays.

    An entry that is none of anchord's stays as it is.
    """
    now = find_entry(text, form)
    if now == server or is_foreign(text, form):
        return text
    name = (form.group, SERVER_NAME)
    entry = form.entry(server)
    if form.language == "toml":
        if now is None:
            return toml_edit.add_table(text, name, entry)
        text = toml_edit.set_values(text, name, entry)
        return text if server.home else toml_edit.remove_value(text, (*name, "env"), HOME_VARIABLE)
    if now is None:
        return json_edit.insert(text, name, entry)
    for path, value in _leaves(entry, form):
        if json_edit.find_value(text, (*name, *path)) != value:
            text = json_edit.insert(text, (*name, *path), value)
    if now.home and not server.home:
        text = json_edit.remove(text, (*name, form.variables, HOME_VARIABLE))
    return text


def without_entry(text: str, form: Form, before: str | None) -> str:
    """Return a text without the entry; one that is none of anchord's stays.

    Args:
        text: The text.
        form: The client's.
        before: The text as it was before the entry was added; None if that is not known.
    """
    if is_foreign(text, form):
        return text
    name = (form.group, SERVER_NAME)
    if form.language == "toml":
        return toml_edit.remove_table(text, name)
    return json_edit.remove(text, name, before)


def hook_command(server: Server) -> str:
    """Return the shell command of the hooks, for the anchord that a server is of."""
    program = server.command[:-1]  # Without `mcp`.
    variables = [f"{name}={shlex.quote(value)}" for name, value in server.variables.items()]
    return " ".join([*variables, *map(shlex.quote, program), _HOOK_WORDS])


def find_hooks(text: str) -> list[str]:
    """Return the commands of anchord's hooks in the settings of Claude Code."""
    return [command for _, command in _own_hooks(text)]


def hook_program(command: str) -> str:
    """Return the program that a hook's command starts."""
    try:
        words = shlex.split(command)
    except ValueError:
        return ""
    programs = [word for word in words if not word.startswith(f"{HOME_VARIABLE}=")]
    return programs[0] if programs else ""


def with_hooks(text: str, command: str) -> str:
    """Return settings of Claude Code with a hook for each event; hooks with another command go."""
    if find_hooks(text) == [command] * len(HOOK_EVENTS):
        return text
    text = without_hooks(text, text)
    for event in HOOK_EVENTS:
        hook = {"type": "command", "command": command, "timeout": _HOOK_TIMEOUT_S}
        text = json_edit.append(text, ("hooks", event), {"hooks": [hook]})
    return text


def without_hooks(text: str, before: str | None) -> str:
    """Return settings of Claude Code without anchord's hooks; hooks of others stay.

    Args:
        text: The settings.
        before: As for `without_entry`.
    """
    for path, _ in reversed(list(_own_hooks(text))):
        group = json_edit.find_value(text, path[:3])
        # A group of hooks goes with its last one.
        whole = path[:3] if len(group["hooks"]) == 1 else path
        text = json_edit.remove(text, whole, before)
    return text


def _entry(text: str, form: Form) -> Any:  # noqa: ANN401 - whatever is in the file
    """Return the entry called anchord; None without one, {} for null."""
    if form.language == "toml":
        group = toml_edit.parse(text).get(form.group)
    else:
        group = json_edit.find_value(text, (form.group,))
    if not isinstance(group, dict) or SERVER_NAME not in group:
        return None
    entry = group[SERVER_NAME]
    return {} if entry is None else entry


def _leaves(entry: dict[str, Any], form: Form) -> Iterator[tuple[tuple[str, ...], object]]:
    for key, value in entry.items():
        if key == form.variables:
            yield from (((key, name), inner) for name, inner in value.items())
        else:
            yield (key,), value


def _own_hooks(text: str) -> Iterator[tuple[tuple[str | int, ...], str]]:
    """Yield the path and the command of each hook of anchord's, in the order of the text."""
    for event in HOOK_EVENTS:
        groups = json_edit.find_value(text, ("hooks", event))
        for number, group in enumerate(groups if isinstance(groups, list) else []):
            hooks = group.get("hooks") if isinstance(group, dict) else None
            for place, hook in enumerate(hooks if isinstance(hooks, list) else []):
                command = hook.get("command") if isinstance(hook, dict) else None
                if isinstance(command, str) and _OWN_HOOK.fullmatch(command):
                    yield ("hooks", event, number, "hooks", place), command
