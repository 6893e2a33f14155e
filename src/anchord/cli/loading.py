"""Imports the modules of the commands: only one if the command line names a command.

To import all of them and to turn their functions into typer's commands takes about 30 ms of CPU.
"""

from __future__ import annotations

import importlib
from collections.abc import Sequence

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


def load_commands(arguments: Sequence[str]) -> None:
    """Import the modules of the commands that a command line needs.

    Args:
        arguments: The command line without the program's name. Unless it starts with a command's
            name, all commands are imported: for the help, for a misspelt name, for completion. The
            version alone needs none.
    """
    if list(arguments) == ["--version"]:
        return
    first = arguments[0] if arguments else ""
    if first in MODULE_OF_COMMAND and first != _DESCRIBES_ALL:
        modules = {MODULE_OF_COMMAND[first]}
    else:
        modules = set(MODULE_OF_COMMAND.values())
    for module in sorted(modules):
        importlib.import_module(f"anchord.cli.commands.{module}")
