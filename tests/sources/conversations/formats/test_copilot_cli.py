"""Copilot CLI: messages of the person and of the main agent are prose; events of sub-agents, tools and the session are not."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from sources.conversations.formats.carriers import (
    MemoryTranscript,
    ParsedTranscript,
    jsonl,
    parse_transcript,
    recognised,
)
from sources.conversations.formats.mutations import broken, survives

from anchord.sources.conversations.exchanges import build_exchanges
from anchord.sources.conversations.formats import copilot_cli

PATH = "session-state/9d1e/events.jsonl"
START = {"type": "session.start", "id": "s", "parentId": None, "timestamp": "2026-01-02T03:04:05.678Z",
         "data": {"sessionId": "9d1e", "producer": "copilot-agent", "context": {"cwd": "/home/ann/shop"}}}  # fmt: skip


def event(kind: str, key: str, /, agent: object = "", **data: object) -> dict[str, Any]:
    more = {"agentId": agent} if agent else {}
    return {
        "type": kind,
        "id": key,
        "parentId": None,
        "timestamp": "2026-01-02T03:05:00.000Z",
        "data": data,
        **more,
    }


def asked(key: str, said: str, **data: object) -> dict[str, Any]:
    return event(
        "user.message",
        key,
        content=said,
        transformedContent=f"<current_datetime>now</current_datetime>{said}",
        **data,
    )


def answered(key: str, said: str, **data: object) -> dict[str, Any]:
    return event("assistant.message", key, content=said, messageId=key, **data)


TALK = [
    asked("a", "Where is the till?"),
    answered("b", "At the door."),
    asked("c", "And why?"),
    answered("d", "It was cheap."),
]


def session(*events: object, path: str = PATH) -> ParsedTranscript:
    return parse_transcript(copilot_cli, MemoryTranscript(path, jsonl(*events)))


@pytest.mark.parametrize("path", [PATH, "session-state/9d1e.jsonl"])
def test_a_file_of_events_is_a_session(path: str) -> None:
    assert recognised(copilot_cli, MemoryTranscript(path, jsonl(START, *TALK)))
    assert session(START, *TALK, path=path).heads[0].session == "9d1e"


def test_transcripts_of_vs_code_are_those_of_another_family() -> None:
    start = {**START, "data": {**START["data"], "vscodeVersion": "1.110"}}  # type: ignore[dict-item]
    assert not recognised(copilot_cli, MemoryTranscript(PATH, jsonl(start, *TALK)))
    path = "workspaceStorage/1f/GitHub.copilot-chat/transcripts/9d1e.jsonl"
    assert not recognised(copilot_cli, MemoryTranscript(path, jsonl(START, *TALK)))


def test_other_lines_are_not_those_of_a_session() -> None:
    claude = {"type": "user", "message": {"role": "user", "content": "Hello"}, "uuid": "u"}
    assert not recognised(
        copilot_cli,
        MemoryTranscript(
            PATH, jsonl(claude, {"type": "session", "cwd": "/"}, {"type": "user.message"})
        ),
    )
    assert not recognised(copilot_cli, MemoryTranscript("events.json", jsonl(START, *TALK)))


def test_questions_and_answers_are_read_in_their_order() -> None:
    parsed = session(START, *TALK)
    assert parsed.said == [("Where is the till?", "At the door."), ("And why?", "It was cheap.")]
    assert [exchange.id for exchange in parsed.exchanges] == ["a", "c"]
    assert parsed.exchanges[0].at == "2026-01-02T03:05:00.000Z"
    assert parsed.project == "/home/ann/shop"
    assert not parsed.unknown


def test_without_a_start_the_folder_names_the_session() -> None:
    assert session(*TALK).heads[0].session == "9d1e"
    assert session(*TALK, path="9d1e.jsonl").heads[0].session == "9d1e"


def test_the_early_form_has_other_names_and_no_envelope() -> None:
    events = [
        {
            "type": "sessionStart",
            "session_id": "9d1e",
            "cwd": "/home/ann/shop",
            "timestamp": 1767323045678,
        },
        {"type": "userPromptSubmitted", "prompt": "Where is the till?", "timestamp": 1767323046000},
        {"type": "preToolUse", "toolName": "bash"},
        {"type": "assistantResponse", "result": "At the door.", "timestamp": 1767323047000},
    ]
    assert recognised(copilot_cli, MemoryTranscript("9d1e.jsonl", jsonl(*events)))
    parsed = session(*events, path="other.jsonl")
    assert parsed.said == [("Where is the till?", "At the door.")]
    assert parsed.exchanges[0].at == "2026-01-02T03:04:06.000Z"
    assert parsed.exchanges[0].id == f"at-{len(jsonl(events[0]))}"
    assert (parsed.heads[0].session, parsed.project) == ("9d1e", "/home/ann/shop")
    assert not parsed.unknown


def test_the_early_form_can_have_an_envelope() -> None:
    events = [
        {"type": "userpromptsubmitted", "data": {"prompt": "Where?"}},
        {"type": "assistantresponse", "data": {"result": "There."}},
    ]
    assert session(*events).said == [("Where?", "There.")]


def test_calls_of_tools_are_lines_and_changed_files_are_named() -> None:
    calls = [
        {"name": "bash", "arguments": {"command": "ls\n-l"}, "toolCallId": "1"},
        {"name": "edit", "arguments": {"path": "till.py", "old_str": "a"}},
        {
            "name": "apply_patch",
            "arguments": "*** Begin Patch\n*** Add File: door.py\n+a\n*** Update File: wall.py\n",
        },
    ]
    parsed = session(
        START,
        asked("a", "Go"),
        answered("b", "", toolRequests=calls),
        event("tool.execution_start", "e", toolName="bash", arguments={"command": "ls"}),
        event("tool.execution_complete", "f", result={"content": "output"}, model="gpt-5"),
        answered("c", "Done."),
    )
    assert parsed.said == [("Go", "Done.")]
    assert parsed.exchanges[0].tools[:2] == ("[bash] ls -l", "[edit] till.py")
    assert parsed.exchanges[0].files == ("till.py", "door.py", "wall.py")
    assert parsed.exchanges[0].model == "gpt-5"


def test_a_tool_that_a_person_asked_for_is_a_line() -> None:
    parsed = session(
        *TALK, event("tool.user_requested", "t", toolName="bash", arguments={"command": "ls"})
    )
    assert parsed.exchanges[-1].tools == ("[bash] ls",)


def test_reasoning_is_no_prose() -> None:
    parsed = session(
        asked("a", "Go"), event("assistant.reasoning", "r", content="hm"), answered("b", "hm", phase="thinking"),
        answered("c", "Done.", reasoningText="hm"),
    )  # fmt: skip
    assert parsed.said == [("Go", "Done.")]


def test_the_summary_of_a_completed_task_is_said() -> None:
    assert session(
        asked("a", "Go"), event("session.task_complete", "t", summary="All tidy.")
    ).said == [("Go", "All tidy.")]


@pytest.mark.parametrize("source", ["skill-pdf", "agent-1", "autopilot", "system", "schedule"])
def test_what_was_put_in_for_the_person_is_not_typed(source: str) -> None:
    assert session(*TALK, asked("x", "Injected", source=source)).said == session(*TALK).said


@pytest.mark.parametrize("source", ["user", "", "command"])
def test_what_a_person_typed_is_a_question(source: str) -> None:
    assert session(asked("x", "Typed", source=source)).said == [("Typed", "")]


def test_what_goes_on_by_itself_is_not_typed() -> None:
    assert (
        session(*TALK, asked("x", "Continue", isAutopilotContinuation=True)).said
        == session(*TALK).said
    )


def test_a_reminder_before_a_question_is_not_typed() -> None:
    assert session(asked("x", "<reminder>be brief</reminder>\nWhere?")).said == [("Where?", "")]


def test_sub_agents_are_no_part_of_the_conversation() -> None:
    parsed = session(
        *TALK,
        event("user.message", "x", "agent-1", content="Search"),
        event(
            "assistant.message", "y", "agent-1", content="Found", toolRequests=[{"name": "bash"}]
        ),
        answered("z", "Found", parentToolCallId="t"),
    )
    assert parsed.said == session(*TALK).said
    assert parsed.exchanges[-1].tools == ()


def test_a_rewind_leaves_what_came_after_it() -> None:
    parsed = session(
        START,
        *TALK,
        event("session.snapshot_rewind", "w", upToEventId="b", eventsRemoved=2),
        asked("e", "And when?"),
    )
    assert parsed.said == [("Where is the till?", "At the door."), ("And when?", "")]
    assert parsed.superseded == {"c"}


def test_a_rewind_to_a_question_leaves_it_too() -> None:
    assert session(
        START, *TALK, event("session.snapshot_rewind", "w", upToEventId="c")
    ).superseded == {"c"}


def test_a_rewind_to_something_unknown_leaves_nothing() -> None:
    assert (
        session(START, *TALK, event("session.snapshot_rewind", "w", upToEventId="q")).superseded
        == set()
    )


def test_titles_and_models_are_read() -> None:
    parsed = session(
        START,
        event("session.title_changed", "t", title="Shop"),
        event("session.model_change", "m", newModel="opus"),
        event("subagent.started", "u", model="small"),
        *TALK,
    )
    assert parsed.title == "Shop"
    assert parsed.exchanges[0].model == "opus"


def test_an_answer_names_its_model() -> None:
    parsed = session(
        START,
        asked("a", "Go"),
        answered("b", "Done.", model="opus"),
        asked("c", "On"),
        answered("d", "Yes."),
    )
    assert [exchange.model for exchange in parsed.exchanges] == ["opus", "opus"]


def test_a_sub_agents_model_is_not_that_of_the_session() -> None:
    parsed = session(
        START,
        answered("b", "Hi", model="opus"),
        event("tool.execution_complete", "t", "agent-1", model="small"),
        *TALK[2:],
    )
    assert parsed.exchanges[1].model == "opus"


def test_the_first_folder_is_the_project() -> None:
    moved = event("session.context_changed", "x", cwd="/home/ann/barn")
    assert session(START, moved, *TALK).project == "/home/ann/shop"
    assert session(moved, *TALK).project == "/home/ann/barn"
    assert session(event("tool.execution_start", "x", cwd="/home/ann/barn"), *TALK).project == ""


def test_a_file_without_a_folder_is_named_by_itself() -> None:
    assert session(*TALK, path="events.jsonl").heads[0].session == "events"


def test_an_empty_message_is_no_question() -> None:
    assert (
        session(
            *TALK, asked("x", ""), event("session.snapshot_rewind", "w", upToEventId="x")
        ).superseded
        == set()
    )


def test_only_what_changes_a_file_names_it() -> None:
    calls = [
        {"name": "view", "arguments": {"path": "door.py"}},
        {"name": "create", "arguments": {"file_path": "till.py"}},
        {"name": "edit", "arguments": {}},
        {"name": "apply_patch", "arguments": {"input": "*** Delete File: wall.py"}},
    ]
    assert session(asked("a", "Go"), answered("b", "Done.", toolRequests=calls)).exchanges[
        0
    ].files == ("till.py", "wall.py")


def test_a_repeated_event_is_read_once() -> None:
    assert session(*TALK, TALK[1]).said == session(*TALK).said


def test_reading_goes_on_from_a_question_under_the_same_names() -> None:
    data = jsonl(START, *TALK)
    carrier = MemoryTranscript("copy.jsonl", data)
    whole = parse_transcript(copilot_cli, carrier).exchanges
    later = list(build_exchanges(copilot_cli.read_events(carrier, whole[1].offset), first_number=1))
    assert later[1:] == whole[1:]
    assert later[0].session == "9d1e"  # type: ignore[union-attr]


def test_bookkeeping_is_passed_over_and_what_is_unknown_is_counted() -> None:
    parsed = session(
        event("hook.start", "h"), event("permission.requested", "p"), event("session.usage_info", "u"), event("abort", "z"),
        event("assistant.novel", "n"), event("user.novel", "o"), event("oracle.spoke", "q"), {"data": {}}, 7, *TALK,
    )  # fmt: skip
    assert parsed.unknown == {
        "assistant.novel": 1, "user.novel": 1, "oracle.spoke": 1, "event without a type": 1, "broken line": 1,
    }  # fmt: skip
    assert parsed.said == session(*TALK).said


RECORDS = [
    START, *TALK, event("session.snapshot_rewind", "w", upToEventId="b"), asked("x", "<reminder>a</reminder>b", source="user"),
    answered("y", "c", toolRequests=[{"name": "edit", "arguments": {"path": "a"}}, {"name": "apply_patch", "arguments": "p"}]),
    event("tool.user_requested", "t", toolName="bash", arguments={"command": "ls"}),
    {"type": "userPromptSubmitted", "prompt": "p"},
]  # fmt: skip


@settings(deadline=None)
@given(broken(RECORDS, lines=True))
def test_nothing_that_is_broken_raises(data: bytes) -> None:
    survives(copilot_cli, PATH, data)
