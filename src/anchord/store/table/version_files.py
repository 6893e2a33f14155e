"""Which files the newest version of a local table consists of, read from its manifest.

pylance knows this, too, but costs 0.4 s and 80 MB, and a handle that is open sees what it cached.
Reading the manifest costs some 10 µs a fragment, so the writer can ask before every `sync` returns.

A manifest file ends with the position of its message (8 bytes), a version (4 bytes) and `LANC`. The
message is written as protobuf; the field numbers below are those of `protos/table.proto` of Lance
13. `tests/store/table/test_version_files.py` compares the result with pylance's.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any
from uuid import UUID

DATA_FOLDER = "data"
DELETIONS_FOLDER = "_deletions"
INDEX_FOLDER = "_indices"
VERSIONS_FOLDER = "_versions"

FileSizes = Mapping[str, int | None]
"""Path in the table's folder -> size in bytes, None if the manifest does not say it."""

_MAGIC = b"LANC"
_FOOTER_BYTES = 16
_MANIFEST_NAME = re.compile(r"(\d+)\.manifest")
_INVERTED_DIGITS = len(str(2**64))
"""Newer Lance names a manifest 2^64 - 1 - version, so that the newest sorts first."""

# Manifest
_FRAGMENTS, _VERSION, _INDEX_SECTION = 2, 3, 6
# DataFragment
_FRAGMENT_ID, _DATA_FILES, _DELETION_FILE = 1, 2, 3
# DataFile
_DATA_PATH, _DATA_BYTES = 1, 6
# DeletionFile
_DELETION_KIND, _READ_VERSION, _DELETION_ID = 1, 2, 3
_DELETION_SUFFIXES = ("arrow", "bin")
# IndexSection, IndexMetadata and IndexFile
_INDICES, _INDEX_UUID, _INDEX_FILES, _INDEX_PATH, _INDEX_BYTES = 1, 1, 10, 1, 2


class ManifestError(ValueError):
    """A manifest is damaged, or none is there."""


def manifest_version(name: str) -> int | None:
    """Return the version of a manifest, by the name of its file; None for another file."""
    match = _MANIFEST_NAME.fullmatch(name)
    if not match:
        return None
    number = int(match[1])
    return 2**64 - 1 - number if len(match[1]) == _INVERTED_DIGITS else number


def newest_manifest(names: Iterable[str]) -> str | None:
    """Return the file name of the newest version among the names in `_versions`, None if none."""
    versions = {version: name for name in names if (version := manifest_version(name)) is not None}
    return versions[max(versions)] if versions else None


def read_version_files(table: Path) -> FileSizes:
    """Return the files of the newest version of a table, its manifest included.

    Args:
        table: The table's folder.

    Raises:
        ManifestError: The newest manifest is damaged, or there is none.
        OSError: It cannot be read.
    """
    name = newest_manifest(os.listdir(table / VERSIONS_FOLDER))
    if name is None:
        raise ManifestError("the table has no version")
    manifest = f"{VERSIONS_FOLDER}/{name}"
    content = (table / manifest).read_bytes()
    return {manifest: len(content), **parse_manifest(content)}


def delete_damaged_versions(table: Path) -> list[str]:
    """Delete the manifests of older versions that cannot be read.

    Lance deletes no old version at all beside one that it cannot read. The newest is left as it is.

    Args:
        table: The folder of a local table.

    Returns:
        The names of the deleted files.

    Raises:
        OSError: A file cannot be read or deleted.
    """
    folder = table / VERSIONS_FOLDER
    names = os.listdir(folder)
    newest = newest_manifest(names)
    if newest is None or not _can_be_read(folder / newest):
        return []  # A newer Lance may write another form.
    deleted = []
    for name in names:
        if manifest_version(name) is None or name == newest:
            continue
        with suppress(FileNotFoundError):
            if not _can_be_read(folder / name):
                (folder / name).unlink()
                deleted.append(name)
    return deleted


