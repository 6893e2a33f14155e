"""What leaves the archive or its root: forgotten, excluded, repeated and lost exchanges, and what stays of them."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from anchord.core.types import Fingerprint, RootedPath
from anchord.sources.conversations.archive.detached import DetachReason
from anchord.sources.conversations.archive.exchange_forms import ExchangeSource
from anchord.sources.conversations.archive.writer import ArchiveWriter, ReadState
from anchord.sources.conversations.events import Exchange, SessionInfo

PRINT = Fingerprint(1, 1, 1, 1, 1)


class Talks:
    """An archive with a root `talks` at `/talks`, and what is put into it."""

    def __init__(self, file: Path) -> None:
        """Make it."""
        self.file = file
        self.archive = ArchiveWriter(file)
        self.archive.attach_root("talks", "/talks")

    def put(
        self,
        file: str,
        name: str,
        *,
        root: str = "talks",
        session: str = "s",
        title: str = "A title",
        question: str = "How?",
        answer: str = "So.",
        until: str = "1",
        preserve: bool = False,
    ) -> int | None:
        """Store that a file contains an exchange, inside a transaction; return the exchange's id."""
        archive = self.archive
        file_id = archive.upsert_transcript_file(
            RootedPath(root, file), PRINT, "codex", ReadState("reader 1", "point", "{}")
        )
        info = SessionInfo(
            session=session, title=title, project="/p", parent="above", updated=until
        )
        session_id = archive.get_or_create_session(root, "codex", info)
        archive.save_session_info(file_id, {session_id: info}, is_full_read=True)
        exchange = Exchange(
            id=name, session=session, number=1, question=question, answer=answer, at="", until=until
        )
        source = ExchangeSource(root, "codex", file_id)
        if preserve:
            return archive.upsert_exchange(source, session_id, exchange, preserve=True)
        return archive.upsert_exchange(source, session_id, exchange)

    def told(self, file: str, name: str, *, preserve: bool = False, **fields: str) -> int:
        """Do the same in a transaction of its own."""
        with self.archive.transaction():
            exchange_id = self.put(file, name, preserve=preserve, **fields)
        assert exchange_id
        return exchange_id

    def file_id(self, file: str, root: str = "talks") -> int:
        """Return the id of a transcript file."""
        record = self.archive.find_transcript_file(RootedPath(root, file))
        assert record
        return record.id

    def readers(self) -> dict[str, str]:
        """Return the recorded reader of each file; "" is due to be read in full."""
        rows = self.rows("SELECT path, reader FROM carriers ORDER BY path")
        return {path.decode(): reader for path, reader in rows}

    def paths(self, root: str = "talks") -> list[str]:
        """Return the exchanges of a root."""
        return [found.path for found in self.archive.list_exchanges(root)]

    def groups(self) -> list[tuple[str, int]]:
        """Return the reason and the number of exchanges of each group."""
        return [(str(g.reason), g.exchange_count) for g in self.archive.detached_groups()]

    def rows(self, query: str) -> list[tuple[Any, ...]]:
        """Return the rows that a query gives."""
        return self.archive._db.execute(query).fetchall()


@pytest.fixture
def talks(tmp_path: Path) -> Iterator[Talks]:
    made = Talks(tmp_path / "conversations.sqlite")
    yield made
    made.archive.close()


def at(path: str, root: str = "talks") -> RootedPath:
    return RootedPath(root, path)


# Forget


def test_what_was_erased_is_told_and_nothing_of_it_stays(talks: Talks) -> None:
    talks.told("in/a.jsonl", "1")
    talks.told("in/b.jsonl", "2", session="t")
    talks.told("c.jsonl", "3", session="u")
    erased = talks.archive.erase("/talks/in")
    assert erased == [
        at("in/a.jsonl"), at("in/b.jsonl"), at("/codex/s/1"), at("/codex/t/2"),
    ]  # fmt: skip
    assert talks.paths() == ["/codex/u/3"]
    assert talks.archive.transcript_files("talks") == [at("c.jsonl")]
    assert talks.rows("SELECT name FROM sessions") == [("u",)]
    assert talks.rows("SELECT count(*) FROM heads") == [(1,)]
    exchanges = erased[2:]
    assert talks.archive.erase("/talks/in") == exchanges  # Their rows may still be there.
    talks.archive.mark_indexed(exchanges)
    assert talks.archive.erase("/talks/in") == []


