"""ChatGPT: the branch up from the current node is active, whatever the order of children; all others are superseded."""

from __future__ import annotations

import json
import time
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

from anchord.sources.conversations.formats import chatgpt

PATH = "conversations-000.json"
SAMPLES = Path("/work/shared/samples/chatgpt_export/polylogue")

Given = dict[str, Any]


def node(
    key: str, parent: str | None, role: str, *parts: object, kind: str = "text", **more: object
) -> Given:
    message = {
        "id": key, "author": {"role": role}, "create_time": 1_767_348_000.5, "recipient": "all", "weight": 1.0,
        "content": {"content_type": kind, "parts": list(parts)}, "metadata": {"model_slug": "gpt"}, **more,
    }  # fmt: skip
    return {"id": key, "parent": parent, "children": [], "message": message}


def hidden(
    key: str,
    parent: str | None,
    role: str,
    said: str,
    flag: str = "is_visually_hidden_from_conversation",
) -> Given:
    return node(key, parent, role, said, metadata={flag: True})


ROOT: Given = {"id": "r", "parent": None, "children": ["a"], "message": None}
TALK = [
    ROOT, node("a", "r", "user", "Where is the till?"), node("b", "a", "assistant", "At the door."),
    node("c", "b", "user", "And why?"), node("d", "c", "assistant", "It was cheap."),
]  # fmt: skip
SAID = [("Where is the till?", "At the door."), ("And why?", "It was cheap.")]


def conversation(*nodes: Given, current: str = "", **more: object) -> Given:
    return {
        "title": "Shop", "create_time": 1_767_348_000.0, "update_time": 1_767_348_060.25, "conversation_id": "talk",
        "mapping": {each["id"]: each for each in nodes}, "current_node": current or nodes[-1]["id"], **more,
    }  # fmt: skip


def export(*conversations: object) -> ParsedTranscript:
    return parse_transcript(chatgpt, MemoryTranscript(PATH, json.dumps(conversations).encode()))


def session(*nodes: Given, current: str = "", **more: object) -> ParsedTranscript:
    return export(conversation(*nodes, current=current, **more))


def left(parsed: ParsedTranscript) -> list[tuple[str, str]]:
    return [
        (exchange.question, exchange.answer) for exchange in parsed.exchanges if exchange.superseded
    ]


def test_questions_and_answers_are_read_from_the_root_down() -> None:
    parsed = session(*TALK)
    assert parsed.said == SAID
    assert [(exchange.id, exchange.number, exchange.model) for exchange in parsed.exchanges] == [
        ("a", 0, "gpt"),
        ("c", 1, "gpt"),
    ]
    assert parsed.exchanges[0].at == "2026-01-02T10:00:00.500Z"
    assert (parsed.heads[0].session, parsed.title, parsed.heads[0].updated) == (
        "talk",
        "Shop",
        "2026-01-02T10:01:00.250Z",
    )
    assert left(parsed) == []
    assert not parsed.unknown


@pytest.mark.parametrize(
    "path", ["conversations.json", "export.zip!conversations-012.json", "one.json"]
)
def test_an_export_is_recognised(path: str) -> None:
    for each in ([conversation(*TALK)], conversation(*TALK)):
        assert recognised(chatgpt, MemoryTranscript(path, json.dumps(each).encode()))


@pytest.mark.parametrize(
    ("path", "data"),
    [
        ("chat.html", conversation(*TALK)),
        ("user.json", {"id": "x"}),
        ("export_manifest.json", {"files": ["conversations-000.json"]}),
    ],
)
def test_other_files_are_no_export(path: str, data: object) -> None:
    assert not recognised(chatgpt, MemoryTranscript(path, json.dumps(data).encode()))


def test_one_conversation_and_what_a_browser_kept_of_one_are_read() -> None:
    for data in (conversation(*TALK), {"raw_provider_payload": conversation(*TALK)}):
        assert (
            parse_transcript(chatgpt, MemoryTranscript("one.json", json.dumps(data).encode())).said
            == SAID
        )


def test_the_order_of_nodes_and_times_and_children_says_nothing() -> None:
    nodes = [
        node(key, "b" if key in "xd" else parent, *rest, create_time=at)
        for key, parent, *rest, at in [
            ("d", "b", "user", "And why?", 1),
            ("b", "a", "assistant", "At the door.", 3),
            ("a", "r", "user", "Where is the till?", 9),
        ]
    ]
    assert session(*nodes, {**ROOT, "children": ["d", "a"]}, current="d").said == [
        SAID[0],
        ("And why?", ""),
    ]


def test_conversations_of_an_export_are_apart() -> None:
    parsed = export(conversation(*TALK), conversation(*TALK, conversation_id="other", title="Barn"))
    assert [(exchange.session, exchange.number) for exchange in parsed.exchanges] == [
        ("talk", 0),
        ("talk", 1),
        ("other", 0),
        ("other", 1),
    ]


