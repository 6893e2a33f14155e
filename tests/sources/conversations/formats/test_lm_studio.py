"""LM Studio: the selected version of each message is active; the other versions are superseded."""

from __future__ import annotations

import json
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

from anchord.sources.conversations.formats import lm_studio

PATH = "conversations/1767323045678.conversation.json"


def texts(*said: str) -> list[dict[str, Any]]:
    return [{"type": "text", "text": each} for each in said]


def single(role: str, said: str, **more: object) -> dict[str, Any]:
    return {"type": "singleStep", "role": role, "content": texts(said), **more}


def steps(*given: dict[str, Any], **more: object) -> dict[str, Any]:
    return {"type": "multiStep", "role": "assistant", "steps": list(given), **more}


def block(*said: str, **more: object) -> dict[str, Any]:
    return {"type": "contentBlock", "content": texts(*said), **more}


def message(*versions: dict[str, Any], selected: object = 0) -> dict[str, Any]:
    return {"versions": list(versions), "currentlySelected": selected}


def document(*messages: object) -> dict[str, Any]:
    return {
        "name": "Shop",
        "createdAt": 1_767_323_045_678,
        "userLastMessagedAt": 1_767_323_099_000,
        "messages": list(messages),
    }


def chat(*messages: object) -> ParsedTranscript:
    return parse_transcript(
        lm_studio, MemoryTranscript(PATH, json.dumps(document(*messages)).encode())
    )


TALK = [
    message(single("user", "Where is the till?")),
    message(steps(block("At the door."))),
    message(single("user", "And why?")),
    message(single("assistant", "It was cheap.")),
]


def superseded(parsed: ParsedTranscript) -> list[tuple[str, str]]:
    return [
        (exchange.question, exchange.answer) for exchange in parsed.exchanges if exchange.superseded
    ]


@pytest.mark.parametrize("path", [PATH, "old/1767323045678.json"])
def test_a_chat_is_recognised_by_its_ending_or_its_versions(path: str) -> None:
    assert recognised(lm_studio, MemoryTranscript(path, json.dumps(document(*TALK)).encode()))


def test_other_files_are_no_chat() -> None:
    assert not recognised(
        lm_studio, MemoryTranscript("a.json", b'{"messages": [{"role": "user"}]}')
    )
    assert not recognised(lm_studio, MemoryTranscript(PATH, b'[{"messages": []}]'))
    assert not recognised(
        lm_studio, MemoryTranscript("a.txt", json.dumps(document(*TALK)).encode())
    )
    assert not recognised(
        lm_studio, MemoryTranscript("a.json", b'{"messages": [{"versions": []}]}')
    )
    assert not recognised(
        lm_studio, MemoryTranscript("a.json", b'{"messages": [{"currentlySelected": 1}]}')
    )
    assert not recognised(lm_studio, MemoryTranscript(PATH, b'{"name": "Shop"}'))
    assert recognised(lm_studio, MemoryTranscript(PATH, b'\xef\xbb\xbf{"messages": []}'))


def test_questions_and_answers_are_read_in_their_order() -> None:
    parsed = chat(*TALK)
    assert parsed.said == [("Where is the till?", "At the door."), ("And why?", "It was cheap.")]
    assert [exchange.id for exchange in parsed.exchanges] == ["message-0", "message-2"]
    head = parsed.heads[0]
    assert (head.session, head.title, head.updated) == (
        "1767323045678",
        "Shop",
        "2026-01-02T03:04:59.000Z",
    )
    assert not parsed.unknown


def test_the_selected_version_is_active_and_the_others_are_superseded() -> None:
    answers = message(single("assistant", "First"), single("assistant", "Second"), selected=1)
    parsed = chat(TALK[0], answers, *TALK[2:])
    assert parsed.said == [("Where is the till?", "Second"), ("And why?", "It was cheap.")]
    assert superseded(parsed) == [("Where is the till?", "First")]
    assert len({exchange.id for exchange in parsed.exchanges}) == 3


@pytest.mark.parametrize("selected", [7, -1, None, "1", 1.5])
def test_where_none_is_selected_the_last_version_is_active(selected: object) -> None:
    answers = message(
        single("assistant", "First"), single("assistant", "Second"), selected=selected
    )
    assert chat(TALK[0], answers).said == [("Where is the till?", "Second")]


