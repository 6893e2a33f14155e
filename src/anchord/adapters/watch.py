"""The operating system's hints that a path may have changed, on the system at hand.

An event's kind is never believed: each becomes "look here" for the paths it names, and the walk is the truth. On Linux
folders are watched one by one (`inotify`); elsewhere watchdog's observer watches whole trees.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Collection
from typing import Protocol

from watchdog.events import (
    DirCreatedEvent,
    DirDeletedEvent,
    DirMovedEvent,
    FileClosedEvent,
    FileCreatedEvent,
    FileDeletedEvent,
    FileModifiedEvent,
    FileMovedEvent,
    FileSystemEvent,
    FileSystemEventHandler,
)
from watchdog.observers import Observer
from watchdog.observers.api import BaseObserver, ObservedWatch

from anchord.model import Origin, Root

Hint = Callable[[Origin], None]

# Without a filter our own reads come back as events. Moves must be in it, or their halves are not watched at all.
_EVENTS: list[type[FileSystemEvent]] = [
    DirCreatedEvent, DirDeletedEvent, DirMovedEvent, FileClosedEvent, FileCreatedEvent, FileDeletedEvent,
    FileModifiedEvent, FileMovedEvent,
]  # fmt: skip


class Watcher(Protocol):
    """Watches roots; `on_hint` is called with paths, "" for a whole root. Root paths are real paths (no links)."""

    overflows: int
    """How often the system dropped events; each time a hint for every root follows."""

    def add(self, root: Root) -> None:
        """Watch a root, anew if it was watched.

        Raises:
            OSError: the system refuses.
        """

    def remove(self, name: str) -> None:
        """Stop watching a root."""

    def enter(self, folder: Origin) -> None:
        """Note that a folder is about to be listed."""

    def prune(self, top: Origin, listed: Collection[str]) -> None:
        """Note which folders below `top` a walk listed; no others need watching."""

    def alive(self) -> bool:
        """Whether events of any root can still come."""

    def sound(self, name: str) -> bool:
        """Whether the folder that stands at a root's path is the one that is watched."""

    def count(self, name: str) -> int:
        """Count the system's watches for a root."""

    def unwatched(self, name: str) -> tuple[str, ...]:
        """Return the topmost folders of a root that the system refused to watch."""

    def close(self) -> None:
        """Stop all."""


def open_watcher(on_hint: Hint) -> Watcher:
    """Return the watcher of this system.

    Raises:
        OSError: the system gives none now.
    """
    if sys.platform == "linux":
        from anchord.adapters.inotify import InotifyWatcher  # noqa: PLC0415 - exists on Linux alone

        return InotifyWatcher(on_hint)
    return TreeWatcher(on_hint)


class TreeWatcher:
    """Has watchdog watch whole trees, as FSEvents does. It tells of no overflow: the periodic walk makes up for one."""

    def __init__(self, on_hint: Hint) -> None:
        """Start with no root."""
        self.overflows = 0
        self._on_hint = on_hint
        self._watches: dict[str, ObservedWatch] = {}
        self._observer: BaseObserver = Observer()
        self._observer.start()

    def add(self, root: Root) -> None:
        """Watch a root: after its folder was replaced the old watch sees nothing, and would not be made anew."""
        self.remove(root.name)
        self._watches[root.name] = self._observer.schedule(
            _Hinter(root, self._on_hint), root.path, recursive=True, event_filter=_EVENTS
        )

    def remove(self, name: str) -> None:
        """Stop watching a root."""
        watch = self._watches.pop(name, None)
        if watch is not None:
            self._observer.unschedule(watch)

    def enter(self, folder: Origin) -> None:
        """Need nothing: the tree is watched."""

    def prune(self, top: Origin, listed: Collection[str]) -> None:
        """Need nothing."""

    def alive(self) -> bool:
        """Whether the observer's thread runs."""
        return self._observer.is_alive()

    def sound(self, name: str) -> bool:
        """Whether a root is watched and the thread for it lives."""
        return self._watches.get(name) in {emitter.watch for emitter in self._observer.emitters if emitter.is_alive()}

    def count(self, name: str) -> int:
        """Return 1 for a watched tree."""
        return int(name in self._watches)

    def unwatched(self, name: str) -> tuple[str, ...]:  # noqa: ARG002 - a tree is watched as a whole or not at all
        """Return nothing."""
        return ()

    def close(self) -> None:
        """Stop all."""
        self._observer.stop()
        self._observer.join(5)


class _Hinter(FileSystemEventHandler):
    """Turns the events of one root into hints. It must not raise: an exception ends watchdog's thread, silence follows."""

    def __init__(self, root: Root, on_hint: Hint) -> None:
        self._root = root
        self._top = root.path.rstrip("/") + "/"
        self._on_hint = on_hint

    def dispatch(self, event: FileSystemEvent) -> None:
        for path in {os.fsdecode(event.src_path), os.fsdecode(event.dest_path)}:
            if path.startswith(self._top):
                self._on_hint(Origin(self._root.name, path[len(self._top) :]))
            elif path == self._root.path:
                self._on_hint(Origin(self._root.name, ""))
