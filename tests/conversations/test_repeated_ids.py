"""Sessions that repeat the ids of another one: a copy is found once, other text is not lost."""

from __future__ import annotations

import itertools
from pathlib import Path

from conversations.conftest import ROOT, Talks, claude
from conversations.test_any_order import START, State, dump_after, line_of, visible

from anchord.sources.conversations.archive.repeated_ids import path_of_id


def session(name: str, *turns: tuple[str, str]) -> bytes:
    """Return a session whose messages have the same ids and times whatever its name is."""
    return claude(*turns).replace(b'"sessionId": "s1"', f'"sessionId": "{name}"'.encode())


FIRST = session("first", ("Which colour?", "Blue."), ("Which size?", "Small."))
OTHER = session("other", ("Which town?", "Oslo."), ("Which size?", "Small."))
RESUMED = session("resumed", ("Which town?", "Oslo."), ("Which size?", "Small."))


def test_a_session_that_repeats_ids_with_other_text_is_indexed_and_verified(talks: Talks) -> None:
    talks.write("first.jsonl", FIRST)
    talks.write("other.jsonl", OTHER)
    talks.sync()
    assert {"Blue.", "Oslo."} <= set(talks.said().replace("\n\n", "\n").split("\n"))
    assert {each.name for each in talks.archive.session_records.all()} == {"first", "other"}
    assert talks.said().count("Which size?") == 1
    assert talks.is_right()
    paths = sorted(each.path for each in talks.archive.list_exchanges(ROOT))
    assert [path_of_id(path) for path in paths] == [
        "/claude-code/q0-s1",  # With the digest of its question.
        "/claude-code/q0-s1",
        "/claude-code/q1-s1",
    ]
    talks.write("other.jsonl", OTHER + line_of("other", "q2-s1", "a1-s1", 9, "And now?"))
    talks.sync()
    assert "And now?" in talks.said()
    assert talks.is_right()


def test_sessions_that_repeat_ids_end_in_one_archive_in_any_order(tmp_path: Path) -> None:
    back = line_of("other", "q2-s1", None, 30, "Another town?")
    states = [
        State("first.jsonl", FIRST, START),
        State("other.jsonl", OTHER + back, START + 1),
        State("resumed.jsonl", RESUMED, START + 2),
    ]
    found = set()
    for number, order in enumerate(itertools.permutations(states)):
        found.add(tuple(visible(dump_after(tmp_path / str(number), order))))
    assert len(found) == 1
    (dumped,) = found
    assert sum("Which colour?" in line for line in dumped) == 1
    assert sum("Which town?" in line for line in dumped) == 1


def test_a_session_that_was_edited_with_its_ids_is_not_a_copy(talks: Talks) -> None:
    talks.write("first.jsonl", FIRST)
    talks.sync()
    for _ in range(2):  # Also when it is read again, and when the text of the same file changes.
        talks.write("b/first.jsonl", FIRST.replace(b"Which colour?", b"Which shade?"))
        talks.sync()
        assert talks.said().count("Blue.") == 2
        assert talks.is_right()
    talks.write("b/first.jsonl", FIRST.replace(b"Which colour?", b"Which tint?"))
    talks.sync()
    assert "Which tint?" in talks.said()