def test_a_conversation_is_named_by_either_id_or_its_title() -> None:
    assert session(*TALK, conversation_id=None, id="own").heads[0].session == "own"
    assert (
        session(*TALK, conversation_id=None).heads[0].session
        == "untitled Shop 2026-01-02T10:00:00.000Z"
    )


def test_an_unanswered_question_is_an_exchange_of_its_own() -> None:
    assert session(ROOT, node("a", "r", "user", "One"), node("b", "a", "user", "Two")).said == [
        ("One", ""),
        ("Two", ""),
    ]


def test_line_ends_fences_and_parts_stay() -> None:
    said = "See:\n\n```py\nif a:\n    b()\n```\n\n  indented"
    assert session(
        node("a", None, "user", said, "More"), node("b", "a", "assistant", said)
    ).said == [(f"{said}\n\nMore", said)]


def test_an_edited_question_is_superseded_with_all_after_it() -> None:
    parsed = session(
        *TALK, node("e", "b", "user", "And when?"), node("f", "e", "assistant", "In May.")
    )
    assert parsed.said == [SAID[0], ("And when?", "In May.")]
    assert left(parsed) == [SAID[1]]


def test_an_older_branch_can_be_the_current_one() -> None:
    parsed = session(*TALK, node("e", "b", "user", "And when?"), current="d")
    assert parsed.said == SAID
    assert left(parsed) == [("And when?", "")]


@pytest.mark.parametrize("current", ["b", "x"])
def test_an_answer_that_was_asked_for_again_is_read_with_its_question(current: str) -> None:
    both = {"b": "At the door.", "x": "By the wall."}
    parsed = session(*TALK[:3], node("x", "a", "assistant", both["x"]), current=current)
    assert parsed.said == [(SAID[0][0], both.pop(current))]
    assert left(parsed) == [(SAID[0][0], *both.values())]
    assert len({exchange.id for exchange in parsed.exchanges}) == 2


def test_branches_of_a_branch_are_each_read_once() -> None:
    parsed = session(
        *TALK,
        node("e", "b", "user", "And when?"),
        node("f", "e", "assistant", "In May."),
        node("g", "e", "assistant", "In June."),
        current="d",
    )
    assert parsed.said == SAID
    assert left(parsed) == [("And when?", "In May."), ("And when?", "In June.")]


def test_what_is_below_the_current_node_is_superseded() -> None:
    parsed = session(*TALK, current="b")
    assert parsed.said == SAID[:1]
    assert left(parsed) == SAID[1:]


@pytest.mark.parametrize("current", ["lost", "", None, 7])
def test_without_a_current_node_the_newest_leaf_is_active(current: object) -> None:
    parsed = session(
        *TALK,
        node("e", "b", "user", "Later", create_time=1_767_349_000),
        node("f", "b", "user", "First", create_time=5),
    )
    bare = conversation(
        *TALK,
        node("e", "b", "user", "Later", create_time=1_767_349_000),
        node("f", "b", "user", "First", create_time=5),
    )
    assert questions(parsed)[-1] == "First"
    assert questions(export({**bare, "current_node": current}))[-1] == "Later"


def test_a_superseded_answer_without_a_question_is_not_active() -> None:
    parsed = session(
        ROOT,
        hidden("h", "r", "user", "Greet"),
        node("x", "h", "assistant", "Old hello."),
        node("y", "h", "assistant", "Hello."),
        node("a", "y", "user", "Go"),
        node("b", "a", "assistant", "Done."),
    )
    assert parsed.said == [("", "Hello."), ("Go", "Done.")]


def test_hidden_weightless_and_systems_messages_are_left_out() -> None:
    parsed = session(
        ROOT, node("s", "r", "system", "Be kind."), hidden("u", "s", "user", "About me", "is_user_system_message"),
        hidden("v", "u", "user", "x"), node("a", "v", "user", "Go"), hidden("w", "a", "assistant", "x"),
        node("t", "w", "tool", "x"), node("x", "t", "assistant", "search()", recipient="browser"),
        node("y", "x", "assistant", "x", weight=0.0), node("b", "y", "assistant", "Done.", recipient=None),
    )  # fmt: skip
    assert parsed.said == [("Go", "Done.")]
    assert not parsed.unknown


@pytest.mark.parametrize(
    "kind",
    ["code", "execution_output", "tether_quote", "tether_browsing_display", "thoughts", "reasoning_recap",
     "user_editable_context", "model_editable_context"],
)  # fmt: skip
def test_tools_and_thoughts_are_no_prose(kind: str) -> None:
    parsed = session(*TALK, node("e", "d", "assistant", "x", kind=kind))
    assert parsed.said == SAID
    assert not parsed.unknown


