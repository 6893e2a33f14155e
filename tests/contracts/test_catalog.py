"""The contract of every catalog, on the fake and on SQLite; then what only SQLite has."""

from __future__ import annotations

import sqlite3
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import closing
from dataclasses import replace
from pathlib import Path

import pytest
from fakes import FakeCatalogue
from hypothesis import given
from hypothesis import strategies as st

from anchord.core.ports import Catalog
from anchord.core.types import (
    NO_FINGERPRINT,
    ChunkDiff,
    ChunkLocation,
    ChunkPlace,
    ChunkRecord,
    FileFailure,
    FileRecord,
    FileUpdate,
    Fingerprint,
    Problem,
    RootedPath,
)
from anchord.errors import StoreError
from anchord.store.catalog.catalog import SqliteCatalog
from anchord.store.catalog.schema import SCHEMA_VERSION

A, B = RootedPath("notes", "a.md"), RootedPath("notes", "b.md")
SEEN = Fingerprint(size=10, mtime_ns=20, ctime_ns=30, inode=40, device=50)
LATER = Fingerprint(size=11, mtime_ns=21, ctime_ns=31, inode=2**64 - 1, device=2**63)
BAD = Problem("binary content: not indexed")
PARTIAL = Problem("not UTF-8 at byte 3: read with U+FFFD there", is_partial=True)
NOTHING = ChunkDiff(added=(), changed=(), removed=(), shifted=0, kept=0)


@pytest.fixture(params=["fake", "sqlite"])
def catalogue(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Catalog]:
    """Return an empty catalog of either kind."""
    if request.param == "fake":
        yield FakeCatalogue()
        return
    with SqliteCatalog(tmp_path / "state.sqlite") as made:
        yield made


@pytest.fixture
def sqlite(tmp_path: Path) -> Iterator[SqliteCatalog]:
    """Return an empty catalog in SQLite."""
    with SqliteCatalog(tmp_path / "state.sqlite") as made:
        yield made


def chunk(chunk_id: str, start: int = 1, end: int = 2) -> ChunkRecord:
    return ChunkRecord(
        chunk_id=chunk_id,
        vector_key=f"key {chunk_id}",
        row_hash=f"row {chunk_id}",
        start_line=start,
        end_line=end,
    )


def known(*chunks: ChunkRecord, problem: Problem | None = None, read_ns: int = 1_000) -> FileRecord:
    digest = "" if problem and not problem.is_partial else "digest"
    return FileRecord(
        fingerprint=SEEN,
        read_ns=read_ns,
        content_digest=digest,
        recipe_digest="recipe",
        is_confirmed=True,
        chunks=chunks,
        problem=problem,
    )


def update(origin: RootedPath, state: FileRecord | None) -> FileUpdate:
    return FileUpdate(
        origin=origin, new_record=state, diff=NOTHING, texts_to_embed=(), reason="a reason"
    )


def keep(catalogue: Catalog, origin: RootedPath, state: FileRecord | None) -> None:
    """Save the intent and apply it, as a commit does."""
    catalogue.save_intents([update(origin, state)])
    catalogue.confirm_updates([update(origin, state)])


def wanted(catalogue: Catalog) -> set[tuple[str, RootedPath]]:
    return {(chunk_id, origin) for chunk_id, _, origin in catalogue.iter_expected_rows()}


# intend and apply


def test_an_empty_catalogue_knows_nothing(catalogue: Catalog) -> None:
    assert catalogue.get_record(A) is None
    assert catalogue.list_records("notes", "") == {}
    assert wanted(catalogue) == set()
    assert list(catalogue.list_failures()) == []
    assert catalogue.locate_chunks(["x"]) == {}


def test_what_was_applied_is_known(catalogue: Catalog) -> None:
    state = known(chunk("x", 1, 4), chunk("y", 5, 9))
    keep(catalogue, A, state)
    assert catalogue.get_record(A) == state
    assert catalogue.get_record(B) is None
    assert wanted(catalogue) == {("x", A), ("y", A)}


def test_chunks_keep_their_order(catalogue: Catalog) -> None:
    state = known(*[chunk(name) for name in "zmabq"])
    keep(catalogue, A, state)
    assert catalogue.get_record(A) == state


