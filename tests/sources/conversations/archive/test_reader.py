"""The archive as search and walks read it: exchanges as files, conversations, counts, and what a file contains."""

from __future__ import annotations

import json
import os
import sqlite3
import zlib
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from anchord.core.ids import hash_content
from anchord.core.types import Absent, FileContent, Fingerprint, RootedPath
from anchord.errors import StoreDamagedError, StoreUnavailableError
from anchord.sources.conversations.archive.exchange_forms import ExchangeSource
from anchord.sources.conversations.archive.reader import (
    Archive,
    ExchangePlace,
    decode_path,
    stored_key,
)
from anchord.sources.conversations.archive.writer import ArchiveWriter, ReadState
from anchord.sources.conversations.events import Exchange, SessionInfo
from anchord.sources.conversations.exchange_redaction import redact_exchange_path

FILE = RootedPath("talks", "a.jsonl")
PRINT = Fingerprint(size=1, mtime_ns=2, ctime_ns=3, inode=4, device=5)


class Talks:
    """An archive with a session `s` of four exchanges, the third of them superseded."""

    def __init__(self, file: Path) -> None:
        """Write it."""
        self.archive = ArchiveWriter(file)
        self.archive.attach_root("talks", "/talks")
        with self.archive.transaction():
            self.file_id = self.put("s", *"1234")
            self.session = self.archive.get_or_create_session(
                "talks", "codex", SessionInfo(session="s")
            )
            source = ExchangeSource("talks", "codex", self.file_id)
            for name in ("3", "unknown"):
                self.archive.mark_superseded(source, "s", name)

    def put(self, session: str, *names: str, file: RootedPath = FILE, redacted: str = "") -> int:
        """Store exchanges of a session in a file; return the file's id."""
        archive = self.archive
        file_id = archive.upsert_transcript_file(
            file, PRINT, "codex", ReadState("reader 1", "point", '{"odd": 2}')
        )
        info = SessionInfo(session=session, title="A title", project="/p")
        session_id = archive.get_or_create_session(file.root, "codex", info)
        archive.save_session_info(file_id, {session_id: info}, is_full_read=False)
        for name in names:
            told = Exchange(
                id=name, session=session, number=int(name), question=f"Question {name}?",
                answer="So.", at="", until="",
            )  # fmt: skip
            source = ExchangeSource(file.root, "codex", file_id)
            archive.upsert_exchange(source, session_id, told, redacted)
        return file_id


@pytest.fixture
def talks(tmp_path: Path) -> Iterator[Talks]:
    made = Talks(tmp_path / "conversations.sqlite")
    yield made
    made.archive.close()


def at(name: str, session: str = "s") -> RootedPath:
    return RootedPath("talks", f"/codex/{session}/{name}")


def test_exchanges_are_listed_like_files_without_superseded_ones(talks: Talks) -> None:
    with talks.archive.transaction():
        talks.put("s0", "1")
        talks.put("st", "1")
    archive = talks.archive
    all_paths = [found.path for found in archive.list_exchanges("talks")]
    assert all_paths == ["/codex/s/1", "/codex/s/2", "/codex/s/4", "/codex/s0/1", "/codex/st/1"]
    below = [found.path for found in archive.list_exchanges("talks", "/codex/s")]
    assert below == all_paths[:3]
    (one,) = archive.list_exchanges("talks", "/codex/s/2")
    rows = archive._db.execute(
        "SELECT length(content), version, id FROM exchanges WHERE path='/codex/s/2'"
    ).fetchone()
    assert one.fingerprint == Fingerprint(rows[0], rows[1], 0, rows[2], 0)
    assert archive.list_exchanges("other") == ()


def test_one_exchange_is_seen_and_read_by_its_own_path_only(talks: Talks) -> None:
    archive = talks.archive
    (one,) = archive.list_exchanges("talks", "/codex/s/2")
    assert archive.fingerprint(at("2")) == one.fingerprint
    content = archive.read(at("2"))
    assert isinstance(content, FileContent)
    assert content.fingerprint == one.fingerprint
    told = json.loads(content.data)
    assert (told["question"], told["source"], told["session"]) == ("Question 2?", "codex", "s")
    assert (told["title"], told["project"]) == ("A title", "/p")
    for missing in (
        at("3"),
        at("9"),
        RootedPath("talks", "/codex/s"),
        RootedPath("x", "/codex/s/2"),
    ):
        assert archive.fingerprint(missing) == Absent("no such exchange")
        assert archive.read(missing) == Absent("no such exchange")


