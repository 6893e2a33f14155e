"""What is kept of which file, and that no failure of it stops the reading of conversations."""

from __future__ import annotations

import sqlite3
import time
import zipfile
from collections.abc import Iterator, Sequence
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from conversations.conftest import ROOT, Talks, answer, claude

from anchord.core.types import Root, RootedPath
from anchord.errors import StoreDamagedError, StoreError, StoreUnavailableError
from anchord.index.kept_transcripts import keep_due
from anchord.sources.conversations.kept import keeper as module
from anchord.sources.conversations.kept.keeper import TranscriptKeeper
from anchord.sources.conversations.kept.store import Place
from anchord.sources.conversations.kept.writer import KeptTranscriptsWriter

FILE = RootedPath(ROOT, "s1.jsonl")


class Kept(Talks):
    """An index whose transcripts are kept."""

    def open(self) -> None:
        """Open the stores."""
        super().open()
        self.kept = KeptTranscriptsWriter(self.base / "transcripts.sqlite")
        self.keeper = TranscriptKeeper(self.folders, self.roots, self.kept, self.clock)
        self.conversations.keep_bytes = lambda origin, has_forgotten: self.keeper.keep(
            origin, has_forgotten=has_forgotten
        )

    def close(self) -> None:
        """Close the stores."""
        self.keeper.close()
        super().close()

    def bytes_of(self, path: str) -> list[bytes]:
        """Return the kept versions of a file."""
        place = self.keeper.place_of(RootedPath(ROOT, path))
        return [b"".join(self.kept.read(each)) for each in self.kept.versions(place)]


@pytest.fixture
def talks(tmp_path: Path) -> Iterator[Kept]:
    made = Kept(tmp_path)
    yield made
    made.close()


def test_a_file_that_was_removed_while_in_use_is_damage_told_once(talks: Kept) -> None:
    talks.write("s1.jsonl", claude(("What?", answer("that"))))
    talks.keeper.check_place()
    for file in talks.base.glob("transcripts.sqlite*"):
        file.unlink()
    with pytest.raises(StoreDamagedError, match="was removed or replaced while anchord ran"):
        talks.keeper.check_place()
    talks.keeper.check_place()
    assert "transcripts.sqlite was removed" in talks.keeper.problem


def test_nothing_is_written_to_a_file_that_was_removed(talks: Kept) -> None:
    for file in talks.base.glob("transcripts.sqlite*"):
        file.unlink()
    talks.write("s1.jsonl", claude(("What?", answer("that"))))
    talks.sync()
    assert talks.keeper.damage
    assert list(talks.keeper.due) == [FILE]


def test_a_transcript_is_kept_as_it_is_read(talks: Kept) -> None:
    data = claude(("What?", answer("that")))
    talks.write("s1.jsonl", data)
    talks.write("notes.md", b"# No transcript\n")
    talks.sync()
    assert talks.bytes_of("s1.jsonl") == [data]
    more = data + claude(("And?", "More."), start=1)
    talks.write("s1.jsonl", more)
    talks.sync()
    assert talks.bytes_of("s1.jsonl") == [more]
    assert talks.bytes_of("notes.md") == []
    assert talks.keeper.totals() is not None


def test_a_full_disk_stops_no_reading_and_the_bytes_are_kept_later(
    talks: Kept, monkeypatch: pytest.MonkeyPatch
) -> None:
    data = claude(("What?", "That."))
    talks.write("s1.jsonl", data)

    def fail(*_: object) -> None:
        raise StoreUnavailableError("the disk is full", "")

    with monkeypatch.context() as patched:
        patched.setattr(talks.kept, "save", fail)
        talks.sync()
    assert "That." in talks.said()
    assert talks.keeper.problem == "the disk is full"
    talks.keeper.retry_now()
    assert not talks.keeper.keep_next()
    assert talks.bytes_of("s1.jsonl") == [data]
    assert talks.keeper.problem == ""


