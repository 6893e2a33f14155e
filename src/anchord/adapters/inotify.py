"""Linux's hints that a path may have changed: a watch on each folder that a walk enters, through watchdog's inotify thread.

Only watchdog's reading of the inotify queue is used. What it builds on top (pairing of moves, events for whole trees, a thread
a root) delays everything behind a moved-out file by half a second, takes watches in ignored folders, is silent about an
overflow, and keeps the watches of a folder that was moved out. None of that is needed by who believes no event:

- a folder is watched right before it is listed (`enter`), so nothing falls between a look and the watch;
- what an event names becomes a hint; a folder that moved away is no longer watched, wherever it went;
- an overflow becomes a hint for every root;
- the kernel's refusals are kept by folder (`unwatched`), so that those folders can be polled.

Nothing here raises into watchdog's thread, which an exception would end.
"""

from __future__ import annotations

import ctypes
import errno
import os
import threading
from collections.abc import Callable, Collection
from contextlib import suppress

from watchdog.observers import inotify_c
from watchdog.observers.inotify_c import CallbackId, InotifyConstants, InotifyEvent, InotifyFD, Mask, WatchDescriptor

from anchord.model import Origin, Root

_MASK = Mask(
    InotifyConstants.IN_MODIFY
    | InotifyConstants.IN_ATTRIB
    | InotifyConstants.IN_CLOSE_WRITE
    | InotifyConstants.IN_CREATE
    | InotifyConstants.IN_DELETE
    | InotifyConstants.IN_MOVE
    | InotifyConstants.IN_DELETE_SELF
    | InotifyConstants.IN_MOVE_SELF
    | InotifyConstants.IN_ONLYDIR
    | InotifyConstants.IN_DONT_FOLLOW
    | InotifyConstants.IN_EXCL_UNLINK
)
_LEFT = InotifyConstants.IN_MOVED_FROM | InotifyConstants.IN_DELETE
_NO_MORE = (errno.ENOSPC, errno.ENOMEM)

Hint = Callable[[Origin], None]


class InotifyWatcher:
    """Watches folders of roots and calls `on_hint` with paths, "" for a whole root."""

    def __init__(self, on_hint: Hint) -> None:
        """Start with no root.

        Raises:
            OSError: the system gives no more inotify instances.
        """
        self.overflows = 0
        self._on_hint = on_hint
        self._roots: dict[str, _Folders] = {}
        self._queue = _Queue(self._overflowed)
        self._queue.start()

    def add(self, root: Root) -> None:
        """Watch a root's own folder, anew if it was watched; those below follow as they are entered.

        Raises:
            OSError: it cannot be watched.
        """
        self.remove(root.name)
        folders = _Folders(root, self._queue, self._on_hint)
        folders.watch("")
        self._roots[root.name] = folders
        trouble = folders.refused.get("")
        if trouble:
            raise OSError(trouble, os.strerror(trouble))

    def remove(self, name: str) -> None:
        """Stop watching a root."""
        folders = self._roots.pop(name, None)
        if folders:
            folders.keep_only("", ())

    def enter(self, folder: Origin) -> None:
        """Watch a folder that is about to be listed."""
        if folder.root in self._roots:
            self._roots[folder.root].watch(folder.path)

    def prune(self, top: Origin, listed: Collection[str]) -> None:
        """Stop watching what is below a folder and was not listed by a walk of it."""
        if top.root in self._roots:
            self._roots[top.root].keep_only(top.path, listed)

    def alive(self) -> bool:
        """Whether events of any root can still come."""
        return self._queue.is_alive() and self._queue.is_open()

    def sound(self, name: str) -> bool:
        """Whether the folder that stands at a root's path is the one that is watched."""
        return name in self._roots and self._roots[name].is_sound()

    def count(self, name: str) -> int:
        """Count the watched folders of a root."""
        return len(self._roots[name].by_path) if name in self._roots else 0

    def unwatched(self, name: str) -> tuple[str, ...]:
        """Return the topmost folders of a root that the system refused to watch."""
        refused = sorted(self._roots[name].refused) if name in self._roots else []
        topmost: list[str] = []
        for path in refused:
            if not topmost or not (topmost[-1] == "" or path.startswith(topmost[-1] + "/")):
                topmost.append(path)
        return tuple(topmost)

    def close(self) -> None:
        """Stop all."""
        self._queue.stop()
        self._queue.join(5)

    def _overflowed(self) -> None:
        self.overflows += 1
        for name in list(self._roots):
            self._on_hint(Origin(name, ""))


