"""Loads the commands: only one if the command line names a command.

To import all of their modules takes 30 ms of CPU, and typer takes 0.7 ms to turn a function into a
command.
"""

from __future__ import annotations

import importlib
from collections.abc import Sequence
from copy import copy

import typer

MODULE_OF_COMMAND = {
    "add": "roots",
    "backup": "backup",
    "chunk": "chunk",
    "config": "roots",
    "confirm-delete": "maintenance",
    "diff": "chunk",
    "discover": "conversations",
    "doctor": "doctor",
    "dump": "index",
    "errors": "search",
    "eval": "evaluate",
    "explain": "search",
    "export": "export",
    "forget": "maintenance",
    "index": "index",
    "man": "man_page",
    "mcp": "mcp",
    "pause": "daemon",
    "privacy": "privacy",
    "rebuild": "maintenance",
    "reindex": "maintenance",
    "remove": "roots",
    "rescan": "maintenance",
    "restart": "daemon",
    "restore": "backup",
    "resume": "daemon",
    "roots": "roots",
    "run": "daemon",
    "schema": "schema",
    "search": "search",
    "service": "service",
    "show": "search",
    "start": "daemon",
    "status": "search",
    "stop": "daemon",
    "sync": "index",
    "verify": "index",
}
"""The module in `cli/commands` that defines each command; importing it registers its commands."""

_DESCRIBES_ALL = "man"
"""The manual describes every command."""


def load_commands(app: typer.Typer, arguments: Sequence[str]) -> typer.Typer:
    """Return an application with the commands that a command line needs.

    Args:
        app: The application; importing the module of a command registers it here.
        arguments: The command line without the program's name. Unless it starts with a command's
            name, all commands are imported: for the help, for a misspelt name, for completion. The
            version alone needs none.
    """
    if list(arguments) == ["--version"]:
        return app
    first = arguments[0] if arguments else ""
    if first not in MODULE_OF_COMMAND or first == _DESCRIBES_ALL:
        for module in sorted(set(MODULE_OF_COMMAND.values())):
            _import(module)
        return app
    _import(MODULE_OF_COMMAND[first])
    narrowed = copy(app)
    narrowed.registered_commands = [
        command for command in app.registered_commands if _name_of(command) == first
    ]
    narrowed.registered_groups = [group for group in app.registered_groups if group.name == first]
    return narrowed


def _import(module: str) -> None:
    importlib.import_module(f"anchord.cli.commands.{module}")


def _name_of(command: typer.models.CommandInfo) -> str:
    function = command.callback
    return command.name or (function.__name__.replace("_", "-") if function else "")
