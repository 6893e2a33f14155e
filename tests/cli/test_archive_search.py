"""A conversation that several files contain is found once."""

from __future__ import annotations

from pathlib import Path

import pytest
from cli.conftest import Shell
from cli.test_detached import GONE, configure
from conversations.conftest import claude

TRANSCRIPT = """> Where do gulls sleep?

On chimneys, said the assistant.

> Why?

For warmth.

> And then?

They fly.
"""


def hits(shell: Shell, *options: str) -> list[str]:
    """Return the files of the hits that answer the question."""
    groups = shell("search", "gulls sleep on chimneys", "--json", *options).json["groups"]
    return [hit["path"] for group in groups for hit in group if "chimneys" in hit["text"]]


@pytest.mark.parametrize("option", [[], ["--show-chunks"]], ids=["grouped", "chunks"])
def test_a_session_that_moved_between_two_roots_is_found_once(
    shell: Shell, option: list[str]
) -> None:
    other = shell.base / "other"
    other.mkdir()
    shell.configure(
        "[[root]]", f'path = "{shell.notes}"', 'kind = "conversations"', 'name = "one"',
        "[[root]]", f'path = "{other}"', 'kind = "conversations"', 'name = "two"',
    )  # fmt: skip
    file = Path(shell.write("s2.jsonl", claude(*GONE, session="s2")))
    shell("index")
    file.rename(other / "s2.jsonl")
    shell("index")
    assert len(hits(shell, *option)) == 1


def test_a_copy_of_a_transcript_is_found_once(shell: Shell) -> None:
    configure(shell, shell.notes)
    shell.write("a.md", TRANSCRIPT)
    shell.write("b.md", TRANSCRIPT)
    shell("index")
    assert len(hits(shell)) == 1


def test_the_same_words_said_at_two_times_are_found_twice(shell: Shell) -> None:
    configure(shell, shell.notes)
    shell.write("a.jsonl", claude(*GONE, session="a"))
    shell.write("b.jsonl", claude(*GONE, session="b").replace(b"2026-01-02", b"2026-01-03"))
    shell("index")
    assert len(hits(shell)) == 2
