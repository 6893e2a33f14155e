"""Aider's chat history: the texts of user and assistant are read; aider's own messages are not."""

from __future__ import annotations

import time
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from sources.conversations.formats.carriers import (
    MemoryTranscript,
    ParsedTranscript,
    parse_transcript,
    recognised,
)

from anchord.sources.conversations.events import Exchange
from anchord.sources.conversations.exchanges import build_exchanges
from anchord.sources.conversations.formats import aider

PATH = "shop/.aider.chat.history.md"
SAMPLE = Path("/work/shared/samples/aider/chat-history.md")
BANNER = "> Aider v0.50.1  \n> Main model: claude-3-5-sonnet with diff edit format  \n> Git repo: .git with 3 files  \n"


def started(at: str = "2024-08-05 19:33:02") -> str:
    return f"\n# aider chat started at {at}\n\n{BANNER}"


def asked(text: str) -> str:
    """As aider writes what was typed."""
    return "\n" + "".join(f"#### {line}  \n" for line in text.split("\n"))


def answered(text: str) -> str:
    return f"\n{text}\n\n"


def history(*parts: str) -> ParsedTranscript:
    return parse_transcript(aider, MemoryTranscript(PATH, "".join(parts).encode()))


def test_a_history_is_known_by_its_name() -> None:
    assert recognised(aider, MemoryTranscript(PATH, b""))


@pytest.mark.parametrize(
    "name",
    [".aider.input.history", ".aider.llm.history", ".aider.tags.cache.v3/cache.db", "README.md"],
)
def test_its_other_files_and_other_markdown_are_not(name: str) -> None:
    assert not recognised(aider, MemoryTranscript(f"shop/{name}", b"# hello\n\n#### world\n"))


def test_markdown_under_another_name_is_known_by_its_sessions() -> None:
    assert recognised(aider, MemoryTranscript("kept.md", started().encode()))
    assert recognised(
        aider, MemoryTranscript("kept.md", (b"torn\n" + (started() + started()).encode()))
    )
    assert not recognised(
        aider, MemoryTranscript("guide.md", b"Aider writes:\n" + started().encode())
    )


def test_a_question_and_its_answer_are_read_verbatim() -> None:
    parsed = history(
        started(), asked("Why  so slow?\n\n  x = 1"), answered("Because.\n\n```py\nx = 1\n```")
    )
    assert parsed.said == [("Why  so slow?\n\n  x = 1", "Because.\n\n```py\nx = 1\n```")]


def test_each_start_is_a_session_and_a_time_that_repeats_is_made_unique() -> None:
    again = started("2024-08-05 20:00:00")
    parsed = history(started(), asked("one"), again, asked("two"), again, asked("three"))
    assert [head.session for head in parsed.heads] == [
        "2024-08-05 19:33:02",
        "2024-08-05 20:00:00",
        "2024-08-05 20:00:00 #2",
    ]
    assert [(each.session, each.id, each.number) for each in parsed.exchanges] == [
        ("2024-08-05 19:33:02", "1", 0), ("2024-08-05 20:00:00", "1", 0), ("2024-08-05 20:00:00 #2", "1", 0),
    ]  # fmt: skip
    assert parsed.exchanges[0].at == "2024-08-05T19:33:02.000Z"


def test_what_stands_above_the_first_start_is_a_session_without_a_time() -> None:
    parsed = history(asked("one"), answered("1"), started(), asked("two"))
    assert [(each.session, each.question, each.at) for each in parsed.exchanges] == [
        (PATH, "one", ""), ("2024-08-05 19:33:02", "two", "2024-08-05T19:33:02.000Z"),
    ]  # fmt: skip


def test_the_start_of_a_session_that_is_shown_in_a_fence_is_none() -> None:
    parsed = history(
        started(),
        asked("how does it look?"),
        answered("So:\n```\n# aider chat started at 2020-01-01 00:00:00\n```"),
    )
    assert len(parsed.heads) == 1
    assert "2020" in parsed.said[0][1]


