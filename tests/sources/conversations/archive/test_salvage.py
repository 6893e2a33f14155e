"""What a salvage saves of a damaged archive, over seeded damages; none of them may raise."""

from __future__ import annotations

import json
import os
import sqlite3
import zlib
from collections.abc import Iterator
from contextlib import closing
from itertools import product
from pathlib import Path
from random import Random
from typing import Any

import pytest
from sample_archive import DAMAGES, ROOT, contents_of, flip_bytes, write_archive

from anchord.core.ids import hash_content
from anchord.core.types import RootedPath
from anchord.errors import StoreError
from anchord.sources.conversations.archive import salvage as module
from anchord.sources.conversations.archive.page_records import (
    FoundRecord,
    PageLayout,
    Value,
    find_damage_before_open,
)
from anchord.sources.conversations.archive.reader import Archive
from anchord.sources.conversations.archive.record_columns import (
    Column,
    fit_columns,
    table_columns,
)
from anchord.sources.conversations.archive.salvage import (
    SalvageResult,
    _best_place,
    _Salvage,
    salvage_archive,
)
from anchord.sources.conversations.archive.schema import open_database

Contents = dict[RootedPath, bytes]


@pytest.fixture(scope="module")
def sample(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Contents]:
    file = tmp_path_factory.mktemp("sample") / "archive.sqlite"
    return file, write_archive(file, 500)


def salvage(file: Path, new: Path) -> tuple[Contents, SalvageResult]:
    """Salvage, and check that the new archive is sound."""
    result = salvage_archive(file, new)
    with closing(sqlite3.connect(new)) as db:
        assert db.execute("PRAGMA integrity_check").fetchone() == ("ok",)
        assert db.execute("PRAGMA foreign_key_check").fetchall() == []
    found = contents_of(new)
    assert len(found) == result.saved_count
    return found, result


def test_all_of_an_undamaged_archive_is_saved_with_ids_and_versions(
    sample: tuple[Path, Contents], tmp_path: Path
) -> None:
    file, contents = sample
    found, result = salvage(file, tmp_path / "new.sqlite")
    assert (found, result.lost) == (contents, ())
    copy = tmp_path / "copy.sqlite"
    for suffix in ("", "-wal"):
        Path(f"{copy}{suffix}").write_bytes(Path(f"{file}{suffix}").read_bytes())
    with closing(Archive(copy)) as old, closing(Archive(tmp_path / "new.sqlite")) as new:
        assert old.list_exchanges(ROOT) == new.list_exchanges(ROOT)
        for table in ("sessions", "tellings", "heads"):
            rows = f"SELECT * FROM {table} ORDER BY 1, 2"
            assert old._db.execute(rows).fetchall() == new._db.execute(rows).fetchall()
        # Versions of lost exchanges, which the catalog may still hold, are not used again.
        assert int(new.get_meta("version")) > int(old.get_meta("version"))


@pytest.mark.parametrize(
    "seed",
    [
        pytest.param(seed, marks=[pytest.mark.slow] if seed >= len(DAMAGES) else [])
        for seed in range(3 * len(DAMAGES))
    ],
)
def test_no_damage_raises_and_only_what_it_hit_is_lost(
    sample: tuple[Path, Contents], tmp_path: Path, seed: int
) -> None:
    file, contents = sample
    random, damage = Random(seed), DAMAGES[seed % len(DAMAGES)]  # noqa: S311 - a sample
    target = tmp_path / "damaged.sqlite"
    data = {suffix: bytearray(Path(f"{file}{suffix}").read_bytes()) for suffix in ("", "-wal")}
    damage(data[random.choice(["", "", "", "-wal"])], random)
    for suffix, content in data.items():
        Path(f"{target}{suffix}").write_bytes(content)
    found, result = salvage(target, tmp_path / "new.sqlite")
    assert all(contents.get(path) == content for path, content in found.items())
    assert set(result.lost) <= set(contents) - set(found)
    if damage.__name__ != "truncate":
        assert len(found) >= 0.85 * len(contents)