def test_a_detached_group_that_is_erased_leaves_nothing_and_no_row_of_it_is_told(
    talks: Talks,
) -> None:
    talks.told("a.jsonl", "1")
    talks.archive.detach_root("talks", 1)
    talks.archive.attach_root("other", "/other")
    talks.told("b.jsonl", "2", root="other")
    assert talks.archive.erase("/talks") == []
    assert talks.groups() == []
    for table in ("exchanges", "carriers", "sessions"):
        assert talks.rows(f"SELECT root FROM {table}") == [("other",)]


def test_a_file_elsewhere_that_contains_an_erased_exchange_is_read_again(talks: Talks) -> None:
    talks.told("a.jsonl", "1", title="Title of a", until="2")
    talks.told("a.jsonl", "2", title="Title of a", until="2", answer="Only here.")
    talks.told("copy.jsonl", "1", title="Title of the copy", until="2")
    talks.archive.erase("/talks/a.jsonl")
    assert list(talks.archive.files_to_reread) == [at("copy.jsonl")]
    assert talks.readers() == {"copy.jsonl": ""}
    assert talks.paths() == []
    with talks.archive.transaction():
        assert talks.put("copy.jsonl", "1", until="2"), "the copy may tell it again"
        assert talks.put("copy.jsonl", "2", until="2", answer="Only here.") is None
    assert talks.paths() == ["/codex/s/1"]


def test_a_session_that_another_file_tells_of_keeps_that_files_title(talks: Talks) -> None:
    talks.told("a.jsonl", "1", title="Title of a", until="2")
    talks.told("b.jsonl", "2", title="Title of b", until="1")
    assert talks.rows("SELECT title FROM sessions") == [("Title of a",)]
    talks.archive.erase("/talks/a.jsonl")
    assert talks.rows("SELECT title FROM sessions") == [("Title of b",)]
    assert list(talks.archive.retitled_exchanges) == [at("/codex/s/2")]


@pytest.mark.parametrize(("name", "is_known_for_good"), [("1", True), ("at-1", False)])
def test_what_was_erased_is_no_loss(talks: Talks, name: str, *, is_known_for_good: bool) -> None:
    talks.told("a.jsonl", name)
    talks.archive.erase("/talks/a.jsonl")
    path = at(f"/codex/s/{name}")
    assert not talks.archive.is_lost(path)
    # An id that is a place in a file names nothing once the index has deleted the rows.
    talks.archive.mark_indexed([path])
    assert talks.archive.is_lost(path) is not is_known_for_good


def test_an_exchange_is_due_until_the_index_has_it(talks: Talks) -> None:
    talks.told("a.jsonl", "1")
    talks.told("a.jsonl", "2")
    talks.archive.mark_indexed([at("/codex/s/1"), at("/codex/s/1", "other")])
    assert talks.archive.exchanges_due(at("a.jsonl")) == [at("/codex/s/2")]


def test_unforget_lets_every_file_of_the_roots_tell_it_again(talks: Talks) -> None:
    talks.told("a.jsonl", "1")
    talks.told("b.jsonl", "2")
    talks.told("d.jsonl", "4", root="away")
    talks.archive.detach_root("away", 1)
    talks.archive.erase("/talks/a.jsonl")
    assert talks.archive.unforget("/talks/other.jsonl") == []
    assert talks.readers()["b.jsonl"] == "reader 1"
    assert talks.archive.unforget("/talks/a.jsonl") == [at("b.jsonl")]
    assert talks.readers() == {"b.jsonl": "", "d.jsonl": ""}
    assert talks.archive.unforget("/talks/a.jsonl") == []
    assert talks.told("a.jsonl", "1")


def test_a_truncated_log_holds_nothing(talks: Talks) -> None:
    talks.told("a.jsonl", "1")
    log = Path(f"{talks.file}-wal")
    assert log.stat().st_size > 0
    talks.archive.truncate_wal()
    assert log.stat().st_size == 0


def test_how_many_exchanges_held_secrets_is_told_once_for_the_same_rules(talks: Talks) -> None:
    secret = "ghp_" + "aB3dE6gH9jK2mN5pQ8sT1vW4yZ7bC0eF3hJ6"
    talks.told("a.jsonl", "1", answer=f"It is {secret}.")
    talks.told("a.jsonl", "2", answer="It is nothing.")
    assert talks.archive.redact_stored("rules 1") == 1
    assert talks.archive.redact_stored("rules 1") == 0
    assert secret.encode() not in talks.archive.read(at("/codex/s/1")).data  # type: ignore[union-attr]


def transcript_of(talks: Talks, path: str) -> str | None:
    return talks.archive.exchange_places([at(path)])[at(path)].transcript


# Excluded files


