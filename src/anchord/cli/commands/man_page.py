"""`man`: the manual page, generated from the help texts of the commands."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from typing import Any

from anchord._version import __version__
from anchord.cli.app import app
from anchord.cli.loading import MODULE_OF_COMMAND

_FILES = (
    (
        "$ANCHORD_HOME",
        "the folder of configuration, data, socket and log; unset: the platform's own folders",
    ),
    (
        "config.toml",
        "the configuration; `anchord config path` prints its path, `config show` its values",
    ),
)
_EXIT_STATUS = (
    ("0", "success, or healthy"),
    ("1", "failure, or degraded"),
    ("2", "usage or configuration error"),
    ("3", "not running"),
    ("130", "stopped by Ctrl-C"),
)


@app.command()
def man() -> None:
    """Print the manual page: `anchord man | man -l -`."""
    from typer.main import get_command

    from anchord.cli.typer_app import build

    lines = man_page_lines(get_command(build(MODULE_OF_COMMAND)))
    sys.stdout.write("\n".join(lines) + "\n")


def man_page_lines(command_group: Any) -> Iterator[str]:  # noqa: ANN401 - typer ships no name for its own group
    """Yield the lines of the manual page of a command group, in roff."""
    yield f'.TH ANCHORD 1 "" "anchord {__version__}" "User Commands"'
    yield ".SH NAME"
    yield r"anchord \- keep a search index of your folders current"
    yield ".SH SYNOPSIS"
    yield ".B anchord"
    yield r"\fICOMMAND\fR [\fIOPTION\fR]... [\fIARGUMENT\fR]..."
    yield ".SH DESCRIPTION"
    yield _to_roff(command_group.help or "")
    yield ".SH COMMANDS"
    for name, command in sorted(_all_commands(command_group, "")):
        yield from _command_lines(name, command)
    yield ".SH FILES"
    yield from _definition_lines(_FILES)
    yield ".SH EXIT STATUS"
    yield from _definition_lines(_EXIT_STATUS)


def _command_lines(name: str, command: Any) -> Iterator[str]:  # noqa: ANN401 - likewise
    arguments = [param for param in command.params if _is_argument(param)]
    options = [param for param in command.params if not _is_argument(param) and not param.hidden]
    yield ".SS"
    metavars = [param.metavar or param.name.upper() for param in arguments]
    yield _to_roff(" ".join([name, *metavars]))
    yield _to_roff(command.help or "")
    for option in options:
        yield ".TP"
        yield f".B {_to_roff(', '.join([*option.opts, *option.secondary_opts]))}"
        yield _to_roff(option.help or "")


def _definition_lines(terms_and_texts: tuple[tuple[str, str], ...]) -> Iterator[str]:
    for term, text in terms_and_texts:
        yield ".TP"
        yield f".B {_to_roff(term)}"
        yield _to_roff(text)


def _all_commands(group: Any, prefix: str) -> Iterator[tuple[str, Any]]:  # noqa: ANN401 - likewise
    """Yield (full name, command) of every visible command, those of sub-groups included."""
    for name, command in group.commands.items():
        if getattr(command, "commands", None):
            yield from _all_commands(command, f"{prefix}{name} ")
        elif not command.hidden:
            yield prefix + name, command


def _is_argument(param: Any) -> bool:  # noqa: ANN401 - likewise
    return bool(param.param_type_name == "argument")


def _to_roff(text: str) -> str:
    line = " ".join(text.split()).replace("\\", r"\e").replace("-", r"\-")
    return rf"\&{line}" if line[:1] in (".", "'") else line
