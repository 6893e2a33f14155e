"""Gemini CLI: every message is read despite rewrites of the log; rewound messages are superseded."""

from __future__ import annotations

import json
from pathlib import Path

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

from anchord.sources.conversations.formats import gemini_cli

LOG = ".gemini/tmp/bakery/chats/session-2026-05-01T10-00-aaaabbbb.jsonl"
DOCUMENT = f".gemini/tmp/{'0a' * 32}/chats/session-2025-09-01T10-00-aaaabbbb.json"
SAMPLES = Path("/work/shared/samples/gemini_cli")
START = "2026-05-01T10:00:00.000Z"
HEADER = {
    "sessionId": "s1",
    "projectHash": "0a" * 32,
    "startTime": START,
    "lastUpdated": START,
    "kind": "main",
}


def message(key: str, kind: str, content: object, **more: object) -> dict[str, object]:
    return {
        "id": key,
        "timestamp": "2026-05-01T10:00:01Z",
        "type": kind,
        "content": content,
        **more,
    }


def shown(*messages: object) -> dict[str, object]:
    return {"$set": {"messages": list(messages), "lastUpdated": START}}


def call(name: str, status: str = "success", **arguments: object) -> dict[str, object]:
    return {
        "id": "c",
        "name": name,
        "args": arguments,
        "status": status,
        "result": [{"functionResponse": {"output": "secret"}}],
    }


def log(*records: object) -> ParsedTranscript:
    return parse_transcript(gemini_cli, MemoryTranscript(LOG, jsonl(HEADER, *records)))


def document(*messages: object, **more: object) -> ParsedTranscript:
    data = json.dumps({**HEADER, "messages": list(messages), **more}, indent=2).encode()
    return parse_transcript(gemini_cli, MemoryTranscript(DOCUMENT, data))


def superseded(parsed: ParsedTranscript) -> list[tuple[str, str]]:
    return [
        (exchange.question, exchange.answer) for exchange in parsed.exchanges if exchange.superseded
    ]


TALK = [
    message("u1", "user", [{"text": "How long does rye rise?"}]),
    message("g1", "gemini", "Two hours.", model="gemini-3-pro"),
    message("u2", "user", [{"text": "And wheat?"}]),
    message("g2", "gemini", "One hour."),
]
SAID = [("How long does rye rise?", "Two hours."), ("And wheat?", "One hour.")]


def test_the_source_has_its_name() -> None:
    assert gemini_cli.SOURCE == "gemini-cli"


def test_a_log_that_begins_with_a_projects_hash_is_a_session() -> None:
    assert recognised(gemini_cli, MemoryTranscript("any.jsonl", jsonl(HEADER, *TALK)))


def test_a_document_with_messages_and_a_projects_hash_is_a_session() -> None:
    assert recognised(
        gemini_cli, MemoryTranscript("any.json", json.dumps({**HEADER, "messages": []}).encode())
    )


def test_a_document_is_known_by_its_folder_where_the_hash_is_far_behind() -> None:
    head = b'{"lastUpdated": "", "messages": ['
    assert recognised(gemini_cli, MemoryTranscript(DOCUMENT, head))
    assert not recognised(gemini_cli, MemoryTranscript("elsewhere.json", head))


@pytest.mark.parametrize(
    ("path", "data"),
    [
        (
            ".gemini/tmp/bakery/logs.json",
            b'[{"sessionId": "s1", "messageId": 0, "type": "user", "message": "hi"}]',
        ),
        (
            ".gemini/tmp/bakery/checkpoint-a.json",
            b'{"history": [{"role": "user", "parts": [{"text": "hi"}]}]}',
        ),
        (
            "a.jsonl",
            jsonl({"type": "user", "uuid": "u", "sessionId": "s", "message": {"content": "hi"}}),
        ),
        ("a.jsonl", jsonl({"type": "session", "sessionId": "s", "projectHash": "h"})),
        ("a.txt", jsonl(HEADER)),
    ],
)
def test_other_files_are_not_sessions(path: str, data: bytes) -> None:
    assert not recognised(gemini_cli, MemoryTranscript(path, data))


