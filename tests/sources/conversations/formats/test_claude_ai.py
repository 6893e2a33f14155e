"""Claude.ai: messages in order, pasted documents as attachments, and only the last retry active."""

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
    questions,
    recognised,
)
from sources.conversations.formats.everywhere import everywhere
from sources.conversations.formats.mutations import broken, survives

from anchord.sources.conversations.formats import claude_ai

PATH = "export.zip!conversations.json"
SAMPLE = Path("/work/shared/samples/claude_ai_export/polylogue/schema-representative-00.json")
PLACEHOLDER = "This block is not supported on your current device yet."

Given = dict[str, Any]


def message(
    uuid: str, sender: str, *blocks: str | Given, parent: str = "", **more: object
) -> Given:
    content = [{"type": "text", "text": each} if isinstance(each, str) else each for each in blocks]
    made = {
        "uuid": uuid,
        "sender": sender,
        "text": "\n\n".join(each for each in blocks if isinstance(each, str)),
        "content": content,
        "created_at": "2026-01-02T10:00:00.500000Z",
        "attachments": [],
        "files": [],
        **more,
    }
    return {**made, "parent_message_uuid": parent} if parent else made


def human(uuid: str, *blocks: str | Given, parent: str = "", **more: object) -> Given:
    return message(uuid, "human", *blocks, parent=parent, **more)


def assistant(uuid: str, *blocks: str | Given, parent: str = "", **more: object) -> Given:
    return message(uuid, "assistant", *blocks, parent=parent, **more)


def conversation(*messages: Given, **more: object) -> Given:
    return {
        "uuid": "talk",
        "name": "Shop",
        "updated_at": "2026-01-02T10:01:00Z",
        "chat_messages": messages,
        **more,
    }


def export(*conversations: object) -> ParsedTranscript:
    return parse_transcript(claude_ai, MemoryTranscript(PATH, json.dumps(conversations).encode()))


def session(*messages: Given, **more: object) -> ParsedTranscript:
    return export(conversation(*messages, **more))


def left(parsed: ParsedTranscript) -> list[tuple[str, str]]:
    return [
        (exchange.question, exchange.answer) for exchange in parsed.exchanges if exchange.superseded
    ]


def attached(parsed: ParsedTranscript) -> list[tuple[str, str]]:
    return [
        (exchange.question, exchange.answer)
        for exchange in parsed.exchanges
        if exchange.kind == "attachment"
    ]


TALK = [
    human("a", "Where is the till?"),
    assistant("b", "At the door."),
    human("c", "And why?"),
    assistant("d", "It was cheap."),
]
SAID = [("Where is the till?", "At the door."), ("And why?", "It was cheap.")]


def test_questions_and_answers_are_read_in_their_order() -> None:
    parsed = session(*TALK, project={"name": "Barn"}, model="opus")
    assert parsed.said == SAID
    assert [(exchange.id, exchange.number, exchange.model) for exchange in parsed.exchanges] == [
        ("a", 0, "opus"),
        ("c", 1, "opus"),
    ]
    assert parsed.exchanges[0].at == "2026-01-02T10:00:00.500Z"
    head = parsed.heads[0]
    assert (head.session, head.title, head.project, head.updated) == (
        "talk",
        "Shop",
        "Barn",
        "2026-01-02T10:01:00.000Z",
    )
    assert not parsed.unknown


def test_an_export_is_recognised_by_its_messages() -> None:
    assert recognised(claude_ai, MemoryTranscript(PATH, json.dumps([conversation(*TALK)]).encode()))
    assert not recognised(
        claude_ai,
        MemoryTranscript("users.json", json.dumps([{"uuid": "u", "full_name": "Ann"}]).encode()),
    )
    assert not recognised(
        claude_ai, MemoryTranscript("a.jsonl", json.dumps([conversation(*TALK)]).encode())
    )


def test_conversations_of_an_export_are_apart() -> None:
    parsed = export(conversation(*TALK), conversation(*TALK, uuid="other"))
    assert [(exchange.session, exchange.number) for exchange in parsed.exchanges] == [
        ("talk", 0),
        ("talk", 1),
        ("other", 0),
        ("other", 1),
    ]


def test_a_summary_is_no_part_of_an_exchange() -> None:
    parsed = session(*TALK, summary="Of a till.")
    assert parsed.said == SAID
    assert [each.answer for each in parsed.exchanges if each.kind == "summary"] == ["Of a till."]