def test_numbers_of_any_file_system_come_back_whole(catalogue: Catalog) -> None:
    state = known()._replace(fingerprint=LATER)
    keep(catalogue, A, state)
    assert catalogue.get_record(A) == state


def test_a_new_file_between_intent_and_confirmation_is_not_settled(catalogue: Catalog) -> None:
    catalogue.save_intents([update(A, known(chunk("x")))])
    assert catalogue.get_record(A) == FileRecord(
        fingerprint=NO_FINGERPRINT,
        read_ns=0,
        content_digest="",
        recipe_digest="",
        is_confirmed=False,
    )
    assert wanted(catalogue) == {("x", A)}


def test_a_known_file_between_intent_and_confirmation_keeps_its_old_state_without_chunks(
    catalogue: Catalog,
) -> None:
    state = known(chunk("x"))
    keep(catalogue, A, state)
    catalogue.save_intents(
        [update(A, known(chunk("y"))._replace(content_digest="other", recipe_digest="other"))]
    )
    assert catalogue.get_record(A) == state._replace(is_confirmed=False, chunks=())
    assert wanted(catalogue) == {("y", A)}


def test_a_file_that_is_about_to_be_forgotten_wants_no_chunks(catalogue: Catalog) -> None:
    keep(catalogue, A, known(chunk("x")))
    catalogue.save_intents([update(A, None)])
    before = catalogue.get_record(A)
    assert before is not None
    assert not before.is_confirmed
    assert wanted(catalogue) == set()
    catalogue.confirm_updates([update(A, None)])
    assert catalogue.get_record(A) is None


def test_an_intent_can_be_changed_before_it_is_confirmed(catalogue: Catalog) -> None:
    keep(catalogue, A, known(chunk("x")))
    catalogue.save_intents([update(A, known(chunk("y")))])
    catalogue.save_intents([update(A, known(chunk("z"), chunk("x")))])
    assert wanted(catalogue) == {("z", A), ("x", A)}
    state = known(chunk("z"), chunk("x"))
    catalogue.confirm_updates([update(A, state)])
    assert catalogue.get_record(A) == state
    assert wanted(catalogue) == {("z", A), ("x", A)}


def test_applying_without_an_intent_is_enough_when_the_store_is_not_touched(
    catalogue: Catalog,
) -> None:
    keep(catalogue, A, known(chunk("x", 1, 2)))
    catalogue.confirm_updates([update(A, known(chunk("x", 7, 8)))])
    assert catalogue.get_record(A) == known(chunk("x", 7, 8))
    catalogue.confirm_updates([update(B, known())])
    assert catalogue.get_record(B) == known()


def test_applying_twice_is_applying_once(catalogue: Catalog) -> None:
    keep(catalogue, A, known(chunk("x")))
    catalogue.confirm_updates([update(A, known(chunk("x")))])
    assert catalogue.get_record(A) == known(chunk("x"))
    assert list(catalogue.iter_expected_rows()) == [("x", chunk("x").row_hash, A)]


def test_forgetting_an_unknown_file_is_no_error(catalogue: Catalog) -> None:
    keep(catalogue, A, None)
    catalogue.confirm_updates([update(B, None)])
    assert catalogue.get_record(A) is None
    assert catalogue.list_records("notes", "") == {}


def test_a_batch_takes_in_many_files(catalogue: Catalog) -> None:
    states = {RootedPath("notes", f"{n}.md"): known(chunk(f"c{n}")) for n in range(20)}
    batch = [update(origin, state) for origin, state in states.items()]
    catalogue.save_intents(batch)
    catalogue.confirm_updates(batch)
    assert {origin: catalogue.get_record(origin) for origin in states} == states


def test_empty_batches_are_no_error(catalogue: Catalog) -> None:
    catalogue.save_intents([])
    catalogue.confirm_updates([])
    catalogue.update_fingerprints([])
    catalogue.mark_for_reread([])
    assert catalogue.list_records("notes", "") == {}


def test_the_same_path_in_two_roots_is_two_files(catalogue: Catalog) -> None:
    other = RootedPath("other", "a.md")
    keep(catalogue, A, known(chunk("x")))
    keep(catalogue, other, known(chunk("y")))
    keep(catalogue, A, None)
    assert catalogue.get_record(other) == known(chunk("y"))


