"""Compare a folder on disk with the catalog: which files to index, and which deletions to hold."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import TypeVar

from anchord.core.change_detection import decide_for_file, is_up_to_date
from anchord.core.deletion_guard import (
    DeletionPolicy,
    find_missing_files,
    find_moves,
)
from anchord.core.garbage import garbage_collection_paused
from anchord.core.ports import EnterDirCallback, IndexerDependencies
from anchord.core.types import (
    Absent,
    FileRecord,
    Fingerprint,
    PathMatch,
    Problem,
    RootedPath,
    SkipFile,
    WalkResult,
)
from anchord.core.worktrees import agrees, indexed_digest, is_left_out
from anchord.index.mass_deletions import MassDeletionGuard
from anchord.index.recipe import Recipe
from anchord.sources.conversations.exchange_document import ALL_EXCHANGES, is_exchange_path
from anchord.sources.files.folder_files import MAX_FILE_BYTES

NO_SIZE_LIMIT = 1 << 62
"""The size limit in bytes of transcript files and exchanges: they are streamed, so none is too
large."""
_FOUND_BY_WALK = PathMatch(is_included=True, reason="found by a walk")

_T = TypeVar("_T")
_Observed = Fingerprint | Problem
"""What a walk reports of a file: its fingerprint, or why the file cannot be used."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ReconcileResult:
    """What a walk found to do. All paths are relative to the root; the root itself is ""."""

    paths_due: tuple[RootedPath, ...] = ()
    """Files to index. Excluded files come first: no text of theirs is embedded any more. Missing
    files come last, so that new rows are written before old ones are deleted."""
    gone_or_emptied: Mapping[RootedPath, Fingerprint] = field(default_factory=dict)
    """Files among `paths_due` that are missing, excluded or have size 0, with their last indexed
    fingerprint."""
    mtimes_ns: Mapping[RootedPath, int] = field(default_factory=dict)
    """When the files among `paths_due` changed, in nanoseconds since the epoch; none for files that
    are gone or cannot be read."""
    moved_from: Mapping[RootedPath, RootedPath] = field(default_factory=dict)
    """New path -> old path."""
    held_deletions: int = 0
    """Number of files that are missing and not in `paths_due`, because a person must confirm the
    mass deletion."""
    released_deletions: int = 0
    """Number of missing files in `paths_due` that the guard let pass in this walk: their rows will
    be deleted, and nobody has confirmed that."""
    file_count: int = 0
    """Number of files that the walk found and that the rules include, without exchanges."""
    listed_folders: tuple[str, ...] = ()
    """Every folder that was listed."""
    skipped: int = 0
    """Number of files that the ignore rules leave out and that a person might expect in the
    index."""
    folder_problems: tuple[tuple[str, Problem], ...] = ()
    """Folders that could not be listed, with the reason."""
    walk_error: str = ""
    """Why the folder as a whole could not be walked, else "". If set, nothing is deleted."""
    is_refused: bool = False
    """Whether it was not walked because it is another folder than the root's own."""


def reconcile(
    dependencies: IndexerDependencies,
    recipe: Recipe,
    folder: RootedPath,
    on_enter_dir: EnterDirCallback,
    deletion_policy: DeletionPolicy,
) -> ReconcileResult:
    """Compare a folder with the catalog by fingerprints; file contents are not read.

    The mass-deletion guard applies only when `folder` is a whole root. It then writes the number of
    recent deletions to the catalog for as long as it holds deletions. Nothing else is written.

    Args:
        dependencies: The files, the catalog and the heartbeat.
        recipe: Files that were indexed under another recipe digest are due.
        folder: The root's name, and the folder's path in it; "" is the whole root.
        on_enter_dir: Called with each folder before it is listed.
        deletion_policy: Which deletions the guard does not hold.

    Returns:
        The files to index. `walk_error` is set when a whole root is missing or unreadable.
    """
    with garbage_collection_paused():
        return _reconcile(dependencies, recipe, folder, on_enter_dir, deletion_policy)


def _reconcile(
    dependencies: IndexerDependencies,
    recipe: Recipe,
    folder: RootedPath,
    on_enter_dir: EnterDirCallback,
    deletion_policy: DeletionPolicy,
) -> ReconcileResult:
    root = folder.root
    refusal = _why_refused(dependencies, folder, deletion_policy)
    if refusal:
        # Invariant: the rows are those of another folder. Nothing of this one is read.
        return ReconcileResult(
            paths_due=_exchanges_due(dependencies, recipe, root),
            walk_error=refusal,
            is_refused=True,
        )
    walk = _walk(dependencies, folder, on_enter_dir)
    if not isinstance(walk, WalkResult):
        records = dependencies.catalog.list_records(root, folder.path)
        result = _result_without_walk(walk, folder, records)
        if folder.path:
            return result
        return replace(result, paths_due=_exchanges_due(dependencies, recipe, root))
    return _compare(dependencies, recipe, folder, walk, deletion_policy)


