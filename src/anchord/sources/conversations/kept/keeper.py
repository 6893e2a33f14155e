"""Keeps the bytes of transcript files as they are read; a failure never stops their reading."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from functools import partial

from anchord.core.types import Fingerprint, Root, RootedPath
from anchord.errors import StoreDamagedError, StoreError, StoreUnavailableError
from anchord.sources.conversations.containers import is_zip
from anchord.sources.conversations.kept.store import KeptTotals, Place
from anchord.sources.conversations.kept.writer import (
    ChangedMeanwhileError,
    KeptTranscriptsWriter,
)
from anchord.sources.conversations.whole_read import SQLITE_MAGIC
from anchord.sources.files.folder_files import FolderFiles

MAX_ZIP_BYTES = 64 << 20
"""A larger export is the user's own download, and no assistant deletes it."""
MAX_FILE_BYTES = 2 << 30
_AT_ONCE_BYTES = 16 << 20
"""A file with more that is new is kept when the writer has nothing else to do."""
_HEAD_BYTES = 64
_LEAST_PAUSE_S = 60.0
_LONGEST_PAUSE_S = 3_600.0


@dataclass(slots=True)
class TranscriptKeeper:
    """Decides what is kept, and stores it. Only the writer thread may use it."""

    files: FolderFiles
    roots: Mapping[str, Root]
    store: KeptTranscriptsWriter | None
    """None where it cannot be opened."""
    clock: Callable[[], int]
    """Returns the time in nanoseconds since the epoch."""
    problem: str = ""
    """Why a file that is due was not kept; "" if none failed."""
    due: dict[RootedPath, bool] = field(default_factory=dict)
    """Files to keep when there is time, in their order; whether each contains what was forgotten,
    so that it is erased instead."""
    damage: StoreDamagedError | None = None
    """Set when the store turns out damaged: then nothing is kept until the next start."""
    on_damage: Callable[[StoreDamagedError], object] = lambda _: None
    """Called with the first such error."""
    _is_damage_raised: bool = False
    _failed: set[RootedPath] = field(default_factory=set)
    _pause_s: float = 0.0
    _paused_until: float = 0.0
    """By the monotonic clock."""
    _has_erased: bool = False
    """Whether erased bytes may still be in the store's log."""

    def keep(
        self, origin: RootedPath, *, has_forgotten: bool = False, at_once: bool = True
    ) -> None:
        """Store the present bytes of a transcript file, if its root keeps them.

        Costs what is new. Files of a folder that is one transcript are kept one by one. SQLite
        databases, zips over 64 MB and files over 2 GB are not kept. An error does not raise: it is
        in `problem`, and the file stays `due`. After an error that can pass, the next files only
        become due: for a minute, and for up to an hour if it does not pass.

        Args:
            origin: The file or folder.
            has_forgotten: Whether it contains what `forget` deleted: then none of it is kept.
            at_once: Whether to leave a file with over 16 MB of news for later.
        """
        root = self.roots.get(origin.root)
        if self.store is None or root is None or not root.keep_raw or self.damage:
            return
        members = self.files.list_files_below(origin)
        origins = [RootedPath(origin.root, f"{origin.path}/{name}") for name, _ in members]
        origins = origins or [origin]
        if has_forgotten and not self.is_paused:
            self._try(origins, has_forgotten, partial(self._refuse, self.store, origins))
            return
        for each in origins:
            if self.is_paused:
                self._queue([each], has_forgotten)
            else:
                keep_file = partial(self._keep_file, self.store, each, at_once=at_once)
                self._try([each], has_forgotten, keep_file)

    @property
    def is_paused(self) -> bool:
        """Whether an error that can pass was met a short time ago."""
        return time.monotonic() < self._paused_until

    def retry_now(self) -> None:
        """End the pause after an error."""
        self._paused_until = 0.0

    def check_place(self) -> None:
        """Notice that the file was removed while nothing had to be kept.

        Raises:
            StoreDamagedError: It was. Raised once: a restart begins a new one.
        """
        if self.store and not self.damage:
            self._try((), False, lambda: None)
        self._raise_damage()

    def _raise_damage(self) -> None:
        if self.damage and not self._is_damage_raised:
            self._is_damage_raised = True
            raise self.damage

    def keep_next(self) -> bool:
        """Keep the next file that is due; return whether another one can be kept now.

        Raises:
            StoreDamagedError: The store is damaged. Raised once: a restart repairs it.
        """
        self._raise_damage()
        if self.due and not self.is_paused and not self.damage:
            origin = next(iter(self.due))
            has_forgotten = self.due.pop(origin)
            self._failed.discard(origin)
            self.keep(origin, has_forgotten=has_forgotten, at_once=False)
            if self._failed.isdisjoint(self.due):
                self.problem = ""
        return bool(self.due) and not self.is_paused and not self.damage

    def close(self) -> None:
        """Close the store; nothing is kept afterwards."""
        store, self.store = self.store, None
        if store:
            store.close()

    def totals(self) -> KeptTotals | None:
        """Return what is kept; None if that cannot be read."""
        try:
            return self.store.totals() if self.store else None
        except StoreError:
            return None

    def place_of(self, origin: RootedPath) -> Place:
        """Return where a file is on disk."""
        return Place(self.files.root_path(origin), self.files.path_on_disk(origin))

    def _queue(self, origins: Iterable[RootedPath], has_forgotten: bool) -> None:  # noqa: FBT001
        for origin in origins:
            self.due[origin] = has_forgotten or self.due.get(origin, False)

    def _try(
        self,
        origins: Sequence[RootedPath],
        has_forgotten: bool,  # noqa: FBT001 - private
        step: Callable[[], None],
    ) -> None:
        """Do one step for some files; they stay due if it fails."""
        try:
            if self.store:
                self.store.require_in_place()
            step()
        except StoreError as error:
            self.problem = error.message
            self._failed.update(origins)
            self._queue(origins, has_forgotten)
            if isinstance(error, StoreUnavailableError):
                self._pause_s = min(max(2 * self._pause_s, _LEAST_PAUSE_S), _LONGEST_PAUSE_S)
                self._paused_until = time.monotonic() + self._pause_s
            if isinstance(error, StoreDamagedError):
                self.damage = error
                self.on_damage(error)
        else:
            self._pause_s = 0.0

    def _refuse(self, store: KeptTranscriptsWriter, origins: Iterable[RootedPath]) -> None:
        """Erase what is kept of files, once, and keep nothing of them from now on."""
        places = [self.place_of(each) for each in origins]
        if unrefused := [each for each in places if not store.is_refused(each)]:
            self._has_erased = True
            store.refuse(unrefused)
        if self._has_erased:
            store.truncate_wal()
            self._has_erased = False

    def _keep_file(
        self, store: KeptTranscriptsWriter, origin: RootedPath, *, at_once: bool
    ) -> None:
        place = self.place_of(origin)
        fingerprint = self.files.fingerprint(origin)
        if not isinstance(fingerprint, Fingerprint) or not fingerprint.size:
            return
        if store.is_refused(place) or store.fingerprint(place) == fingerprint:
            return
        # OSError: it is gone or cannot be read; nor can its conversation. ChangedMeanwhileError:
        # its conversation was read too early as well: it is read again.
        with suppress(OSError, ChangedMeanwhileError), self.files.open(origin) as stream:
            if not _is_kept_kind(stream.read(_HEAD_BYTES), fingerprint.size):
                store.note(place, fingerprint)
                return
            new_bytes = store.count_new_bytes(place, stream, fingerprint.size)
            if at_once and new_bytes > _AT_ONCE_BYTES:
                self._queue([origin], has_forgotten=False)
                return
            store.require_space(new_bytes)
            store.save(place, fingerprint, stream, self.clock())


def _is_kept_kind(head: bytes, size: int) -> bool:
    if head.startswith(SQLITE_MAGIC) or size > MAX_FILE_BYTES:
        return False
    return not is_zip(head) or size <= MAX_ZIP_BYTES
