"""`forget`: a path leaves the index, its old versions and the caches, and stays out; the disk is looked at to prove it."""

from __future__ import annotations

import os
import shutil
from dataclasses import dataclass

from anchord.adapters import lance_upkeep
from anchord.errors import UsageError
from anchord.model import Diff, Origin, Update
from anchord.roots import root_of
from anchord.workspace import Writer, is_local, store_uri

_PURGE_S = 3_600.0
"""So long may rewriting the table take: a million rows take a minute or two."""


@dataclass(frozen=True, slots=True)
class Forgotten:
    """What went: files, rows, and files on disk that had held them and are gone; -1 where the disk cannot be looked at."""

    path: str
    files: int
    rows: int
    disk_files: int


def forget(writer: Writer, path: str) -> Forgotten:
    """Take a path out of the index for good. The file itself is not touched.

    Raises:
        UsageError: the path is in no root, or a root itself. StoreError: what held the rows could not be rewritten; searches
            do not find them any more, and the call can be repeated.
    """
    absolute = os.path.join(os.path.realpath(os.path.dirname(path)), os.path.basename(path))
    found = root_of(writer.roots, absolute)
    if found is None or not found[1]:
        what = "is a root itself" if found else "is in no root"
        raise UsageError(
            f"{path} {what}", "`anchord remove NAME` takes a root out" if found else "`anchord roots` lists the roots"
        )
    writer.ask(writer.asked.with_path(absolute))  # First of all, so that no walk brings it back.
    root, inside = found[0].name, found[1]
    origins = [Origin(root, each) for each in writer.catalogue.overview(root, inside)]
    origins += writer.archive.forget(origins)
    ids = list(dict.fromkeys(chunk_id for origin in origins for chunk_id in writer.store.ids_of(origin)))
    updates = [Update(origin, None, Diff((), (), tuple(ids), 0, 0), (), "forgotten by a command") for origin in origins]
    writer.vanished.clear()  # Of a file that left before nobody knows which vectors were its own.
    writer.catalogue.intend(updates)
    writer.store.delete(ids)
    writer.catalogue.apply(updates)
    writer.catalogue.flush()
    writer.vanished.flush()
    writer.archive.flush()
    shutil.rmtree(writer.places.damaged, ignore_errors=True)
    writer.pulse.beat(_PURGE_S)
    local = is_local(store_uri(writer.places, writer.config))
    return Forgotten(absolute, len(origins), len(ids), lance_upkeep.purge(writer.store) if local else -1)


def recall(writer: Writer, path: str) -> str:
    """Let a forgotten path into the index again; return the name of its root.

    Raises:
        UsageError: it was not forgotten, or is in no root.
    """
    absolute = os.path.join(os.path.realpath(os.path.dirname(path)), os.path.basename(path))
    found = root_of(writer.roots, absolute)
    if absolute not in writer.asked.paths or found is None:
        known = ", ".join(writer.asked.paths) or "nothing"
        raise UsageError(f"{path} was not forgotten", f"forgotten: {known}")
    writer.ask(writer.asked.without_path(absolute))
    return found[0].name