def _compare(
    dependencies: IndexerDependencies,
    recipe: Recipe,
    folder: RootedPath,
    walk: WalkResult,
    deletion_policy: DeletionPolicy,
) -> ReconcileResult:
    """Return what a walk of a folder found that differs from the catalog."""
    root = folder.root
    records = dependencies.catalog.list_records(root, folder.path)
    observed: dict[str, _Observed] = {found.path: found.fingerprint for found in walk.files}
    observed.update(walk.file_problems)
    is_transcript = dependencies.conversations.is_transcript_file(folder)
    max_bytes = NO_SIZE_LIMIT if is_transcript else MAX_FILE_BYTES
    recipe_digest = recipe.digest(root)
    # Invariant: the walk saw each of these files, and the catalog does not describe it as it is
    # now.
    needs_indexing = partial(_needs_indexing, recipe_digest=recipe_digest, max_bytes=max_bytes)
    changed_paths = [
        path for path, current in observed.items() if needs_indexing(current, records.get(path))
    ]
    changed_paths += _disagreeing_copies(dependencies, folder, records, observed, changed_paths)

    # Invariant: the catalog lists each of these files, and the walk looked where it was and did not
    # see it. Files below unreadable folders are not among them: their state is unknown.
    unseen = find_missing_files(walk, records)
    excluded = _excluded_files(dependencies, root, unseen)
    missing = _without(unseen, excluded)
    moves = find_moves(missing, _new_files(changed_paths, observed, records))
    guard = MassDeletionGuard(dependencies, root, deletion_policy)
    at_risk = guard.deletions_to_count(_with_rows(missing, records), moves)
    held_count = 0
    # Invariant: a released file has left already, and `recent_count` counts it.
    left = excluded.keys() | {each.path for each in deletion_policy.released if each.root == root}
    if not folder.path and guard.update_hold(at_risk, _without(records, left), walk):
        # Invariant: what stays in `missing` moved, is confirmed, or keeps its exchanges. Its rows
        # can be deleted without a loss; the others wait for a confirmation.
        held_count = len(at_risk)
        missing = _without(missing, at_risk)
    emptied = _emptied_files(changed_paths, observed, records)
    return ReconcileResult(
        paths_due=_in_root(root, [*excluded, *changed_paths, *missing]),
        gone_or_emptied=_keyed_by_root(root, excluded | missing | emptied),
        mtimes_ns=_keyed_by_root(root, _mtimes_of(changed_paths, observed)),
        moved_from=_moved_from(root, moves),
        held_deletions=held_count,
        released_deletions=0 if held_count or deletion_policy.all_confirmed else len(at_risk),
        file_count=sum(not is_exchange_path(found.path) for found in walk.files),
        listed_folders=walk.listed_folders,
        skipped=walk.skipped_count,
        folder_problems=walk.folder_problems,
    )


def _exchanges_due(
    dependencies: IndexerDependencies, recipe: Recipe, root: str
) -> tuple[RootedPath, ...]:
    """Return the archived exchanges that the index lacks, or has with another recipe or text.

    They need no folder: what came back to a root with its name is found while its folder is away.
    """
    if not dependencies.conversations.is_transcript_file(RootedPath(root, "")):
        return ()
    archived = dependencies.files.walk(root, ALL_EXCHANGES)
    if not isinstance(archived, WalkResult):
        return ()
    records = dependencies.catalog.list_records(root, "")
    recipe_digest = recipe.digest(root)
    due = [
        found.path
        for found in archived.files
        if _needs_indexing(
            found.fingerprint,
            records.get(found.path),
            recipe_digest=recipe_digest,
            max_bytes=NO_SIZE_LIMIT,
        )
    ]
    return _in_root(root, due)


def _disagreeing_copies(
    dependencies: IndexerDependencies,
    folder: RootedPath,
    records: Mapping[str, FileRecord],
    observed: Mapping[str, _Observed],
    changed_paths: Sequence[str],
) -> list[str]:
    """Return the other files whose record the main checkout's file contradicts.

    Where no worktrees are merged, these are the files that were left out before.
    """
    root, worktrees = folder.root, dependencies.worktrees
    is_merging = worktrees.merges(root)
    tables = {root: records} if not folder.path else {}

    def main_digest(path: str) -> str:
        main = worktrees.main_file(RootedPath(root, path)) if is_merging else None
        if main is None:
            return ""
        if folder.path:
            return indexed_digest(dependencies.catalog.get_record(main))
        if main.root not in tables:
            tables[main.root] = dependencies.catalog.list_records(main.root, "")
        return indexed_digest(tables[main.root].get(main.path))

    known = set(changed_paths)
    return [
        path
        for path, record in records.items()
        if (is_merging or is_left_out(record.content_digest))
        and path in observed
        and path not in known
        and not agrees(record.content_digest, main_digest(path))
    ]


