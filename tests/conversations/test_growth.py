"""What a changed session costs; the index always equals that of a full read."""

from __future__ import annotations

import json
import os
import random
from collections.abc import Iterator
from pathlib import Path

import pytest
import zstandard
from conversations.conftest import Talks, answer, claude

from anchord.sources.conversations.containers import SingleTranscriptFile
from anchord.sources.conversations.events import Line

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
        talks.sync()  # It was written a moment ago, so it is read again from the last resume point.
        assert before < talks.ids()
    assert [row.exchange_id for row in talks.rows() if row.part_index == 0] == [
        f"q{n}-s1" for n in range(7)
    ]
    assert talks.is_right()


def test_an_answer_that_grows_leaves_the_exchanges_before_it_alone(talks: Talks) -> None:
    file = talks.write("s1.jsonl", claude(*TURNS[:3], ("And the last one?", "")))
    talks.sync()
    before = talks.ids()
    with file.open("ab") as appending:
        appending.write(
            claude(("", ""), ("And the last one?", "It is this."), start=2).splitlines(
                keepends=True
            )[-1]
        )
    assert talks.cost() == (1, 1, 1)
    assert len(before - talks.ids()) == 1
    assert talks.is_right()


def test_only_the_end_of_a_long_session_is_read_again(
    talks: Talks, monkeypatch: pytest.MonkeyPatch
) -> None:
    read: list[int] = []
    file = talks.write("s1.jsonl", claude(*TURNS))
    talks.sync()
    real = SingleTranscriptFile.lines

    def counted(carrier: SingleTranscriptFile, start: int = 0) -> Iterator[Line]:
        for line in real(carrier, start):
            read.append(len(line.data) + 1)
            yield line

    monkeypatch.setattr(SingleTranscriptFile, "lines", counted)
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


def test_an_answer_in_the_place_of_the_last_question_is_read_with_its_own_question(
    talks: Talks,
) -> None:
    question, *_ = claude(TURNS[0]).splitlines(keepends=True)
    talks.write("s1.jsonl", question + claude(TURNS[1], start=1))
    talks.sync()
    talks.write("s1.jsonl", claude(TURNS[0], TURNS[5], TURNS[7]))
    talks.sync()
    assert talks.verify().differences == ()
    assert TURNS[0][1] in talks.said()
    assert "preamble" not in {row.exchange_id for row in talks.rows()}
    assert talks.is_right()


def test_what_a_file_lost_when_it_was_cut_is_kept_and_still_found(talks: Talks) -> None:
    whole = claude(*TURNS[:6])
    file = talks.write("s1.jsonl", whole)
    talks.sync()
    before = talks.ids()
    file.write_bytes(claude(*TURNS[:2]))
    assert talks.cost() == (0, 0, 0)
    assert talks.ids() == before
    assert talks.verify().differences == ()
    assert talks.archive.counts_by_root()["talks"]["source_missing"] == 4
    file.write_bytes(whole)
    assert talks.cost() == (0, 0, 0)
    assert talks.archive.counts_by_root()["talks"]["source_missing"] == 0
    assert talks.is_right()


@pytest.mark.parametrize("data", [b"", b"\0" * 5_000, b"\0"], ids=["empty", "NUL", "one NUL"])
def test_of_a_file_that_a_power_loss_emptied_everything_is_kept(talks: Talks, data: bytes) -> None:
    file = talks.write("s1.jsonl", claude(*TURNS[:6]))
    talks.sync()
    before = talks.ids()
    file.write_bytes(data)
    assert talks.cost() == (0, 0, 0)
    assert talks.ids() == before
    assert talks.verify().differences == ()


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
    (talks.folder / "b" / "other-name.jsonl.zst").write_bytes(
        zstandard.compress(moved.read_bytes())
    )
    moved.unlink()
    assert talks.cost() == (0, 0, 0)
    assert {(row.id, row.path) for row in talks.rows()} == before
    assert talks.archive.counts_by_root()["talks"]["source_missing"] == 0
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


def test_of_a_session_that_is_cut_anywhere_nothing_is_lost(talks: Talks) -> None:
    whole = claude(*TURNS)
    talks.write("s1.jsonl", whole)
    talks.sync()
    by_exchange = ids_by_exchange(talks)
    dice = random.Random("cuts")  # noqa: S311 - a test's dice
    for _ in range(40):
        (talks.folder / "s1.jsonl").write_bytes(whole[: dice.randrange(len(whole))])
        talks.sync()
        assert ids_by_exchange(talks) == by_exchange
    assert talks.verify().differences == ()


def test_a_session_that_is_first_read_cut_differs_from_the_whole_in_its_last_exchange_at_most(
    tmp_path: Path,
) -> None:
    whole = claude(*TURNS)
    dice = random.Random("first cuts")  # noqa: S311 - a test's dice
    for number in range(10):
        (tmp_path / str(number)).mkdir()
        talks = Talks(tmp_path / str(number))
        talks.write("s1.jsonl", whole[: dice.randrange(len(whole))])
        talks.sync()
        cut = ids_by_exchange(talks)
        (talks.folder / "s1.jsonl").write_bytes(whole)
        talks.sync()
        by_exchange = ids_by_exchange(talks)
        differing = [name for name, ids in cut.items() if ids != by_exchange[name]]
        assert differing == [] or differing == [
            max(cut, key=lambda name: int(name[1:].partition("-")[0]))
        ]
        assert talks.is_right()
        talks.close()


