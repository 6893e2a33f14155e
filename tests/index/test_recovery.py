"""What a crash leaves is found at the next start: the ids are read, and what was set aside is said."""

from __future__ import annotations

import errno
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from index.running import index_all

from anchord.config.paths import Paths, find_paths
from anchord.config.schema import Config, EmbeddingConfig
from anchord.errors import (
    DimensionMismatchError,
    StoreDamagedError,
    StoreError,
    StoreUnavailableError,
)
from anchord.index import recovery
from anchord.index.archive_recovery import record_damage
from anchord.index.clean_shutdown import record_clean_shutdown, record_start, was_clean_shutdown
from anchord.index.opening import open_writer
from anchord.index.recovery import (
    begin_promotion,
    finish_promotion,
    open_or_recover_table,
    open_or_reset_catalog,
    open_or_reset_cli_state,
)
from anchord.index.session import IndexWriter
from anchord.store.catalog.catalog import SqliteCatalog
from anchord.store.table.damage import TableRepair, list_table_files
from anchord.store.table.pinned_files import PINNED_NAME, pin_table

CONFIG = Config(embedding=EmbeddingConfig(provider="hash"))


@pytest.fixture
def paths(tmp_path: Path) -> Paths:
    """Give a home, closed in good order, with an index of three files."""
    docs = tmp_path / "docs"
    docs.mkdir()
    for number in range(3):
        (docs / f"{number}.md").write_text(f"# Note {number}\n\nWords of note {number}.\n")
    (tmp_path / "home").mkdir(mode=0o700)
    found = find_paths({"ANCHORD_HOME": str(tmp_path / "home")})
    found.create_folders()
    writer = open_writer(found, CONFIG, [str(docs)])
    index_all(writer)
    writer.close()
    return found


@pytest.fixture
def writer(paths: Paths) -> Iterator[IndexWriter]:
    """Give the same index, opened."""
    opened = open_writer(paths, CONFIG, [])
    yield opened
    opened.close()


def table_of(paths: Paths) -> Path:
    return paths.data_folder / "lance" / "chunks.lance"


def opened_table(
    writer: IndexWriter, repairs: list[str], *, was_clean_shutdown: bool
) -> list[str] | None:
    """Open the table as a start does; return its ids, None if they cannot be read."""
    folder = str(writer.paths.data_folder / "lance")
    store = open_or_recover_table(
        writer.paths, folder, writer.profile, repairs, was_clean_shutdown=was_clean_shutdown
    )
    try:
        return sorted(store.all_ids())
    except StoreError:
        return None


def test_after_an_unclean_stop_the_ids_are_read_and_damage_is_repaired_at_the_start(
    writer: IndexWriter,
) -> None:
    for file in (table_of(writer.paths) / "data").iterdir():
        file.write_bytes(b"")
    repairs: list[str] = []
    assert opened_table(writer, repairs, was_clean_shutdown=True) is None
    assert repairs == []
    assert opened_table(writer, repairs, was_clean_shutdown=False) == []
    assert len(repairs) == 1
    assert "1 data files of the table were lost or damaged" in repairs[0]


def test_a_sound_table_is_opened_as_it_is_after_an_unclean_stop(writer: IndexWriter) -> None:
    repairs: list[str] = []
    ids = opened_table(writer, repairs, was_clean_shutdown=False)
    assert ids
    assert len(ids) == 3
    assert repairs == []
    assert not writer.paths.damaged_folder.exists()


def test_what_a_killed_writer_and_a_killed_backup_left_is_deleted_at_the_start(
    writer: IndexWriter,
) -> None:
    folder = table_of(writer.paths).parent
    left = table_of(writer.paths) / "data" / "half.tmp"
    left.write_bytes(b"half")
    pin_table(folder)
    repairs: list[str] = []
    opened_table(writer, repairs, was_clean_shutdown=True)
    assert repairs == ["deleted 1 temporary files of a writer that was killed"]
    assert not left.exists()
    assert not (folder / PINNED_NAME).exists()


class Table:
    """A table whose reads can be made to fail."""

    fails: dict[str, StoreError]
    opened: list[str]
    read: list[str]

    def __init__(self, uri: str, dimension: int, model_id: str, *, table_name: str) -> None:
        """Open it."""
        assert (dimension, model_id) == (3, "model")
        self.opened.append(f"{uri}/{table_name}")

    def all_ids(self) -> list[str]:
        """Return no id, or fail."""
        self._fail("all_ids")
        return []

    def read_indices(self) -> None:
        """Do nothing, or fail."""
        self._fail("read_indices")

    def _fail(self, name: str) -> None:
        self.read.append(name)
        if name in self.fails:
            raise self.fails.pop(name)


