"""Cline and Roo Code: the visible chat is read; the model's input file is recognised and gives nothing."""

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

from anchord.sources.conversations.formats import cline

PATH = "tasks/1767323045678/ui_messages.json"
BEGIN = 1_767_323_045_678


def said(number: int, kind: str, text: str = "", **more: object) -> dict[str, Any]:
    return {"ts": BEGIN + number * 1000, "type": "say", "say": kind, "text": text, **more}


def put(number: int, kind: str, text: str = "", **more: object) -> dict[str, Any]:
    return {"ts": BEGIN + number * 1000, "type": "ask", "ask": kind, "text": text, **more}


def task(*messages: object, path: str = PATH) -> ParsedTranscript:
    return parse_transcript(cline, MemoryTranscript(path, json.dumps(messages).encode()))


TALK = [said(0, "task", "Where is the till?"), said(1, "text", "I look."), said(2, "completion_result", "At the door."),
        said(3, "user_feedback", "And why?"), said(4, "text", "It was cheap.")]  # fmt: skip


@pytest.mark.parametrize("name", ["ui_messages.json", "claude_messages.json"])
def test_what_was_seen_is_a_task(name: str) -> None:
    assert recognised(cline, MemoryTranscript(f"tasks/1/{name}", json.dumps(TALK).encode()))


def test_another_file_is_no_task() -> None:
    assert not recognised(
        cline, MemoryTranscript("tasks/1/messages.json", json.dumps(TALK).encode())
    )
    assert not recognised(cline, MemoryTranscript(PATH, b'[{"hello": 1}]'))
    assert not recognised(cline, MemoryTranscript("api_conversation_history.json", b'{"hello": 1}'))


@pytest.mark.parametrize(
    ("name", "content"),
    [
        (
            "api_conversation_history.json",
            [{"role": "user", "content": [{"type": "text", "text": "<task>Where?</task>"}]}],
        ),
        ("task_metadata.json", {"files_in_context": [{"path": "a.py"}]}),
    ],
)
def test_the_other_files_of_a_task_are_known_and_give_nothing(name: str, content: object) -> None:
    carrier = MemoryTranscript(f"tasks/1/{name}", json.dumps(content).encode())
    assert recognised(cline, carrier)
    parsed = parse_transcript(cline, carrier)
    assert (parsed.exchanges, parsed.heads, parsed.unknown) == ([], [], {})


def test_the_task_and_what_is_fed_back_are_questions() -> None:
    parsed = task(*TALK)
    assert parsed.said == [
        ("Where is the till?", "I look.\n\nAt the door."),
        ("And why?", "It was cheap."),
    ]
    assert [exchange.id for exchange in parsed.exchanges] == [str(BEGIN), str(BEGIN + 3000)]
    assert parsed.exchanges[0].at == "2026-01-02T03:04:05.678Z"
    assert parsed.heads[0].session == "1767323045678"
    assert not parsed.unknown


def test_the_first_text_is_the_task_where_none_is_named() -> None:
    parsed = task(said(0, "text", "Where is the till?"), said(1, "text", "At the door."))
    assert parsed.said == [("Where is the till?", "At the door.")]


def test_images_are_marked() -> None:
    parsed = task(
        said(0, "task", "See", images=["data:image/png;base64,AAAA"]),
        said(1, "user_feedback", "", images=["data:"]),
    )
    assert parsed.said == [("See\n\n[image]", ""), ("[image]", "")]


def test_a_result_that_is_said_and_asked_is_read_once_and_without_its_flag() -> None:
    done = [
        said(1, "completion_result", "Done.HAS_CHANGES"),
        said(2, "checkpoint_created"),
        put(3, "completion_result", "Done."),
    ]
    assert task(said(0, "task", "Go"), *done).said == [("Go", "Done.")]


def test_a_result_that_is_only_asked_is_read() -> None:
    assert task(said(0, "task", "Go"), put(1, "completion_result", "Done.")).said == [
        ("Go", "Done.")
    ]


