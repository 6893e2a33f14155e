"""Bytes -> text for the chunker: any bytes, with a Problem instead of an exception."""

from __future__ import annotations

import codecs

import pytest
from hypothesis import given
from hypothesis import strategies as st

from anchord.core.types import Document, Problem
from anchord.sources.documents.file_types import kind_of, language_of, names_of_language
from anchord.sources.documents.normalize import normalize_text
from anchord.sources.documents.parse import parse_document

BINARY = Problem("binary content: not indexed")


def text_of(data: bytes, path: str = "a.md") -> str:
    """Return the text of bytes that are wholly readable."""
    document = parse_document(data, path)
    assert isinstance(document, Document), document
    assert document.problem is None, document.problem
    return document.text


def partly(data: bytes) -> tuple[str, str]:
    """Return the text and the problem of bytes that are partly readable."""
    document = parse_document(data, "a.md")
    assert isinstance(document, Document), document
    assert document.problem is not None
    assert document.problem.is_partial
    return document.text, document.problem.reason


# Encodings


def test_plain_utf_8_is_taken_as_it_is() -> None:
    assert text_of("naïve 日本 🎈\n".encode()) == "naïve 日本 🎈\n"


def test_an_empty_file_is_an_empty_document() -> None:
    assert parse_document(b"", "a.md") == Document(text="", kind="markdown")


@pytest.mark.parametrize(
    ("mark", "encoding"),
    [
        (codecs.BOM_UTF8, "utf-8"),
        (codecs.BOM_UTF16_LE, "utf-16-le"),
        (codecs.BOM_UTF16_BE, "utf-16-be"),
        (codecs.BOM_UTF32_LE, "utf-32-le"),
        (codecs.BOM_UTF32_BE, "utf-32-be"),
    ],
)
class TestAByteOrderMark:
    """Each byte order mark selects its encoding and is not part of the text."""

    def test_names_the_encoding(self, mark: bytes, encoding: str) -> None:
        """Other encodings than UTF-8 are read by it."""
        assert (
            text_of(mark + "# Titel ü\r\n\r\nText 🎈\n".encode(encoding))
            == "# Titel ü\n\nText 🎈\n"
        )

    def test_alone_is_an_empty_document(self, mark: bytes, encoding: str) -> None:  # noqa: ARG002 - one table for all
        """An editor's empty file."""
        assert text_of(mark) == ""


def test_utf_16_without_a_mark_is_binary() -> None:
    assert parse_document("# Title\n".encode("utf-16-le"), "a.md") == BINARY


def test_utf_16_of_an_odd_length_loses_its_last_byte_alone() -> None:
    text, reason = partly(codecs.BOM_UTF16_LE + "long enough".encode("utf-16-le") + b"x")
    assert text == "long enough\ufffd"
    assert reason == "not UTF-16-LE at byte 24: read with U+FFFD there"


def test_a_lone_surrogate_in_utf_16_is_replaced() -> None:
    text, reason = partly(
        codecs.BOM_UTF16_LE
        + "long enough".encode("utf-16-le")
        + b"\x00\xd8"
        + "!".encode("utf-16-le")
    )
    assert "\ud800" not in text
    assert reason.startswith("not UTF-16-LE at byte 24")


@pytest.mark.parametrize(
    ("data", "at"),
    [
        (b"caf\xe9 is Latin-1 here\n", 3),
        (b"plain text then a cut character \xe2\x82", 32),
        (codecs.BOM_UTF8 + b"marked caf\xe9 is Latin-1 here", 13),
        (b"an encoded surrogate \xed\xa0\x80 in the midst of a longer text", 21),
    ],
)
def test_what_is_no_utf_8_is_replaced_and_its_place_named(data: bytes, at: int) -> None:
    text, reason = partly(data)
    assert "\ufffd" in text
    assert reason == f"not UTF-8 at byte {at}: read with U+FFFD there"


def test_the_words_around_a_bad_byte_stay() -> None:
    assert partly(b"one caf\xe9 two")[0] == "one caf\ufffd two"


# NUL and binary


def test_a_nul_is_replaced_and_its_place_named() -> None:
    text, reason = partly(b"a line with a NUL\0 in it\n")
    assert text == "a line with a NUL\ufffd in it\n"
    assert reason == "NUL at character 17: read with U+FFFD there"


def test_a_bad_byte_before_a_nul_is_the_one_named() -> None:
    assert partly(b"bad \xff and then a \0 in a longer text")[1].startswith("not UTF-8 at byte 4")


@pytest.mark.parametrize(
    "data",
    [
        b"\x7fELF\x02\x01\x01" + bytes(9),
        b"\x89PNG\r\n\x1a\n" + bytes(range(64)),
        bytes(256),
        bytes(range(128, 256)),
        b"\xff\xfe\xfd",
        b"PK\x03\x04\x14\x00\x00\x00\x08\x00",
    ],
)
def test_binary_content_is_a_problem_whatever_its_name(data: bytes) -> None:
    assert parse_document(data, "a.md") == BINARY