def test_exchanges_whose_session_and_file_are_lost_get_a_session_made_from_their_path(
    sample: tuple[Path, Contents], tmp_path: Path
) -> None:
    file, contents = sample
    target = tmp_path / "damaged.sqlite"
    for suffix in ("", "-wal"):
        Path(f"{target}{suffix}").write_bytes(Path(f"{file}{suffix}").read_bytes())
    with closing(sqlite3.connect(target)) as db:
        db.executescript("DELETE FROM sessions; DELETE FROM carriers;")  # Without foreign keys.
    new = tmp_path / "new.sqlite"
    salvage_archive(target, new)
    found = contents_of(new)
    assert set(found) == set(contents)
    assert (
        b'"session": "session-0003"'
        in found[RootedPath(ROOT, "/claude-code/session-0003/0003-0001")]
    )


def test_random_bytes_hold_no_exchange_and_raise_nothing(tmp_path: Path) -> None:
    file = tmp_path / "noise.sqlite"
    for seed in range(5):
        random = Random(seed)  # noqa: S311 - likewise
        noise = bytearray(random.randbytes(200_000))
        for page in range(0, len(noise), 4096):
            noise[page] = random.choice([2, 5, 10, 13])
        file.write_bytes(noise)
        new = tmp_path / f"{seed}.sqlite"
        assert salvage_archive(file, new).saved_count == 0


def test_the_tables_of_the_archive_differ_by_the_number_and_the_types_of_their_columns(
    tmp_path: Path,
) -> None:
    # A row is assigned to its table by them. A table that looks like another needs a column more.
    with closing(open_database(tmp_path / "new.sqlite", read_only=False)) as db:
        names = [n for (n,) in db.execute("SELECT name FROM sqlite_master WHERE type='table'")]
        tables = {name: table_columns(db, name) for name in names}
    assert len(tables) >= 6
    for one, other in product(tables, tables):
        assert one == other or not fit_columns(tables[one], tables[other])


def test_a_full_disk_while_an_archive_is_saved_is_a_store_error(
    sample: tuple[Path, Contents], tmp_path: Path
) -> None:
    (tmp_path / "new.sqlite").mkdir()
    with pytest.raises(StoreError):
        salvage_archive(sample[0], tmp_path / "new.sqlite")


def test_a_flipped_bit_in_the_wal_is_found_before_sqlite_opens_the_file(
    sample: tuple[Path, Contents], tmp_path: Path
) -> None:
    file, _ = sample
    assert find_damage_before_open(file) == ""
    target = tmp_path / "damaged.sqlite"
    target.write_bytes(file.read_bytes())
    wal = bytearray(Path(f"{file}-wal").read_bytes())
    flip_bytes(wal, Random(1))  # noqa: S311 - likewise
    Path(f"{target}-wal").write_bytes(wal)
    assert find_damage_before_open(target) == "its write-ahead log is damaged"


@pytest.mark.parametrize(
    ("places", "best"),
    [
        ([("other", "/claude-code/s/1"), ("talks", "/claude-code/s/1")], 1),
        ([("talks", "/claude-code/x/1"), ("talks", "/claude-code/s/1")], 1),
        ([("talks", "/x"), ("other", "/claude-code/s/1")], 0),
        ([("other", "/x"), ("other", "/y")], 0),
        ([("talks", "/claude-code/s/1"), ("talks", "/claude-code//1")], 0),
    ],
)
def test_a_saved_exchange_stands_where_most_witnesses_agree(
    places: list[tuple[str, str]], best: int
) -> None:
    """The session tells the root, and the path as well; of equals the first is taken."""
    assert _best_place(places, ("talks", "claude-code", "s"), "1") == places[best]


# Records, one by one


def content_of(name: object = "1", until: object = "2026") -> bytes:
    return zlib.compress(json.dumps({"exchange": name, "until": until, "text": "words"}).encode())


