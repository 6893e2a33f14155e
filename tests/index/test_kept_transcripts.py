"""Kept transcripts as an index opens them, and erases what was deleted."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from conversations.conftest import ROOT, answer, claude
from sources.conversations.kept.test_keeper import Kept

from anchord.core.types import Root, RootedPath
from anchord.errors import StoreUnavailableError
from anchord.index import kept_transcripts as module
from anchord.index.kept_erasure import _TRASH_NS, erase_trashed
from anchord.index.kept_transcripts import open_kept_transcripts

FILE = RootedPath(ROOT, "s1.jsonl")


@pytest.fixture
def talks(tmp_path: Path) -> Iterator[Kept]:
    made = Kept(tmp_path)
    yield made
    made.close()


def catalog(meta: dict[str, str]) -> Any:  # noqa: ANN401 - a fake
    return SimpleNamespace(get_meta=meta.get, set_meta=meta.__setitem__)


def test_a_damaged_file_that_cannot_be_replaced_stops_no_start(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    paths: Any = SimpleNamespace(kept_transcripts_file=tmp_path / "transcripts.sqlite")
    paths.kept_transcripts_file.write_bytes(b"x" * 9_000)
    repairs: list[str] = []

    def fail(*_: object) -> None:
        raise PermissionError("not allowed")

    monkeypatch.setattr(module, "move_sqlite_aside", fail)
    assert open_kept_transcripts(paths, catalog({}), repairs) is None
    assert "not kept until the next start" in repairs[0]
    assert paths.kept_transcripts_file.exists()


class Trash(Kept):
    """A root that deletes what was deleted, with one transcript."""

    def __init__(self, base: Path, name: str = "s1.jsonl") -> None:
        """Keep the transcript, and delete it."""
        super().__init__(base)
        self.roots[ROOT] = Root(
            name=ROOT, path=str(self.folder), kind="conversations", on_delete="delete"
        )
        self.write(name, claude(("What?", answer("that"))))
        self.keeper.keep(RootedPath(ROOT, name))
        (self.folder / name).unlink()
        self.known: set[str] = set()
        self.repairs: list[str] = []

    def erase(self) -> int:
        """Erase what is due, and return how many transcripts are kept."""
        archive: Any = SimpleNamespace(
            session_records=SimpleNamespace(transcripts=lambda: self.known)
        )
        erase_trashed(self.keeper, archive, self.roots.values(), self.repairs)
        return len(self.kept.find_below("/"))


def test_a_transcript_is_erased_when_it_was_gone_for_30_days(tmp_path: Path) -> None:
    with closing(Trash(tmp_path)) as trash:
        assert trash.erase() == 1
        trash.ahead_ns = _TRASH_NS - 10**10
        assert trash.erase() == 1
        trash.ahead_ns = _TRASH_NS + 10**10
        trash.known = {str(trash.folder / "s1.jsonl")}
        assert trash.erase() == 1, "the archive has exchanges of it"
        trash.known = set()
        away = trash.folder.with_name("away")
        trash.folder.rename(away)
        assert trash.erase() == 1, "the folder of the root is not there"
        away.rename(trash.folder)
        trash.write("s1.jsonl", b"{}")
        assert trash.erase() == 1, "it is there again"
        (trash.folder / "s1.jsonl").unlink()
        assert trash.erase() == 1, "it is gone since now"
        trash.ahead_ns *= 2
        assert trash.erase() == 0


def test_a_transcript_whose_name_contains_a_secret_is_found_in_the_archive(tmp_path: Path) -> None:
    name = "ghp_16C7e42F292c6912E7710c838347Ae178B4a.jsonl"
    with closing(Trash(tmp_path, name)) as trash:
        trash.folders.redacts_names = True
        trash.known = {trash.folders.redact_path(str(trash.folder / name))}
        assert name not in str(trash.known)
        trash.erase()
        trash.ahead_ns = 2 * _TRASH_NS
        assert trash.erase() == 1


def test_an_erasure_that_fails_stops_no_start(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_: object) -> None:
        raise StoreUnavailableError("it is locked", "")

    with closing(Trash(tmp_path)) as trash:
        monkeypatch.setattr(trash.kept, "note_gone", fail)
        assert trash.erase() == 1
        assert trash.repairs == [
            "kept transcripts that were deleted could not be erased: it is locked"
        ]


def test_a_database_of_an_older_version_is_taken_over(talks: Kept) -> None:
    data = claude(("What?", "That."))
    talks.write("s1.jsonl", data)
    talks.keeper.keep(FILE)
    talks.close()
    with closing(sqlite3.connect(talks.base / "transcripts.sqlite")) as db:
        db.execute("ALTER TABLE files DROP COLUMN gone_ns")
        db.execute("PRAGMA user_version=1")
    talks.open()
    assert talks.bytes_of("s1.jsonl") == [data]
    assert not talks.kept.note_gone({talks.keeper.place_of(FILE): True}, 1)
