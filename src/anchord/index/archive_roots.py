"""Which root the exchanges of the archive belong to, when roots are added, removed or changed."""

from __future__ import annotations

import os
import time
from collections.abc import Iterable, Iterator

from anchord.core.types import Root, RootedPath
from anchord.index.file_plans import plan_row_removal
from anchord.sources.conversations.archive.writer import ArchiveWriter
from anchord.sources.files.folder_files import FolderFiles
from anchord.store.catalog.catalog import SqliteCatalog


def is_another_root(archive: ArchiveWriter, root: Root) -> bool:
    """Return whether the archive knows another root by this root's name.

    That is so if the recorded folder is another one and still exists: a folder that does not was
    moved. And if the root is a project now.
    """
    folder = archive.detached.folder_of_root(root.name)
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


def update_at_start(
    archive: ArchiveWriter, catalog: SqliteCatalog, roots: Iterable[Root], files: FolderFiles
) -> None:
    """Empty the trash, and do `list_unlisted_files`."""
    list_unlisted_files(archive, catalog, roots, files)
    archive.empty_trash(time.time_ns())


def list_unlisted_files(
    archive: ArchiveWriter, catalog: SqliteCatalog, roots: Iterable[Root], files: FolderFiles
) -> None:
    """List in a catalog the transcript files that only the archive knows and no walk finds.

    They were deleted, and the catalog was lost or is an older copy; or the rules for their paths
    changed after that. The next walk finds them missing or excluded, and their exchanges go where
    the rules want them.

    Args:
        archive: What was read of transcript files.
        catalog: Gets a record of each such file.
        roots: Those of kind `conversations` whose folders are there are looked at.
        files: The roots' files and their rules.
    """
    _list_in_catalog(catalog, _excluded_files(archive, _present(roots), files))
    _list_in_catalog(catalog, _deleted_files(archive, _present(roots), files))
    # A kill between the archive's commit and the catalog's leaves an excluded file in the catalog
    # as if its exchanges were indexed. If the rules include it again, no walk would find a change.
    catalog.mark_for_reread(list(_returned_files(archive, _present(roots), files)))


def _list_in_catalog(catalog: SqliteCatalog, files: Iterable[RootedPath]) -> None:
    unlisted = [each for each in dict.fromkeys(files) if catalog.get_record(each) is None]
    catalog.save_intents([plan_row_removal(each, (), "not in the catalog") for each in unlisted])


def _present(roots: Iterable[Root]) -> list[Root]:
    return [root for root in roots if root.kind == "conversations" and os.path.isdir(root.path)]


def _excluded_files(
    archive: ArchiveWriter, roots: Iterable[Root], files: FolderFiles
) -> Iterator[RootedPath]:
    """Yield the files of attached exchanges that the rules exclude, whether they exist or not."""
    path_filter = files.path_filter()
    for root in roots:
        last_files = archive.orphans_by_last_file(root.name)
        for origin in (*archive.transcript_files(root.name), *last_files):
            # A folder that is one transcript is excluded with the last of its files.
            below = [f"{origin.path}/{name}" for name, _ in files.list_files_below(origin)]
            members = [RootedPath(root.name, path) for path in below] or [origin]
            if not any(path_filter(each).is_included for each in members):
                yield members[0]


def _returned_files(
    archive: ArchiveWriter, roots: Iterable[Root], files: FolderFiles
) -> Iterator[RootedPath]:
    """Yield the files whose exchanges are detached by rules that include them now."""
    path_filter = files.path_filter()
    for root in roots:
        detached = archive.excluded_files.paths(root.name)
        yield from (each for each in detached if path_filter(each).is_included)


def _deleted_files(
    archive: ArchiveWriter, roots: Iterable[Root], files: FolderFiles
) -> Iterator[RootedPath]:
    """Yield the deleted files that the archive believes to exist, or that are not excluded now."""
    path_filter = files.path_filter()
    for root in roots:
        detached = archive.excluded_files.paths(root.name)
        included = [each for each in detached if path_filter(each).is_included]
        for origin in (*archive.transcript_files(root.name), *included):
            if not os.path.lexists(os.path.join(root.path, origin.path)):
                yield origin
