"""What a target says when a law does not hold, and how two failures are known to be of one defect."""

from __future__ import annotations

import traceback
from pathlib import Path

import anchord

_SOURCE = str(Path(anchord.__file__).parent)
_OWN = str(Path(__file__).parent)


class LawBrokenError(AssertionError):
    """A law that must hold for any input does not. `where`: the kind of input, if that is another defect elsewhere."""

    def __init__(self, law: str, where: str, seen: tuple[object, ...]) -> None:
        """Keep the law apart from what was seen, which differs from input to input."""
        shown = ", ".join(repr(each)[:300] for each in seen)
        super().__init__(f"{law}{f' ({where})' if where else ''}: {shown}")
        self.law, self.where = law, where


def hold(kept: object, law: str, *seen: object, where: str = "") -> None:
    """Raise unless a law is kept; what was seen is only written down then.

    Raises:
        LawBrokenError: it is not.
    """
    if not kept:
        raise LawBrokenError(law, where, seen)


def signature(error: BaseException) -> str:
    """Name a defect: by its law, else by the kind of exception and the innermost function of ours that it went through."""
    if isinstance(error, LawBrokenError):
        return f"{error.law} ({error.where})" if error.where else error.law
    frames = traceback.extract_tb(error.__traceback__)
    ours = [frame for frame in frames if frame.filename.startswith(_SOURCE)]
    inner = (ours or [frame for frame in frames if frame.filename.startswith(_OWN)] or frames)[-1:]
    places = [f"{Path(frame.filename).stem}.{frame.name}" for frame in inner]
    return f"{type(error).__name__} in {''.join(places) or 'nowhere'}"
