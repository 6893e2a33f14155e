"""Claude Code: each message is read once; only two questions after the same message are a fork."""

from __future__ import annotations

import json
import time
from collections.abc import Mapping
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

from anchord.sources.conversations.events import Exchange, NeedsFullRead, SupersededQuestions
from anchord.sources.conversations.exchanges import build_exchanges
from anchord.sources.conversations.formats import claude_code

PATH = "projects/-home-ann-shop/5f0c.jsonl"
SAMPLES = Path("/work/shared/samples/claude_code")

Given = dict[str, Any]


def line(kind: str, uuid: str, parent: str | None, content: object, **more: object) -> Given:
    return {
        "type": kind, "uuid": uuid, "parentUuid": parent, "sessionId": "5f0c", "cwd": "/home/ann/shop",
        "timestamp": "2026-01-02T11:00:00.5+01:00", "message": {"role": kind, "content": content}, **more,
    }  # fmt: skip


def asked(uuid: str, parent: str | None, content: object, **more: object) -> Given:
    return line("user", uuid, parent, content, **more)


def prose(said: str) -> Given:
    return {"type": "text", "text": said}


def call(name: str, key: str = "t", **given: object) -> Given:
    return {"type": "tool_use", "id": key, "name": name, "input": given}


def answered(
    uuid: str,
    parent: str | None,
    *blocks: str | Mapping[str, object],
    message: str = "",
    **more: object,
) -> Given:
    record = line(
        "assistant",
        uuid,
        parent,
        [prose(each) if isinstance(each, str) else each for each in blocks],
        **more,
    )
    record["message"].update(id=message or f"message-{uuid}", model="opus")
    return record


def result(uuid: str, parent: str, content: object = "output") -> Given:
    blocks = [{"type": "tool_result", "tool_use_id": "t", "content": content}]
    return asked(uuid, parent, blocks, toolUseResult={"stdout": "output"})


def session(*records: object, path: str = PATH) -> ParsedTranscript:
    return parse_transcript(claude_code, MemoryTranscript(path, jsonl(*records)))


def resumes(*records: object) -> bool:
    """Whether resuming at each question gives the same as a full read, or asks for a full read."""
    data = jsonl(*records)
    whole = list(build_exchanges(claude_code.read_events(MemoryTranscript(PATH, data))))
    left = {key for each in whole if isinstance(each, SupersededQuestions) for key in each.ids}
    parsed = [each for each in whole if isinstance(each, Exchange)]
    assert parsed
    for each in (each for each in parsed if each.kind == "exchange"):
        later = list(
            build_exchanges(
                claude_code.read_events(MemoryTranscript(PATH, data), each.offset), each.number
            )
        )
        asked_to = data.index(b"\n", each.offset) + 1
        before = parse_transcript(claude_code, MemoryTranscript(PATH, data[:asked_to])).superseded
        also_left = {
            key for event in later if isinstance(event, SupersededQuestions) for key in event.ids
        }
        rest = [event for event in parsed if event.offset >= each.offset]
        same = [event for event in later if isinstance(event, Exchange)] == rest
        if not any(isinstance(event, NeedsFullRead) for event in later) and (
            not same or before | also_left != left
        ):
            return False
    return True


TALK = [
    asked("a", None, "Where is the till?"), answered("b", "a", "At the door."),
    asked("c", "b", "And why?"), answered("d", "c", "It was cheap."),
]  # fmt: skip
SAID = [("Where is the till?", "At the door."), ("And why?", "It was cheap.")]


def test_questions_and_answers_are_read_in_their_order() -> None:
    parsed = session(*TALK)
    assert parsed.said == SAID
    assert [(exchange.id, exchange.number) for exchange in parsed.exchanges] == [("a", 0), ("c", 1)]
    assert {exchange.at for exchange in parsed.exchanges} == {"2026-01-02T10:00:00.500Z"}
    assert {exchange.model for exchange in parsed.exchanges} == {"opus"}
    assert parsed.project == "/home/ann/shop"
    assert not parsed.unknown


@pytest.mark.parametrize(
    "first",
    [
        TALK[0],
        TALK[1],
        {"type": "summary", "summary": "x", "leafUuid": "a"},
        {"type": "file-history-snapshot"},
    ],
    ids=lambda record: record["type"],
)
def test_a_session_is_recognised_by_its_records(first: Given) -> None:
    assert recognised(
        claude_code, MemoryTranscript("a.jsonl", jsonl({"type": "queue-operation"}, first))
    )


