"""The simulator: a few sequences per run, and its oracle finds damage made without the program."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from random import Random

import lancedb
import pytest
from tools.simulator.backups import backup, restore
from tools.simulator.commands import Stage
from tools.simulator.faulty import Fault
from tools.simulator.oracle import Answer, judge, read_rows
from tools.simulator.program import CommandLine, Workers
from tools.simulator.sequences import parse, plan, replay
from tools.simulator.transcripts import readable_words, say, words_of
from tools.simulator.world import World

FIRST_SEED = 7_000_000
GROUPS, IN_A_GROUP = 12, 10
MOST_STEPS = 4
"""Steps after the first eight; a sequence of this length costs 0.4 s of CPU."""
KNOWN: dict[str, str] = {}
"""Known open kinds of differences. Delete a line when its defect is fixed."""
MENDED = {
    "a damaged page that only the summary of `index` reads": (
        "index@20261201000000001900.7 damage@20261201000000001900.8"
    ),
    "rules taken back after a kill while they excluded a transcript": (
        "say_something@20261201000000000261.18 say_something@20261201000000000261.19"
        " rebuild@20261201000000000261.20 ignore_talks@20261201000000000261.22"
        " killed@20261201000000000261.23"
    ),
    "a rebuild after ignore files could not be read": (
        "say_something@20261201000000001042.6 index@20261201000000001042.7"
        " delete_talk@20261201000000001042.11 unreadable_rules@20261201000000001042.12"
        " failing_call@20261201000000001042.13"
    ),
}
"""Sequences that once differed."""


@pytest.fixture(scope="module")
def workers() -> Iterator[Workers]:
    """Give the process that runs the commands."""
    made = Workers()
    yield made
    made.close()


@pytest.fixture
def stage(tmp_path: Path, workers: Workers) -> Stage:
    """Return an indexed world with a document and two exchanges."""
    world = World(tmp_path)
    world.make()
    (tmp_path / "docs" / "note.md").write_text(world.new_text(2))
    for _ in range(2):
        say(tmp_path / "talks" / "first.jsonl", world.exchanges)
        world.exchanges += 1
    made = Stage(
        world,
        CommandLine(world.home, workers),
        lambda _: None,
        lambda home: CommandLine(home, workers),
    )
    assert made.run("index") == []
    assert made.run("verify") == []
    return made


def index_answer(world: World) -> Answer:
    """Return the answer of `index` when nothing is due."""
    rows, _ = read_rows(world.data)
    return Answer("index", 0, {"chunks": len(rows or ()), "away": [], "problems": []})


def _no_fault() -> Random:
    """Return dice that draw no fault."""
    return Random(0)  # noqa: S311 - a test's dice


def kinds(world: World, answer: Answer | None = None) -> set[str]:
    """Check an answer; return the kinds of differences."""
    return {finding.kind for finding in judge(world, answer or index_answer(world))}


@pytest.mark.parametrize("group", range(GROUPS))
def test_short_sequences_show_no_difference_that_is_not_known(group: int, workers: Workers) -> None:
    first = FIRST_SEED + group * IN_A_GROUP
    for seed in range(first, first + IN_A_GROUP):
        result = replay(plan(seed, most=MOST_STEPS), workers)
        new = [finding for finding in result.findings if finding.kind not in KNOWN]
        assert new == [], "\n".join([f"seed {seed}", *result.lines])


@pytest.mark.parametrize("steps", MENDED.values(), ids=MENDED)
def test_what_it_found_stays_mended(steps: str, workers: Workers) -> None:
    result = replay(parse(steps), workers)
    assert result.findings == [], "\n".join(result.lines)


@pytest.mark.parametrize(
    ("file", "kind"),
    [("lance/*/data/*", "restored-rows"), ("conversations.sqlite", "restore-refused")],
)
def test_a_backup_that_lost_a_file_is_found(stage: Stage, file: str, kind: str) -> None:
    assert backup(stage, _no_fault()) == []
    (lost_file,) = sorted(stage.world.backups.glob(f"*/data/{file}"))[:1]
    lost_file.unlink()
    assert {finding.kind for finding in restore(stage, _no_fault())} == {kind}


def test_what_a_restore_does_not_give_back_is_found(stage: Stage) -> None:
    assert backup(stage, _no_fault()) == []
    assert restore(stage, _no_fault()) == []
    snapshot = stage.snapshot
    stage.snapshot = replace(snapshot, row_ids=snapshot.row_ids | {"x"}, words=frozenset({"y"}))
    assert {finding.kind for finding in restore(stage, _no_fault())} == {
        "restored-archive",
        "restored-rows",
    }


def test_what_the_trash_drops_too_early_is_found(stage: Stage) -> None:
    world = stage.world
    world.note_what_is_said()
    world.roots[1] = replace(world.roots[1], on_delete="delete")
    world.write_config()
    (world.base / "talks" / "first.jsonl").unlink()
    assert stage.run("index") == []
    assert world.trashed == words_of(0) | words_of(1)
    with sqlite3.connect(world.data / "conversations.sqlite") as db:
        db.execute("DELETE FROM exchanges WHERE id=1")
    db.close()
    assert "archive-lost" in kinds(world)
    for days in (15, 31):
        assert stage.run("index", ahead_s=days * 24 * 3600) == []
    assert world.archived == {}


@pytest.mark.parametrize("kind", ["sqlite", "lance", "files"])
def test_each_kind_of_call_fails_at_the_armed_call(stage: Stage, kind: str) -> None:
    fault = Fault(
        kind, 0, {"sqlite": "FULL"}.get(kind, "ENOSPC"), {"files": "/home/data/"}.get(kind, "")
    )
    assert stage.answer("index", fault=fault).code > 0
    assert stage.run("index") == []


def test_the_same_seed_gives_the_same_steps_and_their_text_gives_them_back() -> None:
    steps = plan(3)
    assert steps == plan(3) != plan(4)
    assert parse(" ".join(map(str, steps))) == steps


def test_an_exchange_that_left_the_archive_is_found_once(stage: Stage) -> None:
    with sqlite3.connect(stage.world.data / "conversations.sqlite") as db:
        db.execute("DELETE FROM exchanges WHERE id=1")
    db.close()
    assert "archive-lost" in kinds(stage.world)
    assert "archive-lost" not in kinds(stage.world)


def test_a_row_that_left_the_table_is_found(stage: Stage) -> None:
    table = lancedb.connect(str(stage.world.data / "lance")).open_table("chunks")
    table.delete("root = 'docs'")
    assert kinds(stage.world) == {"row-missing"}
    table.delete("root = 'talks'")
    assert kinds(stage.world) == {"row-missing", "row-missing-conversation"}


def test_rows_of_a_file_that_is_gone_or_ignored_are_found(stage: Stage) -> None:
    note = stage.world.base / "docs" / "note.md"
    (note.parent / ".gitignore").write_text("note.md\n")
    assert kinds(stage.world) == {"row-of-excluded"}
    note.unlink()
    assert kinds(stage.world) == {"row-of-absent"}


def test_rows_of_an_ignored_transcript_are_found_also_when_it_is_gone(stage: Stage) -> None:
    stage.world.note_what_is_said()
    talks = stage.world.base / "talks"
    (talks / ".gitignore").write_text("*.jsonl\n")
    assert kinds(stage.world) == {"row-of-excluded-talk"}
    (talks / "first.jsonl").unlink()
    assert kinds(stage.world) == {"row-of-excluded-talk"}


def test_verify_may_call_a_torn_transcript_different_only_until_it_is_read(stage: Stage) -> None:
    world, talk = stage.world, stage.world.base / "talks" / "first.jsonl"
    world.note_what_is_said()
    talk.write_bytes(talk.read_bytes().splitlines(keepends=True)[0])
    difference = {"kind": "archived", "root": "talks", "path": "first.jsonl", "chunk_id": "q0"}
    answer = Answer("verify", 1, {"ok": False, "differences": [difference]})
    assert kinds(world, answer) == set()
    world.note_what_is_read()
    assert kinds(world, answer) == {"says-different"}


def test_a_false_statement_is_found(stage: Stage) -> None:
    world = stage.world
    (world.base / "docs" / "note.md").write_text(world.new_text(1))
    assert kinds(world) == {"row-missing", "row-stale"}
    assert kinds(world, Answer("verify", 0, {"ok": True})) == {
        "says-equal/row-missing",
        "says-equal/row-stale",
    }
    answer = Answer("search", 0, {"groups": []}, arguments=("line000002",))
    assert kinds(world, answer) == {"nothing-found"}


def test_a_wrong_count_of_chunks_is_found(stage: Stage) -> None:
    answer = index_answer(stage.world)
    answer.json["chunks"] += 1
    assert kinds(stage.world, answer) == {"counts-differ"}


def test_what_forget_leaves_behind_is_found(stage: Stage) -> None:
    answer = Answer("forget", 0, {"files": 1, "rows": 2}, arguments=("first.jsonl", *words_of(0)))
    stage.world.forgotten.add(stage.world.base / "talks" / "first.jsonl")
    assert {"forgotten-in-table", "forgotten-in-archive"} <= kinds(stage.world, answer)


@pytest.mark.parametrize("name", ["a.jsonl", "rollout-b.jsonl", "c.json"])
def test_what_was_said_can_be_read_until_it_is_overwritten(tmp_path: Path, name: str) -> None:
    file = tmp_path / name
    say(file, 0)
    say(file, 1)
    assert readable_words(file) == words_of(0) | words_of(1)
    file.write_bytes(b"\0" * file.stat().st_size)
    assert readable_words(file) == set()
