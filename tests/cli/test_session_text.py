"""A session as Markdown: only anchord says who said what."""

from __future__ import annotations

import re

import pytest

from anchord.cli.output.session_text import as_markdown
from anchord.ipc.messages.sessions import SessionDetail, SessionExchange


def markdown(answer: str, tools: tuple[str, ...] = ()) -> str:
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
    session = SessionDetail(
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
    return as_markdown(session, None)


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