# fingerprints and doubt


def test_a_new_fingerprint_replaces_the_old_one_and_nothing_else(catalogue: Catalog) -> None:
    state = known(chunk("x"), problem=PARTIAL)
    keep(catalogue, A, state)
    catalogue.update_fingerprints([(A, LATER, 9_000), (B, LATER, 9_000)])
    assert catalogue.get_record(A) == state._replace(fingerprint=LATER, read_ns=9_000)
    assert catalogue.get_record(B) is None


def test_a_new_fingerprint_does_not_confirm_an_intent(catalogue: Catalog) -> None:
    catalogue.save_intents([update(A, known(chunk("x")))])
    catalogue.update_fingerprints([(A, LATER, 9_000)])
    state = catalogue.get_record(A)
    assert state is not None
    assert not state.is_confirmed


def test_a_doubted_file_is_not_settled_and_its_chunks_stay_listed(catalogue: Catalog) -> None:
    keep(catalogue, A, known(chunk("x", 3, 4)))
    keep(catalogue, B, known(chunk("y")))
    catalogue.mark_for_reread([A])
    assert catalogue.get_record(A) == known()._replace(is_confirmed=False)
    assert catalogue.get_record(B) == known(chunk("y"))
    assert wanted(catalogue) == {("x", A), ("y", B)}
    assert catalogue.locate_chunks(["x"]) == {"x": ChunkLocation(A, 3, 4, 0, "key x")}


def test_doubt_ends_when_the_file_is_applied_again(catalogue: Catalog) -> None:
    keep(catalogue, A, known(chunk("x")))
    catalogue.mark_for_reread([A])
    catalogue.mark_for_reread([A])
    keep(catalogue, A, known(chunk("z")))
    assert catalogue.get_record(A) == known(chunk("z"))
    assert wanted(catalogue) == {("z", A)}


def test_doubt_about_an_intent_or_an_unknown_file_changes_nothing(catalogue: Catalog) -> None:
    catalogue.save_intents([update(A, known(chunk("x")))])
    catalogue.mark_for_reread([A, B])
    assert wanted(catalogue) == {("x", A)}
    assert catalogue.get_record(B) is None


# overview

TREE = (
    "a",
    "a.md",
    "a/b.md",
    "a/b/c.md",
    "a/b/d/e.md",
    "a0",
    "a-b/x.md",
    "ab/x.md",
    "a b/x.md",
    "z.md",
    "%/x.md",
    "_/x.md",
)


@pytest.mark.parametrize(
    ("prefix", "paths"),
    [
        ("", set(TREE)),
        ("a", {"a", "a/b.md", "a/b/c.md", "a/b/d/e.md"}),
        ("a/b", {"a/b/c.md", "a/b/d/e.md"}),
        ("a/b.md", {"a/b.md"}),
        ("a b", {"a b/x.md"}),
        ("%", {"%/x.md"}),
        ("_", {"_/x.md"}),
        ("nothing", set()),
        ("a/", set()),
        ("'", set()),
    ],
)
def test_a_prefix_is_a_file_or_a_folder(catalogue: Catalog, prefix: str, paths: set[str]) -> None:
    catalogue.confirm_updates([update(RootedPath("notes", path), known()) for path in TREE])
    catalogue.confirm_updates([update(RootedPath("other", path), known()) for path in TREE])
    assert set(catalogue.list_records("notes", prefix)) == paths


def test_an_overview_leaves_chunks_out(catalogue: Catalog) -> None:
    keep(catalogue, A, known(chunk("x"), chunk("y")))
    keep(catalogue, B, known(problem=BAD))
    assert catalogue.list_records("notes", "") == {
        "a.md": known()._replace(chunks=()),
        "b.md": known(problem=BAD)._replace(chunks=()),
    }