@pytest.mark.parametrize(
    ("path", "first"),
    [
        ("a.json", TALK[0]),
        ("a.jsonl", {"type": "session_meta", "payload": {}}),
        ("a.jsonl", {"type": "user", "text": "x"}),
    ],
)
def test_other_lines_are_no_session(path: str, first: Given) -> None:
    assert not recognised(claude_code, MemoryTranscript(path, jsonl(first)))


def test_a_mark_of_byte_order_does_not_hide_the_first_line() -> None:
    carrier = MemoryTranscript("a.jsonl", b"\xef\xbb\xbf" + jsonl(TALK[0]))
    assert recognised(claude_code, carrier)
    assert parse_transcript(claude_code, carrier).said == [("Where is the till?", "")]


def test_a_session_whose_first_line_is_long_is_recognised() -> None:
    assert recognised(
        claude_code, MemoryTranscript(PATH, jsonl(asked("a", None, "word " * 20_000)))
    )


def test_line_ends_and_fences_of_a_text_stay() -> None:
    said = "See:\n\n```py\nif a:\n    b()\n```\n\n  indented"
    assert session(asked("a", None, said), answered("b", "a", said)).said == [(said, said)]


def test_an_unanswered_question_is_an_exchange_of_its_own() -> None:
    assert session(asked("a", None, "One"), asked("b", "a", "Two")).said == [
        ("One", ""),
        ("Two", ""),
    ]


def test_an_answer_before_the_first_question_is_the_preamble() -> None:
    parsed = session(answered("z", None, "Hello."), *TALK)
    assert parsed.said == [("", "Hello."), *SAID]
    assert parsed.exchanges[0].id == "preamble"


def test_a_list_of_blocks_is_one_question_with_its_images() -> None:
    image = {"type": "image", "source": {"type": "base64", "data": "AAAA"}}
    assert questions(session(asked("a", None, [image, prose("See"), prose("this")]))) == [
        "See\n\nthis\n\n[image]"
    ]


def test_a_text_in_place_of_an_answers_blocks_is_prose() -> None:
    assert session(asked("a", None, "Go"), line("assistant", "b", "a", "Done.")).said == [
        ("Go", "Done.")
    ]


def test_results_thinking_and_derived_texts_are_no_prose() -> None:
    parsed = session(
        asked("a", None, "Go"),
        answered("b", "a", {"type": "thinking", "thinking": "hm", "signature": "x"}),
        answered("c", "b", call("Bash", command="git\n status")),
        result("d", "c", [prose("found <b>")]),
        asked("e", "d", "from a skill", isMeta=True),
        asked("f", "e", "a summary of it", isCompactSummary=True),
        asked("g", "f", "to be seen", isVisibleInTranscriptOnly=True),
        answered("h", "g", "API Error: 529", isApiErrorMessage=True),
        answered("i", "h", "Done."),
    )
    assert parsed.said == [("Go", "Done.")]
    assert parsed.active[0].tools == ("[Bash] git status",)
    assert [(each.id, each.answer) for each in parsed.exchanges if each.kind == "summary"] == [
        ("f", "a summary of it")
    ]
    assert not parsed.unknown


def test_what_a_person_adds_to_a_result_is_a_question() -> None:
    typed = asked(
        "d", "c", [{"type": "tool_result", "tool_use_id": "t", "content": "x"}, prose("Rather tea")]
    )
    assert session(*TALK[:2], answered("c", "b", call("Bash")), typed).said == [
        SAID[0],
        ("Rather tea", ""),
    ]


def test_changed_files_are_named_and_read_ones_are_not() -> None:
    parsed = session(
        asked("a", None, "Go"),
        answered(
            "b", "a", call("Edit", "1", file_path="a.py"), call("Read", "2", file_path="b.py")
        ),
        answered(
            "c",
            "b",
            call("Write", "3", file_path="c.py"),
            call("NotebookEdit", "4", notebook_path="d.ipynb"),
        ),
        answered("d", "c", call("MultiEdit", "5", file_path="a.py"), "Done."),
    )
    assert parsed.exchanges[0].files == ("a.py", "c.py", "d.ipynb")
    assert parsed.exchanges[0].tools[:2] == ("[Edit] a.py", "[Read] b.py")