@pytest.mark.parametrize(("controls", "binary"), [(1, False), (10, False), (11, True)])
def test_more_than_a_tenth_of_control_characters_is_binary(controls: int, binary: bool) -> None:  # noqa: FBT001 - a table
    data = b"\x01" * controls + b"x" * (100 - controls)
    assert (parse_document(data, "a.md") == BINARY) == binary


def test_tabs_form_feeds_and_terminal_colours_are_text() -> None:
    assert text_of(b"\t\t\x0c\x0b\x1b[0m\n") == "\t\t\x0c\x0b\x1b[0m\n"


# Line ends


@pytest.mark.parametrize(
    ("data", "text"),
    [
        (b"a\r\nb\r\n", "a\nb\n"),
        (b"a\rb\r", "a\nb\n"),
        (b"a\n\rb", "a\n\nb"),
        (b"a\r\r\nb", "a\n\nb"),
        (b"a\nb", "a\nb"),
        (b"\r\n", "\n"),
    ],
)
def test_all_line_ends_become_lf(data: bytes, text: str) -> None:
    assert text_of(data) == text


def test_crlf_and_lf_give_the_same_document() -> None:
    text = "# A\n\none\n\n## B\ntwo\n"
    assert parse_document(text.replace("\n", "\r\n").encode(), "a.md") == parse_document(
        text.encode(), "a.md"
    )


# Laws


@given(
    st.binary(max_size=200)
    | st.builds(bytes.__add__, st.just(codecs.BOM_UTF16_LE), st.binary(max_size=100))
)
def test_any_bytes_become_a_document_or_a_problem(data: bytes) -> None:
    document = parse_document(data, "a.md")
    if isinstance(document, Document):
        assert document.text.encode("utf-8").decode("utf-8") == document.text
        assert not set(document.text) & {"\0", "\r"}
    else:
        assert not document.is_partial


@given(
    st.text(
        st.characters(
            codec="utf-8", exclude_characters="\0\r\ufeff\ufffd", exclude_categories=["Cc"]
        )
    )
)
def test_text_comes_back_as_it_was_written_in_any_marked_encoding(text: str) -> None:
    assert text_of(text.encode()) == text
    assert text_of(codecs.BOM_UTF16_BE + text.encode("utf-16-be")) == text


@given(st.text(st.characters(exclude_categories=())))
def test_cleaning_twice_is_cleaning_once(text: str) -> None:
    once = normalize_text(text.replace("\ufeff", ""))
    assert normalize_text(once) == once


@given(st.text(st.sampled_from("ab\r\n\0\ud800")))
def test_cleaning_keeps_the_number_of_lines(text: str) -> None:
    assert (
        normalize_text(text).count("\n")
        == len(text.replace("\r\n", "\n").replace("\r", "\n").split("\n")) - 1
    )


# Kinds


@pytest.mark.parametrize(
    ("path", "kind"),
    [
        ("a.md", "markdown"), ("a.MD", "markdown"), ("a/b.markdown", "markdown"), ("x.qmd", "markdown"), ("x.mdx", "markdown"),
        ("README", "markdown"), ("a/readme", "markdown"), ("README.md", "markdown"), ("CHANGELOG", "markdown"),
        ("README.txt", "text"), ("LICENSE", "text"), ("a.rst", "text"), ("a.csv", "text"), ("a.json", "text"),
        ("CMakeLists.txt", "code"), ("Makefile", "code"), ("Dockerfile", "code"), ("a.py", "code"), ("a.d.ts", "code"),
        ("a.b.c/d.rs", "code"), ("a\udcff.md", "markdown"), ("new\nline.md", "markdown"),
        ("a.png", None), ("a", None), (".md", None), ("", None), ("a.md/b", None), ("a.md.", None), ("a.md ", None),
        ("md", None), ("readme.pdf", None), ("a/.gitignore", None),
    ],
)  # fmt: skip
def test_the_name_decides_the_kind(path: str, kind: str | None) -> None:
    assert kind_of(path) == kind


def test_a_document_has_the_kind_of_its_name_and_text_for_any_other() -> None:
    assert parse_document(b"x", "a.py") == Document(text="x", kind="code", language="python")
    assert parse_document(b"x", "Caddyfile") == Document(text="x", kind="text")


@pytest.mark.parametrize(
    ("path", "name"),
    [
        ("a.py", "PY3"), ("a/b.kts", "kotlin"), ("a.hs", "hs"), ("a.ps1", "powershell"), ("q.sql", "SQL"),
        ("Makefile", "make"), ("x/Dockerfile", "docker"), ("a.mm", "objective-c"), ("a.tf", "hcl"), ("a.sh", "zsh"),
        ("a.md.bak", "bak"),
    ],
)  # fmt: skip
def test_the_language_of_a_file_is_among_all_names_of_it(path: str, name: str) -> None:
    language = language_of(path)
    assert (language in names_of_language(name)) is bool(language)
