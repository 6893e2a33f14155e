"""Markdown transcripts: every line is in exactly one turn or above the first one."""

from __future__ import annotations

from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st
from sources.conversations.formats.carriers import (
    MemoryTranscript,
    ParsedTranscript,
    parse_transcript,
    recognised,
)

from anchord.sources.conversations.formats import markdown_transcript as transcript

PATH = "talks/2024-05-01.md"
QUOTED = "> Why so slow?\nThe till is old.\n\n> And a new one?\nIs dear.\n\n> How dear?\nVery.\n"


def read(text: str) -> ParsedTranscript:
    return parse_transcript(transcript, MemoryTranscript(PATH, text.encode()))


def known(text: str, path: str = PATH) -> bool:
    return recognised(transcript, MemoryTranscript(path, text.encode()))


@pytest.mark.parametrize("text", [
    QUOTED, "## User\na\n## Assistant\nb\n## User\nc", "**User:** a\n\n**Assistant:** b\n\n**User:** c",
    "User: a\nAssistant: b\nUser: c", "Human: a\n\nAI: b\n\nHuman: c",
    "> [!user]\n> a\n\n> [!assistant]\n> b\n\n> [!user]\n> c",
    "##### You said:\na\n###### ChatGPT said:\nb\n##### You said:\nc", "---\ntitle: x\ntype: transcript\n---\nNothing yet.",
])  # fmt: skip
def test_a_transcript_is_known_by_its_turns_or_because_it_says_so(text: str) -> None:
    assert known(text)
    assert known(text, "talks/a.txt")
    assert not known(text, "talks/a.py")


@pytest.mark.parametrize("text", [
    "# Shop\n\n> A till.\n\nText.\n\n> Another.\n", "User: a\nAssistant: b\n", "User: a\nUser: b\nUser: c\n",
    "user: root\nai: no\nuser: x",
    "## User guide\n\n## Assistant setup\n\n## User accounts\n", "**User** is one.\n**Assistant** is two.\n**User** is one.\n",
    "```\nUser: a\nAI: b\nUser: c\n```\n", QUOTED + "\n#### Heading\n", QUOTED + "\n_**User**_\n",
    "# aider chat started at 2024-05-01 10:00:00\n\n" + QUOTED, "- User: a\n- AI: b\n- User: c\n", "",
    "```\n" + QUOTED + "```\n", "> [!note] a\n\n> [!tip] b\n\n> [!warning] c\n", "Text.\n---\ntype: transcript\n---\n",
])  # fmt: skip
def test_other_texts_are_none(text: str) -> None:
    assert not known(text)


def test_only_front_matter_declares() -> None:
    assert transcript.declares_transcript(
        b"\xef\xbb\xbf---\r\ntags: [a]\r\nType: 'transcript'\r\n---\r\n"
    )
    assert not transcript.declares_transcript(QUOTED.encode())
    assert not transcript.declares_transcript(b"---\ntype: note\n---\ntype: transcript\n")


def test_a_quoted_line_is_a_question_and_what_follows_its_answer() -> None:
    parsed = read(QUOTED)
    assert parsed.said == [
        ("Why so slow?", "The till is old."),
        ("And a new one?", "Is dear."),
        ("How dear?", "Very."),
    ]
    assert [(each.session, each.id, each.number) for each in parsed.exchanges] == [
        (PATH, "1", 0),
        (PATH, "2", 1),
        (PATH, "3", 2),
    ]


def test_quoted_lines_in_a_row_are_one_question() -> None:
    assert read("> a\n>\n>   b\n>> c\n>d\ne").said == [("a\n\n  b\n> c\nd", "e")]


def test_questions_with_nothing_between_are_two() -> None:
    assert read("> a\n\n> b\n").said == [("a", ""), ("b", "")]


def test_a_quoted_line_right_below_an_answer_is_a_quotation() -> None:
    assert read("> a\nAs they say:\n> b\n> c\n\n> d\n").said == [
        ("a", "As they say:\n> b\n> c"),
        ("d", ""),
    ]


