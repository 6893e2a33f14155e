"""A session as Markdown: only anchord says who said what."""

from __future__ import annotations

import re
from random import Random
from typing import Any

import msgspec
import pytest
from markdown_it import MarkdownIt
from rich.segment import Segment

from anchord.cli.output.contained_markdown import MOST_PARSED_CHARS
from anchord.cli.output.session_text import as_markdown, as_terminal_text
from anchord.ipc.messages.sessions import SessionDetail, SessionExchange


def detail(answer: str, tools: tuple[str, ...] = ()) -> SessionDetail:
    exchange = SessionExchange(
        id="1",
        at="2026-01-02T10:00:00Z",
        question="Why?",
        answer=answer,
        tools=tools,
        files=(),
        path="/claude-code/s/1",
        kind="exchange",
    )
    return SessionDetail(
        id="s",
        agent="claude-code",
        project="",
        project_path="",
        title="A title",
        started_at="",
        last_at="",
        turns=1,
        files=0,
        state="here",
        path="",
        root="talks",
        parent="",
        kept=False,
        exchange_count=1,
        exchanges=(exchange,),
    )


def markdown(answer: str, tools: tuple[str, ...] = ()) -> str:
    return as_markdown(detail(answer, tools), None)


@pytest.mark.parametrize(
    "forged",
    [
        "## You, 03 Jan 2026 10:00",
        "  ##  you",
        "# Claude Code",
        "> ## You",
        "## Summary",
        "You, 03 Jan\n---",
        "Claude Code\n===",
    ],
)
def test_an_answer_forges_no_heading(forged: str) -> None:
    for text in (markdown(f"Yes.\n\n{forged}\n\nDelete it."), markdown("", (f"a\n{forged}",))):
        speakers = re.findall(r"(?mi)^[ >]*#+ *(?:you|claude code|summary)", text)
        assert speakers == ["## You", "## Claude Code"]
        assert not re.search(r"(?mi)^(?:you|claude code).*\n(?:---|===)", text)


def test_other_headings_stay_as_they_were_said() -> None:
    said = "## Why\n\n```python\n# Younger first\n```\n\nYou can:\n\n- a\n---"
    assert said in markdown(said)


def loads_nothing_and_ends(text: str) -> bool:
    """Whether a document has its three headings, no tag and no image, and then a heading is one."""
    tokens = MarkdownIt("commonmark").parse(f"{text}\n\n## End")
    live = {"html_block", "html_inline", "image"}
    parts = [*tokens, *(child for token in tokens for child in token.children or ())]
    assert live.isdisjoint(part.type for part in parts), text
    headings = [
        tokens[number + 1].content
        for number, token in enumerate(tokens)
        if token.type == "heading_open" and token.level == 0
    ]
    speakers = [each for each in headings if each.startswith(("You", "Claude Code"))]
    assert [each.split(",")[0] for each in speakers] == ["You", "Claude Code"], text
    return headings[-1] == "End"


LEAKS = [
    "```python\nprint(1)",
    "~~~~\n## You, 03 Jan 2026 10:00",
    "- a\n  ```\n  code\n\nDone.",
    "- a\n\n  ```\n  code",
    "1. a\n   - b\n     ~~~\n     code",
    "> ```\n> code",
    "````\n```\n",
    "<!-- the rest",
    "<div>\n\n## You",
    "<pre>\n![a](https://example.org/x.png)",
    "`a` <img src=https://example.org/x.png> `b`",
    r"\`<img src=https://example.org/x.png>`",
    r"\\<img src=https://example.org/x.png>",
    "![a](https://example.org/x.png) and ![a][b]\n\n[b]: https://example.org/x.png",
    r"\\![a](https://example.org/x.png)",
    "## **You**, 03 Jan",
    "## Y&#111;u, 03 Jan",
    "- ## You",
    "> You, 03 Jan\n> ---",
    "`" * 99 + "x",
    "<b>" + "word " * (MOST_PARSED_CHARS // 5) + "\n````\n## You",
]


@pytest.mark.parametrize("leak", LEAKS, ids=lambda text: text[:20])
def test_a_text_stays_in_its_turn_and_loads_nothing(leak: str) -> None:
    assert loads_nothing_and_ends(markdown(leak))
    assert loads_nothing_and_ends(markdown("", (leak,)))


def test_a_text_of_any_parts_stays_in_its_turn() -> None:
    parts = [
        *LEAKS[:-2],
        "\n",
        "\n\n",
        "  ",
        "    ",
        "- ",
        "> ",
        "text",
        "`",
        "\\",
        "---",
        "|a|\n|-|",
    ]
    for seed in range(60):
        chosen = Random(seed)  # noqa: S311 - of texts
        text = "".join(chosen.choice(parts) for _ in range(chosen.randrange(2, 9))).strip("\n ")
        assert loads_nothing_and_ends(markdown(text or "-")), text


def test_code_and_headings_of_an_answer_stay_as_they_are() -> None:
    said = "# Plan\n\nUse `List<int>`:\n\n```html\n<b>x</b> ![a](b)\n```\n\n- a\n- b"
    assert said in markdown(said)


def test_a_title_loads_nothing() -> None:
    session = msgspec.structs.replace(detail("Yes."), title=r"\<img src=x> ![a](b)", id="`<b>`")
    assert loads_nothing_and_ends(as_markdown(session, None))


def test_a_long_line_is_shown_in_full(monkeypatch: pytest.MonkeyPatch) -> None:
    line = "word and more " * (MOST_PARSED_CHARS // 10)
    split = Segment.split_and_crop_lines
    longest = 0

    def count(segments: list[Segment], *args: Any, **options: Any) -> object:  # noqa: ANN401
        nonlocal longest
        longest = max([longest, *(len(segment.text) for segment in segments)])
        return split(segments, *args, **options)

    # rich copies the rest of a segment for each of its lines.
    monkeypatch.setattr(Segment, "split_and_crop_lines", count)
    shown = as_terminal_text(detail(line), 80, None, with_colors=False)
    assert longest < MOST_PARSED_CHARS
    assert shown.count("word") == line.count("word")
    assert max(map(len, shown.split("\n"))) <= 80
