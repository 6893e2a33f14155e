"""pi: every message is read; the branch of the last entry is active, all others are superseded."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

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

from anchord.sources.conversations.formats import pi

PATH = "--home-ann-shop--/2025-12-01T10-00-00-000Z_5f0c.jsonl"
SAMPLE = Path("/work/shared/samples/pi/large-session.jsonl")
HEADER = {
    "type": "session",
    "version": 3,
    "id": "5f0c",
    "timestamp": "2025-12-01T10:00:00.000Z",
    "cwd": "/home/ann/shop",
}


def entry(
    key: str, parent: str | None, role: str, content: object, **more: object
) -> dict[str, object]:
    message = {"role": role, "content": content, **more}
    return {
        "type": "message",
        "id": key,
        "parentId": parent,
        "timestamp": "2025-12-01T10:00:01.5Z",
        "message": message,
    }


def asked(key: str, parent: str | None, said: str) -> dict[str, object]:
    return entry(key, parent, "user", [{"type": "text", "text": said}])


def answered(
    key: str, parent: str | None, said: str, *calls: dict[str, object]
) -> dict[str, object]:
    return entry(key, parent, "assistant", [{"type": "text", "text": said}, *calls], model="opus")


def call(name: str, **arguments: object) -> dict[str, object]:
    return {"type": "toolCall", "id": "c", "name": name, "arguments": arguments}


def session(
    *entries: Mapping[str, object], header: Mapping[str, object] | None = None
) -> ParsedTranscript:
    return parse_transcript(pi, MemoryTranscript(PATH, jsonl(header or HEADER, *entries)))


def superseded(parsed: ParsedTranscript) -> list[tuple[str, str]]:
    return [
        (exchange.question, exchange.answer) for exchange in parsed.exchanges if exchange.superseded
    ]


TALK = [asked("a", None, "Where is the till?"), answered("b", "a", "At the door."), asked("c", "b", "And why?"),
        answered("d", "c", "It was cheap.")]  # fmt: skip


def test_a_header_without_a_version_is_that_of_a_session() -> None:
    header = {key: value for key, value in HEADER.items() if key != "version"}
    assert recognised(pi, MemoryTranscript(PATH, jsonl(header, *TALK)))


def test_a_header_without_a_folder_is_that_of_an_old_session() -> None:
    header = {key: value for key, value in HEADER.items() if key != "cwd"}
    assert recognised(pi, MemoryTranscript(PATH, jsonl(header, *TALK)))


@pytest.mark.parametrize(
    "first",
    [
        TALK[0],
        {"type": "session.start", "data": {"cwd": "/"}},
        {"type": "session_meta", "cwd": "/"},
        {"type": "session", "id": "a"},
        {"type": "session", "timestamp": "b"},
    ],
)
def test_another_first_line_is_not_that_of_a_session(first: dict[str, object]) -> None:
    assert not recognised(pi, MemoryTranscript(PATH, jsonl(first, HEADER)))


def test_another_ending_is_not_that_of_a_session() -> None:
    assert not recognised(pi, MemoryTranscript("a.json", jsonl(HEADER)))


def test_questions_and_answers_are_read_in_their_order() -> None:
    parsed = session(*TALK)
    assert parsed.said == [("Where is the till?", "At the door."), ("And why?", "It was cheap.")]
    assert [exchange.id for exchange in parsed.exchanges] == ["a", "c"]
    assert parsed.exchanges[0].at == "2025-12-01T10:00:01.500Z"
    assert parsed.exchanges[0].model == "opus"
    assert (parsed.heads[0].session, parsed.project) == ("5f0c", "/home/ann/shop")
    assert not parsed.unknown


def test_entries_of_the_first_version_are_one_line_of_conversation() -> None:
    bare = [
        {key: value for key, value in each.items() if key not in ("id", "parentId")}
        for each in TALK
    ]
    parsed = session(*bare)
    assert parsed.said == session(*TALK).said
    assert [exchange.id for exchange in parsed.exchanges] == [
        f"at-{exchange.offset}" for exchange in parsed.exchanges
    ]


def test_a_name_that_was_given_is_the_title() -> None:
    info = {"type": "session_info", "id": "n", "parentId": "d", "name": " Shop "}
    assert session(*TALK, info).title == "Shop"


def test_the_header_names_the_session_or_else_the_file() -> None:
    assert session(*TALK, header={"type": "session", "cwd": "/"}).heads[0].session == "5f0c"
    assert session(*TALK, header={**HEADER, "id": "other"}).heads[0].session == "other"


def test_a_copied_header_does_not_name_the_session() -> None:
    parsed = session({"type": "session", "id": "old", "cwd": "/old"}, *TALK)
    assert (parsed.heads[0].session, parsed.project) == ("5f0c", "/home/ann/shop")


def test_a_fork_is_no_sub_agents_session() -> None:
    assert session(*TALK, header={**HEADER, "parentSession": "/old.jsonl"}).heads[0].parent == ""


def test_a_text_in_place_of_blocks_is_prose() -> None:
    assert session(entry("a", None, "user", "Hello"), entry("b", "a", "assistant", "Hi")).said == [
        ("Hello", "Hi")
    ]


def test_calls_of_tools_are_lines_and_changed_files_are_named() -> None:
    calls = [
        call("bash", command="ls\n-l"),
        call("edit", path="till.py", oldText="a"),
        call("read", path="door.py"),
    ]
    parsed = session(
        asked("a", None, "Go"), answered("b", "a", "", *calls), answered("c", "b", "Done.")
    )
    assert parsed.said == [("Go", "Done.")]
    assert parsed.exchanges[0].tools == ("[bash] ls -l", "[edit] till.py", "[read] door.py")
    assert parsed.exchanges[0].files == ("till.py",)


def test_thinking_results_and_summaries_are_no_prose() -> None:
    parsed = session(
        asked("a", None, "Go"),
        entry("b", "a", "assistant", [{"type": "thinking", "thinking": "hm"}]),
        entry("c", "b", "toolResult", [{"type": "text", "text": "output"}]),
        entry("d", "c", "custom", "injected", customType="x", display=True),
        {
            "type": "compaction",
            "id": "e",
            "parentId": "d",
            "summary": "sum",
            "retainedTail": [{"role": "user", "content": "Go"}],
        },
        {"type": "branch_summary", "id": "f", "parentId": "e", "summary": "left"},
        {
            "type": "custom_message",
            "id": "g",
            "parentId": "f",
            "content": "context",
            "display": True,
        },
        {"type": "custom", "id": "h", "parentId": "g", "data": {"text": "state"}},
        {"type": "thinking_level_change", "id": "i", "parentId": "h", "thinkingLevel": "low"},
        {"type": "label", "id": "j", "parentId": "i", "targetId": "a", "label": "here"},
        answered("k", "j", "Done."),
    )
    assert parsed.said == [("Go", "Done.")]
    assert not parsed.unknown


def test_a_command_that_a_person_ran_is_a_line() -> None:
    parsed = session(
        *TALK,
        {
            "type": "message",
            "id": "x",
            "parentId": "d",
            "message": {"role": "bashExecution", "command": "ls"},
        },
    )
    assert parsed.exchanges[-1].tools == ("[bash] ls",)
    assert parsed.said[-1] == ("And why?", "It was cheap.")


def test_an_expanded_skill_is_not_typed_and_what_follows_it_is() -> None:
    parsed = session(
        asked("a", None, '<skill name="tidy" location="/s">\nLong text\n</skill>\n\nthe cellar')
    )
    assert parsed.said == [("the cellar", "")]


def test_files_of_the_command_line_are_attachments() -> None:
    parsed = session(
        asked(
            "a",
            None,
            '<file name="/a.txt">\nfirst\n</file>\n<file name="/b.txt">\nsecond\n</file>\nCompare them',
        )
    )
    assert parsed.said == [("Compare them", "")]
    attached = [
        (each.question, each.answer) for each in parsed.exchanges if each.kind == "attachment"
    ]
    assert attached == [("/a.txt", "first"), ("/b.txt", "second")]


def test_attachments_and_images_come_along_with_the_question() -> None:
    parsed = session(
        entry("a", None, "user", [{"type": "text", "text": "See"}, {"type": "image", "data": "AAAA", "mimeType": "image/png"}],
              attachments=[{"fileName": "list.pdf", "extractedText": "Apples"}])
    )  # fmt: skip
    assert parsed.said == [("See\n\n[image]", "")]
    assert [
        (each.question, each.answer) for each in parsed.exchanges if each.kind == "attachment"
    ] == [("list.pdf", "Apples")]


def test_files_without_a_question_are_named_in_its_place() -> None:
    nameless = entry("b", "a", "user", [], attachments=[{"extractedText": "b"}])
    parsed = session(asked("a", None, '<file name="/a.txt">\nfirst\n</file>'), nameless)
    assert parsed.said == [("[/a.txt]", ""), ("[attachment]", "")]


def test_an_empty_message_is_no_question() -> None:
    assert session(*TALK, entry("e", "d", "user", [])).said == session(*TALK).said


def test_the_model_is_that_of_the_message_or_the_one_chosen_before() -> None:
    chosen = {"type": "model_change", "id": "m", "parentId": "a", "modelId": "haiku"}
    parsed = session(asked("a", None, "Go"), chosen, entry("b", "m", "assistant", "Done."))
    assert parsed.exchanges[0].model == "haiku"
    parsed = session(
        asked("a", None, "Go"),
        answered("b", "a", "Done."),
        asked("c", "b", "On"),
        entry("d", "c", "assistant", "Yes."),
    )
    assert [exchange.model for exchange in parsed.exchanges] == ["opus", "opus"]


def test_a_message_has_a_time_of_its_own() -> None:
    message = {"role": "user", "content": "Hello", "timestamp": 1_764_583_200_000}
    assert (
        session({"type": "message", "message": message}).exchanges[0].at
        == "2025-12-01T10:00:00.000Z"
    )


def test_an_empty_name_leaves_the_title() -> None:
    named = {"type": "session_info", "id": "n", "parentId": "d", "name": "Shop"}
    assert session(*TALK, named, {**named, "id": "o", "name": " "}).title == "Shop"


def test_a_rewound_question_is_superseded() -> None:
    parsed = session(*TALK, asked("e", "b", "And when?"), answered("f", "e", "In May."))
    assert parsed.said == [("Where is the till?", "At the door."), ("And when?", "In May.")]
    assert superseded(parsed) == [("And why?", "It was cheap.")]


def test_a_first_question_that_was_edited_leaves_all_before_it() -> None:
    parsed = session(*TALK, asked("e", None, "Where is the door?"))
    assert parsed.said == [("Where is the door?", "")]
    assert superseded(parsed) == [
        ("Where is the till?", "At the door."),
        ("And why?", "It was cheap."),
    ]


def test_the_last_entry_makes_an_older_branch_active_again() -> None:
    label = {"type": "label", "id": "l", "parentId": "d", "targetId": "a", "label": "x"}
    parsed = session(*TALK, asked("e", "b", "And when?"), answered("f", "e", "In May."), label)
    assert parsed.said == [("Where is the till?", "At the door."), ("And why?", "It was cheap.")]
    assert superseded(parsed) == [("And when?", "In May.")]


def test_an_answer_that_was_left_in_the_middle_has_its_question_again() -> None:
    parsed = session(
        asked("a", None, "Go"),
        answered("b", "a", "First"),
        answered("c", "b", "Astray"),
        answered("d", "b", "Second"),
    )
    assert parsed.said == [("Go", "First\n\nSecond")]
    assert superseded(parsed) == [("Go", "Astray")]
    assert len({exchange.id for exchange in parsed.exchanges}) == 2


def test_calls_alone_that_were_left_make_no_exchange() -> None:
    parsed = session(
        asked("a", None, "Go"),
        answered("b", "a", "", call("bash", command="ls")),
        answered("c", "a", "Done."),
    )
    assert [(each.question, each.answer) for each in parsed.exchanges] == [("Go", "Done.")]


def test_a_lost_entry_does_not_make_a_branch_of_what_was_before_it() -> None:
    data = (
        jsonl(HEADER, *TALK[:2]) + b'{"type": "mess\n' + jsonl(asked("e", "lost", "Still there?"))
    )
    parsed = parse_transcript(pi, MemoryTranscript(PATH, data))
    assert parsed.said == [("Where is the till?", "At the door."), ("Still there?", "")]
    assert parsed.unknown == {"broken line": 1}


def test_a_repeated_entry_is_read_once() -> None:
    assert session(*TALK, TALK[3]).said == session(*TALK).said


def test_a_circle_of_parents_loses_nothing() -> None:
    parsed = session(asked("a", "a", "One"), asked("b", "a", "Two"))
    assert {exchange.question for exchange in parsed.exchanges} == {"One", "Two"}


def test_unknown_entries_and_roles_are_counted() -> None:
    parsed = session(
        {"type": "novel"}, {}, entry("a", None, "narrator", "Once"), {"type": "message"}, *TALK
    )
    assert parsed.unknown == {
        "novel": 1,
        "entry without a type": 1,
        "role narrator": 1,
        "message without a role": 1,
    }


RECORDS = [
    HEADER, *TALK, answered("x", "d", "More", call("edit", path="a"), {"type": "thinking", "thinking": "hm"}),
    asked("y", "b", '<file name="a">\nb\n</file>\n<skill name="c">d</skill>e'),
    {"type": "message", "id": "z", "parentId": "y", "message": {"role": "bashExecution", "command": "ls", "timestamp": 1}},
    {"type": "model_change", "id": "m", "parentId": "z", "modelId": "opus"}, {"type": "session_info", "name": "n"},
]  # fmt: skip


@settings(deadline=None)
@given(broken(RECORDS, lines=True))
def test_nothing_that_is_broken_raises(data: bytes) -> None:
    survives(pi, PATH, data)


@pytest.mark.skipif(not SAMPLE.exists(), reason="the samples are not part of the repository")
def test_the_sample_gives_what_a_person_counts() -> None:
    carrier = MemoryTranscript(str(SAMPLE), SAMPLE.read_bytes())
    assert recognised(pi, carrier)
    parsed = parse_transcript(pi, carrier)
    assert len(parsed.exchanges) == len(parsed.active) == 88
    assert sum(len(question) for question, _ in parsed.said) == 12_492
    assert sum(1 for _, answer in parsed.said if answer) == 76
    # 244 texts of 51,482 characters in 76 answers, with two line ends between each two.
    assert sum(len(answer) for _, answer in parsed.said) == 51_482 + 2 * (244 - 76)
    assert not parsed.unknown