def _can_be_read(manifest: Path) -> bool:
    try:
        parse_manifest(manifest.read_bytes())
    except ManifestError:
        return False
    return True


def parse_manifest(content: bytes) -> FileSizes:
    """Return the files that a manifest refers to.

    Args:
        content: The bytes of a manifest file.

    Returns:
        Data files, deletion files and files of indices.

    Raises:
        ManifestError: These are not the bytes of a whole manifest.
    """
    if len(content) < _FOOTER_BYTES or not content.endswith(_MAGIC):
        raise ManifestError("the manifest was overwritten or cut")
    try:
        return dict(_files_of(content))
    except (IndexError, KeyError, TypeError, AttributeError, ValueError) as error:
        raise ManifestError("the manifest was overwritten") from error


def _files_of(content: bytes) -> Iterator[tuple[str, int | None]]:
    position = int.from_bytes(content[-_FOOTER_BYTES : -_FOOTER_BYTES + 8], "little")
    fields = list(_fields(_message_at(content, position)))
    if _VERSION not in dict(fields):
        raise ValueError("no version: these are other bytes")
    for number, value in fields:
        if number == _FRAGMENTS:
            yield from _fragment_files(value)
        elif number == _INDEX_SECTION:
            for _, index in _fields(_message_at(content, value)):
                yield from _index_files(index)


def _fragment_files(fragment: bytes) -> Iterator[tuple[str, int | None]]:
    fields = list(_fields(fragment))
    fragment_id = dict(fields).get(_FRAGMENT_ID, 0)
    for number, value in fields:
        if number == _DATA_FILES:
            file = dict(_fields(value))
            path = file[_DATA_PATH].decode("utf-8")
            yield f"{DATA_FOLDER}/{path}", file.get(_DATA_BYTES) or None
        elif number == _DELETION_FILE:
            file = dict(_fields(value))
            suffix = _DELETION_SUFFIXES[file.get(_DELETION_KIND, 0)]
            name = f"{fragment_id}-{file.get(_READ_VERSION, 0)}-{file.get(_DELETION_ID, 0)}"
            yield f"{DELETIONS_FOLDER}/{name}.{suffix}", None


def _index_files(index: bytes) -> Iterator[tuple[str, int | None]]:
    fields = list(_fields(index))
    uuid = UUID(bytes=dict(_fields(dict(fields)[_INDEX_UUID]))[1])
    folder = f"{INDEX_FOLDER}/{uuid}/"
    for file in [dict(_fields(value)) for number, value in fields if number == _INDEX_FILES]:
        path = file[_INDEX_PATH].decode("utf-8")
        yield folder + path, file.get(_INDEX_BYTES) or None


def _message_at(content: bytes, position: int) -> bytes:
    """Return the message at a position: its length in four bytes, then itself."""
    begin = position + 4
    end = begin + int.from_bytes(content[position:begin], "little")
    if end > len(content):
        raise IndexError("the message ends after the file")
    return content[begin:end]


def _fields(message: bytes) -> Iterator[tuple[int, Any]]:
    """Yield the number and the value of each field: an int, or the bytes of anything else.

    Source: https://protobuf.dev/programming-guides/encoding/
    """
    position = 0
    while position < len(message):
        key, position = _varint(message, position)
        number, kind = key >> 3, key & 7
        if kind == 0:
            value, position = _varint(message, position)
            yield number, value
            continue
        if kind == 2:
            size, position = _varint(message, position)
        else:
            size = {1: 8, 5: 4}[kind]
        if position + size > len(message):
            raise IndexError("the field ends after its message")
        yield number, message[position : position + size]
        position += size


def _varint(message: bytes, position: int) -> tuple[int, int]:
    """Return a number of seven bits a byte, the lowest first, and the position after it."""
    value = shift = 0
    while True:
        byte = message[position]
        position += 1
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            return value, position
        shift += 7
