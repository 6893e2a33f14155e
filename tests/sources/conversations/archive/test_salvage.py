"""What a salvage saves of a damaged archive, over seeded damages; none of them may raise."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from itertools import product
from pathlib import Path
from random import Random

import pytest
from sample_archive import DAMAGES, ROOT, contents_of, flip_bytes, write_archive

from anchord.core.types import RootedPath
from anchord.errors import StoreError
from anchord.sources.conversations.archive.page_records import find_damage_before_open
from anchord.sources.conversations.archive.reader import Archive
from anchord.sources.conversations.archive.salvage import (
    SalvageResult,
    _best_place,
    fit_columns,
    salvage_archive,
    table_columns,
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


@pytest.mark.parametrize("seed", range(3 * len(DAMAGES)))
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