def test_an_excluded_file_takes_along_what_no_other_file_contains(talks: Talks) -> None:
    talks.told("b.jsonl", "2", title="Title of b", until="2")
    talks.told("b.jsonl", "3", title="Title of b", until="1")
    talks.told("c.jsonl", "1", title="Title of c", until="2")
    shared = talks.told("c.jsonl", "2", title="Title of c", until="2")
    assert transcript_of(talks, "/codex/s/2") == "c.jsonl"
    talks.archive.mark_indexed([at(path) for path in talks.paths()])
    with talks.archive.transaction():
        talks.archive.exclude_transcript_file(at("c.jsonl"), 7)
    assert list(talks.archive.removed_exchanges) == [at("/codex/s/1")]
    assert talks.groups() == [("excluded", 1)]
    assert talks.paths() == ["/codex/s/2", "/codex/s/3"]
    assert talks.archive.transcript_files("talks") == [at("b.jsonl")]
    assert transcript_of(talks, "/codex/s/2") == "b.jsonl"
    assert talks.rows(f"SELECT count(*) FROM tellings WHERE exchange={shared}") == [(1,)]
    assert talks.rows("SELECT title FROM sessions WHERE root='talks'") == [("Title of b",)]
    assert set(talks.archive.retitled_exchanges) == {at("/codex/s/2"), at("/codex/s/3")}


def test_excluding_a_file_that_was_never_read_leaves_nothing(talks: Talks) -> None:
    with talks.archive.transaction():
        talks.archive.exclude_transcript_file(at("never.jsonl"), 7)
    assert (talks.groups(), talks.archive.removed_exchanges) == ([], {})
    assert talks.rows("SELECT path FROM carriers") == []


def test_what_a_deleted_file_contained_goes_when_its_path_is_excluded(talks: Talks) -> None:
    talks.told("a.jsonl", "1")
    with talks.archive.transaction():
        talks.archive.remove_transcript_file(at("a.jsonl"), 5, None)
    with talks.archive.transaction():
        talks.archive.exclude_transcript_file(at("a.jsonl"), 7)
    assert (talks.groups(), talks.paths()) == ([("excluded", 1)], [])


def test_an_excluded_file_waits_for_whichever_root_contains_it(talks: Talks) -> None:
    talks.told("in/a.jsonl", "1")
    with talks.archive.transaction():
        talks.archive.exclude_transcript_file(at("in/a.jsonl"), 7)
    talks.archive.attach_root("inner", "/talks/in")
    assert talks.archive.excluded_files.paths("inner") == [at("a.jsonl", "inner")]
    assert talks.archive.excluded_files.paths("talks") == []
    assert talks.archive.detached.folder_of_root("inner") == "/talks/in"


# Files that no longer contain an exchange


@pytest.mark.parametrize(
    ("goes_to", "removed"), [(DetachReason.READER, ["/codex/s/1"]), (None, [])]
)
def test_an_exchange_that_no_file_contains_any_more_is_told_only_if_it_leaves_its_root(
    talks: Talks, goes_to: DetachReason | None, removed: list[str]
) -> None:
    talks.told("a.jsonl", "1")
    talks.told("a.jsonl", "2")
    talks.told("b.jsonl", "2")
    with talks.archive.transaction():
        talks.archive.remove_transcript_file(at("a.jsonl"), 5, goes_to)
    assert [each.path for each in talks.archive.removed_exchanges] == removed
    assert talks.paths() == [path for path in ("/codex/s/1", "/codex/s/2") if path not in removed]
    with talks.archive.transaction():
        assert talks.archive.removed_exchanges == {}


@pytest.mark.parametrize(
    ("missing", "question", "answer", "is_dropped"),
    [
        ("at-1", "How?", "So.", True),
        ("at-1", "How?", "So. And more.", True),
        ("preamble", "How?", "So.", True),
        ("at-1", "How?", "So", False),
        ("at-1", "How?", "And so.", False),
        ("at-1", "Why?", "So.", False),
        ("e-1", "How?", "So.", False),
    ],
)
def test_an_exchange_that_is_named_after_its_place_is_dropped_once_it_is_at_another(
    talks: Talks,
    missing: str,
    question: str,
    answer: str,
    is_dropped: bool,  # noqa: FBT001 - a column of the table
) -> None:
    gone = talks.told("a.jsonl", missing)
    with talks.archive.transaction():
        talks.put("a.jsonl", "at-2", question=question, answer=answer)
        left = talks.archive.drop_repeated_exchanges(talks.file_id("a.jsonl"), [gone])
        removed = list(talks.archive.removed_exchanges)
    path = f"/codex/s/{missing}"
    assert left == (set() if is_dropped else {gone})
    assert removed == ([at(path)] if is_dropped else [])
    assert (path in talks.paths()) is not is_dropped
    assert "/codex/s/at-2" in talks.paths()
    assert talks.rows("SELECT root, path FROM deleted") == ([("talks", path)] if is_dropped else [])


