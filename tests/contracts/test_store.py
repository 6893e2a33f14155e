"""The contract of every store, on the fake and on LanceDB; then what only LanceDB has."""

from __future__ import annotations

import shutil
from array import array
from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import timedelta
from pathlib import Path
from random import Random
from typing import Any

import lance as pylance
import lancedb
import pyarrow as pa
import pytest
from fakes import FakeStore

from anchord.core.diff import row_hash
from anchord.core.ids import make_doc_id
from anchord.core.ports import ChunkStore
from anchord.core.types import DatedFiles, RootedPath, Row, ScoredRow, SearchFilters, Vector
from anchord.errors import DimensionMismatchError, NewerStateError, StoreError, UsageError
from anchord.store.table import compaction, connection
from anchord.store.table.damage import salvage_vectors
from anchord.store.table.event_loop import run_sync
from anchord.store.table.maintenance import maintain
from anchord.store.table.schema import rows_to_arrow
from anchord.store.table.table import LanceStore
from anchord.store.table.versions import VERSION_METADATA_KEY

ANY = SearchFilters()
ODD_NAMES = (
    'it\'s "x".md',
    "' OR '1'='1",
    "a'; DROP TABLE chunks; --.md",
    "a/*b*/.md",
    "back\\slash.md",
    "100%_.md",
    "new\nline.md",
    "日本 🎈/ü.md",
    "${x} {y} `z`.md",
)


def vector(*numbers: float) -> Vector:
    """Return a vector of four numbers; missing ones are 0."""
    return array("f", (*numbers, *[0.0] * (4 - len(numbers)))).tobytes()


def row(row_id: str, path: str = "a.md", text: str = "some words", **others: Any) -> Row:  # noqa: ANN401 - any field
    """Return a row; its vector key is made of its text, so rows of one text share it."""
    document = make_doc_id(RootedPath(others.get("root", "notes"), path))
    made = Row(
        id=row_id,
        doc_id=document,
        root="notes",
        path=path,
        kind="markdown",
        header_path="Guide > Part",
        content_hash="hash",
        vector_key=f"key of {text}",
        text=text,
        search_text=text,
    )
    return replace(made, **others)


EAST, NORTH, BETWEEN, WEST = vector(1), vector(0, 1), vector(1, 1), vector(-1)


@pytest.fixture(params=["fake", "lance"])
def store(request: pytest.FixtureRequest, tmp_path: Path) -> ChunkStore:
    """Return an empty store of either kind."""
    return FakeStore() if request.param == "fake" else lance(tmp_path)


def lance(folder: Path, *, read_only: bool = False, dimension: int = 4) -> LanceStore:
    return LanceStore(str(folder / "lance"), dimension, "model", read_only=read_only)


def fill(store: ChunkStore, *rows: Row, vectors: Sequence[Vector] = ()) -> None:
    """Write rows with vectors of their own, or all with one."""
    store.upsert(
        rows, {row.vector_key: vectors[n] if vectors else EAST for n, row in enumerate(rows)}
    )


def found(scored: Sequence[ScoredRow]) -> list[str]:
    return [each.id for each in scored]


# Writing


def test_a_new_store_is_empty(store: ChunkStore) -> None:
    assert list(store.all_ids()) == []
    assert store.stats().rows == 0
    assert list(store.search_by_vector(EAST, 5, ANY)) == []
    assert list(store.search_by_words("words", 5, ANY)) == []


def test_a_row_comes_back_as_it_was_written(store: ChunkStore) -> None:
    written = Row(
        id="1",
        doc_id="d",
        root="notes",
        path="a/b.md",
        kind="code",
        header_path="A > B",
        content_hash="h",
        vector_key="k",
        text="text\n\ttwo  \n",
        search_text="search text",
        room="room",
    )
    store.upsert([written], {"k": EAST})
    assert list(store.get_rows(["1"])) == [written]


def test_writing_twice_is_writing_once(store: ChunkStore) -> None:
    for _ in range(2):
        fill(store, row("1"), row("2"))
    assert sorted(store.all_ids()) == ["1", "2"]
    assert store.stats().rows == 2


def test_a_row_of_a_known_id_replaces_the_old_one(store: ChunkStore) -> None:
    fill(store, row("1", text="old"), row("2", text="other"))
    fill(store, row("1", text="new"), vectors=[NORTH])
    assert sorted(each.text for each in store.get_rows(["1", "2"])) == ["new", "other"]
    assert store.vectors_by_key_of_rows(["1"]) == {"key of new": NORTH}


def test_an_id_twice_in_a_batch_is_written_once_with_its_last_row(store: ChunkStore) -> None:
    store.upsert([row("1", text="first"), row("2"), row("1", text="last")], {
        "key of first": EAST, "key of some words": EAST, "key of last": NORTH,
    })  # fmt: skip
    assert sorted(store.all_ids()) == ["1", "2"]
    assert [each.text for each in store.get_rows(["1"])] == ["last"]
    assert store.vectors_by_key_of_rows(["1"]) == {"key of last": NORTH}


def test_writing_nothing_is_no_error(store: ChunkStore) -> None:
    store.upsert([], {})
    assert list(store.all_ids()) == []


def test_a_row_without_its_vector_is_refused_and_nothing_is_written(store: ChunkStore) -> None:
    with pytest.raises(KeyError):
        store.upsert([row("1", text="one"), row("2", text="two")], {"key of one": EAST})
    assert list(store.all_ids()) == []


def test_vectors_of_other_keys_do_no_harm(store: ChunkStore) -> None:
    store.upsert([row("1")], {"key of some words": EAST, "key of nothing": NORTH})
    assert store.vectors_by_key(["key of nothing"]) == {}


def test_deleting_takes_the_ids_named_and_no_others(store: ChunkStore) -> None:
    fill(store, row("1"), row("2"), row("3"))
    store.delete_rows(["1", "3"])
    assert list(store.all_ids()) == ["2"]
    assert found(store.search_by_words("words", 5, ANY)) == ["2"]


def test_deleting_unknown_ids_is_no_error(store: ChunkStore) -> None:
    fill(store, row("1"))
    store.delete_rows(["2", "2", "", "' OR 1=1 --"])
    store.delete_rows([])
    assert list(store.all_ids()) == ["1"]