def test_images_are_placeholders_and_speech_is_its_words() -> None:
    image, speech = (
        {"content_type": "image_asset_pointer", "asset_pointer": "x"},
        {"content_type": "audio_transcription", "text": "Hi"},
    )
    parsed = session(
        node(
            "a",
            None,
            "user",
            image,
            speech,
            {"content_type": "audio_asset_pointer"},
            "See",
            kind="multimodal_text",
        )
    )
    assert questions(parsed) == ["[image]\n\nHi\n\nSee"]


def test_a_question_of_a_document_alone_is_a_question() -> None:
    upload = node("e", "d", "user", "", metadata={"attachments": [{"name": "list.pdf"}]})
    assert len(session(*TALK, upload, node("f", "e", "assistant", "A list.")).said) == 3


def test_a_text_in_place_of_parts_is_prose() -> None:
    assert questions(
        session(node("a", None, "user", content={"content_type": "text", "text": "Hello"}))
    ) == ["Hello"]


def test_citations_are_taken_out() -> None:
    said = "It was cheap\ue200cite\ue202turn0search1\ue202turn0search2\ue201.【12†source】 So\ue203 be\ue204 it.【4:0†a.pdf】"
    assert (
        session(node("a", None, "user", "Q"), node("b", "a", "assistant", said)).said[0][1]
        == "It was cheap. So be it.【4:0†a.pdf】"
    )


def test_a_citation_without_an_end_loses_no_prose() -> None:
    said = "First\ue200. Then this. And\ue200cite\ue202turn0search1\ue201 that."
    assert (
        session(node("a", None, "user", "Q"), node("b", "a", "assistant", said)).said[0][1]
        == "First. Then this. And that."
    )


def test_citations_without_ends_take_no_time() -> None:
    data = json.dumps([conversation(node("a", None, "user", "【1†" * 40_000))]).encode()
    before = time.process_time()
    parse_transcript(chatgpt, MemoryTranscript(PATH, data))
    assert time.process_time() - before < 0.5


def test_a_circle_ends_and_a_lost_parent_is_a_root() -> None:
    assert questions(session(node("a", "b", "user", "One"), node("b", "a", "user", "Two"))) == [
        "One",
        "Two",
    ]
    assert questions(session(node("a", "lost", "user", "One"))) == ["One"]


def test_what_is_unknown_is_counted() -> None:
    parsed = export(
        7, {"title": "x"}, conversation(*TALK, node("e", "d", "assistant", kind="novel"))
    )
    assert parsed.unknown == {"no conversation": 2, "content novel": 1}
    assert parsed.said == SAID


def test_prose_of_an_unknown_kind_is_read() -> None:
    assert session(*TALK[:2], node("b", "a", "assistant", "Hello", kind="novel")).said == [
        (SAID[0][0], "Hello")
    ]


def test_an_export_that_was_cut_tells_what_it_holds() -> None:
    data = json.dumps([conversation(*TALK), conversation(*TALK, conversation_id="other")]).encode()
    parsed = parse_transcript(chatgpt, MemoryTranscript(PATH, data[:-10]))
    assert parsed.said == SAID
    assert parsed.unknown == {"broken JSON": 1}


def test_what_cannot_be_written_is_replaced() -> None:
    assert session(node("\ud800", None, "user", "a\ud800\0b"), title="\udfff").said == [
        ("a\ufffd\ufffdb", "")
    ]


def test_a_huge_time_raises_nothing() -> None:
    bare = conversation(node("a", None, "user", "One", create_time=10**400))
    assert questions(export({**bare, "current_node": None})) == ["One"]


DATA = [
    conversation(*TALK, node("e", "b", "user", "x【1†y】", {"content_type": "image_asset_pointer"}, kind="multimodal_text"),
                 node("f", "a", "assistant", "g"), hidden("h", "f", "user", "i"), current="e"),
    {"raw_provider_payload": conversation(node("z", None, "user", "One"), conversation_id="other")},
]  # fmt: skip


def test_an_odd_value_at_any_place_raises_nothing() -> None:
    for changed in everywhere(DATA):
        survives(chatgpt, PATH, json.dumps(changed).encode())


@settings(deadline=None)
@given(broken(DATA))
def test_nothing_that_is_broken_raises(data: bytes) -> None:
    survives(chatgpt, PATH, data)


@pytest.mark.skipif(not SAMPLES.exists(), reason="the samples are not part of the repository")
def test_the_sample_gives_the_answer_that_was_seen_last() -> None:
    path = SAMPLES / "native-conversation-v1.json"
    carrier = MemoryTranscript(str(path), path.read_bytes())
    assert recognised(chatgpt, carrier)
    parsed = parse_transcript(chatgpt, carrier)
    assert "Final answer." in parsed.said[-1][1]
    assert not any("Superseded answer." in answer for _, answer in parsed.said)
    assert any("Superseded answer." in answer for _, answer in left(parsed))