def test_an_edited_question_is_superseded() -> None:
    parsed = chat(message(single("user", "Were?"), single("user", "Where?"), selected=1), TALK[1])
    assert parsed.said == [("Where?", "At the door.")]
    assert superseded(parsed) == [("Were?", "")]


def test_pieces_of_a_block_are_joined_as_they_are_and_blocks_with_a_blank_line() -> None:
    assert (
        chat(TALK[0], message(steps(block("At ", "the", " door"), block("Done.")))).said[0][1]
        == "At the door\n\nDone."
    )


def test_thinking_and_system_texts_are_no_prose() -> None:
    thinking = block("hm", style={"type": "thinking", "title": "Thought for 2 seconds"})
    parsed = chat(
        message(single("system", "Be brief")), TALK[0], message(steps(thinking, block("Done."), {"type": "debugInfoBlock"})),
        TALK[2], message(single("assistant", "<think>\nhm\n</think>\nIt was cheap.")),
    )  # fmt: skip
    assert parsed.said == [("Where is the till?", "Done."), ("And why?", "It was cheap.")]
    assert not parsed.unknown


def test_calls_of_tools_are_lines_and_their_results_no_prose() -> None:
    call = {
        "type": "contentBlock",
        "content": [{"type": "toolCallRequest", "name": "search", "parameters": {"query": "till"}}],
    }
    result = {
        "type": "contentBlock",
        "role": "tool",
        "content": [{"type": "toolCallResult", "content": "x"}, *texts("output")],
    }
    parsed = chat(TALK[0], message(steps(call, result, block("Done."))))
    assert parsed.said == [("Where is the till?", "Done.")]
    assert parsed.exchanges[0].tools == ("[search] till",)


def test_images_are_marked() -> None:
    image, paper = {"type": "file", "fileType": "image"}, {"type": "file", "fileType": "text/plain"}
    see = {
        "type": "singleStep",
        "role": "user",
        "content": [*texts("See"), image, paper, {"type": "x", "fileType": "image"}],
    }
    assert chat(message(see)).said == [("See\n\n[image]", "")]
    assert chat(message({"role": "user", "content": [image]})).said == [("[image]", "")]


def test_an_answer_of_calls_alone_has_its_calls() -> None:
    call = {
        "type": "contentBlock",
        "content": [{"type": "toolCallRequest", "name": "search", "parameters": {"query": "till"}}],
    }
    assert chat(TALK[0], message(steps(call))).exchanges[0].tools == ("[search] till",)


@pytest.mark.parametrize(
    "version",
    [
        steps(block("Done.", genInfo={"indexedModelIdentifier": "llama"})),
        steps(block("Done."), senderInfo={"senderName": "llama"}),
    ],
)
def test_the_model_is_read(version: dict[str, Any]) -> None:
    assert chat(TALK[0], message(version)).exchanges[0].model == "llama"


def test_messages_of_very_old_chats_have_no_versions() -> None:
    assert chat(
        {"role": "user", "content": "Where?"}, {"role": "assistant", "content": "There."}
    ).said == [("Where?", "There.")]


def test_what_is_unknown_is_counted() -> None:
    parsed = chat(
        *TALK,
        message(single("narrator", "Once")),
        message(steps({"type": "novel"}, {})),
        {},
        message({}),
        7,
    )
    assert parsed.unknown == {
        "role narrator": 1, "step novel": 1, "step without a type": 1, "message without versions": 2,
        "version without a role": 1,
    }  # fmt: skip
    assert parsed.said == chat(*TALK).said


@pytest.mark.parametrize("data", [b'{"messages": [', b'[{"messages": 1', b"", b"7"])
def test_a_broken_file_is_counted(data: bytes) -> None:
    parsed = parse_transcript(lm_studio, MemoryTranscript(PATH, data))
    assert sum(parsed.unknown.values()) == 1
    assert not parsed.exchanges


DOCUMENT = document(
    *TALK,
    message(
        single("assistant", "a"),
        steps(block("b", genInfo={"indexedModelIdentifier": "m"}), {"type": "status"}),
        selected=1,
    ),
    message(
        steps(
            {
                "type": "contentBlock",
                "style": {"type": "x"},
                "content": [{"type": "toolCallRequest", "name": "n"}],
            }
        )
    ),
)


@settings(deadline=None)
@given(broken(DOCUMENT))
def test_nothing_that_is_broken_raises(data: bytes) -> None:
    survives(lm_studio, PATH, data)