@pytest.mark.parametrize("content", [b"no zlib", zlib.compress(b"no json"), 7])
def test_a_damaged_text_is_said(talks: Talks, content: object) -> None:
    talks.archive._db.execute("UPDATE exchanges SET content=?", (content,))
    with pytest.raises(StoreDamagedError, match="the text of /codex/s/2"):
        talks.archive.read(at("2"))


def test_what_was_recorded_of_a_file_is_returned(talks: Talks) -> None:
    record = talks.archive.find_transcript_file(FILE)
    assert record is not None
    assert (record.id, record.fingerprint, record.source) == (talks.file_id, PRINT, "codex")
    assert (record.reader_version, record.resume_point) == ("reader 1", "point")
    assert record.unknown_counts == '{"odd": 2}'
    assert talks.archive.find_transcript_file(RootedPath("talks", "b.jsonl")) is None
    odd = RootedPath("talks", "odd\udcff.jsonl")
    with talks.archive.transaction():
        talks.put("t", "1", file=odd)
    assert talks.archive.transcript_files("talks") == [FILE, odd]
    assert talks.archive.transcript_files("other") == []
    assert decode_path(stored_key(odd)[1]) == odd.path


def test_what_a_file_contains_is_returned(talks: Talks) -> None:
    archive = talks.archive
    assert archive.exchanges_in(FILE) == (at("1"), at("2"), at("4"))
    assert archive.exchanges_in(RootedPath("talks", "b.jsonl")) == ()
    ids = archive.exchange_ids_at("talks", talks.file_id, [at("1").path, at("9").path])
    found = archive.fingerprint(at("1"))
    assert isinstance(found, Fingerprint)
    assert ids == {found.inode}
    assert archive.exchange_ids_at("talks", talks.file_id + 1, [at("1").path]) == set()
    assert archive.exchange_places([at("1"), at("9")]) == {at("1"): ExchangePlace("a.jsonl", 1)}
    forms = archive.forms_in(FILE)
    assert set(forms) == {at(name).path for name in "1234"}
    (stored,) = archive._db.execute(
        "SELECT content FROM exchanges WHERE path='/codex/s/1'"
    ).fetchone()
    assert forms[at("1").path] == hash_content(zlib.decompress(stored))
    archive._db.execute("UPDATE exchanges SET content=x'00' WHERE path='/codex/s/1'")
    archive._db.execute("UPDATE exchanges SET digest='x' WHERE path='/codex/s/2'")
    forms = archive.forms_in(FILE)
    assert (forms[at("1").path], forms[at("2").path]) == ("", "")
    assert forms[at("4").path]


@pytest.mark.parametrize(
    ("name", "position", "previous", "following"),
    [("1", 0, "", "2"), ("2", 1, "1", "4"), ("4", 2, "2", ""), ("3", 0, "", "2")],
)
def test_an_exchange_is_shown_among_its_neighbours(
    talks: Talks, name: str, position: int, previous: str, following: str
) -> None:
    """A superseded exchange is shown at the start of its session."""
    context = talks.archive.conversation_context(at(name))
    assert context is not None
    assert (context.source, context.session, context.title) == ("codex", "s", "A title")
    assert (context.project, context.source_missing) == ("/p", False)
    assert (context.position, context.exchange_count) == (position, 3)
    assert (
        context.previous == (at(previous).path, f"Question {previous}?")
        if previous
        else (context.previous == ("", ""))
    )
    assert context.next == (
        (at(following).path, f"Question {following}?") if following else ("", "")
    )