def test_what_aider_says_is_no_prose_also_over_several_lines() -> None:
    tokens = "\n> Tokens: 7.3k sent, 523 received.\nCost: $0.03 message, $0.06 session.  \n"
    tests = "> ===== test session starts =====\nplatform linux\n\nE   assert 1 == 2  and\n    \n> result = f()\n== 1 failed ==  \n"
    parsed = history(
        started(),
        asked("fix it"),
        answered("Done."),
        tokens,
        "> Applied edit to a.py  \n",
        asked("/test x"),
        tests,
    )
    assert parsed.said == [("fix it", "Done.")]


def test_what_aider_says_without_an_end_takes_nothing_along() -> None:
    parsed = history(
        started(),
        asked("fix it"),
        "> Something broke\n",
        answered("Done."),
        "> Applied edit to a.py  \n",
    )
    assert parsed.said == [("fix it", "Done.")]


def test_its_model_programs_and_files_are_kept() -> None:
    parsed = history(
        started(), asked("fix it"), answered("Done."), "> Applied edit to a b.py  \n> Running make test  \n",
        asked("/model gpt-4o"), "> Model: gpt-4o with diff edit format  \n", asked("again"), answered("Done."),
    )  # fmt: skip
    first, second = parsed.exchanges
    assert (first.model, first.tools, first.files) == (
        "claude-3-5-sonnet",
        ("[Run] make test",),
        ("a b.py",),
    )
    assert second.model == "gpt-4o"


def test_headings_and_quotations_in_an_answer_stay() -> None:
    said = "#### Steps\n\n> note this\n\n#### More\n```\n> $ ls  \na.py\n\n#### no question  \n```\nEnd."
    assert history(started(), asked("how?"), answered(said), asked("ok")).said == [
        ("how?", said),
        ("ok", ""),
    ]


def test_an_answer_that_was_broken_off_in_a_fence_ends_at_the_next_question() -> None:
    parsed = history(
        started(),
        asked("one"),
        answered("```py\nx = ("),
        "> ^C again to exit  \n",
        asked("two"),
        answered("2"),
    )
    assert parsed.said == [("one", "```py\nx = ("), ("two", "2")]


def test_without_the_spaces_that_editors_take_away_a_blank_line_makes_a_question() -> None:
    text = "# aider chat started at 2024-08-05 19:33:02\n\n> Aider v1\n\n#### one\n#### more\n\n1\n> Tokens: 1\n\n#### two\n\n2"
    parsed = history(text)
    assert parsed.said == [("one\nmore", "1"), ("two", "2")]
    assert history(text.replace("\n\n#### two", "\n#### two")).said == [
        ("one\nmore", "1\n\n#### two\n\n2")
    ]


def test_commands_are_left_out_but_those_that_ask() -> None:
    parsed = history(
        started(), asked("/add a.py"), asked("/run make\nall"), asked("!ls"), asked("/ask"), asked("<blank>"),
        asked("/ask why?"), answered("So."), asked("/code do it"), asked("/architect plan"), asked("/etc/x is full"),
        asked("/Users/x too"),
    )  # fmt: skip
    assert [question for question, _ in parsed.said] == [
        "/ask why?", "/code do it", "/architect plan", "/etc/x is full", "/Users/x too"
    ]  # fmt: skip


def test_the_question_that_aider_repeats_from_a_command_is_one() -> None:
    parsed = history(
        started(), asked("/ask why?"), asked(" why?"), answered("So."), asked("why?"), answered("As I said."),
        asked("/help how?"), asked("# Question: how?\n\n# Relevant docs:\n\n<doc>"), answered("With care."),
    )  # fmt: skip
    assert parsed.said == [
        ("/ask why?", "So."),
        ("why?", "As I said."),
        ("/help how?", "With care."),
    ]


def test_what_a_linter_says_is_not_typed_and_its_answer_stays_with_the_last_question() -> None:
    parsed = history(
        started(),
        asked("go"),
        answered("Gone."),
        asked("# Fix any errors below, if possible.\n\nE501"),
        answered("OK."),
    )
    assert parsed.said == [("go", "Gone.\n\nOK.")]


@pytest.mark.parametrize(
    "offer",
    [
        "> Add the output to the chat?\n(y/n/instructions) ",
        "> Add the output to the chat? [Y/n/instructions] ",
    ],
)
def test_an_instruction_in_place_of_yes_is_a_question(offer: str) -> None:
    parsed = history(
        started(),
        asked("/run make"),
        "> boom  \n",
        f"{offer}fix the test  \n",
        answered("Fixed."),
        f"{offer}n  \n",
    )
    assert parsed.said == [("fix the test", "Fixed.")]


