"""What every store promises, on the fake and on LanceDB alike; then what LanceDB alone has."""

from __future__ import annotations

from array import array
from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import timedelta
from pathlib import Path
from random import Random
from typing import Any

import lancedb
import pytest
from fakes import FakeStore

from anchord.adapters.lance import LanceStore
from anchord.adapters.lance_schema import batch_of
from anchord.adapters.lance_upkeep import maintain
from anchord.adapters.waited import waited
from anchord.core.diff import row_hash
from anchord.description import doc_id
from anchord.errors import OtherFormError, StoreError
from anchord.model import Filters, Origin, Row, Scored, Vector
from anchord.ports import Store

ANY = Filters()
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
    """Make a vector of four numbers, the missing ones 0."""
    return array("f", (*numbers, *[0.0] * (4 - len(numbers)))).tobytes()


def row(row_id: str, path: str = "a.md", text: str = "some words", **others: Any) -> Row:  # noqa: ANN401 - any field
    """Make a row whose vector's key is that of its text, as two rows of one text share it."""
    document = doc_id(Origin(others.get("root", "notes"), path))
    made = Row(row_id, document, "notes", path, "markdown", "Guide > Part", "hash", f"key of {text}", text, text)
    return replace(made, **others)


EAST, NORTH, BETWEEN, WEST = vector(1), vector(0, 1), vector(1, 1), vector(-1)


@pytest.fixture(params=["fake", "lance"])
def store(request: pytest.FixtureRequest, tmp_path: Path) -> Store:
    """Give an empty store of either make."""
    return FakeStore() if request.param == "fake" else lance(tmp_path)


def lance(folder: Path, *, read_only: bool = False, dimension: int = 4) -> LanceStore:
    return LanceStore(str(folder / "lance"), dimension, "model", read_only=read_only)


def fill(store: Store, *rows: Row, vectors: Sequence[Vector] = ()) -> None:
    """Write rows with vectors of their own, or all with one."""
    store.upsert(rows, {row.vector_key: vectors[n] if vectors else EAST for n, row in enumerate(rows)})


def found(scored: Sequence[Scored]) -> list[str]:
    return [each.id for each in scored]


# Writing


def test_a_new_store_is_empty(store: Store) -> None:
    assert list(store.ids()) == []
    assert store.stats().rows == 0
    assert list(store.nearest(EAST, 5, ANY)) == []
    assert list(store.matching("words", 5, ANY)) == []


def test_a_row_comes_back_as_it_was_written(store: Store) -> None:
    written = Row("1", "d", "notes", "a/b.md", "code", "A > B", "h", "k", "text\n\ttwo  \n", "search text", "room")
    store.upsert([written], {"k": EAST})
    assert list(store.rows(["1"])) == [written]


def test_writing_twice_is_writing_once(store: Store) -> None:
    for _ in range(2):
        fill(store, row("1"), row("2"))
    assert sorted(store.ids()) == ["1", "2"]
    assert store.stats().rows == 2


def test_a_row_of_a_known_id_replaces_the_old_one(store: Store) -> None:
    fill(store, row("1", text="old"), row("2", text="other"))
    fill(store, row("1", text="new"), vectors=[NORTH])
    assert sorted(each.text for each in store.rows(["1", "2"])) == ["new", "other"]
    assert store.vectors_of(["1"]) == {"key of new": NORTH}


def test_an_id_twice_in_a_batch_is_written_once_with_its_last_row(store: Store) -> None:
    store.upsert([row("1", text="first"), row("2"), row("1", text="last")], {
        "key of first": EAST, "key of some words": EAST, "key of last": NORTH,
    })  # fmt: skip
    assert sorted(store.ids()) == ["1", "2"]
    assert [each.text for each in store.rows(["1"])] == ["last"]
    assert store.vectors_of(["1"]) == {"key of last": NORTH}


def test_writing_nothing_is_no_error(store: Store) -> None:
    store.upsert([], {})
    assert list(store.ids()) == []


def test_a_row_without_its_vector_is_refused_and_nothing_is_written(store: Store) -> None:
    with pytest.raises(KeyError):
        store.upsert([row("1", text="one"), row("2", text="two")], {"key of one": EAST})
    assert list(store.ids()) == []


