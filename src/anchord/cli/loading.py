"""Loads the commands: only one if the command line names a command.

To import all of their modules takes a tenth of a second of CPU.
"""

from __future__ import annotations

import importlib
from collections.abc import Collection, Sequence

MODULE_OF_COMMAND = {
    "add": "roots",
    "backup": "backup",
    "blame": "blame",
    "chunk": "chunk",
    "config": "roots",
    "confirm-delete": "maintenance",
    "connect": "connect",
    "diff": "chunk",
    "decisions": "decisions",
    "discover": "conversations",
    "doctor": "doctor",
    "dump": "index",
    "errors": "live",
    "eval": "evaluate",
    "explain": "search",
    "export": "export",
    "forget": "maintenance",
    "index": "index",
    "man": "man_page",
    "mcp": "mcp",
    "model": "model",
    "pause": "live",
    "privacy": "privacy",
    "rebuild": "maintenance",
    "recall": "recall",
    "reindex": "maintenance",
    "remove": "roots",
    "rescan": "maintenance",
    "restart": "daemon",
    "restore": "backup",
    "resume": "live",
    "roots": "live",
    "run": "daemon",
    "schema": "schema",
    "search": "search",
    "service": "service",
    "session": "sessions",
    "sessions": "sessions",
    "show": "search",
    "start": "daemon",
    "status": "live",
    "stop": "daemon",
    "sync": "live",
    "verify": "index",
}
"""The module in `cli/commands` that defines each command; importing it registers its commands."""

_DESCRIBES_ALL = "man"
"""The manual describes every command."""


def load_commands(words: Sequence[str]) -> Collection[str]:
    """Import the commands that a command line may mean; return their names.

    Args:
        words: The command line without the program's name. Unless it starts with a command's name,
            all commands are imported: for the help, for a misspelt name, for completion.
    """
    first = words[0] if words else ""
    if first in MODULE_OF_COMMAND and first != _DESCRIBES_ALL:
        importlib.import_module(f"anchord.cli.commands.{MODULE_OF_COMMAND[first]}")
        return (first,)
    for module in sorted(set(MODULE_OF_COMMAND.values())):
        importlib.import_module(f"anchord.cli.commands.{module}")
    return MODULE_OF_COMMAND
