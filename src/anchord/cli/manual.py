"""`man`: the manual page, made of the commands' own help."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from typing import Any

import typer

from anchord import __version__
from anchord.cli.frame import app

_FILES = (
    ("$ANCHORD_HOME", "when set, holds configuration, data, socket and log; else the platform's own places do"),
    ("config.toml", "the configuration; `anchord config path` says where it is, `anchord config show` what holds"),
)
_STATUS = (
    ("0", "done, or healthy"),
    ("1", "failed, or degraded"),
    ("2", "a wrong call or configuration"),
    ("3", "not running"),
    ("130", "stopped by Ctrl-C"),
)


@app.command()
def man() -> None:
    """Print the manual page: `anchord man | man -l -`."""
    sys.stdout.write("\n".join(page(typer.main.get_command(app))) + "\n")


def page(group: Any) -> Iterator[str]:  # noqa: ANN401 - typer ships no name for its own group
    """Yield the lines of the page, in roff."""
    yield f'.TH ANCHORD 1 "" "anchord {__version__}" "User Commands"'
    yield from (".SH NAME", r"anchord \- keep a semantic index of folders true, at the cost of what changed")
    yield from (".SH SYNOPSIS", ".B anchord", r"\fICOMMAND\fR [\fIOPTION\fR]... [\fIARGUMENT\fR]...")
    yield from (".SH DESCRIPTION", _roff(group.help or ""), ".SH COMMANDS")
    for name, command in sorted(_commands(group, "")):
        yield from (".SS", _roff(" ".join([name, *(_shown(param) for param in command.params if _is_argument(param))])))
        yield _roff(command.help or "")
        for param in command.params:
            if not _is_argument(param) and not param.hidden:
                yield from (".TP", f".B {_roff(', '.join([*param.opts, *param.secondary_opts]))}", _roff(param.help or ""))
    for title, rows in (("FILES", _FILES), ("EXIT STATUS", _STATUS)):
        yield f".SH {title}"
        for name, words in rows:
            yield from (".TP", f".B {_roff(name)}", _roff(words))


def _commands(group: Any, before: str) -> Iterator[tuple[str, Any]]:  # noqa: ANN401 - likewise
    for name, command in group.commands.items():
        if getattr(command, "commands", None):
            yield from _commands(command, f"{before}{name} ")
        elif not command.hidden:
            yield before + name, command


def _is_argument(param: Any) -> bool:  # noqa: ANN401 - likewise
    return bool(param.param_type_name == "argument")


def _shown(param: Any) -> str:  # noqa: ANN401 - likewise
    return str(param.metavar or param.name.upper())


def _roff(text: str) -> str:
    line = " ".join(text.split()).replace("\\", r"\e").replace("-", r"\-")
    return rf"\&{line}" if line[:1] in (".", "'") else line
