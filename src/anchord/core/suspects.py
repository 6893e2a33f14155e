"""Which file makes the embedder fail: found by trying them one at a time, and let go of so that the others go on.

An embedder fails for reasons of its own (no memory, a server that is away) or because of a text. A batch that failed twice is
tried file by file, those first that failed least; a file that failed alone three times is named, and whoever asked finds out
with a harmless text whether the embedder works otherwise.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from anchord.model import Origin

TOGETHER = 2
ALONE = 3


@dataclass(slots=True)
class Suspects:
    """What failed since the last batch that worked."""

    _together: int = 0
    _alone: dict[Origin, int] = field(default_factory=dict)

    def choose(self, origins: Sequence[Origin]) -> list[Origin]:
        """Return what to try next: all, or the file that failed least."""
        if self._together < TOGETHER:
            return list(origins)
        return [min(origins, key=lambda origin: self._alone.get(origin, 0))]

    def failed(self, tried: Sequence[Origin]) -> Origin | None:
        """Note a failure; return the file to be asked about, if it is one."""
        if len(tried) > 1:
            self._together += 1
            return None
        (origin,) = tried
        self._together = max(self._together, TOGETHER)
        self._alone[origin] = self._alone.get(origin, 0) + 1
        return origin if self._alone[origin] >= ALONE else None

    def worked(self, tried: Sequence[Origin]) -> None:
        """Note a success; once a whole batch works, or none is under suspicion any more, files go together again."""
        for origin in tried:
            self._alone.pop(origin, None)
        if len(tried) > 1 or not self._alone:
            self._together = 0
            self._alone.clear()
