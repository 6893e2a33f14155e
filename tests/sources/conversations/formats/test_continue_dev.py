"""Continue: the messages in the history are read; the copies next to them are not."""

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

from anchord.sources.conversations.formats import continue_dev

PATH = "sessions/2b6e.json"


def item(
    role: str, content: object, /, outer: dict[str, Any] | None = None, **inner: object
) -> dict[str, Any]:
    return {
        "message": {"role": role, "content": content, **inner},
        "contextItems": [],
        **(outer or {}),
    }


def document(*items: object, **more: object) -> dict[str, Any]:
    return {
        "sessionId": "2b6e",
        "title": "Shop",
        "workspaceDirectory": "/home/ann/shop",
        "history": list(items),
        **more,
    }


def session(*items: object, **more: object) -> ParsedTranscript:
    return parse_transcript(
        continue_dev, MemoryTranscript(PATH, json.dumps(document(*items, **more)).encode())
    )


def call(name: str, arguments: str) -> dict[str, Any]:
    return {"id": "t", "type": "function", "function": {"name": name, "arguments": arguments}}


LOG = {"modelTitle": "llama", "prompt": "<user>\nWhere is the till?", "completion": "At the door."}
TALK = [
    item("user", "Where is the till?", {"editorState": {"type": "doc"}}),
    item("assistant", "At the door.", {"promptLogs": [LOG]}),
    item("user", [{"type": "text", "text": "And why?"}]),
    item("assistant", "It was cheap."),
]


def test_a_session_is_recognised_by_what_its_items_hold() -> None:
    assert recognised(continue_dev, MemoryTranscript(PATH, json.dumps(document(*TALK)).encode()))
    other = json.dumps({"history": TALK, "sessionId": "2b6e"}).encode()
    assert recognised(continue_dev, MemoryTranscript(PATH, other))


def test_other_files_are_no_session() -> None:
    assert not recognised(continue_dev, MemoryTranscript(PATH, b'{"history": [{"role": "user"}]}'))
    assert not recognised(
        continue_dev, MemoryTranscript("a.jsonl", json.dumps(document(*TALK)).encode())
    )
    assert not recognised(continue_dev, MemoryTranscript(PATH, b'{"workspaceDirectory": "a"}'))
    for index in (
        b'[{"sessionId": 1}]',
        b'[{"workspaceDirectory": 1}]',
        b'{"sessionId": 1, "workspaceDirectory": 1}',
    ):
        assert not recognised(continue_dev, MemoryTranscript("sessions/sessions.json", index))


def test_the_index_is_known_and_gives_nothing() -> None:
    index = [
        {
            "sessionId": "2b6e",
            "title": "Shop",
            "dateCreated": "1767323045678",
            "workspaceDirectory": "/home/ann/shop",
        }
    ]
    carrier = MemoryTranscript("sessions/sessions.json", json.dumps(index).encode())
    assert recognised(continue_dev, carrier)
    parsed = parse_transcript(continue_dev, carrier)
    assert (parsed.exchanges, parsed.heads, parsed.unknown) == ([], [], {})


def test_questions_and_answers_are_read_once_in_their_order() -> None:
    parsed = session(*TALK)
    assert parsed.said == [("Where is the till?", "At the door."), ("And why?", "It was cheap.")]
    assert [exchange.id for exchange in parsed.exchanges] == ["message-0", "message-2"]
    assert (parsed.heads[0].session, parsed.title, parsed.project) == (
        "2b6e",
        "Shop",
        "/home/ann/shop",
    )
    assert not parsed.unknown


def test_a_session_is_named_by_itself_or_by_its_file() -> None:
    assert session(*TALK, sessionId="other").heads[0].session == "other"
    assert session(*TALK, sessionId=None).heads[0].session == "2b6e"


def test_the_sources_own_names_of_messages_are_used_once_each() -> None:
    parsed = session(item("user", "One", id="m"), item("user", "Two", id="m"))
    assert [exchange.id for exchange in parsed.exchanges] == ["m", "message-1"]


