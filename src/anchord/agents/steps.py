"""What `anchord connect` changes, as values: one step a file."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import Literal

from anchord.agents.changed_lines import changed_lines
from anchord.agents.clients import Client, Places, Scope, Server, own_command
from anchord.agents.entries import (
    TextError,
    find_entry,
    find_hooks,
    hook_command,
    is_foreign,
    with_entry,
    with_hooks,
    without_entry,
    without_hooks,
)
from anchord.agents.json_edit import find_value
from anchord.agents.settings_files import SettingsError
from anchord.agents.skill import SKILL_FILE, is_shipped
from anchord.core.quoting import escape_line, quote_name
from anchord.errors import AnchordError

Part = Literal["server", "skill", "hooks"]
Read = Callable[[str], str | None]
"""Returns the text of a file; None if there is none."""

_FOREIGN = "the entry anchord starts another program or is for HTTP; change it yourself"
_OWN_SKILL = "anchord did not write this skill, or it was changed"
_MAX_SHOWN = 100


@dataclass(frozen=True, kw_only=True)
class Step:
    """A change of one file."""

    client: Client
    part: Part
    file: str
    before: str | None
    """Its text; None where there is no such file."""
    after: str | None
    """Its new text; None to delete it."""
    command: tuple[str, ...] = ()
    """The program's own command that makes the change; () where the file is edited."""
    note: str = ""
    """Why nothing changes; "" where that needs no reason."""

    @property
    def action(self) -> str:
        """Say in a word what is done: "add", "update", "remove" or "none"."""
        if self.before == self.after:
            return "none"
        if self.has_part(self.before) and self.has_part(self.after):
            return "update"
        return "remove" if self.has_part(self.before) else "add"

    def has_part(self, text: str | None) -> bool:
        """Return whether a text of the file has this part."""
        if not text:
            return False
        if self.part == "skill":
            return is_shipped(text)
        if self.part == "hooks":
            return bool(find_hooks(text))
        return find_entry(text, self.client.form) is not None

    def lines(self) -> Iterator[str]:
        """Yield the lines that are added, with "+ ", and removed, with "- ", in their order."""
        for line in changed_lines(self.before or "", self.after or ""):
            shown = line if len(line) <= _MAX_SHOWN else f"{line[:_MAX_SHOWN]}…"
            yield escape_line(shown.rstrip().replace("\t", "  "))


def settings_file(client: Client, places: Places, scope: Scope, read: Read) -> str:
    """Return the file with the servers of a client.

    Raises:
        AnchordError: The client has no settings for projects.
    """
    if scope == "project":
        if not client.project_file:
            raise AnchordError(
                f"{client.title} has no settings for one project", "leave out `--scope project`"
            )
        return _in_project(client.project_file, places)
    files = [places.path(place) for place in client.user_files]
    return next((file for file in files if read(file) is not None), files[0])


def _in_project(name: str, places: Places) -> str:
    """Return the path of a file of the project.

    Raises:
        SettingsError: A link leads out of the project: whoever made the project could have chosen
            any file of this user.
    """
    path = places.path(name)
    real, project = os.path.realpath(path), os.path.realpath(places.project)
    if os.path.commonpath([real, project]) != project:
        raise SettingsError(
            f"{quote_name(path)} is a link out of the project, to {quote_name(real)}",
            "delete the link, or leave out `--scope project`",
        )
    return path


def connecting_steps(
    client: Client, places: Places, scope: Scope, server: Server, read: Read
) -> Iterator[Step]:
    """Yield what connects a client; a step that changes nothing has the action "none".

    Args:
        client: The client.
        places: Where settings are.
        scope: For this user or for the project.
        server: The server to start.
        read: Reads a file.

    Raises:
        AnchordError: A settings file is wrong or cannot be edited; the message has the place.
    """
    file = settings_file(client, places, scope, read)
    before = read(file)
    after = edited(file, before, lambda text: with_entry(text, client.form, server))
    is_new = edited_value(file, before, client) is None
    can_add = client.add and scope == "user" and is_new
    command = own_command(client.add, client.form, server) if can_add else ()
    yield Step(
        client=client,
        part="server",
        file=file,
        before=before,
        after=after,
        command=command,
        note=_note(before, client),
    )
    if client.skills and scope == "user":
        skill = f"{places.path(client.skills)}/anchord/SKILL.md"
        text = SKILL_FILE.read_text("utf-8")
        yield Step(client=client, part="skill", file=skill, before=read(skill), after=text)


