"""The operating system's hints that a path may have changed. The only user of watchdog.

An event's kind is never believed: each becomes "look here" for the paths it names, and the walk is the truth. Lost events
are no harm as long as the loss is heard of, so the overflow warnings of watchdog's inotify code are turned into a hint for
every root. The callback must not raise and must be quick: an exception ends watchdog's thread, silence follows.
"""

from __future__ import annotations

import logging
import os
import warnings
from collections.abc import Callable

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

# Without a filter our own reads come back as events. Moves must be in it, or their halves are not watched at all.
_EVENTS: list[type[FileSystemEvent]] = [
    DirCreatedEvent, DirDeletedEvent, DirMovedEvent, FileClosedEvent, FileCreatedEvent, FileDeletedEvent,
    FileModifiedEvent, FileMovedEvent,
]  # fmt: skip
_OVERFLOW_LOGGERS = ("watchdog.observers.inotify_c", "watchdog.observers.inotify")


class Watcher:
    """Watches roots and calls `on_hint` with paths, "" for a whole root. Root paths must be real paths (no links)."""

    def __init__(self, on_hint: Callable[[Origin], None]) -> None:
        """Start with no root."""
        # watchdog formats all its watched paths into one of its warnings: a flood, and names of files in a log.
        warnings.filterwarnings("ignore", module=r"watchdog\..*")
        self.overflows = 0
        self._on_hint = on_hint
        self._watches: dict[str, ObservedWatch] = {}
        self._observer: BaseObserver = Observer()
        self._observer.start()
        self._listener = _OverflowListener(self._overflowed)
        for name in _OVERFLOW_LOGGERS:
            logging.getLogger(name).addHandler(self._listener)

    def watch(self, root: Root) -> None:
        """Watch a root, anew if it was watched: after its folder was replaced the old watch sees nothing.

        Raises:
            OSError: the system has no watches left, or the folder is gone.
        """
        self.unwatch(root.name)
        self._watches[root.name] = self._observer.schedule(
            _Hinter(root, self._on_hint), root.path, recursive=True, event_filter=_EVENTS
        )

    def unwatch(self, name: str) -> None:
        """Stop watching a root."""
        watch = self._watches.pop(name, None)
        if watch is not None:
            self._observer.unschedule(watch)

    def watches(self, name: str) -> bool:
        """Say whether a root is watched and the threads for it live."""
        watch = self._watches.get(name)
        alive = {emitter.watch for emitter in self._observer.emitters if emitter.is_alive()}
        return watch is not None and watch in alive and self._observer.is_alive()

    def count(self, name: str) -> int:
        """Count the system's watches for a root; where a watch holds for a whole tree it is 1."""
        for emitter in self._observer.emitters:
            if emitter.watch == self._watches.get(name):
                group = getattr(emitter, "_inotify", None)  # inotify alone has a watch a folder; no public count
                return len(getattr(group, "_active_callbacks_by_path", "1"))
        return 0

    def close(self) -> None:
        """Stop all."""
        for name in _OVERFLOW_LOGGERS:
            logging.getLogger(name).removeHandler(self._listener)
        self._observer.stop()
        self._observer.join(5)

    def _overflowed(self) -> None:
        self.overflows += 1
        for name in list(self._watches):
            self._on_hint(Origin(name, ""))


class _Hinter(FileSystemEventHandler):
    """Turns the events of one root into hints."""

    def __init__(self, root: Root, on_hint: Callable[[Origin], None]) -> None:
        self._root = root
        self._top = root.path.rstrip("/") + "/"
        self._on_hint = on_hint

    def dispatch(self, event: FileSystemEvent) -> None:
        for path in {os.fsdecode(event.src_path), os.fsdecode(event.dest_path)}:
            if path.startswith(self._top):
                self._on_hint(Origin(self._root.name, path[len(self._top) :]))
            elif path == self._root.path:
                self._on_hint(Origin(self._root.name, ""))


class _OverflowListener(logging.Handler):
    def __init__(self, heard: Callable[[], None]) -> None:
        super().__init__(logging.WARNING)
        self._heard = heard

    def emit(self, record: logging.LogRecord) -> None:
        if record.name == _OVERFLOW_LOGGERS[0] and "overflow" in record.getMessage().lower():
            self._heard()