def test_line_ends_fences_and_blocks_stay() -> None:
    said = "See:\n\n```py\nif a:\n    b()\n```\n\n  indented"
    assert session(human("a", said), assistant("b", said, "More")).said == [
        (said, f"{said}\n\nMore")
    ]


def test_an_unanswered_question_is_an_exchange_of_its_own() -> None:
    assert session(human("a", "One"), human("b", "Two")).said == [("One", ""), ("Two", "")]


def test_thinking_and_results_are_no_prose_and_calls_are_lines() -> None:
    parsed = session(
        human("a", "Go"),
        assistant(
            "b",
            {"type": "thinking", "thinking": "hm"},
            {"type": "tool_use", "name": "web_search", "input": {"query": "tills"}},
            {"type": "tool_result", "content": [{"type": "text", "text": "x"}]},
            {"type": "token_budget"},
            "Done.",
        ),
    )
    assert parsed.said == [("Go", "Done.")]
    assert parsed.exchanges[0].tools == ("[web_search] tills",)
    assert not parsed.unknown


def test_the_flat_text_stands_in_where_there_are_no_blocks() -> None:
    flat = [
        {**human("a"), "text": "Go"},
        {**assistant("b"), "text": f"Done.\n{PLACEHOLDER}\nSo it is.", "content": None},
    ]
    assert session(*flat).said == [("Go", "Done.\nSo it is.")]


def test_blocks_are_read_and_not_the_flat_text_too() -> None:
    assert session(human("a", "Go", text="Go and more")).said == [("Go", "")]


@pytest.mark.parametrize(
    ("flat", "kept"), [("Hi\n```\n{}\n```\nBye", "Hi\nBye"), ("```\n{}\n```", "")]
)
def test_a_placeholder_goes_with_its_fence(flat: str, kept: str) -> None:
    said = {**assistant("b"), "text": flat.format(PLACEHOLDER), "content": []}
    assert session(human("a", "Go"), said).said == [("Go", kept)]


def test_what_quotes_a_placeholder_stays() -> None:
    said = f'Why does it say "{PLACEHOLDER}" here?'
    assert questions(session(human("a", said))) == [said]


def test_pasted_documents_are_beside_the_question() -> None:
    files = [
        {"file_name": "list.txt", "extracted_content": "Apples\nPears"},
        {"file_name": "empty.txt", "extracted_content": ""},
        {"extracted_content": "x" * 300_000},
    ]
    parsed = session(human("a", "See", attachments=files), assistant("b", "Fruit."))
    assert parsed.said == [("See", "Fruit.")]
    assert [(name, len(text)) for name, text in attached(parsed)] == [
        ("list.txt", 12),
        ("attachment", 200_000),
    ]
    assert len({exchange.id for exchange in parsed.exchanges}) == 3


def test_a_document_without_a_question_is_named_in_its_place() -> None:
    parsed = session(
        *TALK,
        human("e", attachments=[{"file_name": "list.txt", "extracted_content": "Apples"}]),
        assistant("f", "Fruit."),
    )
    assert parsed.said == [*SAID, ("[list.txt]", "Fruit.")]
    assert attached(parsed) == [("list.txt", "Apples")]


def test_a_question_of_files_alone_is_a_question() -> None:
    parsed = session(
        *TALK, human("e", files=[{"file_name": "door.png"}]), assistant("f", "A door.")
    )
    assert [answer for _, answer in parsed.said] == ["At the door.", "It was cheap.", "A door."]


def test_an_edited_question_is_superseded_with_all_after_it() -> None:
    parsed = session(
        human("a", "Where?", parent="0"), assistant("b", "Here.", parent="a"), human("c", "Why?", parent="b"),
        assistant("d", "So.", parent="c"), human("e", "When?", parent="b"), assistant("f", "Now.", parent="e"),
    )  # fmt: skip
    assert parsed.said == [("Where?", "Here."), ("When?", "Now.")]
    assert left(parsed) == [("Why?", "So.")]


def test_an_edited_first_question_leaves_all_before_it() -> None:
    parsed = session(
        human("a", "Where?", parent="0"), assistant("b", "Here.", parent="a"),
        human("c", "When?", parent="0"), assistant("d", "Now.", parent="c"),
    )  # fmt: skip
    assert parsed.said == [("When?", "Now.")]
    assert left(parsed) == [("Where?", "Here.")]


def test_a_leaf_that_is_named_makes_its_branch_active() -> None:
    parsed = session(
        human("a", "Where?", parent="0"), assistant("b", "Here.", parent="a"),
        human("c", "When?", parent="0"), assistant("d", "Now.", parent="c"), current_leaf_message_uuid="b",
    )  # fmt: skip
    assert parsed.said == [("Where?", "Here.")]
    assert left(parsed) == [("When?", "Now.")]


