"""What happens to the exchanges of a transcript that the rules exclude for a while."""

from __future__ import annotations

import json
import shutil
from dataclasses import replace
from functools import partial
from pathlib import Path

import pytest
from conversations.conftest import ROOT, Talks, answer, claude

from anchord.core.types import RootedPath
from anchord.index.archive_roots import update_at_start

TURNS = [(f"How is question {n} asked?", answer(f"subject{n}")) for n in range(4)]


def exclude(talks: Talks, *patterns: str) -> None:
    """Set the root's rules, as a changed configuration does, and index."""
    talks.roots[ROOT] = replace(talks.roots[ROOT], exclude=patterns)
    talks.close()
    talks.open()
    talks.sync()


def include(talks: Talks) -> None:
    """Drop the rules and index."""
    exclude(talks)


def groups(talks: Talks) -> list[tuple[str, int]]:
    """Return the reason of each detached group and how many exchanges it holds."""
    return [
        (str(each.reason), each.exchange_count)
        for each in talks.archive.detached_groups()
        if each.exchange_count
    ]


@pytest.mark.parametrize("torn", [claude(*TURNS[:1]), claude(*TURNS[:3])[:-99], b"\0" * 900])
@pytest.mark.parametrize("is_indexed_torn", [False, True])
def test_a_torn_transcript_that_was_excluded_returns_with_what_it_lost(
    talks: Talks, *, torn: bytes, is_indexed_torn: bool
) -> None:
    file = talks.write("s1.jsonl", claude(*TURNS))
    talks.sync()
    before = talks.ids()
    file.write_bytes(torn)
    if is_indexed_torn:
        talks.sync()
    exclude(talks, "s1*")
    assert talks.rows() == []
    assert groups(talks) == [("excluded", 4)]
    include(talks)
    assert talks.ids() == before
    assert groups(talks) == []
    assert talks.sync() == []
    assert talks.verify().differences == ()


@pytest.mark.parametrize("stopped_after", range(1, 8))
def test_an_exclusion_and_a_return_that_are_interrupted_anywhere_are_completed_by_the_next_run(
    talks: Talks, stopped_after: int
) -> None:
    talks.write("s1.jsonl", claude(*TURNS))
    talks.sync()
    before = talks.ids()
    for patterns, expected in ((("s1*",), set()), ((), before)):
        talks.roots[ROOT] = replace(talks.roots[ROOT], exclude=patterns)
        should_stop = partial(next, iter([False] * stopped_after), True)
        found = talks.indexer.reconcile(ROOT)
        list(talks.indexer.index(found.paths_due, should_stop))
        list(talks.indexer.index(found.paths_due))  # As the daemon does: it walks much later.
        assert talks.ids() == expected
    assert talks.is_right()


def test_what_was_said_while_a_transcript_was_excluded_is_indexed_with_the_rest(
    talks: Talks,
) -> None:
    file = talks.write("s1.jsonl", claude(*TURNS[:2]))
    talks.sync()
    exclude(talks, "s1*")
    file.write_bytes(claude(*TURNS))
    include(talks)
    assert groups(talks) == []
    assert talks.is_right()


def test_an_exchange_that_another_transcript_contains_stays_when_one_is_excluded(
    talks: Talks,
) -> None:
    talks.write("s1.jsonl", claude(*TURNS))
    talks.write("other.jsonl", claude(*TURNS[:2]))
    talks.sync()
    exclude(talks, "s1*")
    assert groups(talks) == [("excluded", 2)]
    assert {row.exchange_id for row in talks.rows()} == {"q0-s1", "q1-s1"}
    include(talks)
    assert groups(talks) == []
    assert talks.is_right()
    exclude(talks, "*.jsonl")
    assert talks.rows() == []
    include(talks)
    assert groups(talks) == []
    assert talks.is_right()


def test_an_excluded_transcript_that_moves_to_an_included_name_has_no_detached_copy(
    talks: Talks,
) -> None:
    file = talks.write("s1.jsonl", claude(*TURNS))
    talks.sync()
    exclude(talks, "s1*")
    file.rename(talks.folder / "moved.jsonl")
    talks.sync()
    assert groups(talks) == []
    assert talks.is_right()


def test_an_excluded_transcript_that_is_deleted_stays_out_of_the_index_and_in_the_archive(
    talks: Talks,
) -> None:
    file = talks.write("s1.jsonl", claude(*TURNS))
    talks.sync()
    exclude(talks, "s1*")
    file.unlink()
    talks.conversations.ingest(RootedPath(ROOT, "s1.jsonl"))
    talks.sync()
    assert talks.rows() == []
    assert groups(talks) == [("excluded", 4)]


@pytest.mark.parametrize("level", [-1, 0, 1])
def test_an_excluded_transcript_waits_for_the_root_that_its_file_is_in(
    talks: Talks, level: int
) -> None:
    talks.archive.attach_root(ROOT, str(talks.folder))
    talks.write("in/s1.jsonl", claude(*TURNS))
    talks.sync()
    exclude(talks, "s1*")
    talks.archive.detach_root(ROOT, 1)
    folder = {-1: talks.folder.parent, 0: talks.folder, 1: talks.folder / "in"}[level]
    path = {-1: f"{talks.folder.name}/in/s1.jsonl", 0: "in/s1.jsonl", 1: "s1.jsonl"}[level]
    talks.archive.attach_root("other", str(folder))
    origin = RootedPath("other", path)
    assert talks.archive.excluded_files.contains(origin)
    with talks.archive.transaction():
        assert len(talks.archive.excluded_files.attach(origin)) == 4
    assert talks.archive.find_transcript_file(origin) is not None
    assert groups(talks) == []