def test_questions_and_answers_of_a_log_are_read_in_their_order() -> None:
    parsed = log(*TALK)
    assert parsed.said == SAID
    assert [exchange.id for exchange in parsed.exchanges] == ["u1", "u2"]
    assert parsed.exchanges[0].at == "2026-05-01T10:00:01.000Z"
    assert parsed.exchanges[0].model == "gemini-3-pro"
    assert not parsed.unknown


def test_a_document_tells_the_same_as_a_log() -> None:
    assert document(*TALK).said == SAID
    assert not document(*TALK).unknown


def test_a_session_has_its_id_its_title_its_project_and_the_session_above() -> None:
    parsed = log({"$set": {"summary": "Bread", "lastUpdated": "2026-05-02T00:00:00Z"}}, *TALK)
    assert (parsed.heads[0].session, parsed.title, parsed.project) == ("s1", "Bread", "bakery")
    assert parsed.heads[0].updated == "2026-05-02T00:00:00.000Z"
    inner = MemoryTranscript(
        ".gemini/tmp/bakery/chats/s1/s2.jsonl", jsonl({**HEADER, "sessionId": "s2"}, *TALK)
    )
    assert [(head.session, head.parent) for head in parse_transcript(gemini_cli, inner).heads] == [
        ("s2", "s1")
    ]


def test_a_hash_is_no_project_and_a_lost_head_leaves_the_files_name() -> None:
    assert document(*TALK).project == ""
    parsed = parse_transcript(gemini_cli, MemoryTranscript(LOG, jsonl(*TALK)))
    assert parsed.heads[0].session == "session-2026-05-01T10-00-aaaabbbb"
    assert parsed.said == SAID


def test_a_message_that_is_written_again_replaces_itself_in_its_place() -> None:
    parsed = log(
        *TALK,
        message("g1", "gemini", "Three hours.", toolCalls=[call("read_file", file_path="rye.md")]),
    )
    assert parsed.said == [("How long does rye rise?", "Three hours."), SAID[1]]
    assert parsed.exchanges[0].tools == ("[read_file] rye.md",)


def test_what_is_rewound_to_goes_with_all_that_follows() -> None:
    parsed = log(
        *TALK,
        {"$rewindTo": "u2"},
        message("u3", "user", "And spelt?"),
        message("g3", "gemini", "No idea."),
    )
    assert gemini_cli._REWIND_OFFSET == 0
    assert parsed.said == [SAID[0], ("And spelt?", "No idea.")]
    assert superseded(parsed) == [SAID[1]]


def test_a_rewound_answer_has_its_question_again() -> None:
    parsed = log(*TALK[:2], {"$rewindTo": "g1"}, message("g3", "gemini", "Three hours."))
    assert parsed.said == [("How long does rye rise?", "Three hours.")]
    assert superseded(parsed) == [SAID[0]]
    assert len({exchange.id for exchange in parsed.exchanges}) == 2


def test_a_message_that_was_rewound_and_is_written_again_is_active() -> None:
    parsed = log(*TALK, {"$rewindTo": "u2"}, *TALK[2:])
    assert parsed.said == SAID
    assert superseded(parsed) == []


def test_all_can_be_rewound() -> None:
    parsed = log(*TALK, {"$rewindTo": "u1"})
    assert parsed.said == []
    assert superseded(parsed) == SAID


def test_a_rewind_to_an_unknown_message_loses_nothing() -> None:
    parsed = log(*TALK, {"$rewindTo": "gone"})
    assert parsed.said == SAID
    assert parsed.unknown == {"rewind to an unknown message": 1}


def test_what_the_model_is_shown_after_a_compression_is_not_what_was_said() -> None:
    summary = message("x1", "user", [{"text": "<state_snapshot>All of it</state_snapshot>"}])
    parsed = log(
        *TALK,
        shown(summary, message("x2", "gemini", "Got it."), message("x3", "user", "And wheat?")),
    )
    assert parsed.said == SAID


