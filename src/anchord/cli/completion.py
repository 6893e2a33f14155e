"""Shell completion for the shell that is named, or for the one that anchord runs in.

typer ignores the name behind `--show-completion` and looks for a shell among the parent processes.
So `--show-completion zsh` printed the script of bash, and below `sh`, or below no shell at all, it
failed with a message that did not say what to do.
"""

from __future__ import annotations

import os
from collections.abc import Sequence

from anchord.errors import UsageError

_OPTIONS = ("--show-completion", "--install-completion")
_SHELLS = ("bash", "zsh", "fish", "powershell", "pwsh")
"""The shells that typer has completion for."""
_TAKE_THE_NAME = "_TYPER_COMPLETE_TEST_DISABLE_SHELL_DETECTION"
"""An environment variable of typer's: set, it takes the name behind the option."""


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
