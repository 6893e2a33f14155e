"""What the crash journal leaves on the disk, and which descriptors it holds."""

from __future__ import annotations

import os
from contextlib import closing
from pathlib import Path

import pytest

from anchord.store.crash_journal import CrashJournal


def end_while_parsing(folder: Path, content: str) -> None:
    """Leave the folder as a process does that ended while it parsed a content."""
    journal = CrashJournal(folder)
    assert journal.begin_parse_unless_quarantined(content)
    os.close(journal._note)


def open_files() -> int:
    return len(os.listdir("/proc/self/fd"))


def test_a_content_is_refused_after_two_counted_crashes_also_by_the_next_process(
    tmp_path: Path,
) -> None:
    writer = CrashJournal(tmp_path)
    writer.count_crash("bad")
    assert writer._crashes.counts == {"bad": 1}
    assert not writer.is_quarantined("bad")
    assert CrashJournal(tmp_path)._crashes.counts == {"bad": 1}
    writer.count_crash("bad")
    assert writer.is_quarantined("bad")
    assert CrashJournal(tmp_path).is_quarantined("bad")
    assert not writer.is_quarantined("good")


def test_the_count_of_a_read_only_journal_stays_off_the_disk(tmp_path: Path) -> None:
    reader = CrashJournal(tmp_path, read_only=True)
    reader.count_crash("bad")
    reader.count_crash("bad")
    assert reader.is_quarantined("bad")
    assert list(tmp_path.iterdir()) == []


def test_closing_gives_the_descriptor_back(tmp_path: Path) -> None:
    before = open_files()
    journal = CrashJournal(tmp_path)
    assert journal.begin_parse_unless_quarantined("a")
    assert open_files() == before + 1
    journal.close()
    assert open_files() == before


def test_closing_twice_closes_one_descriptor(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    journal = CrashJournal(tmp_path)
    assert journal.begin_parse_unless_quarantined("a")
    descriptor = journal._note
    closed: list[int] = []
    with monkeypatch.context() as patch:
        patch.setattr(os, "close", closed.append)
        journal.close()
        journal.close()
    os.close(descriptor)
    assert closed == [descriptor]


def test_a_closed_journal_can_be_used_again(tmp_path: Path) -> None:
    journal = CrashJournal(tmp_path)
    assert journal.begin_parse_unless_quarantined("a")
    journal.close()
    with closing(journal):
        assert journal.begin_parse_unless_quarantined("b")
        assert (tmp_path / "parsing").read_bytes().rstrip(b"\0") == b"b"


def test_the_descriptor_0_is_one_like_any_other(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A daemon without standard input gets it."""
    opened: list[object] = []
    written: list[int] = []
    closed: list[int] = []

    def open_as_0(path: object, *_: object) -> int:
        opened.append(path)
        return 0

    def record_write(descriptor: int, note: bytes, offset: int) -> int:
        written.append(descriptor)
        return len(note) + offset

    journal = CrashJournal(tmp_path)
    with monkeypatch.context() as patch:
        patch.setattr(os, "open", open_as_0)
        patch.setattr(os, "pwrite", record_write)
        patch.setattr(os, "close", closed.append)
        begun = journal.begin_parse_unless_quarantined("a")
        journal.end_parse()
        journal.close()
    assert begun
    assert opened == [tmp_path / "parsing"]
    assert written == [0, 0]
    assert closed == [0]


def test_the_note_is_for_its_owner_alone(tmp_path: Path) -> None:
    with closing(CrashJournal(tmp_path)) as journal:
        assert journal.begin_parse_unless_quarantined("a")
    assert (tmp_path / "parsing").stat().st_mode & 0o777 == 0o600


@pytest.mark.parametrize("digest", ["a", "0" * 32, "f" * 63, "e" * 64])
def test_the_note_is_64_bytes_the_digest_and_then_zeros(tmp_path: Path, digest: str) -> None:
    with closing(CrashJournal(tmp_path)) as journal:
        assert journal.begin_parse_unless_quarantined(digest)
        note = (tmp_path / "parsing").read_bytes()
        assert note == digest.encode() + bytes(64 - len(digest))
        journal.end_parse()
        assert (tmp_path / "parsing").read_bytes() == bytes(64)


def test_a_digest_of_64_characters_is_quarantined_as_a_whole(tmp_path: Path) -> None:
    digest = "0123456789abcdef" * 4
    end_while_parsing(tmp_path, digest)
    end_while_parsing(tmp_path, digest)
    with closing(CrashJournal(tmp_path)) as journal:
        assert journal._crashes.counts == {digest: 2}
        assert journal.begin_parse_unless_quarantined(digest) is False


def test_an_end_without_a_begin_forgives_no_content(tmp_path: Path) -> None:
    with closing(CrashJournal(tmp_path)) as journal:
        journal.count_crash("bad")
        journal.end_parse()
    assert CrashJournal(tmp_path)._crashes.counts == {"bad": 1}