def test_a_rewind_after_a_compression_finds_the_message_by_its_text() -> None:
    copies = shown(
        message("x1", "user", [{"text": "And wheat?"}]), message("x2", "gemini", "One hour.")
    )
    parsed = log(*TALK, copies, {"$rewindTo": "x1"}, message("u3", "user", "And spelt?"))
    assert parsed.said == [SAID[0], ("And spelt?", "")]
    assert superseded(parsed) == [SAID[1]]
    assert not parsed.unknown


def test_where_a_log_has_nothing_else_what_the_model_was_shown_counts() -> None:
    parsed = log(shown(*TALK[:2]), shown(*TALK), {"$rewindTo": "u2"})
    assert parsed.said == SAID[:1]
    assert superseded(parsed) == SAID[1:]
    assert not parsed.unknown


def test_the_messages_of_a_head_count() -> None:
    parsed = parse_transcript(
        gemini_cli, MemoryTranscript(LOG, jsonl({**HEADER, "messages": TALK}))
    )
    assert parsed.said == SAID


def test_contexts_are_not_typed_and_what_stands_beside_them_is() -> None:
    context = message(
        "u0", "user", [{"text": "<session_context>\nToday is Monday\n</session_context>"}]
    )
    old = message(
        "u9", "user", "This is the Gemini CLI. We are setting up the context for our chat."
    )
    mixed = message(
        "u1", "user", [{"text": "Why?\n"}, {"text": "<hook_context>injected</hook_context>"}]
    )
    assert log(context, old, mixed).said == [("Why?", "")]


def test_a_context_that_is_quoted_stays() -> None:
    quoted = "What does `<session_context>` mean?\n\n```\n<hook_context>x</hook_context>\n```"
    assert log(message("u1", "user", quoted)).said == [(quoted, "")]


@pytest.mark.parametrize("command", ["/help", "/chat save", " /memory:show "])
def test_slash_commands_are_left_out(command: str) -> None:
    assert log(message("u1", "user", command), *TALK).said == SAID


@pytest.mark.parametrize(
    "typed",
    ["/plan a cake for ten people", "/usr/bin/python is missing", "/etc/hosts", "what is /help"],
)
def test_what_only_begins_like_a_command_is_typed(typed: str) -> None:
    assert log(message("u1", "user", typed)).said == [(typed, "")]


def test_files_that_were_referred_to_are_not_typed() -> None:
    parts = ["explain @a.py and ", "stop\n", "\n--- Content from referenced files ---", "\nContent from @a.py:\n", "code = 1",
             "\n--- End of content ---", "\nthanks"]  # fmt: skip
    parsed = log(message("u1", "user", [{"text": part} for part in parts]))
    assert parsed.said == [("explain @a.py and stop\n\nthanks", "")]


def test_what_was_displayed_is_what_was_typed() -> None:
    content = [{"text": "explain @a.py"}, {"text": "code = 1"}]
    assert log(message("u1", "user", content, displayContent=[{"text": "explain @a.py"}])).said == [
        ("explain @a.py", "")
    ]


def test_thoughts_results_and_notices_are_no_prose() -> None:
    parsed = log(
        TALK[0],
        message("i1", "info", "Update available"),
        message("w1", "warning", "Careful"),
        message("e1", "error", "Broken"),
        message(
            "g0",
            "gemini",
            [{"text": "hm", "thought": True}],
            thoughts=[{"subject": "s", "description": "hm"}],
        ),
        message("r1", "user", [{"functionResponse": {"id": "c", "response": {"output": "hm"}}}]),
        TALK[1],
    )
    assert parsed.said == SAID[:1]
    assert not parsed.unknown


