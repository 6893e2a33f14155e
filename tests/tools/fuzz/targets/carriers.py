"""Packed transcripts: archives, compressed files and databases, with damaged bytes.

An input's first line is how it is packed (`raw`, `zip`, `zst`, `rows`) with `,place:value` for each byte of that to be changed,
and the path; the rest are the members of an archive, the rows of a database, or the file.
"""

from __future__ import annotations

import io
import zipfile
from collections.abc import Sequence
from contextlib import closing, suppress

import zstandard
from tools.fuzz.inputs import headed, members, number, pick, word
from tools.fuzz.laws import hold
from tools.fuzz.targets.carriers_in_memory import database
from tools.fuzz.targets.taking import safe_path, taking

from anchord.sources.conversations.containers import TooLargeError, TranscriptFolder, zip_as_folder

_MOST_OUT = 1 << 24
_REFUSED = (OSError, EOFError, ValueError, zipfile.BadZipFile, NotImplementedError)


def carriers(data: bytes) -> None:
    """Take a packed file in: it is read, in part or not at all, and says so; nothing lies outside, and no bomb goes off."""
    head, body = headed(data)
    words = head.split(" ", 1)
    how, *changes = word(words, 0).split(",")
    packed = _changed(_packed(pick(("raw", "zip", "zst", "rows"), how), body), changes)
    if packed.startswith(b"PK"):
        _members(packed)
    with taking(safe_path(word(words, 1))) as taken:
        seen = taken.take(packed)
        hold(seen.problem is None or seen.problem.reason, "a problem has its reason", seen)
        archived = taken.archived()
        outside = [
            file
            for file in taken.folder.parent.rglob("*")
            if file.is_file() and file.parent != taken.folder.parent
        ]
        hold(len(outside) == 1, "nothing is unpacked to the disk", outside)
        again = taken.again()
        hold(
            again.problem == seen.problem and taken.archived() == archived,
            "a carrier tells the same twice",
            seen,
            again,
        )


def _packed(how: str, body: bytes) -> bytes:
    if how == "zst":
        return zstandard.compress(body)
    if how == "rows":
        with closing(database(body)) as connection:
            return connection.serialize() if connection.total_changes else b""
    if how == "raw":
        return body
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in members(body).items():
            with suppress(ValueError):  # A name that an archive cannot contain.
                archive.writestr(
                    zipfile.ZipInfo(name.encode("utf-8", "replace").decode()[:200] or "x"), content
                )
    return packed.getvalue()


def _changed(packed: bytes, changes: Sequence[str]) -> bytes:
    """Change bytes: `9:0` makes the tenth a zero, `-20:255` one near the end, where an archive has its index."""
    made = bytearray(packed)
    for change in changes if made else ():
        place, _, value = change.partition(":")
        at = number(place.removeprefix("-"), 0, len(made) - 1)
        made[-1 - at if place.startswith("-") else at] = number(value, 0, 255)
    return bytes(made)


def _members(packed: bytes) -> None:
    """Open each member of an archive: what is listed is safe, and what comes out is counted."""
    try:
        with zipfile.ZipFile(io.BytesIO(packed)) as archive:
            _read(zip_as_folder("kept.zip", archive), len(packed))
    except _REFUSED:
        return


def _read(whole: TranscriptFolder, size: int) -> None:
    for name in whole.member_names():
        parts = name.replace("\\", "/").split("/")
        hold(parts[0] and ".." not in parts and ":" not in parts[0], "no member lies outside", name)
        with suppress(*_REFUSED, TooLargeError), whole.open_member(name) as stream:
            came = 0
            while data := stream.read(1 << 16):
                came += len(data)
                hold(
                    came <= _MOST_OUT + 200 * size,
                    "what comes out of an archive is counted",
                    came,
                    size,
                )