def test_a_question_to_the_person_is_an_answer_and_the_chosen_option_is_typed() -> None:
    asked = json.dumps(
        {"question": "Which door?", "options": ["Left", "Right"], "selected": "Left"}
    )
    parsed = task(said(0, "task", "Go"), put(1, "followup", asked), said(2, "text", "Left it is."))
    assert parsed.said == [("Go", "Which door?"), ("Left", "Left it is.")]
    assert parsed.exchanges[1].id == f"{BEGIN + 1000}-selected"


def test_a_question_to_the_person_can_be_plain_or_have_suggestions() -> None:
    suggested = json.dumps({"question": "Which door?", "suggest": [{"answer": "Left"}]})
    parsed = task(
        said(0, "task", "Go"), put(1, "followup", "Which till?"), put(2, "followup", suggested)
    )
    assert parsed.said == [("Go", "Which till?\n\nWhich door?")]


@pytest.mark.parametrize("kind", ["plan_mode_respond", "act_mode_respond"])
def test_a_plan_is_prose(kind: str) -> None:
    plan = json.dumps({"response": "First\n\n- a door", "options": []})
    assert task(said(0, "task", "Go"), put(1, kind, plan)).said == [("Go", "First\n\n- a door")]


def test_calls_of_tools_are_lines_and_changed_files_are_named() -> None:
    parsed = task(
        said(0, "task", "Go"),
        said(
            1,
            "tool",
            json.dumps({"tool": "editedExistingFile", "path": "till.py", "diff": "-a\n+b"}),
        ),
        put(2, "tool", json.dumps({"tool": "readFile", "path": "door.py", "content": "/door.py"})),
        put(3, "command", "ls\n-lREQ_APP"),
        put(4, "command_output", "output"),
        put(
            5,
            "use_mcp_server",
            json.dumps({"serverName": "s", "toolName": "find", "arguments": '{"query": "till"}'}),
        ),
        said(6, "browser_action_launch", "https://example.org"),
        said(7, "browser_action", json.dumps({"action": "click", "coordinate": "1,2"})),
        said(
            8,
            "tool",
            json.dumps({"tool": "appliedDiff", "batchDiffs": [{"path": "a.py"}, {"path": "b.py"}]}),
        ),
        said(9, "text", "Done."),
    )
    assert parsed.said == [("Go", "Done.")]
    assert parsed.exchanges[0].tools == (
        "[editedExistingFile] till.py", "[readFile] door.py", "[command] ls -l", "[s/find] till",
        "[browser_action_launch] https://example.org", "[click] 1,2", "[appliedDiff]",
    )  # fmt: skip
    assert parsed.exchanges[0].files == ("till.py", "a.py", "b.py")


def test_the_folder_stands_in_what_went_to_the_model() -> None:
    request = json.dumps(
        {"request": "<task>Go</task>\n# Current Working Directory (C:\\shop) Files\na.py"}
    )
    roo = json.dumps({"request": "# Current Workspace Directory (/home/ann/shop) Files"})
    assert (
        task(
            said(0, "task", "Go"),
            said(1, "api_req_started", request),
            said(2, "api_req_started", roo),
        ).project
        == "C:\\shop"
    )
    assert task(said(0, "task", "Go"), said(2, "api_req_started", roo)).project == "/home/ann/shop"


def test_the_model_is_read_where_a_message_names_it() -> None:
    assert (
        task(said(0, "task", "Go"), said(1, "text", "Done.", modelInfo={"modelId": "opus"}))
        .exchanges[0]
        .model
        == "opus"
    )


def test_reasoning_results_and_notices_are_no_prose() -> None:
    parsed = task(
        *TALK, said(5, "reasoning", "hm"), said(6, "error", "no"), said(7, "mcp_server_response", "{}"), put(8, "resume_task"),
        said(9, "user_feedback_diff", "{}"), said(10, "condense_context", "sum"), said(11, "hook_output_stream", "out"),
        said(12, "text", "", reasoning="hm"),
    )  # fmt: skip
    assert parsed.said == task(*TALK).said
    assert not parsed.unknown


