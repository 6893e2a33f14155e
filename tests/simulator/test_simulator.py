"""The simulator: a few sequences in each run, and that its oracle finds what is broken behind the program's back."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from pathlib import Path

import lancedb
import pytest
from tools.simulator.commands import Stage
from tools.simulator.oracle import Answer, judge, read_rows
from tools.simulator.program import CommandLine, Workers
from tools.simulator.sequences import parse, plan, replay
from tools.simulator.transcripts import readable_words, say, words_of
from tools.simulator.world import World

SEEDS = range(7_000_000, 7_000_008)
KNOWN = {
    "archive-missing": "issue 22, 3: without its archive, a settled transcript is not read again",
    "archive-lost": "issue 22, 1: a root or a source that goes takes its exchanges with it",
    "never-equal": "issue 22, 6: a damaged file of the table stays where it is after a repair",
    "says-equal/archive-missing": "issue 22, 5: verify does not look at the transcripts",
    "says-equal/row-missing-conversation": "the same",
    "stuck": "issue 22, 3: a damaged page of the archive stops every index",
    "success-over-unreadable-table": "issue 22, 6",
    "traceback/sqlite3.DatabaseError": "issue 22, 2",
    "traceback-under-fault/sqlite3.OperationalError": "issue 22, 2",
}
"""Kinds of differences that are known and open. Whoever closes one takes its line out."""


@pytest.fixture(scope="module")
def workers() -> Iterator[Workers]:
    """Give the process that runs the commands."""
    made = Workers()
    yield made
    made.close()


@pytest.fixture
def stage(tmp_path: Path, workers: Workers) -> Stage:
    """Give a world with a document and two exchanges, indexed."""
    world = World(tmp_path)
    world.make()
    (tmp_path / "docs" / "note.md").write_text(world.new_text(2))
    for _ in range(2):
        say(tmp_path / "talks" / "first.jsonl", world.exchanges)
        world.exchanges += 1
    made = Stage(world, CommandLine(world.home, workers), lambda _: None)
    assert made.run("index") == []
    assert made.run("verify") == []
    return made


def index_answer(world: World) -> Answer:
    """Return what `index` answers when nothing is to be done."""
    rows, _ = read_rows(world.data)
    return Answer("index", 0, {"chunks": len(rows or ()), "away": [], "problems": []})


def kinds(world: World, answer: Answer | None = None) -> set[str]:
    """Judge an answer; return the kinds of what is found."""
    return {finding.kind for finding in judge(world, answer or index_answer(world))}


@pytest.mark.parametrize("seed", SEEDS)
def test_a_sequence_shows_no_difference_that_is_not_known(seed: int, workers: Workers) -> None:
    result = replay(plan(seed), workers)
    new = [finding for finding in result.findings if finding.kind not in KNOWN]
    assert new == [], "\n".join(result.lines)


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
    assert {"forgotten-in-table", "forgotten-in-archive"} <= kinds(stage.world, answer)


@pytest.mark.parametrize("name", ["a.jsonl", "rollout-b.jsonl", "c.json"])
def test_what_was_said_can_be_read_until_it_is_overwritten(tmp_path: Path, name: str) -> None:
    file = tmp_path / name
    say(file, 0)
    say(file, 1)
    assert readable_words(file) == words_of(0) | words_of(1)
    file.write_bytes(b"\0" * file.stat().st_size)
    assert readable_words(file) == set()