def test_an_overview_shows_intents(catalogue: Catalog) -> None:
    keep(catalogue, A, known(chunk("x")))
    catalogue.save_intents([update(A, known(chunk("x"), chunk("y"))), update(B, known(chunk("z")))])
    assert catalogue.list_records("notes", "") == {
        "a.md": known()._replace(is_confirmed=False),
        "b.md": FileRecord(
            fingerprint=NO_FINGERPRINT,
            read_ns=0,
            content_digest="",
            recipe_digest="",
            is_confirmed=False,
        ),
    }


# Names


@pytest.mark.parametrize(
    "path",
    ["caf\udce9.md", 'it\'s "x".md', "new\nline.md", "日本 🎈.md", "a\\xff.md", "%_*?.md", " "],
)
def test_any_name_of_the_system_comes_back(catalogue: Catalog, path: str) -> None:
    origin = RootedPath("it's", f"sub/{path}")
    state = known(chunk("x"), problem=PARTIAL)
    keep(catalogue, origin, state)
    assert catalogue.get_record(origin) == state
    assert list(catalogue.list_records("it's", "sub")) == [origin.path]
    assert wanted(catalogue) == {("x", origin)}
    assert catalogue.locate_chunks(["x"]) == {"x": ChunkLocation(origin, 1, 2, 0, "key x")}
    assert [failure.origin for failure in catalogue.list_failures()] == [origin]


def test_an_undecodable_name_is_not_the_name_it_is_printed_as(catalogue: Catalog) -> None:
    keep(catalogue, RootedPath("notes", "a\udcff.md"), known(chunk("x")))
    assert catalogue.get_record(RootedPath("notes", "a\\xff.md")) is None


# failures


def test_problems_are_listed_by_root_and_path_with_the_time_since_when(catalogue: Catalog) -> None:
    origins = [
        RootedPath("b", "z.md"),
        RootedPath("a", "é.md"),
        RootedPath("a", "z.md"),
        RootedPath("a", "b\udcff.md"),
    ]
    for n, origin in enumerate(origins):
        keep(catalogue, origin, known(problem=BAD, read_ns=n))
    keep(catalogue, A, known(chunk("x")))
    assert list(catalogue.list_failures()) == [
        FileFailure(origins[3], BAD, 3),
        FileFailure(origins[2], BAD, 2),
        FileFailure(origins[1], BAD, 1),
        FileFailure(origins[0], BAD, 0),
    ]


def test_a_lasting_problem_keeps_its_first_time(catalogue: Catalog) -> None:
    keep(catalogue, A, known(problem=BAD, read_ns=1))
    keep(catalogue, A, known(problem=BAD, read_ns=2))
    assert list(catalogue.list_failures()) == [FileFailure(A, BAD, 1)]


def test_another_problem_begins_its_own_time(catalogue: Catalog) -> None:
    keep(catalogue, A, known(problem=BAD, read_ns=1))
    keep(catalogue, A, known(problem=PARTIAL, read_ns=2))
    assert list(catalogue.list_failures()) == [FileFailure(A, PARTIAL, 2)]


def test_a_solved_problem_is_not_listed_and_a_later_one_has_its_own_time(
    catalogue: Catalog,
) -> None:
    keep(catalogue, A, known(problem=BAD, read_ns=1))
    keep(catalogue, A, known())
    assert list(catalogue.list_failures()) == []
    keep(catalogue, A, known(problem=BAD, read_ns=3))
    assert list(catalogue.list_failures()) == [FileFailure(A, BAD, 3)]


def test_a_problem_stays_listed_until_its_end_is_confirmed(catalogue: Catalog) -> None:
    keep(catalogue, A, known(problem=BAD, read_ns=1))
    catalogue.save_intents([update(A, known(chunk("x")))])
    assert list(catalogue.list_failures()) == [FileFailure(A, BAD, 1)]


# spots


def test_spots_say_where_chunks_stand(catalogue: Catalog) -> None:
    keep(catalogue, A, known(chunk("x", 1, 4), chunk("y", 5, 9)))
    keep(catalogue, B, known(chunk("z", 2, 3)))
    assert catalogue.locate_chunks(["z", "y", "unknown", "y"]) == {
        "z": ChunkLocation(B, 2, 3, 0, "key z"),
        "y": ChunkLocation(A, 5, 9, 1, "key y"),
    }
    assert catalogue.locate_chunks([]) == {}