def test_vectors_of_other_keys_do_no_harm(store: Store) -> None:
    store.upsert([row("1")], {"key of some words": EAST, "key of nothing": NORTH})
    assert store.vectors(["key of nothing"]) == {}


def test_deleting_takes_the_ids_named_and_no_others(store: Store) -> None:
    fill(store, row("1"), row("2"), row("3"))
    store.delete(["1", "3"])
    assert list(store.ids()) == ["2"]
    assert found(store.matching("words", 5, ANY)) == ["2"]


def test_deleting_unknown_ids_is_no_error(store: Store) -> None:
    fill(store, row("1"))
    store.delete(["2", "2", "", "' OR 1=1 --"])
    store.delete([])
    assert list(store.ids()) == ["1"]


def test_deleting_twice_is_deleting_once(store: Store) -> None:
    fill(store, row("1"), row("2"))
    store.delete(["1", "1"])
    store.delete(["1"])
    assert list(store.ids()) == ["2"]


def test_more_ids_than_fit_a_statement_are_handled(store: Store) -> None:
    many = [row(f"{n:05}", text=f"t{n}") for n in range(2_500)]
    store.upsert(many, {each.vector_key: EAST for each in many})
    assert len(store.rows([each.id for each in many])) == 2_500
    assert len(store.vectors([each.vector_key for each in many])) == 2_500
    store.delete([each.id for each in many[1:]])
    assert list(store.ids()) == ["00000"]


# Looking up


def test_the_ids_of_a_file_are_those_of_its_root_and_path(store: Store) -> None:
    fill(store, row("1"), row("2"), row("3", path="b.md"), row("4", root="other"), row("5", path="a.md/a.md"))
    assert sorted(store.ids_of(Origin("notes", "a.md"))) == ["1", "2"]
    assert list(store.ids_of(Origin("notes", "c.md"))) == []


@pytest.mark.parametrize("path", ODD_NAMES)
def test_a_path_with_quotes_or_sql_is_only_a_path(store: Store, path: str) -> None:
    fill(store, row("1", path=path), row("2"))
    assert list(store.ids_of(Origin("notes", path))) == ["1"]
    assert [each.path for each in store.rows(["1"])] == [path]
    store.delete(store.ids_of(Origin("notes", path)))
    assert list(store.ids()) == ["2"]


@pytest.mark.parametrize("text", ODD_NAMES)
def test_odd_text_in_any_field_is_only_text(store: Store, text: str) -> None:
    odd = row(text, path="a.md", text=text, root=text, kind=text, header_path=text, room=text)
    fill(store, odd, row("2"))
    assert list(store.rows([text])) == [odd]
    assert store.vectors([f"key of {text}"]) == {f"key of {text}": EAST}
    assert list(store.ids_of(Origin(text, "a.md"))) == [text]
    assert found(store.nearest(EAST, 5, Filters(root=text, kind=text))) == [text]


def test_an_undecodable_path_is_found_by_the_name_the_system_gives(store: Store) -> None:
    fill(store, row("1", path="caf\udce9.md"), row("2"))
    assert list(store.ids_of(Origin("notes", "caf\udce9.md"))) == ["1"]
    assert [each.path for each in store.rows(["1"])] == ["caf\\xe9.md"]


def test_vectors_are_shared_by_key_across_rows(store: Store) -> None:
    fill(store, row("1", text="same"), row("2", path="b.md", text="same"), row("3", text="else"), vectors=[EAST, EAST, NORTH])
    assert store.vectors(["key of same", "key of else", "key of none"]) == {"key of same": EAST, "key of else": NORTH}
    store.delete(["1"])
    assert store.vectors(["key of same"]) == {"key of same": EAST}
    store.delete(["2"])
    assert store.vectors(["key of same"]) == {}


def test_vectors_of_rows_come_by_their_keys(store: Store) -> None:
    fill(store, row("1", text="one"), row("2", text="two"), vectors=[EAST, BETWEEN])
    assert store.vectors_of(["2", "3"]) == {"key of two": BETWEEN}


