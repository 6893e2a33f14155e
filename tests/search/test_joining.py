"""Hits of conversations are shown with the exchanges around them: about 1,000 characters, no text twice."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from anchord.core.types import ChunkLocation, Hit, RootedPath, Row
from anchord.search.headings import best_title, conversation_heading, project_name
from anchord.search.joining import SessionChunk, conversation_text, join_neighbors
from anchord.search.passages import Passage, Piece, make_passage

SESSION_LENGTH = 9
ANSWER = "a" * 280


def exchange(number: int) -> RootedPath:
    return RootedPath("talks", f"/codex/s/{number}")


def question_of(origin: RootedPath) -> str:
    return f"Question {origin.path[-1]}?"


def row(name: str, text: str, kind: str = "exchange", source: str = "codex") -> Row:
    names = ("doc_id", "content_hash", "vector_key", "search_text", "header_path")
    fields: dict[str, Any] = dict.fromkeys(names, "")
    return Row(id=name, root="talks", path="", text=text, kind=kind, source=source, **fields)


def whole(number: int, **fields: str) -> SessionChunk:
    """An exchange of one chunk."""
    text = f"{question_of(exchange(number))}\n\n{number}{ANSWER}"
    return SessionChunk(row(f"c{number}", text, **fields), ChunkLocation(exchange(number), 1, 3, 0))


SESSION = [whole(number) for number in range(SESSION_LENGTH)]


def found(chunk: SessionChunk, score: float) -> Passage:
    ranks: dict[str, Any] = dict.fromkeys(("cosine", "bm25", "cosine_rank", "bm25_rank"))
    hit = Hit(id=chunk.row.id, score=score, location=chunk.location, **ranks)
    return make_passage([Piece(chunk.row, chunk.location, hit)])


def joined(
    numbers: Sequence[int], session: Sequence[SessionChunk] = SESSION, **options: int
) -> list[tuple[Passage, ...]]:
    """Join hits of a session, the best first."""
    groups = [(found(session[number], 1 - place / 10),) for place, number in enumerate(numbers)]
    around = {group[0].hit.id: session for group in groups}
    return list(join_neighbors(groups, around, question_of, **options))


def ids_of(groups: Iterable[Sequence[Passage]]) -> list[list[str]]:
    return [list(passage.chunk_ids) for group in groups for passage in group]


def test_an_exchange_is_shown_with_those_before_and_after_it() -> None:
    ((passage,),) = joined([4])
    assert passage.chunk_ids == ("c3", "c4", "c5")
    assert passage.hit.id == "c4"
    assert (passage.start_line, passage.end_line) == (1, 3)
    assert 800 <= len(passage.text) <= 1_000
    assert passage.text.startswith(
        f"user: Question 3?\n\nassistant: 3{ANSWER}\n\nuser: Question 4?"
    )


def test_hits_next_to_each_other_are_one_result_and_no_text_comes_twice() -> None:
    assert ids_of(joined([4, 5, 3, 8])) == [["c3", "c4", "c5"], ["c6", "c7", "c8"]]
    assert ids_of(joined([4, 6])) == [["c3", "c4", "c5"], ["c6", "c7", "c8"]]


@given(st.lists(st.integers(0, SESSION_LENGTH - 1), unique=True, max_size=6), st.integers(0, 3000))
def test_each_hit_is_shown_once(numbers: list[int], max_chars: int) -> None:
    shown = [chunk_id for ids in ids_of(joined(numbers, max_chars=max_chars)) for chunk_id in ids]
    assert len(shown) == len(set(shown))
    assert {f"c{number}" for number in numbers} <= set(shown)


def test_a_long_answer_grows_within_its_exchange_first() -> None:
    first = SessionChunk(row("q", f"Question 1?\n\n{ANSWER}"), ChunkLocation(exchange(1), 1, 3, 0))
    second = SessionChunk(row("a", ANSWER), ChunkLocation(exchange(1), 5, 5, 1))
    third = SessionChunk(row("z", ANSWER), ChunkLocation(exchange(1), 6, 6, 2))
    session = [whole(0), first, second, third, whole(2)]
    ((passage,),) = joined([1], session)
    assert passage.chunk_ids == ("q", "a", "z")
    assert passage.text == f"user: Question 1?\n\nassistant: {ANSWER}\n\n{ANSWER}\n{ANSWER}"
    assert (passage.start_line, passage.end_line) == (1, 6)


def test_what_is_longer_than_the_limit_or_has_nothing_around_it_stays() -> None:
    assert ids_of(joined([4], max_chars=10)) == [["c4"]]
    alone = found(SESSION[1], 1.0)
    assert list(join_neighbors([(alone,)], {}, question_of)) == [(alone,)]
    gone = {alone.hit.id: SESSION[5:]}
    assert list(join_neighbors([(alone,)], gone, question_of)) == [(alone,)]


def test_a_summary_is_not_joined_with_exchanges() -> None:
    session = [whole(0), whole(1, kind="summary"), whole(2)]
    assert ids_of(joined([0], session)) == [["c0"]]
    ((summary,),) = joined([1], session)
    assert summary.text == session[1].row.text


def test_texts_that_name_their_speakers_get_no_others() -> None:
    assert conversation_text([whole(1, source="slack")], question_of) == SESSION[1].row.text
    assert conversation_text([whole(1)], lambda _: "").startswith("assistant: Question 1?")


@pytest.mark.parametrize(
    ("project", "name"),
    [
        ("/home/me/app", "app"),
        ("-home-me-app", "app"),
        ("-Users-me-my-app", "my-app"),
        ("/home/me/.claude/projects/-home-me-app", "app"),
        ("C:\\code\\app\\", "app"),
        ("/work/cli/.worktrees/1", "cli/1"),
        ("My project", "My project"),
        ("-", "-"),
        ("/", ""),
        ("", ""),
    ],
)
def test_a_project_has_the_name_of_its_folder(project: str, name: str) -> None:
    assert project_name(project) == name


def test_a_heading_says_title_project_and_day() -> None:
    at = "2026-03-03T12:00:00+00:00"
    heading = conversation_heading("Fix\nthe  parser", "-home-me-app", at)
    assert heading == "Fix the parser, project app, 3 March 2026"
    assert conversation_heading("", "", "") == ""
    assert conversation_heading("t", "", "no date") == "t"
    long = conversation_heading("word " * 100, "", "")
    assert len(long) <= 81
    assert long.endswith("word…")


def test_a_session_without_a_title_is_called_by_its_first_question() -> None:
    assert best_title("Title", ["a b"]) == "Title"
    assert best_title("", ["", "/mode x", "fix it", "and that"]) == "fix it"
    assert best_title("", ["/mode"]) == "/mode"
    assert best_title("", []) == ""


def test_equal_texts_of_two_documents_are_two_results() -> None:
    document = {"kind": "markdown", "source": ""}
    places = [RootedPath("docs", name) for name in ("x.md", "y.md")]
    groups = [
        (
            found(
                SessionChunk(
                    row(place.path, "npm install", **document), ChunkLocation(place, 1, 1, 0)
                ),
                0.5,
            ),
        )
        for place in places
    ]
    assert ids_of(join_neighbors(groups, {}, question_of)) == [["x.md"], ["y.md"]]