def test_a_message_over_several_lines_is_one_answer() -> None:
    parsed = session(
        asked("a", None, "Go"), answered("b", "a", "First.", message="m"), answered("c", "b", call("Bash"), message="m"),
        result("d", "c"), answered("e", "d", "Second.", message="n"),
    )  # fmt: skip
    assert parsed.said == [("Go", "First.\n\nSecond.")]


def test_a_block_that_is_streamed_again_is_read_once() -> None:
    again = [
        answered(uuid, "a", "Done.", call("Bash", command="ls"), message="m") for uuid in ("b", "c")
    ]
    parsed = session(asked("a", None, "Go"), *again)
    assert parsed.said == [("Go", "Done.")]
    assert parsed.exchanges[0].tools == ("[Bash] ls",)


def test_the_same_words_in_another_message_are_read_again() -> None:
    parsed = session(asked("a", None, "Go"), answered("b", "a", "Yes."), answered("c", "b", "Yes."))
    assert parsed.said == [("Go", "Yes.\n\nYes.")]


@pytest.mark.parametrize("uuid", ["b", "c"])
def test_of_a_message_that_is_streamed_again_the_fuller_counts(uuid: str) -> None:
    streamed = [
        answered("b", "a", "It w", message="m"),
        answered(uuid, "a", "It was cheap.", message="m"),
    ]
    assert session(asked("a", None, "Why?"), *streamed).said == [("Why?", "It was cheap.")]


def test_repeated_lines_are_read_once() -> None:
    assert session(*TALK[:2], *TALK, *TALK).said == SAID


def test_a_repeated_history_under_other_uuids_is_read_once() -> None:
    again = [
        asked("e", None, "Where is the till?"),
        answered("f", "e", "At the door.", message="message-b"),
    ]
    assert session(*TALK, *again, asked("g", "f", "And when?")).said == [*SAID, ("And when?", "")]


def test_sub_agents_are_left_out() -> None:
    side = [
        asked("x", None, "Search", isSidechain=True),
        answered("y", "x", "Found", isSidechain=True),
    ]
    parsed = session(*TALK[:2], *side, *TALK[2:])
    assert parsed.said == SAID
    carrier = MemoryTranscript("projects/p/agent-1.jsonl", jsonl(*side))
    assert recognised(claude_code, carrier)
    assert parse_transcript(claude_code, carrier).exchanges == []


@pytest.mark.parametrize(
    "said",
    [
        "<command-name>/clear</command-name>\n<command-message>clear</command-message>\n<command-args></command-args>",
        "<command-name>/model</command-name><command-args>opus</command-args>",
        "<local-command-caveat>Caveat</local-command-caveat>", "<local-command-stdout>x</local-command-stdout>",
        "<bash-input>ls</bash-input>", "<bash-stdout>a</bash-stdout><bash-stderr></bash-stderr>",
        "\n <system-reminder>\nTidy up.\n</system-reminder>\n", "<user-prompt-submit-hook>x</user-prompt-submit-hook>",
        "<task-notification>x</task-notification>", "<ide_opened_file>x</ide_opened_file>",
        "<ide_selection>x</ide_selection>", "[Request interrupted by user for tool use]", "[Image: source: /a.png]",
        "Caveat: The messages below were generated by the user", "Base directory for this skill: /s\n\nText",
        "This session is being continued from a previous conversation that ran out of context.",
        "<system-reminder>torn",
    ],
)  # fmt: skip
def test_noise_is_no_question(said: str) -> None:
    parsed = session(*TALK[:2], asked("n", "b", said), asked("o", "n", [prose(said)]), *TALK[2:])
    assert parsed.said == SAID
    assert parsed.superseded == set()


@pytest.mark.parametrize(
    "said",
    [
        "What does <system-reminder>x</system-reminder> mean?", "See [Image: a] and [Request interrupted by user]",
        "```\n<command-name>/x</command-name>\n```", "`<bash-input>ls</bash-input>`", "<system-remind>x</system-remind>",
        "A Caveat: The messages below", "<svg>a</svg>",
    ],
)  # fmt: skip
def test_what_looks_like_noise_further_on_stays(said: str) -> None:
    assert questions(session(asked("a", None, said))) == [said]


def test_prose_behind_wrappers_stays() -> None:
    said = "<system-reminder>a</system-reminder>\n<ide_selection>b</ide_selection>\nFix <b>this</b>"
    assert questions(session(asked("a", None, said))) == ["Fix <b>this</b>"]


