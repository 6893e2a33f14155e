"""Digests, ids and keys: short, equal for equal input, different for different input."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from anchord.core import ids as identity

FIELDS = st.lists(
    st.text(st.characters(exclude_characters="\0", exclude_categories=())), min_size=1, max_size=4
)
LINES = st.tuples(st.integers(1, 9), st.integers(1, 9))
HEADERS = st.lists(st.text("abc", max_size=2), max_size=3)


@pytest.mark.parametrize(
    "name",
    [
        identity.hash_content(b""),
        identity.hash_blocks([]),
        identity.hash_fields("a", "b"),
        identity.make_file_key("root", "a.md"),
        identity.make_chunk_id("k", ("A",), (1, 2), "h", 0),
        identity.make_vector_key("m", "text"),
    ],
)
def test_every_name_is_32_hex_digits(name: str) -> None:
    assert re.fullmatch(f"[0-9a-f]{{{identity.ID_LENGTH}}}", name)


def test_the_digest_of_nothing_is_the_published_one_of_xxh3() -> None:
    # Another digest would embed every file of every index again.
    assert identity.hash_content(b"") == "99aa06d3014798d86001c324468d497f"


@given(st.lists(st.binary(max_size=50), max_size=5))
def test_a_stream_has_the_digest_of_its_joined_blocks(blocks: list[bytes]) -> None:
    assert identity.hash_blocks(blocks) == identity.hash_content(b"".join(blocks))


@given(FIELDS, FIELDS)
def test_different_fields_have_different_digests(one: Sequence[str], other: Sequence[str]) -> None:
    assert (identity.hash_fields(*one) == identity.hash_fields(*other)) == (one == other)


def test_the_border_between_fields_counts() -> None:
    assert identity.hash_fields("ab", "c") != identity.hash_fields("a", "bc")
    assert identity.hash_fields("a", "") != identity.hash_fields("a")


def test_an_undecodable_path_has_a_key_of_its_own() -> None:
    assert identity.make_file_key("r", "a\udcff.md") != identity.make_file_key("r", "a\udcfe.md")
    assert identity.make_file_key("r", "a\udcff.md") != identity.make_file_key("r", "a\\xff.md")


def test_the_same_path_in_two_roots_has_two_keys() -> None:
    assert identity.make_file_key("one", "a.md") != identity.make_file_key("two", "a.md")


@given(HEADERS, LINES, HEADERS, LINES)
def test_chunk_ids_are_equal_for_equal_places_only(
    one: list[str], lines: tuple[int, int], other: list[str], others: tuple[int, int]
) -> None:
    same = identity.make_chunk_id("k", one, lines, "h", 0) == identity.make_chunk_id(
        "k", other, others, "h", 0
    )
    assert same == ((one or [""], lines) == (other or [""], others))


Change = Callable[[], str]
CHANGES: dict[str, Change] = {
    "the file": lambda: identity.make_chunk_id("other", ("A", "B"), (3, 7), "hash", 0),
    "a heading": lambda: identity.make_chunk_id("key", ("A", "C"), (3, 7), "hash", 0),
    "a level": lambda: identity.make_chunk_id("key", ("A B",), (3, 7), "hash", 0),
    "the first line": lambda: identity.make_chunk_id("key", ("A", "B"), (4, 7), "hash", 0),
    "the last line": lambda: identity.make_chunk_id("key", ("A", "B"), (3, 8), "hash", 0),
    "both lines run together": lambda: identity.make_chunk_id(
        "key", ("A", "B"), (37, 0), "hash", 0
    ),
    "the content": lambda: identity.make_chunk_id("key", ("A", "B"), (3, 7), "hush", 0),
    "a repeat": lambda: identity.make_chunk_id("key", ("A", "B"), (3, 7), "hash", 1),
    "a later repeat": lambda: identity.make_chunk_id("key", ("A", "B"), (3, 7), "hash", 2),
}


@pytest.mark.parametrize("change", CHANGES.values(), ids=CHANGES)
def test_whatever_names_a_chunk_changes_its_id(change: Change) -> None:
    assert change() != identity.make_chunk_id("key", ("A", "B"), (3, 7), "hash", 0)


def test_all_changed_ids_differ_from_each_other() -> None:
    assert len({change() for change in CHANGES.values()}) == len(CHANGES)


def test_a_vector_is_named_by_its_model_and_its_text() -> None:
    key = identity.make_vector_key("model", "text")
    assert key == identity.make_vector_key("model", "text")
    assert key != identity.make_vector_key("model 2", "text")
    assert key != identity.make_vector_key("model", "text 2")


@given(st.text(max_size=300))
def test_a_cut_has_the_same_priority_however_blanks_are_set(text: str) -> None:
    spaced = "  ".join(text[:30])
    assert identity.boundary_priority(spaced) == identity.boundary_priority(
        "".join(text[:30].split())
    )


def test_only_the_first_32_characters_decide_the_priority_of_a_cut() -> None:
    assert identity.boundary_priority("x" * 32 + "one") == identity.boundary_priority(
        "x" * 32 + "two"
    )
    assert identity.boundary_priority("x" * 31 + "one") != identity.boundary_priority(
        "x" * 31 + "two"
    )


@pytest.mark.parametrize(("blanks", "counts"), [(159, True), (160, False)])
def test_only_the_first_160_characters_decide_the_priority_of_a_cut(
    blanks: int,
    counts: bool,  # noqa: FBT001 - a column of the table
) -> None:
    one, other = (identity.boundary_priority(" " * blanks + letter) for letter in "ab")
    assert (one != other) is counts


def test_the_checksum_of_a_row_covers_each_text_and_its_vector() -> None:
    whole = identity.row_checksum(["a", "b"], b"vector")
    assert whole == identity.row_checksum(["a", "b"], b"vector")
    for fields, vector in ((["x", "b"], b"vector"), (["a", "x"], b"vector"), (["a", "b"], b"x")):
        assert identity.row_checksum(fields, vector) != whole


@given(st.text(st.characters(exclude_categories=()), max_size=20))
def test_any_text_seeds_a_vector_with_64_bits(text: str) -> None:
    try:
        text.encode("utf-8", "surrogateescape")
    except UnicodeEncodeError:  # The parser never returns a lone surrogate that represents no byte.
        return
    assert 0 <= identity.hash_vector_seed(text) < 1 << 64
