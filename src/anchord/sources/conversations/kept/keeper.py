"""Keeps the bytes of transcript files as they are read; a failure never stops their reading."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from anchord.core.types import NO_FINGERPRINT, Fingerprint, Root, RootedPath
from anchord.errors import StoreDamagedError, StoreError
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
    """Why the last file was not kept; "" if all were."""
    due: dict[RootedPath, None] = field(default_factory=dict)
    """Files to keep when there is time, in their order."""
    is_damaged: bool = False
    on_damage: Callable[[StoreDamagedError], object] = lambda _: None
    """Called when the store turns out damaged: then nothing is kept until the next start."""

    def keep(
        self, origin: RootedPath, *, has_forgotten: bool = False, at_once: bool = True
    ) -> None:
        """Store the present bytes of a transcript file, if its root keeps them.

        Costs what is new. Files of a folder that is one transcript are kept one by one. SQLite
        databases, zips over 64 MB and files over 2 GB are not kept. An error does not raise: it is
        in `problem`, and the file stays `due`.

        Args:
            origin: The file or folder.
            has_forgotten: Whether it contains what `forget` deleted: then none of it is kept.
            at_once: Whether to leave a file with over 16 MB of news for later.
        """
        root = self.roots.get(origin.root)
        if self.store is None or root is None or not root.keep_raw or self.is_damaged:
            return
        members = self.files.list_files_below(origin)
        origins = [RootedPath(origin.root, f"{origin.path}/{name}") for name, _ in members]
        for each in origins or [origin]:
            place = Place(root.path, self.files.path_on_disk(each))
            try:
                if has_forgotten:
                    self.store.refuse(place, NO_FINGERPRINT)
                elif not self.store.is_refused(place):
                    self._keep_file(self.store, each, place, at_once=at_once)
            except StoreError as error:
                self._note(error)
                self.due[each] = None

    def keep_next(self) -> bool:
        """Keep the next file that is due; return whether another one is."""
        if self.due:
            origin = next(iter(self.due))
            del self.due[origin]
            self.problem = ""
            self.keep(origin, at_once=False)
        return bool(self.due) and not self.problem

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

    def _note(self, error: StoreError) -> None:
        self.problem = error.message
        if isinstance(error, StoreDamagedError):
            self.is_damaged = True
            self.on_damage(error)

    def _keep_file(
        self, store: KeptTranscriptsWriter, origin: RootedPath, place: Place, *, at_once: bool
    ) -> None:
        fingerprint = self.files.fingerprint(origin)
        if not isinstance(fingerprint, Fingerprint) or not fingerprint.size:
            return
        try:
            known = store.fingerprint(place)
            if known == fingerprint:
                return
            new_bytes = fingerprint.size - (known.size if known else 0)
            if at_once and abs(new_bytes) > _AT_ONCE_BYTES:
                self.due[origin] = None
                return
            with self.files.open(origin) as stream:
                if _is_kept_kind(stream.read(_HEAD_BYTES), fingerprint.size):
                    stream.seek(0)
                    store.save(place, fingerprint, stream, self.clock())
                else:
                    store.note(place, fingerprint)
            self.problem = ""
        except ChangedMeanwhileError:
            return  # Its conversation was read too early as well: it is read again.
        except OSError:
            return  # It is gone or cannot be read: nor can its conversation.


def _is_kept_kind(head: bytes, size: int) -> bool:
    if head.startswith(SQLITE_MAGIC) or size > MAX_FILE_BYTES:
        return False
    return not is_zip(head) or size <= MAX_ZIP_BYTES