def exchange(id_: int, path: str = "/claude-code/s/1", **columns: Value) -> FoundRecord:
    """Give a row of `exchanges` as it is stored; the rowid is not repeated among the columns."""
    row: dict[str, Value] = {
        "id": None, "session": 1, "root": "talks", "path": path, "name": path.rsplit("/", 1)[-1],
        "number": 0, "superseded": 0, "until": "", "digest": "", "redacted": "",
        "content": content_of(path.rsplit("/", 1)[-1]), "version": 1, "due": 0, "carrier": None,
        "last_path": None, "detached_ns": 0,
    }  # fmt: skip
    return FoundRecord(id_, tuple({**row, **columns}.values()))


def session(
    id_: int,
    name: str = "s",
    source: str = "claude-code",
    title: str = "",
    root: str = "talks",
) -> FoundRecord:
    return FoundRecord(id_, (None, root, source, name, title, "", ""))


def index_entry(*values: Value) -> FoundRecord:
    return FoundRecord(None, values)


class Salvaged:
    """An archive made from records."""

    def __init__(self, file: Path, *records: FoundRecord) -> None:
        """Salvage them."""
        self._file = file
        with closing(open_database(file, read_only=False)) as db:
            self.result = _Salvage(db).run(records)

    def __call__(self, query: str) -> list[tuple[Any, ...]]:
        """Return the rows that a query gives."""
        with closing(sqlite3.connect(self._file)) as db:
            return db.execute(query).fetchall()

    @property
    def paths(self) -> dict[int, str]:
        """Return the path of each exchange by its id."""
        return dict(self("SELECT id, path FROM exchanges ORDER BY id"))


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "new.sqlite"


@pytest.mark.parametrize(
    ("version", "kept"),
    [(0, 0), (-5, 0), (1, 1), ((1 << 60) - 1, (1 << 60) - 1), (1 << 60, 0), (1 << 61, 0)],
)
def test_an_impossible_version_becomes_zero(file: Path, version: int, kept: int) -> None:
    salvaged = Salvaged(file, session(1), exchange(1, version=version))
    assert salvaged("SELECT version FROM exchanges") == [(kept,)]
    assert salvaged("SELECT value FROM meta WHERE key='version'") == [(str(kept + 1_000_000),)]


@pytest.mark.parametrize(
    ("stored", "last"),
    [("7", 7), ("3", 5), (str((1 << 60) - 1), (1 << 60) - 1), (str(1 << 60), 5), ("x", 5)],
)
def test_the_next_version_is_higher_than_any_that_was_used(
    file: Path, stored: str, last: int
) -> None:
    """A number that no archive can have reached is damaged."""
    salvaged = Salvaged(file, session(1), exchange(1, version=5), index_entry("version", stored))
    assert salvaged("SELECT value FROM meta WHERE key='version'") == [(str(last + 1_000_000),)]


@pytest.mark.parametrize(
    ("redacted", "kept"),
    [
        ("", ""),
        ('{"key": 2}', '{"key": 2}'),
        ("{", ""),
        ('["key"]', ""),
        ("[]", ""),
        ('{"key": "two"}', ""),
        ('{"key": 1, "other": null}', ""),
    ],
)
def test_counts_of_secrets_that_cannot_be_read_are_left_out(
    file: Path, redacted: str, kept: str
) -> None:
    salvaged = Salvaged(file, session(1), exchange(1, redacted=redacted))
    assert salvaged("SELECT redacted FROM exchanges") == [(kept,)]


def test_a_saved_exchange_says_what_its_text_says_and_is_indexed_again(file: Path) -> None:
    data = content_of("the name", "the end")
    salvaged = Salvaged(
        file,
        session(1),
        exchange(1, content=data, name="x", until="x", digest="x", superseded=9, due=0, number=4),
    )
    assert salvaged("SELECT name, until, digest, superseded, due, number FROM exchanges") == [
        ("the name", "the end", hash_content(zlib.decompress(data)), 1, 1, 4)
    ]
    assert salvaged.result == SalvageResult(1, ())


