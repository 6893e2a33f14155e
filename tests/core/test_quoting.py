"""Which characters may be shown, checked with the Unicode database and not the program's table."""

from __future__ import annotations

import json
import shlex
import unicodedata
from unittest import mock

import pytest
from hostile import HOSTILE, KEPT, is_unsafe, unsafe_in
from hypothesis import given
from hypothesis import strategies as st

from anchord.core.quoting import (
    escape_gaps,
    escape_json,
    escape_line,
    escape_path,
    escape_text,
    quote_command,
    quote_name,
    quote_names,
    sanitize_line,
    unescape_line,
)

EVERY_CODE = range(0x110000)


def test_every_character_that_unicode_calls_hidden_or_a_control_is_escaped() -> None:
    raw = [
        f"U+{ord(char):04X}"
        for char in map(chr, EVERY_CODE)
        if is_unsafe(char) and char in escape_line(f"a{char}a")
    ]
    assert raw == []


def test_every_letter_number_sign_and_space_stays() -> None:
    def is_plain(char: str) -> bool:
        category = unicodedata.category(char)
        return category[0] in "LNPS" or category in {"Mn", "Mc", "Me", "Zs"}

    joiners = "\ufe0e\ufe0f\u180b\u180c\u180d\u180f"
    lost = [
        f"U+{ord(char):04X}"
        for char in map(chr, EVERY_CODE)
        if is_plain(char)
        and not is_unsafe(char)
        and char not in joiners
        and escape_line(char) != char
    ]
    assert lost == []


@pytest.mark.parametrize("text", KEPT)
def test_joiners_that_belong_to_the_spelling_stay(text: str) -> None:
    assert escape_line(text) == escape_text(text) == sanitize_line(text) == text


@pytest.mark.parametrize("text", KEPT[:4])
def test_json_keeps_them_too(text: str) -> None:
    assert escape_json(json.dumps(text, ensure_ascii=False)) == f'"{text}"'


@pytest.mark.parametrize(
    "text",
    [
        "a\u200db",
        "\u0645\u200c\u200c\u0645",
        "\u200c\u0645",
        "a\ufe0f",
        "\u2764\ufe0f\ufe0f",
        "7\ufe0f",
    ],
)
def test_joiners_and_selectors_elsewhere_are_escaped(text: str) -> None:
    assert unsafe_in(escape_line(text)) == []
    assert escape_line(text) != text


def test_an_escape_says_which_character_it_was_and_a_long_run_is_counted() -> None:
    assert escape_line("a\u202eb\n") == "a\\u{202e}b\\u{a}"
    assert escape_line("\U000e0041" * 1_000) == "\\u{e0041}" * 4 + "\\u{+996 more}"
    assert escape_line("e" + "\u0301" * 300) == "e" + "\u0301" * 8 + "\\u{+292 more}"
    assert escape_line(b"caf\xe9".decode("utf-8", "surrogateescape")) == "caf\\xe9"


@given(st.text(st.characters(exclude_categories=["Cs", "Mn", "Mc", "Me"]), max_size=4))
def test_an_escaped_line_can_be_read_back(text: str) -> None:
    assert unescape_line(escape_line(text)) == text


def test_what_is_no_escape_is_left() -> None:
    for text in ("\\u{d800}", "\\u{110000}", "\\u{+5 more}", "\\x1b", "u{1b}", "\\u{}"):
        assert unescape_line(text) == text


def test_a_text_keeps_its_lines_and_tabs_and_a_line_does_not() -> None:
    assert escape_text("a\r\n\tb\rc") == "a\n\tb\\u{d}c"
    assert escape_line("a\n\tb") == "a\\u{a}\\u{9}b"


def test_what_is_hostile_is_shown_without_its_means() -> None:
    for text in HOSTILE:
        assert unsafe_in(escape_line(text)) == []
        assert unsafe_in(escape_text(text), allowed="\n\t") == []
        assert unsafe_in(sanitize_line(text), allowed="\t") == []
        encoded = json.dumps({"a": text}, ensure_ascii=False)
        assert json.loads(escape_json(encoded)) == {"a": text}
        assert not [char for char in escape_json(encoded) if is_unsafe(char)]


@given(
    st.text(st.characters() | st.sampled_from(sorted({char for text in HOSTILE for char in text})))
)
def test_any_string_is_escaped_once(text: str) -> None:
    line = escape_line(text)
    assert unsafe_in(line) == []
    assert escape_line(line) == line
    assert unsafe_in(escape_text(text), allowed="\n\t") == []
    assert unsafe_in(sanitize_line(text), allowed="\t") == []
    encoded = json.dumps(text, ensure_ascii=False)
    assert json.loads(escape_json(encoded)) == text


NAMES = [*HOSTILE, "plain", "two words", "'", "it's"]


def test_a_name_in_a_sentence_ends_where_it_should() -> None:
    for name in NAMES:
        quoted = quote_name(name)
        assert unsafe_in(quoted) == []
        assert "`" not in quoted
        assert len(json.loads(quoted)) <= (210 if "/" in name else 70)
        assert json.JSONDecoder().raw_decode(f'{quoted}; "x"')[1] == len(quoted)


def test_a_name_in_a_command_is_one_argument_or_left_out() -> None:
    for name in NAMES:
        command = quote_command("anchord remove", name)
        assert unsafe_in(command) == []
        assert command.count("`") == 2
        words = shlex.split(command.strip("`"))
        given = ["--", name] if name.startswith("-") else [name]
        assert words in (["anchord", "remove", "NAME"], ["anchord", "remove", *given])


def test_of_a_long_name_the_beginning_and_the_end_are_left() -> None:
    assert quote_name("a" * 50 + "z" * 50) == '"' + "a" * 29 + "…" + "z" * 30 + '"'
    assert quote_name("/" + "a" * 199) == '"/' + "a" * 199 + '"'


def test_names_are_listed_and_many_are_counted() -> None:
    assert quote_names([]) == "none"
    assert quote_names(["a", "b c"]) == '"a", "b c"'
    assert quote_names("abcdefghijkl").endswith('"j" and 2 more')


def test_gaps_between_fields_cannot_be_forged() -> None:
    assert escape_gaps("a  b   c d") == "a \\u{20}b \\u{20}\\u{20}c d"
    assert escape_gaps("a\u3000\u2003b\tc") == "a\\u{3000}\\u{2003}b\\u{9}c"
    assert escape_path("a: b/c:d") == "a:\\u{20}b/c:d"


@given(
    st.text(
        st.sampled_from(
            "ab  \t\u00a0\u00ad\u00e9\u0301\u2013\u2026\u200d\u202e\u2764\ufe0f\ue000\udcff\x7f"
        )
        | st.characters(),
        max_size=12,
    )
)
def test_a_line_that_looks_plain_at_a_glance_is_left_as_the_whole_rules_leave_it(line: str) -> None:
    def all_forms() -> list[str]:
        return [escape_line(line), escape_text(line), sanitize_line(line), escape_gaps(line)]

    with mock.patch("anchord.core.quoting._is_plain", return_value=False):
        by_rules = all_forms()
    assert all_forms() == by_rules