def test_damage_is_told_once_and_nothing_is_kept_until_the_next_start(
    talks: Kept, monkeypatch: pytest.MonkeyPatch
) -> None:
    told: list[StoreError] = []
    talks.keeper.on_damage = told.append
    talks.write("s1.jsonl", claude(("What?", "That.")))
    talks.write("s2.jsonl", claude(("Why?", "So."), session="s2"))

    def fail(*_: object) -> None:
        raise StoreDamagedError("transcripts.sqlite is damaged", "")

    monkeypatch.setattr(talks.kept, "save", fail)
    talks.sync()
    assert {"That.", "So."} <= set(talks.said().split())
    assert len(told) == 1
    with pytest.raises(StoreDamagedError):
        talks.keeper.keep_next()
    assert not talks.keeper.keep_next()
    assert talks.keeper.problem == "transcripts.sqlite is damaged"
    assert talks.keeper.due


def test_a_locked_store_is_tried_once_and_not_for_each_transcript(
    talks: Kept, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert talks.kept._db.execute("PRAGMA busy_timeout").fetchone()[0] <= 2_000
    tried: list[object] = []

    def fail(*_: object) -> None:
        tried.append(1)
        raise StoreUnavailableError("it is locked", "")

    monkeypatch.setattr(talks.kept, "save", fail)
    for name in ("s1", "s2", "s3"):
        talks.write(f"{name}.jsonl", claude(("What?", f"{name}."), session=name))
    talks.sync()
    assert not talks.keeper.keep_next()
    assert len(tried) == 1
    assert len(talks.keeper.due) == 3
    now = time.monotonic()
    monkeypatch.setattr(time, "monotonic", lambda: now + 61)
    assert not talks.keeper.keep_next()
    assert len(tried) == 2
    monkeypatch.setattr(time, "monotonic", lambda: now + 61 + 119)
    assert not talks.keeper.keep_next()
    assert len(tried) == 2
    monkeypatch.undo()
    talks.keeper.retry_now()
    keep_due(talks.keeper, lambda: False)
    assert not talks.keeper.due
    assert talks.keeper.problem == ""
    assert len(talks.bytes_of("s3.jsonl")) == 1


def test_one_file_that_cannot_be_kept_does_not_hold_the_others(
    talks: Kept, monkeypatch: pytest.MonkeyPatch
) -> None:
    save = talks.kept.save

    def fail(place: Place, *rest: Any) -> None:  # noqa: ANN401 - as `save` has them
        if place.path == "s1.jsonl":
            raise StoreError("a value is too large", "")
        save(place, *rest)

    monkeypatch.setattr(talks.kept, "save", fail)
    for name in ("s1", "s2"):
        talks.write(f"{name}.jsonl", claude(("What?", f"{name}."), session=name))
        talks.keeper.due[RootedPath(ROOT, f"{name}.jsonl")] = False
    keep_due(talks.keeper, lambda: False)
    assert list(talks.keeper.due) == [FILE]
    assert talks.keeper.problem == "a value is too large"
    assert len(talks.bytes_of("s2.jsonl")) == 1


def test_a_crash_before_the_archive_commits_loses_neither(
    talks: Kept, monkeypatch: pytest.MonkeyPatch
) -> None:
    data = claude(("What?", "That."))
    talks.write("s1.jsonl", data)
    keep = talks.conversations.keep_bytes

    def keep_and_die(origin: RootedPath, has_forgotten: bool) -> None:  # noqa: FBT001 - as called
        keep(origin, has_forgotten)
        raise KeyboardInterrupt

    monkeypatch.setattr(talks.conversations, "keep_bytes", keep_and_die)
    with pytest.raises(KeyboardInterrupt):
        talks.sync()
    assert talks.archive.find_transcript_file(FILE) is None
    assert talks.bytes_of("s1.jsonl") == [data]
    monkeypatch.setattr(talks.conversations, "keep_bytes", keep)
    talks.sync()
    assert "That." in talks.said()
    assert talks.bytes_of("s1.jsonl") == [data]


def test_databases_large_zips_and_roots_that_do_not_want_it_are_not_kept(
    talks: Kept, monkeypatch: pytest.MonkeyPatch
) -> None:
    with closing(sqlite3.connect(talks.folder / "state.db")) as db:
        db.execute("CREATE TABLE t(x)")
        db.commit()
    with zipfile.ZipFile(talks.folder / "export.zip", "w") as export:
        export.writestr("s1.jsonl", claude(("What?", "That.")))
    talks.keeper.keep(RootedPath(ROOT, "state.db"))
    assert talks.bytes_of("state.db") == []
    monkeypatch.setattr(module, "MAX_ZIP_BYTES", 10)
    talks.keeper.keep(RootedPath(ROOT, "export.zip"))
    assert talks.bytes_of("export.zip") == []
    monkeypatch.undo()
    (talks.folder / "export.zip").touch()
    talks.keeper.keep(RootedPath(ROOT, "export.zip"))
    assert talks.bytes_of("export.zip") == [(talks.folder / "export.zip").read_bytes()]
    talks.roots[ROOT] = Root(
        name=ROOT, path=str(talks.folder), kind="conversations", keep_raw=False
    )
    talks.write("s1.jsonl", claude(("What?", "That.")))
    talks.keeper.keep(FILE)
    assert talks.bytes_of("s1.jsonl") == []


def test_a_large_file_waits_until_there_is_time(
    talks: Kept, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "_AT_ONCE_BYTES", 100)
    data = claude(("What?", answer("that")))
    talks.write("s1.jsonl", data)
    talks.sync()
    assert talks.bytes_of("s1.jsonl") == []
    assert list(talks.keeper.due) == [FILE]
    assert not talks.keeper.keep_next()
    assert talks.bytes_of("s1.jsonl") == [data]


def test_every_file_of_a_folder_that_is_one_transcript_is_kept(talks: Kept) -> None:
    talks.write("task/a.json", b"[1]")
    talks.write("task/deep/b.json", b"[2]")
    talks.keeper.keep(RootedPath(ROOT, "task"))
    assert talks.bytes_of("task/a.json") == [b"[1]"]
    assert talks.bytes_of("task/deep/b.json") == [b"[2]"]
    place = talks.keeper.place_of(RootedPath(ROOT, "task"))
    assert [each.path for each in talks.kept.find(place)] == ["task/a.json", "task/deep/b.json"]


def test_what_contains_something_forgotten_is_not_kept(talks: Kept) -> None:
    data = claude(("What?", "That."))
    talks.write("s1.jsonl", data)
    talks.archive.attach_root(ROOT, str(talks.folder))
    talks.sync()
    talks.archive.erase(str(talks.folder / "s1.jsonl"))
    talks.write("copy.jsonl", data)
    talks.sync()
    assert talks.bytes_of("copy.jsonl") == []
    talks.write("copy.jsonl", data + claude(("New?", "Yes."), start=1))
    talks.sync()
    assert talks.bytes_of("copy.jsonl") == []


@pytest.mark.parametrize("failing", ["refuse", "truncate_wal"])
def test_a_refusal_that_fails_is_tried_again_and_keeps_nothing(
    talks: Kept, monkeypatch: pytest.MonkeyPatch, failing: str
) -> None:
    talks.write("s1.jsonl", claude(("What?", "That.")))
    talks.keeper.keep(FILE)

    def fail(*_: object) -> None:
        raise StoreUnavailableError("it is locked", "")

    with monkeypatch.context() as patched:
        patched.setattr(talks.kept, failing, fail)
        talks.keeper.keep(FILE, has_forgotten=True)
    assert talks.keeper.due == {FILE: True}
    talks.keeper.keep(FILE)
    assert talks.keeper.due == {FILE: True}
    talks.keeper.retry_now()
    assert not talks.keeper.keep_next()
    assert talks.bytes_of("s1.jsonl") == []
    assert talks.kept.is_refused(talks.keeper.place_of(FILE))
    assert not (talks.base / "transcripts.sqlite-wal").stat().st_size


def test_a_refused_folder_is_erased_once(talks: Kept, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("a", "b"):
        talks.write(f"task/{name}.json", b"[1]")
    folder = RootedPath(ROOT, "task")
    talks.keeper.keep(folder)
    refuse, calls = talks.kept.refuse, []

    def count(places: Sequence[Place]) -> None:
        calls.append(len(places))
        refuse(places)

    monkeypatch.setattr(talks.kept, "refuse", count)
    for _ in range(2):
        talks.keeper.keep(folder, has_forgotten=True)
    assert calls == [2]
    assert talks.bytes_of("task/a.json") == []