def test_an_exchange_whose_file_is_gone_says_so_and_an_unknown_one_has_no_context(
    talks: Talks,
) -> None:
    with talks.archive.transaction():
        talks.archive.remove_transcript_file(FILE, 5, None)
    context = talks.archive.conversation_context(at("1"))
    assert context is not None
    assert context.source_missing is True
    assert talks.archive.conversation_context(at("9")) is None
    assert talks.archive.exchange_places([at("1")]) == {at("1"): ExchangePlace(None, 1)}


def test_the_turn_of_an_exchange_counts_those_that_were_not_abandoned(talks: Talks) -> None:
    places = talks.archive.exchange_places([at(name) for name in ("1", "2", "3", "4", "9")])
    assert {origin.path: place.turn for origin, place in places.items()} == {
        at("1").path: 1,
        at("2").path: 2,
        at("3").path: None,
        at("4").path: 3,
    }


def test_sessions_exchanges_and_secrets_are_counted_by_root(talks: Talks) -> None:
    with talks.archive.transaction():
        talks.put("t", "1", file=RootedPath("other", "b.jsonl"), redacted='{"key": 2, "token": 1}')
        talks.put("u", "2", file=RootedPath("other", "b.jsonl"), redacted='{"key": 3}')
        talks.put("v", "1", file=RootedPath("away", "c.jsonl"), redacted='{"key": 9}')
        talks.archive.remove_transcript_file(RootedPath("other", "b.jsonl"), 5, None)
    talks.archive.detach_root("away", 1)
    assert talks.archive.counts_by_root() == {
        "talks": {
            "sessions": 1, "exchanges": 4, "source_missing": 0, "superseded": 1, "redacted": {},
        },
        "other": {
            "sessions": 2, "exchanges": 2, "source_missing": 2, "superseded": 0,
            "redacted": {"key": 5, "token": 1},
        },
    }  # fmt: skip


def test_an_exchange_is_lost_if_it_was_neither_kept_nor_deleted(talks: Talks) -> None:
    assert not talks.archive.is_lost(at("1"))
    assert talks.archive.is_lost(at("9"))
    talks.archive._db.execute("INSERT INTO deleted(root, path) VALUES('talks', '/codex/s/9')")
    assert not talks.archive.is_lost(at("9"))


def test_what_was_forgotten_is_known_by_its_path_and_digest(talks: Talks) -> None:
    digest = talks.archive.forms_in(FILE)[at("1").path]
    assert not talks.archive.is_forgotten(at("1").path, digest)
    talks.archive.erase("/talks/a.jsonl")
    assert talks.archive.is_forgotten(at("1").path, digest)
    assert talks.archive.list_exchanges("talks") == ()


def test_a_copy_is_the_archive_as_it_is_and_a_reader_changes_nothing(
    talks: Talks, tmp_path: Path
) -> None:
    copy = tmp_path / "copy.sqlite"
    talks.archive.copy_to(copy)
    before = copy.read_bytes()
    reader = Archive(copy, read_only=True)
    assert reader.list_exchanges("talks") == talks.archive.list_exchanges("talks")
    assert reader.is_intact()
    assert (reader.get_meta("version") or "0") == talks.archive.get_meta("version")
    assert reader.get_meta("nothing") == ""
    reader.close()
    assert copy.read_bytes() == before
    with pytest.raises(StoreUnavailableError):
        Archive(tmp_path / "missing.sqlite", read_only=True)


# Files of older versions


def make_older(file: Path, version: int) -> None:
    """Take from a file what versions after 1 and 3 added."""
    with closing(sqlite3.connect(file)) as db:
        db.executescript("DROP TABLE deleted; DROP TABLE forgotten;")
        if version < 3:
            db.executescript(
                "DROP TABLE roots; DROP TABLE detached;"
                "DROP INDEX exchanges_listed; ALTER TABLE exchanges DROP COLUMN last_path;"
                "ALTER TABLE exchanges DROP COLUMN detached_ns;"
            )
        db.execute(f"PRAGMA user_version={version}")


