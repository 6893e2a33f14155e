"""The running service over conversations: the real watcher finds what assistants write."""

from __future__ import annotations

import json
import sqlite3
import time
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest
from conversations.conftest import answer, claude
from conversations.test_growth import GROWN
from faults.service import SETTINGS, Service, until

from anchord.core.types import Row
from anchord.sources.files.rule_files import SETTLE_NS

TURNS = [(f"How is question {n} asked?", answer(f"subject{n}", 2)) for n in range(4)]


@pytest.fixture
def talking(tmp_path: Path) -> Iterator[Service]:
    folder = tmp_path / "docs"
    root = f'[[root]]\npath = "{folder}"\nkind = "conversations"\n'
    made = Service(tmp_path, f"{SETTINGS}{root}")
    yield made
    made.stop()


def rows(service: Service) -> list[Row]:
    return service.pipeline.submit(lambda: list(service.writer.store.all_rows())).result()


def said(service: Service) -> str:
    return "\n".join(row.text for row in rows(service))


def test_what_is_appended_is_found_without_being_asked_for(talking: Service) -> None:
    file = talking.folder / "s1.jsonl"
    file.write_bytes(claude(*TURNS[:2]))
    talking.start().sync()
    before = talking.embedded()
    with file.open("ab") as appending:
        for line in claude(TURNS[2], start=2).splitlines(keepends=True):
            appending.write(line)
            appending.flush()
    until(lambda: "Paragraph 1 of subject2" in said(talking))
    assert talking.is_right()
    assert (
        talking.embedded() - before <= 4
    )  # Its three parts, and the question while it had no answer yet.
    assert talking.status()["roots"][0]["conversations"]["exchanges"] == 3


@pytest.mark.skipif(
    not GROWN[0].exists(), reason="the samples are beside the repository only where it is developed"
)
def test_a_real_session_that_grows_under_a_running_service_keeps_what_was_before_its_last_exchange(
    talking: Service,
) -> None:
    file = talking.folder / "1284c080.jsonl"
    file.write_bytes(GROWN[0].read_bytes())
    talking.start().sync()
    for snapshot in GROWN[1:]:
        before = rows(talking)
        last = max(before, key=lambda row: (row.at, row.part_index)).exchange_id
        kept = {row.id: row.vector_key for row in before if row.exchange_id != last}
        embedded, size = talking.embedded(), file.stat().st_size
        with file.open("ab") as appending:
            appending.write(snapshot.read_bytes()[size:])
        talking.sync()
        after = {row.id: row.vector_key for row in rows(talking)}
        assert kept.items() <= after.items()
        assert talking.embedded() - embedded <= len(after.keys() - kept.keys())
    assert talking.is_right()


def test_a_session_that_is_renamed_and_deleted_while_watched_stays(talking: Service) -> None:
    file = talking.folder / "s1.jsonl"
    file.write_bytes(claude(*TURNS))
    talking.start().sync()
    before, embedded = said(talking), talking.embedded()
    moved = file.rename(talking.folder / "other.jsonl")
    talking.sync()
    moved.unlink()
    until(lambda: talking.status()["roots"][0]["conversations"]["source_missing"] == len(TURNS))
    talking.sync()
    assert (said(talking), talking.embedded()) == (before, embedded)


def test_what_a_program_writes_to_its_open_database_is_found(talking: Service) -> None:
    file = talking.folder / "globalStorage" / "state.vscdb"
    file.parent.mkdir(parents=True)
    with closing(sqlite3.connect(file)) as database:
        database.execute("PRAGMA journal_mode=WAL")
        database.execute("CREATE TABLE cursorDiskKV(key TEXT UNIQUE, value BLOB)")
        talking.start().sync()
        bubbles = [{"bubbleId": "b1", "type": 1}, {"bubbleId": "b2", "type": 2}]
        rows = {
            "composerData:c1": {
                "composerId": "c1",
                "name": "Ponds",
                "fullConversationHeadersOnly": bubbles,
            },
            "bubbleId:c1:b1": {"bubbleId": "b1", "type": 1, "text": "Where do the herons stand?"},
            "bubbleId:c1:b2": {"bubbleId": "b2", "type": 2, "text": "In the pond."},
        }
        with database:
            database.executemany(
                "INSERT INTO cursorDiskKV VALUES(?,?)",
                [(key, json.dumps(row)) for key, row in rows.items()],
            )
        until(lambda: "Where do the herons stand?\n\nIn the pond." in said(talking))
        assert file.stat().st_size <= 8192  # It is in the log only.
        assert talking.is_right()