def _with_rows(
    missing: Mapping[str, Fingerprint], records: Mapping[str, FileRecord]
) -> dict[str, Fingerprint]:
    """Return the files that can lose rows: those that are left out have none."""
    left_out = [path for path in missing if is_left_out(records[path].content_digest)]
    return _without(missing, left_out)


def _why_refused(
    dependencies: IndexerDependencies, folder: RootedPath, deletion_policy: DeletionPolicy
) -> str:
    """Return why a root is not walked: it is another folder than the one indexed; "" if it is.

    Only a whole root is checked.
    """
    if folder.path:
        return ""
    return dependencies.files.check_root(
        folder.root,
        lambda: dependencies.catalog.list_records(folder.root, "").keys(),
        accept=deletion_policy.all_confirmed,
    )


def _keyed_by_root(root: str, values_by_path: Mapping[str, _T]) -> dict[RootedPath, _T]:
    return {RootedPath(root, path): value for path, value in values_by_path.items()}


def _moved_from(root: str, moves: Mapping[str, str]) -> dict[RootedPath, RootedPath]:
    return {RootedPath(root, new): RootedPath(root, old) for new, old in moves.items()}


def _mtimes_of(paths: Iterable[str], observed: Mapping[str, _Observed]) -> dict[str, int]:
    """Return the modification times of those files that could be looked at, in nanoseconds."""
    fingerprints = {path: observed[path] for path in paths}
    return {
        path: found.mtime_ns
        for path, found in fingerprints.items()
        if isinstance(found, Fingerprint)
    }


def _without(values_by_path: Mapping[str, _T], paths: Collection[str]) -> dict[str, _T]:
    return {path: value for path, value in values_by_path.items() if path not in paths}


def _excluded_files(
    dependencies: IndexerDependencies, root: str, unseen: Mapping[str, Fingerprint]
) -> dict[str, Fingerprint]:
    """Return those of some files that the rules exclude now, whether they exist or not.

    Invariant: they are not missing. Their rows go at once, and the guard does not count them.
    """
    if not unseen:
        return {}
    path_filter = dependencies.files.path_filter()
    return {
        path: last_seen
        for path, last_seen in unseen.items()
        if not path_filter(RootedPath(root, path)).is_included
    }


def _emptied_files(
    changed_paths: Sequence[str],
    observed: Mapping[str, _Observed],
    records: Mapping[str, FileRecord],
) -> dict[str, Fingerprint]:
    """Return the last known fingerprints of the known files that are empty now."""
    return {
        path: records[path].fingerprint
        for path in changed_paths
        if path in records and _is_empty(observed[path])
    }


def _walk(
    dependencies: IndexerDependencies, folder: RootedPath, on_enter_dir: EnterDirCallback
) -> WalkResult | Absent | Problem:
    """Walk a folder with a heartbeat for each folder below it."""

    def enter(entered_folder: RootedPath) -> None:
        dependencies.heartbeat(0)
        on_enter_dir(entered_folder)

    return dependencies.files.walk(folder.root, folder.path, enter)


def _result_without_walk(
    failure: Absent | Problem, folder: RootedPath, records: Mapping[str, FileRecord]
) -> ReconcileResult:
    """Decide what a failed walk means for the files that the catalog lists in the folder."""
    if isinstance(failure, Problem):
        # Invariant: the folder exists. Its files are unknown, not missing: nothing is deleted.
        return ReconcileResult(walk_error=failure.reason)
    if not folder.path:
        # Invariant: the whole root is missing, as an unmounted disk is. Nothing is deleted.
        return ReconcileResult(walk_error="the folder does not exist")
    # Invariant: the root is there and this folder of it is not. Its files were deleted; a path
    # without files is due itself, because it may be a file and not a folder.
    gone = {RootedPath(folder.root, path): record.fingerprint for path, record in records.items()}
    return ReconcileResult(paths_due=tuple(gone) or (folder,), gone_or_emptied=gone)


def _new_files(
    changed_paths: list[str],
    observed: Mapping[str, _Observed],
    records: Mapping[str, FileRecord],
) -> dict[str, Fingerprint]:
    """Return the usable files that the catalog does not list: the possible targets of moves."""
    new_files = {}
    for path in changed_paths:
        current = observed[path]
        if path not in records and isinstance(current, Fingerprint):
            new_files[path] = current
    return new_files


def _in_root(root: str, paths: list[str]) -> tuple[RootedPath, ...]:
    return tuple(RootedPath(root, path) for path in paths)


def _is_empty(observed: _Observed) -> bool:
    return isinstance(observed, Fingerprint) and not observed.size


def _needs_indexing(
    observed: _Observed, record: FileRecord | None, recipe_digest: str, max_bytes: int
) -> bool:
    # The fast path of nearly every file at nearly every walk: it is as the catalog describes it.
    if record and isinstance(observed, Fingerprint):
        fits = observed.size <= max_bytes
        if fits and is_up_to_date(observed, record, recipe_digest):
            return False
    decision = decide_for_file(_FOUND_BY_WALK, observed, record, recipe_digest, max_bytes)
    return not isinstance(decision, SkipFile)
