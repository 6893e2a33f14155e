"""Shell completion: what the shell offers, and which shell its script is for.

The names of commands, and the values of options and arguments, are offered without typer; the names
of options, which come with their help, by typer. typer also prints the script, but ignores the name
behind `--show-completion` and looks for a shell among the parent processes. So `--show-completion
zsh` printed the script of bash, and below `sh`, or below no shell at all, it failed with a message
that did not say what to do.
"""

from __future__ import annotations

import os
from collections.abc import Sequence

from anchord.cli.app import app
from anchord.cli.help_groups import HELP_GROUPS
from anchord.cli.loading import MODULE_OF_COMMAND, load_commands
from anchord.cli.output.console import print_text
from anchord.cli.parameters import Parameter, parameters_of, split
from anchord.errors import UsageError

COMPLETION_VARIABLE = "_ANCHORD_COMPLETE"
"""The environment variable in which the script of a shell asks for completion."""
_OPTIONS = ("--show-completion", "--install-completion")
_SHELLS = ("bash", "zsh", "fish", "powershell", "pwsh")
"""The shells that typer has completion for."""
_TAKE_THE_NAME = "_TYPER_COMPLETE_TEST_DISABLE_SHELL_DETECTION"
"""An environment variable of typer's: set, it takes the name behind the option."""


def complete() -> int | None:
    """Print what the shell offers for the word at the cursor, and return the exit code.

    Returns:
        None if typer has to answer, and nothing was printed.
    """
    shell = os.environ[COMPLETION_VARIABLE].removeprefix("complete_")
    if shell == "bash":
        words = _split_words(os.environ.get("COMP_WORDS", ""))
        at = int(os.environ.get("COMP_CWORD", "0"))
        before, incomplete = words[1:at], "".join(words[at : at + 1])
    elif shell in {"zsh", "fish"}:
        line = os.environ.get("_TYPER_COMPLETE_ARGS", "")
        words = _split_words(line)[1:]
        count = len(words) - (not line.endswith(" ") and bool(words))
        before, incomplete = words[:count], "".join(words[count:])
    else:
        return None
    try:
        offered = _offer(before, incomplete, with_help=shell != "bash")
    except ValueError:
        return None
    return _print_offered(shell, offered)


def _offer(before: Sequence[str], incomplete: str, *, with_help: bool) -> list[str]:
    """Return the words that begin with the one at the cursor.

    Args:
        before: The words before it, without the program's.
        incomplete: What of it is typed.
        with_help: Whether the shell shows help beside the names of commands.

    Raises:
        ValueError: They are names with help or of options, or the command line is wrong.
    """
    is_option = incomplete.startswith("-") or "=" in incomplete
    if is_option or (with_help and not before):
        raise ValueError(incomplete)
    return _values(before, incomplete) if before else _command_names(incomplete)


def _command_names(incomplete: str) -> list[str]:
    names = [name for group in HELP_GROUPS.values() for name in group]
    return [name for name in names if name.startswith(incomplete)]


def _values(before: Sequence[str], incomplete: str) -> list[str]:
    """Return the values of an option or an argument of the command before the cursor."""
    if before[0] not in MODULE_OF_COMMAND or "--" in before:
        raise ValueError(before)
    load_commands(before)
    command, words = app.find(before)
    parameter = _parameter_at_end(parameters_of(command), words)
    offer = parameter.declaration.autocompletion if parameter else None
    return offer(incomplete) if offer else []


def _parameter_at_end(parameters: Sequence[Parameter], words: Sequence[str]) -> Parameter | None:
    """Return the option or argument that the word behind these words belongs to, if any.

    Args:
        parameters: A command's.
        words: The command line behind the command's name.

    Raises:
        ValueError: The command line is wrong.
    """
    for parameter in parameters:
        if words and not parameter.is_flag and words[-1] in parameter.declaration.names:
            return parameter
    arguments = [each for each in parameters if each.is_argument]
    taken = len(split(parameters, words)[1])
    if taken < len(arguments):
        return arguments[taken]
    # A list at the end takes all other words.
    return arguments[-1] if arguments and arguments[-1].is_list else None


def _print_offered(shell: str, offered: Sequence[str]) -> int:
    """Print words as the script of the shell reads them; return the exit code."""
    if shell == "fish" and os.environ.get("_TYPER_COMPLETE_FISH_ACTION") == "is-args":
        return 0 if offered else 1
    if shell == "zsh":
        quoted = "\n".join(f'"{_escape_for_zsh(word)}"' for word in offered)
        print_text(f"_arguments '*: :(({quoted}))'" if offered else "_files")
    else:
        print_text("\n".join(offered))
    return 0


def _escape_for_zsh(word: str) -> str:
    for character, escaped in (
        ('"', '""'),
        ("'", "''"),
        ("$", "\\$"),
        ("`", "\\`"),
        (":", "\\\\:"),
    ):
        word = word.replace(character, escaped)
    return word


def _split_words(line: str) -> list[str]:
    """Split a line into words as a shell; the last one may lack its closing quote."""
    import shlex

    words = shlex.shlex(line, posix=True)
    words.whitespace_split = True
    words.commenters = ""
    found: list[str] = []
    try:
        found.extend(words)
    except ValueError:
        found.append(words.token)
    return found


def select_shell(arguments: Sequence[str]) -> None:
    """Have typer use the shell named behind a completion option; sets an environment variable.

    Args:
        arguments: the command line without the program's name.

    Raises:
        UsageError: no shell is named, and none that typer knows is among the parent processes.
    """
    if not arguments or arguments[0] not in _OPTIONS:
        return
    option, *names = arguments
    if names and not names[0].startswith("-"):
        os.environ[_TAKE_THE_NAME] = "1"
        return
    shell = _detect_shell()
    if shell not in _SHELLS:
        reason = f"no completion for the shell `{shell}`" if shell else "no shell was detected"
        raise UsageError(reason, f"name one of {', '.join(_SHELLS)}: `anchord {option} bash`")


def _detect_shell() -> str:
    import shellingham

    try:
        return str(shellingham.detect_shell()[0])
    except shellingham.ShellDetectionFailure:
        return ""
