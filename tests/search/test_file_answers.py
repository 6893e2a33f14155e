"""`changes` as far as it depends on the roots, and the cursors of `files`."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import cast

import pytest

from anchord.core.types import ChunkDiff, FileRecord, FileUpdate, Fingerprint, Root, RootedPath
from anchord.index.session import IndexReader
from anchord.ipc.messages.files import ChangesParams, FilesParams
from anchord.search.file_answers import handle_changes, handle_files
from anchord.store.catalog.catalog import SqliteCatalog


def added(origin: RootedPath) -> FileUpdate:
    record = FileRecord(
        fingerprint=Fingerprint(size=1, mtime_ns=1, ctime_ns=1, inode=1, device=1),
        read_ns=1,
        content_digest="digest",
        recipe_digest="recipe",
        is_confirmed=True,
        chunks=(),
    )
    diff = ChunkDiff(added=(None,), changed=(), removed=(), shifted=0, kept=0)  # type: ignore[arg-type]  # only counted
    return FileUpdate(
        origin=origin, new_record=record, diff=diff, texts_to_embed=(), reason="a reason"
    )


def test_changes_are_those_of_the_roots_that_there_are(tmp_path: Path) -> None:
    roots = [Root(name="notes", path=str(tmp_path))]
    reader = cast("IndexReader", SimpleNamespace(roots=roots))
    with SqliteCatalog(tmp_path / "state.sqlite") as catalog:
        catalog.confirm_updates(
            [added(RootedPath(root, "secret.md")) for root in ("notes", "removed")]
        )
        for params in (ChangesParams(), ChangesParams(path="*.md"), ChangesParams(root="notes")):
            (change,) = handle_changes(reader, catalog, params).changes
            assert (change.root, change.path) == ("notes", "secret.md")


@pytest.mark.parametrize("name", ["x" * 200, "\u00e9" * 120, "\udcff" * 200, "a" * 255])
def test_a_list_goes_on_after_a_long_path_by_a_short_cursor(tmp_path: Path, name: str) -> None:
    paths = ["a.md", *(f"{'/'.join([name] * 15)}/{number}.md" for number in range(4)), "zz.md"]
    reader = cast(
        "IndexReader", SimpleNamespace(roots=[Root(name="notes", path=str(tmp_path / "n"))])
    )
    listed: list[str] = []
    with SqliteCatalog(tmp_path / "state.sqlite") as catalog:
        catalog.confirm_updates([added(RootedPath("notes", path)) for path in paths])
        cursor = ""
        for _ in paths:
            answer = handle_files(reader, catalog, FilesParams(limit=1, cursor=cursor))
            listed += [each.path for each in answer.files]
            cursor = answer.next
            assert len(cursor) < 450
    assert cursor == ""
    assert len(set(listed)) == len(paths)