@pytest.mark.parametrize(
    "content",
    [
        b"no zlib",
        zlib.compress(b"no json"),
        zlib.compress(b"[]"),
        zlib.compress(b'{"exchange": "1"}'),
        content_of(1, "2026"),
        content_of("1", 2026),
        content_of()[:-1],
        None,
    ],
)
def test_an_exchange_whose_text_is_not_whole_is_lost_and_named(
    file: Path, content: bytes | None
) -> None:
    salvaged = Salvaged(file, session(1), exchange(1, content=content))
    assert salvaged.paths == {}
    assert salvaged.result == SalvageResult(0, (RootedPath("talks", "/claude-code/s/1"),))


@pytest.mark.parametrize(("versions", "winner"), [((5, 9), 9), ((9, 5), 9), ((5, 5), 5)], ids=str)
def test_of_two_copies_of_an_exchange_the_newest_is_saved_and_of_equals_the_first(
    file: Path, versions: tuple[int, int], winner: int
) -> None:
    """A page that was moved is in the file twice. The other exchange has a version as its id."""
    copies = [exchange(number + 1, version=v, number=number) for number, v in enumerate(versions)]
    others = [exchange(id_, f"/claude-code/s/{id_}") for id_ in (5, 9)]
    salvaged = Salvaged(file, session(1), *others, *copies)
    saved = salvaged("SELECT version, number FROM exchanges WHERE path='/claude-code/s/1'")
    assert saved == [(winner, versions.index(winner))]
    assert {5, 9} <= set(salvaged.paths)
    assert salvaged.result == SalvageResult(3, ())


def test_two_exchanges_with_one_id_are_both_saved(file: Path) -> None:
    salvaged = Salvaged(
        file, session(1), exchange(1, "/claude-code/s/1"), exchange(1, "/claude-code/s/2")
    )
    assert salvaged.paths == {1: "/claude-code/s/1", 2: "/claude-code/s/2"}
    assert salvaged.result == SalvageResult(2, ())


def test_an_exchange_that_only_an_index_names_is_lost_unless_it_was_saved_elsewhere(
    file: Path,
) -> None:
    salvaged = Salvaged(
        file,
        session(1),
        index_entry("talks", "/claude-code/s/lost", 7),
        index_entry("talks", "/claude-code/s/1", 8),  # Saved with the id 1.
        index_entry("talks", "/claude-code/s/other", 2),  # The id is saved, with another path.
        index_entry("talks", "no path of an exchange", 9),
        exchange(1, "/claude-code/s/1"),
        exchange(2, "/claude-code/s/2"),
    )
    assert salvaged.result.lost == (RootedPath("talks", "/claude-code/s/lost"),)
    assert salvaged("SELECT * FROM deleted") == []


def test_sessions_and_files_that_only_an_index_names_are_made_again(file: Path) -> None:
    salvaged = Salvaged(
        file,
        index_entry("talks", "claude-code", "s", 4),
        index_entry("talks", b"project/a.jsonl", 6),
        exchange(1, session=4, carrier=6),
        index_entry(6, 4, "2026", "A title", "/project", "parent"),
    )
    assert salvaged("SELECT * FROM sessions") == [
        (4, "talks", "claude-code", "s", "A title", "/project", "")
    ]
    assert salvaged("SELECT * FROM carriers") == [
        (6, "talks", b"project/a.jsonl", "", 0, 0, 0, 0, 0, "", "", "{}")
    ]
    assert salvaged("SELECT session, carrier FROM exchanges") == [(4, 6)]


def test_an_exchange_without_its_session_gets_one_by_its_path(file: Path) -> None:
    salvaged = Salvaged(
        file, exchange(1, "/codex/the%20one/1", session=3), exchange(2, "/2", session=5)
    )
    assert salvaged("SELECT id, root, source, name FROM sessions ORDER BY id") == [
        (3, "talks", "codex", "the one"),
        (5, "talks", "2", "recovered-5"),
    ]


def test_a_session_whose_id_is_taken_gets_another(file: Path) -> None:
    salvaged = Salvaged(
        file,
        session(1, "one"),
        index_entry("talks", "claude-code", "other", 1),
        exchange(1, "/claude-code/one/1"),
    )
    assert salvaged("SELECT id, name FROM sessions ORDER BY id") == [(1, "one"), (2, "other")]