def test_an_answer_before_any_question_is_kept() -> None:
    assert history(started(), asked("/web http://a"), answered("A page.")).said == [("", "A page.")]


def test_windows_line_ends_and_a_last_line_without_one_are_read() -> None:
    text = (started() + asked("one\ntwo") + answered("1")).rstrip("\n")
    assert parse_transcript(
        aider, MemoryTranscript(PATH, b"\xef\xbb\xbf" + text.replace("\n", "\r\n").encode())
    ).said == [("one\ntwo", "1")]


PARTS = st.lists(
    st.sampled_from(
        [started(), started("2024-08-06 10:00:00"), asked("one"), asked("a\nb"), asked("/ask why"), asked("why"),
         asked("/add x"), answered("Yes."), answered("```py\nx\n```"),
         "> Tokens: 1\nCost: 2  \n", "> Applied edit to x  \n", "\n> quoted\n\n"]
    ),
    max_size=12,
)  # fmt: skip


def made(data: bytes, start: int = 0, number: int = 0) -> list[Exchange]:
    parsed = build_exchanges(aider.read_events(MemoryTranscript(PATH, data), start), number)
    return [each for each in parsed if isinstance(each, Exchange)]


@given(PARTS)
def test_read_on_from_a_question_it_is_read_as_from_the_beginning(parts: list[str]) -> None:
    data = "".join(parts).encode()
    whole = made(data)
    for place, each in enumerate(whole):
        on = made(data, each.offset, each.number)
        assert [(e.session, e.id, e.number, e.question, e.answer) for e in on] == [
            (e.session, e.id, e.number, e.question, e.answer) for e in whole[place:]
        ]  # fmt: skip
        assert not each.question or data[each.offset :].startswith(b"#### ")


@given(PARTS, PARTS)
def test_what_is_appended_changes_the_last_exchange_alone(
    before: list[str], after: list[str]
) -> None:
    first, both = made("".join(before).encode()), made("".join(before + after).encode())
    assert both[: max(len(first) - 1, 0)] == first[:-1]
    assert [(each.session, each.id) for each in both[: len(first)]] == [
        (each.session, each.id) for each in first
    ]


SCRAPS = ["#### ", "####", "> ", "# aider chat started at ", "2024-08-05 19:33:02", "```", "  ", "\n", "\r", "/ask x",
          "(y/n/instructions) z", "> Add the output to the chat?", "\ud800", "\0", "é"]  # fmt: skip


@given(st.lists(st.sampled_from(SCRAPS), max_size=40), st.integers(0, 200))
def test_nothing_is_raised_whatever_stands_in_it(parts: list[str], end: int) -> None:
    data = "".join(parts).encode("utf-8", "surrogatepass")[:end]
    assert recognised(aider, MemoryTranscript(PATH, data))
    parsed = parse_transcript(aider, MemoryTranscript(PATH, data))
    names = [(each.session, each.id) for each in parsed.exchanges]
    assert len(set(names)) == len(names)


@given(st.binary(max_size=300))
def test_nothing_is_raised_for_bytes_that_are_no_text(data: bytes) -> None:
    parse_transcript(aider, MemoryTranscript(PATH, data))


@pytest.mark.skipif(not SAMPLE.exists(), reason="the samples are not here")
def test_the_sample_is_read_whole_and_fast() -> None:
    """1,769 typed blocks, minus 751 commands, 11 blanks, 13 of a linter and 110 repetitions; 12 instructions."""
    carrier = MemoryTranscript("chat-history.md", SAMPLE.read_bytes())
    assert recognised(aider, carrier)
    before = time.process_time()
    parsed = parse_transcript(aider, carrier)
    assert time.process_time() - before < 2
    assert (
        len(parsed.heads) == carrier.data.count(b"\n# aider chat started at ") + 1 == 1134
    )  # One is above the first start.
    assert (
        len([each for each in parsed.exchanges if each.question]) == 1769 - 751 - 11 - 13 - 110 + 12
    )
    assert sum(len(each.answer) for each in parsed.exchanges) > 1_800_000
    assert not any("Tokens: " in each.answer.partition("\n")[0] for each in parsed.exchanges)