def test_forget_deletes_what_an_excluded_transcript_has_said(talks: Talks) -> None:
    talks.archive.attach_root(ROOT, str(talks.folder))
    file = talks.write("s1.jsonl", claude(*TURNS))
    talks.sync()
    exclude(talks, "s1*")
    talks.archive.erase(str(file))
    assert groups(talks) == []
    assert list(talks.archive.detached_exchanges()) == []


def write_slack(folder: Path) -> None:
    """Write an export of two days."""
    (folder / "general").mkdir(parents=True)
    (folder / "users.json").write_text(json.dumps([{"id": "U1", "name": "ada"}]))
    (folder / "channels.json").write_text(json.dumps([{"id": "C1", "name": "general"}]))
    for day in (15, 16):
        said = {"type": "message", "user": "U1", "ts": f"14528{day}318.0", "text": f"Day {day}."}
        (folder / "general" / f"2016-01-{day}.json").write_text(json.dumps([said]))


def test_a_folder_that_is_one_transcript_is_excluded_as_a_whole(talks: Talks) -> None:
    write_slack(talks.folder / "export")
    talks.sync()
    before = talks.ids()
    assert before
    exclude(talks, "general/2016-01-15.json")
    assert talks.ids() == before
    exclude(talks, "export/")
    assert talks.rows() == []
    include(talks)
    assert talks.ids() == before
    assert groups(talks) == []


def list_unlisted(talks: Talks) -> None:
    """Do what the start of a writer does with files that only the archive knows."""
    update_at_start(talks.archive, talks.catalogue, talks.roots.values(), talks.folders)


@pytest.mark.parametrize("on_delete", ["keep", "delete"])
@pytest.mark.parametrize("is_indexed_between", [False, True])
def test_a_transcript_that_is_excluded_and_gone_is_not_searchable_until_it_is_included(
    talks: Talks, on_delete: str, *, is_indexed_between: bool
) -> None:
    talks.roots[ROOT] = replace(talks.roots[ROOT], on_delete=on_delete)
    file = talks.write("s1.jsonl", claude(*TURNS))
    talks.sync()
    before = talks.ids()
    if is_indexed_between:
        exclude(talks, "s1*")
    file.unlink()
    exclude(talks, "s1*")
    assert talks.rows() == []
    assert groups(talks) == [("excluded", 4)]
    include(talks)
    list_unlisted(talks)
    talks.sync()
    if on_delete == "keep":
        assert talks.ids() == before
        assert groups(talks) == []
    else:
        assert groups(talks) == [("trash", 4)]
    assert talks.verify().differences == ()


def test_a_transcript_that_was_deleted_before_it_was_excluded_is_not_searchable(
    talks: Talks,
) -> None:
    file = talks.write("s1.jsonl", claude(*TURNS))
    talks.write("s2.jsonl", claude(*TURNS[:1], session="s2"))
    talks.sync()
    before = talks.ids()
    file.unlink()
    talks.sync()
    assert talks.ids() == before
    talks.roots[ROOT] = replace(talks.roots[ROOT], exclude=("s1*",))
    talks.close()
    talks.open()
    list_unlisted(talks)
    talks.sync()
    assert {row.exchange_id for row in talks.rows()} == {"q0-s2"}
    assert groups(talks) == [("excluded", 4)]
    include(talks)
    list_unlisted(talks)
    talks.sync()
    assert talks.ids() == before
    assert groups(talks) == []


def test_an_excluded_transcript_that_moved_to_another_excluded_name_is_not_searchable(
    talks: Talks,
) -> None:
    file = talks.write("s1.jsonl", claude(*TURNS))
    talks.sync()
    file.rename(talks.folder / "s2.jsonl")
    exclude(talks, "*.jsonl")
    assert talks.rows() == []
    include(talks)
    list_unlisted(talks)
    talks.sync()
    assert groups(talks) == []
    assert talks.is_right()


def test_an_empty_index_gets_no_rows_of_an_excluded_transcript_that_only_the_archive_knows(
    talks: Talks,
) -> None:
    talks.write("s1.jsonl", claude(*TURNS))
    write_slack(talks.folder / "slack")
    talks.sync()
    assert {row.source for row in talks.rows()} == {"claude-code", "slack"}
    talks.close()
    for file in talks.base.glob("state.sqlite*"):
        file.unlink()
    shutil.rmtree(talks.base / "lance")
    talks.roots[ROOT] = replace(talks.roots[ROOT], exclude=("s1*", "slack/"))
    talks.open()
    list_unlisted(talks)
    upserted = sum(outcome.upserted for outcome in talks.sync())
    assert talks.rows() == []
    assert upserted == 0
    assert sum(count for _, count in groups(talks)) == 5
