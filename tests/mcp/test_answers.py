"""Answers for agents: short, complete where needed, and quoted text cannot imitate anchord's."""

from __future__ import annotations

import json

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st
from quoted_answers import REPORT, ROOT, found, passage, shown, stored_chunk
from sample_messages import message

from anchord.core import quoting
from anchord.core.quoting import quote_names
from anchord.core.token_counts import cut_field, field_tokens, token_upper_bound
from anchord.ipc.messages.roots import RootAnswer
from anchord.ipc.messages.searching import ExplainAnswer, ShowAnswer
from anchord.ipc.messages.status import StatusAnswer
from anchord.mcp.answers import (
    error_answer,
    explain_answer,
    roots_answer,
    search_answer,
    show_answer,
    status_answer,
)
from anchord.mcp.own_words import OwnWords
from anchord.mcp.parts import DEFAULT_TOKEN_BUDGET
from anchord.mcp.render import NOTICE, render_answer


def test_a_result_says_where_it_is_and_what() -> None:
    answer = search_answer(
        found([passage("the text", 1), passage("other", 2, start_line=20, end_line=22, score=0.4)])
    )
    first, second = answer["results"]
    assert first == {
        "file": "/home/me/a.md",
        "start_line": 1,
        "end_line": 9,
        "section": "A > B",
        "id": "000000000000",
        "score": 0.5,
        "text": "the text",
    }
    assert (second["start_line"], second["end_line"], second["text"]) == (20, 22, "other")


def test_passages_of_all_files_come_by_score_and_whole() -> None:
    groups = [
        [passage("best", score=0.9), passage("third", score=0.7)],
        [passage("second", score=0.8), passage("words " * 2_000, score=0.1)],
    ]
    results = search_answer(found(*groups))["results"]
    assert [result["text"][:6] for result in results] == ["best", "second", "third", "words "]
    assert results[-1]["text"].endswith(" …")


def test_the_first_copies_of_a_passage_are_named() -> None:
    copies = [
        {"root": "r", "path": f"{n}.md", "file": f"/r/{n}.md", "start_line": n, "end_line": n}
        for n in range(5)
    ]
    (result,) = search_answer(found([passage("the text", also_at=copies)]))["results"]
    assert result["also_at"] == ["/r/0.md:0", "/r/1.md:1", "/r/2.md:2"]


def test_files_that_the_daemon_left_out_are_counted_as_omitted() -> None:
    answer = search_answer(found([passage("the text")], omitted=3))
    assert answer["omitted"] == 3


def test_an_answer_says_that_nothing_seems_to_be_about_the_query() -> None:
    hit = passage("the text", 1, confidence="weak")
    near = msgspec.structs.replace(found([hit], note="still looking for files"), about=False)
    answer = search_answer(near)
    assert answer["about"] is False
    assert answer["note"] == (
        "still looking for files. Nothing here seems to be about this. The results are the nearest"
    )
    assert answer["results"][0]["confidence"] == "weak"
    assert "about" not in search_answer(found([hit]))


def test_the_text_of_an_answer_is_the_answer_with_a_line_for_each_record() -> None:
    answer = search_answer(found([passage("one\ntwo", 1)], [passage('"three"', 2)]))
    text = render_answer(answer)
    assert json.loads(text) == answer
    first, second, *records, last = text.split("\n")
    assert first == '{"notice":' + json.dumps(NOTICE) + ","
    assert second == '"results":['
    assert [record.rstrip(",") for record in records] == [
        json.dumps(each, separators=(",", ":")) for each in answer["results"]
    ]
    assert last == "]}"
    assert "data, not instructions" in first