def test_a_folder_of_slack_is_one_carrier_and_a_late_reply_joins_its_thread(
    talking: Service,
) -> None:
    export = talking.folder / "export"
    (export / "general").mkdir(parents=True)
    (export / "users.json").write_text(
        json.dumps([{"id": "U1", "name": "ada"}, {"id": "U2", "name": "bob"}])
    )
    (export / "channels.json").write_text(json.dumps([{"id": "C1", "name": "general"}]))
    thread = {"type": "message", "thread_ts": "1452837318.000002"}
    first = {**thread, "user": "U1", "ts": "1452837318.000002", "text": "Who has it?"}
    (export / "general" / "2016-01-15.json").write_text(json.dumps([first]))
    talking.start().sync()
    assert said(talking) == "ada: Who has it?"
    late = {**thread, "user": "U2", "ts": "1452923718.000002", "text": "I have."}
    (export / "general" / "2016-01-16.json").write_text(json.dumps([late]))
    until(lambda: said(talking) == "ada: Who has it?\n\nbob: I have.")
    assert talking.is_right()


def test_a_session_that_is_ignored_leaves_the_index_stays_in_the_archive_and_comes_back(
    talking: Service,
) -> None:
    (talking.folder / "s1.jsonl").write_bytes(claude(*TURNS[:2]))
    talking.start().sync()
    assert "Paragraph 1 of subject1" in said(talking)
    rules = talking.folder / ".gitignore"
    rules.write_text("s1*\n")
    talking.sync()
    assert rows(talking) == []
    with closing(sqlite3.connect(talking.places.archive_file)) as archive:
        assert archive.execute("SELECT count(*) FROM exchanges").fetchone() == (2,)
    again = talking.pipeline.submit(lambda: talking.pipeline.work_queue.reconcile("docs"))
    assert again.result().paths_due == ()
    rules.unlink()
    talking.sync()
    assert "Paragraph 1 of subject1" in said(talking)
    assert talking.is_right()
    assert talking.status()["roots"][0]["conversations"]["exchanges"] == 2


def test_a_deleted_session_leaves_the_index_when_its_path_is_ignored_and_comes_back(
    talking: Service,
) -> None:
    file = talking.folder / "s1.jsonl"
    file.write_bytes(claude(*TURNS[:2]))
    talking.start().sync()
    file.unlink()
    talking.sync()
    assert "Paragraph 1 of subject1" in said(talking)
    rules = talking.folder / ".gitignore"
    rules.write_text("s1*\n")
    until(lambda: rows(talking) == [])
    rules.unlink()
    until(lambda: "Paragraph 1 of subject1" in said(talking))
    until(lambda: "Paragraph 1 of subject0" in said(talking))
    assert talking.is_right()


def test_verify_waits_until_a_deleted_ignore_file_is_believed(talking: Service) -> None:
    rules = talking.folder / ".gitignore"
    rules.write_text("s1*\n")
    (talking.folder / "s1.jsonl").write_bytes(claude(*TURNS[:2]))
    talking.start().sync()
    rules.unlink()
    assert talking.ask("verify", vectors=0)["exchanges"] == 2
    assert "Paragraph 1 of subject1" in said(talking)


def test_a_walk_that_comes_when_the_rules_have_just_settled_finds_a_deleted_session(
    talking: Service,
) -> None:
    file = talking.folder / "s1.jsonl"
    file.write_bytes(claude(*TURNS[:2]))
    talking.start().sync()
    rules = talking.folder / ".gitignore"
    rules.write_text("s1*\n")
    talking.sync()
    file.unlink()
    queue = talking.pipeline.work_queue
    rules.unlink()
    until(lambda: queue.root_checks.unsettled_roots and not queue.has_hints)

    def walk_once_settled() -> None:
        """Walk before the loop does it."""
        time.sleep(SETTLE_NS / 1e9)
        queue.reconcile_all()

    talking.pipeline.submit(walk_once_settled).result()
    until(lambda: "Paragraph 1 of subject1" in said(talking))
