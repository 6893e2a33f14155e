"""The terminal. rich is loaded when something needs its markup, a table or a progress bar."""

from __future__ import annotations

import functools
import os
import sys
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from rich.console import Console


@functools.cache
def stdout_console() -> Console:
    """Return rich's console of standard output."""
    return _make_console(is_stderr=False)


def terminal_size() -> tuple[int, int] | None:
    """Return columns and rows of the terminal; None if standard output is none."""
    if not sys.stdout.isatty():
        return None
    console = stdout_console()
    return console.width, console.height


@functools.cache
def stderr_console() -> Console:
    """Return rich's console of standard error."""
    return _make_console(is_stderr=True)


def _make_console(*, is_stderr: bool) -> Console:
    from rich.console import Console

    return Console(
        highlight=False,
        emoji=False,  # `:x:` in a text is no emoji.
        soft_wrap=True,
        color_system=None if os.environ.get("NO_COLOR") else "auto",
        # Some environments set COLUMNS=0 for "unknown"; rich would then print nothing.
        width=80 if os.environ.get("COLUMNS") == "0" else None,
        stderr=is_stderr,
    )


def print_text(text: str, *, is_stderr: bool = False) -> None:
    """Print a text as it is, and a line break; without rich."""
    print(text, file=sys.stderr if is_stderr else sys.stdout, flush=True)