def test_deleting_twice_is_deleting_once(store: ChunkStore) -> None:
    fill(store, row("1"), row("2"))
    store.delete_rows(["1", "1"])
    store.delete_rows(["1"])
    assert list(store.all_ids()) == ["2"]


def test_more_ids_than_fit_a_statement_are_handled(store: ChunkStore) -> None:
    many = [row(f"{n:05}", text=f"t{n}") for n in range(2_500)]
    store.upsert(many, {each.vector_key: EAST for each in many})
    assert len(store.get_rows([each.id for each in many])) == 2_500
    assert len(store.vectors_by_key([each.vector_key for each in many])) == 2_500
    store.delete_rows([each.id for each in many[1:]])
    assert list(store.all_ids()) == ["00000"]


# Rows without a vector


def fill_due(store: ChunkStore, *rows: Row) -> None:
    """Write rows without vectors."""
    store.upsert(rows, {}, due={row.vector_key: b"" for row in rows})


def test_a_row_without_a_vector_is_found_by_words_alone(store: ChunkStore) -> None:
    fill_due(store, row("1", text="one words"))
    fill(store, row("2", text="two words"), vectors=[WEST])
    assert list(store.get_rows(["1"])) == [row("1", text="one words")]
    assert sorted(found(store.search_by_words("words", 5, ANY))) == ["1", "2"]
    for filters in (ANY, SearchFilters(root="notes")):
        assert found(store.search_by_vector(EAST, 5, filters)) == ["2"]
    assert list(store.find_corrupt_ids(["1", "2"])) == []
    assert dict(store.all_row_hashes())["1"] == row_hash(row("1", text="one words"))


def test_rows_without_vectors_are_counted_and_listed(store: ChunkStore) -> None:
    fill_due(store, row("1", text="one"), row("2", path="b.md", text="two"))
    fill(store, row("3", text="three"))
    a, b, none = (RootedPath("notes", path) for path in ("a.md", "b.md", "c.md"))
    assert (store.count_due(), sorted(store.due_ids())) == (2, ["1", "2"])
    assert list(store.due_ids_among(["2", "unknown"])) == ["2"]
    by_file = store.due_ids_of_files([a, b, none])
    assert {file: list(ids) for file, ids in by_file.items()} == {a: ["1"], b: ["2"], none: []}


def test_a_missing_vector_is_not_looked_up(store: ChunkStore) -> None:
    fill_due(store, row("1", text="one"))
    assert store.vectors_by_key(["key of one"]) == {}
    assert store.vectors_by_key_of_rows(["1"]) == {}
    assert store.vectors_by_id(["1"]) == {}
    assert store.look_up_vectors(["1"], ["key of one"]) == ({"1": ("~key of one", b"")}, {})


def test_vectors_are_added_to_the_rows_that_lack_them(store: ChunkStore) -> None:
    fill_due(store, row("1", text="one"), row("2", text="two"))
    fill(store, row("3", text="three"))
    store.set_vectors(
        {
            "1": ("key of one", NORTH),
            "2": ("key of another text", NORTH),
            "3": ("key of three", NORTH),
            "gone": ("key of nothing", NORTH),
        }
    )
    assert store.vectors_by_id(["1", "2", "3"]) == {"1": NORTH, "3": EAST}
    assert store.vectors_by_key(["key of one"]) == {"key of one": NORTH}
    assert list(store.due_ids()) == ["2"]
    assert sorted(store.all_ids()) == ["1", "2", "3"]
    assert list(store.find_corrupt_ids(["1", "2", "3"])) == []
    assert found(store.search_by_words("one", 5, ANY)) == ["1"]
    assert found(store.search_by_vector(NORTH, 1, ANY)) == ["1"]
    assert list(store.ids_of_file(RootedPath("notes", "a.md"))) in (
        ["1", "2", "3"],
        ["2", "3", "1"],
    )
    assert store.look_up_vectors(["1"], []) == ({"1": ("key of one", NORTH)}, {})


def test_adding_no_vector_is_no_error(store: ChunkStore) -> None:
    fill(store, row("1"))
    store.set_vectors({})
    store.set_vectors({"gone": ("key", EAST)})
    assert list(store.all_ids()) == ["1"]


def test_a_row_with_a_vector_can_lose_it_to_a_new_text(store: ChunkStore) -> None:
    fill(store, row("1", text="old"), row("2", text="other"))
    fill_due(store, row("1", text="new"))
    assert store.vectors_by_id(["1", "2"]) == {"2": EAST}
    store.delete_rows(["1"])
    assert (store.count_due(), list(store.all_ids())) == (0, ["2"])


# Provisional vectors


def fill_provisional(store: ChunkStore, written: Row, provisional: Vector) -> None:
    """Write a row without its own vector, but with that of another text."""
    store.upsert([written], {}, due={written.vector_key: provisional})


def test_a_row_is_found_by_its_provisional_vector_and_still_lacks_its_own(
    store: ChunkStore,
) -> None:
    fill(store, row("1", text="old"), row("2", text="other"), vectors=[NORTH, WEST])
    fill_provisional(store, row("1", text="new"), NORTH)
    for filters in (ANY, SearchFilters(root="notes")):
        assert found(store.search_by_vector(NORTH, 1, filters)) == ["1"]
    assert found(store.search_by_words("new", 5, ANY)) == ["1"]
    assert list(store.get_rows(["1"])) == [row("1", text="new")]
    assert (store.count_due(), list(store.due_ids())) == (1, ["1"])
    assert list(store.find_corrupt_ids(["1", "2"])) == []
    assert dict(store.all_row_hashes())["1"] == row_hash(row("1", text="new"))


def test_a_provisional_vector_is_that_of_no_row_and_no_key(store: ChunkStore) -> None:
    fill_provisional(store, row("1", text="new"), NORTH)
    assert store.vectors_by_key(["key of new"]) == {}
    assert store.vectors_by_key_of_rows(["1"]) == {}
    assert store.vectors_by_id(["1"]) == {}
    marked = {"1": ("~key of new", NORTH)}
    assert store.look_up_vectors(["1"], ["key of new"]) == (marked, {})
    assert store.look_up_vectors([], ["key of new"]) == ({}, {})


