"""Tells a burst from a save: many files of one folder that change in a moment.

A copy, a checkout or a clone changes many files at once, and nobody waits for each of them. Who
saves a file looks for it next, so a single save must not wait for a burst.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping

from anchord.core.types import RootedPath

WINDOW_S = 2.0
"""Seconds during which changes belong together."""
FEWEST_FILES = 20
"""Files below one folder that change within `WINDOW_S` and so are a burst. An editor's "save all"
usually writes fewer."""


class BurstDetector:
    """Remembers which files changed a moment ago.

    The caller passes the times, as seconds of any monotonic clock.
    """

    def __init__(self) -> None:
        """Start without changes."""
        self._changed_at: dict[RootedPath, float] = {}
        """File -> when it changed, oldest first."""
        self._counts: Counter[RootedPath] = Counter()
        """Folder -> how many of these files are below it."""

    def find_bursts(self, changed_at: Mapping[RootedPath, float], now: float) -> set[RootedPath]:
        """Return those of some changed files that are part of a burst.

        Files are counted below each folder that contains them. Below the root itself only its own
        files count: two folders that change at once are two events.

        Args:
            changed_at: File -> when its first event came.
            now: The present time. Changes of more than `WINDOW_S` ago are forgotten.
        """
        self._forget(now - WINDOW_S)
        for file, at in changed_at.items():
            if file not in self._changed_at:
                self._counts.update(_counted_folders(file))
            else:
                del self._changed_at[file]  # It goes to the end: the order is that of the times.
            self._changed_at[file] = max(at, now - WINDOW_S)
        return {
            file
            for file in changed_at
            if any(self._counts[folder] >= FEWEST_FILES for folder in _counted_folders(file))
        }

    def _forget(self, before: float) -> None:
        old = [file for file, at in self._changed_at.items() if at < before]
        for file in old:
            del self._changed_at[file]
            self._counts.subtract(_counted_folders(file))
        if old:
            self._counts += Counter()  # This drops the folders that count no file any more.


def _counted_folders(file: RootedPath) -> Iterator[RootedPath]:
    """Yield the folders whose burst a file would be part of."""
    folder, _, _ = file.path.rpartition("/")
    if not folder:
        yield RootedPath(file.root, "")
    while folder:
        yield RootedPath(file.root, folder)
        folder, _, _ = folder.rpartition("/")