def test_a_damaged_path_is_corrected_by_index_and_session(file: Path) -> None:
    salvaged = Salvaged(
        file,
        session(1),
        exchange(1, "/claude-code/x/1", root="tulks"),
        index_entry("talks", "/claude-code/s/1", 1),
        exchange(2, "/claude-code/s/2", root="tulks"),
    )
    assert salvaged("SELECT root, path FROM exchanges ORDER BY id") == [
        ("talks", "/claude-code/s/1"),
        ("talks", "/claude-code/s/2"),
    ]
    assert salvaged.result == SalvageResult(2, ())


@pytest.mark.parametrize("is_named", [False, True])
def test_a_session_whose_root_is_unknown_gets_that_of_its_exchanges(
    file: Path, *, is_named: bool
) -> None:
    salvaged = Salvaged(
        file,
        index_entry("talks", b"/home/talks"),  # The table of roots.
        session(1, root="tulks"),
        exchange(1, "/claude-code/s/1"),
        exchange(2, "/claude-code/s/2", root="tulks"),
        index_entry("talks", "/claude-code/s/2", 2),
        *([index_entry("talks", "claude-code", "s", 9)] if is_named else []),
    )
    assert salvaged("SELECT name FROM roots") == [("talks",)]
    assert salvaged("SELECT root, path FROM exchanges ORDER BY id") == [
        ("talks", "/claude-code/s/1"),
        ("talks", "/claude-code/s/2"),
    ]
    joined = "SELECT s.root, s.name FROM exchanges JOIN sessions AS s ON s.id=session"
    assert salvaged(joined) == [("talks", "s")] * 2


def test_an_exchange_that_was_restored_beside_its_damaged_path_is_there_once(file: Path) -> None:
    salvaged = Salvaged(
        file,
        session(1),
        exchange(1, "/claude-code/x/1", content=said("a"), name="1"),
        index_entry("talks", "/claude-code/s/1", 1),
        exchange(2, "/claude-code/s/1", content=said("a")),
        exchange(3, "/claude-code/y/2", content=said("b", "2")),
        index_entry("talks", "/claude-code/s/2", 3),
        exchange(4, "/claude-code/s/2", content=said("another", "2")),
    )
    paths = sorted(salvaged.paths.values())
    assert paths == ["/claude-code/s/1", "/claude-code/s/2", "/claude-code/y/2"]
    assert salvaged("SELECT root, path FROM deleted") == [("talks", "/claude-code/x/1")]


def said(answer: str, name: str = "1") -> bytes:
    fields = {"exchange": name, "until": "2026", "question": "q", "answer": answer}
    return zlib.compress(json.dumps(fields).encode())


def test_what_refers_to_lost_rows_is_removed_and_files_are_due_in_full(file: Path) -> None:
    salvaged = Salvaged(
        file,
        session(1),
        FoundRecord(
            6, (None, "talks", b"a.jsonl", "claude-code", 1, 2, 3, 4, 5, "3", "mark", "{}")
        ),
        exchange(1, "/claude-code/s/1", carrier=6),
        exchange(2, "/claude-code/s/2", carrier=99),
        index_entry(6, 1, "digest", "2026"),
        index_entry(99, 1, "digest", "2026"),
        index_entry(6, 99, "digest", "2026"),
        index_entry(6, 1, "2026", "title", "project", ""),
        index_entry(99, 1, "2026", "title", "project", ""),
        index_entry(6, 99, "2026", "title", "project", ""),
    )
    assert salvaged("SELECT carrier, exchange FROM tellings") == [(6, 1)]
    assert salvaged("SELECT carrier, session FROM heads") == [(6, 1)]
    assert salvaged("SELECT id, carrier FROM exchanges ORDER BY id") == [(1, 6), (2, None)]
    assert salvaged("SELECT size, device, reader, mark FROM carriers") == [(1, 5, "", "")]