class Opening:
    """The start of a process over a table of these."""

    def __init__(self, base: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        """Begin with a sound table."""
        (base / "home").mkdir(mode=0o700)
        self.paths = find_paths({"ANCHORD_HOME": str(base / "home")})
        self.paths.create_folders()
        self.folder = self.paths.data_folder / "lance"
        (self.folder / "chunks.lance").mkdir(parents=True)
        self.repairs: list[str] = []
        self.found = TableRepair(repairs=("it was repaired",))
        self.rebuilt: list[bool] = []
        Table.fails, Table.opened, Table.read = {}, [], []
        monkeypatch.setattr(recovery, "LanceStore", Table)
        monkeypatch.setattr(recovery, "repair_table", self._repair)

    def _repair(self, *_: object, rebuild_indices: bool) -> TableRepair:
        self.rebuilt.append(rebuild_indices)
        return self.found

    def open(self, *, was_clean_shutdown: bool) -> None:
        """Open the table."""
        profile: Any = SimpleNamespace(dimensions=3, embedder=SimpleNamespace(model_id="model"))
        open_or_recover_table(
            self.paths,
            str(self.folder),
            profile,
            self.repairs,
            was_clean_shutdown=was_clean_shutdown,
        )


@pytest.fixture
def opening(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Opening:
    return Opening(tmp_path, monkeypatch)


@pytest.mark.parametrize(("call", "rebuilds"), [("all_ids", False), ("read_indices", True)])
def test_rows_and_search_indexes_that_cannot_be_read_are_repaired_after_an_unclean_stop(
    opening: Opening,
    call: str,
    rebuilds: bool,  # noqa: FBT001 - a column of the table
) -> None:
    Table.fails = {call: StoreError("cannot be read", "")}
    opening.open(was_clean_shutdown=True)
    assert (opening.repairs, Table.read) == ([], [])
    opening.open(was_clean_shutdown=False)
    assert opening.repairs == ["it was repaired"]
    assert Table.read == ["all_ids", "read_indices"][: 1 + rebuilds], "once: the repair read it all"
    assert opening.rebuilt == [rebuilds]
    assert Table.opened == [f"{opening.folder}/chunks"] * 3
    opening.open(was_clean_shutdown=False)
    assert len(opening.repairs) == 1


@pytest.mark.parametrize("call", ["all_ids", "read_indices"])
def test_a_table_that_cannot_be_used_now_is_refused_and_not_repaired(
    opening: Opening, call: str
) -> None:
    Table.fails = {call: StoreUnavailableError("permission denied", "")}
    with pytest.raises(StoreUnavailableError, match="permission denied"):
        opening.open(was_clean_shutdown=False)
    assert (opening.repairs, opening.rebuilt) == ([], [])
    assert not opening.paths.damaged_folder.exists()


@pytest.mark.parametrize(
    "found",
    [TableRepair(), TableRepair(repairs=("lost",), is_readable=False)],
    ids=["nothing to repair", "no version opens"],
)
def test_a_table_that_a_repair_does_not_help_is_moved_aside_and_made_again(
    opening: Opening, found: TableRepair
) -> None:
    opening.found = found
    Table.fails = {"all_ids": StoreError("cannot be read", "")}
    opening.open(was_clean_shutdown=False)
    (aside,) = opening.paths.damaged_folder.glob("*/chunks.lance")
    assert opening.repairs == [
        f"the table is rebuilt from the files: cannot be read (the former table is in {aside.parent})"
    ]


def test_rows_of_another_size_are_no_damage_and_the_table_is_made_again(
    opening: Opening, monkeypatch: pytest.MonkeyPatch
) -> None:
    Table.fails = {"all_ids": StoreError("unused", "")}

    def open_table(*_: object, **__: object) -> Table:
        if Table.fails:
            Table.fails.clear()
            raise DimensionMismatchError("the vectors have another size", "")
        return Table("", 3, "model", table_name="chunks")

    monkeypatch.setattr(recovery, "LanceStore", open_table)
    opening.open(was_clean_shutdown=True)
    assert opening.rebuilt == []
    assert "the table is rebuilt from the files" in opening.repairs[0]


def test_a_remote_table_that_cannot_be_read_is_refused_and_not_moved(
    writer: IndexWriter, monkeypatch: pytest.MonkeyPatch
) -> None:
    def unreadable(*_: object, **__: object) -> None:
        raise StoreDamagedError("cannot be read", "")

    monkeypatch.setattr("anchord.index.recovery.LanceStore", unreadable)
    repairs: list[str] = []
    with pytest.raises(StoreDamagedError):
        open_or_recover_table(
            writer.paths, "db://remote", writer.profile, repairs, was_clean_shutdown=True
        )
    assert repairs == []


def test_damaged_pages_of_the_catalog_are_only_looked_for_after_an_unclean_stop(
    paths: Paths, monkeypatch: pytest.MonkeyPatch
) -> None:
    looked: list[SqliteCatalog] = []

    def is_intact(catalog: SqliteCatalog) -> bool:
        looked.append(catalog)
        return False

    monkeypatch.setattr(SqliteCatalog, "is_intact", is_intact)
    for clean, repair_count in (("1", 0), ("0", 1)):
        repairs: list[str] = []
        with SqliteCatalog(paths.catalog_file) as catalog:
            catalog.set_meta("clean", clean)
        with open_or_reset_catalog(paths, repairs) as catalog:
            assert bool(catalog.root_names()) == (clean == "1")
        assert len(repairs) == len(looked) == repair_count
    copies = list(paths.damaged_folder.glob("*/state.sqlite"))
    assert len(copies) == 1
    assert "pages of it are damaged" in repairs[0]
    assert str(copies[0].parent) in repairs[0]


def test_a_catalog_whose_note_of_its_last_stop_is_on_a_damaged_page_is_checked(
    paths: Paths, monkeypatch: pytest.MonkeyPatch
) -> None:
    def damaged(*_: object) -> str:
        raise StoreDamagedError("a page is damaged", "")

    with monkeypatch.context() as fault:
        fault.setattr(SqliteCatalog, "get_meta", damaged)
        repairs: list[str] = []
        open_or_reset_catalog(paths, repairs).close()
        assert repairs == []
        fault.setattr(SqliteCatalog, "is_intact", lambda _: False)
        open_or_reset_catalog(paths, repairs).close()
    assert len(repairs) == 1
    assert "pages of it are damaged" in repairs[0]


def test_a_catalog_that_cannot_be_opened_is_set_aside(paths: Paths) -> None:
    damaged = b"no catalog at all " * 400
    paths.catalog_file.write_bytes(damaged)
    repairs: list[str] = []
    with open_or_reset_catalog(paths, repairs) as catalog:
        assert catalog.root_names() == []
        assert catalog.is_intact()
    (copy,) = paths.damaged_folder.glob("*/state.sqlite")
    assert copy.read_bytes() == damaged
    (told,) = repairs
    assert told.startswith("the file catalog was damaged and is rebuilt from the files: ")
    assert str(copy.parent) in told
    with open_or_reset_catalog(paths, repairs):
        assert len(repairs) == 1, "once"


def test_a_catalog_with_damaged_pages_is_closed_before_it_is_moved(
    paths: Paths, monkeypatch: pytest.MonkeyPatch
) -> None:
    with SqliteCatalog(paths.catalog_file) as catalog:
        catalog.set_meta("clean", "0")
    events: list[str] = []
    real_close, real_move = SqliteCatalog.close, recovery.move_sqlite_aside

    def close(catalog: SqliteCatalog) -> None:
        events.append("closed")
        real_close(catalog)

    def move(*given: Any) -> Path:  # noqa: ANN401 - as in the original
        events.append("moved")
        return real_move(*given)

    monkeypatch.setattr(SqliteCatalog, "is_intact", lambda _: False)
    monkeypatch.setattr(SqliteCatalog, "close", close)
    monkeypatch.setattr(recovery, "move_sqlite_aside", move)
    opened = open_or_reset_catalog(paths, [])
    assert events == ["closed", "moved"]
    opened.close()


@pytest.mark.parametrize("about", ["state.sqlite", "next.sqlite"])
def test_damage_that_was_met_makes_the_next_start_rebuild_the_catalog(
    paths: Paths, about: str
) -> None:
    with SqliteCatalog(paths.catalog_file) as catalog:
        catalog.set_meta("clean", "1")
    paths.next_catalog_file.touch()
    error = StoreDamagedError(f"{paths.data_folder / about} is damaged", "")
    assert record_damage(paths, error) is True
    repairs: list[str] = []
    with open_or_reset_catalog(paths, repairs) as catalog:
        assert catalog.root_names() == []
    assert len(repairs) == 1
    assert not paths.next_catalog_file.exists()
    with open_or_reset_catalog(paths, repairs):
        assert len(repairs) == 1, "once"


def test_damage_of_something_else_is_not_the_catalogs(paths: Paths) -> None:
    error = StoreDamagedError(f"{paths.vector_cache_file} is damaged", "")
    assert record_damage(paths, error) is False
    repairs: list[str] = []
    open_or_reset_catalog(paths, repairs).close()
    assert repairs == []


def test_damage_that_cannot_be_noted_is_not_taken_for_noted(
    paths: Paths, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*_: object) -> None:
        raise OSError(errno.ENOSPC, "full")

    monkeypatch.setattr(Path, "touch", full)
    error = StoreDamagedError(f"{paths.catalog_file} is damaged", "")
    assert record_damage(paths, error) is False


def test_the_list_of_added_folders_that_was_damaged_is_set_aside_and_that_is_said(
    paths: Paths,
) -> None:
    paths.cli_state_file.write_text("{no json")
    paths.cli_state_file.with_name("asked-copy.json").unlink()
    repairs: list[str] = []
    assert not open_or_reset_cli_state(paths, repairs).given_roots
    copies = list(paths.damaged_folder.glob("*/asked.json"))
    assert [copy.read_text() for copy in copies] == ["{no json"]
    assert len(repairs) == 1
    assert str(copies[0].parent) in repairs[0]
    assert not open_or_reset_cli_state(paths, []).given_roots


def test_a_start_says_what_it_repaired_for_as_long_as_the_writer_runs(paths: Paths) -> None:
    paths.archive_file.write_bytes(b"no database at all " * 400)
    with SqliteCatalog(paths.catalog_file) as catalog:
        catalog.set_meta("clean", "0")
    for file in (table_of(paths) / "data").iterdir():
        file.write_bytes(b"")
    opened = open_writer(paths, CONFIG, [])
    try:
        for _ in range(2):
            told = "\n".join(opened.repairs)
            assert "the archive of conversations was damaged" in told
            assert len(opened.repairs) == 2
            index_all(opened)
        assert opened.store.count_rows() == 3
    finally:
        opened.close()


# Whether the last stop was a clean one


def test_only_a_stop_in_good_order_with_the_same_files_of_the_table_is_clean(
    writer: IndexWriter,
) -> None:
    catalog, table = writer.catalog, table_of(writer.paths)
    record_clean_shutdown(catalog, list_table_files(table))
    assert was_clean_shutdown(catalog, table)
    record_start(catalog)
    assert not was_clean_shutdown(catalog, table)
    record_clean_shutdown(catalog, list_table_files(table))
    stray = table / "data" / "stray.lance"
    stray.write_bytes(b"x")
    assert not was_clean_shutdown(catalog, table)
    stray.unlink()
    assert was_clean_shutdown(catalog, table)


# A new index that takes over


def test_a_full_disk_before_the_new_index_takes_over_leaves_the_former_one(
    writer: IndexWriter, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*_: Any) -> None:  # noqa: ANN401 - as in the original
        raise StoreError("database or disk is full", "make room")

    monkeypatch.setattr(SqliteCatalog, "overwrite_from", full)
    with pytest.raises(StoreError, match="full"):
        begin_promotion(writer.paths, writer.catalog)
    assert not writer.paths.promotion_marker.exists()
    finish_promotion(writer.paths, str(writer.paths.data_folder / "lance"), [])
    assert len(writer.store.all_ids()) == 3


@pytest.mark.parametrize("died_before", ["catalog", "deletion", "table", "marker"])
def test_a_new_index_takes_over_whole_wherever_an_earlier_attempt_died(
    paths: Paths, died_before: str
) -> None:
    folder = paths.data_folder / "lance"
    following = folder / "next.lance"
    with SqliteCatalog(paths.next_catalog_file) as following_catalog:
        following_catalog.set_meta("of", "the new index")
    if died_before != "marker":
        following.mkdir()
        (following / "new").touch()
    paths.promotion_marker.touch()
    if died_before != "catalog":
        with SqliteCatalog(paths.catalog_file) as catalog:
            catalog.overwrite_from(paths.next_catalog_file)
    if died_before in {"table", "marker"}:
        recovery.delete_next_catalog(paths)
    repairs: list[str] = []
    for _ in range(2):
        finish_promotion(paths, str(folder), repairs)
        with SqliteCatalog(paths.catalog_file) as catalog:
            assert catalog.get_meta("of") == "the new index"
    assert (table_of(paths) / "new").exists() == (died_before != "marker")
    assert {each.name for each in folder.iterdir()} == {"chunks.lance"}
    assert not list(paths.data_folder.glob("next.sqlite*"))
    assert (paths.promotion_marker.exists(), repairs) == (False, [])


def test_a_new_index_does_not_take_over_without_its_marker(paths: Paths) -> None:
    following = paths.data_folder / "lance" / "next.lance"
    following.mkdir()
    SqliteCatalog(paths.next_catalog_file).close()
    finish_promotion(paths, str(following.parent), [])
    assert following.exists()
    assert paths.next_catalog_file.exists()


def test_a_damaged_catalog_of_the_new_index_is_said_and_the_former_one_is_kept(
    paths: Paths,
) -> None:
    paths.next_catalog_file.write_bytes(b"no catalogue at all " * 400)
    paths.promotion_marker.touch()
    repairs: list[str] = []
    finish_promotion(paths, str(paths.data_folder / "lance"), repairs)
    assert len(repairs) == 1
    assert "the file catalog of a new index was damaged" in repairs[0]
    assert not paths.next_catalog_file.exists()
    assert not paths.promotion_marker.exists()
    with SqliteCatalog(paths.catalog_file) as catalog:
        assert catalog.root_names()