def test_two_messages_of_one_moment_have_different_names() -> None:
    parsed = task(said(0, "task", "One"), said(0, "user_feedback", "Two"))
    assert [exchange.id for exchange in parsed.exchanges] == [str(BEGIN), "message-1"]


def test_a_task_can_begin_with_a_question_to_the_person() -> None:
    assert task(put(0, "followup", "Which till?"), said(1, "text", "I look.")).said == [
        ("", "Which till?\n\nI look.")
    ]


def test_a_text_that_is_the_same_as_a_result_is_kept() -> None:
    parsed = task(
        said(0, "task", "Go"),
        said(1, "completion_result", "Done."),
        said(2, "text", "Done."),
        said(3, "text", " "),
    )
    assert parsed.said == [("Go", "Done.\n\nDone.")]


def test_a_command_in_json_and_calls_without_a_name_are_lines() -> None:
    parsed = task(
        said(0, "task", "Go"), put(1, "command", '{"path": "a"}'), said(2, "tool", '{"path": "b"}'),
        put(3, "use_mcp_server", '{"uri": "c", "arguments": {"query": "d"}}'), said(4, "text", "Done."),
    )  # fmt: skip
    assert parsed.exchanges[0].tools == (
        '[command] {"path": "a"}',
        "[tool] b",
        "[use_mcp_server] d",
    )


def test_only_what_went_to_the_model_names_the_folder() -> None:
    request = json.dumps({"request": "# Current Working Directory (/home/ann/shop) Files"})
    assert task(said(0, "task", "Go"), said(1, "error", request)).project == ""


def test_a_message_without_a_time_is_named_by_its_place() -> None:
    assert [
        each.id for each in task({"say": "task", "type": "say", "text": "Go", "ts": None}).exchanges
    ] == ["message-0"]


def test_a_file_without_a_folder_is_named_by_itself() -> None:
    assert task(*TALK, path="ui_messages.json").heads[0].session == "ui_messages.json"


def test_what_is_seen_is_an_array_of_what_is_said_or_asked() -> None:
    assert not recognised(cline, MemoryTranscript(PATH, b'{"say": "text"}'))
    assert recognised(
        cline, MemoryTranscript(PATH, b'\xef\xbb\xbf [{"type": "x", "ask": "followup"}]')
    )


def test_what_is_unknown_is_counted() -> None:
    parsed = task(*TALK, said(5, "novel", "text"), {"ts": 1}, "no message")
    assert parsed.unknown == {"message novel": 1, "message without a kind": 1, "no conversation": 1}
    assert parsed.said == task(*TALK).said


MESSAGES = [
    *TALK, put(5, "followup", json.dumps({"question": "a", "selected": "b"})), said(6, "api_req_started", '{"request": "a"}'),
    said(7, "tool", json.dumps({"tool": "appliedDiff", "batchDiffs": [{"path": "a"}]})), put(8, "command", "ls"),
    put(9, "use_mcp_server", json.dumps({"serverName": "s", "toolName": "t", "arguments": "[1"})),
    said(10, "task", "a", images=["b"]),
]  # fmt: skip


@settings(deadline=None)
@given(broken(MESSAGES))
def test_nothing_that_is_broken_raises(data: bytes) -> None:
    survives(cline, PATH, data)


@pytest.mark.parametrize(
    "inner",
    ["[" * 100_000, "{}", "null", "[1]", '"a"', "{", '{"tool": []}', '{"selected": 1}', "\ud800"],
)
@pytest.mark.parametrize(
    "kind", ["tool", "followup", "use_mcp_server", "command", "api_req_started", "browser_action"]
)
def test_broken_json_within_a_message_does_not_raise(kind: str, inner: str) -> None:
    assert task(
        said(0, "task", "Go"), said(1, kind, inner), put(2, kind, inner), said(3, "text", "Done.")
    ).exchanges