def test_each_row_has_its_own_vector_also_when_they_share_a_key(store: Store) -> None:
    fill(store, row("1", text="same"), vectors=[EAST])
    fill(store, row("2", text="same"), vectors=[NORTH])
    assert store.row_vectors(["1", "2", "3"]) == {"1": EAST, "2": NORTH}
    assert store.row_vectors([]) == {}


def test_rows_that_are_said_to_be_absent_are_written_beside_those_that_are_there(store: Store) -> None:
    fill(store, row("1", text="old"))
    rows = [row("1", text="new"), row("2", text="two"), row("3", text="three")]
    store.upsert(rows, {each.vector_key: NORTH for each in rows}, absent={"2", "3", "9"})
    assert sorted(store.ids()) == ["1", "2", "3"]
    assert {each.id: each.text for each in store.rows(["1", "2", "3"])} == {"1": "new", "2": "two", "3": "three"}


def test_rows_and_keys_are_looked_up_together(store: Store) -> None:
    fill(store, row("1", text="one"), row("2", text="two"), row("3", text="three"), vectors=[NORTH, BETWEEN, EAST])
    two, three = {"2": ("key of two", BETWEEN)}, {"3": ("key of three", EAST)}
    assert store.look_up(["2", "none"], ["key of one", "key of none"]) == (two, {"key of one": NORTH})
    assert store.look_up(["3"], ["key of three"]) == (three, {"key of three": EAST})
    assert store.look_up(["3"], []) == (three, {})
    assert store.look_up([], ["key of one"]) == ({}, {"key of one": NORTH})
    assert store.look_up([], []) == ({}, {})


def test_asking_for_nothing_gives_nothing(store: Store) -> None:
    fill(store, row("1"))
    assert store.vectors([]) == {}
    assert store.vectors_of([]) == {}
    assert list(store.rows([])) == []


def test_unknown_and_repeated_ids_give_each_row_once(store: Store) -> None:
    fill(store, row("1"), row("2"))
    assert [each.id for each in store.rows(["2", "9", "2"])] == ["2"]


def test_what_is_shown_of_rows_is_all_that_is_read(store: Store) -> None:
    said = row("said", source="codex", session="s", exchange_id="q", at="2026", tools="[Bash] ls", part_index=1, total_parts=2)
    fill(store, row("x"), said, row("other"))
    for _ in range(2):  # By their ids; and where a search has found them.
        shown = {each.id: each for each in store.shown(["said", "x", "unknown", "x"])}
        left_out: dict[str, Any] = dict.fromkeys(("doc_id", "root", "path", "vector_key", "search_text"), "")
        assert shown == {each.id: replace(each, **left_out) for each in store.rows(["said", "x"])}
        assert len(store.matching("words", 9, Filters())) == 3


def test_the_hash_of_a_row_is_kept_with_it(store: Store) -> None:
    fill(store, row("1"), row("2", path="b.md"))
    assert sorted(store.hashes()) == [("1", row_hash(row("1"))), ("2", row_hash(row("2", path="b.md")))]


def test_statistics_count_the_rows(store: Store) -> None:
    fill(store, row("1"), row("2"))
    stats = store.stats()
    assert stats.rows == 2
    assert min(stats.fragments, stats.versions, stats.bytes) > 0


# Searching by meaning


def test_the_nearest_come_first_with_their_cosine(store: Store) -> None:
    rows = [row("west", text="w"), row("between", text="b"), row("east", text="e"), row("north", text="n")]
    fill(store, *rows, vectors=[WEST, BETWEEN, EAST, NORTH])
    hits = store.nearest(vector(5), 3, ANY)
    assert found(hits) == ["east", "between", "north"]
    assert [each.score for each in hits] == pytest.approx([1.0, 0.5**0.5, 0.0], abs=1e-6)


def test_the_limit_counts_after_the_filters(store: Store) -> None:
    fill(store, *[row(f"{n}", text=f"t{n}") for n in range(20)], row("far", path="far.md", text="far"),
         vectors=[*[EAST] * 20, WEST])  # fmt: skip
    assert found(store.nearest(EAST, 1, Filters(path_glob="far.md"))) == ["far"]


# Searching by words


