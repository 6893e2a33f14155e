"""The documents that the index would make of one transcript file, for commands on one file."""

from __future__ import annotations

import os
import tempfile
import time
from contextlib import closing
from pathlib import Path

from anchord.core.types import Document, FileContent, Root, RootedPath
from anchord.errors import UsageError
from anchord.sources.conversations.archive.writer import ArchiveWriter
from anchord.sources.conversations.exchange_document import decode_exchange
from anchord.sources.conversations.formats.registry import (
    HEAD_BYTES,
    detect_format,
    has_prose_suffix,
)
from anchord.sources.conversations.ingest import ConversationIngester, IngestOptions
from anchord.sources.conversations.reader_process import ReaderProcess, WholeReads
from anchord.sources.files.folder_files import MAX_FILE_BYTES, FolderFiles

_ZIP_MAGIC = b"PK\x03\x04"


def holds_conversations(file: str) -> bool:
    """Return whether a file is a transcript that only a root of conversations would read.

    A text file (such as .md) is a document here, even if it is a plain-text transcript.

    Raises:
        OSError: The file cannot be read.
    """
    with open(file, "rb") as stream:
        head = stream.read(HEAD_BYTES)
    if head.startswith(_ZIP_MAGIC):
        return True
    is_transcript = detect_format(head, file.removesuffix(".zst")) is not None
    return is_transcript and not has_prose_suffix(file)


def preview_exchanges(file: str, root_name: str) -> list[tuple[RootedPath, Document]]:
    """Read a transcript file and return its exchanges, in session order.

    Nothing is indexed; a temporary archive is written and deleted.

    Args:
        file: Path of the file.
        root_name: The root name in the exchanges' paths.

    Raises:
        UsageError: The file is no transcript, or is broken.
    """
    folder, name = os.path.split(os.path.realpath(file))
    roots = {root_name: Root(name=root_name, path=folder, kind="conversations")}
    files = FolderFiles(roots, (), MAX_FILE_BYTES)
    with (
        tempfile.TemporaryDirectory() as archive_folder,
        closing(ArchiveWriter(Path(archive_folder) / "archive.sqlite")) as archive,
        closing(ReaderProcess()) as reader_process,
    ):
        ingester = ConversationIngester(
            files,
            archive,
            time.time_ns,
            roots,
            IngestOptions(),
        )
        ingester.whole_reads = WholeReads(reader_process)
        result = ingester.ingest(RootedPath(root_name, name))
        if result.problem and not result.problem.is_partial:
            raise UsageError(
                f"{file} was not read as a conversation: {result.problem.reason}",
                "`anchord discover` lists the conversations on this machine",
            )
        contents = [(origin, archive.read(origin)) for origin in result.changed_exchanges]
    documents = []
    for origin, content in contents:
        if isinstance(content, FileContent):
            document = decode_exchange(content.data)
            if isinstance(document, Document):
                documents.append((origin, document))
    return documents