def hook_step(client: Client, places: Places, scope: Scope, server: Server, read: Read) -> Step:
    """Return what adds the hooks to a client that has a file of hooks.

    Args and errors: As for `connecting_steps`.
    """
    file = hooks_file(client, places, scope)
    before = read(file)
    after = edited(file, before, lambda text: with_hooks(text, hook_command(server)))
    return Step(client=client, part="hooks", file=file, before=before, after=after)


def removing_steps(
    client: Client, places: Places, scope: Scope, read: Read, copy_of: Callable[[str], str]
) -> Iterator[Step]:
    """Yield what takes anchord out of a client.

    Args:
        client: The client.
        places: Where settings are.
        scope: For this user or for the project.
        read: Reads a file.
        copy_of: Returns the path of the copy that was made before the first change of a file.

    Raises:
        AnchordError: As `connecting_steps`.
    """
    file = settings_file(client, places, scope, read)
    before, earlier = read(file), read(copy_of(file))
    after = edited(file, before, lambda text: without_entry(text, client.form, earlier))
    uses_command = client.remove and scope == "user" and earlier is None
    kept = _if_any(file, before, after, earlier)
    command = own_command(client.remove, client.form, Server(command=())) if uses_command else ()
    yield Step(
        client=client,
        part="server",
        file=file,
        before=before,
        after=kept,
        command=command,
        note=_note(before, client),
    )
    if client.skills and scope == "user":
        skill = f"{places.path(client.skills)}/anchord/SKILL.md"
        yield _without_skill_step(client, skill, read(skill), read(copy_of(skill)))
    if client.hooks_file:
        file = hooks_file(client, places, scope)
        yield _without_hooks_step(client, file, read(file), read(copy_of(file)))


def renewed(step: Step, read: Read, copy_of: Callable[[str], str]) -> Step:
    """Return a step of the part "server" for the text that its file has now, without a command.

    Args and errors: As for `removing_steps`.
    """
    file, form = step.file, step.client.form
    server = edited_value(file, step.after, step.client)
    before, earlier = read(file), read(copy_of(file))
    if server is None:
        without = edited(file, before, lambda text: without_entry(text, form, earlier))
        after = _if_any(file, before, without, earlier)
    else:
        after = edited(file, before, lambda text: with_entry(text, form, server))
    return replace(step, before=before, after=after, command=())


def _without_skill_step(client: Client, file: str, before: str | None, earlier: str | None) -> Step:
    """Return what deletes anchord's skill, or restores the one that was there before."""
    is_shipped_one = before is not None and is_shipped(before)
    return Step(
        client=client,
        part="skill",
        file=file,
        before=before,
        after=earlier if is_shipped_one else before,
        note="" if is_shipped_one or before is None else _OWN_SKILL,
    )


def _without_hooks_step(client: Client, file: str, before: str | None, earlier: str | None) -> Step:
    after = edited(file, before, lambda text: without_hooks(text, earlier))
    kept = _if_any(file, before, after, earlier)
    return Step(client=client, part="hooks", file=file, before=before, after=kept)


def hooks_file(client: Client, places: Places, scope: Scope) -> str:
    """Return the file with the hooks of a client that has such."""
    if scope == "project":
        return _in_project(client.project_hooks_file, places)
    return places.path(client.hooks_file)


def edited(file: str, before: str | None, edit: Callable[[str], str]) -> str:
    """Return the text of a file after an edit.

    Raises:
        SettingsError: The text is wrong or cannot be edited; the message has the place.
    """
    try:
        return edit(before or "")
    except TextError as error:
        raise SettingsError(
            f"{quote_name(file)}, {error}", "fix the file; anchord has not changed it"
        ) from None


def edited_value(file: str, text: str | None, client: Client) -> Server | None:
    """Return the server that the entry in a file starts; None without an entry.

    Raises:
        SettingsError: As `edited`.
    """
    found: list[Server | None] = []

    def look(text: str) -> str:
        found.append(find_entry(text, client.form))
        return text

    edited(file, text, look)
    return found[0]


def _note(text: str | None, client: Client) -> str:
    return _FOREIGN if text and is_foreign(text, client.form) else ""


def _if_any(file: str, before: str | None, after: str, earlier: str | None) -> str | None:
    """Return the text without anchord; None to delete a file that was not there before anchord.

    A file behind a symbolic link stays, without anchord's entry.
    """
    if before is None:
        return None
    if before == after or os.path.islink(file):
        return after
    is_empty = not after.strip("\ufeff\r\n\t ") or _is_empty_object(after)
    return None if is_empty and earlier is None else after


def _is_empty_object(text: str) -> bool:
    try:
        return find_value(text, ()) == {} and "/" not in text
    except ValueError:
        return False
