"""Opens a search result in the user's editor, at its line."""

from __future__ import annotations

import os
import re
import shlex
import subprocess
from pathlib import Path

from anchord.errors import UsageError
from anchord.ipc.messages.searching import Passage

_GOTO_EDITORS = frozenset({"code", "code-insiders", "codium", "cursor", "windsurf"})
_COLON_EDITORS = frozenset({"subl", "zed", "hx", "helix", "atom", "micro"})
_ADDRESS = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*:")
"""How vim, Emacs and others recognize an address."""


def open_in_editor(hit: Passage) -> None:
    """Open a search result's file in $VISUAL, $EDITOR or vi, and wait until the editor ends.

    Args:
        hit: A search result, as in the answer of `search`.

    Raises:
        UsageError: The result is from a conversation, or the editor cannot be started.
    """
    if not hit.file or hit.session:
        raise UsageError(
            "this result is from a conversation and has no file of its own",
            "use `anchord show` to print it",
        )
    command = os.environ.get("VISUAL") or os.environ.get("EDITOR") or "vi"
    line = hit.match_line or hit.start_line or 1
    try:
        subprocess.run(editor_arguments(command, hit.file, line), check=False)
    except (OSError, ValueError) as error:
        raise UsageError(
            f"cannot start the editor `{command}` ({error})", "set $VISUAL or $EDITOR"
        ) from None


def editor_arguments(command: str, file: str, line: int) -> list[str]:
    """Return the arguments that open an editor at a line.

    Args:
        command: The editor, with arguments of its own, in shell syntax; not empty.
        file: The file to open. A relative one that looks like an option, a command (`+!id`) or an
            address (`scp://`) is passed as `./FILE`.
        line: The line, from 1.

    Raises:
        ValueError: The command has an unclosed quote.
    """
    words = shlex.split(command)
    name = Path(words[0]).name
    if file.startswith(("-", "+")) or _ADDRESS.match(file):
        file = f"./{file}"
    if name in _GOTO_EDITORS:
        return [*words, "--goto", f"{file}:{line}"]
    if name in _COLON_EDITORS:
        return [*words, f"{file}:{line}"]
    return [*words, f"+{line}", file]  # vi's way, which most editors understand.
