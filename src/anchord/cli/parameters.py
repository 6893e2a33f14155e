"""The options and arguments of a command: how its function declares them, and how they are parsed.

A command is a function; the annotation of each parameter is its type with an `Option` or an
`Argument`. `parse` reads every correct command line. What it cannot read, the help and the shell's
completion are left to typer, which is built from the same declarations (`typer_app`) and takes ten
times as long to start.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from types import NoneType, UnionType
from typing import Any, get_args, get_origin, get_type_hints

_WHOLE_NUMBER = r"-?[0-9]{1,18}"
_NUMBER = r"-?[0-9]{1,15}(?:\.[0-9]{1,15})?"

REQUIRED = object()
"""The default of a parameter that has none."""
Completer = Callable[[str], list[str]]
"""Takes the beginning of a word, returns the words that begin with it."""


class _Declaration:
    """What options and arguments have in common; the names are typer's."""

    def __init__(
        self,
        *names: str,
        help: str | None = None,
        metavar: str | None = None,
        min: float | None = None,
        max: float | None = None,
        autocompletion: Completer | None = None,
    ) -> None:
        self.names = names
        """Of an option, such as "-k"; "--on/--off" is a flag that is switched on and off."""
        self.help = help
        self.metavar = metavar
        """What the help calls the value; None for a name made from the type."""
        self.min = min
        self.max = max
        self.autocompletion = autocompletion


class Option(_Declaration):
    """An option with a value, or a flag if its parameter is a bool."""


class Argument(_Declaration):
    """An argument, found by its position; required if its parameter has no default."""


class Parameter:
    """A parameter of a command's function."""

    def __init__(self, name: str, annotation: Any, default: object) -> None:  # noqa: ANN401 - any type
        """Take the annotation apart.

        Args:
            name: The parameter's.
            annotation: `Annotated[TYPE, Option(...)]`. The type is `str`, `int`, `float` or `bool`,
                a list of one of them, or one of these or None.
            default: Its default, or `REQUIRED`.
        """
        self.name = name
        self.annotation, self.declaration = annotation.__origin__, annotation.__metadata__[0]
        self.default = default
        self.is_required = default is REQUIRED
        inner = self.annotation
        if get_origin(inner) is UnionType:
            inner = next(each for each in get_args(inner) if each is not NoneType)
        self.is_list = get_origin(inner) is list
        self.type = get_args(inner)[0] if self.is_list else inner
        self.is_argument = isinstance(self.declaration, Argument)
        self.is_flag = self.type is bool and not self.is_argument

    def spellings(self) -> Iterator[tuple[str, bool]]:
        """Yield each name of an option; with False those that switch a flag off."""
        for name in self.declaration.names:
            on, _, off = name.partition("/")
            yield on, True
            if off:
                yield off, False

    def convert(self, word: str) -> Any:  # noqa: ANN401 - of the parameter's type
        """Return the value that a word stands for.

        Raises:
            ValueError: It stands for none, or the value is out of range.
        """
        if self.type is str:
            return word
        form = _WHOLE_NUMBER if self.type is int else _NUMBER
        if not re.fullmatch(form, word):
            raise ValueError(word)
        number = self.type(word)
        rule = self.declaration
        too_small = rule.min is not None and number < rule.min
        too_large = rule.max is not None and number > rule.max
        if too_small or too_large:
            raise ValueError(word)
        return number


def parameters_of(function: Callable[..., None]) -> list[Parameter]:
    """Return the parameters of a command's function, in their order."""
    code, defaults = function.__code__, function.__defaults__ or ()
    names = code.co_varnames[: code.co_argcount]
    required = [REQUIRED] * (len(names) - len(defaults))
    hints = get_type_hints(function, include_extras=True)
    return [
        Parameter(name, hints[name], default)
        for name, default in zip(names, [*required, *defaults], strict=True)
    ]


def parse(parameters: Sequence[Parameter], words: Sequence[str]) -> dict[str, Any]:
    """Return the value of each parameter that a command line gives.

    Args:
        parameters: The command's.
        words: The command line behind the command's name.

    Raises:
        ValueError: The command line is wrong, or asks for help: typer has the words for it.
    """
    given, positional = split(parameters, words)
    values: dict[str, Any] = {}
    taken: Sequence[str | bool]
    for parameter in parameters:
        if parameter.is_argument:
            count = len(positional) if parameter.is_list else 1
            taken, positional = positional[:count], positional[count:]
        else:
            taken = given.get(parameter.name, [])
            # Of an option that has one value the last one counts.
            taken = taken if parameter.is_list else taken[-1:]
        if not taken and parameter.is_required:
            raise ValueError(parameter.name)
        if taken:
            values[parameter.name] = _convert(parameter, taken)
    if positional:
        raise ValueError(positional[0])
    return values


def _convert(parameter: Parameter, taken: Sequence[str | bool]) -> Any:  # noqa: ANN401 - of the parameter's type
    values = [each if isinstance(each, bool) else parameter.convert(each) for each in taken]
    return values if parameter.is_list else values[0]


def split(
    parameters: Sequence[Parameter], words: Sequence[str]
) -> tuple[dict[str, list[str | bool]], list[str]]:
    """Return the words that each option was given, by the parameter's name, and the other words.

    Raises:
        ValueError: An option is unknown or lacks its value, or a flag has one.
    """
    options = {
        name: (parameter, is_on)
        for parameter in parameters
        if not parameter.is_argument
        for name, is_on in parameter.spellings()
    }
    given: dict[str, list[str | bool]] = {}
    positional: list[str] = []
    left = list(words)
    while left:
        word = left.pop(0)
        if word == "--":
            positional += left
            break
        if len(word) < 2 or not word.startswith("-"):
            positional.append(word)
        else:
            for name, value in _read_option(options, word, left):
                given.setdefault(name, []).append(value)
    return given, positional


def _read_option(
    options: Mapping[str, tuple[Parameter, bool]], word: str, left: list[str]
) -> Iterator[tuple[str, str | bool]]:
    """Yield the parameters and values of `--name value`, `--name=value`, `-k5` or `-yk5`.

    Args:
        options: Name -> its parameter, and what it sets a flag to.
        word: A word that begins with "-".
        left: The words behind it; a value is taken from its front.

    Raises:
        ValueError: No such option, a flag with a value, or a value is missing.
    """
    name, equals, value = word.partition("=")
    if name in options and name.startswith("--"):
        parameter, is_on = options[name]
        if not parameter.is_flag:
            yield parameter.name, value if equals else _next(left)
        elif equals:
            raise ValueError(word)
        else:
            yield parameter.name, is_on
        return
    if word.startswith("--"):
        raise ValueError(word)
    for position, letter in enumerate(word[1:], 2):
        if f"-{letter}" not in options:
            raise ValueError(word)
        parameter, is_on = options[f"-{letter}"]
        if not parameter.is_flag:
            yield parameter.name, word[position:] or _next(left)
            return
        yield parameter.name, is_on


def _next(left: list[str]) -> str:
    if not left:
        raise ValueError("a value is missing")
    return left.pop(0)
