"""The error of a violated law, and how failures are grouped by defect."""

from __future__ import annotations

import traceback
from pathlib import Path

import anchord

_SOURCE = str(Path(anchord.__file__).parent)
_OWN = str(Path(__file__).parent)


class LawBrokenError(AssertionError):
    """A law is violated by an input. `where`: the kind of input, if each kind is a defect of its own."""

    def __init__(self, law: str, where: str, seen: tuple[object, ...]) -> None:
        """Store the law and the observed values separately: the values differ between inputs."""
        shown = ", ".join(repr(each)[:300] for each in seen)
        super().__init__(f"{law}{f' ({where})' if where else ''}: {shown}")
        self.law, self.where = law, where


def hold(kept: object, law: str, *seen: object, where: str = "") -> None:
    """Raise if a law is violated; the observed values are formatted only then.

    Raises:
        LawBrokenError: The law is violated.
    """
    if not kept:
        raise LawBrokenError(law, where, seen)


def signature(error: BaseException) -> str:
    """Name a defect by its law, else by the exception class and anchord's innermost function."""
    if isinstance(error, LawBrokenError):
        return f"{error.law} ({error.where})" if error.where else error.law
    frames = traceback.extract_tb(error.__traceback__)
    ours = [frame for frame in frames if frame.filename.startswith(_SOURCE)]
    inner = (ours or [frame for frame in frames if frame.filename.startswith(_OWN)] or frames)[-1:]
    places = [f"{Path(frame.filename).stem}.{frame.name}" for frame in inner]
    return f"{type(error).__name__} in {''.join(places) or 'nowhere'}"
