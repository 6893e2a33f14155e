"""What the archive keeps of sessions when the files that tell of them are read again, or go."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from anchord.core.types import Fingerprint, RootedPath
from anchord.sources.conversations.archive.detached import DetachReason
from anchord.sources.conversations.archive.exchange_forms import ExchangeSource
from anchord.sources.conversations.archive.writer import ArchiveWriter
from anchord.sources.conversations.events import Exchange, SessionInfo

OLD, NEW = RootedPath("talks", "old.jsonl"), RootedPath("talks", "new.jsonl")


@pytest.fixture
def archive(tmp_path: Path) -> Iterator[ArchiveWriter]:
    made = ArchiveWriter(tmp_path / "conversations.sqlite")
    yield made
    made.close()


def told(archive: ArchiveWriter, file: RootedPath, title: str, updated: str) -> tuple[int, int]:
    """Store that a file says a title of the session `s`; return the file's and the session's id."""
    file_id = archive.upsert_transcript_file(file, Fingerprint(1, 1, 1, 1, 1), "claude-code")
    info = SessionInfo(session="s", title=title, project="/p", updated=updated)
    session_id = archive.get_or_create_session("talks", "claude-code", info)
    archive.save_session_info(file_id, {session_id: info}, is_full_read=True)
    exchange = Exchange(
        id=f"e-{file.path}", session="s", number=1, question="How?", answer="So.", at="", until=""
    )
    source = ExchangeSource("talks", "claude-code", file_id)
    archive.upsert_exchange(source, session_id, exchange)
    return file_id, session_id


def title_of(archive: ArchiveWriter) -> str:
    """Return the title that the session's exchanges are shown with."""
    (title,) = archive._db.execute("SELECT title FROM sessions").fetchone()
    return str(title)


def test_the_newest_title_counts_until_a_whole_read_no_longer_finds_it(
    archive: ArchiveWriter,
) -> None:
    with archive.transaction():
        told(archive, OLD, "First name", "2026-01-01")
        file_id, session_id = told(archive, NEW, "Second name", "2026-02-02")
    assert title_of(archive) == "Second name"
    with archive.transaction():
        archive.mark_indexed(archive.exchanges_due(OLD))
        archive.retitled_exchanges.clear()
        archive.save_session_info(file_id, {}, is_full_read=False)
    assert (title_of(archive), archive.retitled_exchanges) == ("Second name", {})
    with archive.transaction():
        archive.save_session_info(file_id, {}, is_full_read=True)
    assert title_of(archive) == "First name"
    assert len(archive.retitled_exchanges) == 2
    assert archive.get_session_info(file_id, session_id).title == ""


def test_the_title_of_a_file_that_goes_goes_with_it(archive: ArchiveWriter) -> None:
    with archive.transaction():
        told(archive, OLD, "First name", "2026-01-01")
        told(archive, NEW, "Second name", "2026-02-02")
    archive.retitled_exchanges.clear()
    with archive.transaction():
        archive.remove_transcript_file(NEW, 0, None)
        archive.remove_transcript_file(RootedPath("talks", "never-read.jsonl"), 0, None)
    assert archive.find_transcript_file(NEW) is None
    assert archive.find_transcript_file(OLD) is not None
    assert title_of(archive) == "First name"
    assert archive.retitled_exchanges


def test_files_to_be_read_in_full_are_marked_whatever_is_unknown_among_them(
    archive: ArchiveWriter,
) -> None:
    with archive.transaction():
        for file in (OLD, NEW):
            told(archive, file, "A name", "2026-01-01")
        archive._db.execute("UPDATE carriers SET reader='3'")
        archive._db.execute("UPDATE exchanges SET content=x'00' WHERE path LIKE '%new%'")
    archive.schedule_full_reads([RootedPath("talks", "never-read.jsonl"), NEW])
    assert list(archive.files_to_reread) == [NEW]
    readers = dict(archive._db.execute("SELECT path, reader FROM carriers").fetchall())
    assert readers == {b"old.jsonl": "3", b"new.jsonl": ""}
    rows = archive._db.execute("SELECT digest='' FROM exchanges ORDER BY path").fetchall()
    assert rows == [(1,), (0,)], "only the damaged one is stored again"


# Detached exchanges


def groups_of(archive: ArchiveWriter) -> list[tuple[str, int]]:
    """Return why each group is detached, and how many exchanges it has."""
    return [(str(each.reason), each.exchange_count) for each in archive.detached.groups()]


def rows_of_groups(archive: ArchiveWriter) -> int:
    """Count what is stored of groups beside their exchanges."""
    counts = [
        archive._db.execute(sql).fetchone()[0]
        for sql in (
            "SELECT count(*) FROM detached",
            "SELECT count(*) FROM sessions WHERE root<>'talks'",
            "SELECT count(*) FROM carriers WHERE root<>'talks'",
        )
    ]
    return sum(counts)


def test_a_group_whose_exchanges_came_back_leaves_nothing(archive: ArchiveWriter) -> None:
    archive.attach_root("talks", "/talks")
    with archive.transaction():
        told(archive, OLD, "First name", "2026-01-01")
    archive.detach_root("talks", 1)
    assert groups_of(archive) == [(DetachReason.ROOT, 1)]
    assert archive.detached.attached_root_names() == set()
    assert archive.attach_root("talks", "/talks") == 1
    assert (groups_of(archive), rows_of_groups(archive)) == ([], 0)
    assert len(archive.exchanges_due(OLD)) == 1


def test_an_exchange_that_goes_to_the_trash_twice_is_in_it_once(archive: ArchiveWriter) -> None:
    for _ in range(2):
        archive.attach_root("talks", "/talks")
        with archive.transaction():
            told(archive, OLD, "First name", "2026-01-01")
            archive.remove_transcript_file(OLD, 5, DetachReason.TRASH)
    assert groups_of(archive) == [(DetachReason.TRASH, 1)]


def test_the_trash_keeps_exchanges_for_thirty_days(archive: ArchiveWriter) -> None:
    archive.attach_root("talks", "/talks")
    with archive.transaction():
        told(archive, OLD, "First name", "2026-01-01")
        archive.remove_transcript_file(OLD, 5, DetachReason.TRASH)
    days = 30 * 24 * 3600 * 10**9
    assert archive.empty_trash(5 + days) == 0
    assert groups_of(archive) == [(DetachReason.TRASH, 1)]
    assert archive.empty_trash(6 + days) == 1
    assert (groups_of(archive), rows_of_groups(archive)) == ([], 0)
