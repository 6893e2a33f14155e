"""SEEDS 000.20-27: rooms of files, topics of exchanges, types of memories."""

from __future__ import annotations

import pytest

from anchord.index.topics import DEFAULT_TOPIC, memory_type_of, room_of_file, topic_of


@pytest.mark.parametrize(
    ("path", "text", "room"),
    [
        ("docs/setup/linux.md", "anything", "docs"),
        ("Src/main.py", "anything", "src"),
        ("ARCHITECTURE.md", "anything", "architecture"),
        ("roadmap-2026.md", "anything", "planning"),
        (
            "notes.md",
            "The server crashed; the bug is broken code, a regression that fails.",
            "problems",
        ),
        ("notes.md", "Remember the milk.", DEFAULT_TOPIC),
    ],
)
def test_000_20_a_file_is_in_the_room_of_its_folder_or_name_or_first_words(
    path: str, text: str, room: str
) -> None:
    assert room_of_file(path, text) == room


def test_000_20_only_the_first_2000_characters_count() -> None:
    words = "architecture, layers and modules"
    assert topic_of(words) == "architecture"
    assert topic_of("x " * 1_000 + words) == DEFAULT_TOPIC


@pytest.mark.parametrize(
    ("text", "topic"),
    [
        ("Which function of the api runs that sql query?", "technical"),
        ("The components and their interfaces: a design in layers.", "architecture"),
        ("The roadmap: next steps, a deadline, and the backlog.", "planning"),
        ("We decided for the alternatives and rejected the rest.", "decisions"),
        ("It is stuck and fails with an exception.", "problems"),
        ("Good morning!", DEFAULT_TOPIC),
    ],
)
def test_000_21_an_exchange_has_a_topic(text: str, topic: str) -> None:
    assert topic_of(text) == topic


@pytest.mark.parametrize(
    ("text", "kind"),
    [
        ("We decided to keep SQLite.", "decision"),
        ("I always use tabs, and I prefer short names.", "preference"),
        ("It works! We shipped it to everybody.", "milestone"),
        ("The root cause was a stale lock.", "problem"),
        ("The table has five columns.", ""),
    ],
)
def test_000_25_a_memory_has_a_type(text: str, kind: str) -> None:
    assert memory_type_of(text) == kind