def test_calls_of_tools_are_lines_and_changed_files_are_named() -> None:
    calls = [call("run_shell_command", command="ls\n-l"), call("write_file", file_path="a.md", content="x"),
             call("replace", "error", file_path="b.md"), call("read_file", file_path="c.md")]  # fmt: skip
    parsed = log(
        TALK[0], message("g1", "gemini", "", toolCalls=calls), message("g2", "gemini", "Done.")
    )
    assert parsed.said == [("How long does rye rise?", "Done.")]
    assert parsed.exchanges[0].tools == (
        "[run_shell_command] ls -l",
        "[write_file] a.md",
        "[replace] b.md",
        "[read_file] c.md",
    )
    assert parsed.exchanges[0].files == ("a.md",)


@pytest.mark.parametrize(("tool", "status", "files"), [
    ("replace", "success", ("a.md",)), ("edit", "success", ("a.md",)), ("edit_file", "success", ("a.md",)),
    ("edit", "cancelled", ()), ("read_file", "success", ()),
])  # fmt: skip
def test_a_file_is_changed_by_a_tool_that_writes_and_was_done(
    tool: str, status: str, files: tuple[str, ...]
) -> None:
    assert (
        log(TALK[0], message("g1", "gemini", "", toolCalls=[call(tool, status, path="a.md")]))
        .exchanges[0]
        .files
        == files
    )


@pytest.mark.parametrize("kind", ["gemini", "model", "qwen"])
def test_an_answer_has_had_several_names(kind: str) -> None:
    assert log(TALK[0], message("g1", kind, "Two hours.")).said == SAID[:1]


def test_a_message_with_a_sessions_id_is_no_head() -> None:
    parsed = log(TALK[0], message("g1", "gemini", "Two hours.", sessionId="other"))
    assert (parsed.said, parsed.heads[0].session) == (SAID[:1], "s1")


def test_a_summary_that_only_the_model_was_shown_is_not_typed() -> None:
    summary = message("x1", "user", [{"text": "<state_snapshot>All of it</state_snapshot>"}])
    assert log(shown(summary, *TALK)).said == SAID


def test_calls_among_the_parts_are_lines_where_there_are_no_others() -> None:
    parts = [{"text": "See."}, {"functionCall": {"name": "glob", "args": {"pattern": "*.md"}}}]
    parsed = log(TALK[0], message("g1", "gemini", parts))
    assert parsed.said == [("How long does rye rise?", "See.")]
    assert parsed.exchanges[0].tools == ("[glob] *.md",)


def test_an_image_stands_where_it_stood() -> None:
    parts = [
        {"text": "Is "},
        {"inlineData": {"data": "AAAA"}},
        " or ",
        {"fileData": {"fileUri": "x"}},
        " done?",
    ]
    assert log(message("u1", "user", parts)).said == [("Is [image] or [image] done?", "")]


def test_line_breaks_and_fences_stay() -> None:
    prose = "So:\n\n```python\nbake()\n\n\nserve()\n```\n  - indented"
    assert log(TALK[0], message("g1", "gemini", prose)).said == [("How long does rye rise?", prose)]


def test_unknown_messages_and_broken_lines_are_counted_and_lose_no_others() -> None:
    parsed = parse_transcript(
        gemini_cli,
        MemoryTranscript(
            LOG,
            jsonl(HEADER, *TALK[:2]) + b'{"id": \n' + jsonl(message("x", "dream", "?"), {"a": 1}),
        ),
    )
    assert parsed.said == SAID[:1]
    assert parsed.unknown == {"broken line": 1, "message dream": 1, "message without a type": 1}


def test_a_document_without_sense_yields_nothing() -> None:
    parsed = parse_transcript(
        gemini_cli, MemoryTranscript(DOCUMENT, b'{"sessionId": "s1", "messages": [{')
    )
    assert parsed.exchanges == []
    assert parsed.unknown == {"broken JSON": 1}


def test_the_last_line_waits_for_its_end() -> None:
    assert parse_transcript(gemini_cli, MemoryTranscript(LOG, jsonl(HEADER, *TALK)[:-1])).said == [
        SAID[0],
        ("And wheat?", ""),
    ]