def test_words_are_found_in_any_case_and_order(store: Store) -> None:
    fill(store, row("1", text="The quick brown Fox jumps"), row("2", text="A lazy dog sleeps"))
    hits = store.matching("fox QUICK", 5, ANY)
    assert found(hits) == ["1"]
    assert hits[0].score > 0


def test_more_of_the_words_come_first(store: Store) -> None:
    fill(store, row("1", text="alpha and others"), row("2", text="alpha beta gamma"), row("3", text="alpha beta others"))
    assert found(store.matching("alpha beta gamma", 2, ANY)) == ["2", "3"]


def test_words_are_sought_in_the_search_text(store: Store) -> None:
    fill(store, row("1", text="body", search_text="guide.md Heading body"))
    assert found(store.matching("heading", 5, ANY)) == ["1"]


@pytest.mark.parametrize("text", ["", " \n", '"', "(", "*", "zebra", "AND", "a:b", "-- ' OR 1=1", "\0", "[x", "\\"])
def test_odd_questions_find_nothing_and_raise_nothing(store: Store, text: str) -> None:
    fill(store, row("1", text="quick brown fox"))
    assert list(store.matching(text, 5, ANY)) == []


def test_operators_in_a_question_are_only_words(store: Store) -> None:
    fill(store, row("1", text="quick brown fox"), row("2", text="lazy dog"))
    assert found(store.matching('fox AND ("', 5, ANY)) == ["1"]
    assert found(store.matching('"fox brown"', 5, ANY)) == ["1"]
    assert found(store.matching("fox -quick", 5, ANY)) == ["1"]


@pytest.mark.parametrize(
    ("filters", "wanted"),
    [
        (Filters(phrases=("quick brown",)), ["1", "3"]),
        (Filters(phrases=("QUICK  brown", "fox")), ["1"]),
        (Filters(phrases=("quick brow",)), []),
        (Filters(phrases=("c++",)), ["4"]),
        (Filters(without=("fox",)), ["2", "3", "4"]),
        (Filters(without=("brown", "dog")), ["4"]),
        (Filters(without=("fo",)), ["1", "2", "3", "4"]),
        (Filters(prefixes=("br",)), ["1", "3"]),
        (Filters(prefixes=("Fo",), without=("dog",)), ["1"]),
        (Filters(phrases=("it's (a) 50% [x]",)), []),
    ],
)
def test_phrases_and_beginnings_must_be_there_and_what_is_excluded_not(
    store: Store, filters: Filters, wanted: Sequence[str]
) -> None:
    texts = {"1": "the quick brown fox", "2": "a lazy dog", "3": "Quick\nbrown bread", "4": "written in C++ with words"}
    fill(store, *(row(each, text=text) for each, text in texts.items()))
    assert sorted(found(store.nearest(EAST, 9, filters))) == wanted
    assert set(found(store.matching("quick lazy words", 9, filters))) <= set(wanted)
    assert all(store.holding(" ", 9, filters) for _ in wanted)


def test_words_with_a_beginning_are_found_by_it(store: Store) -> None:
    fill(store, row("1", text="the configuration of it"), row("2", text="confirm it"), row("3", text="it"))
    assert sorted(found(store.matching("conf", 9, Filters(prefixes=("conf",))))) == ["1", "2"]
    assert found(store.matching("config", 9, Filters(prefixes=("config",)))) == ["1"]


def test_a_literal_is_found_letter_by_letter(store: Store) -> None:
    fill(store, row("1", text="call parse_config()"), row("2", text="call Parse_Config()"), row("3", text="parse config"))
    assert sorted(store.holding("parse_config", 9, ANY)) == ["1"]
    assert list(store.holding("'; --", 9, ANY)) == []
    assert len(store.holding("p", 1, ANY)) == 1


def test_both_searches_see_a_write_at_once(store: Store) -> None:
    fill(store, row("1", text="alpha"))
    assert found(store.nearest(EAST, 5, ANY)) == found(store.matching("alpha", 5, ANY)) == ["1"]
    fill(store, row("1", text="beta"), vectors=[NORTH])
    assert found(store.matching("beta", 5, ANY)) == ["1"]
    assert list(store.matching("alpha", 5, ANY)) == []
    assert [each.score for each in store.nearest(NORTH, 5, ANY)] == pytest.approx([1.0])
    store.delete(["1"])
    assert list(store.matching("beta", 5, ANY)) == list(store.nearest(NORTH, 5, ANY)) == []


