"""What an appended, cut, rewritten, renamed or compressed session costs, and that it is always what a whole reading gives."""

from __future__ import annotations

import os
import random
from collections.abc import Iterator
from pathlib import Path

import pytest
import zstandard
from conversations.conftest import Talks, answer, claude

from anchord.adapters.carriers import FileCarrier
from anchord.conversation import Line

SAMPLES = Path(__file__).resolve().parents[2].parent / "shared" / "samples"
GROWN = [SAMPLES / "claude_code" / "grow_1284c080" / f"t{n}.jsonl" for n in (1, 2, 3)]
TURNS = [(f"How is question {n} asked?", answer(f"subject{n}", 1 + n % 3)) for n in range(12)]


def ids_by_exchange(talks: Talks) -> dict[str, set[str]]:
    found: dict[str, set[str]] = {}
    for row in talks.rows():
        found.setdefault(row.exchange_id, set()).add(row.id)
    return found


def test_an_appended_exchange_costs_its_own_chunks(talks: Talks) -> None:
    file = talks.write("s1.jsonl", claude(*TURNS[:4]))
    talks.sync()
    before = talks.ids()
    with file.open("ab") as appending:
        appending.write(claude(TURNS[4], start=4))
    embedded, written, deleted = talks.cost()
    assert (embedded, deleted) == (written, 0)
    assert embedded == len(talks.ids() - before)
    assert before < talks.ids()
    assert talks.is_right()


def test_a_file_that_is_not_named_after_its_session_grows_as_well(talks: Talks) -> None:
    file = talks.write("some-name.jsonl", claude(*TURNS[:2]))
    talks.sync()
    for n in range(2, 7):
        before = talks.ids()
        with file.open("ab") as appending:
            appending.write(claude(TURNS[n], start=n))
        talks.sync()
        talks.sync()  # It was written a moment ago, and is read on once more.
        assert before < talks.ids()
    assert [row.exchange_id for row in talks.rows() if row.part_index == 0] == [f"q{n}-s1" for n in range(7)]
    assert talks.is_right()


def test_an_answer_that_grows_leaves_the_exchanges_before_it_alone(talks: Talks) -> None:
    file = talks.write("s1.jsonl", claude(*TURNS[:3], ("And the last one?", "")))
    talks.sync()
    before = talks.ids()
    with file.open("ab") as appending:
        appending.write(claude(("", ""), ("And the last one?", "It is this."), start=2).splitlines(keepends=True)[-1])
    assert talks.cost() == (1, 1, 1)
    assert len(before - talks.ids()) == 1
    assert talks.is_right()


def test_only_the_end_of_a_long_session_is_read_again(talks: Talks, monkeypatch: pytest.MonkeyPatch) -> None:
    read: list[int] = []
    file = talks.write("s1.jsonl", claude(*TURNS))
    talks.sync()
    real = FileCarrier.lines

    def counted(carrier: FileCarrier, start: int = 0) -> Iterator[Line]:
        for line in real(carrier, start):
            read.append(len(line.data) + 1)
            yield line

    monkeypatch.setattr(FileCarrier, "lines", counted)
    with file.open("ab") as appending:
        appending.write(claude(TURNS[4], start=12))
    talks.sync()
    last_two = len(claude(TURNS[11], start=11)) + len(claude(TURNS[4], start=12))
    assert sum(read) == last_two
    assert talks.is_right()


def test_a_torn_last_line_waits_for_its_end(talks: Talks) -> None:
    whole = claude(*TURNS[:3])
    talks.write("s1.jsonl", whole[:-40])
    talks.sync()
    assert not talks.problems()
    assert answer("subject2", 3)[:50] not in talks.said()
    talks.write("s1.jsonl", whole)
    talks.sync()
    assert answer("subject2", 3)[:50] in talks.said()
    assert talks.is_right()


def test_a_file_that_was_cut_tells_what_it_still_holds(talks: Talks) -> None:
    whole = claude(*TURNS[:6])
    file = talks.write("s1.jsonl", whole)
    talks.sync()
    file.write_bytes(claude(*TURNS[:2]))
    talks.sync()
    assert "question 1" in talks.said()
    assert "question 2" not in talks.said()
    assert talks.is_right()


def test_a_file_that_was_rewritten_before_its_end_is_read_whole(talks: Talks) -> None:
    file = talks.write("s1.jsonl", claude(*TURNS[:4]))
    talks.sync()
    changed = [("How is question 0 answered now?", "Otherwise."), *TURNS[1:4], TURNS[5]]
    file.write_bytes(claude(*changed))
    talks.sync()
    assert "answered now" in talks.said()
    assert "How is question 0 asked" not in talks.said()
    assert talks.is_right()