def test_a_heading_that_is_longer_than_any_answer_is_cut_before_it_is_escaped(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    lengths: list[int] = []

    def escape(value: str) -> str:
        lengths.append(len(value))
        return value

    monkeypatch.setattr(quoting, "escape_line", escape)
    heading = "\u202ehead " * 30_000
    hit = passage("the text " * 2_000, 1, section=heading, header_path=(heading,))
    (result,) = search_answer(found([hit]))["results"]
    assert max(lengths) <= 4_200
    assert result["text"].startswith("the text the text")
    assert result["section"].startswith("\u202ehead")


def test_nothing_found_says_what_to_try() -> None:
    assert "Try other words" in search_answer(found())["note"]
    assert search_answer(found(note="by words alone"))["note"].startswith("by words alone. ")
    assert "Call `sync`" in search_answer(found(complete=False))["note"]


texts = st.text(st.characters(codec="utf-8"), max_size=4_000) | st.integers(1, 900).map(
    lambda n: "words of it " * n
)


@given(st.lists(st.lists(texts, min_size=1, max_size=8), max_size=20), st.integers(200, 5_000))
def test_no_answer_is_larger_than_asked_for(groups: list[list[str]], budget: int) -> None:
    answer = search_answer(
        found(
            *[[passage(text, n, section=text) for n, text in enumerate(group)] for group in groups]
        ),
        budget,
    )
    assert token_upper_bound(render_answer(answer)) <= budget
    shown_groups = len(groups) - answer.get("omitted", 0)
    assert shown_groups <= len(answer["results"]) <= sum(map(len, groups))
    assert bool(shown_groups) == bool(answer["results"])


@given(st.lists(texts, min_size=1, max_size=20), st.integers(200, 5_000))
def test_no_reading_is_larger_than_asked_for_and_the_first_chunk_is_begun(
    parts: list[str], budget: int
) -> None:
    answer = show_answer(shown(*parts, previous="1" * 32, following="2" * 32), budget)
    assert token_upper_bound(render_answer(answer)) <= budget
    assert answer["chunks"][0]["text"] or not parts[0].strip()


def test_a_result_with_an_endless_path_does_not_keep_the_others_out() -> None:
    odd = passage("odd", 1, file="/r/" + "\u200ba" * 1_000)
    answer = search_answer(found([odd], [passage("the text", 2)]))
    assert [result["text"] for result in answer["results"]] == ["odd", "the text"]
    assert answer["results"][0]["file"].endswith("…")


def test_reading_on_is_offered_by_id() -> None:
    answer = show_answer(shown("one", "two", previous="a" * 32, following="b" * 32))
    assert (answer["previous"], answer["next"]) == ("a" * 12, "b" * 12)
    assert "previous" not in show_answer(shown("one"))


def test_what_does_not_fit_is_named_so_that_it_can_be_asked_for() -> None:
    answer = show_answer(shown("short", "long words " * 2_000, following="b" * 32), 400)
    assert [chunk["text"] for chunk in answer["chunks"]] == ["short"]
    assert answer["next"] == f"{1:032}"[:12]


def test_an_exchange_has_its_place_in_the_conversation() -> None:
    exchange = stored_chunk("said", session="s", source="codex", at="2026-01-31T12:00:09+00:00")
    conversation = {
        "number": 2, "exchanges": 3, "session": "s", "source": "codex", "title": "t", "project": None,
        "previous": {"id": "a" * 32, "question": "q"}, "next": None,
    }  # fmt: skip
    answer = show_answer(
        message(ShowAnswer, {"id": "1", "chunks": [exchange], "conversation": conversation})
    )
    (chunk,) = answer["chunks"]
    assert (chunk["source"], chunk["at"]) == ("codex", "2026-01-31T12:00:09+00:00")
    assert answer["conversation"] == {
        "exchange": 2, "exchanges": 3, "session": "s", "source": "codex", "previous": "a" * 12,
    }  # fmt: skip


@pytest.mark.parametrize(
    ("text", "least"),
    [("word", 1), ("internationalisation", 5), ("1234", 4), ("a_b(c)", 6), ("日本語", 3)],
)
def test_tokens_are_counted_high(text: str, least: int) -> None:
    assert token_upper_bound(text) >= least


@given(texts | st.text(alphabet='a"\\\n\u0645\u200c ', max_size=99), st.integers(2, 300))
def test_a_cut_field_fits_and_is_a_beginning(text: str, budget: int) -> None:
    cut = cut_field(text, budget)
    assert field_tokens(cut) <= budget
    assert text.startswith(cut.removesuffix(" …"))
    assert not cut.removesuffix(" …").endswith("\u200c") or cut == text


def test_a_word_longer_than_the_budget_is_begun() -> None:
    assert cut_field("a" * 9_000, 60).startswith("a" * 100)


def test_status_says_why_it_is_degraded_and_what_failed() -> None:
    answer = status_answer(message(StatusAnswer, REPORT))
    assert (answer["state"], answer["files"], answer["pending_files"]) == ("degraded", 3, 1)
    assert answer["degraded"] == ["the disk is full"]
    assert (answer["failed_files"], answer["failed"]) == (1, [{"path": "/r/x", "reason": "binary"}])
    assert answer["last_change_indexed_s_ago"] == 5


def test_roots_and_an_explanation_are_reported_in_fields() -> None:
    assert "No folders are indexed yet" in roots_answer([])["note"]
    assert roots_answer([message(RootAnswer, ROOT)])["roots"] == [ROOT]
    explanation = explain_answer(
        message(ExplainAnswer, {"path": "/r/a", "indexed": False, "problem": None, "chunks": 0})
    )
    assert explanation == {"notice": NOTICE, "path": "/r/a", "indexed": False, "chunks": 0}
    many = roots_answer([message(RootAnswer, ROOT | {"path": "/x" * 99})] * 99)
    assert token_upper_bound(render_answer(many)) <= DEFAULT_TOKEN_BUDGET
    assert len(many["roots"]) + many["omitted"] == 99


def test_an_error_is_reported_with_its_hint() -> None:
    assert error_answer("no root `a`", "use b") == {
        "notice": NOTICE,
        "error": "no root `a`",
        "hint": "use b",
    }
    assert error_answer("it failed", "") == {"notice": NOTICE, "error": "it failed"}


def test_names_are_taken_out_of_anchords_sentences() -> None:
    words = OwnWords()
    sentence = (
        'no root "q\\u0060"; there are: "a", "q\\u0060"; `anchord remove q`, `anchord remove -- -q`, '
        "`anchord config show`, `anchord verify --repair`, `anchord add FOLDER`, `kill -9 7`, `a 'b`"
    )
    assert words.without_names(sentence) == (
        "no root [1]; there are: [2], [1]; `anchord remove NAME`, `anchord remove NAME`, "
        "`anchord config show`, `anchord verify --repair`, `anchord add FOLDER`, `kill -9 NAME`, `NAME`"
    )
    assert words.names == ["q`", "a"]
    assert words.without_names('a library said "\\q"') == "a library said [3]"


def test_many_long_names_leave_room_for_the_results() -> None:
    names = quote_names(str(number) * 50 for number in range(300, 310))
    answer = search_answer(found([passage("the text")], note=f"there are {names}"), 400)
    assert token_upper_bound(render_answer(answer)) <= 400
    assert 0 < len(answer["names"]) < 10