def test_a_rows_own_vector_replaces_the_provisional_one(store: ChunkStore) -> None:
    fill_provisional(store, row("1", text="new"), NORTH)
    store.set_vectors({"1": ("key of another text", WEST)})
    assert found(store.search_by_vector(NORTH, 1, ANY)) == ["1"]
    store.set_vectors({"1": ("key of new", EAST)})
    assert store.count_due() == 0
    assert store.vectors_by_id(["1"]) == {"1": EAST}
    (hit,) = store.search_by_vector(EAST, 1, ANY)
    assert hit.id == "1"
    assert hit.score == pytest.approx(1.0)
    assert list(store.find_corrupt_ids(["1"])) == []


def test_a_provisional_vector_ends_with_its_row(store: ChunkStore) -> None:
    fill_provisional(store, row("1", text="new"), NORTH)
    fill_due(store, row("1", text="newer"))
    assert list(store.search_by_vector(NORTH, 5, ANY)) == []
    fill_provisional(store, row("1", text="newer"), NORTH)
    store.delete_rows(["1"])
    assert list(store.search_by_vector(NORTH, 5, ANY)) == []
    assert store.count_due() == 0


def test_rows_with_and_without_provisional_vectors_are_written_together(store: ChunkStore) -> None:
    rows = [row("1", text="one"), row("2", text="two"), row("3", text="three")]
    fill(store, row("1", text="old"))
    due = {"key of one": NORTH, "key of two": b""}
    store.upsert(rows, {"key of three": WEST}, due=due)
    assert sorted(store.due_ids()) == ["1", "2"]
    assert sorted(found(store.search_by_vector(NORTH, 5, ANY))) == ["1", "3"]


def test_a_damaged_provisional_vector_is_found_and_never_replaced(tmp_path: Path) -> None:
    store = lance(tmp_path)
    fill_provisional(store, row("1", text="new"), NORTH)
    dataset = pylance.dataset(str(tmp_path / "lance" / "chunks.lance"))
    damaged = dataset.to_table(columns=["id"]).append_column(
        "vector", pa.array([[0.0, 0.5, 0.0, 0.0]], pa.list_(pa.float32(), 4))
    )
    dataset.merge_insert("id").when_matched_update_all().execute(damaged)
    store = lance(tmp_path)
    assert list(store.find_corrupt_ids(["1"])) == ["1"]
    store.set_vectors({"1": ("key of new", EAST)})
    assert store.count_due() == 1


def test_a_table_of_an_older_version_gets_no_provisional_vectors(tmp_path: Path) -> None:
    fill(lance(tmp_path), row("2", text="other"))
    dataset = pylance.dataset(str(tmp_path / "lance" / "chunks.lance"))
    dataset.update_schema_metadata({VERSION_METADATA_KEY: "5"})
    store = lance(tmp_path)
    fill_provisional(store, row("1", text="new"), NORTH)
    assert found(store.search_by_vector(NORTH, 5, ANY)) == ["2"]
    assert store.look_up_vectors(["1"], []) == ({"1": ("~key of new", b"")}, {})