def test_between_intent_and_confirmation_old_rows_have_a_place_and_moved_ones_the_new_one(
    catalogue: Catalog,
) -> None:
    keep(catalogue, A, known(chunk("old", 1, 2), chunk("moved", 3, 4)))
    catalogue.save_intents([update(A, known(chunk("new", 1, 5), chunk("moved", 6, 7)))])
    assert catalogue.locate_chunks(["old", "moved", "new"]) == {
        "old": ChunkLocation(A, 1, 2, 0, "key old"),
        "moved": ChunkLocation(A, 6, 7, 1, "key moved"),
        "new": ChunkLocation(A, 1, 5, 0, "key new"),
    }  # fmt: skip
    catalogue.confirm_updates([update(A, known(chunk("new", 1, 5), chunk("moved", 6, 7)))])
    assert set(catalogue.locate_chunks(["old", "moved", "new"])) == {"moved", "new"}


def test_more_ids_than_fit_a_statement_are_handled(catalogue: Catalog) -> None:
    keep(catalogue, A, known(*[chunk(f"{n}") for n in range(1_300)]))
    assert len(catalogue.locate_chunks([f"{n}" for n in range(1_300)])) == 1_300


# The fake against SQLite

ORIGINS = (A, B, RootedPath("notes", "b.md/c.md"), RootedPath("other", "\udcff.md"))
STATES = st.none() | st.builds(
    lambda names, problem, read_ns: known(
        *[chunk(n, read_ns, read_ns) for n in names], problem=problem, read_ns=read_ns
    ),
    st.lists(st.sampled_from("uvwxyz"), unique=True),
    st.sampled_from([None, None, BAD, PARTIAL]),
    st.integers(1, 9),
)
STEPS = st.lists(
    st.tuples(
        st.sampled_from(["intend", "apply", "both", "seen", "doubt"]),
        st.sampled_from(ORIGINS),
        STATES,
    ),
    min_size=1,
    max_size=15,
)


def step(catalogue: Catalog, name: str, origin: RootedPath, state: FileRecord | None) -> None:
    # No two files share a chunk: ids are made of paths.
    own = state and state._replace(
        chunks=tuple(
            replace(c, chunk_id=f"{ORIGINS.index(origin)}{c.chunk_id}") for c in state.chunks
        )
    )
    if name in ("intend", "both"):
        catalogue.save_intents([update(origin, own)])
    if name in ("apply", "both"):
        catalogue.confirm_updates([update(origin, own)])
    if name == "seen":
        catalogue.update_fingerprints([(origin, LATER, 77)])
    if name == "doubt":
        catalogue.mark_for_reread([origin])


def observed(catalogue: Catalog) -> Sequence[object]:
    ids = [chunk_id for chunk_id, _, _ in catalogue.iter_expected_rows()]
    return (
        [catalogue.get_record(origin) for origin in ORIGINS],
        [
            catalogue.list_records("notes", ""),
            catalogue.list_records("notes", "b.md"),
            catalogue.list_records("other", ""),
        ],
        sorted(catalogue.iter_expected_rows()),
        list(catalogue.list_failures()),
        catalogue.locate_chunks(ids),
    )


@given(STEPS)
def test_any_order_of_steps_leaves_both_makes_with_the_same_answers(
    steps: Sequence[tuple[str, RootedPath, FileRecord | None]],
) -> None:
    fake = FakeCatalogue()
    with (
        tempfile.TemporaryDirectory() as folder,
        SqliteCatalog(Path(folder) / "state.sqlite") as real,
    ):
        for name, origin, state in steps:
            step(fake, name, origin, state)
            step(real, name, origin, state)
            assert observed(real) == observed(fake)


# Only SQLite


