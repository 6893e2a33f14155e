"""Damage of one piece or page loses the versions that need it, and no other."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from sources.conversations.kept.test_pieces import transcript
from sources.conversations.kept.test_store import best, contents, save

from anchord.core.sqlite_connection import open_sqlite
from anchord.core.types import NO_FINGERPRINT
from anchord.errors import StoreUnavailableError
from anchord.index import kept_transcripts as module
from anchord.index.kept_transcripts import open_kept_transcripts
from anchord.sources.conversations.kept.salvage import find_damaged_piece
from anchord.sources.conversations.kept.store import Place
from anchord.sources.conversations.kept.writer import KeptTranscriptsWriter

DATA = [transcript(120_000, seed=seed) for seed in range(4)]


class Home:
    """Four kept transcripts, the first with two versions, and one that is refused."""

    def __init__(self, base: Path) -> None:
        """Keep them."""
        self.file = base / "transcripts.sqlite"
        self.paths: Any = SimpleNamespace(
            kept_transcripts_file=self.file, damaged_folder=base / "damaged"
        )
        self.catalog: Any = SimpleNamespace(get_meta=lambda _: "5")
        self.repairs: list[str] = []
        (base / "talks").mkdir()
        self.places = [Place(str(base / "talks"), f"s{n}.jsonl") for n in range(4)]
        with closing(KeptTranscriptsWriter(self.file)) as kept:
            for place, data in zip(self.places, DATA, strict=True):
                save(kept, place, data)
            save(kept, self.places[0], DATA[0][:50_000])
            kept.refuse([Place(self.places[0].folder, "refused.jsonl")])

    def damage(self, sql: str) -> None:
        """Change the database behind the store."""
        with closing(sqlite3.connect(self.file)) as db:
            db.execute(sql)
            db.commit()

    def open(self) -> KeptTranscriptsWriter | None:
        """Open it as a start does."""
        return open_kept_transcripts(self.paths, self.catalog, self.repairs)


@pytest.fixture
def home(tmp_path: Path) -> Home:
    return Home(tmp_path)


def test_a_damaged_piece_loses_the_versions_that_have_it(home: Home) -> None:
    with closing(open_sqlite(home.file, read_only=True)) as db:
        assert find_damaged_piece(db) == ""
    home.damage(
        "UPDATE chunks SET content=zeroblob(100) WHERE id=(SELECT p.chunk FROM pieces p JOIN "
        "versions v ON v.id=p.version JOIN files f ON f.id=v.file WHERE f.path=CAST('s2.jsonl' AS "
        "BLOB) LIMIT 1)"
    )
    with closing(open_sqlite(home.file, read_only=True)) as db:
        assert find_damaged_piece(db) == "a piece of a transcript"
    module._damage_marker(home.paths).touch()
    kept = home.open()
    assert kept
    with closing(kept):
        assert "4 were saved, 1 could not be read" in home.repairs[0]
        assert contents(kept, home.places[0]) == [DATA[0], DATA[0][:50_000]]
        assert [best(kept, home.places[n]) for n in (1, 3)] == [DATA[1], DATA[3]]
        assert contents(kept, home.places[2]) == []
        assert kept.fingerprint(home.places[2]) == NO_FINGERPRINT, "it is kept again"
        assert kept.fingerprint(home.places[1]) != NO_FINGERPRINT
        assert kept.is_refused(Place(home.places[0].folder, "refused.jsonl"))
        assert kept.totals().files == 3
        save(kept, home.places[1], DATA[1] + b"{}\n")
        assert contents(kept, home.places[1]) == [DATA[1] + b"{}\n"]
    assert not list(home.file.parent.glob("*-salvaging*"))
    assert not module._damage_marker(home.paths).exists()
    assert list((home.file.parent / "damaged").rglob("transcripts.sqlite"))


def test_a_damaged_page_loses_little(home: Home) -> None:
    with closing(sqlite3.connect(home.file)) as db:
        db.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    data = bytearray(home.file.read_bytes())
    middle = len(data) // 2 // 4096 * 4096
    data[middle : middle + 4096] = b"\xff" * 4096
    home.file.write_bytes(data)
    module._damage_marker(home.paths).touch()
    kept = home.open()
    assert kept
    with closing(kept):
        whole = [place for place in home.places if contents(kept, place)]
    assert len(whole) >= 2


@pytest.mark.parametrize("moment", ["move_sqlite_aside", "_finish_salvage"])
def test_a_salvage_that_is_interrupted_is_completed(
    home: Home, monkeypatch: pytest.MonkeyPatch, moment: str
) -> None:
    module._damage_marker(home.paths).touch()
    real = getattr(module, moment)

    def die(*arguments: object) -> None:
        if moment == "move_sqlite_aside" or not home.file.exists():
            raise KeyboardInterrupt
        real(*arguments)

    monkeypatch.setattr(module, moment, die)
    with pytest.raises(KeyboardInterrupt):
        home.open()
    monkeypatch.undo()
    kept = home.open()
    assert kept
    with closing(kept):
        assert [best(kept, place) for place in home.places] == DATA
    assert not module._damage_marker(home.paths).exists()


def test_a_full_disk_leaves_the_damaged_file_for_the_next_start(
    home: Home, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_: object) -> None:
        raise StoreUnavailableError("the disk is full", "")

    module._damage_marker(home.paths).touch()
    with monkeypatch.context() as patched:
        patched.setattr(module, "salvage_kept", fail)
        assert home.open() is None
    assert home.file.exists()
    kept = home.open()
    assert kept
    kept.close()
