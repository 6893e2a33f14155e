"""AI Studio: chunks are read in order; the last sibling is active; input without text becomes a mark."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from sources.conversations.formats.carriers import (
    MemoryTranscript,
    ParsedTranscript,
    parse_transcript,
    recognised,
)
from sources.conversations.formats.mutations import broken, survives

from anchord.sources.conversations.formats import ai_studio

PATH = "Google AI Studio/Shop v1.2"
SAMPLES = Path("/work/shared/samples/gemini_aistudio")


def chunk(role: str, said: str = "", **more: object) -> dict[str, Any]:
    return {"role": role, "text": said, "createTime": "2026-01-02T03:04:05Z", **more}


def document(*chunks: object, **more: object) -> dict[str, Any]:
    return {"runSettings": {"model": "models/gemini-3-pro"}, "systemInstruction": {"text": "Be brief"},
            "chunkedPrompt": {"chunks": list(chunks), "pendingInputs": [{"text": "", "role": "user"}]}, **more}  # fmt: skip


def prompt(*chunks: object, path: str = PATH, **more: object) -> ParsedTranscript:
    return parse_transcript(
        ai_studio, MemoryTranscript(path, json.dumps(document(*chunks, **more), indent=2).encode())
    )


TALK = [
    chunk("user", "Where is the till?"),
    chunk("model", "At the door."),
    chunk("user", "And why?"),
    chunk("model", "It was cheap."),
]


def superseded(parsed: ParsedTranscript) -> list[tuple[str, str]]:
    return [
        (exchange.question, exchange.answer) for exchange in parsed.exchanges if exchange.superseded
    ]


@pytest.mark.parametrize("path", [PATH, "a.json", "Shop"])
def test_a_prompt_is_recognised_whatever_its_name_is(path: str) -> None:
    assert recognised(ai_studio, MemoryTranscript(path, json.dumps(document(*TALK)).encode()))
    assert recognised(
        ai_studio, MemoryTranscript(path, b"\xef\xbb\xbf" + json.dumps(document(*TALK)).encode())
    )


def test_a_prompt_with_long_instructions_is_recognised() -> None:
    long = {**document(*TALK), "systemInstruction": {"text": "x" * 100_000}}
    order = ("runSettings", "systemInstruction", "chunkedPrompt")
    assert recognised(
        ai_studio, MemoryTranscript(PATH, json.dumps({key: long[key] for key in order}).encode())
    )


def test_a_text_about_prompts_is_none() -> None:
    quoted = json.dumps(
        {"type": "user", "message": {"content": json.dumps(document(*TALK))}}
    ).encode()
    assert not recognised(ai_studio, MemoryTranscript("a.json", quoted))
    assert not recognised(ai_studio, MemoryTranscript("a.md", b'# A\n"chunkedPrompt": {'))
    assert not recognised(
        ai_studio, MemoryTranscript("a.jsonl", json.dumps(document(*TALK)).encode())
    )


def test_questions_and_answers_are_read_in_their_order() -> None:
    parsed = prompt(*TALK)
    assert parsed.said == [("Where is the till?", "At the door."), ("And why?", "It was cheap.")]
    first = parsed.exchanges[0]
    assert (first.id, first.at, first.model) == (
        "chunk-0",
        "2026-01-02T03:04:05.000Z",
        "gemini-3-pro",
    )
    assert (parsed.heads[0].session, parsed.title) == ("Shop v1.2", "Shop v1.2")
    assert not parsed.unknown


def test_a_prompt_that_names_itself_is_named_so() -> None:
    parsed = prompt(
        *TALK, id="p-1", displayName="Shop", updateTime="2026-01-02T03:05:00Z", path="a.json"
    )
    assert (parsed.heads[0].session, parsed.title, parsed.heads[0].updated) == (
        "p-1",
        "Shop",
        "2026-01-02T03:05:00.000Z",
    )
    assert prompt(*TALK, title="Barn").title == "Barn"


def test_a_chunk_that_names_itself_is_named_so_once() -> None:
    parsed = prompt(
        chunk("user", "One", id="q"), chunk("user", "Two", id="q"), chunk("user", "Three", id="r")
    )
    assert [exchange.id for exchange in parsed.exchanges] == ["q", "chunk-1", "r"]


def test_a_broken_file_is_counted() -> None:
    assert parse_transcript(ai_studio, MemoryTranscript(PATH, b'{"chunkedPrompt": {')).unknown == {
        "broken JSON": 1
    }


def test_thoughts_are_no_prose() -> None:
    parsed = prompt(
        TALK[0],
        chunk("model", "hm", isThought=True, parts=[{"text": "hm", "thought": True}]),
        TALK[1],
    )
    assert parsed.said == [("Where is the till?", "At the door.")]


def test_a_text_is_read_once_though_its_pieces_stand_beside_it() -> None:
    parts = [{"text": "hm", "thought": True}, {"text": "At the "}, {"text": "door."}]
    assert prompt(TALK[0], chunk("model", "At the door.", parts=parts)).said == [
        ("Where is the till?", "At the door.")
    ]
    assert prompt(TALK[0], chunk("model", parts=parts)).said == [
        ("Where is the till?", "At the door.")
    ]


def test_code_that_was_run_is_a_line_and_its_result_no_prose() -> None:
    parsed = prompt(
        TALK[0],
        chunk("model", executableCode={"language": "PYTHON", "code": "print(1)\nprint(2)"}),
        chunk("model", codeExecutionResult={"outcome": "OUTCOME_OK", "output": "1"}),
        TALK[1],
    )
    assert parsed.said == [("Where is the till?", "At the door.")]
    assert parsed.exchanges[0].tools == ("[code] print(1) print(2)",)


def test_an_answer_that_was_cut_off_is_kept() -> None:
    assert prompt(TALK[0], chunk("model", "At the", errorMessage="Interrupted")).said == [
        ("Where is the till?", "At the")
    ]


def test_the_last_of_several_answers_is_active() -> None:
    parsed = prompt(
        chunk("user", "Where?", id="q"),
        chunk("model", "Here.", id="a", branchParent={"id": "q"}),
        chunk("model", "There.", id="b", branchParent={"id": "q"}),
        chunk("user", "Thanks", id="c"),
    )
    assert parsed.said == [("Where?", "There."), ("Thanks", "")]
    assert superseded(parsed) == [("Where?", "Here.")]


def test_an_edited_question_is_superseded_with_all_that_came_after_it() -> None:
    parsed = prompt(
        chunk("user", "Hello", id="h"),
        chunk("model", "Hi", id="i"),
        chunk("user", "Were?", id="a", branchParent={"id": "i"}),
        chunk("model", "Who?", id="b"),
        chunk("user", "Where?", id="c", branchParent={"id": "i"}),
        chunk("model", "There.", id="d"),
    )
    assert parsed.said == [("Hello", "Hi"), ("Where?", "There.")]
    assert superseded(parsed) == [("Were?", "Who?")]


def test_a_branch_of_another_prompt_leaves_nothing() -> None:
    parsed = prompt(
        TALK[0],
        chunk(
            "model", "At the door.", branchParent={"promptId": "prompts/1", "displayName": "Shop"}
        ),
    )
    assert parsed.said == [("Where is the till?", "At the door.")]
    assert superseded(parsed) == []


def test_what_is_given_before_or_after_a_question_belongs_to_it() -> None:
    image, video = chunk("user", driveImage={"id": "1"}), chunk("user", youtubeVideo={"id": "2"})
    paper = chunk("user", driveDocument={"id": "3", "name": "list.pdf"})
    assert prompt(image, paper, *TALK[:2]).said == [
        ("Where is the till?\n\n[image]\n\n[list.pdf]", "At the door.")
    ]
    assert prompt(TALK[0], image, video, TALK[1]).said == [
        ("Where is the till?\n\n[image]\n\n[video]", "At the door.")
    ]
    assert prompt(*TALK[:2], image, TALK[2]).said == [TALK_SAID[0], ("And why?\n\n[image]", "")]


TALK_SAID = [("Where is the till?", "At the door."), ("And why?", "It was cheap.")]


def test_what_is_given_without_any_text_is_a_question() -> None:
    image = chunk("user", inlineFile={"mimeType": "image/png", "data": "AAAA"})
    assert prompt(*TALK[:2], image, chunk("model", "A cat.")).said == [
        TALK_SAID[0],
        ("[file]", "A cat."),
    ]
    assert prompt(image).said == [("[file]", "")]


def test_two_questions_in_a_row_are_two() -> None:
    assert prompt(chunk("user", "One"), chunk("user", "Two"), TALK[1]).said == [
        ("One", ""),
        ("Two", "At the door."),
    ]


def test_what_was_typed_and_not_sent_is_kept() -> None:
    pending = {"chunks": TALK[:2], "pendingInputs": [{"text": "And"}]}
    assert prompt(chunkedPrompt=pending).said == [TALK_SAID[0], ("And", "")]


def test_what_is_unknown_is_counted() -> None:
    parsed = prompt(*TALK, chunk("narrator", "Once"), 7)
    assert parsed.unknown == {"role narrator": 1, "chunk without a role": 1}
    assert parsed.said == TALK_SAID


DOCUMENT = document(
    *TALK,
    chunk("user", "a", id="x", branchParent={"id": "y"}),
    chunk("user", driveImage={"name": "b"}),
    chunk(
        "model",
        parts=[{"text": "c"}],
        executableCode={"code": "d"},
        id="y",
        branchParent={"id": "x"},
    ),
)


@settings(deadline=None)
@given(broken(DOCUMENT))
def test_nothing_that_is_broken_raises(data: bytes) -> None:
    survives(ai_studio, PATH, data)


@pytest.mark.skipif(not SAMPLES.exists(), reason="the samples are not part of the repository")
@pytest.mark.parametrize(
    ("name", "exchanges", "asked", "said", "left"),
    [
        ("branching_session.json", 1, 17, 29 + 2 + 25, 1),
        ("code_execution_prompt.json", 1, 22, 16, 0),
        ("code_execution_session.json", 1, 41, 24 + 2 + 23, 0),
        ("multi_turn_prompt.json", 2, 19 + 2 + 12 + 14, 31 + 37, 0),
        ("multimodal_session.json", 1, 23 + 3 * 2 + 10 + 6 + 7, 38, 0),
        ("text_only_prompt.json", 2, 30 + 15, 31 + 7, 0),
        ("text_only_session.json", 1, 30, 31, 0),
    ],
)
def test_the_samples_give_what_a_person_counts(
    name: str, exchanges: int, asked: int, said: int, left: int
) -> None:
    carrier = MemoryTranscript(name, (SAMPLES / name).read_bytes())
    assert recognised(ai_studio, carrier)
    parsed = parse_transcript(ai_studio, carrier)
    assert len(parsed.said) == exchanges
    assert (
        sum(len(question) for question, _ in parsed.said),
        sum(len(answer) for _, answer in parsed.said),
    ) == (asked, said)
    assert len(superseded(parsed)) == left
    assert not parsed.unknown
