"""Watches folders on Linux: one inotify watch for each folder that a walk enters.

Of watchdog only the thread that reads the inotify queue is used. What watchdog builds on top delays
events by half a second after a file is moved out, watches ignored folders, reports no overflow, and
keeps the watches of a folder that was moved out. Hints need none of that:

- a folder is watched right before it is listed (`watch_folder`), so that no change is missed;
- each path that an event names becomes a hint; a folder that was moved away is no longer watched;
- an overflow becomes a hint for every root;
- folders that the kernel refuses to watch are recorded (`refused`), so that they can be polled.

Nothing here raises into watchdog's thread: an exception would end it.
"""

from __future__ import annotations

import ctypes
import errno
import os
import threading
from collections.abc import Callable, Collection
from contextlib import suppress

from watchdog.observers import inotify_c
from watchdog.observers.inotify_c import (
    CallbackId,
    InotifyConstants,
    InotifyEvent,
    InotifyFD,
    Mask,
    WatchDescriptor,
)

from anchord.core.types import Root, RootedPath

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
_MOVED_OR_DELETED = InotifyConstants.IN_MOVED_FROM | InotifyConstants.IN_DELETE
_LIMIT_ERRORS = (errno.ENOSPC, errno.ENOMEM)
"""The kernel's errors when a user's limit of watches is reached."""
_JOIN_TIMEOUT_S = 5

HintCallback = Callable[[RootedPath], None]
"""Called from the inotify thread with a path that may have changed; "" is the whole root."""


class InotifyWatcher:
    """Implements `Watcher` with one inotify queue for all roots."""

    def __init__(self, on_hint: HintCallback) -> None:
        """Start the thread that reads the queue; no root is watched yet.

        Args:
            on_hint: Called from that thread with each path that may have changed.

        Raises:
            OSError: The limit of inotify instances is reached.
        """
        self.overflow_count = 0
        self._on_hint = on_hint
        self._roots: dict[str, _WatchedFolders] = {}
        self._inotify_thread = _InotifyThread(self._on_overflow)
        self._inotify_thread.start()

    def add(self, root: Root) -> None:
        """Watch a root's own folder; `watch_folder` watches those below as a walk enters them.

        Raises:
            OSError: It cannot be watched.
        """
        self.remove(root.name)
        folders = _WatchedFolders(root, self._inotify_thread, self._on_hint)
        folders.watch("")
        self._roots[root.name] = folders
        error_number = folders.refused.get("")
        if error_number:
            raise OSError(error_number, os.strerror(error_number))

    def remove(self, root_name: str) -> None:
        """Stop watching a root. Does nothing if it is not watched."""
        folders = self._roots.pop(root_name, None)
        if folders:
            folders.keep_only("", ())

    def watch_folder(self, folder: RootedPath) -> None:
        """Watch a folder of a watched root. Call it before the folder is listed."""
        if folder.root in self._roots:
            self._roots[folder.root].watch(folder.path)

    def unwatch_unlisted_folders(
        self, top_folder: RootedPath, listed_folders: Collection[str]
    ) -> None:
        """Stop watching folders below a folder that a walk of it did not list.

        Args:
            top_folder: The folder that was walked.
            listed_folders: Paths relative to the root of all folders that the walk listed.
        """
        if top_folder.root in self._roots:
            self._roots[top_folder.root].keep_only(top_folder.path, listed_folders)

    def is_alive(self) -> bool:
        """Return whether the thread runs and its descriptor is open."""
        return self._inotify_thread.is_alive() and self._inotify_thread.is_open()

    def is_watching_current_folder(self, root_name: str) -> bool:
        """Return whether the folder that is at a root's path now is the one that is watched."""
        return root_name in self._roots and self._roots[root_name].is_top_watched()

    def watch_count(self, root_name: str) -> int:
        """Return how many folders of a root are watched; each uses one inotify watch."""
        return len(self._roots[root_name].by_path) if root_name in self._roots else 0

    def refused_folders(self, root_name: str) -> tuple[str, ...]:
        """Return the topmost folders of a root that the kernel refused to watch.

        Returns:
            Paths relative to the root.
        """
        refused = sorted(self._roots[root_name].refused) if root_name in self._roots else []
        topmost: list[str] = []
        for path in refused:
            # Sorted, a folder comes before those below it.
            if not topmost or not _is_at_or_below(path, topmost[-1]):
                topmost.append(path)
        return tuple(topmost)

    def close(self) -> None:
        """Stop watching; waits up to 5 s for the thread."""
        self._inotify_thread.stop()
        self._inotify_thread.join(_JOIN_TIMEOUT_S)

    def _on_overflow(self) -> None:
        self.overflow_count += 1
        for name in list(self._roots):
            self._on_hint(RootedPath(name, ""))


