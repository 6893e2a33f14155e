"""`discover`: which of the places where assistants keep conversations are on this machine, and what is in them."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from anchord.model import Root
from anchord.roots import covers, real
from anchord.sources.conversations import FAMILIES, HEAD_BYTES, NOISE_FOLDERS, may_carry, recognise
from anchord.sources.discovery import places


@dataclass(frozen=True, slots=True)
class Discovered:
    """A folder with conversations. `newest_ns`: when something in it was written last; `root`: the root that covers it."""

    program: str
    path: str
    files: int
    bytes: int
    newest_ns: int
    root: str


def discover(home: str, env: Mapping[str, str], roots: Sequence[Root]) -> Iterator[Discovered]:
    """Yield the places that hold conversations; names, sizes and the first bytes of files are looked at, nothing is kept."""
    seen: set[str] = set()
    for place in places(home, env, sys.platform):
        path = real(place.path)
        if path in seen or not os.path.isdir(path):
            continue
        seen.add(path)
        files = list(_carriers(Path(path)))
        if files:
            stats = [entry.stat() for entry in files]
            root = next((root.name for root in roots if covers(root.path, path)), "")
            newest = max(seen.st_mtime_ns for seen in stats)
            yield Discovered(place.program, path, len(files), sum(seen.st_size for seen in stats), newest, root)


def _carriers(folder: Path) -> Iterator[os.DirEntry[str]]:
    folders = [str(folder)]
    while folders:
        try:
            with os.scandir(folders.pop()) as entries:
                for entry in entries:
                    if entry.is_dir(follow_symlinks=False) and entry.name not in NOISE_FOLDERS:
                        folders.append(entry.path)
                    elif entry.is_file(follow_symlinks=False) and may_carry(entry.name) and _is_known(entry.path):
                        yield entry
        except OSError:
            continue  # What cannot be read cannot be indexed either.


def _is_known(path: str) -> bool:
    try:
        with open(path, "rb") as stream:
            return recognise(stream.read(HEAD_BYTES), path) is not None or any(family.folder(path) for family in FAMILIES)
    except OSError:
        return False