def test_the_model_is_that_of_the_log_or_of_the_session() -> None:
    assert session(*TALK).exchanges[0].model == "llama"
    assert session(*TALK, chatModelTitle="opus").exchanges[1].model == "opus"


def test_the_names_of_what_was_given_along_are_kept_and_its_content_is_not() -> None:
    along = {
        "contextItems": [{"name": "till.py", "content": "secret", "description": "a"}, {"name": ""}]
    }
    parsed = session(item("user", "See", along))
    assert parsed.said == [("See", "")]
    assert parsed.exchanges[0].tools == ("[context] till.py",)
    assert session(item("user", "", along)).said == [("[till.py]", "")]


def test_images_are_marked() -> None:
    parts = [
        {"type": "text", "text": "See"},
        {"type": "imageUrl", "imageUrl": {"url": "data:image/png;base64,AAAA"}},
    ]
    assert session(item("user", parts)).said == [("See\n\n[image]", "")]


def test_calls_of_tools_are_lines_and_changed_files_are_named() -> None:
    calls = [
        call("builtin_run_terminal_command", '{"command": "ls\\n-l"}'),
        call("builtin_edit_existing_file", '{"filepath": "till.py", "changes": "a"}'),
        call("builtin_read_file", '{"filepath": "door.py"}'),
        call("Edit", '{"file_path": "wall.py"}'),
        call("broken", '{"a'),
    ]
    parsed = session(
        TALK[0],
        item("assistant", "", toolCalls=calls),
        item("tool", "output"),
        item("assistant", "Done."),
    )
    assert parsed.said == [("Where is the till?", "Done.")]
    assert parsed.exchanges[0].tools == (
        "[builtin_run_terminal_command] ls -l", "[builtin_edit_existing_file] till.py", "[builtin_read_file] door.py",
        "[Edit] wall.py", '[broken] {"a',
    )  # fmt: skip
    assert parsed.exchanges[0].files == ("till.py", "wall.py")


def test_calls_can_stand_beside_the_message() -> None:
    states = {"toolCallStates": [{"toolCall": call("run", '{"command": "ls"}'), "status": "done"}]}
    assert session(TALK[0], item("assistant", "", states)).exchanges[0].tools == ("[run] ls",)


def test_thinking_and_system_texts_are_no_prose() -> None:
    parsed = session(
        item("system", "Be brief"),
        TALK[0],
        item("thinking", "hm"),
        item("assistant", "Done.", {"reasoning": {"text": "hm"}}),
    )
    assert parsed.said == [("Where is the till?", "Done.")]
    assert not parsed.unknown


def test_what_is_unknown_is_counted() -> None:
    parsed = session(*TALK, item("narrator", "Once"), {"role": "user", "content": "flat"}, 7)
    assert parsed.unknown == {"role narrator": 1, "item without a message": 2}
    assert parsed.said == session(*TALK).said


@pytest.mark.parametrize("data", [b'{"history": [', b'{"history": {"timeline": []}}', b"7"])
def test_a_file_without_a_history_is_counted(data: bytes) -> None:
    parsed = parse_transcript(continue_dev, MemoryTranscript(PATH, data))
    assert sum(parsed.unknown.values()) == 1
    assert not parsed.exchanges


DOCUMENT = document(
    *TALK,
    item("user", [{"type": "imageUrl"}], {"contextItems": [{"name": "a"}]}, id="m"),
    item("assistant", "", {"promptLogs": [LOG]}, toolCalls=[call("Edit", '{"file_path": "a"}')]),
    item("assistant", "", {"toolCallStates": [{"toolCall": call("a", "[]")}]}),
)


@settings(deadline=None)
@given(broken(DOCUMENT))
def test_nothing_that_is_broken_raises(data: bytes) -> None:
    survives(continue_dev, PATH, data)