def test_a_wrapper_in_a_block_of_its_own_leaves_the_others() -> None:
    blocks = [prose("<ide_opened_file>a.py</ide_opened_file>"), prose("Fix it")]
    assert questions(session(asked("a", None, blocks))) == ["Fix it"]


@pytest.mark.parametrize("notice", ["[Request interrupted by user]", "[Image: source: /a.png]"])
def test_prose_behind_a_notice_stays(notice: str) -> None:
    assert questions(session(asked("a", None, f"{notice}\nGo on with tea"))) == ["Go on with tea"]


def test_the_arguments_of_a_command_are_a_question_if_they_are_prose() -> None:
    said = "<command-message>fix</command-message>\n<command-name>/fix</command-name>\n<command-args>the old door</command-args>"
    assert questions(session(asked("a", None, said))) == ["/fix the old door"]


def test_prose_behind_a_command_stays() -> None:
    said = "<command-name>/fix</command-name><command-args>the old door</command-args>\nand mind the step"
    assert "and mind the step" in questions(session(asked("a", None, said)))[0]


def test_a_command_that_is_not_closed_takes_no_time() -> None:
    before = time.process_time()
    session(asked("a", None, "<command-name>" + " " * 2_000))
    assert time.process_time() - before < 0.5


def test_a_rewound_question_is_superseded_with_all_after_it() -> None:
    parsed = session(
        *TALK, asked("e", "d", "Sure?"), asked("f", "b", "And when?"), answered("g", "f", "In May.")
    )
    assert parsed.said == [SAID[0], ("And when?", "In May.")]
    assert parsed.superseded == {"c", "e"}


def test_the_branch_of_the_last_line_is_active() -> None:
    parsed = session(*TALK, asked("e", "b", "And when?"), answered("f", "d", "And handy."))
    assert parsed.superseded == {"e"}


def test_a_fork_is_found_through_progress_system_and_results() -> None:
    parsed = session(
        *TALK[:2], answered("t", "b", call("Bash")), result("r", "t"),
        {"type": "progress", "uuid": "p", "parentUuid": "r"}, asked("c", "p", "And why?"),
        {"type": "system", "uuid": "s", "parentUuid": "t", "subtype": "turn_duration"}, asked("e", "s", "And when?"),
    )  # fmt: skip
    assert questions(parsed) == ["Where is the till?", "And when?"]


def test_parallel_tools_are_no_fork() -> None:
    parsed = session(
        *TALK[:2], answered("t", "b", call("Bash", "1")), answered("u", "t", call("Read", "2")), result("r", "t"),
        result("s", "u"), answered("v", "s", "Both."), answered("w", "r", "Done."), asked("x", "w", "Sure?"),
    )  # fmt: skip
    assert parsed.superseded == set()
    assert parsed.said == [("Where is the till?", "At the door.\n\nBoth.\n\nDone."), ("Sure?", "")]


def test_an_answer_that_was_asked_for_again_is_no_fork_of_questions() -> None:
    assert (
        session(*TALK[:2], answered("x", "a", "By the wall."), asked("y", "x", "Thanks")).superseded
        == set()
    )


def test_several_roots_are_one_line_of_conversation() -> None:
    parsed = session(
        *TALK,
        asked("e", None, "Still there?"),
        answered("f", "e", "Yes."),
        asked("g", "lost", "Good."),
    )
    assert questions(parsed) == ["Where is the till?", "And why?", "Still there?", "Good."]
    assert parsed.superseded == set()


def test_a_compaction_goes_on_from_its_logical_parent() -> None:
    boundary = {
        "type": "system",
        "subtype": "compact_boundary",
        "uuid": "s",
        "parentUuid": None,
        "logicalParentUuid": "d",
    }
    summary = asked(
        "t",
        "s",
        "This session is being continued from a previous conversation",
        isCompactSummary=True,
    )
    parsed = session(
        *TALK,
        boundary,
        summary,
        asked("e", "t", "On"),
        answered("f", "e", "Yes."),
        asked("g", "d", "Back"),
    )
    assert questions(parsed) == [*(question for question, _ in SAID), "Back"]
    assert parsed.superseded == {"e"}