def test_an_exchange_and_its_file_belong_together_though_the_note_of_it_is_lost(file: Path) -> None:
    salvaged = Salvaged(
        file,
        session(1),
        FoundRecord(6, (None, "talks", b"a.jsonl", "claude-code", 1, 2, 3, 4, 5, "3", "", "{}")),
        exchange(1, carrier=6),
    )
    assert salvaged("SELECT carrier, exchange FROM tellings") == [(6, 1)]


def test_rows_of_an_older_schema_are_saved_without_the_columns_they_lack(file: Path) -> None:
    older = exchange(1)
    salvaged = Salvaged(file, session(1), FoundRecord(1, older.values[:13]))
    assert salvaged("SELECT id, last_path, detached_ns FROM exchanges") == [(1, None, 0)]
    salvaged = Salvaged(file.with_name("too short"), session(1), FoundRecord(1, older.values[:12]))
    assert salvaged.paths == {}


def test_columns_of_a_wrong_type_cost_only_themselves(file: Path) -> None:
    salvaged = Salvaged(
        file,
        session(1),
        exchange(1, number=None, redacted=5, superseded="x", last_path=7, carrier="x"),
    )
    assert salvaged("SELECT number, redacted, superseded, carrier, last_path FROM exchanges") == [
        (0, "", 0, None, 7)
    ]