def test_a_quoted_line_in_a_fence_or_within_a_line_is_none() -> None:
    said = "```\n\n> b\n```\n\n  > c\n\n>d\n\n> [!note]\n> e"
    assert read(f"> a\n{said}\n").said == [("a", said)]


def test_a_fence_that_is_left_open_does_not_hide_the_questions_below() -> None:
    assert read("> a\n```\nb\n\n> c\nd\n").said == [("a", "```\nb"), ("c", "d")]


def test_a_rule_is_kept_and_a_question_may_follow_it() -> None:
    assert read("> a\nb\n\n---\n> c\nd\n\n---\n\ne\n").said == [
        ("a", "b\n\n---"),
        ("c", "d\n\n---\n\ne"),
    ]


def test_what_stands_above_the_first_question_is_a_preamble_and_gives_the_title() -> None:
    parsed = read("# On tills\n\nIn May.\n> a\nb")
    assert parsed.said == [("", "# On tills\n\nIn May."), ("a", "b")]
    assert parsed.title == "On tills"


def test_front_matter_gives_the_title_and_is_no_text() -> None:
    parsed = read('---\ntitle: "On tills"\ntags:\n  - a\ntype: transcript\n---\n\n> a\nb')
    assert (parsed.title, parsed.said) == ("On tills", [("a", "b")])


@pytest.mark.parametrize(
    "text",
    ["---\n> a\nb\n---\n", "---\n\n# A\n\n---\n", "---\nUser: a\nAI: b\n---\n", "---\ntitle: a\n"],
)
def test_what_is_between_rules_at_the_top_is_not_always_front_matter(text: str) -> None:
    parsed = " ".join(f"{question} {answer}" for question, answer in read(text).said)
    assert "a" in parsed.lower()


@pytest.mark.parametrize(("user", "model"), [
    ("## User\n", "## Assistant\n"), ("### Human:\n", "### AI:\n"), ("## 👤 User\n\n", "## 🤖 Claude\n\n"),
    ("**User:** ", "**Assistant:** "), ("**You**: ", "**ChatGPT**: "), ("**User**\n", "**GPT-4o**\n"),
    ("User: ", "Assistant: "),
    ("Human: ", "AI: "), ("You:\n", "Claude:\n"), ("## You said:\n", "## ChatGPT said:\n"), ("USER: ", "ASSISTANT: "),
    ("**User (2024-05-01 10:00:00Z):** ", "**AI [gpt-4o]:** "), ("> [!user]\n> ", "> [!assistant]\n> "),
    ("> [!question]- User\n> ", "> [!AI]+\n> "), ("> [!user] ", "> [!claude] "), ("> [!user]\n> ", ""),
])  # fmt: skip
def test_speakers_are_marked_in_many_ways(user: str, model: str) -> None:
    parsed = read(f"{user}one\n\n{model}two\n\n{user}three\n\n{model}four\n")
    assert parsed.said == [("one", "two"), ("three", "four")]
    assert known(f"{user}one\n\n{model}two\n\n{user}three\n\n{model}four\n") or not model


def test_a_turn_goes_on_to_the_next_mark_with_all_its_lines() -> None:
    code = "```py\nx = 1\n\nUser: no\n```\n\n- User: no\n\n  User: no\n\n---\n\n> quoted"
    parsed = read(f"**User:** one\nmore\n\n**Assistant:** {code}\n\n**User:** two\n")
    assert parsed.said == [("one\nmore", code), ("two", "")]


def test_callouts_are_read_without_their_marks_and_text_below_answers() -> None:
    asked, answered = (
        "> [!user]\n> one\n> \n> > quoted\n",
        "> [!assistant]\n> ```py\n> x\n> ```\n\n",
    )
    parsed = read(f"{asked}{answered}plain\n\n> [!note]\n> kept\n\n> [!user]\n> two\n")
    assert parsed.said == [
        ("one\n\n> quoted", "```py\nx\n```\n\nplain\n\n> [!note]\n> kept"),
        ("two", ""),
    ]