def test_an_anchord_that_does_not_know_provisional_vectors_refuses_the_table(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    fill_provisional(lance(tmp_path), row("1", text="new"), NORTH)
    monkeypatch.setattr(connection, "SCHEMA_VERSION", 5)
    with pytest.raises(NewerStateError):
        lance(tmp_path)


def test_provisional_vectors_are_not_salvaged(tmp_path: Path) -> None:
    store = lance(tmp_path)
    fill_provisional(store, row("1", text="new"), NORTH)
    fill(store, row("2", text="other"), vectors=[WEST])
    aside = tmp_path / "aside"
    shutil.copytree(tmp_path / "lance" / "chunks.lance" / "data", aside)
    found_vectors = salvage_vectors(tmp_path / "nowhere", [aside], lambda _: True)
    assert list(found_vectors) == [{"key of other": WEST}]


def test_a_vector_index_is_built_of_the_rows_that_have_vectors(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(compaction, "MIN_VECTOR_INDEX_ROWS", 300)
    store = lance(tmp_path, dimension=8)
    dice = Random(1)  # noqa: S311 - a test's dice
    rows = [row(f"{n:032x}", text=f"text {n}") for n in range(600)]
    vectors = {
        each.id: (each.vector_key, array("f", [dice.gauss(0, 1) for _ in range(8)]).tobytes())
        for each in rows
    }
    fill_due(store, *rows)
    for start in range(0, 600, 200):
        store.set_vectors({each.id: vectors[each.id] for each in rows[start : start + 200]})
        assert maintain(store, merge_indices=True) == []
        indices = pylance.dataset(store.dataset_uri).describe_indices()
        assert any(each.name == "vector_idx" for each in indices) == (start > 0)
        sought = vectors[rows[start].id][1]
        assert found(store.search_by_vector(sought, 1, ANY)) == [rows[start].id]
    assert store.count_due() == 0
    assert list(store.find_corrupt_ids([each.id for each in rows])) == []


# Looking up


def test_the_ids_of_a_file_are_those_of_its_root_and_path(store: ChunkStore) -> None:
    fill(
        store,
        row("1"),
        row("2"),
        row("3", path="b.md"),
        row("4", root="other"),
        row("5", path="a.md/a.md"),
    )
    assert sorted(store.ids_of_file(RootedPath("notes", "a.md"))) == ["1", "2"]
    assert list(store.ids_of_file(RootedPath("notes", "c.md"))) == []


def test_the_rows_of_many_files_are_found_at_once(store: ChunkStore) -> None:
    undecodable, escaped = RootedPath("notes", "caf\udce9.md"), RootedPath("notes", "caf\\xe9.md")
    other, none = RootedPath("other", "a.md"), RootedPath("notes", "c.md")
    files = [undecodable, escaped, other, none]
    fill(
        store,
        *(row(str(n), path=file.path, root=file.root) for n, file in enumerate(files[:3])),
        row("9", path="a.md"),
    )
    found = store.ids_of_files(files)
    assert {file: list(ids) for file, ids in found.items()} == {
        undecodable: ["0"], escaped: ["1"], other: ["2"], none: [],
    }  # fmt: skip


@pytest.mark.parametrize("path", ODD_NAMES)
def test_a_path_with_quotes_or_sql_is_only_a_path(store: ChunkStore, path: str) -> None:
    fill(store, row("1", path=path), row("2"))
    assert list(store.ids_of_file(RootedPath("notes", path))) == ["1"]
    assert [each.path for each in store.get_rows(["1"])] == [path]
    store.delete_rows(store.ids_of_file(RootedPath("notes", path)))
    assert list(store.all_ids()) == ["2"]


@pytest.mark.parametrize("text", ODD_NAMES)
def test_odd_text_in_any_field_is_only_text(store: ChunkStore, text: str) -> None:
    odd = row(text, path="a.md", text=text, root=text, kind=text, header_path=text, room=text)
    fill(store, odd, row("2"))
    assert list(store.get_rows([text])) == [odd]
    assert store.vectors_by_key([f"key of {text}"]) == {f"key of {text}": EAST}
    assert list(store.ids_of_file(RootedPath(text, "a.md"))) == [text]
    assert found(store.search_by_vector(EAST, 5, SearchFilters(root=text, kind=text))) == [text]


def test_an_undecodable_path_is_found_by_the_name_the_system_gives(store: ChunkStore) -> None:
    fill(store, row("1", path="caf\udce9.md"), row("2"))
    assert list(store.ids_of_file(RootedPath("notes", "caf\udce9.md"))) == ["1"]
    assert [each.path for each in store.get_rows(["1"])] == ["caf\\xe9.md"]


def test_vectors_are_shared_by_key_across_rows(store: ChunkStore) -> None:
    fill(
        store,
        row("1", text="same"),
        row("2", path="b.md", text="same"),
        row("3", text="else"),
        vectors=[EAST, EAST, NORTH],
    )
    assert store.vectors_by_key(["key of same", "key of else", "key of none"]) == {
        "key of same": EAST,
        "key of else": NORTH,
    }
    store.delete_rows(["1"])
    assert store.vectors_by_key(["key of same"]) == {"key of same": EAST}
    store.delete_rows(["2"])
    assert store.vectors_by_key(["key of same"]) == {}


def test_vectors_of_rows_come_by_their_keys(store: ChunkStore) -> None:
    fill(store, row("1", text="one"), row("2", text="two"), vectors=[EAST, BETWEEN])
    assert store.vectors_by_key_of_rows(["2", "3"]) == {"key of two": BETWEEN}


def test_each_row_has_its_own_vector_also_when_they_share_a_key(store: ChunkStore) -> None:
    fill(store, row("1", text="same"), vectors=[EAST])
    fill(store, row("2", text="same"), vectors=[NORTH])
    assert store.vectors_by_id(["1", "2", "3"]) == {"1": EAST, "2": NORTH}
    assert store.vectors_by_id([]) == {}


def test_rows_that_are_said_to_be_absent_are_written_beside_those_that_are_there(
    store: ChunkStore,
) -> None:
    fill(store, row("1", text="old"))
    rows = [row("1", text="new"), row("2", text="two"), row("3", text="three")]
    store.upsert(rows, {each.vector_key: NORTH for each in rows}, absent_ids={"2", "3", "9"})
    assert sorted(store.all_ids()) == ["1", "2", "3"]
    assert {each.id: each.text for each in store.get_rows(["1", "2", "3"])} == {
        "1": "new",
        "2": "two",
        "3": "three",
    }


def test_rows_and_keys_are_looked_up_together(store: ChunkStore) -> None:
    fill(
        store,
        row("1", text="one"),
        row("2", text="two"),
        row("3", text="three"),
        vectors=[NORTH, BETWEEN, EAST],
    )
    two, three = {"2": ("key of two", BETWEEN)}, {"3": ("key of three", EAST)}
    assert store.look_up_vectors(["2", "none"], ["key of one", "key of none"]) == (
        two,
        {"key of one": NORTH},
    )
    assert store.look_up_vectors(["3"], ["key of three"]) == (three, {"key of three": EAST})
    assert store.look_up_vectors(["3"], []) == (three, {})
    assert store.look_up_vectors([], ["key of one"]) == ({}, {"key of one": NORTH})
    assert store.look_up_vectors([], []) == ({}, {})


def test_asking_for_nothing_gives_nothing(store: ChunkStore) -> None:
    fill(store, row("1"))
    assert store.vectors_by_key([]) == {}
    assert store.vectors_by_key_of_rows([]) == {}
    assert list(store.get_rows([])) == []


def test_unknown_and_repeated_ids_give_each_row_once(store: ChunkStore) -> None:
    fill(store, row("1"), row("2"))
    assert [each.id for each in store.get_rows(["2", "9", "2"])] == ["2"]


def test_rows_that_lack_their_vector_are_not_among_the_embedded_ones(store: ChunkStore) -> None:
    fill_due(store, row("1", text="one"))
    fill(store, row("2", text="two", room="kitchen", level=2), row("3", text="three"))
    (found,) = store.get_embedded_rows(["1", "2", "9", "2"])
    assert found == row("2", text="two", room="kitchen", level=2)


def test_what_is_shown_of_rows_is_all_that_is_read(store: ChunkStore) -> None:
    said = row(
        "said",
        source="codex",
        session="s",
        exchange_id="q",
        at="2026",
        tools="[Bash] ls",
        part_index=1,
        total_parts=2,
    )
    fill(store, row("x"), said, row("other"))
    for _ in range(2):  # By their ids; and where a search has found them.
        shown = {each.id: each for each in store.get_display_rows(["said", "x", "unknown", "x"])}
        left_out: dict[str, Any] = dict.fromkeys(
            ("doc_id", "root", "path", "vector_key", "search_text"), ""
        )
        assert shown == {
            each.id: replace(each, **left_out) for each in store.get_rows(["said", "x"])
        }
        assert len(store.search_by_words("words", 9, SearchFilters())) == 3
    exchanges = SearchFilters(session=said.session)
    assert [each.id for each in store.get_display_rows(["said", "x"], exchanges)] == ["said"]


def test_the_hash_of_a_row_is_kept_with_it(store: ChunkStore) -> None:
    fill(store, row("1"), row("2", path="b.md"))
    assert sorted(store.all_row_hashes()) == [
        ("1", row_hash(row("1"))),
        ("2", row_hash(row("2", path="b.md"))),
    ]


def test_statistics_count_the_rows(store: ChunkStore) -> None:
    fill(store, row("1"), row("2"))
    stats = store.stats()
    assert stats.rows == 2
    assert min(stats.fragments, stats.versions, stats.bytes) > 0


@pytest.mark.parametrize(("version", "can_lack_vectors"), [("3", False), ("4", True)])
def test_only_a_table_of_a_version_that_knows_it_can_lack_vectors(
    tmp_path: Path,
    version: str,
    can_lack_vectors: bool,  # noqa: FBT001 - a column of the table
) -> None:
    fill(lance(tmp_path), row("1"))
    dataset = pylance.dataset(str(tmp_path / "lance" / "chunks.lance"))
    dataset.update_schema_metadata({VERSION_METADATA_KEY: version})
    assert lance(tmp_path).can_lack_vectors is can_lack_vectors


# Searching by meaning


def test_the_nearest_come_first_with_their_cosine(store: ChunkStore) -> None:
    rows = [
        row("west", text="w"),
        row("between", text="b"),
        row("east", text="e"),
        row("north", text="n"),
    ]
    fill(store, *rows, vectors=[WEST, BETWEEN, EAST, NORTH])
    hits = store.search_by_vector(vector(5), 3, ANY)
    assert found(hits) == ["east", "between", "north"]
    assert [each.score for each in hits] == pytest.approx([1.0, 0.5**0.5, 0.0], abs=1e-6)


def test_the_limit_counts_after_the_filters(store: ChunkStore) -> None:
    fill(store, *[row(f"{n}", text=f"t{n}") for n in range(20)], row("far", path="far.md", text="far"),
         vectors=[*[EAST] * 20, WEST])  # fmt: skip
    assert found(store.search_by_vector(EAST, 1, SearchFilters(path_glob="far.md"))) == ["far"]


# Searching by words


def test_words_are_found_in_any_case_and_order(store: ChunkStore) -> None:
    fill(store, row("1", text="The quick brown Fox jumps"), row("2", text="A lazy dog sleeps"))
    hits = store.search_by_words("fox QUICK", 5, ANY)
    assert found(hits) == ["1"]
    assert hits[0].score > 0


def test_more_of_the_words_come_first(store: ChunkStore) -> None:
    fill(
        store,
        row("1", text="alpha and others"),
        row("2", text="alpha beta gamma"),
        row("3", text="alpha beta others"),
    )
    assert found(store.search_by_words("alpha beta gamma", 2, ANY)) == ["2", "3"]


def test_words_are_sought_in_the_search_text(store: ChunkStore) -> None:
    fill(store, row("1", text="body", search_text="guide.md Heading body"))
    assert found(store.search_by_words("heading", 5, ANY)) == ["1"]


@pytest.mark.parametrize(
    "text", ["", " \n", '"', "(", "*", "zebra", "AND", "a:b", "-- ' OR 1=1", "\0", "[x", "\\"]
)
def test_odd_questions_find_nothing_and_raise_nothing(store: ChunkStore, text: str) -> None:
    fill(store, row("1", text="quick brown fox"))
    assert list(store.search_by_words(text, 5, ANY)) == []


def test_operators_in_a_question_are_only_words(store: ChunkStore) -> None:
    fill(store, row("1", text="quick brown fox"), row("2", text="lazy dog"))
    assert found(store.search_by_words('fox AND ("', 5, ANY)) == ["1"]
    assert found(store.search_by_words('"fox brown"', 5, ANY)) == ["1"]
    assert found(store.search_by_words("fox -quick", 5, ANY)) == ["1"]


@pytest.mark.parametrize(
    ("filters", "wanted"),
    [
        (SearchFilters(required_phrases=("quick brown",)), ["1", "3"]),
        (SearchFilters(required_phrases=("QUICK  brown", "fox")), ["1"]),
        (SearchFilters(required_phrases=("quick brow",)), []),
        (SearchFilters(required_phrases=("c++",)), ["4"]),
        (SearchFilters(excluded_phrases=("fox",)), ["2", "3", "4"]),
        (SearchFilters(excluded_phrases=("brown", "dog")), ["4"]),
        (SearchFilters(excluded_phrases=("fo",)), ["1", "2", "3", "4"]),
        (SearchFilters(required_prefixes=("br",)), ["1", "3"]),
        (SearchFilters(required_prefixes=("Fo",), excluded_phrases=("dog",)), ["1"]),
        (SearchFilters(required_phrases=("it's (a) 50% [x]",)), []),
    ],
)
def test_phrases_and_beginnings_must_be_there_and_what_is_excluded_not(
    store: ChunkStore, filters: SearchFilters, wanted: Sequence[str]
) -> None:
    texts = {
        "1": "the quick brown fox",
        "2": "a lazy dog",
        "3": "Quick\nbrown bread",
        "4": "written in C++ with words",
    }
    fill(store, *(row(each, text=text) for each, text in texts.items()))
    assert sorted(found(store.search_by_vector(EAST, 9, filters))) == wanted
    assert set(found(store.search_by_words("quick lazy words", 9, filters))) <= set(wanted)
    assert all(store.find_ids_containing(" ", 9, filters) for _ in wanted)


_SAID = {"source": "codex", "session": "s", "at": "2026-03-01T10", "until": "2026-03-01T11"}


@pytest.mark.parametrize(
    ("filters", "wanted"),
    [
        (SearchFilters(chunk_type="code_block"), ["py", "go"]),
        (SearchFilters(languages=("python", "py")), ["py"]),
        (SearchFilters(languages=("c++",)), ["go"]),
        (SearchFilters(languages=("lua", "x')")), ["go"]),
        (SearchFilters(languages=("c", "l", "c+")), []),
        (SearchFilters(languages=("python", "go"), chunk_type="table"), []),
        (SearchFilters(since="2026-03-01T11"), ["said"]),
        (SearchFilters(since="2026-03-01T12"), []),
        (SearchFilters(until="2026-03-01T10"), []),
        (SearchFilters(until="2026-03-01T11", dated_files=DatedFiles(("d1",))), ["said", "py"]),
        (SearchFilters(since="2026-03-02", dated_files=DatedFiles(("d1",))), ["py"]),
        (
            SearchFilters(since="2026-03-02", dated_files=DatedFiles((), is_complement=True)),
            ["py", "go"],
        ),
        (
            SearchFilters(
                since="2026-03-02", dated_files=DatedFiles(("d'1", "d1"), is_complement=True)
            ),
            ["go"],
        ),
    ],
)
def test_filters_by_type_language_and_time(
    store: ChunkStore, filters: SearchFilters, wanted: Sequence[str]
) -> None:
    fill(
        store,
        row("py", doc_id="d1", chunk_type="code_block", language="py"),
        row("go", doc_id="d2", chunk_type="code_block", language="lua go c++"),
        row("said", chunk_type="section", **_SAID),
    )
    assert set(found(store.search_by_vector(EAST, 9, filters))) == set(wanted)
    assert set(found(store.search_by_words("words", 9, filters))) == set(wanted)
    assert set(store.find_ids_containing("words", 9, filters)) == set(wanted)


def test_a_table_of_an_older_version_says_that_it_knows_no_types(tmp_path: Path) -> None:
    fill(lance(tmp_path), row("1"))
    dataset = pylance.dataset(str(tmp_path / "lance" / "chunks.lance"))
    dataset.drop_columns(["chunk_type", "language", "level", "token_count"])
    dataset.update_schema_metadata({VERSION_METADATA_KEY: "4"})
    store = lance(tmp_path)
    for filters in (SearchFilters(chunk_type="text"), SearchFilters(languages=("go",))):
        with pytest.raises(UsageError, match="older version"):
            store.search_by_words("words", 9, filters)
        with pytest.raises(UsageError, match="older version"):
            store.search_by_vector(EAST, 9, filters)
    assert found(store.search_by_words("words", 9, ANY)) == ["1"]
    assert [each.id for each in store.get_display_rows(["1"])] == ["1"]


def test_words_with_a_beginning_are_found_by_it(store: ChunkStore) -> None:
    fill(
        store,
        row("1", text="the configuration of it"),
        row("2", text="confirm it"),
        row("3", text="it"),
    )
    assert sorted(
        found(store.search_by_words("conf", 9, SearchFilters(required_prefixes=("conf",))))
    ) == ["1", "2"]
    assert found(
        store.search_by_words("config", 9, SearchFilters(required_prefixes=("config",)))
    ) == ["1"]


def test_a_literal_is_found_letter_by_letter(store: ChunkStore) -> None:
    fill(
        store,
        row("1", text="call parse_config()"),
        row("2", text="call Parse_Config()"),
        row("3", text="parse config"),
    )
    assert sorted(store.find_ids_containing("parse_config", 9, ANY)) == ["1"]
    assert list(store.find_ids_containing("'; --", 9, ANY)) == []
    assert len(store.find_ids_containing("p", 1, ANY)) == 1


@pytest.mark.parametrize(
    ("phrase", "expected"),
    [
        ("exit code", ["1", "2"]),
        ("code 3", ["1"]),
        ("to be or not", ["4"]),
        ("exit codes", []),
        ("no such words", []),
        ("x" * 50, ["5"]),
    ],
)
def test_a_phrase_is_found_wherever_a_text_has_it_as_whole_words(
    store: ChunkStore, phrase: str, expected: list[str]
) -> None:
    """Stop words alone, and long words, are in no full-text index."""
    fill(
        store,
        row("1", text="Exit code 3 means it"),
        row("2", text="the exit\n code of it"),
        row("3", text="the code of the exit, its exit_code"),
        row("4", text="to be or not to be"),
        row("5", text="x" * 50),
    )
    filters = SearchFilters(required_phrases=(phrase,))
    assert sorted(found(store.search_by_vector(EAST, 9, filters))) == expected


def test_both_searches_see_a_write_at_once(store: ChunkStore) -> None:
    fill(store, row("1", text="alpha"))
    assert (
        found(store.search_by_vector(EAST, 5, ANY))
        == found(store.search_by_words("alpha", 5, ANY))
        == ["1"]
    )
    fill(store, row("1", text="beta"), vectors=[NORTH])
    assert found(store.search_by_words("beta", 5, ANY)) == ["1"]
    assert list(store.search_by_words("alpha", 5, ANY)) == []
    assert [each.score for each in store.search_by_vector(NORTH, 5, ANY)] == pytest.approx([1.0])
    store.delete_rows(["1"])
    assert (
        list(store.search_by_words("beta", 5, ANY))
        == list(store.search_by_vector(NORTH, 5, ANY))
        == []
    )


# Filters


@dataclass(frozen=True)
class Filtered:
    """A filter and the rows below that pass it."""

    filters: SearchFilters
    ids: str


TREE = (
    row("a", "top.md", "apple a"),
    row("b", "docs/top.md", "apple b", header_path="Guide > Install > Linux"),
    row("c", "docs/deep/er/x.md", "apple c", header_path="guide"),
    row("d", "docs.md", "apple d", kind="text", header_path="Guidelines"),
    row("e", "src/main.py", "apple e", kind="code", header_path=""),
    row("f", "top.md", "apple f", root="other", header_path="A (b) > C++"),
    row("g", "it's [x]+.md", "apple g", header_path="Install > Guide"),
)

FILTERED: dict[str, Filtered] = {
    "none": Filtered(ANY, "abcdefg"),
    "root": Filtered(SearchFilters(root="other"), "f"),
    "unknown root": Filtered(SearchFilters(root="oth"), ""),
    "kind": Filtered(SearchFilters(kind="code"), "e"),
    "kind is exact": Filtered(SearchFilters(kind="Code"), ""),
    "name in any folder": Filtered(SearchFilters(path_glob="top.md"), "abf"),
    "name from the top": Filtered(SearchFilters(path_glob="/top.md"), "af"),
    "star in any folder": Filtered(SearchFilters(path_glob="*.md"), "abcdfg"),
    "star stays in its folder": Filtered(SearchFilters(path_glob="docs/*"), "b"),
    "two stars do not": Filtered(SearchFilters(path_glob="docs/**"), "bc"),
    "two stars before": Filtered(SearchFilters(path_glob="**/top.md"), "abf"),
    "two stars between": Filtered(SearchFilters(path_glob="docs/**/x.md"), "c"),
    "two stars for no folder": Filtered(SearchFilters(path_glob="docs/**/top.md"), "b"),
    "two stars alone": Filtered(SearchFilters(path_glob="**"), "abcdefg"),
    "question mark": Filtered(SearchFilters(path_glob="d?cs.md"), "d"),
    "question mark is no border": Filtered(SearchFilters(path_glob="docs?top.md"), ""),
    "a folder": Filtered(SearchFilters(path_glob="docs"), "bc"),
    "a folder and no file": Filtered(SearchFilters(path_glob="top.md/"), ""),
    "a folder with a slash": Filtered(SearchFilters(path_glob="docs/"), "bc"),
    "a folder in any folder": Filtered(SearchFilters(path_glob="er"), "c"),
    "a folder in any folder with a slash": Filtered(SearchFilters(path_glob="er/"), "c"),
    "a folder from the top": Filtered(SearchFilters(path_glob="/er"), ""),
    "a folder in a folder": Filtered(SearchFilters(path_glob="docs/deep"), "c"),
    "a folder below any": Filtered(SearchFilters(path_glob="**/deep"), "c"),
    "folders by a star": Filtered(SearchFilters(path_glob="d*/"), "bc"),
    "a star is no folder": Filtered(SearchFilters(path_glob="doc*"), "d"),
    "part of a folder": Filtered(SearchFilters(path_glob="doc"), ""),
    "dots are only dots": Filtered(SearchFilters(path_glob="docsxmd"), ""),
    "a dot is not any character": Filtered(SearchFilters(path_glob="top?md"), "abf"),
    "odd characters": Filtered(SearchFilters(path_glob="it's [x]+.md"), "g"),
    "case counts": Filtered(SearchFilters(path_glob="Top.md"), ""),
    "part of a name": Filtered(SearchFilters(path_glob="op.md"), ""),
    "quote and SQL": Filtered(SearchFilters(path_glob="' OR '1'='1"), ""),
    "section": Filtered(SearchFilters(section="Guide"), "abcg"),
    "section in any case": Filtered(SearchFilters(section="gUIDE"), "abcg"),
    "section below": Filtered(SearchFilters(section="Guide > Install"), "b"),
    "section in the middle": Filtered(SearchFilters(section="Install"), "bg"),
    "section with loose blanks": Filtered(SearchFilters(section="guide>install"), "b"),
    "whole headings only": Filtered(SearchFilters(section="Guidel"), ""),
    "odd section": Filtered(SearchFilters(section="A (b) > C++"), "f"),
    "section in the wrong order": Filtered(SearchFilters(section="Linux > Install"), ""),
    "all at once": Filtered(
        SearchFilters(root="notes", path_glob="docs/**", kind="markdown", section="Install"), "b"
    ),
    "all at once but one": Filtered(
        SearchFilters(root="other", path_glob="docs/**", kind="markdown", section="Install"), ""
    ),
}


@pytest.mark.parametrize("case", FILTERED.values(), ids=FILTERED)
def test_filters_restrict_both_searches(filled: ChunkStore, case: Filtered) -> None:
    assert sorted(found(filled.search_by_vector(EAST, 50, case.filters))) == list(case.ids)
    assert sorted(found(filled.search_by_words("apple", 50, case.filters))) == list(case.ids)


@pytest.fixture(scope="module", params=["fake", "lance"])
def filled(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> ChunkStore:
    """Give a store with the rows of TREE, for reading only."""
    store: ChunkStore = (
        FakeStore() if request.param == "fake" else lance(tmp_path_factory.mktemp("filled"))
    )
    fill(store, *TREE)
    return store


# The fake against LanceDB


def test_any_order_of_writes_leaves_both_makes_with_the_same_rows(tmp_path: Path) -> None:
    random = Random(7)  # noqa: S311 - a fixed course, not a secret
    fake, real = FakeStore(), lance(tmp_path)
    for step in range(60):
        ids = random.choices("abcdefgh", k=random.randrange(5))
        rows = [
            row(row_id, random.choice(["a.md", "b.md"]), random.choice(["one", "two"]))
            for row_id in ids
        ]
        for store in (fake, real):
            if step % 3:
                store.upsert(rows, {"key of one": EAST, "key of two": NORTH})
            else:
                store.delete_rows(ids)
    assert sorted(real.all_ids()) == sorted(fake.all_ids())
    assert sorted(real.get_rows(list("abcdefgh")), key=lambda each: each.id) == sorted(
        fake.get_rows(list("abcdefgh")), key=lambda each: each.id
    )
    for path in ("a.md", "b.md"):
        assert sorted(real.ids_of_file(RootedPath("notes", path))) == sorted(
            fake.ids_of_file(RootedPath("notes", path))
        )


# Only LanceDB


def test_rows_outlive_the_process(tmp_path: Path) -> None:
    fill(lance(tmp_path), row("1"))
    assert list(lance(tmp_path).all_ids()) == ["1"]
    assert list(lance(tmp_path, read_only=True).all_ids()) == ["1"]


def test_a_reader_sees_what_the_writer_wrote_since_it_opened(tmp_path: Path) -> None:
    writer = lance(tmp_path)
    reader = lance(tmp_path, read_only=True)
    fill(writer, row("1", text="alpha"))
    assert (
        found(reader.search_by_vector(EAST, 5, ANY))
        == found(reader.search_by_words("alpha", 5, ANY))
        == ["1"]
    )
    writer.delete_rows(["1"])
    assert list(reader.all_ids()) == []


def test_what_a_search_found_is_shown_as_it_is_then_whatever_became_of_it(tmp_path: Path) -> None:
    writer = lance(tmp_path)
    fill(writer, *[row(f"r{n}", text=f"words of {n}") for n in range(9)])
    reader = lance(tmp_path, read_only=True)
    ids = [each.id for each in reader.search_by_words("words", 9, SearchFilters())]
    assert len(ids) == 9
    fill(writer, row("r1", text="words of another time"))
    writer.delete_rows(["r2"])
    shown = {each.id: each.text for each in reader.get_display_rows(ids)}
    assert shown == {f"r{n}": f"words of {n}" for n in range(9) if n not in (1, 2)} | {
        "r1": "words of another time"
    }
    assert len(reader.search_by_words("words", 9, SearchFilters())) == 8
    maintain(writer)
    fill(writer, *[row(f"s{n}", text=f"later {n}") for n in range(9)])
    assert {each.id: each.text for each in reader.get_display_rows(ids)} == shown


def test_a_reader_without_a_table_gets_an_error_and_makes_none(tmp_path: Path) -> None:
    with pytest.raises(StoreError, match="there is no index yet"):
        lance(tmp_path, read_only=True)
    with pytest.raises(StoreError, match="there is no index yet"):
        lance(tmp_path, read_only=True)


def test_a_table_for_vectors_of_another_size_is_refused_and_left_as_it_is(tmp_path: Path) -> None:
    fill(lance(tmp_path), row("1"))
    with pytest.raises(DimensionMismatchError):
        lance(tmp_path, dimension=8)
    assert list(lance(tmp_path).all_ids()) == ["1"]


def test_a_row_whose_bytes_changed_without_its_checksum_is_spoiled(tmp_path: Path) -> None:
    store = lance(tmp_path)
    fill(store, row("1"), row("2", text="others"), row("3", text="more"))
    lancedb.connect(str(tmp_path / "lance")).open_table("chunks").update(
        where="id = '2'", values={"text": "other5"}
    )
    assert list(store.find_corrupt_ids(["1", "2", "3"])) == ["2"]
    assert list(store.find_corrupt_ids(["1", "3"])) == []


def test_what_is_no_folder_is_a_store_error(tmp_path: Path) -> None:
    (tmp_path / "lance").write_text("in the way")
    with pytest.raises(StoreError):
        lance(tmp_path)


def test_an_id_that_stood_twice_stands_once_after_it_is_written(tmp_path: Path) -> None:
    store = lance(tmp_path)
    for _ in range(2):
        run_sync(
            store._table.handle.add(
                rows_to_arrow([row("1")], {"key of some words": EAST}, store._table.schema)
            )
        )
    assert list(store.all_ids()) == ["1", "1"]
    fill(store, row("1", text="new"), row("2"))
    assert sorted(store.all_ids()) == ["1", "2"]
    assert found(store.search_by_words("new", 5, ANY)) == ["1"]


def test_every_write_that_changes_nothing_makes_no_version(tmp_path: Path) -> None:
    store = lance(tmp_path)
    fill(store, row("1"))
    before = store.stats().versions
    store.upsert([], {})
    store.delete_rows([])
    assert store.stats().versions == before


def test_upkeep_folds_the_fragments_and_keeps_rows_vectors_and_searches(tmp_path: Path) -> None:
    store = lance(tmp_path)
    for n in range(8):
        fill(store, row(f"{n}", text=f"word{n} shared"), vectors=[EAST if n else NORTH])
    store.delete_rows(["7"])
    before = sorted(store.all_rows(), key=lambda each: each.id)
    assert maintain(store) == []
    assert store.stats().fragments == 1
    assert sorted(store.all_rows(), key=lambda each: each.id) == before
    assert store.vectors_by_key_of_rows(["0", "1"]) == {
        "key of word0 shared": NORTH,
        "key of word1 shared": EAST,
    }
    assert (
        found(store.search_by_vector(NORTH, 1, ANY))
        == found(store.search_by_words("word0", 5, ANY))
        == ["0"]
    )
    assert len(store.search_by_words("shared", 50, ANY)) == 7
    fill(store, row("3", text="later"))
    assert found(store.search_by_words("later", 5, ANY)) == ["3"]


def test_in_a_rush_of_commits_old_versions_go_sooner(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = lance(tmp_path)
    for n in range(8):
        fill(store, row(str(n)))
    maintain(store)
    kept = store.stats().versions
    assert kept > 8  # None of them is ten minutes old.
    monkeypatch.setattr("anchord.store.table.maintenance._MANY_VERSIONS", 8)
    monkeypatch.setattr("anchord.store.table.maintenance._KEPT_OF_MANY", timedelta(0))
    maintain(store)
    assert store.stats().versions < kept
    assert len(store.all_ids()) == 8


def test_what_is_kept_in_memory_of_many_commits_has_a_limit(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def kept(folder: Path) -> int:
        store = lance(folder)
        for n in range(12):
            fill(store, row(str(n)))
            store.look_up_vectors([str(n)], [])
        assert len(store.all_ids()) == 12
        return int(store._table.session.size_bytes)

    without = kept(tmp_path / "large")
    limit = without // 4
    monkeypatch.setattr("anchord.store.table.connection._WRITER_CACHES", (limit, limit))
    assert kept(tmp_path / "small") < without


def test_the_rows_of_a_root_are_counted_and_named(tmp_path: Path) -> None:
    store = lance(tmp_path)
    fill(store, row("1"), row("2", path="b.md"), row("3", root="it's"))
    assert sorted(store.ids_of_root("notes")) == ["1", "2"]
    assert list(store.ids_of_root("it's")) == ["3"]
    assert store.count_rows() == 3


def test_the_rows_of_a_folder_are_those_of_its_files(store: ChunkStore) -> None:
    paths = ("a/b.md", "a/b.md/c.md", "a/b.mdx", "a/b", "a/B.md", "a.md", "a/_.md", "a0", "a/ü")
    fill(store, *(row(f"{n}", path=path) for n, path in enumerate(paths)))
    fill(store, row("other", path="a/b.md", root="other"))

    def below(path: str) -> set[str]:
        return {paths[int(row_id)] for row_id in store.ids_of_root("notes", path)}

    assert below("a/b.md") == {"a/b.md", "a/b.md/c.md"}
    assert below("a") == {path for path in paths if path.startswith("a/")}
    assert below("a/_.md") == {"a/_.md"}
    assert below("a/b.m") == set()


def test_a_vector_of_zeros_is_found_by_words_alone(tmp_path: Path) -> None:
    store = lance(tmp_path)
    fill(store, row("1"), vectors=[vector()])
    assert list(store.search_by_vector(EAST, 5, ANY)) == []
    assert found(store.search_by_words("words", 5, ANY)) == ["1"]


@pytest.mark.parametrize(
    ("section", "wanted"),
    [
        ("Install > Linux", ["1", "2", "3"]),
        ("linux", ["1", "2", "3"]),
        ("Install", ["1", "2", "3", "4"]),
        ("Guide > Install > Linux", ["1", "2", "3"]),
        ("Linux > Install", []),
        ("Use > Linux", []),
        ("Lin", []),
        ("a.*", []),
    ],
)
def test_a_section_is_found_by_its_path_or_where_it_begins(
    store: ChunkStore, section: str, wanted: Sequence[str]
) -> None:
    fill(store,
         row("1", text="apt", header_path="Guide > Install > Linux"),
         row("2", text="## Install\n\n### Linux ##\n\napt", header_path="Guide"),
         row("3", text="Words.\n\n### Linux\n\napt", header_path="Guide > Install"),
         row("4", text="Not of Linux\n\n#Linux", header_path="Install"),
         row("5", text="Linux", header_path="Use > Linuxes"))  # fmt: skip
    assert sorted(found(store.search_by_vector(EAST, 9, SearchFilters(section=section)))) == wanted