class _Queue(InotifyFD):
    """The thread that reads inotify's events, telling of an overflow instead of only logging it."""

    def __init__(self, on_overflow: Callable[[], None]) -> None:
        super().__init__()
        self._on_overflow = on_overflow

    def handle_event(self, event: InotifyEvent) -> None:
        if event.is_queue_overflow:
            self._on_overflow()
        else:
            super().handle_event(event)

    def is_open(self) -> bool:
        """Whether the descriptor is still that of an inotify queue: a closed one would be read for ever without a word."""
        try:
            return os.readlink(f"/proc/self/fd/{self._inotify_fd}").endswith("inotify")
        except OSError:
            return False

    def ask(self, path: bytes) -> tuple[WatchDescriptor, int]:
        """Watch a folder in the kernel alone; return its descriptor, or -1 and the error number."""
        descriptor = inotify_c.inotify_add_watch(self._inotify_fd, path, _MASK)
        return descriptor, ctypes.get_errno() if descriptor == -1 else 0


class _Folders(inotify_c.WatchCallback):
    """The watched folders of one root, by path and by descriptor. The lock is taken before the queue's own."""

    def __init__(self, root: Root, queue: _Queue, on_hint: Hint) -> None:
        self.by_path: dict[str, WatchDescriptor] = {}
        self.refused: dict[str, int] = {}
        """Folders that cannot be watched, with the error number."""
        self._by_descriptor: dict[WatchDescriptor, str] = {}
        self._name, self._top = root.name, root.path
        self._queue = queue
        self._on_hint = on_hint
        self._id = CallbackId(id(self))
        self._lock = threading.Lock()

    # In the writer's thread

    def watch(self, path: str) -> None:
        """Watch a folder; one that was replaced since gets a new watch, any other keeps the one it has."""
        with self._lock:
            descriptor, trouble = self._queue.ask(self._full(path))
            if trouble:
                self._drop([path])
                if trouble in _NO_MORE or not path:
                    self.refused[path] = trouble
                return
            self.refused.pop(path, None)
            if self.by_path.get(path) == descriptor:
                return
            self._drop([path, *([self._by_descriptor[descriptor]] if descriptor in self._by_descriptor else [])])
            try:
                descriptor = self._queue.add_callback(self._full(path), _MASK, self, self._id)
            except OSError:
                return  # Gone again already; the folder above tells of what comes in its place.
            self.by_path[path], self._by_descriptor[descriptor] = descriptor, path

    def keep_only(self, top: str, listed: Collection[str]) -> None:
        """Let go of the folders below `top` that are not among the listed ones."""
        with self._lock:
            below = [path for path in (*self.by_path, *self.refused) if not top or path == top or path.startswith(top + "/")]
            kept = set(listed)
            gone = [path for path in below if path not in kept]
            self._drop(gone)
            for path in gone:
                self.refused.pop(path, None)

    def is_sound(self) -> bool:
        with self._lock:
            descriptor, _ = self._queue.ask(self._full(""))
            return descriptor == self.by_path.get("")

    # In the queue's thread

    def on_event(self, event: InotifyEvent) -> None:
        with self._lock:
            folder = self._by_descriptor.get(event.wd)
            if folder is None:
                return
            path = os.path.join(folder, os.fsdecode(event.name)) if event.name else folder
            if event.mask & _LEFT and event.mask & InotifyConstants.IN_ISDIR:
                self._drop([known for known in self.by_path if known == path or known.startswith(path + "/")])
        self._on_hint(Origin(self._name, path))

    def on_watch_deleted(self, wd: WatchDescriptor) -> None:
        with self._lock:
            path = self._by_descriptor.pop(wd, None)
            if path is None:
                return
            if self.by_path.get(path) == wd:
                del self.by_path[path]
        self._on_hint(Origin(self._name, path))

    def on_queue_overflow(self) -> None:
        """Is told by `_Queue` already, once for all roots."""

    def _drop(self, paths: Collection[str]) -> None:
        descriptors = [self.by_path.pop(path) for path in dict.fromkeys(paths) if path in self.by_path]
        for descriptor in descriptors:
            self._by_descriptor.pop(descriptor, None)
        with suppress(OSError):  # Of a queue that was closed: nothing is watched any more.
            self._queue.remove_callbacks([(descriptor, self._id) for descriptor in descriptors])

    def _full(self, path: str) -> bytes:
        return os.fsencode(os.path.join(self._top, path) if path else self._top)