def test_a_time_beside_the_speaker_is_read() -> None:
    parsed = read("## User (2024-05-01 10:00:00Z)\na\n\n## Assistant (2024-05-01 10:00:05Z)\nb\n")
    assert (parsed.exchanges[0].at, parsed.exchanges[0].until) == (
        "2024-05-01T10:00:00.000Z",
        "2024-05-01T10:00:05.000Z",
    )


def test_what_is_written_below_changes_neither_the_style_nor_what_is_above() -> None:
    first = read(QUOTED).exchanges
    more = read(QUOTED + "\n" + "User: a\nAI: b\n" * 9 + "\n> [!user]\n> a\n").exchanges
    assert more[:2] == first[:2]
    assert (more[2].id, more[2].question) == (first[2].id, first[2].question)


def test_one_turn_is_read_as_it_will_be_once_there_are_more() -> None:
    assert read("Above.\n\n> a\nb").said == [("", "Above."), ("a", "b")]
    assert read("Above.\n\nUser: a\nAI: b").said == [("", "Above."), ("a", "b")]
    assert read("Just words.").said == [("", "Just words.")]


def test_windows_line_ends_are_read() -> None:
    assert (
        parse_transcript(
            transcript,
            MemoryTranscript(PATH, b"\xef\xbb\xbf" + QUOTED.replace("\n", "\r\n").encode()),
        ).said
        == read(QUOTED).said
    )


LINES = st.lists(
    st.sampled_from(
        ["", "", "{}", "> {}", ">{}", ">", "> [!user] {}", "> [!assistant]", "> [!note] {}", "## User", "## User: {}",
         "### Assistant", "**User:** {}", "**AI:**", "User: {}", "Assistant: {}", "---",
         "```", "```py", "~~~", "# {}", "- {}", "  > {}", "  {}"]
    ),
    max_size=30,
)  # fmt: skip


def written(lines: list[str], first: int = 0) -> str:
    """Add a unique word to each line."""
    return "\n".join(line.format(f"word{number}w") for number, line in enumerate(lines, first))


@given(LINES)
def test_every_word_is_in_exactly_one_exchange(lines: list[str]) -> None:
    text = written(lines)
    parsed = Counter(f"{question}\n{answer}" for question, answer in read(text).said)
    for word in (word for word in text.replace("\n", " ").split() if "word" in word):
        bare = word.lstrip(">")
        assert sum(count for each, count in parsed.items() if bare in each) == 1
    assert "".join(parsed).count("word") == text.count("word")


@given(LINES.map(lambda lines: [line for line in lines if line[:3] not in ("```", "~~~")]), LINES)
def test_what_is_appended_changes_no_exchange_but_the_last(
    before: list[str], after: list[str]
) -> None:
    top = ["> {}", "{}", "", "> {}", "{}", "", "> {}", *before]
    first, both = read(written(top)).exchanges, read(written([*top, "", *after, ""])).exchanges
    last = len(first) - 1
    assert both[:last] == first[:last]
    assert (both[last].id, both[last].question) == (first[last].id, first[last].question)


SCRAPS = [
    *"\n>#*-`~:[]! ",
    "User",
    "AI",
    "---\n",
    "type: transcript\n",
    "\ud800",
    "\0",
    "é",
    "> [!user]",
]


@given(st.lists(st.sampled_from(SCRAPS), max_size=60), st.integers(0, 100))
def test_nothing_is_raised_whatever_stands_in_it(parts: list[str], end: int) -> None:
    data = "".join(parts).encode("utf-8", "surrogatepass")[:end]
    recognised(transcript, MemoryTranscript(PATH, data))
    parsed = parse_transcript(transcript, MemoryTranscript(PATH, data))
    names = [(exchange.session, exchange.id) for exchange in parsed.exchanges]
    assert len(set(names)) == len(names)


@given(st.binary(max_size=300))
def test_nothing_is_raised_for_bytes_that_are_no_text(data: bytes) -> None:
    recognised(transcript, MemoryTranscript(PATH, data))
    parse_transcript(transcript, MemoryTranscript(PATH, data))
