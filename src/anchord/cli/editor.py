"""A hit -> the person's editor, at its line."""

from __future__ import annotations

import os
import shlex
import subprocess
from pathlib import Path
from typing import Any

from anchord.errors import UsageError

_GOTO = frozenset({"code", "code-insiders", "codium", "cursor", "windsurf"})
_COLON = frozenset({"subl", "zed", "hx", "helix", "atom", "micro"})


def open_in_editor(hit: dict[str, Any]) -> None:
    """Open a hit's file, and wait for the editor.

    Raises:
        UsageError: there is no file, or no editor.
    """
    if not hit["file"] or "session" in hit:
        raise UsageError("this hit was said in a conversation, and stands in no file of its own", "`anchord show` prints it")
    command = os.environ.get("VISUAL") or os.environ.get("EDITOR") or "vi"
    try:
        subprocess.run(arguments(command, hit["file"], hit["start_line"]), check=False)
    except (OSError, ValueError) as error:
        raise UsageError(f"`{command}` cannot be run ({error})", "set $VISUAL or $EDITOR") from None


def arguments(command: str, file: str, line: int) -> list[str]:
    """Return how an editor is called so that it shows a line: most understand vi's way."""
    words = shlex.split(command)
    name = Path(words[0]).name
    if name in _GOTO:
        return [*words, "--goto", f"{file}:{line}"]
    return [*words, f"{file}:{line}"] if name in _COLON else [*words, f"+{line}", file]
