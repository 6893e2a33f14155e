"""The files of a table's newest version, as its manifest names them and as pylance does."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import lance
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from anchord.store.table.damage import find_altered_files, list_table_files
from anchord.store.table.version_files import (
    ManifestError,
    manifest_version,
    newest_manifest,
    parse_manifest,
    read_version_files,
)

ROWS = 600


def write(table: Path, begin: int, count: int) -> None:
    ids = [f"id {number}" for number in range(begin, begin + count)]
    rows = pa.table({"id": ids, "text": [f"some words {each}" for each in ids]})
    lance.write_dataset(rows, str(table), mode="append" if table.exists() else "create")


def index(table: Path) -> None:
    lance.dataset(str(table)).create_scalar_index("id", "BTREE")
    lance.dataset(str(table)).create_scalar_index("text", "INVERTED")


def delete_few(table: Path) -> None:
    lance.dataset(str(table)).delete("id = 'id 3'")


def delete_many(table: Path) -> None:
    """Delete so many rows of one fragment that Lance lists them as a bitmap."""
    lance.dataset(str(table)).delete("id != 'id 3'")


def compact(table: Path) -> None:
    dataset = lance.dataset(str(table))
    dataset.optimize.compact_files()
    dataset.optimize.optimize_indices()


STEPS: dict[str, Callable[[Path], None]] = {
    "append": lambda table: write(table, ROWS, 5),
    "index": index,
    "delete few": delete_few,
    "delete many": delete_many,
    "compact": compact,
}


def files_by_pylance(table: Path) -> set[str]:
    """Return what the newest version consists of by pylance; its manifest by its position."""
    dataset: Any = lance.dataset(str(table))
    found = {f"_versions/{2**64 - 1 - dataset.version}.manifest"}
    for fragment in dataset.get_fragments():
        found |= {f"data/{file.path}" for file in fragment.data_files()}
        found |= {fragment.deletion_file()} - {None}
    for each in dataset.describe_indices():
        for part in each.segments:
            folder = table / "_indices" / str(part.uuid)
            found |= {str(file.relative_to(table)) for file in folder.iterdir()}
    return found


@pytest.mark.parametrize(
    "steps",
    [
        (),
        ("append", "append"),
        ("index",),
        ("delete few",),
        ("delete many",),
        ("index", "append", "delete few", "compact", "append"),
        ("append", "index", "delete many", "append", "compact"),
    ],
    ids=" ".join,
)
def test_the_manifest_names_the_files_that_pylance_names(
    tmp_path: Path, steps: tuple[str, ...]
) -> None:
    table = tmp_path / "chunks.lance"
    write(table, 0, ROWS)
    for step in steps:
        STEPS[step](table)
    files = read_version_files(table)
    assert set(files) == files_by_pylance(table)
    sizes = {path: (table / path).stat().st_size for path in files}
    assert {path: size or sizes[path] for path, size in files.items()} == sizes
    unknown = {path.split("/")[0] for path, size in files.items() if size is None}
    assert unknown <= {"_deletions"}
    assert find_altered_files(table, {}, list_table_files(table)) == set()


def test_each_lost_or_cut_file_of_the_newest_version_is_found_and_no_other(tmp_path: Path) -> None:
    table = tmp_path / "chunks.lance"
    write(table, 0, ROWS)
    for step in ("append", "index", "delete few"):
        STEPS[step](table)
    needed = read_version_files(table)
    for path in list_table_files(table):
        file = table / path
        content = file.read_bytes()
        file.unlink()
        # Without the newest manifest the version before is the newest; an earlier listing knows.
        is_known_without_listing = path in needed and not path.startswith("_versions")
        found = find_altered_files(table, {}, list_table_files(table))
        assert found == ({path} if is_known_without_listing else set())
        file.write_bytes(content[:-1])
        found = find_altered_files(table, {}, list_table_files(table))
        has_size = path in needed and not path.startswith("_deletions")
        assert found == ({path} if has_size else set())
        file.write_bytes(content)


def test_a_lost_newest_manifest_is_known_from_an_earlier_listing(tmp_path: Path) -> None:
    table = tmp_path / "chunks.lance"
    write(table, 0, ROWS)
    first = list_table_files(table)
    write(table, ROWS, 1)
    second = list_table_files(table)
    (newest,) = {path for path in second if path.startswith("_versions")} - set(first)
    assert find_altered_files(table, first, second) == set()
    (table / newest).unlink()
    assert find_altered_files(table, second, list_table_files(table)) == {newest}
    (table / newest).write_bytes(bytes(100))
    assert find_altered_files(table, second, list_table_files(table)) == {newest}
    noted = list_table_files(table)
    assert find_altered_files(table, noted, noted) == set(), "a repair has accepted it"


def test_a_folder_without_a_table_has_no_altered_files_and_a_lost_table_has(tmp_path: Path) -> None:
    table = tmp_path / "chunks.lance"
    assert find_altered_files(table, {}, list_table_files(table)) == set()
    write(table, 0, 1)
    listed = list_table_files(table)
    (manifest,) = (path for path in listed if path.startswith("_versions"))
    assert find_altered_files(table, listed, {}) == {manifest}


def test_versions_are_ordered_as_lance_names_them() -> None:
    names = ["7.manifest", "10.manifest", "latest_version_hint.json", "x.manifest", ".tmp"]
    assert newest_manifest(names) == "10.manifest"
    assert newest_manifest([f"{2**64 - 1 - number}.manifest" for number in (9, 12, 11)]) == (
        f"{2**64 - 13}.manifest"
    )
    assert newest_manifest(["notes.txt"]) is None
    assert manifest_version(f"{2**64 - 1}.manifest") == 0
    assert manifest_version("7.manifest.bak") is None


@pytest.fixture(scope="module")
def manifest(tmp_path_factory: pytest.TempPathFactory) -> bytes:
    table = tmp_path_factory.mktemp("table") / "chunks.lance"
    write(table, 0, ROWS)
    for step in ("append", "index", "delete few"):
        STEPS[step](table)
    newest = newest_manifest(file.name for file in (table / "_versions").iterdir())
    return (table / "_versions" / str(newest)).read_bytes()


@given(data=st.data())
def test_a_damaged_manifest_is_refused_or_read_but_never_another_error(
    manifest: bytes, data: st.DataObject
) -> None:
    damaged = bytearray(manifest)
    for _ in range(data.draw(st.integers(1, 4))):
        damaged[data.draw(st.integers(0, len(damaged) - 1))] = data.draw(st.integers(0, 255))
    content = bytes(damaged[: data.draw(st.integers(0, len(damaged)))])
    for each in (bytes(damaged), content, content + b"LANC"):
        try:
            files = parse_manifest(each)
        except ManifestError:
            continue
        assert all(isinstance(path, str) for path in files)


@pytest.mark.parametrize("content", [b"", b"LANC", bytes(200), bytes(200) + b"LANC"])
def test_what_is_no_manifest_is_refused(content: bytes, tmp_path: Path) -> None:
    versions = tmp_path / "_versions"
    versions.mkdir()
    with pytest.raises(ManifestError, match="no version"):
        read_version_files(tmp_path)
    (versions / "1.manifest").write_bytes(content)
    with pytest.raises(ManifestError, match="overwritten"):
        read_version_files(tmp_path)