def test_a_circle_of_parents_loses_nothing() -> None:
    assert questions(
        session(asked("a", "a", "One"), asked("b", "c", "Two"), asked("c", "b", "Three"))
    ) == [
        "One",
        "Two",
        "Three",
    ]


def test_copies_of_an_older_session_are_read_under_its_name() -> None:
    old = [{**record, "sessionId": "old"} for record in TALK[:2]]
    parsed = session(*old, *TALK[2:])
    assert [(exchange.session, exchange.id) for exchange in parsed.exchanges] == [
        ("old", "a"),
        ("5f0c", "c"),
    ]


def test_a_title_that_was_given_is_read() -> None:
    assert session(*TALK, {"type": "custom-title", "customTitle": "Shop"}).title == "Shop"
    assert session({"type": "ai-title", "aiTitle": "Till"}, *TALK).title == "Till"
    assert session({"type": "summary", "summary": "Door", "leafUuid": "d"}, *TALK).title == "Door"


def test_a_summary_of_another_session_is_no_title_of_this_one() -> None:
    assert (
        session({"type": "summary", "summary": "Barn", "leafUuid": "elsewhere"}, *TALK).title == ""
    )


def test_a_made_up_model_is_none() -> None:
    record = answered("b", "a", "Stopped.")
    record["message"]["model"] = "<synthetic>"
    assert session(asked("a", None, "Go"), record).exchanges[0].model == ""


def test_lines_without_uuids_are_named_by_their_places() -> None:
    bare = [
        {key: value for key, value in record.items() if key not in ("uuid", "parentUuid")}
        for record in TALK
    ]
    parsed = session(*bare)
    assert parsed.said == SAID
    assert [exchange.id for exchange in parsed.exchanges] == [
        f"at-{exchange.offset}" for exchange in parsed.exchanges
    ]


def test_known_bookkeeping_is_passed_over_and_what_is_unknown_is_counted() -> None:
    quiet = [
        {"type": kind, "uuid": kind}
        for kind in ("progress", "system", "queue-operation", "pr-link", "last-prompt")
    ]
    parsed = session(*quiet, {"type": "novel"}, {"uuid": "n"}, 7, *TALK)
    assert parsed.unknown == {"novel": 1, "record without a type": 1, "broken line": 1}
    assert parsed.said == SAID


def test_a_recognised_file_without_a_conversation_gives_nothing() -> None:
    carrier = MemoryTranscript(
        PATH, jsonl({"type": "file-history-snapshot", "snapshot": {"text": "x"}})
    )
    assert recognised(claude_code, carrier)
    assert parse_transcript(claude_code, carrier).exchanges == []


def test_a_torn_line_loses_no_other() -> None:
    data = (
        jsonl(*TALK[:2])
        + b'{"type": "user", "uuid": "x", "mess\n'
        + jsonl(*TALK[2:])
        + jsonl(TALK[0])[:30]
    )
    parsed = parse_transcript(claude_code, MemoryTranscript(PATH, data))
    assert parsed.said == SAID
    assert parsed.unknown == {"broken line": 1}


def test_what_cannot_be_written_is_replaced() -> None:
    parsed = session(
        asked("\ud800", None, "a\ud800\0b"), answered("b", "\ud800", "c\udfff", call("Bash\ud800"))
    )
    assert parsed.said == [("a\ufffd\ufffdb", "c\ufffd")]
    assert (parsed.exchanges[0].id, parsed.exchanges[0].tools) == ("\ufffd", ("[Bash\ufffd]",))


@pytest.mark.parametrize(
    "records",
    [
        TALK,
        [answered("z", None, "Hello."), *TALK],
        [*TALK, asked("e", "b", "And when?"), answered("f", "e", "In May.")],
        [*TALK, asked("e", "d", "Sure?"), asked("f", "b", "And when?"), asked("g", "f", "Oh")],
        [
            *TALK,
            {"type": "system", "uuid": "s", "parentUuid": None, "logicalParentUuid": "d"},
            asked("e", "s", "On"),
        ],
        [
            *TALK,
            asked("e", None, "Still there?"),
            answered("f", "e", "Yes."),
            asked("g", "lost", "Good."),
        ],
    ],
    ids=[
        "a line",
        "a preamble",
        "a rewound question",
        "two rewound questions",
        "a compaction",
        "roots",
    ],
)
def test_reading_goes_on_from_any_question(records: list[Given]) -> None:
    assert resumes(*records)


