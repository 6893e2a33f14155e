"""Which root the exchanges of the archive belong to, when roots are added, removed or changed."""

from __future__ import annotations

import os
import time
from collections.abc import Iterable, Iterator

from anchord.core.types import Root, RootedPath
from anchord.index.file_planner import plan_row_removal
from anchord.sources.conversations.archive.writer import ArchiveWriter
from anchord.store.catalog.catalog import SqliteCatalog


def is_another_root(archive: ArchiveWriter, root: Root) -> bool:
    """Return whether the archive knows another root by this root's name.

    That is so if the recorded folder is another one and still exists: a folder that does not was
    moved. And if the root is a project now.
    """
    folder = archive.folder_of_root(root.name)
    if root.kind != "conversations":
        return folder is not None
    return folder is not None and folder != root.path and os.path.isdir(folder)


def attach_exchanges(archive: ArchiveWriter, roots: Iterable[Root]) -> None:
    """Give every root of conversations the detached exchanges that belong to it.

    All roots are looked at: what one of them lost can belong to another. Then what a root's
    `on_delete` says is done with conversations whose files are gone already. With `delete` they
    move to the trash, for 30 days; with `keep` they come back from there. So it does not matter
    whether the setting or the deletion came first.
    """
    for root in roots:
        if root.kind != "conversations":
            continue
        archive.attach_root(root.name, root.path)
        if root.on_delete == "keep":
            archive.return_trash(root.name)
        else:
            archive.trash_orphans(root.name, time.time_ns())


def update_at_start(archive: ArchiveWriter, catalog: SqliteCatalog, roots: Iterable[Root]) -> None:
    """Empty the trash, and list in the catalog the vanished files that only the archive knows.

    Without that no walk finds these files missing: the catalog was lost, or an older copy is in its
    place. A root whose folder is away is left out.
    """
    vanished = _vanished_files(archive, catalog, roots)
    catalog.save_intents([plan_row_removal(each, (), "not in the catalog") for each in vanished])
    archive.empty_trash(time.time_ns())


def _vanished_files(
    archive: ArchiveWriter, catalog: SqliteCatalog, roots: Iterable[Root]
) -> Iterator[RootedPath]:
    for root in roots:
        if root.kind == "conversations" and os.path.isdir(root.path):
            for origin in archive.transcript_files(root.name):
                is_gone = not os.path.lexists(os.path.join(root.path, origin.path))
                if is_gone and catalog.get_record(origin) is None:
                    yield origin
