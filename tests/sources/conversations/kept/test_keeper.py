"""What is kept of which file, and that no failure of it stops the reading of conversations."""

from __future__ import annotations

import sqlite3
import zipfile
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest
from conversations.conftest import ROOT, Talks, answer, claude

from anchord.core.types import Root, RootedPath
from anchord.errors import StoreDamagedError, StoreError, StoreUnavailableError
from anchord.sources.conversations.kept import keeper as module
from anchord.sources.conversations.kept.keeper import TranscriptKeeper
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