def test_an_exchange_is_not_its_own_repetition(talks: Talks) -> None:
    ids = [talks.told("a.jsonl", "at-1"), talks.told("a.jsonl", "at-2")]
    with talks.archive.transaction():
        left = talks.archive.drop_repeated_exchanges(talks.file_id("a.jsonl"), ids)
    assert (left, len(talks.paths())) == (set(ids), 2)


def test_a_question_that_took_anothers_place_keeps_a_copy_of_it_if_asked_to(talks: Talks) -> None:
    talks.told("a.jsonl", "at-1", question="First?")
    talks.told("a.jsonl", "at-1", question="Second?")
    assert talks.groups() == []
    talks.told("a.jsonl", "at-1", question="Third?", preserve=True)
    assert talks.groups() == [("reader", 1)]
    (copy,) = talks.archive.detached_exchanges()
    assert json.loads(copy.content)["question"] == "Second?"


@pytest.mark.parametrize("is_later", [False, True])
def test_a_copy_that_was_made_is_dropped_if_its_question_moved_in_the_same_read(
    talks: Talks, *, is_later: bool
) -> None:
    talks.told("a.jsonl", "at-1", question="First?")
    file_id = talks.file_id("a.jsonl")
    with talks.archive.transaction():
        talks.put("a.jsonl", "at-1", question="New?", preserve=True)
        talks.put("a.jsonl", "at-2", question="First?")
        assert len(talks.archive.replaced_copies) == 1
        if not is_later:
            assert talks.archive.drop_repeated_exchanges(file_id, []) == set()
            assert talks.archive.removed_exchanges == {}
    if is_later:
        with talks.archive.transaction():
            assert talks.archive.replaced_copies == []
            talks.archive.drop_repeated_exchanges(file_id, [])
    assert talks.groups() == ([("reader", 1)] if is_later else [])
    assert talks.rows("SELECT count(*) FROM deleted") == [(0,)]
    assert talks.paths() == ["/codex/s/at-1", "/codex/s/at-2"]


# What the archive has lost


def test_a_lost_exchange_is_stored_again_without_a_file(talks: Talks) -> None:
    exchange = Exchange(
        id="1", session="s", number=3, question="How?", answer="So.", at="", until="9"
    )
    info = SessionInfo(session="s", title="A title", project="/p")
    talks.archive.restore_exchange(at("/codex/s/1"), "codex", info, exchange)
    assert talks.paths() == ["/codex/s/1"]
    context = talks.archive.conversation_context(at("/codex/s/1"))
    assert context is not None
    assert (context.title, context.source, context.source_missing) == ("A title", "codex", True)


def test_groups_that_the_file_has_lost_are_made_again_when_it_is_opened(talks: Talks) -> None:
    talks.told("a.jsonl", "1")
    talks.archive.detach_root("talks", 7)
    talks.archive._db.execute("DELETE FROM detached")
    talks.archive.close()
    talks.archive = ArchiveWriter(talks.file)
    assert talks.groups() == [("root", 1)]


# Sessions


def test_what_a_file_says_of_a_session_is_returned(talks: Talks) -> None:
    talks.told("a.jsonl", "1", until="2026")
    talks.told("b.jsonl", "2", session="t")
    ((session_id,),) = talks.rows("SELECT id FROM sessions WHERE name='s'")
    assert talks.archive.get_session_info(talks.file_id("a.jsonl"), session_id) == SessionInfo(
        session="s", title="A title", project="/p", parent="above", updated="2026"
    )
    assert talks.archive.get_session_info(talks.file_id("b.jsonl"), session_id) == SessionInfo(
        session="s"
    )


def test_a_damaged_text_stays_damaged_until_it_is_read_again(talks: Talks) -> None:
    talks.told("a.jsonl", "1")
    talks.archive._db.execute("UPDATE exchanges SET content=x'00'")
    talks.archive.schedule_full_reads([at("a.jsonl")])
    assert talks.archive.forms_in(at("a.jsonl")) == {"/codex/s/1": ""}


def test_exchanges_that_were_deleted_without_their_tellings_are_not_named(talks: Talks) -> None:
    talks.told("a.jsonl", "1")
    talks.told("a.jsonl", "2")
    file_id = talks.file_id("a.jsonl")
    talks.archive._db.execute("PRAGMA foreign_keys=OFF")
    talks.archive._db.execute("DELETE FROM exchanges WHERE path='/codex/s/1'")
    (left,) = talks.archive.exchange_ids_of(file_id)
    assert talks.archive.origin_of(left).path == "/codex/s/2"