def test_an_edit_of_one_chunk_of_a_hundred_writes_one(tmp_path: Path) -> None:
    before = [chunk(f"{n}", 2 * n + 1, 2 * n + 2) for n in range(100)]
    after = [*before[:40], replace(before[40], chunk_id="new"), *before[41:]]
    with SqliteCatalog(tmp_path / "state.sqlite") as sqlite:
        keep(sqlite, A, known(*before))
        changes = sqlite._db.total_changes
        keep(sqlite, A, known(*after))
        assert (
            sqlite._db.total_changes - changes == 4
        )  # The file twice; a chunk that comes, and one that goes.
        assert sqlite.get_record(A) == known(*after)
        changes = sqlite._db.total_changes
        sqlite.confirm_updates(
            [
                update(
                    A,
                    known(
                        *after[:40], *[replace(c, start_line=c.start_line + 1) for c in after[40:]]
                    ),
                )
            ]
        )
        assert sqlite._db.total_changes - changes == 61  # Lines alone: no intent is needed.


@pytest.mark.parametrize("wanted", ["", "a", "ba", "abcde", "xbc", "abcx", "xyz", "cab"])
@pytest.mark.parametrize("confirmed", ["", "abc", "c", "abxc", "abcdef"])
def test_whatever_was_intended_what_is_confirmed_stands(
    tmp_path: Path, wanted: str, confirmed: str
) -> None:
    with SqliteCatalog(tmp_path / "state.sqlite") as sqlite:
        keep(sqlite, A, known(*map(chunk, "abc")))
        sqlite.save_intents([update(A, known(*map(chunk, wanted)))])
        assert {chunk_id for chunk_id, *_ in sqlite.iter_expected_rows()} == set(wanted)
        assert sqlite.counts_by_root()["notes"][1] == len(wanted)
        assert set(sqlite.locate_chunks("abcdexyz")) == {*"abc", *wanted}
        assert sqlite.chunk_ids_with_prefix("", 9) == sorted(
            set("abc") | set(wanted) & set("abcde")
        )
        around = {
            chunk_id: list(sqlite.neighbor_chunk_ids(chunk_id, 9)) for chunk_id in {*"abc", *wanted}
        }
        assert all(
            around[chunk_id] in (list("abc"), list(wanted)) and chunk_id in around[chunk_id]
            for chunk_id in around
        )
        sqlite.confirm_updates([update(A, known(*map(chunk, confirmed)))])
        assert sqlite.get_record(A) == known(*map(chunk, confirmed))
        assert sorted(chunk_id for chunk_id, *_ in sqlite.iter_expected_rows()) == sorted(confirmed)
        assert sqlite.counts_by_root()["notes"][1] == len(confirmed)
        assert sqlite._db.execute("SELECT count(*) FROM chunks").fetchone() == (len(confirmed),)


def test_everything_outlives_the_process(tmp_path: Path) -> None:
    with SqliteCatalog(tmp_path / "state.sqlite") as first:
        keep(first, A, known(chunk("x")))
        first.save_intents([update(B, known(chunk("y")))])
        first.set_meta("clean", "0")
    with SqliteCatalog(tmp_path / "state.sqlite") as again:
        assert again.get_record(A) == known(chunk("x"))
        unconfirmed = again.get_record(B)
        assert unconfirmed is not None
        assert not unconfirmed.is_confirmed
        assert again.get_meta("clean") == "0"


def test_a_batch_that_fails_half_way_leaves_nothing(sqlite: SqliteCatalog) -> None:
    keep(sqlite, A, known(chunk("x")))
    bad = known(replace(chunk("y"), start_line=None))  # type: ignore[arg-type]
    for call in (sqlite.save_intents, sqlite.confirm_updates):
        with pytest.raises(StoreError):
            call([update(B, known(chunk("z"))), update(A, bad)])
        assert sqlite.get_record(A) == known(chunk("x"))
        assert sqlite.get_record(B) is None
    keep(sqlite, B, known(chunk("z")))
    assert sqlite.get_record(B) == known(chunk("z"))


def test_a_reader_sees_whole_transactions_while_the_writer_writes(tmp_path: Path) -> None:
    file = tmp_path / "state.sqlite"
    with SqliteCatalog(file) as writer, SqliteCatalog(file, read_only=True) as reader:
        keep(writer, A, known(chunk("x")))
        assert reader.get_record(A) == known(chunk("x"))
        keep(writer, A, known(chunk("y")))
        assert reader.locate_chunks(["x", "y"]) == {"y": ChunkLocation(A, 1, 2, 0, "key y")}