class _InotifyThread(InotifyFD):
    """watchdog's thread that reads inotify events, with a callback for an overflow."""

    def __init__(self, on_overflow: Callable[[], None]) -> None:
        super().__init__()
        self._on_overflow = on_overflow

    def handle_event(self, event: InotifyEvent) -> None:
        if event.is_queue_overflow:
            self._on_overflow()
        else:
            super().handle_event(event)

    def is_open(self) -> bool:
        """Return whether the descriptor is still an inotify queue's.

        The thread would wait on a closed descriptor forever without an error.
        """
        try:
            return os.readlink(f"/proc/self/fd/{self._inotify_fd}").endswith("inotify")
        except OSError:
            return False

    def add_kernel_watch(self, path: bytes) -> tuple[WatchDescriptor, int]:
        """Watch a folder in the kernel, without a callback.

        Returns:
            The watch's descriptor and 0; or -1 and the error number. A folder that is watched
            already keeps its descriptor.
        """
        descriptor = inotify_c.inotify_add_watch(self._inotify_fd, path, _MASK)
        error_number = ctypes.get_errno() if descriptor == -1 else 0
        return descriptor, error_number


class _WatchedFolders(inotify_c.WatchCallback):
    """The watched folders of one root. Its lock must be taken before the queue's own."""

    def __init__(self, root: Root, queue: _InotifyThread, on_hint: HintCallback) -> None:
        self.by_path: dict[str, WatchDescriptor] = {}
        """Path relative to the root -> descriptor."""
        self.refused: dict[str, int] = {}
        """Path of a folder that cannot be watched -> error number."""
        self._by_descriptor: dict[WatchDescriptor, str] = {}
        self._root_name, self._root_path = root.name, root.path
        self._queue = queue
        self._on_hint = on_hint
        self._id = CallbackId(id(self))
        self._lock = threading.Lock()

    # In the writer's thread

    def watch(self, path: str) -> None:
        """Watch a folder. One that was replaced gets a new watch; any other keeps its own."""
        with self._lock:
            descriptor, error_number = self._queue.add_kernel_watch(self._absolute_path(path))
            if error_number:
                self._unwatch([path])
                # Another error means that the folder is gone: then there is nothing to poll.
                if error_number in _LIMIT_ERRORS or not path:
                    self.refused[path] = error_number
                return
            self.refused.pop(path, None)
            if self.by_path.get(path) == descriptor:
                return
            # The path's folder was replaced, or the folder was moved here from another path.
            outdated = [path]
            if descriptor in self._by_descriptor:
                outdated.append(self._by_descriptor[descriptor])
            self._unwatch(outdated)
            try:
                descriptor = self._queue.add_callback(
                    self._absolute_path(path), _MASK, self, self._id
                )
            except OSError:
                return  # It is gone again: an event of the folder above names what replaces it.
            self.by_path[path] = descriptor
            self._by_descriptor[descriptor] = path

    def keep_only(self, top: str, listed: Collection[str]) -> None:
        """Stop watching the folders at and below `top` that are not listed."""
        kept = set(listed)
        with self._lock:
            known = (*self.by_path, *self.refused)
            gone = [path for path in known if _is_at_or_below(path, top) and path not in kept]
            self._unwatch(gone)
            for path in gone:
                self.refused.pop(path, None)

    def is_top_watched(self) -> bool:
        """Return whether the folder at the root's path is the one that is watched.

        If it is not, the kernel has a watch of the new folder now; `add` replaces it.
        """
        with self._lock:
            descriptor, _ = self._queue.add_kernel_watch(self._absolute_path(""))
            return descriptor == self.by_path.get("")

    # In the queue's thread

    def on_event(self, event: InotifyEvent) -> None:
        with self._lock:
            folder = self._by_descriptor.get(event.wd)
            if folder is None:
                return
            path = os.path.join(folder, os.fsdecode(event.name)) if event.name else folder
            is_folder = event.mask & InotifyConstants.IN_ISDIR
            if is_folder and event.mask & _MOVED_OR_DELETED:
                self._unwatch([each for each in self.by_path if _is_at_or_below(each, path)])
        self._on_hint(RootedPath(self._root_name, path))

    def on_watch_deleted(self, wd: WatchDescriptor) -> None:
        with self._lock:
            path = self._by_descriptor.pop(wd, None)
            if path is None:
                return
            if self.by_path.get(path) == wd:
                del self.by_path[path]
        self._on_hint(RootedPath(self._root_name, path))

    def on_queue_overflow(self) -> None:
        """Do nothing: `_InotifyThread` reports an overflow once for all roots."""

    def _unwatch(self, paths: Collection[str]) -> None:
        descriptors = []
        for path in paths:
            descriptor = self.by_path.pop(path, None)
            if descriptor is not None:
                descriptors.append(descriptor)
                self._by_descriptor.pop(descriptor, None)
        with suppress(OSError):  # The queue is closed: nothing is watched any more.
            self._queue.remove_callbacks([(descriptor, self._id) for descriptor in descriptors])

    def _absolute_path(self, path: str) -> bytes:
        return os.fsencode(os.path.join(self._root_path, path) if path else self._root_path)


def _is_at_or_below(path: str, folder: str) -> bool:
    """Return whether a path is a folder's or below it; "" is the root, which contains all."""
    return not folder or path == folder or path.startswith(folder + "/")
