"""The roots of a running daemon: what is known of each, and whether its folder is still the one that is watched.

watchdog is silent when a root's folder is renamed, unmounted or made anew. So every few seconds the folder's device and
inode are compared with those that were watched, and a root that differs is watched anew and walked.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field

from anchord.adapters.watch import Watcher
from anchord.model import Origin, Problem, Root

_AWAY = (0, 0)


@dataclass(slots=True)
class RootState:
    """What status says of a root. `trouble`: why its folder cannot be walked; its rows are kept meanwhile."""

    root: Root
    scanned: bool = False
    trouble: str = ""
    skipped: int = 0
    folder_problems: dict[str, tuple[Problem, int]] = field(default_factory=dict)
    """By path: what is wrong with a folder, and since when (nanoseconds)."""
    watching: bool = False
    watch_trouble: str = ""
    identity: tuple[int, int] = _AWAY

    def note_problems(self, problems: Sequence[tuple[str, Problem]], now_ns: int) -> None:
        """Replace the folders' problems, keeping since when for those that stay."""
        before = self.folder_problems
        self.folder_problems = {path: (problem, before.get(path, (problem, now_ns))[1]) for path, problem in problems}


class RootWatch:
    """Watches roots, or has them polled where that cannot be."""

    def __init__(self, roots: Iterable[Root], on_hint: Callable[[Origin], None]) -> None:
        """Take in the roots; nothing is watched yet."""
        self.states = {root.name: RootState(root) for root in roots}
        self._on_hint = on_hint
        self._watcher: Watcher | None = None

    @property
    def polls(self) -> bool:
        """Whether some root must be walked often, for nothing tells of its changes."""
        return self._watcher is None or any(state.watch_trouble for state in self.states.values())

    @property
    def overflows(self) -> int:
        """Count the times that the system dropped events."""
        return self._watcher.overflows if self._watcher else 0

    def start(self, *, events: bool) -> None:
        """Watch every root; without `events`, only remember which folders they are."""
        if events:
            self._watcher = Watcher(self._on_hint)
        for state in self.states.values():
            self._watch(state)

    def close(self) -> None:
        """Stop watching."""
        if self._watcher:
            self._watcher.close()

    def add(self, root: Root) -> None:
        """Watch a root."""
        self.states[root.name] = RootState(root)
        self._watch(self.states[root.name])

    def remove(self, name: str) -> None:
        """Stop watching a root."""
        if self._watcher:
            self._watcher.unwatch(name)
        self.states.pop(name)

    def watches(self, name: str) -> int:
        """Count the folders of a root that the system watches for us."""
        return self._watcher.count(name) if self._watcher else 0

    def supervise(self) -> list[str]:
        """Watch anew what is not watched as it should be; return the roots to walk."""
        changed = []
        for name, state in self.states.items():
            dead = state.watching and self._watcher is not None and not self._watcher.watches(name)
            if dead or _identity(state.root.path) != state.identity:
                self._watch(state)
                changed.append(name)
        return changed

    def _watch(self, state: RootState) -> None:
        state.identity = _identity(state.root.path)
        if self._watcher is None:
            return
        state.watching, state.watch_trouble = False, ""
        if state.identity == _AWAY:
            self._watcher.unwatch(state.root.name)
            return
        try:
            self._watcher.watch(state.root)
            state.watching = True
        except OSError as error:
            state.watch_trouble = f"cannot be watched ({os.strerror(error.errno or 0).lower()}): polled instead"


def _identity(path: str) -> tuple[int, int]:
    """Device and inode of a folder, zeros when there is none."""
    try:
        seen = os.stat(path)
    except OSError:
        return _AWAY
    return (seen.st_dev, seen.st_ino)