def test_a_reader_cannot_write(tmp_path: Path) -> None:
    file = tmp_path / "state.sqlite"
    SqliteCatalog(file).close()
    with SqliteCatalog(file, read_only=True) as reader, pytest.raises(StoreError, match="readonly"):
        reader.set_meta("key", "value")


def test_a_reader_without_a_file_gets_an_error_and_makes_none(tmp_path: Path) -> None:
    with pytest.raises(StoreError):
        SqliteCatalog(tmp_path / "state.sqlite", read_only=True)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    "name", ["50% off?.sqlite", "a#b.sqlite", "it's.sqlite", "%41.sqlite", "ü.sqlite"]
)
def test_the_file_has_the_very_name_that_was_given(tmp_path: Path, name: str) -> None:
    SqliteCatalog(tmp_path / name).close()
    assert [file.name for file in tmp_path.iterdir()] == [name]


@pytest.mark.parametrize("read_only", [False, True])
def test_a_damaged_file_is_a_store_error_and_stays_as_it_is(
    tmp_path: Path,
    read_only: bool,  # noqa: FBT001 - a table
) -> None:
    file = tmp_path / "state.sqlite"
    file.write_bytes(b"no database at all\n" * 100)
    with pytest.raises(StoreError, match="not a database"):
        SqliteCatalog(file, read_only=read_only)
    assert file.read_bytes().startswith(b"no database")


def test_a_reader_of_an_empty_file_gets_an_error(tmp_path: Path) -> None:
    # A writer that is killed before it creates the tables leaves this file.
    file = tmp_path / "state.sqlite"
    file.touch()
    with pytest.raises(StoreError), SqliteCatalog(file, read_only=True) as reader:
        reader.get_record(A)


def test_a_file_of_a_newer_version_is_left_alone(tmp_path: Path) -> None:
    file = tmp_path / "state.sqlite"
    SqliteCatalog(file).close()
    with closing(sqlite3.connect(file)) as db:
        db.execute(f"PRAGMA user_version={SCHEMA_VERSION + 1}")
    with pytest.raises(StoreError, match="newer anchord") as raised:
        SqliteCatalog(file)
    assert raised.value.hint == "update anchord"


def test_what_was_applied_is_on_the_disk_when_the_call_returns(sqlite: SqliteCatalog) -> None:
    assert sqlite._db.execute("PRAGMA synchronous").fetchone() == (2,)
    assert sqlite._db.execute("PRAGMA journal_mode").fetchone() == ("wal",)


def test_chunks_of_forgotten_files_leave_no_trace(sqlite: SqliteCatalog) -> None:
    keep(sqlite, A, known(chunk("x"), chunk("y")))
    sqlite.save_intents([update(A, known(chunk("z")))])
    keep(sqlite, A, None)
    assert sqlite._db.execute("SELECT count(*) FROM chunks").fetchone() == (0,)


def test_the_reason_of_the_last_change_is_kept(sqlite: SqliteCatalog) -> None:
    sqlite.confirm_updates([replace(update(A, known()), reason="new file")])
    assert sqlite.last_reason(A) == "new file"
    assert sqlite.last_reason(B) == ""


def test_neighbours_are_the_chunks_before_and_after(sqlite: SqliteCatalog) -> None:
    keep(sqlite, A, known(*[chunk(name) for name in "abcde"]))
    keep(sqlite, B, known(chunk("z")))
    assert sqlite.neighbor_chunk_ids("c", 1) == ["b", "c", "d"]
    assert sqlite.neighbor_chunk_ids("a", 2) == ["a", "b", "c"]
    assert sqlite.neighbor_chunk_ids("z", 9) == ["z"]
    assert sqlite.neighbor_chunk_ids("unknown", 1) == []


def test_the_place_of_a_chunk_is_its_number_its_siblings_and_its_neighbours(
    sqlite: SqliteCatalog,
) -> None:
    keep(sqlite, A, known(*map(chunk, "abc")))
    keep(sqlite, B, known(chunk("z")))
    assert sqlite.chunk_places(["b", "c", "z", "unknown"]) == {
        "b": ChunkPlace(1, 3, "a", "c"),
        "c": ChunkPlace(2, 3, "b"),
        "z": ChunkPlace(0, 1),
    }
    assert sqlite.chunk_places([]) == {}
    # An unchanged chunk keeps the generation of its row.
    keep(sqlite, A, known(*map(chunk, "axc")))
    assert sqlite.chunk_places(["a", "c"]) == {
        "a": ChunkPlace(0, 3, None, "x"),
        "c": ChunkPlace(2, 3, "x"),
    }


