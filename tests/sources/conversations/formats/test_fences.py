"""Markdown fences: quoted text is recognised, and a broken fence hides nothing."""

from __future__ import annotations

import pytest

from anchord.sources.conversations.formats.fences import fenced_line_numbers


@pytest.mark.parametrize(
    ("text", "inside"),
    [
        ("a|```|b|```|c", {1, 2, 3}),
        ("```py|b|```", {0, 1, 2}),
        ("~~~|```|~~~|c", {0, 1, 2}),
        ("````|```|````|c", {0, 1, 2}),
        ("- a|  ```|  b|  ```", {1, 2, 3}),
        ("```|a|```py|```|b", {0, 1, 2, 3}),
    ],
)
def test_what_stands_between_two_marks_is_in_a_fence(text: str, inside: set[int]) -> None:
    assert fenced_line_numbers(text.split("|")) == inside


@pytest.mark.parametrize(
    "text", ["a|```|b", "```|~~~", "```` |a|```", "```code```|a|b", "> ```|a|> ```"]
)
def test_what_is_not_closed_or_no_mark_is_no_fence(text: str) -> None:
    assert fenced_line_numbers(text.split("|")) == set()


def test_a_fence_that_is_open_hides_no_closed_one_below() -> None:
    assert fenced_line_numbers(["````", "a", "```", "b", "```"]) == {2, 3, 4}


def test_many_open_fences_are_read_once() -> None:
    assert fenced_line_numbers(["```text"] * 50_000) == set()