@pytest.mark.parametrize("depth", range(800, 1000, 10))
def test_nesting_beyond_measure_and_numbers_beyond_measure_are_survived(depth: int) -> None:
    deep = f'{{"command": {"[" * depth}{"]" * depth}}}'
    absurd = f'{{"id": "g1", "type": "gemini", "timestamp": 1{"0" * 400}, "content": "x", "toolCalls": [{{"args": {deep}}}]}}'
    parsed = parse_transcript(
        gemini_cli,
        MemoryTranscript(LOG, jsonl(HEADER, TALK[0]) + absurd.encode() + b"\n" + jsonl(*TALK[2:])),
    )
    assert parsed.said[-1] == SAID[1]


def test_any_value_at_any_place_is_survived() -> None:
    parts = [{"text": "x", "thought": False}, {"functionCall": {"name": "x", "args": {"a": 1}}}]
    calls = [call("write_file", file_path="x")]
    whole = [HEADER, *TALK[:2], message("g2", "gemini", parts), message("g3", "gemini", "", toolCalls=calls), shown(*TALK[:2]),
             message("u3", "user", "x", displayContent=[{"text": "x"}]), {"$rewindTo": "g2"}]  # fmt: skip
    for records in everywhere(whole):
        survives(gemini_cli, LOG, jsonl(*records))
    for record in everywhere({**HEADER, "messages": whole[1:5]}):
        survives(gemini_cli, DOCUMENT, json.dumps(record).encode())


@given(
    broken(
        [
            HEADER,
            *TALK,
            shown(*TALK),
            {"$rewindTo": "u2"},
            message("g3", "gemini", "", toolCalls=[call("x", a=1)]),
        ],
        lines=True,
    )
)
def test_no_log_raises(data: bytes) -> None:
    survives(gemini_cli, LOG, data)


@given(
    broken(
        {
            **HEADER,
            "messages": [
                *TALK,
                message("g3", "gemini", [{"text": "x"}], toolCalls=[call("x", a=1)]),
            ],
        }
    )
)
def test_no_document_raises(data: bytes) -> None:
    survives(gemini_cli, DOCUMENT, data)


@given(st.lists(st.integers(-3, 12), max_size=20))
def test_whatever_is_rewound_all_is_read_and_only_the_rest_is_active(steps: list[int]) -> None:
    """A step below nothing says something new; another one rewinds to that one of the messages that are there."""
    records, active, typed = list[object](), list[str](), list[str]()
    for number, step in enumerate(steps):
        if step < 0:
            typed.append(f"question {number}")
            active.append(typed[-1])
            records.append(message(f"u{number}", "user", typed[-1]))
        elif step < len(active):
            records.append({"$rewindTo": f"u{active[step].split()[1]}"})
            del active[step:]
    parsed = log(*records)
    assert [question for question, _ in parsed.said] == active
    assert sorted(exchange.question for exchange in parsed.exchanges) == sorted(typed)
    assert not parsed.unknown


@pytest.mark.skipif(not SAMPLES.exists(), reason="the samples are not on this machine")
def test_the_samples_are_read_in_full() -> None:
    read = {
        path.name: parse_transcript(gemini_cli, MemoryTranscript(str(path), path.read_bytes()))
        for path in SAMPLES.rglob("*.json*")
    }
    counts = {
        name: (len(parsed.said), sum(map(len, sum(parsed.said, ()))))
        for name, parsed in read.items()
    }
    assert counts == {
        "standard_session.json": (2, 78),
        "system_messages.json": (0, 0),
        "thinking_only.json": (1, 88),
        "tool_calls.json": (1, 29),
        "session_faff42ab_7KB.json": (2, 170),
        "synth_append_jsonl.jsonl": (2, 106),
    }
    assert not any(parsed.unknown for parsed in read.values())
    assert superseded(read["synth_append_jsonl.jsonl"]) == [("question to be rewound", "")]
    assert read["session_faff42ab_7KB.json"].exchanges[1].files == ("test-gemini.txt",)
