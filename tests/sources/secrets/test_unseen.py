"""Secrets that something unseen runs through, or that a cut would leave half: in texts, names and tools' calls."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from anchord.sources.conversations.events import Exchange
from anchord.sources.conversations.exchange_document import encode_exchange
from anchord.sources.conversations.exchange_redaction import (
    MAX_TOOL_CHARS,
    cut_tools,
    redact_encoded_exchange,
    redact_exchange,
)
from anchord.sources.conversations.formats.json_records import format_tool_call
from anchord.sources.files.secret_names import redact_path
from anchord.sources.files.source_memory import SourceMemory
from anchord.sources.secrets.redactor import redact

TOKEN = "ghp_" + "sfxLHMtlw4tUa5zGyYT6S48Z3qbNqSHY0ilv"
PASSWORD = "kzQw77pLmX" + "vR9Tb3Ue5a"
UNSEEN = [
    "\u200b",
    "\u00ad",
    "\ufe0f",
    "\U000e0041",
    "\x01",
    "\u2028",
    "\x1b[1m",
    "\x1b(B",
    "\x1b]8;;http://x\x07",
    "\x1bP1$r\x1b\\",
    "&#8203;",
    "&#x200B;",
    "&zwnj;",
    "&shy;",
    r"\u200b",
    r"\u{200b}",
    r"\u00ad",
    "<wbr>",
]


def split_by(unseen: str) -> str:
    return unseen.join(TOKEN[place : place + 5] for place in range(0, len(TOKEN), 5))


@pytest.mark.parametrize("unseen", UNSEEN, ids=ascii)
def test_a_token_is_seen_through_what_is_not_seen(unseen: str) -> None:
    redacted = redact(f"The token is {split_by(unseen)} as said.")
    assert redacted.text.startswith("The token is [REDACTED:")
    assert redacted.text.endswith("] as said.")
    assert TOKEN[-5:] not in redacted.text


@pytest.mark.parametrize("unseen", [each for each in UNSEEN if "/" not in each], ids=ascii)
def test_a_token_in_a_name_is_seen_likewise(unseen: str) -> None:
    redacted = redact_path(f"notes/{split_by(unseen)}.md")
    assert redacted.startswith("notes/[REDACTED:")
    assert redacted.endswith("].md")


def test_what_only_resembles_it_stays() -> None:
    text = r"A A, &nbsp;, <b>, & and &amp; \u{1f600} stay; 5 < 7"
    assert redact(text).text == text


def test_of_an_ignore_file_no_comment_is_stored_and_no_pattern_that_holds_a_secret(
    tmp_path: Path,
) -> None:
    file = tmp_path / "seen.json"
    memory = SourceMemory(file)
    memory.rules = {
        "/a/.gitignore": f"# the token is {TOKEN}\n*.log\n!keep.log\n".encode(),
        "/b/.gitignore": f"{TOKEN}*\n".encode(),
    }
    memory.save()
    assert TOKEN not in file.read_text()
    assert SourceMemory(file).rules == {"/a/.gitignore": b"#\n*.log\n!keep.log\n"}


def exchange(tool: str) -> Exchange:
    return Exchange(session="s", id="e", number=0, question="q", answer="a", tools=(tool,))


@pytest.mark.parametrize("place", range(MAX_TOOL_CHARS - 60, MAX_TOOL_CHARS + 5))
def test_a_secret_in_a_call_is_replaced_before_the_call_is_cut(place: int) -> None:
    before = ("step; " * 60)[: place - len("[Bash] ")]
    for secret, kept in (
        (f"postgres://admin:{PASSWORD}@db.example.org/prod", PASSWORD),
        ("".join(f"%{ord(letter):02x}" for letter in TOKEN), f"%{ord(TOKEN[4]):02x}"),
        (TOKEN, TOKEN[:12]),
    ):
        call = format_tool_call("Bash", {"command": f"{before} {secret} -c 'select 1'"})
        clean, _ = redact_exchange(exchange(call))
        assert kept not in clean.tools[0]
        assert len(clean.tools[0]) <= MAX_TOOL_CHARS


def test_calls_are_cut_where_nothing_is_replaced_and_stay_without_repetitions() -> None:
    calls = tuple(f"[Bash] {'x' * 300} {number}" for number in range(3))
    cut = cut_tools(Exchange(session="s", id="e", number=0, question="q", answer="a", tools=calls))
    assert cut.tools == (f"[Bash] {'x' * 300}"[:MAX_TOOL_CHARS],)


@pytest.mark.parametrize("other", ["", f"--token {TOKEN} "], ids=["alone", "beside another"])
def test_a_stored_call_that_was_cut_first_loses_the_word_that_was_cut(other: str) -> None:
    end = f"{other}postgres://admin:{PASSWORD}"
    before = "[Bash] " + ("step; " * 60)[: MAX_TOOL_CHARS - len("[Bash] ") - len(end)]
    data = encode_exchange(exchange(before + end))
    clean, _ = redact_encoded_exchange(data, tools_were_cut_first=True)
    fields: Any = json.loads(clean)
    assert PASSWORD[:8] not in fields["tools"][0]
    assert TOKEN not in fields["tools"][0]
    again, _ = redact_encoded_exchange(clean, tools_were_cut_first=True)
    assert again == clean


def test_a_call_that_was_cut_after_its_secrets_were_replaced_keeps_its_words() -> None:
    data = encode_exchange(exchange("[Bash] " + "step " * 38 + "ab,"))
    assert redact_encoded_exchange(data, tools_were_cut_first=False)[0] == data