def test_a_renamed_and_then_compressed_session_changes_nothing(talks: Talks) -> None:
    file = talks.write("a/s1.jsonl", claude(*TURNS[:4]))
    talks.sync()
    before = {(row.id, row.path) for row in talks.rows()}
    (talks.folder / "b").mkdir()
    moved = file.rename(talks.folder / "b" / "other-name.jsonl")
    assert talks.cost() == (0, 0, 0)
    (talks.folder / "b" / "other-name.jsonl.zst").write_bytes(zstandard.compress(moved.read_bytes()))
    moved.unlink()
    assert talks.cost() == (0, 0, 0)
    assert {(row.id, row.path) for row in talks.rows()} == before
    assert talks.archive.counts()["talks"]["source_missing"] == 0
    assert talks.is_right()


def test_a_compressed_session_that_is_replaced_is_read_whole(talks: Talks) -> None:
    talks.write("s1.jsonl.zst", zstandard.compress(claude(*TURNS[:3])))
    talks.sync()
    changed = [("Another beginning?", answer("other", 4)), *TURNS[1:6]]
    talks.write("s1.jsonl.zst", zstandard.compress(claude(*changed)))
    talks.sync()
    assert "Another beginning?" in talks.said()
    assert "How is question 0 asked?" not in talks.said()
    assert talks.is_right()


def test_a_touched_file_costs_nothing(talks: Talks) -> None:
    file = talks.write("s1.jsonl", claude(*TURNS[:4]))
    talks.sync()
    os.utime(file)
    assert talks.cost() == (0, 0, 0)


def test_forty_sessions_cut_anywhere_differ_from_the_whole_in_their_last_exchange_at_most(talks: Talks) -> None:
    whole = claude(*TURNS)
    talks.write("s1.jsonl", whole)
    talks.sync()
    by_exchange = ids_by_exchange(talks)
    dice = random.Random("cuts")  # noqa: S311 - a test's dice
    for _ in range(40):
        (talks.folder / "s1.jsonl").write_bytes(whole[: dice.randrange(len(whole))])
        talks.sync()
        left = ids_by_exchange(talks)
        differing = [name for name, ids in left.items() if ids != by_exchange[name]]
        assert len(differing) <= 1
        assert differing == [] or differing == [max(left, key=lambda name: int(name[1:].partition("-")[0]))]
        assert talks.is_right()


@pytest.mark.skipif(not GROWN[0].exists(), reason="the samples are beside the repository only where it is developed")
def test_a_real_session_in_three_states_keeps_every_chunk_before_its_last_exchange(talks: Talks) -> None:
    file = talks.write("1284c080.jsonl", b"")
    for snapshot in GROWN:
        before = talks.rows()
        last = before[-1].exchange_id if before else ""
        kept = {row.id: row.vector_key for row in before if row.exchange_id != last}
        with file.open("ab") as appending:
            appending.write(snapshot.read_bytes()[file.stat().st_size :])
        embedded = talks.cost()[0]
        after = {row.id: row.vector_key for row in talks.rows()}
        assert kept.items() <= after.items()
        assert embedded <= len(after.keys() - kept.keys())
        assert talks.is_right()
    assert len({row.exchange_id for row in talks.rows()}) == 30


@pytest.mark.skipif(not GROWN[0].exists(), reason="the samples are beside the repository only where it is developed")
def test_a_real_session_cut_anywhere_differs_from_the_whole_in_its_last_exchange_at_most(talks: Talks) -> None:
    whole = GROWN[-1].read_bytes()
    talks.write("s1.jsonl", whole)
    talks.sync()
    ids = ids_by_exchange(talks)
    dice = random.Random("real cuts")  # noqa: S311 - a test's dice
    for _ in range(40):
        (talks.folder / "s1.jsonl").write_bytes(whole[: dice.randrange(len(whole))])
        talks.sync()
        left = ids_by_exchange(talks)
        differing = [name for name, of in left.items() if of != ids[name]]
        assert differing == [] or differing == [talks.rows()[-1].exchange_id]
    assert talks.is_right()


def test_a_last_line_without_an_end_counts_once_it_is_whole(talks: Talks) -> None:
    whole = claude(*TURNS[:2])
    file = talks.write("s1.jsonl", whole[:-1])
    talks.sync()
    assert answer("subject1", 2)[-30:] in talks.said()
    file.write_bytes(whole)
    assert talks.cost() == (0, 0, 0)
    with file.open("ab") as appending:
        appending.write(claude(TURNS[2], start=2))
    talks.sync()
    assert len({row.exchange_id for row in talks.rows()}) == 3
    assert talks.is_right()
