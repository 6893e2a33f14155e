"""Conversion between core types and the columns of `files`; paths are stored as raw bytes."""

from __future__ import annotations

import os
import struct
import sys
from collections.abc import Sequence
from typing import Any

from anchord.core.types import FileRecord, Fingerprint, Problem, RootedPath

RECORD_COLUMNS = "fingerprint, read_ns, digest, recipe, wanted=applied, problem, partial"
"""The columns of a record, in the order that `record_from_columns` takes them."""
FINGERPRINT_FORMAT = struct.Struct("<qqqQQ")
"""Size, mtime, ctime, inode, device. Packed: some inode numbers exceed SQLite's signed 64 bits."""
PATH_ENCODING = sys.getfilesystemencoding()
"""What `os.fsdecode` uses, for callers that decode hundreds of thousands of paths themselves."""


def record_from_columns(columns: Sequence[Any]) -> FileRecord:
    """Build a record, without its chunks, from the values of `RECORD_COLUMNS`."""
    fingerprint, read_ns, digest, recipe, is_confirmed, problem, is_partial = columns
    return FileRecord(
        fingerprint=unpack_fingerprint(fingerprint),
        read_ns=read_ns,
        content_digest=digest,
        recipe_digest=recipe,
        is_confirmed=bool(is_confirmed),
        problem=None if problem is None else Problem(problem, bool(is_partial)),
    )


def pack_fingerprint(fingerprint: Fingerprint) -> bytes:
    """Return the stored form of a fingerprint: 40 bytes."""
    return FINGERPRINT_FORMAT.pack(*fingerprint)


def unpack_fingerprint(packed: bytes) -> Fingerprint:
    """Return the fingerprint of its stored form."""
    return Fingerprint._make(FINGERPRINT_FORMAT.unpack(packed))


def key_columns(origin: RootedPath) -> tuple[str, bytes]:
    """Return the columns `root` and `path` of a file."""
    return origin.root, os.fsencode(origin.path)


def rooted_path(root: str, path: bytes) -> RootedPath:
    """Return the file of the columns `root` and `path`."""
    return RootedPath(root, os.fsdecode(path))