@pytest.mark.parametrize("version", [2, 3])
def test_a_reader_needs_no_migration_of_an_older_file(talks: Talks, version: int) -> None:
    file = Path(talks.archive._db.file)
    talks.archive.close()
    make_older(file, version)
    with closing(Archive(file, read_only=True)) as reader:
        assert len(reader.list_exchanges("talks")) == 3
        assert reader.detached_groups() == []
        assert not reader.is_lost(at("1"))
        assert not reader.is_forgotten(at("1").path, "digest")
        assert reader.orphans_by_last_file("talks") == {}
        assert reader.counts_by_root()["talks"]["exchanges"] == 4
    with closing(sqlite3.connect(file)) as db:
        assert db.execute("PRAGMA user_version").fetchone() == (version,)


def test_a_reader_of_an_emptied_file_finds_no_exchange_and_leaves_it_empty(tmp_path: Path) -> None:
    file = tmp_path / "conversations.sqlite"
    file.touch()
    with closing(Archive(file, read_only=True)) as reader:
        assert reader.list_exchanges("talks") == ()
        assert reader.detached_groups() == []
        assert reader.find_transcript_file(FILE) is None
        assert not reader.is_forgotten("/a", "digest")
    assert file.read_bytes() == b""


def test_a_closed_archive_holds_no_file_open(talks: Talks) -> None:
    def open_files() -> list[str]:
        links = [Path("/proc/self/fd") / each for each in os.listdir("/proc/self/fd")]
        return [str(each.readlink()) for each in links if each.is_symlink()]

    file = talks.archive._db.file
    assert file in open_files()
    talks.archive.close()
    assert [each for each in open_files() if each.startswith(file)] == []


# Exchanges without a file, and under another path


def test_an_exchange_without_secrets_in_its_path_is_not_renamed(talks: Talks) -> None:
    assert not talks.archive.is_renamed(at("1"))
    assert not talks.archive.is_renamed(at("9"))


def test_an_exchange_that_is_kept_under_its_path_without_secrets_is_renamed_and_not_lost(
    talks: Talks,
) -> None:
    secret = at("ghp_aB3dE6gH9jK2mN5pQ8sT1vW4yZ7bC0eF3hJ6")
    clean = redact_exchange_path(secret.path)
    assert clean != secret.path
    assert talks.archive.is_lost(secret)
    assert not talks.archive.is_renamed(secret)
    talks.archive._db.execute("UPDATE exchanges SET path=? WHERE path=?", (clean, at("1").path))
    assert not talks.archive.is_lost(secret)
    assert talks.archive.is_renamed(secret)
    assert not talks.archive.is_renamed(RootedPath("other", secret.path))


def test_exchanges_that_no_file_contains_are_told_by_their_last_file(talks: Talks) -> None:
    b, c = RootedPath("talks", "b.jsonl"), RootedPath("talks", "c.jsonl")
    with talks.archive.transaction():
        talks.put("t", "2", "1", file=b)
        talks.put("u", "1", file=c)
        talks.put("v", "1", file=RootedPath("other", "b.jsonl"))
        for file in (b, RootedPath("other", "b.jsonl")):
            talks.archive.remove_transcript_file(file, 5, None)
    assert talks.archive.orphans_by_last_file("talks") == {b: ["/codex/t/1", "/codex/t/2"]}
    with talks.archive.transaction():
        talks.archive.remove_transcript_file(c, 5, None)
    assert list(talks.archive.orphans_by_last_file("talks")) == [b, c]
    assert talks.archive.orphans_by_last_file("nowhere") == {}


def test_the_exchanges_of_a_file_are_those_of_all_its_sessions(talks: Talks) -> None:
    archive = talks.archive
    with archive.transaction():
        talks.put("t", *"012")
    found = map(archive.origin_of, archive.exchange_ids_of(talks.file_id))
    paths = {each.path.removeprefix("/codex/") for each in found}
    assert paths == {"s/1", "s/2", "s/3", "s/4", "t/0", "t/1", "t/2"}
    assert archive.exchange_ids_of(talks.file_id + 1) == set()


def test_an_exchange_is_known_by_its_id(talks: Talks) -> None:
    found = talks.archive.fingerprint(at("2"))
    assert isinstance(found, Fingerprint)
    assert talks.archive.origin_of(found.inode) == at("2")
