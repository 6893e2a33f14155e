"""Copilot Chat: a request is an exchange; the log of changes gives the same as the document."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from sources.conversations.formats.carriers import (
    MemoryTranscript,
    ParsedTranscript,
    jsonl,
    parse_transcript,
    recognised,
)
from sources.conversations.formats.everywhere import everywhere
from sources.conversations.formats.mutations import broken, survives

from anchord.sources.conversations.formats import vscode_copilot

DOCUMENT = "Code/User/workspaceStorage/0a1b/chatSessions/s1.json"
LOG = "Code/User/globalStorage/emptyWindowChatSessions/s1.jsonl"
SAMPLES = Path("/work/shared/samples/vscode_copilot")


def request(key: str, said: object, *response: object, **more: object) -> dict[str, Any]:
    return {"requestId": key, "message": {"text": said, "parts": []}, "response": list(response),
            "timestamp": 1_755_347_728_047, "modelId": "copilot/gpt-5", **more}  # fmt: skip


def part(kind: str, **more: object) -> dict[str, object]:
    return {"kind": kind, **more}


def call(tool: str, **more: object) -> dict[str, object]:
    return part("toolInvocationSerialized", toolId=tool, **more)


def prose(value: str) -> dict[str, object]:
    return {"value": value, "isTrusted": False}


def session(*requests: object, **more: object) -> dict[str, Any]:
    return {"version": 3, "responderUsername": "GitHub Copilot", "requests": list(requests), "sessionId": "s1",
            "creationDate": 1_755_347_684_754, "lastMessageDate": 1_755_347_728_048, "customTitle": "Bread",
            **more}  # fmt: skip


def document(*requests: object, **more: object) -> ParsedTranscript:
    return parse_transcript(
        vscode_copilot,
        MemoryTranscript(DOCUMENT, json.dumps(session(*requests, **more), indent=1).encode()),
    )


def log(*entries: object) -> ParsedTranscript:
    return parse_transcript(vscode_copilot, MemoryTranscript(LOG, jsonl(*entries)))


def begun(*requests: object) -> dict[str, object]:
    return {"kind": 0, "v": session(*requests)}


def put(value: object, *keys: object) -> dict[str, object]:
    return {"kind": 1, "k": list(keys), "v": value}


def push(
    *values: object, to: tuple[object, ...] = ("requests",), **more: object
) -> dict[str, object]:
    return {"kind": 2, "k": list(to), "v": list(values), **more}


def superseded(parsed: ParsedTranscript) -> list[tuple[str, str]]:
    return [
        (exchange.question, exchange.answer) for exchange in parsed.exchanges if exchange.superseded
    ]


RYE = request("r1", "How long does rye rise?", prose("Two hours."))
WHEAT = request("r2", "And wheat?", prose("One "), prose("hour."))
SAID = [("How long does rye rise?", "Two hours."), ("And wheat?", "One hour.")]


def test_the_source_has_its_name() -> None:
    assert vscode_copilot.SOURCE == "vscode-copilot"


@pytest.mark.parametrize(
    "key", ["responderUsername", "requesterUsername", "initialLocation", "creationDate"]
)
def test_a_document_with_requests_is_a_session(key: str) -> None:
    assert recognised(
        vscode_copilot,
        MemoryTranscript("any.json", json.dumps({key: 1, "requests": [RYE]}).encode()),
    )


def test_a_long_first_request_does_not_hide_a_session_in_its_folder() -> None:
    head = b'{"version": 3, "requests": [{"requestId": "r1", "message": {"text": "' + b"x" * 70_000
    assert recognised(vscode_copilot, MemoryTranscript(DOCUMENT, head))
    assert not recognised(vscode_copilot, MemoryTranscript("elsewhere.json", head))


def test_a_log_is_known_by_its_first_line_though_that_is_longer_than_a_head() -> None:
    first = jsonl(begun(request("r1", "x" * 70_000)))
    assert recognised(vscode_copilot, MemoryTranscript("any.jsonl", first))
    assert recognised(
        vscode_copilot,
        MemoryTranscript(
            LOG, first.replace(b"responderUsername", b"x").replace(b"creationDate", b"y")
        ),
    )


@pytest.mark.parametrize(
    ("path", "data"),
    [
        ("transcripts/s1.jsonl", jsonl({"type": "session.start", "data": {"creationDate": 1}})),
        ("a.jsonl", jsonl({"kind": 1, "k": ["creationDate"], "v": {}})),
        ("a.jsonl", jsonl({"kind": 0, "v": {"anything": 1}})),
        ("a.json", b'{"requests": [{"url": "/"}]}'),
        ("a.json", b'{"creationDate": 1, "messages": [{"text": "\\"requests\\""}]}'),
        ("a.txt", json.dumps(session(RYE)).encode()),
    ],
)
def test_other_files_are_not_sessions(path: str, data: bytes) -> None:
    assert not recognised(vscode_copilot, MemoryTranscript(path, data))


def test_a_request_is_an_exchange() -> None:
    parsed = document(RYE, WHEAT)
    assert parsed.said == SAID
    assert [exchange.id for exchange in parsed.exchanges] == ["r1", "r2"]
    assert (parsed.exchanges[0].at, parsed.exchanges[0].model) == (
        "2025-08-16T12:35:28.047Z",
        "copilot/gpt-5",
    )
    assert (parsed.heads[0].session, parsed.title, parsed.heads[0].updated) == (
        "s1",
        "Bread",
        "2025-08-16T12:35:28.048Z",
    )
    assert not parsed.unknown


def test_an_answer_ends_when_it_was_complete() -> None:
    assert (
        document({**RYE, "modelState": {"value": 1, "completedAt": 1_755_347_800_000}})
        .exchanges[0]
        .until
        > "2025-08-16T12:36"
    )


def test_an_unanswered_question_is_an_exchange() -> None:
    assert document(request("r1", "Hello?"), WHEAT).said == [("Hello?", ""), SAID[1]]


def test_old_requests_are_a_text_and_have_no_id() -> None:
    old = {"message": "Hello?", "response": [prose("Hi.")], "providerRequestId": None}
    parsed = document(old, old, sessionId=None, customTitle=None, computedTitle="Old")
    assert parsed.said == [("Hello?", "Hi.")] * 2
    assert [exchange.id for exchange in parsed.exchanges] == ["request-0", "request-1"]
    assert (parsed.heads[0].session, parsed.title) == ("s1", "Old")


def test_two_requests_with_one_id_are_two_exchanges() -> None:
    assert document(RYE, {**WHEAT, "requestId": "r1"}).said == SAID


def test_texts_are_joined_without_anything_between_them() -> None:
    parts = [
        prose("Use "),
        part("markdownContent", content=prose("`a`\n\n```py\n")),
        part("markdownVuln", content="x = 1\n"),
        prose("```"),
    ]
    assert document(request("r1", "How?", *parts)).said == [
        ("How?", "Use `a`\n\n```py\nx = 1\n```")
    ]


def test_a_reference_is_its_name() -> None:
    uri = {"$mid": 1, "path": "/w/oven.py", "scheme": "file"}
    references = [
        uri,
        {"uri": uri, "range": {}},
        {"name": "bake()", "location": {"uri": uri}},
        {"location": {"uri": uri}},
    ]
    parts = [part("inlineReference", inlineReference=each) for each in references]
    named = part("inlineReference", inlineReference=uri, name="the oven")
    parsed = document(request("r1", "Where?", prose("In "), *parts, prose(", see "), named))
    assert parsed.said == [("Where?", "In oven.pyoven.pybake()oven.py, see the oven")]


def test_calls_of_tools_are_lines() -> None:
    calls = [
        call(
            "run_in_terminal",
            toolSpecificData={"commandLine": {"original": "ls", "userEdited": "ls -l"}},
        ),
        call("run_in_terminal", toolSpecificData={"commandLine": {"original": "id"}}),
        call("run_in_terminal", toolSpecificData={"command": "pwd"}),
        call("copilot_readFile", pastTenseMessage={"value": "Read oven.py"}),
        call("copilot_think", invocationMessage="Thinking"),
        part("toolInvocationSerialized"),
    ]
    assert document(request("r1", "Go", *calls)).said == [("Go", "")]
    parsed = document(request("r1", "Go", *calls, prose("Done.")))
    assert parsed.said == [("Go", "Done.")]
    assert parsed.exchanges[0].tools == (
        "[run_in_terminal] ls -l",
        "[run_in_terminal] id",
        "[run_in_terminal] pwd",
        "[copilot_readFile] Read oven.py",
        "[copilot_think] Thinking",
        "[tool]",
    )


def test_edited_files_are_named_and_their_texts_are_no_prose() -> None:
    edits = [part("textEditGroup", uri={"path": "/w/oven.py"}, edits=[[{"text": "secret"}]]),
             part("notebookEditGroup", uri={"fsPath": "/w/a.ipynb"}, edits=[]), part("textEditGroup")]  # fmt: skip
    parsed = document(
        request(
            "r1",
            "Go",
            prose("Now:"),
            part("codeblockUri", uri={"path": "/w/x.py"}),
            *edits,
            part("undoStop"),
        )
    )
    assert parsed.said == [("Go", "Now:")]
    assert parsed.exchanges[0].files == ("/w/oven.py", "/w/a.ipynb")


@pytest.mark.parametrize(
    "kind",
    [
        "thinking",
        "prepareToolInvocation",
        "progressMessage",
        "warning",
        "confirmation",
        "mcpServersStarting",
    ],
)
def test_other_parts_are_no_prose(kind: str) -> None:
    parsed = document(
        request("r1", "Go", part(kind, value="secret", content={"value": "secret"}), prose("Done."))
    )
    assert parsed.said == [("Go", "Done.")]
    assert not parsed.unknown


def test_unknown_parts_are_counted() -> None:
    parsed = document(
        request("r1", "Go", part("dream", value="secret"), {"x": 1}, "y", prose("Done."))
    )
    assert parsed.said == [("Go", "Done.")]
    assert parsed.unknown == {"part dream": 1, "part without a kind": 2}


def test_what_was_typed_in_answer_to_the_assistants_questions_is_a_question() -> None:
    answers = {"t:0": {"freeformValue": "Only rye"}, "t:1": {"selectedValue": "Yes"}}
    carousel = part("questionCarousel", resolveId="t", isUsed=True, data=answers)
    parsed = document(request("r1", "Bake", prose("Sure."), carousel, prose("Rye it is.")), WHEAT)
    assert parsed.said == [("Bake", "Sure."), ("Only rye", "Rye it is."), SAID[1]]
    assert [exchange.id for exchange in parsed.exchanges] == ["r1", "r1~t", "r2"]


def test_an_answer_that_was_only_chosen_is_not_typed() -> None:
    carousel = part(
        "questionCarousel", resolveId="t", isUsed=True, data={"t:0": {"selectedValue": "Yes"}}
    )
    parsed = document(request("r1", "Bake", prose("Sure, "), carousel, prose("yes.")))
    assert parsed.said == [("Bake", "Sure, yes.")]
    assert not parsed.unknown


def test_images_and_pasted_texts_come_along_with_the_question() -> None:
    variables = [{"kind": "image", "name": "oven.png"}, {"kind": "paste", "name": "Pasted", "code": "a = 1\nb = 2"},
                 {"kind": "file", "name": "x.py", "value": {"path": "/x.py"}}]  # fmt: skip
    parsed = document(request("r1", "Why?", prose("So."), variableData={"variables": variables}))
    assert parsed.said == [("Why?\n\n[image]", "So.")]
    assert [
        (each.question, each.answer) for each in parsed.exchanges if each.kind == "attachment"
    ] == [("Pasted", "a = 1\nb = 2")]


@pytest.mark.parametrize(
    "flag", ["isSystemInitiated", "hiddenFromTranscript", "requestHiddenFromTranscript"]
)
def test_a_request_that_vs_code_made_itself_belongs_to_the_question_before(flag: str) -> None:
    made = request("r9", "Terminal 1 has finished", prose("It is ready."), **{flag: True})
    assert document(RYE, made, WHEAT).said == [
        ("How long does rye rise?", "Two hours.\n\nIt is ready."),
        SAID[1],
    ]


def test_a_request_that_was_undone_is_superseded() -> None:
    parsed = document(RYE, {**WHEAT, "shouldBeRemovedOnSend": {"requestId": "r2"}})
    assert parsed.said == SAID[:1]
    assert superseded(parsed) == SAID[1:]
    assert superseded(document(RYE, {**WHEAT, "isHidden": True})) == SAID[1:]


def test_a_request_of_which_a_part_was_undone_is_not() -> None:
    assert (
        document(
            RYE, {**WHEAT, "shouldBeRemovedOnSend": {"requestId": "r2", "afterUndoStop": "u"}}
        ).said
        == SAID
    )


def test_a_log_is_replayed() -> None:
    asked = {**RYE, "response": []}
    parsed = log(
        begun(),
        push(asked),
        push(prose("Two hou"), to=("requests", 0, "response")),
        push(prose("Two hours."), to=("requests", 0, "response"), i=0),
        put("Rye", "customTitle"),
        push(WHEAT),
        {"kind": 3, "k": ["requests", 1, "modelId"]},
    )
    assert parsed.said == SAID
    assert parsed.title == "Rye"
    assert [exchange.model for exchange in parsed.exchanges] == ["copilot/gpt-5", ""]
    assert superseded(parsed) == []
    assert not parsed.unknown


def test_an_edited_question_and_all_after_it_are_superseded() -> None:
    parsed = log(begun(RYE, WHEAT), push(request("r3", "And spelt?", prose("No idea.")), i=0))
    assert parsed.said == [("And spelt?", "No idea.")]
    assert superseded(parsed) == SAID


def test_a_cut_alone_supersedes() -> None:
    parsed = log(begun(RYE, WHEAT), {"kind": 2, "k": ["requests"], "i": 1})
    assert (parsed.said, superseded(parsed)) == (SAID[:1], SAID[1:])


def test_a_request_that_was_thrown_out_and_comes_back_is_active() -> None:
    parsed = log(
        begun(RYE, WHEAT), push(WHEAT, i=1), put([RYE, WHEAT], "requests"), begun(RYE, WHEAT)
    )
    assert (parsed.said, superseded(parsed)) == (SAID, [])


def test_what_a_request_of_vs_code_said_is_not_put_to_another_question_when_it_is_thrown_out() -> (
    None
):
    made = request("r9", "Terminal 1 has finished", prose("It is ready."), isSystemInitiated=True)
    parsed = log(begun(RYE, made), push(WHEAT, i=1))
    assert (parsed.said, superseded(parsed)) == (SAID, [("", "It is ready.")])


def test_a_rewritten_log_begins_again() -> None:
    parsed = log(begun(RYE), push(WHEAT), begun(WHEAT))
    assert (parsed.said, superseded(parsed)) == (SAID[1:], SAID[:1])


@pytest.mark.parametrize(
    "entry",
    [
        {"kind": 0, "v": [1]},
        {"kind": 7},
        {"k": ["requests"]},
        put(1),
        put(1, "requests", 9),
        put(1, "requests", "x"),
        put(1, "nothing", "x"),
        put(1, "customTitle", "x"),
        put(1, {}, "x"),
        push(1, to=("customTitle", 0)),
        push(1, to=("version",)),
        push(1, i="x"),
        {"kind": 3, "k": ["requests", 10**30]},
    ],
)
def test_a_change_that_does_not_fit_is_counted_and_changes_nothing(
    entry: dict[str, object],
) -> None:
    parsed = log(begun(RYE), entry, push(WHEAT))
    assert parsed.said == SAID
    assert parsed.unknown == {"change that does not fit": 1}


def test_changes_without_a_beginning_give_what_they_can() -> None:
    parsed = log(push(RYE), push(WHEAT))
    assert parsed.said == SAID
    assert parsed.heads[0].session == "s1"


def test_a_broken_line_loses_no_other() -> None:
    parsed = parse_transcript(
        vscode_copilot,
        MemoryTranscript(LOG, jsonl(begun(RYE)) + b'{"kind": 1, "k": [\n' + jsonl(push(WHEAT))),
    )
    assert parsed.said == SAID
    assert parsed.unknown == {"broken line": 1}


def test_a_document_without_sense_yields_nothing() -> None:
    parsed = parse_transcript(
        vscode_copilot, MemoryTranscript(DOCUMENT, b'{"requests": [{"message"')
    )
    assert (parsed.exchanges, parsed.unknown) == ([], {"broken JSON": 1})


@pytest.mark.parametrize("depth", range(800, 1000, 10))
def test_nesting_beyond_measure_and_numbers_beyond_measure_are_survived(depth: int) -> None:
    deep = f'{{"kind": "toolInvocationSerialized", "toolSpecificData": {{"command": {"[" * depth}{"]" * depth}}}}}'
    absurd = (
        f'{{"requestId": "r0", "message": "x", "timestamp": 1{"0" * 400}, "response": [{deep}]}}'
    )
    data = (
        json.dumps(session(RYE, "HERE", WHEAT, lastMessageDate="THERE"))
        .replace('"HERE"', absurd)
        .replace('"THERE"', "9" * 400)
    )
    parsed = parse_transcript(vscode_copilot, MemoryTranscript(DOCUMENT, data.encode()))
    assert [each for each in parsed.said if each[0] != "x"] == SAID or parsed.unknown == {
        "broken JSON": 1
    }


EVERYTHING = [
    RYE,
    WHEAT,
    request(
        "r3",
        "Go",
        call("t", toolSpecificData={"commandLine": {"original": "ls"}}),
        part("inlineReference", inlineReference={"uri": {"path": "/a"}}),
        part("textEditGroup", uri={"path": "/a"}),
        part("questionCarousel", resolveId="t", data={"t:0": {"freeformValue": "x"}}),
        modelState={"completedAt": 1},
        variableData={"variables": [{"kind": "paste", "code": "x"}]},
        shouldBeRemovedOnSend={"requestId": "r3"},
    ),
]
CHANGES = [
    begun(RYE),
    push(*EVERYTHING[1:]),
    put("t", "customTitle"),
    push(prose("x"), to=("requests", 0, "response"), i=0),
    push(WHEAT, i=1),
    {"kind": 3, "k": ["requests", 0, "modelId"]},
]


def test_any_value_at_any_place_is_survived() -> None:
    for record in everywhere(session(*EVERYTHING)):
        survives(vscode_copilot, DOCUMENT, json.dumps(record).encode())
    for records in everywhere([begun(RYE), *CHANGES[2:]]):
        survives(vscode_copilot, LOG, jsonl(*records))


@given(broken(session(*EVERYTHING)))
def test_no_document_raises(data: bytes) -> None:
    survives(vscode_copilot, DOCUMENT, data)


@given(broken(CHANGES, lines=True))
def test_no_log_raises(data: bytes) -> None:
    survives(vscode_copilot, LOG, data)


@given(st.lists(st.tuples(st.integers(0, 4), st.integers(0, 3)), max_size=12))
def test_whatever_is_thrown_out_every_question_is_read_once(cuts: list[tuple[int, int]]) -> None:
    """Cut off all requests from one on, and add a few new ones."""
    entries, active, typed = [begun()], list[str](), list[str]()
    for number, (cut, count) in enumerate(cuts):
        fresh = [f"q{number}-{each}" for each in range(count)]
        entries.append(push(*(request(key, key) for key in fresh), i=cut))
        active[cut:] = fresh
        typed += fresh
    parsed = log(*entries)
    assert [question for question, _ in parsed.said] == active
    assert sorted(exchange.question for exchange in parsed.exchanges) == sorted(typed)


def test_a_log_of_one_line_gives_the_same_as_the_document() -> None:
    parsed, whole = log(begun(*EVERYTHING)), document(*EVERYTHING)
    assert parsed == whole


@pytest.mark.skipif(not SAMPLES.exists(), reason="the samples are not on this machine")
@pytest.mark.parametrize(
    ("name", "title", "tools"),
    [
        ("chatSession.json", "Tool session", ("[copilot_readFile]",)),
        ("chatSession_oplog.jsonl", "Renamed", ()),
    ],
)
def test_the_samples_are_read_in_full(name: str, title: str, tools: tuple[str, ...]) -> None:
    parsed = parse_transcript(vscode_copilot, MemoryTranscript(name, (SAMPLES / name).read_bytes()))
    assert parsed.said == [("Read the file", "Reading the file... Done reading.")]
    assert (parsed.title, parsed.exchanges[0].tools, parsed.exchanges[0].id) == (
        title,
        tools,
        "req1",
    )
    assert not parsed.unknown
