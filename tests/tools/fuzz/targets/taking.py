"""Files of a conversations root on a real disk, ingested into a real archive as the writer does."""

from __future__ import annotations

import os
import tempfile
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass
from pathlib import Path

from tools.fuzz.laws import hold

from anchord.core.types import FileContent, IngestResult, Root, RootedPath
from anchord.sources.conversations.archive.writer import ArchiveWriter
from anchord.sources.conversations.ingest import ConversationIngester, IngestOptions
from anchord.sources.files.folder_files import MAX_FILE_BYTES, FolderFiles

_ROOT = "talks"
_MEMORY = "/dev/shm"  # noqa: S108 - a file system in memory, where there is one
_FAILED = "cannot be read as conversations"


@dataclass(frozen=True, slots=True)
class Taking:
    """One transcript file, its ingester, and the archive."""

    folder: Path
    path: str
    archive: ArchiveWriter
    conversations: ConversationIngester

    def take(self, data: bytes) -> IngestResult:
        """Write the file and ingest it."""
        file = self.folder / self.path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(data)
        return self.again()

    def again(self) -> IngestResult:
        """Ingest the file as it is."""
        taken = self.conversations.ingest(RootedPath(_ROOT, self.path))
        self.conversations.mark_indexed(taken.changed_exchanges)
        return taken

    def archived(self) -> dict[str, bytes]:
        """Return every exchange that is found, by its path."""
        found = [each.path for each in self.archive.list_exchanges(_ROOT)]
        read = {path: self.archive.read(RootedPath(_ROOT, path)) for path in found}
        return {
            path: content.data for path, content in read.items() if isinstance(content, FileContent)
        }


def safe_path(written: str) -> str:
    """Return a path that can be a file below a folder, whatever is written."""
    parts = [
        part[:40] for part in written.replace("\0", "").split("/") if part not in ("", ".", "..")
    ]
    return "/".join(part.encode("utf-8", "replace").decode() for part in parts[:8]) or "file"


@contextmanager
def taking(path: str) -> Iterator[Taking]:
    """Give an empty root and an empty archive."""
    with tempfile.TemporaryDirectory(
        prefix="fuzz-", dir=_MEMORY if os.path.isdir(_MEMORY) else None
    ) as base:
        folder = Path(base) / "talks"
        folder.mkdir()
        roots = {_ROOT: Root(name=_ROOT, path=str(folder), kind="conversations")}
        with closing(ArchiveWriter(Path(base) / "archive.sqlite")) as archive:
            files = FolderFiles(roots, (), MAX_FILE_BYTES)
            yield Taking(
                folder,
                path,
                archive,
                ConversationIngester(files, archive, time.time_ns, roots, IngestOptions()),
            )


def is_sound(taken: IngestResult) -> None:
    """Check that reading did not fail: a file is read fully, partly, or as an ordinary document."""
    failed = taken.problem is not None and taken.problem.reason.startswith(_FAILED)
    hold(not failed, "a plain file does not break its reader", taken.problem)