# Filters


@dataclass(frozen=True)
class Filtered:
    """A filter and the rows below that pass it."""

    filters: Filters
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
    "root": Filtered(Filters(root="other"), "f"),
    "unknown root": Filtered(Filters(root="oth"), ""),
    "kind": Filtered(Filters(kind="code"), "e"),
    "kind is exact": Filtered(Filters(kind="Code"), ""),
    "name in any folder": Filtered(Filters(path_glob="top.md"), "abf"),
    "name from the top": Filtered(Filters(path_glob="/top.md"), "af"),
    "star in any folder": Filtered(Filters(path_glob="*.md"), "abcdfg"),
    "star stays in its folder": Filtered(Filters(path_glob="docs/*"), "b"),
    "two stars do not": Filtered(Filters(path_glob="docs/**"), "bc"),
    "two stars before": Filtered(Filters(path_glob="**/top.md"), "abf"),
    "two stars between": Filtered(Filters(path_glob="docs/**/x.md"), "c"),
    "two stars for no folder": Filtered(Filters(path_glob="docs/**/top.md"), "b"),
    "two stars alone": Filtered(Filters(path_glob="**"), "abcdefg"),
    "question mark": Filtered(Filters(path_glob="d?cs.md"), "d"),
    "question mark is no border": Filtered(Filters(path_glob="docs?top.md"), ""),
    "a folder": Filtered(Filters(path_glob="docs"), "bc"),
    "a folder and no file": Filtered(Filters(path_glob="top.md/"), ""),
    "a folder with a slash": Filtered(Filters(path_glob="docs/"), "bc"),
    "a folder in any folder": Filtered(Filters(path_glob="er"), "c"),
    "a folder in any folder with a slash": Filtered(Filters(path_glob="er/"), "c"),
    "a folder from the top": Filtered(Filters(path_glob="/er"), ""),
    "a folder in a folder": Filtered(Filters(path_glob="docs/deep"), "c"),
    "a folder below any": Filtered(Filters(path_glob="**/deep"), "c"),
    "folders by a star": Filtered(Filters(path_glob="d*/"), "bc"),
    "a star is no folder": Filtered(Filters(path_glob="doc*"), "d"),
    "part of a folder": Filtered(Filters(path_glob="doc"), ""),
    "dots are only dots": Filtered(Filters(path_glob="docsxmd"), ""),
    "a dot is not any character": Filtered(Filters(path_glob="top?md"), "abf"),
    "odd characters": Filtered(Filters(path_glob="it's [x]+.md"), "g"),
    "case counts": Filtered(Filters(path_glob="Top.md"), ""),
    "part of a name": Filtered(Filters(path_glob="op.md"), ""),
    "quote and SQL": Filtered(Filters(path_glob="' OR '1'='1"), ""),
    "section": Filtered(Filters(section="Guide"), "abcg"),
    "section in any case": Filtered(Filters(section="gUIDE"), "abcg"),
    "section below": Filtered(Filters(section="Guide > Install"), "b"),
    "section in the middle": Filtered(Filters(section="Install"), "bg"),
    "section with loose blanks": Filtered(Filters(section="guide>install"), "b"),
    "whole headings only": Filtered(Filters(section="Guidel"), ""),
    "odd section": Filtered(Filters(section="A (b) > C++"), "f"),
    "section in the wrong order": Filtered(Filters(section="Linux > Install"), ""),
    "all at once": Filtered(Filters("notes", "docs/**", "markdown", "Install"), "b"),
    "all at once but one": Filtered(Filters("other", "docs/**", "markdown", "Install"), ""),
}


@pytest.mark.parametrize("case", FILTERED.values(), ids=FILTERED)
def test_filters_restrict_both_searches(filled: Store, case: Filtered) -> None:
    assert sorted(found(filled.nearest(EAST, 50, case.filters))) == list(case.ids)
    assert sorted(found(filled.matching("apple", 50, case.filters))) == list(case.ids)


