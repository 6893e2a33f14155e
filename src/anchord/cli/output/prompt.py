"""Questions on the terminal."""

from __future__ import annotations


def confirm(question: str, *, is_stderr: bool = False, default: bool = False) -> bool:
    """Ask a question; return whether the answer is yes. An empty answer is `default`.

    Raises:
        KeyboardInterrupt: Ctrl-C, or standard input ended.
    """
    import typer

    try:
        return typer.confirm(question, default, err=is_stderr)
    except typer.Abort:
        raise KeyboardInterrupt from None
