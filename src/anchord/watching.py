"""The roots of a running daemon: what is known of each, and whether its folder is still the one that is watched.

The system is silent when a root's folder is renamed, unmounted or made anew, when something is mounted below it, and when a
link that leads to it is turned. So every few seconds device, inode, links and mounts are compared with what they were, and a
root that differs is watched anew and walked. What cannot be watched is polled, and said to be.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import dataclass, field, replace

from anchord.adapters.mounts import Mount, inside, mounts, remote_kind
from anchord.adapters.watch import Watcher, open_watcher
from anchord.model import Origin, Problem, Root

_AWAY = (0, 0)
_LISTED = 3
_LIMIT_HINT = "raise fs.inotify.max_user_watches, or exclude folders"


@dataclass(slots=True)
class RootState:
    """What status says of a root. `trouble`: why its folder cannot be walked; its rows are kept meanwhile."""

    root: Root
    scanned: bool = False
    trouble: str = ""
    held: int = 0
    """Files that left all at once; their rows wait for a confirmation."""
    skipped: int = 0
    folder_problems: dict[str, tuple[Problem, int]] = field(default_factory=dict)
    """By path: what is wrong with a folder, and since when (nanoseconds)."""
    watching: bool = False
    watch_trouble: str = ""
    identity: tuple[int, int] = _AWAY
    mounts: tuple[Mount, ...] = ()

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
        self._events = False
        self._watcher: Watcher | None = None
        self._overflows_before = 0
        self._no_events = ""

    # What is watched

    def start(self, *, events: bool) -> None:
        """Watch every root's own folder; without `events`, only remember which folders they are."""
        self._events = events
        self._open()
        for state in self.states.values():
            self._watch(state)

    def close(self) -> None:
        """Stop watching."""
        if self._watcher:
            self._watcher.close()

    def add(self, root: Root) -> None:
        """Watch a root, or its new folder."""
        self.states[root.name] = RootState(root)
        self._watch(self.states[root.name])

    def remove(self, name: str) -> None:
        """Stop watching a root."""
        if self._watcher:
            self._watcher.remove(name)
        self.states.pop(name)

    def enter(self, folder: Origin) -> None:
        """Watch a folder that a walk is about to list."""
        if self._watcher and self.states[folder.root].watching:
            self._watcher.enter(folder)

    def prune(self, top: Origin, listed: Collection[str]) -> None:
        """Watch no more what a walk did not find."""
        if self._watcher:
            self._watcher.prune(top, listed)

    # What status says

    @property
    def overflows(self) -> int:
        """Count the times that the system dropped events."""
        return self._overflows_before + (self._watcher.overflows if self._watcher else 0)

    def watches(self, name: str) -> int:
        """Count the folders of a root that the system watches for us."""
        return self._watcher.count(name) if self._watcher else 0

    def polled(self, name: str) -> tuple[str, ...]:
        """Return the folders of a root that are walked often, since nothing tells of their changes; "" is the root."""
        state = self.states[name]
        if self._watcher is None or not state.watching or state.watch_trouble:
            return ("",)
        return self._watcher.unwatched(name)

    def why_polled(self, name: str) -> str:
        """Return why folders of a root are polled although they should be watched, "" when none is."""
        state, folders = self.states[name], self.polled(name)
        if not self._events or not folders or state.trouble:
            return ""
        if folders == ("",):
            return state.watch_trouble or self._no_events
        named = ", ".join(folders[:_LISTED]) + (", ..." if len(folders) > _LISTED else "")
        return f"{len(folders)} folders cannot be watched and are polled ({named}): {_LIMIT_HINT}"

    def device(self, name: str) -> int:
        """Return the device that a root's folder is on now, 0 when it is away."""
        return _identity(self.states[name].root.path)[0]

    # Whether it is as it was

    def supervise(self) -> list[str]:
        """Watch anew what is not watched as it should be; return the roots to walk."""
        if self._events and (self._watcher is None or not self._watcher.alive()):
            self._open()
            changed = list(self.states) if self._watcher else []
            for name in changed:
                self._watch(self.states[name])
            return changed
        table, changed = mounts(), []
        for name, state in self.states.items():
            blind = state.watching and self._watcher is not None and not self._watcher.sound(name)
            moved = _identity(state.root.path) != state.identity or inside(state.root.path, table) != state.mounts
            if blind or moved:
                self._watch(state)
                changed.append(name)
        return changed

    def retargeted(self) -> list[Root]:
        """Return the roots whose configured path leads elsewhere than it did, as they are now."""
        led = [(state.root, os.path.realpath(state.root.given)) for state in self.states.values() if state.root.given]
        return [replace(root, path=path) for root, path in led if path != root.path and os.path.isdir(path)]

    def _open(self) -> None:
        """Open a watcher, in place of one that died."""
        if self._watcher:
            self._overflows_before += self._watcher.overflows
            self._watcher.close()
        self._watcher = None
        if self._events:
            try:
                self._watcher = open_watcher(self._on_hint)
                self._no_events = ""
            except OSError as error:
                self._no_events = f"the system gives no events ({error.strerror or error}): polled instead"

    def _watch(self, state: RootState) -> None:
        table = mounts()
        state.identity, state.mounts = _identity(state.root.path), inside(state.root.path, table)
        state.watching, state.watch_trouble = False, ""
        if self._watcher is None:
            return
        if state.identity == _AWAY:
            self._watcher.remove(state.root.name)
            return
        try:
            self._watcher.add(state.root)
            state.watching = True
        except OSError as error:
            what = os.strerror(error.errno or 0).lower() if error.errno else str(error)
            state.watch_trouble = f"cannot be watched ({what}): polled instead; {_LIMIT_HINT}"
            return
        remote = remote_kind(state.root.path, table)
        if remote:
            state.watch_trouble = f"is on {remote}, which tells of no changes made elsewhere: polled as well"


def _identity(path: str) -> tuple[int, int]:
    """Device and inode of a folder, zeros when there is none."""
    try:
        seen = os.stat(path)
    except OSError:
        return _AWAY
    return (seen.st_dev, seen.st_ino)
