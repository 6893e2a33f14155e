"""SEEDS 000.20-27: rooms of files, topics of exchanges, types of memories."""

from __future__ import annotations

import pytest

from anchord.config.schema import RoomConfig
from anchord.index.topics import (
    DEFAULT_TOPIC,
    OwnRooms,
    memory_type_of,
    room_of_exchange,
    room_of_file,
    topic_of,
)


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


@pytest.mark.parametrize(
    ("name", "room"),
    [
        ("planet.md", DEFAULT_TOPIC),
        ("capital.md", DEFAULT_TOPIC),
        ("indecision.md", DEFAULT_TOPIC),
        ("release-plan.md", "planning"),
        ("my_PLAN.md", "planning"),
        ("releasePlan2026.md", "planning"),
        ("TODO", "planning"),
        ("rest-api.v2.md", "technical"),
        ("adr-0007.md", "architecture"),
    ],
)
def test_seed_000_20_a_name_is_matched_by_whole_words_at_separators(name: str, room: str) -> None:
    assert room_of_file(name, "Remember the milk.") == room


OWN_ROOMS = OwnRooms(
    (
        RoomConfig(
            name="Billing", keywords=("invoice", "credit note"), paths=("/billing/", "*.inv")
        ),
        RoomConfig(name="garden", keywords=("rose", "Apfelbäume", "k8s")),
    )
)


@pytest.mark.parametrize(
    ("path", "text", "room"),
    [
        ("billing/deep/rose.md", "A rose.", "billing"),
        ("docs/a.inv", "A rose.", "billing"),
        ("docs/billing/a.md", "Nothing.", "docs"),
        ("docs/creditNote.md", "A rose.", "billing"),
        ("docs/prose.md", "Nothing.", "docs"),
        ("docs/a.md", "The ROSE, and a rose.", "garden"),
        ("docs/a.md", "Invoice, credit\nnote; one rose.", "billing"),
        ("docs/a.md", "One invoice and one rose.", "billing"),
        ("docs/a.md", "Apfelba\u0308ume und Prosa", "garden"),
        ("docs/k8s-cluster.md", "Nothing.", "garden"),
        ("docs/a.md", "Prose, invoices and credit-worthy notes.", "docs"),
        ("docs/a.md", "x " * 1_000 + "rose", "docs"),
        ("roadmap.md", "Nothing.", "planning"),
    ],
)
def test_seed_000_20_a_room_of_the_users_own_goes_first(path: str, text: str, room: str) -> None:
    assert room_of_file(path, text, OWN_ROOMS) == room


def test_seed_000_20_an_exchange_is_in_a_room_of_the_users_own_by_its_keywords() -> None:
    question = "Which function of the api writes the {}?"
    assert room_of_exchange(question.format("invoice"), OWN_ROOMS) == "billing"
    assert room_of_exchange(question.format("prose"), OWN_ROOMS) == "technical"
    assert room_of_exchange(question.format("invoice")) == "technical"


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
def test_000_25_26_27_a_memory_has_a_type(text: str, kind: str) -> None:
    assert memory_type_of(text) == kind
