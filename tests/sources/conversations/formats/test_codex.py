"""Codex: a message that is both an event and an item is read once; rolled back messages are superseded."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from sources.conversations.formats.carriers import (
    MemoryTranscript,
    ParsedTranscript,
    jsonl,
    parse_transcript,
    questions,
    recognised,
)
from sources.conversations.formats.everywhere import everywhere
from sources.conversations.formats.mutations import broken, survives

from anchord.sources.conversations.events import (
    Exchange,
    NeedsFullRead,
    SessionInfo,
    SupersededQuestions,
)
from anchord.sources.conversations.exchanges import build_exchanges
from anchord.sources.conversations.formats import codex

UUID = "11111111-1111-4111-8111-111111111111"
PATH = f"sessions/2026/01/02/rollout-2026-01-02T10-00-00-{UUID}.jsonl"
SAMPLES = Path("/work/shared/samples/codex_cli")

Given = dict[str, Any]


def record(kind: str, **payload: object) -> Given:
    return {"timestamp": "2026-01-02T10:00:00.500Z", "type": kind, "payload": payload}


def event(kind: str, **payload: object) -> Given:
    return record("event_msg", type=kind, **payload)


def item(role: str, *texts: str) -> Given:
    kind = "output_text" if role == "assistant" else "input_text"
    return record(
        "response_item",
        type="message",
        role=role,
        content=[{"type": kind, "text": each} for each in texts],
    )


def call(name: str, **given: object) -> Given:
    return record(
        "response_item", type="function_call", name=name, arguments=json.dumps(given), call_id="c"
    )


def begun(turn: str) -> Given:
    return event("task_started", turn_id=turn)


def context(turn: str, model: str = "gpt") -> Given:
    return record("turn_context", turn_id=turn, model=model, cwd="/home/ann/shop")


def asked(said: str) -> list[Given]:
    return [item("user", said), event("user_message", message=said, images=[])]


def answered(said: str) -> list[Given]:
    return [event("agent_message", message=said, phase="final"), item("assistant", said)]


def rolled_back(count: object) -> Given:
    return event("thread_rolled_back", num_turns=count)


def session(*records: object, path: str = PATH) -> ParsedTranscript:
    return parse_transcript(codex, MemoryTranscript(path, jsonl(*records)))


def resumes(*records: object) -> bool:
    """Whether resuming at each question gives the same as a full read, or asks for a full read."""
    data = jsonl(*records)
    whole = list(build_exchanges(codex.read_events(MemoryTranscript(PATH, data))))
    left = {key for each in whole if isinstance(each, SupersededQuestions) for key in each.ids}
    parsed = [each for each in whole if isinstance(each, Exchange)]
    assert parsed
    for each in (each for each in parsed if each.kind == "exchange"):
        later = list(
            build_exchanges(
                codex.read_events(MemoryTranscript(PATH, data), each.offset), each.number
            )
        )
        also_left = {
            key for event in later if isinstance(event, SupersededQuestions) for key in event.ids
        }
        rest = [event for event in parsed if event.offset >= each.offset]
        names = {event.id for event in rest}
        same = [
            event for event in later if isinstance(event, Exchange)
        ] == rest and also_left == left & names
        if not any(isinstance(event, NeedsFullRead) for event in later) and not same:
            return False
    return True


META = record(
    "session_meta",
    id=UUID,
    cwd="/home/ann/shop",
    source="cli",
    base_instructions={"text": "Be kind."},
)
TALK = [
    begun("one"), context("one"), *asked("Where is the till?"), *answered("At the door."), event("task_complete"),
    begun("two"), context("two"), *asked("And why?"), *answered("It was cheap."), event("task_complete"),
]  # fmt: skip
SAID = [("Where is the till?", "At the door."), ("And why?", "It was cheap.")]
OLD = [
    {"id": UUID, "timestamp": "2025-05-01T10:00:00Z", "instructions": "Be kind.", "git": {}},
    {
        "type": "message",
        "role": "user",
        "content": [{"type": "input_text", "text": "Where is the till?"}],
    },
    {"type": "reasoning", "summary": []},
    {"type": "function_call", "name": "shell", "arguments": '{"command": ["ls", "-l"]}'},
    {"type": "function_call_output", "output": "x"},
    {
        "type": "message",
        "role": "assistant",
        "content": [{"type": "output_text", "text": "At the door."}],
    },
]


def test_events_and_items_of_a_message_are_one() -> None:
    parsed = session(META, *TALK)
    assert parsed.said == SAID
    assert [(exchange.id, exchange.number, exchange.model) for exchange in parsed.exchanges] == [
        ("one", 0, "gpt"),
        ("two", 1, "gpt"),
    ]
    assert {exchange.at for exchange in parsed.exchanges} == {"2026-01-02T10:00:00.500Z"}
    assert (parsed.heads[-1].session, parsed.project, parsed.heads[-1].parent) == (
        UUID,
        "/home/ann/shop",
        "",
    )
    assert not parsed.unknown


@pytest.mark.parametrize("path", [PATH, f"{PATH}.zst", "copy.jsonl"])
def test_a_rollout_is_recognised_compressed_or_not(path: str) -> None:
    assert recognised(codex, MemoryTranscript(path, jsonl(META, *TALK)))
    assert recognised(codex, MemoryTranscript(path, jsonl(*TALK)))


@pytest.mark.parametrize(
    ("path", "first"),
    [
        ("a.json", META),
        ("a.jsonl", {"type": "session_meta"}),
        ("a.jsonl", OLD[1]),
        (PATH, {"type": "user", "message": {}}),
    ],
)
def test_other_lines_are_no_rollout(path: str, first: Given) -> None:
    assert not recognised(codex, MemoryTranscript(path, jsonl(first)))


def test_a_rollout_with_a_long_header_is_recognised() -> None:
    long = record("session_meta", id=UUID, base_instructions={"text": "word " * 20_000})
    assert recognised(codex, MemoryTranscript(PATH, jsonl(long, *TALK)))


def test_a_list_for_a_type_raises_nothing_when_it_is_recognised() -> None:
    assert not recognised(codex, MemoryTranscript(PATH, jsonl({"type": ["message"]})))


def test_a_very_old_rollout_is_bare_items() -> None:
    carrier = MemoryTranscript(PATH, jsonl(*OLD))
    assert recognised(codex, carrier)
    parsed = parse_transcript(codex, carrier)
    assert parsed.said == SAID[:1]
    assert parsed.exchanges[0].tools == ("[shell] ls -l",)
    assert parsed.heads[-1].session == UUID
    assert not parsed.unknown


def test_items_are_read_where_no_event_has_a_question() -> None:
    parsed = session(
        META,
        begun("one"),
        item("user", *SAID[0][:1]),
        item("assistant", SAID[0][1]),
        event("token_count"),
    )
    assert parsed.said == SAID[:1]


def test_records_with_ordinals_are_read() -> None:
    assert (
        session(*({**each, "ordinal": number} for number, each in enumerate([META, *TALK]))).said
        == SAID
    )


def test_line_ends_and_fences_of_a_text_stay() -> None:
    said = "See:\n\n```py\nif a:\n    b()\n```\n\n  indented"
    assert session(META, *asked(said), *answered(said)).said == [(said, said)]


def test_an_unanswered_question_is_an_exchange_of_its_own() -> None:
    assert session(META, *asked("One"), *asked("Two")).said == [("One", ""), ("Two", "")]


def test_several_messages_are_one_answer() -> None:
    assert session(
        META, *asked("Go"), *answered("First."), call("shell"), *answered("Second.")
    ).said == [("Go", "First.\n\nSecond.")]


def test_a_question_within_a_turn_is_named_by_its_place() -> None:
    parsed = session(META, begun("one"), *asked("Go"), *answered("Going."), *asked("Faster"))
    assert [exchange.id for exchange in parsed.exchanges] == [
        "one",
        f"at-{parsed.exchanges[1].offset}",
    ]


def test_reasoning_results_and_developers_texts_are_no_prose() -> None:
    parsed = session(
        META, *TALK[:4], event("agent_reasoning", text="hm"), item("developer", "Be quick."), item("system", "Be quick."),
        record("response_item", type="reasoning", summary=[{"type": "summary_text", "text": "hm"}]),
        record("response_item", type="function_call_output", output="output"), event("patch_apply_end", stdout="x"),
        record("world_state", text="x"), record("inter_agent_communication_sent", text="x"), *TALK[4:],
    )  # fmt: skip
    assert parsed.said == SAID
    assert not parsed.unknown


def test_a_compaction_is_no_part_of_an_exchange() -> None:
    history = [
        {
            "type": "message",
            "role": "user",
            "content": [{"type": "input_text", "text": "Where is the till?"}],
        }
    ]
    parsed = session(
        META,
        *TALK[:6],
        record("compacted", message="Of a till.", replacement_history=history),
        *TALK[6:],
    )
    assert parsed.said == SAID
    assert [each.answer for each in parsed.exchanges if each.kind == "summary"] == ["Of a till."]


@pytest.mark.parametrize(
    "said",
    [
        "# AGENTS.md instructions for /home/ann\n\n<INSTRUCTIONS>\nBe kind.\n</INSTRUCTIONS>",
        "<user_instructions>x</user_instructions>", "\n<environment_context>\n<cwd>/</cwd>\n</environment_context>",
        "<INSTRUCTIONS>x</INSTRUCTIONS>", "<turn_aborted>x</turn_aborted>", "<skill>\n<name>x</name>\n</skill>",
        "<subagent_notification>x</subagent_notification>", "# Context from my IDE setup:\n\n## Open tabs:\n- a.py",
    ],
)  # fmt: skip
def test_noise_is_no_question(said: str) -> None:
    parsed = session(
        META,
        item("user", said),
        item("user", "Where is the till?"),
        item("assistant", "At the door."),
    )
    assert parsed.said == SAID[:1]
    assert session(META, *asked(said), *TALK).said == SAID


def test_noise_in_one_block_leaves_the_others() -> None:
    blocks = item("user", "<environment_context>x</environment_context>", "Where is", "the till?")
    assert questions(session(META, blocks)) == ["Where is\n\nthe till?"]


@pytest.mark.parametrize(
    "said",
    [
        "What is <skill>x</skill>?",
        "```\n<turn_aborted>\n```",
        "See # AGENTS.md instructions for /x",
        "<b>bold</b>",
    ],
)
def test_what_looks_like_noise_further_on_stays(said: str) -> None:
    assert questions(session(META, item("user", said))) == [said]
    assert questions(session(META, *asked(said))) == [said]


def test_prose_behind_wrappers_stays() -> None:
    said = "<turn_aborted>x</turn_aborted>\n<environment_context>y</environment_context>\n\nGo on"
    assert questions(session(META, item("user", said))) == ["Go on"]


def test_the_request_behind_an_editors_context_stays() -> None:
    said = "# Context from my IDE setup:\n\n## Open tabs:\n- a.py\n\n## My request for Codex:\nFix it\n\n## Now"
    assert questions(session(META, *asked(said))) == ["Fix it\n\n## Now"]


def test_prose_behind_the_instructions_stays() -> None:
    said = "# AGENTS.md instructions for /x\n\n<INSTRUCTIONS>\nBe kind.\n</INSTRUCTIONS>\n\nFix the door"
    assert questions(session(META, item("user", said))) == ["Fix the door"]


def test_a_heading_about_instructions_is_typed() -> None:
    said = "# AGENTS.md instructions are ignored\n\nWhy?"
    assert questions(session(META, *asked(said))) == [said]


def test_calls_of_tools_are_lines() -> None:
    parsed = session(
        META, begun("one"), *asked("Go"), call("shell", command=["git", "status"]), call("exec_command", cmd="ls\n-l"),
        record("response_item", type="local_shell_call", action={"type": "exec", "command": ["pwd"]}),
        record("response_item", type="web_search_call", action={"type": "search", "query": "tills"}),
        record("response_item", type="custom_tool_call", name="novel", input="x y"),
        record("response_item", type="function_call", name="torn", arguments='{"command'), *answered("Done."),
    )  # fmt: skip
    assert parsed.said == [("Go", "Done.")]
    assert parsed.exchanges[0].tools == (
        "[shell] git status", "[exec_command] ls -l", "[local_shell] pwd", "[web_search] tills", "[novel] x y",
        '[torn] {"command',
    )  # fmt: skip


def test_patched_files_are_named() -> None:
    patch = "*** Begin Patch\n*** Add File: a.py\n+x\n*** Update File: b.py\n*** Delete File: c.py\n*** End Patch"
    own = record("response_item", type="custom_tool_call", name="apply_patch", input=patch)
    parsed = session(
        META, *asked("Go"), own, call("apply_patch", input=patch.replace("a.py", "d.py"))
    )
    assert parsed.exchanges[0].files == ("a.py", "b.py", "c.py", "d.py")


def test_rolled_back_questions_are_superseded() -> None:
    parsed = session(
        META, *TALK, rolled_back(1), begun("three"), *asked("And when?"), *answered("In May.")
    )
    assert parsed.said == [SAID[0], ("And when?", "In May.")]
    assert parsed.superseded == {"two"}


def test_a_second_roll_back_goes_on_from_where_the_first_ended() -> None:
    parsed = session(
        META, *TALK, rolled_back(1), begun("three"), *asked("And when?"), rolled_back(2)
    )
    assert parsed.superseded == {"one", "two", "three"}


@pytest.mark.parametrize("count", [9, 10**30])
def test_more_than_there_is_rolled_back_is_all(count: int) -> None:
    assert session(META, *TALK, rolled_back(count)).superseded == {"one", "two"}


@pytest.mark.parametrize("count", [0, -1, "1", None, [1]])
def test_a_roll_back_of_nothing_leaves_all(count: object) -> None:
    assert session(META, *TALK, rolled_back(count)).superseded == set()


def test_a_question_of_an_image_is_a_placeholder() -> None:
    image = event("user_message", message="", images=["data:image/png;base64,AAAA"])
    assert session(META, *TALK, begun("three"), image, *answered("A door.")).said == [
        *SAID,
        ("[image]", "A door."),
    ]


def test_a_question_of_an_image_is_rolled_back_by_itself() -> None:
    image = event("user_message", message="", images=["data:image/png;base64,AAAA"])
    assert "two" not in session(META, *TALK, begun("three"), image, rolled_back(1)).superseded


def test_the_first_header_names_the_session() -> None:
    parents = record("session_meta", id="other", cwd="/elsewhere")
    parsed = session(META, parents, *TALK, parents)
    assert {head.session for head in parsed.heads} == {UUID}
    assert parsed.project == "/home/ann/shop"


@pytest.mark.parametrize(
    "spawned",
    [
        {"source": {"subagent": {"thread_spawn": {"parent_thread_id": "p", "depth": 1}}}},
        {"parent_thread_id": "p"},
    ],
)
def test_a_sub_agents_session_names_the_one_that_started_it(spawned: Given) -> None:
    parsed = session(record("session_meta", id="c", **spawned), *TALK)
    assert parsed.heads[-1].parent == "p"


def test_a_name_that_was_given_is_the_title() -> None:
    assert session(META, *TALK, event("thread_name_updated", thread_name="Shop")).title == "Shop"


def test_a_session_without_a_header_is_named_by_its_file() -> None:
    assert session(*TALK).heads[0].session == UUID
    assert session(*TALK, path=f"{PATH}.zst").heads[0].session == UUID
    assert session(*TALK, path="copy.jsonl").heads[0].session == "copy"


def test_a_torn_line_and_what_was_written_behind_it() -> None:
    torn = jsonl(TALK[4])[:40] + jsonl(TALK[4])
    parsed = parse_transcript(
        codex, MemoryTranscript(PATH, jsonl(META, *TALK[:4]) + torn + jsonl(*TALK[5:]))
    )
    assert parsed.said == SAID
    assert not parsed.unknown


def test_a_torn_line_loses_no_other() -> None:
    data = (
        jsonl(META, *TALK[:6])
        + b'{"timestamp": "x", "type": "ev\n{}\n7\n'
        + jsonl(*TALK[6:])
        + jsonl(META)[:30]
    )
    parsed = parse_transcript(codex, MemoryTranscript(PATH, data))
    assert parsed.said == SAID
    assert parsed.unknown == {"broken line": 2, "record without a type": 1}


def test_an_event_behind_a_torn_line_is_not_read_as_an_item_too() -> None:
    torn = jsonl(TALK[3])[:40] + jsonl(TALK[3])
    assert (
        parse_transcript(
            codex, MemoryTranscript(PATH, jsonl(META, *TALK[:3]) + torn + jsonl(*TALK[4:6]))
        ).said
        == SAID[:1]
    )


def test_answers_that_are_items_alone_are_read() -> None:
    assert session(META, *asked("Go"), item("assistant", "Done.")).said == [("Go", "Done.")]


def test_a_text_in_place_of_blocks_is_prose() -> None:
    said = [
        record("response_item", type="message", role=role, content=role)
        for role in ("user", "assistant")
    ]
    assert session(META, *said).said == [("user", "assistant")]


def test_what_is_unknown_is_counted() -> None:
    parsed = session(
        META,
        event("novel"),
        record("response_item", type="novel"),
        record("novel"),
        event(""),
        {"x": 1},
        *TALK,
    )
    assert parsed.unknown == {
        "event novel": 1, "item novel": 1, "novel": 1, "event without a type": 1, "record without a type": 1,
    }  # fmt: skip
    assert parsed.said == SAID


def test_a_recognised_file_without_a_conversation_gives_nothing() -> None:
    assert recognised(codex, MemoryTranscript(PATH, jsonl(META)))
    assert session(META).exchanges == []


def test_what_cannot_be_written_is_replaced() -> None:
    assert session(META, begun("\ud800"), *asked("a\ud800\0b"), *answered("c\udfff")).said == [
        ("a\ufffd\ufffdb", "c\ufffd")
    ]


def test_deep_nesting_and_huge_numbers_lose_no_other_line() -> None:
    odd = [
        jsonl(event("user_message", message="Deep")).replace(
            b'"Deep"', b"[" * 9_000 + b"]" * 9_000
        ),
        b'{"x": ' + b"1" * 9_000 + b"}\n",
    ]
    deep = record("response_item", type="function_call", name="shell", arguments="[" * 9_000)
    parsed = parse_transcript(
        codex,
        MemoryTranscript(PATH, jsonl(META, *TALK[:4]) + b"".join(odd) + jsonl(deep, *TALK[4:])),
    )
    assert parsed.said == SAID
    assert parsed.unknown == {"broken line": 2}


@pytest.mark.parametrize(
    "records",
    [
        [META, *TALK],
        [
            META,
            *TALK,
            rolled_back(1),
            begun("three"),
            context("three"),
            *asked("And when?"),
            *answered("In May."),
        ],
        [META, *TALK, begun("three"), context("three"), *asked("And when?"), rolled_back(2)],
        [
            META,
            begun("one"),
            context("one"),
            *asked("Go"),
            *answered("Going."),
            *asked("Faster"),
            event("task_complete"),
        ],
        [META, *answered("Hello."), begun("one"), *asked("Go")],
    ],
    ids=["turns", "a roll-back", "a roll-back of two", "a question within a turn", "a preamble"],
)
def test_reading_goes_on_from_any_question(records: list[Given]) -> None:
    assert resumes(*records)


def test_a_roll_back_beyond_the_start_says_so() -> None:
    data = jsonl(META, *TALK, rolled_back(2))
    start = parse_transcript(codex, MemoryTranscript(PATH, data)).exchanges[1].offset
    assert any(
        isinstance(each, NeedsFullRead)
        for each in codex.read_events(MemoryTranscript(PATH, data), start)
    )


def test_reading_on_keeps_the_sessions_name() -> None:
    data = jsonl(META, *TALK)
    start = parse_transcript(codex, MemoryTranscript(PATH, data)).exchanges[1].offset
    assert {
        each.session
        for each in codex.read_events(MemoryTranscript(PATH, data), start)
        if isinstance(each, SessionInfo)
    } == {UUID}


@pytest.mark.parametrize(
    "records",
    [
        [context("one"), *asked("Go"), *answered("Done."), context("two"), *asked("On")],
        [
            context("one"),
            begun("one"),
            *asked("Go"),
            *answered("Done."),
            begun("two"),
            *asked("On"),
            *answered("Yes."),
        ],
        [begun("one"), *asked("Go"), *asked("Faster"), context("one"), *asked("Faster!")],
        [begun("one"), *asked("Go"), begun("two"), *answered("Done."), *asked("On")],
    ],
    ids=[
        "a turn that only its context names",
        "a model that was told once",
        "a context within a turn",
        "an answer between",
    ],
)
def test_reading_goes_on_whatever_was_read_before(records: list[Given]) -> None:
    assert resumes(META, *records)


RECORDS = [
    META, *TALK, call("apply_patch", input="*** Add File: a"), rolled_back(1), record("compacted", message="m"),
    record("response_item", type="local_shell_call", action={"command": ["ls"]}), *OLD[1:4],
    event("thread_name_updated", thread_name="n"), *asked("# Context from my IDE setup:\n## My request for Codex:\nx"),
]  # fmt: skip


def test_an_odd_value_at_any_place_raises_nothing() -> None:
    for changed in everywhere(RECORDS):
        survives(
            codex, "copy.jsonl", jsonl(*changed)
        )  # Under the name of a rollout the defect above is met.


@settings(deadline=None)
@given(broken(RECORDS, lines=True))
def test_nothing_that_is_broken_raises(data: bytes) -> None:
    survives(codex, "copy.jsonl", data)


@pytest.mark.skipif(not SAMPLES.exists(), reason="the samples are not part of the repository")
def test_the_sample_gives_what_a_person_counts() -> None:
    path = SAMPLES / "modern" / "synth_modern.jsonl"
    carrier = MemoryTranscript(str(path), path.read_bytes())
    assert recognised(codex, carrier)
    parsed = parse_transcript(codex, carrier)
    assert parsed.said == [("Build the parser", "The parser is ready.")]
    assert [each.question for each in parsed.exchanges if each.id in parsed.superseded] == [
        "Handle cancellation"
    ]
    assert parsed.unknown == {"event future_payload": 1}
