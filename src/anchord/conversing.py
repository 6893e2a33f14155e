"""A single file of conversations as the documents that the index would make of it; for commands that look at one file."""

from __future__ import annotations

import os
import tempfile
import time
from contextlib import closing
from pathlib import Path

from anchord.adapters.archive_writer import ArchiveWriter
from anchord.adapters.conversations import Conversations, Wanted
from anchord.adapters.files import FolderFiles
from anchord.errors import UsageError
from anchord.model import Content, Document, Origin, Problem, Root
from anchord.rows import MAX_BYTES
from anchord.sources.archived import load
from anchord.sources.conversations import HEAD_BYTES, is_prose, recognise


def holds_conversations(file: str) -> bool:
    """Whether a file is one that only a root of conversations reads. A text is a document: `type: transcript` or not."""
    with open(file, "rb") as stream:
        head = stream.read(HEAD_BYTES)
    return head.startswith(b"PK\x03\x04") or (recognise(head, file.removesuffix(".zst")) is not None and not is_prose(file))


def exchanges_of(file: str, root: str) -> list[tuple[Origin, Document]]:
    """Read a file; return its exchanges in their order, named as in a root of this name.

    Raises:
        UsageError: it cannot be read.
    """
    folder, name = os.path.split(os.path.realpath(file))
    roots = {root: Root(root, folder, "conversations")}
    with tempfile.TemporaryDirectory() as kept, closing(ArchiveWriter(Path(kept) / "archive.sqlite")) as archive:
        conversations = Conversations(FolderFiles(roots, (), MAX_BYTES), archive, time.time_ns, roots, Wanted())
        taken = conversations.take_in(Origin(root, name))
        if taken.problem and not taken.problem.partial:
            raise UsageError(f"{file}: {taken.problem.reason}", "`anchord discover` lists what is read")
        read = [(origin, archive.read(origin)) for origin in taken.changed]
    loaded = [(origin, load(content.data)) for origin, content in read if isinstance(content, Content)]
    return [(origin, document) for origin, document in loaded if not isinstance(document, Problem)]