@pytest.mark.parametrize(
    "later",
    [
        [{"type": "system", "uuid": "s", "parentUuid": "b"}, asked("e", "s", "And when?")],
        [asked("e", "b", "And when?"), answered("f", "d", "And handy.")],
        TALK[:2],
    ],
    ids=["through a system line", "by an answer", "by a repeated line"],
)
def test_what_refers_to_before_the_start_says_so(later: list[Given]) -> None:
    assert resumes(*TALK, *later)


def test_a_tool_with_a_list_for_its_name_raises_nothing() -> None:
    tool = call(["Edit"], file_path="a")  # type: ignore[arg-type]
    taken = session(asked("a", None, "Go"), answered("b", "a", tool, "Done."))
    assert taken.said == [("Go", "Done.")]


RECORDS = [
    {"type": "summary", "summary": "s", "leafUuid": "d"}, *TALK, answered("e", "d", call("Edit", file_path="a"), "More."),
    result("f", "e"), {"type": "system", "uuid": "s", "parentUuid": None, "logicalParentUuid": "f"},
    asked("g", "b", [prose("<ide_selection>x</ide_selection>y"), {"type": "image"}]), {"type": "ai-title", "aiTitle": "t"},
    asked("h", "g", "<command-name>/a</command-name><command-args>b c</command-args>"),
]  # fmt: skip


def test_an_odd_value_at_any_place_raises_nothing() -> None:
    for changed in everywhere(RECORDS):
        if all(
            isinstance(name, str | int | float | None) for name in _names(changed)
        ):  # The defect above.
            survives(claude_code, PATH, jsonl(*changed))


def _names(records: list[Any]) -> list[object]:
    call_of = records[5] if isinstance(records[5], dict) else {}
    message = call_of.get("message")
    content = message.get("content") if isinstance(message, dict) else []
    return (
        [each.get("name") for each in content if isinstance(each, dict)]
        if isinstance(content, list)
        else []
    )


@settings(deadline=None)
@given(broken([each for each in RECORDS if each is not RECORDS[5]], lines=True))
def test_nothing_that_is_broken_raises(data: bytes) -> None:
    survives(claude_code, PATH, data)


def test_deep_nesting_and_huge_numbers_lose_no_other_line() -> None:
    odd = [
        json.dumps(asked("x", "d", "Deep")).replace('"Deep"', value).encode()
        for value in ("[" * 9_000 + "]" * 9_000, "1" * 9_000)
    ]
    parsed = parse_transcript(claude_code, MemoryTranscript(PATH, b"\n".join([*odd, jsonl(*TALK)])))
    assert parsed.said == SAID
    assert parsed.unknown == {"broken line": 2}


def by_hand(data: bytes) -> list[str]:
    """Return the uuids of typed questions in a sample, found without the reader."""
    found: dict[str, None] = {}
    for record in map(json.loads, data.splitlines()):
        content = record.get("message", {}).get("content")
        texts = (
            [content]
            if isinstance(content, str)
            else [each["text"] for each in content or [] if each["type"] == "text"]
        )
        flags = ("isMeta", "isSidechain", "isCompactSummary", "isVisibleInTranscriptOnly")
        noise = ("<", "[Request", "Caveat:", "This session is")
        typed = [text for text in texts if text.strip() and not text.lstrip().startswith(noise)]
        typed += [
            text for text in texts if "<command-args>" in text and "create TODO app" in text
        ]  # Of the viewer's sample.
        if record["type"] == "user" and typed and not any(record.get(flag) for flag in flags):
            found[record["uuid"]] = None
    return list(found)


@pytest.mark.skipif(not SAMPLES.exists(), reason="the samples are not part of the repository")
@pytest.mark.parametrize(
    "name", ["grow_1284c080/t1", "grow_1284c080/t3", "viewer/fe5e1c67-53e7-4862-81ae-d0e013e3270b"]
)
def test_the_samples_questions_are_those_found_by_hand(name: str) -> None:
    data = (SAMPLES / f"{name}.jsonl").read_bytes()
    carrier = MemoryTranscript(f"{name}.jsonl", data)
    assert recognised(claude_code, carrier)
    parsed = parse_transcript(claude_code, carrier)
    assert [
        exchange.id
        for exchange in parsed.exchanges
        if exchange.kind == "exchange" and exchange.question
    ] == by_hand(data)
    assert not parsed.unknown
