"""Files of a root of conversations on a real disk, taken into a real archive, as the writer does it."""

from __future__ import annotations

import os
import tempfile
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass
from pathlib import Path

from fuzz.laws import hold

from anchord.adapters.archive_writer import ArchiveWriter
from anchord.adapters.conversations import Conversations, Wanted
from anchord.adapters.files import FolderFiles
from anchord.model import Content, Ingested, Origin, Root
from anchord.rows import MAX_BYTES

_ROOT = "talks"
_MEMORY = "/dev/shm"  # noqa: S108 - a file system in memory, where there is one
_FAILED = "cannot be read as conversations"


@dataclass(frozen=True, slots=True)
class Taking:
    """One file, what takes it in, and the archive of what it told."""

    folder: Path
    path: str
    archive: ArchiveWriter
    conversations: Conversations

    def take(self, data: bytes) -> Ingested:
        """Write the file and take it in."""
        file = self.folder / self.path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(data)
        return self.again()

    def again(self) -> Ingested:
        """Take the file in as it is."""
        taken = self.conversations.take_in(Origin(_ROOT, self.path))
        self.conversations.done(taken.changed)
        return taken

    def told(self) -> dict[str, bytes]:
        """Return every exchange that is found, by its path."""
        found = [each.path for each in self.archive.found(_ROOT)]
        read = {path: self.archive.read(Origin(_ROOT, path)) for path in found}
        return {path: content.data for path, content in read.items() if isinstance(content, Content)}


def safe_path(written: str) -> str:
    """Return a path that can be a file below a folder, whatever is written."""
    parts = [part[:40] for part in written.replace("\0", "").split("/") if part not in ("", ".", "..")]
    return "/".join(part.encode("utf-8", "replace").decode() for part in parts[:8]) or "file"


@contextmanager
def taking(path: str) -> Iterator[Taking]:
    """Give an empty root and an empty archive."""
    with tempfile.TemporaryDirectory(prefix="fuzz-", dir=_MEMORY if os.path.isdir(_MEMORY) else None) as base:
        folder = Path(base) / "talks"
        folder.mkdir()
        roots = {_ROOT: Root(_ROOT, str(folder), "conversations")}
        with closing(ArchiveWriter(Path(base) / "archive.sqlite")) as archive:
            files = FolderFiles(roots, (), MAX_BYTES)
            yield Taking(folder, path, archive, Conversations(files, archive, time.time_ns, roots, Wanted()))


def is_sound(taken: Ingested) -> None:
    """Hold that reading did not break; a file that is read at all is told wholly, partly, or as what it is."""
    failed = taken.problem is not None and taken.problem.reason.startswith(_FAILED)
    hold(not failed, "a plain file does not break its reader", taken.problem)