@pytest.mark.parametrize(("leaf", "active"), [("c", "New."), ("b", "Old.")])
def test_an_answer_that_was_asked_for_again_is_superseded(leaf: str, active: str) -> None:
    parsed = session(
        human("a", "Where?", parent="0"), assistant("b", "Old.", parent="a"), assistant("c", "New.", parent="a"),
        current_leaf_message_uuid=leaf,
    )  # fmt: skip
    assert parsed.said == [("Where?", active)]


def test_parents_without_siblings_are_no_branches() -> None:
    parsed = session(
        human("a", "Where?", parent="0"),
        assistant("b", "Here.", parent="a"),
        human("c", "Why?", parent="lost"),
    )
    assert parsed.said == [("Where?", "Here."), ("Why?", "")]


def test_conversations_without_a_name_are_apart() -> None:
    parsed = export(
        conversation(*TALK[:2], uuid=None),
        conversation(assistant("x", "Hello."), uuid=None, name="Barn"),
    )
    assert parsed.said == [SAID[0], ("", "Hello.")]
    assert len({exchange.session for exchange in parsed.exchanges}) == 2


def test_messages_without_a_name_have_one_of_their_place() -> None:
    assert [exchange.id for exchange in session(human("", "One"), human("", "Two")).exchanges] == [
        "message-0",
        "message-1",
    ]


def test_an_unknown_sender_is_counted() -> None:
    parsed = session(*TALK, message("e", "oracle", "Once"))
    assert parsed.said == SAID
    assert sum(parsed.unknown.values()) == 1


def test_what_is_unknown_is_counted() -> None:
    parsed = export(
        7,
        {"uuid": "x"},
        conversation(*TALK, assistant("e", {"type": "novel", "text": "x"}, "More.")),
    )
    assert parsed.unknown == {"no conversation": 2, "block novel": 1}
    assert parsed.said == [SAID[0], ("And why?", "It was cheap.\n\nMore.")]


def test_an_export_that_was_cut_tells_what_it_holds() -> None:
    data = json.dumps([conversation(*TALK), conversation(*TALK, uuid="other")]).encode()
    parsed = parse_transcript(claude_ai, MemoryTranscript(PATH, data[:-10]))
    assert parsed.said == SAID
    assert parsed.unknown == {"broken JSON": 1}


def test_what_cannot_be_written_is_replaced() -> None:
    parsed = session(
        human(
            "\ud800",
            "a\ud800\0b",
            attachments=[{"file_name": "\ud800", "extracted_content": "c\udfff"}],
        )
    )
    assert parsed.said == [("a\ufffd\ufffdb", "")]
    assert attached(parsed) == [("\ufffd", "c\ufffd")]


DATA = [
    conversation(
        human("a", "Where?", parent="0", attachments=[{"file_name": "f", "extracted_content": "g"}]),
        assistant("b", {"type": "tool_use", "name": "x", "input": {"path": "y"}}, "Here.", parent="a"),
        human("c", "Why?", parent="b"), human("d", "When?", parent="b"), project={"name": "p"}, current_leaf_message_uuid="d",
        summary="s", model="opus",
    ),
    conversation(human("x", "One"), assistant("y", "1"), uuid="other"),
]  # fmt: skip


def test_an_odd_value_at_any_place_raises_nothing() -> None:
    for changed in everywhere(DATA):
        survives(claude_ai, PATH, json.dumps(changed).encode())


@settings(deadline=None)
@given(broken(DATA))
def test_nothing_that_is_broken_raises(data: bytes) -> None:
    survives(claude_ai, PATH, data)


@pytest.mark.skipif(not SAMPLE.exists(), reason="the samples are not part of the repository")
def test_every_question_of_the_sample_is_read() -> None:
    carrier = MemoryTranscript(str(SAMPLE), SAMPLE.read_bytes())
    assert recognised(claude_ai, carrier)
    messages = json.loads(carrier.data)["chat_messages"]
    prose = [
        each
        for each in messages
        if each["text"].strip() or any(block.get("text") for block in each["content"] or [])
    ]
    parsed = parse_transcript(claude_ai, carrier)
    asked = {exchange.id for exchange in parsed.exchanges if exchange.kind == "exchange"} - {
        "preamble"
    }
    assert asked >= {each["uuid"] for each in prose if each["sender"] == "human"}
