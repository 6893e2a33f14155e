"""The commands by name, and how the words of a command line find theirs."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, TypeVar

from anchord.cli.parameters import parameters_of, parse

Command = Callable[..., None]
C = TypeVar("C", bound=Command)


class Exit(Exception):  # noqa: N818 - no error
    """Ends a command that printed what there is to say, with an exit code."""

    def __init__(self, code: int = 0) -> None:
        """Create it with the exit code."""
        super().__init__(code)
        self.code = code


class Commands:
    """Commands, and groups of commands such as `config`, by their names."""

    def __init__(self, help: str) -> None:
        """Begin without a command; `help` heads their list."""
        self.help = help
        self.functions: dict[str, Command] = {}
        self.groups: dict[str, Commands] = {}
        self.hidden: set[str] = set()
        """Commands that the help does not list."""

    def command(self, name: str = "", *, hidden: bool = False) -> Callable[[C], C]:
        """Register a function as a command; without a name it has the function's."""

        def register(function: C) -> C:
            self.functions[name or function.__name__.replace("_", "-")] = function
            if hidden:
                self.hidden.add(name)
            return function

        return register

    def group(self, name: str, help: str) -> Commands:
        """Register a group of commands and return it."""
        self.groups[name] = Commands(help)
        return self.groups[name]

    def find(self, words: Sequence[str]) -> tuple[Command, Sequence[str]]:
        """Return the command that a command line names, and the words behind its name.

        Raises:
            ValueError: It does not begin with the name of a command.
        """
        name = words[0] if words else ""
        if name in self.groups:
            return self.groups[name].find(words[1:])
        if name not in self.functions:
            raise ValueError(name)
        return self.functions[name], words[1:]

    def understand(self, words: Sequence[str]) -> tuple[Command, dict[str, Any]]:
        """Return the command that a command line names, and the values for its parameters.

        Raises:
            ValueError: The command line is wrong, or asks for help.
        """
        command, rest = self.find(words)
        return command, parse(parameters_of(command), rest)