@pytest.fixture(scope="module", params=["fake", "lance"])
def filled(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Store:
    """Give a store with the rows of TREE, for reading only."""
    store: Store = FakeStore() if request.param == "fake" else lance(tmp_path_factory.mktemp("filled"))
    fill(store, *TREE)
    return store


# Both against each other


def test_any_order_of_writes_leaves_both_makes_with_the_same_rows(tmp_path: Path) -> None:
    random = Random(7)  # noqa: S311 - a fixed course, not a secret
    fake, real = FakeStore(), lance(tmp_path)
    for step in range(60):
        ids = random.choices("abcdefgh", k=random.randrange(5))
        rows = [row(row_id, random.choice(["a.md", "b.md"]), random.choice(["one", "two"])) for row_id in ids]
        for store in (fake, real):
            if step % 3:
                store.upsert(rows, {"key of one": EAST, "key of two": NORTH})
            else:
                store.delete(ids)
    assert sorted(real.ids()) == sorted(fake.ids())
    assert sorted(real.rows(list("abcdefgh")), key=lambda each: each.id) == sorted(
        fake.rows(list("abcdefgh")), key=lambda each: each.id
    )
    for path in ("a.md", "b.md"):
        assert sorted(real.ids_of(Origin("notes", path))) == sorted(fake.ids_of(Origin("notes", path)))


# LanceDB alone


def test_rows_outlive_the_process(tmp_path: Path) -> None:
    fill(lance(tmp_path), row("1"))
    assert list(lance(tmp_path).ids()) == ["1"]
    assert list(lance(tmp_path, read_only=True).ids()) == ["1"]


def test_a_reader_sees_what_the_writer_wrote_since_it_opened(tmp_path: Path) -> None:
    writer = lance(tmp_path)
    reader = lance(tmp_path, read_only=True)
    fill(writer, row("1", text="alpha"))
    assert found(reader.nearest(EAST, 5, ANY)) == found(reader.matching("alpha", 5, ANY)) == ["1"]
    writer.delete(["1"])
    assert list(reader.ids()) == []


def test_what_a_search_found_is_shown_as_it_is_then_whatever_became_of_it(tmp_path: Path) -> None:
    writer = lance(tmp_path)
    fill(writer, *[row(f"r{n}", text=f"words of {n}") for n in range(9)])
    reader = lance(tmp_path, read_only=True)
    ids = [each.id for each in reader.matching("words", 9, Filters())]
    assert len(ids) == 9
    fill(writer, row("r1", text="words of another time"))
    writer.delete(["r2"])
    shown = {each.id: each.text for each in reader.shown(ids)}
    assert shown == {f"r{n}": f"words of {n}" for n in range(9) if n not in (1, 2)} | {"r1": "words of another time"}
    assert len(reader.matching("words", 9, Filters())) == 8
    maintain(writer)
    fill(writer, *[row(f"s{n}", text=f"later {n}") for n in range(9)])
    assert {each.id: each.text for each in reader.shown(ids)} == shown


def test_a_reader_without_a_table_is_told_so_and_makes_none(tmp_path: Path) -> None:
    with pytest.raises(StoreError, match="there is no index yet"):
        lance(tmp_path, read_only=True)
    with pytest.raises(StoreError, match="there is no index yet"):
        lance(tmp_path, read_only=True)


def test_a_table_for_vectors_of_another_size_is_refused_and_left_as_it_is(tmp_path: Path) -> None:
    fill(lance(tmp_path), row("1"))
    with pytest.raises(OtherFormError):
        lance(tmp_path, dimension=8)
    assert list(lance(tmp_path).ids()) == ["1"]


def test_a_row_whose_bytes_changed_without_its_checksum_is_spoiled(tmp_path: Path) -> None:
    store = lance(tmp_path)
    fill(store, row("1"), row("2", text="others"), row("3", text="more"))
    lancedb.connect(str(tmp_path / "lance")).open_table("chunks").update(where="id = '2'", values={"text": "other5"})
    assert list(store.spoiled(["1", "2", "3"])) == ["2"]
    assert list(store.spoiled(["1", "3"])) == []


def test_what_is_no_folder_is_a_store_error(tmp_path: Path) -> None:
    (tmp_path / "lance").write_text("in the way")
    with pytest.raises(StoreError):
        lance(tmp_path)


def test_an_id_that_stood_twice_stands_once_after_it_is_written(tmp_path: Path) -> None:
    store = lance(tmp_path)
    for _ in range(2):
        waited(store._table.handle.add(batch_of([row("1")], {"key of some words": EAST}, store._table.schema)))
    assert list(store.ids()) == ["1", "1"]
    fill(store, row("1", text="new"), row("2"))
    assert sorted(store.ids()) == ["1", "2"]
    assert found(store.matching("new", 5, ANY)) == ["1"]


def test_every_write_that_changes_nothing_makes_no_version(tmp_path: Path) -> None:
    store = lance(tmp_path)
    fill(store, row("1"))
    before = store.stats().versions
    store.upsert([], {})
    store.delete([])
    assert store.stats().versions == before


def test_upkeep_folds_the_fragments_and_keeps_rows_vectors_and_searches(tmp_path: Path) -> None:
    store = lance(tmp_path)
    for n in range(8):
        fill(store, row(f"{n}", text=f"word{n} shared"), vectors=[EAST if n else NORTH])
    store.delete(["7"])
    before = sorted(store.all_rows(), key=lambda each: each.id)
    assert maintain(store) == []
    assert store.stats().fragments == 1
    assert sorted(store.all_rows(), key=lambda each: each.id) == before
    assert store.vectors_of(["0", "1"]) == {"key of word0 shared": NORTH, "key of word1 shared": EAST}
    assert found(store.nearest(NORTH, 1, ANY)) == found(store.matching("word0", 5, ANY)) == ["0"]
    assert len(store.matching("shared", 50, ANY)) == 7
    fill(store, row("3", text="later"))
    assert found(store.matching("later", 5, ANY)) == ["3"]


def test_in_a_rush_of_commits_old_versions_go_sooner(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    store = lance(tmp_path)
    for n in range(8):
        fill(store, row(str(n)))
    maintain(store)
    kept = store.stats().versions
    assert kept > 8  # None of them is ten minutes old.
    monkeypatch.setattr("anchord.adapters.lance_upkeep._MANY_VERSIONS", 8)
    monkeypatch.setattr("anchord.adapters.lance_upkeep._KEPT_OF_MANY", timedelta(0))
    maintain(store)
    assert store.stats().versions < kept
    assert len(store.ids()) == 8


def test_what_is_kept_in_memory_of_many_commits_has_a_limit(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def kept(folder: Path) -> int:
        store = lance(folder)
        for n in range(12):
            fill(store, row(str(n)))
            store.look_up([str(n)], [])
        assert len(store.ids()) == 12
        return int(store._table.session.size_bytes)

    without = kept(tmp_path / "large")
    limit = without // 4
    monkeypatch.setattr("anchord.adapters.lance_table._WRITER_CACHES", (limit, limit))
    assert kept(tmp_path / "small") < without


def test_the_rows_of_a_root_are_counted_and_named(tmp_path: Path) -> None:
    store = lance(tmp_path)
    fill(store, row("1"), row("2", path="b.md"), row("3", root="it's"))
    assert sorted(store.ids_of_root("notes")) == ["1", "2"]
    assert list(store.ids_of_root("it's")) == ["3"]
    assert store.count() == 3


def test_a_vector_of_zeros_is_found_by_words_alone(tmp_path: Path) -> None:
    store = lance(tmp_path)
    fill(store, row("1"), vectors=[vector()])
    assert list(store.nearest(EAST, 5, ANY)) == []
    assert found(store.matching("words", 5, ANY)) == ["1"]


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
def test_a_section_is_found_by_its_path_or_where_it_begins(store: Store, section: str, wanted: Sequence[str]) -> None:
    fill(store,
         row("1", text="apt", header_path="Guide > Install > Linux"),
         row("2", text="## Install\n\n### Linux ##\n\napt", header_path="Guide"),
         row("3", text="Words.\n\n### Linux\n\napt", header_path="Guide > Install"),
         row("4", text="Not of Linux\n\n#Linux", header_path="Install"),
         row("5", text="Linux", header_path="Use > Linuxes"))  # fmt: skip
    assert sorted(found(store.nearest(EAST, 9, Filters(section=section)))) == wanted
