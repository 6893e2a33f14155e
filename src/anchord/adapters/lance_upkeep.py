"""The life of a table on disk: folding, clones, taking another's place, recovery, and making sure that a text is gone.

Facts (measured, lance 13):
- Every commit leaves a fragment and a manifest, and everything slows down with their number. Folding goes through pylance:
  `table.optimize()` rewrites the whole table each time.
- Files of a table are never changed once they are written, so a clone can share them by hard links. A folder can be renamed: a
  reader's handle goes on with what stands there then.
- A local commit is not synced to the disk. After a power loss the newest manifest can be empty: moved away, the version before
  it opens. Clean-up on a damaged table deletes the good older versions, so the newest is read first, whole, and flushed.
- Deleted rows stay in data files, and their words in the index, until both are rewritten.

Upkeep is the writer's, between two commits. Only local tables can be cloned, swapped and recovered.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable
from datetime import timedelta
from pathlib import Path

import lancedb

from anchord.adapters.lance import NEXT, TABLE, LanceStore
from anchord.adapters.lance_fold import FRAGMENT_ROWS, TROUBLE, Order, fold, index_vectors, words
from anchord.adapters.lance_schema import create_indices
from anchord.adapters.waited import waited
from anchord.errors import StoreError

_KEPT = timedelta(minutes=10)
_MANY_VERSIONS = 100
_KEPT_OF_MANY = timedelta(seconds=5)
"""Every commit lists all versions, and each version all fragments and parts: in a long rush of saves they would make it slower
and slower, and take more room than the rows. A reader whose version is gone opens the newest; a power loss finds that whole."""
_MANIFESTS_TRIED = 8


def maintain(
    store: LanceStore, *, merge: bool = False, drop: bool = True, fold: Callable[[Order], list[str]] = fold
) -> list[str]:
    """Fold small fragments, bring the indices up to date, drop versions older than ten minutes (seconds, of very many).

    Returns what failed; each step is tried, but nothing is dropped where the newest version cannot be read. Each call leaves
    the indices a part more; with `merge` the newest become one. To look for what can be dropped takes a third of a fold:
    without `drop` that waits until there are very many versions. `fold` says where it is done.
    """
    try:
        stats = store.stats()
    except (StoreError, *TROUBLE) as error:
        return [f"the table cannot be read: {words(error)}"]
    many = stats.versions >= _MANY_VERSIONS
    kept = (_KEPT_OF_MANY if many else _KEPT).total_seconds() if drop or many else None
    problems = fold(Order(dataset=store.dataset, merge=merge, kept_s=kept))
    store.refresh(anew=merge)  # What is kept in memory of parts that became one is of no use any more.
    return problems


def purge(store: LanceStore) -> int:
    """Rewrite what held deleted rows, rebuild the indices, drop every old version: what was deleted is gone from the disk.

    Returns how many files went. Afterwards there is no file left from before, but for those of which every row is in use.

    Raises:
        StoreError: a step failed, or a file is left; nothing is lost, and nothing is proven.
    """
    import lance  # noqa: PLC0415 - 0.4 s and 80 MB that hardly anybody needs

    if len(store.ids()) != store.count():
        raise StoreError("the table cannot be read as a whole", "run `anchord verify --repair`")
    table = Path(store.dataset)
    before = _files(table)
    try:
        dataset = lance.dataset(store.dataset)
        whole = [fragment for fragment in dataset.get_fragments() if not fragment.num_deletions]
        in_use = {table / "data" / file.path for fragment in whole for file in fragment.data_files()}
        dataset.optimize.compact_files(
            target_rows_per_fragment=FRAGMENT_ROWS, materialize_deletions=True, materialize_deletions_threshold=0.0
        )
        waited(_indices_anew(table))
        index_vectors(lance.dataset(store.dataset), anew=True)
        lance.dataset(store.dataset).cleanup_old_versions(older_than=timedelta(0), delete_unverified=True)
    except TROUBLE as error:
        raise StoreError(f"rewriting the table failed: {words(error)}", "see the free space of the disk") from error
    store.refresh()
    left = (before & _files(table)) - in_use
    if left:
        raise StoreError(
            f"{len(left)} files that may hold deleted text are still there", "try again when nobody reads the table"
        )
    return len(before - _files(table))


async def _indices_anew(table: Path) -> None:
    database = await lancedb.connect_async(str(table.parent))
    await create_indices(await database.open_table(table.stem))


def sweep(folder: Path) -> int:
    """Delete temporary files that a killed writer left; return how many. Only for the holder of the lock."""
    left = [path for path in folder.rglob("*") if path.is_file() and (path.name.startswith(".tmp") or path.suffix == ".tmp")]
    for path in left:
        path.unlink(missing_ok=True)
    return len(left)


def recover(folder: Path, kept: Path, name: str = TABLE) -> bool:
    """Move the newest manifests of a table that does not open to `kept`, until it does; return whether it opens."""
    versions = folder / f"{name}.lance" / "_versions"
    manifests = sorted(versions.glob("*.manifest"), key=_version, reverse=True)[:_MANIFESTS_TRIED] if versions.is_dir() else []
    for manifest in manifests:
        kept.mkdir(parents=True, exist_ok=True)
        shutil.move(manifest, kept / manifest.name)
        (versions / "latest_version_hint.json").unlink(missing_ok=True)
        if _opens(folder, name):
            return True
    return False


def set_aside(folder: Path, kept: Path, name: str = TABLE) -> None:
    """Move a table away."""
    table = folder / f"{name}.lance"
    if table.exists():
        kept.mkdir(parents=True, exist_ok=True)
        shutil.move(table, kept / table.name)


def clone(folder: Path) -> bool:
    """Begin the next table as a copy of the present one that shares its files; return whether that can be done."""
    present, following = folder / f"{TABLE}.lance", folder / f"{NEXT}.lance"
    discard(folder)
    if not present.is_dir():
        return False
    try:
        shutil.copytree(present, following, copy_function=os.link)
    except (OSError, shutil.Error):
        discard(folder)
        return False
    return True


def discard(folder: Path) -> None:
    """Delete the table that was to be the next."""
    shutil.rmtree(folder / f"{NEXT}.lance", ignore_errors=True)


def promote(folder: Path) -> None:
    """Put the next table in the present one's place; can be repeated after a crash at any step."""
    present, following, former = (folder / f"{name}.lance" for name in (TABLE, NEXT, "former"))
    if following.is_dir():
        if present.is_dir():
            shutil.rmtree(former, ignore_errors=True)
            present.rename(former)
        following.rename(present)
    shutil.rmtree(former, ignore_errors=True)


def _files(table: Path) -> set[Path]:
    """Return the files of a table; the hint at the newest version has one name for all of them."""
    return {path for path in table.rglob("*") if path.is_file() and path.name != "latest_version_hint.json"}


def _opens(folder: Path, name: str) -> bool:
    try:
        table = lancedb.connect(str(folder)).open_table(name)
        table.search().select(["id"]).limit(None).to_arrow()
    except TROUBLE:
        return False
    return True


def _version(manifest: Path) -> int:
    """Newer Lance writes the number as its distance to 2^64 - 1, so that the newest sorts first."""
    number = int(manifest.stem) if manifest.stem.isdigit() else 0
    return 2**64 - 1 - number if len(manifest.stem) == len(str(2**64)) else number