@pytest.mark.skipif(
    not GROWN[0].exists(), reason="the samples are beside the repository only where it is developed"
)
def test_a_real_session_in_three_states_keeps_every_chunk_before_its_last_exchange(
    talks: Talks,
) -> None:
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


@pytest.mark.skipif(
    not GROWN[0].exists(), reason="the samples are beside the repository only where it is developed"
)
def test_of_a_real_session_that_is_cut_anywhere_nothing_is_lost(talks: Talks) -> None:
    whole = GROWN[-1].read_bytes()
    talks.write("s1.jsonl", whole)
    talks.sync()
    ids = ids_by_exchange(talks)
    dice = random.Random("real cuts")  # noqa: S311 - a test's dice
    for _ in range(40):
        (talks.folder / "s1.jsonl").write_bytes(whole[: dice.randrange(len(whole))])
        talks.sync()
        assert ids_by_exchange(talks) == ids
    assert talks.verify().differences == ()


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


def test_a_question_whose_place_another_one_takes_is_kept_in_the_archive(talks: Talks) -> None:
    talks.write(
        "chat.md",
        b"> How do gulls sleep?\n\nOn chimneys.\n\n> Why?\n\nWarmth.\n\n> When?\n\nAt night.\n",
    )
    talks.sync()
    talks.write(
        "chat.md",
        b"> How do gulls sleep?\n\nOn chimneys.\n\n> When?\n\nAt night.\n\n> Where?\n\nThere.\n",
    )
    talks.sync()
    kept = [json.loads(each.content)["question"] for each in talks.archive.detached_exchanges()]
    assert kept == ["Why?"]


def test_an_answer_that_was_torn_before_the_session_went_on_is_kept(talks: Talks) -> None:
    whole = claude(*TURNS[:2])
    talks.write("s1.jsonl", whole)
    talks.sync()
    before = talks.ids()
    talks.write("s1.jsonl", whole[: len(whole) - 300] + b"\n" + claude(TURNS[2], start=2) * 3)
    talks.sync()
    assert before < talks.ids()


@pytest.mark.parametrize("sessions", [("s1", "s2", "s2"), ("s1", "s2", "s1", "s1")])
def test_a_file_that_goes_on_under_another_session_keeps_its_exchanges(
    talks: Talks, sessions: tuple[str, ...]
) -> None:
    file = talks.write("s1.jsonl", claude(*TURNS[:2]))
    talks.sync()
    file = file.rename(talks.folder / "s2.jsonl")
    talks.sync()
    parent = "a1-s1"
    for n, session in enumerate(sessions, 2):
        appended = claude(TURNS[n], session=session, start=n)
        with file.open("ab") as appending:
            appending.write(appended.replace(f"a{n - 1}-{session}".encode(), parent.encode()))
        parent = f"a{n}-{session}"
        talks.sync()
    asked = {f"q{n}-{session}" for n, session in enumerate(["s1", "s1", *sessions])}
    assert {row.exchange_id for row in talks.rows()} == asked
    assert list(talks.archive.detached_exchanges()) == []
    assert talks.is_right()


@pytest.mark.parametrize("first", [1, 2])
def test_a_session_that_lost_its_end_before_it_went_on_keeps_it_in_the_index(
    talks: Talks, first: int
) -> None:
    whole = claude(*TURNS[:first])
    talks.write("s1.jsonl", whole)
    talks.sync()
    before = talks.ids()
    kept = whole[: len(claude(*TURNS[: first - 1])) + 10]
    later = claude(TURNS[4], start=4).replace(b"a3-s1", f"a{first - 2}-s1".encode())
    talks.write("s1.jsonl", kept + b"\n" + later * 3)
    talks.sync()
    assert before < talks.ids()
    assert list(talks.archive.detached_exchanges()) == []


def test_two_quoted_questions_are_a_document_three_a_transcript_and_it_stays_one(
    talks: Talks,
) -> None:
    turns = [f"> What of number {n}?\n\nIt is number {n}.\n\n" for n in range(3)]

    def kinds(text: str) -> set[str]:
        talks.write("notes.md", text.encode())
        talks.sync()
        assert talks.verify().differences == ()
        return {row.kind for row in talks.rows()}

    assert kinds("".join(turns[:2])) == {"markdown"}
    assert kinds("---\ntype: transcript\n---\n" + turns[0]) == {"exchange"}
    assert kinds("".join(turns)) == {"exchange"}
    assert kinds("".join(turns[:2])) == {"exchange"}
    assert len(talks.rows()) == 3


def test_a_transcript_file_may_take_fifteen_minutes_to_read(talks: Talks) -> None:
    """The watchdog regards the writer as stuck only after these 900 s."""
    talks.write("a/1.jsonl", claude(TURNS[0]))
    talks.sync()
    assert 900 in talks.beats