def test_while_a_file_is_being_changed_its_chunks_have_no_place(sqlite: SqliteCatalog) -> None:
    keep(sqlite, A, known(*map(chunk, "ab")))
    sqlite.save_intents([update(A, known(*map(chunk, "b")))])
    assert sqlite.chunk_places(["a", "b"]) == {}


def test_an_id_can_be_given_by_its_first_digits(sqlite: SqliteCatalog) -> None:
    keep(sqlite, A, known(*[chunk(name) for name in ("ab1", "ab2", "abf", "ac0", "b00")]))
    assert sorted(sqlite.chunk_ids_with_prefix("ab", 10)) == ["ab1", "ab2", "abf"]
    assert len(sqlite.chunk_ids_with_prefix("ab", 2)) == 2
    assert sqlite.chunk_ids_with_prefix("ff", 10) == []


def test_an_id_in_doubt_is_given_once(sqlite: SqliteCatalog) -> None:
    keep(sqlite, A, known(chunk("ab1")))
    sqlite.save_intents([update(A, known(chunk("ab1")))])
    assert sqlite.chunk_ids_with_prefix("ab", 10) == ["ab1"]


def test_counts_leave_unusable_files_out(sqlite: SqliteCatalog) -> None:
    keep(sqlite, A, known(chunk("x"), chunk("y")))
    keep(sqlite, B, known(problem=BAD))
    keep(sqlite, RootedPath("notes", "empty.md"), known())
    keep(sqlite, RootedPath("other", "a.md"), known(chunk("z"), problem=PARTIAL))
    assert sqlite.counts_by_root() == {"notes": (2, 2), "other": (1, 1)}


def test_a_root_is_forgotten_with_its_files(sqlite: SqliteCatalog) -> None:
    keep(sqlite, A, known(chunk("x")))
    keep(sqlite, RootedPath("other", "a.md"), known(chunk("z")))
    assert sorted(sqlite.root_names()) == ["notes", "other"]
    assert list(sqlite.list_records("notes", "")) == [A.path]
    sqlite.delete_root_records("notes")
    assert sqlite.root_names() == ["other"]
    assert wanted(sqlite) == {("z", RootedPath("other", "a.md"))}


def test_small_facts_are_kept_and_overwritten(sqlite: SqliteCatalog) -> None:
    assert sqlite.get_meta("clean") == ""
    sqlite.set_meta("clean", "0")
    sqlite.set_meta("clean", "1")
    assert sqlite.get_meta("clean") == "1"


def test_what_is_taken_over_is_there_at_once_for_whoever_reads_beside(tmp_path: Path) -> None:
    place, other = tmp_path / "state.sqlite", tmp_path / "next.sqlite"
    with SqliteCatalog(place) as catalogue, SqliteCatalog(other) as following:
        keep(catalogue, A, known(chunk("x")))
        keep(following, B, known(chunk("y")))
        with SqliteCatalog(place, read_only=True) as beside:
            assert set(beside.list_records("notes", "")) == {"a.md"}
            catalogue.overwrite_from(other)
            assert set(beside.list_records("notes", "")) == {"b.md"}
        keep(catalogue, A, known(chunk("z")))
        assert set(catalogue.list_records("notes", "")) == {"a.md", "b.md"}
        assert set(following.list_records("notes", "")) == {"b.md"}
        assert catalogue.is_intact()


def test_nothing_is_taken_over_from_a_file_that_is_not_there(tmp_path: Path) -> None:
    with SqliteCatalog(tmp_path / "state.sqlite") as catalogue:
        keep(catalogue, A, known(chunk("x")))
        with pytest.raises(StoreError):
            catalogue.overwrite_from(tmp_path / "next.sqlite")
        assert set(catalogue.list_records("notes", "")) == {"a.md"}
    assert not (tmp_path / "next.sqlite").exists()