def test_of_several_divisions_into_pages_the_one_that_gives_exchanges_counts(
    sample: tuple[Path, Contents], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    layouts = [PageLayout(512, 0), PageLayout(4096, 0), PageLayout(4096, 32)]
    monkeypatch.setattr(module, "layouts_of", lambda *_: layouts)
    open_before = len(os.listdir("/proc/self/fd"))
    assert salvage(sample[0], tmp_path / "new.sqlite")[0] == sample[1]
    assert len(os.listdir("/proc/self/fd")) == open_before


@pytest.mark.parametrize(
    ("last_path", "kept"),
    [(b"a.jsonl", b"a.jsonl"), ("a.jsonl", "a.jsonl"), (0, None), ("", None), (b"", b"")],
)
def test_an_empty_value_of_a_wrong_type_is_no_path(
    file: Path, last_path: Value, kept: Value
) -> None:
    salvaged = Salvaged(file, session(1), exchange(1, last_path=last_path))
    assert salvaged("SELECT last_path FROM exchanges") == [(kept,)]


@pytest.mark.parametrize("place", [0, 1])
def test_of_two_divisions_into_pages_the_right_one_counts_wherever_it_stands(
    sample: tuple[Path, Contents], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, place: int
) -> None:
    layouts = [PageLayout(512, 0)]
    layouts.insert(place, PageLayout(4096, 0))
    monkeypatch.setattr(module, "layouts_of", lambda *_: layouts)
    assert salvage(sample[0], tmp_path / "new.sqlite")[0] == sample[1]


class Pages:
    """What a layout of a file gives."""

    def __init__(self, *records: FoundRecord) -> None:
        """Give these records."""
        self._records = records

    def records(self) -> Iterator[FoundRecord]:
        """Yield them."""
        yield from self._records


def test_only_exchanges_whose_text_is_whole_speak_for_a_division_into_pages(file: Path) -> None:
    pages = Pages(
        session(1),
        exchange(1, "/claude-code/s/1"),
        exchange(2, "/claude-code/s/2", content=b"no zlib"),
        exchange(3, "/claude-code/s/3"),
        index_entry("talks", "/claude-code/s/4", 4),
    )
    with closing(open_database(file, read_only=False)) as db:
        assert _Salvage(db).count_readable(pages) == 2  # type: ignore[arg-type]
        assert db.execute("SELECT count(*) FROM exchanges").fetchone() == (0,)


def test_a_saved_archive_is_one_file(file: Path) -> None:
    """A file in WAL mode has twos in its header, and what is not in it yet beside it."""
    with closing(open_database(file, read_only=False)) as db:
        _Salvage(db).run([session(1), exchange(1)])
        assert [each.name for each in file.parent.iterdir()] == [file.name]
        assert file.read_bytes()[18:20] == b"\x01\x01"


def test_an_exchange_whose_session_has_another_id_is_given_to_that(file: Path) -> None:
    salvaged = Salvaged(file, session(1), exchange(1, "/claude-code/s/1", session=9))
    assert salvaged("SELECT session FROM exchanges") == [(1,)]
    assert salvaged("SELECT id, name FROM sessions") == [(1, "s")]


def test_a_version_that_no_archive_has_reached_counts_for_none(file: Path) -> None:
    salvaged = Salvaged(
        file, session(1), exchange(1, version=0), index_entry("version", str(1 << 60))
    )
    assert salvaged("SELECT value FROM meta WHERE key='version'") == [("1000000",)]


def test_a_file_of_which_only_the_id_is_readable_keeps_its_exchanges(file: Path) -> None:
    salvaged = Salvaged(file, session(1), FoundRecord(6, (None,) * 12), exchange(1, carrier=6))
    assert salvaged("SELECT id, root, path, reader FROM carriers") == [(6, "", b"", "")]
    assert salvaged("SELECT carrier FROM exchanges") == [(6,)]


def test_a_session_of_which_nothing_is_readable_moves_no_exchange(file: Path) -> None:
    salvaged = Salvaged(file, FoundRecord(1, (None,) * 7), exchange(1))
    assert salvaged("SELECT root, path FROM exchanges") == [("talks", "/claude-code/s/1")]


def column(type_: str, *, is_optional: bool = False, is_rowid: bool = False) -> Column:
    return Column("c", type_, is_optional, is_rowid)


ROWID, TEXT, BLOB = column("INTEGER", is_rowid=True), column("TEXT"), column("BLOB")
ADDED = column("TEXT", is_optional=True)


@pytest.mark.parametrize(
    ("one", "other", "fit"),
    [
        ([TEXT, TEXT], [TEXT, TEXT], True),
        ([TEXT, TEXT], [TEXT, BLOB], False),
        ([TEXT, TEXT], [TEXT, TEXT, TEXT], False),
        ([TEXT, TEXT], [ROWID, TEXT], False),
        ([ROWID, TEXT], [ROWID, BLOB], True),
        ([ROWID, TEXT], [ROWID, TEXT, TEXT], False),
        ([ROWID, TEXT, ADDED], [ROWID, BLOB], True),
        ([ROWID, TEXT], [ROWID, TEXT, ADDED], True),
        ([ROWID, TEXT], [ROWID, TEXT, ADDED, ADDED], True),
        ([ROWID, TEXT, TEXT, TEXT], [ROWID, TEXT, ADDED], False),
        ([TEXT, TEXT, ADDED], [TEXT, TEXT], True),
        ([TEXT, BLOB, ADDED], [TEXT, TEXT], False),
        ([TEXT, ADDED, TEXT], [TEXT, TEXT], False),
    ],
)
def test_rows_with_a_rowid_are_told_apart_by_their_number_of_columns_others_also_by_types(
    one: list[Column],
    other: list[Column],
    fit: bool,  # noqa: FBT001 - a column of the table
) -> None:
    assert fit_columns(one, other) is fit
    assert fit_columns(other, one) is fit


def test_a_column_is_optional_if_it_may_be_null_or_has_a_default() -> None:
    with closing(sqlite3.connect(":memory:")) as db:
        db.executescript(
            "CREATE TABLE a(id INTEGER PRIMARY KEY, b TEXT NOT NULL, c BLOB, "
            "d INTEGER NOT NULL DEFAULT 0);"
            "CREATE TABLE w(a TEXT, b INTEGER NOT NULL, PRIMARY KEY(a, b)) WITHOUT ROWID;"
        )
        assert table_columns(db, "a") == (
            Column("id", "INTEGER", is_optional=True, is_rowid=True),
            Column("b", "TEXT", is_optional=False, is_rowid=False),
            Column("c", "BLOB", is_optional=True, is_rowid=False),
            Column("d", "INTEGER", is_optional=True, is_rowid=False),
        )
        assert not any(each.is_rowid for each in table_columns(db, "w"))
