"""Hints from the operating system that a path may have changed.

The kind of an event is ignored: each event becomes a hint for the paths that it names, and a walk
finds out what changed. On Linux folders are watched one by one (`inotify`); elsewhere watchdog's
observer watches whole trees.
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

from anchord.core.types import Root, RootedPath

HintCallback = Callable[[RootedPath], None]
"""Called from the watcher's thread with a path that may have changed; "" is the whole root."""

# Without a filter our own reads come back as events. Moves must be listed, or watchdog watches
# neither half of them.
_EVENT_TYPES: list[type[FileSystemEvent]] = [
    DirCreatedEvent,
    DirDeletedEvent,
    DirMovedEvent,
    FileClosedEvent,
    FileCreatedEvent,
    FileDeletedEvent,
    FileModifiedEvent,
    FileMovedEvent,
]
_JOIN_TIMEOUT_S = 5


class Watcher(Protocol):
    """Watches roots and calls the hint callback. Root paths must be free of symbolic links."""

    overflow_count: int
    """How often the system dropped events; each time a hint for every root follows."""

    def add(self, root: Root) -> None:
        """Watch a root; replace the watch if it is watched already.

        Raises:
            OSError: The system refuses.
        """

    def remove(self, root_name: str) -> None:
        """Stop watching a root. Does nothing if it is not watched."""

    def watch_folder(self, folder: RootedPath) -> None:
        """Watch a folder. Call it before the folder is listed, so that no change is missed."""

    def unwatch_unlisted_folders(
        self, top_folder: RootedPath, listed_folders: Collection[str]
    ) -> None:
        """Stop watching folders below a folder that a walk of it did not list.

        Args:
            top_folder: The folder that was walked.
            listed_folders: Paths relative to the root of all folders that the walk listed.
        """

    def is_alive(self) -> bool:
        """Return whether events can still arrive."""

    def is_watching_current_folder(self, root_name: str) -> bool:
        """Return whether the folder that is at a root's path now is the one that is watched."""

    def watch_count(self, root_name: str) -> int:
        """Return how many system watches a root uses."""

    def refused_folders(self, root_name: str) -> tuple[str, ...]:
        """Return the topmost folders of a root that the system refused to watch.

        Returns:
            Paths relative to the root.
        """

    def close(self) -> None:
        """Stop watching; waits up to 5 s for the watcher's thread."""


def open_watcher(on_hint: HintCallback) -> Watcher:
    """Start the watcher of this operating system. It watches no root yet.

    Args:
        on_hint: Called with each path that may have changed. It must not raise.

    Raises:
        OSError: The system has no more watchers to give.
    """
    if sys.platform == "linux":
        from anchord.sources.watch.inotify import InotifyWatcher  # noqa: PLC0415 - exists on Linux alone

        return InotifyWatcher(on_hint)
    return TreeWatcher(on_hint)


class TreeWatcher:
    """Watches whole trees with watchdog's observer, as FSEvents does.

    It reports no overflow: the periodic walk finds what an overflow lost.
    """

    def __init__(self, on_hint: HintCallback) -> None:
        """Start the observer's thread; no root is watched yet.

        Args:
            on_hint: Called from that thread with each path that may have changed.
        """
        self.overflow_count = 0
        self._on_hint = on_hint
        self._watches: dict[str, ObservedWatch] = {}
        self._observer: BaseObserver = Observer()
        self._observer.start()

    def add(self, root: Root) -> None:
        """Watch a root; replace the watch if it is watched already.

        Raises:
            OSError: The system refuses.
        """
        # After its folder was replaced the old watch sees nothing, and watchdog keeps it.
        self.remove(root.name)
        self._watches[root.name] = self._observer.schedule(
            _Hinter(root, self._on_hint), root.path, recursive=True, event_filter=_EVENT_TYPES
        )

    def remove(self, root_name: str) -> None:
        """Stop watching a root. Does nothing if it is not watched."""
        watch = self._watches.pop(root_name, None)
        if watch is not None:
            self._observer.unschedule(watch)

    def watch_folder(self, folder: RootedPath) -> None:
        """Do nothing: the whole tree is watched."""

    def unwatch_unlisted_folders(
        self, top_folder: RootedPath, listed_folders: Collection[str]
    ) -> None:
        """Do nothing: the whole tree is watched."""

    def is_alive(self) -> bool:
        """Return whether the observer's thread runs."""
        return self._observer.is_alive()

    def is_watching_current_folder(self, root_name: str) -> bool:
        """Return whether a root is watched and the thread for it runs."""
        alive = {emitter.watch for emitter in self._observer.emitters if emitter.is_alive()}
        return self._watches.get(root_name) in alive

    def watch_count(self, root_name: str) -> int:
        """Return 1 for a root that is watched, else 0."""
        return int(root_name in self._watches)

    def refused_folders(self, root_name: str) -> tuple[str, ...]:  # noqa: ARG002 - a tree is watched as a whole or not at all
        """Return nothing: a tree is watched as a whole or not at all."""
        return ()

    def close(self) -> None:
        """Stop watching; waits up to 5 s for the observer's thread."""
        self._observer.stop()
        self._observer.join(_JOIN_TIMEOUT_S)


class _Hinter(FileSystemEventHandler):
    """Turns the events of one root into hints.

    It must not raise: an exception ends watchdog's thread, and no event arrives any more.
    """

    def __init__(self, root: Root, on_hint: HintCallback) -> None:
        self._root = root
        self._top = root.path.rstrip("/") + "/"
        self._on_hint = on_hint

    def dispatch(self, event: FileSystemEvent) -> None:
        # A move names two paths; of any other event the destination is "".
        for path in {os.fsdecode(event.src_path), os.fsdecode(event.dest_path)}:
            if path.startswith(self._top):
                inside = path[len(self._top) :]
                self._on_hint(RootedPath(self._root.name, inside))
            elif path == self._root.path:
                self._on_hint(RootedPath(self._root.name, ""))
