"""What follows from a chunk's text, headings, size and place."""

from __future__ import annotations

import pytest

from anchord.chunking.derived_fields import (
    heading_fields,
    place_fields,
    size_fields,
    split_section,
    text_fields,
)
from anchord.chunking.keywords import keywords_of
from anchord.core.types import ChunkPlace


@pytest.mark.parametrize(
    ("tokens", "granularity", "is_small"),
    [
        (0, "fine", True),
        (149, "fine", True),
        (150, "fine", False),
        (399, "fine", False),
        (400, "medium", False),
        (1200, "medium", False),
        (1201, "coarse", False),
    ],
)
def test_003_20_25_granularity_changes_at_400_and_1200_tokens_and_small_is_under_150(
    tokens: int, granularity: str, *, is_small: bool
) -> None:
    assert size_fields(tokens) == {
        "token_count": tokens,
        "granularity": granularity,
        "below_typical_size": is_small,
    }


def test_003_21_22_the_position_counts_up_to_one_at_the_last_of_the_siblings() -> None:
    fields = place_fields(ChunkPlace(1, 4, "a", "c"), ("Guide", "Use"), "docs/a.md")
    assert fields == {
        "chunk_index": 1,
        "sibling_count": 4,
        "position": 0.5,
        "prev_id": "a",
        "next_id": "c",
        "locator": "docs/a.md#Use#1",
    }
    assert place_fields(ChunkPlace(3, 4, "c"), (), "a.md")["position"] == 1.0


def test_without_siblings_a_place_is_a_number_and_without_a_place_there_is_nothing() -> None:
    fields = place_fields(ChunkPlace(2), (), "a.md")
    assert (fields["chunk_index"], fields["locator"]) == (2, "a.md#2")
    assert (fields["sibling_count"], fields["position"], fields["prev_id"]) == (None, None, None)
    assert place_fields(None, ("A",), "a.md") == {}


def test_003_13_15_section_depth_and_parents_follow_from_the_titles() -> None:
    assert heading_fields(("Guide", "Install", "Linux"), "a.md") == {
        "header_path": ("Guide", "Install", "Linux"),
        "section": "Guide > Install > Linux",
        "depth": 2,
        "parent_title": "Guide",
        "parent_section": "Linux",
    }
    assert heading_fields((), "docs/a.md") == {
        "header_path": (),
        "section": "",
        "depth": 0,
        "parent_title": "a.md",
        "parent_section": None,
    }


def test_a_stored_header_path_is_split_at_its_separators() -> None:
    assert split_section("Guide > Use") == ("Guide", "Use")
    assert split_section("") == ()
    assert split_section("a>b") == ("a>b",)


@pytest.mark.parametrize(
    "text",
    [
        "Words.\n\n```py\nx = 1\n```",
        "~~~\nx\n~~~",
        "- item\n  ```py\n  x\n  ```",
        "1. ```sh\n   ls\n   ```",
        "> ```\n> quoted\n> ```",
    ],
)
def test_003_23_a_fence_is_code(text: str) -> None:
    assert text_fields(text, "markdown", "section")["contains_code"]


def test_003_23_a_file_of_code_and_an_indented_block_are_code() -> None:
    assert text_fields("x = 1", "code", "text")["contains_code"]
    assert text_fields("    x = 1", "markdown", "code_block")["contains_code"]
    assert not text_fields("Use ```x``` here.", "markdown", "text")["contains_code"]
    assert not text_fields("Words.", "markdown", None)["contains_code"]


@pytest.mark.parametrize(
    "text",
    [
        "| a | b |\n|---|---|\n| 1 | 2 |",
        "| a |\n|---|\n| 1 |",
        "a | b\n--- | :-:\n1 | 2",
        "Words.\n\n> | a |\n> |---|\n> | 1 |",
    ],
)
def test_003_23_a_row_of_dashes_below_a_row_makes_a_table(text: str) -> None:
    assert text_fields(text, "markdown", "section")["contains_table"]


@pytest.mark.parametrize(
    "text", ["Heading\n---\n\nwords | more", "a | b", "|---|", "Words.\n\n|---|\n", "x\n- a | b\n"]
)
def test_a_rule_a_heading_or_a_stroke_alone_makes_no_table(text: str) -> None:
    assert not text_fields(text, "markdown", "section")["contains_table"]


def test_a_chunk_that_is_nothing_but_a_table_has_a_table_in_any_format() -> None:
    assert text_fields("a,b\n1,2", "text", "table")["contains_table"]


def test_characters_are_those_of_the_text() -> None:
    assert text_fields("na\u00efve\n", "text", "text")["char_count"] == 6


def test_003_23_keywords_are_the_most_frequent_words_without_stop_words() -> None:
    text = (
        "The river flows with the stones and the river bends. With every stone and stones: river."
    )
    assert keywords_of(text)[:2] == ("river", "stones")
    assert not {"the", "with", "and", "every"} & set(keywords_of(text))


@pytest.mark.parametrize(
    ("text", "first"),
    [
        ("Die Katze und die Katze und das Haus sind nicht da.", "katze"),
        ("Le chat et les souris dans la maison avec le chat pour une souris chat", "chat"),
        ("El perro con los gatos para una casa y el perro pero sin los perros", "perro"),
        ("\u043a\u043e\u0442 \u0438 \u043a\u043e\u0442", "\u043a\u043e\u0442"),
    ],
)
def test_keywords_of_other_languages_are_no_stop_words_either(text: str, first: str) -> None:
    assert keywords_of(text)[0] == first


def test_there_are_five_keywords_at_most_and_the_first_in_the_text_come_first() -> None:
    assert keywords_of("zebra yak xerus wolf vole urial") == (
        "zebra",
        "yak",
        "xerus",
        "wolf",
        "vole",
    )
    assert keywords_of("a b 12 -- the") == ()
