"""`chunk_text` and the names of the package, as the interface fixes them."""

from __future__ import annotations

import subprocess
import sys
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import anchord
from anchord import chunk_text
from anchord.api.chunks import chunk_document, read_document
from anchord.chunking.plan import Plan
from anchord.core.types import RootedPath
from anchord.embedding.model_files import find_model
from anchord.errors import ConfigError, UsageError

FIELDS: dict[str, type] = {
    "id": str, "text": str, "root": str, "path": str, "kind": str, "header_path": list, "section": str,
    "content_hash": str, "vector_key": type(None), "embed_text": str, "start_line": int, "end_line": int,
    "anchor_line": int, "start_char": int, "end_char": int, "file": type(None), "locator": str, "chunk_type": str,
    "language": type(None), "level": int, "token_count": int, "depth": int, "char_count": int, "granularity": str,
    "below_typical_size": bool, "contains_code": bool, "contains_table": bool, "keywords": list, "exceeds_limit": bool,
    "is_contextually_enriched": bool, "strategy": str, "parent_id": str, "parent_title": str, "parent_section": str,
    "chunk_index": int, "sibling_count": int, "position": float, "prev_id": type(None), "next_id": str,
    "room": type(None), "source": type(None), "session": type(None), "exchange_id": type(None), "turn": type(None),
    "part_index": type(None), "total_parts": type(None), "at": type(None), "until": type(None), "project": type(None),
    "model": type(None), "branch": type(None), "tools": list, "files": list,
}  # fmt: skip
TEXT = (
    "# Title\n\nSome words.\n\n## Part\n\n"
    + "A sentence about cats, dogs and quite a few other animals. " * 40
    + "\n"
)
CODE = "def first():\n    return 1\n\n\ndef second():\n    return 2\n"


def refused(**options: Any) -> UsageError:  # noqa: ANN401 - any wrong value
    with pytest.raises(UsageError) as raised:
        chunk_text(TEXT, **options)
    return raised.value


# Names


def test_the_package_gives_its_public_names() -> None:
    assert anchord.chunk_text is chunk_text
    assert anchord.Client.__name__ == "Client"
    assert anchord.Engine.__name__ == "Engine"
    assert isinstance(anchord.open("/nowhere"), anchord.Engine)
    assert set(anchord.__all__) == {
        "AsyncClient", "Client", "Engine", "__version__", "chunk_text", "open",
    }  # fmt: skip


def test_a_name_that_is_not_there_is_an_attribute_error() -> None:
    with pytest.raises(AttributeError, match="no attribute 'nothing'"):
        getattr(anchord, "nothing")  # noqa: B009 - mypy knows that it is not there


def loaded_by(statement: str) -> set[str]:
    """Return the names of the packages that a statement loads in a new process."""
    return {name.partition(".")[0] for name in modules_loaded_by(statement)}


def modules_loaded_by(statement: str) -> set[str]:
    """Return the full names of the modules that a statement loads in a new process."""
    code = f"import sys; {statement}; print(*sys.modules)"
    return set(
        subprocess.run(
            [sys.executable, "-c", code], capture_output=True, text=True, check=True
        ).stdout.split()
    )


HEAVY = {"lancedb", "lance", "pyarrow", "torch", "sentence_transformers", "transformers", "numpy"}


def test_importing_the_package_loads_nothing_but_python() -> None:
    assert not loaded_by("import anchord") & (
        HEAVY | {"msgspec", "tokenizers", "typer", "rich", "asyncio"}
    )


@pytest.mark.parametrize(
    "statement",
    ["from anchord import Client", "import anchord.cli", "from anchord import chunk_text"],
)
def test_neither_asking_nor_chunking_loads_the_store_or_the_model(statement: str) -> None:
    assert not loaded_by(statement) & HEAVY


def test_asking_for_the_status_builds_no_record_of_a_chunk_or_a_file() -> None:
    # Each of its thirty dataclasses takes Python 0.7 ms to build.
    for statement in ["from anchord import Client", "import anchord.cli.commands.search"]:
        assert "anchord.core.types" not in modules_loaded_by(statement)


# Fields


def test_a_chunk_has_the_fields_of_the_interface() -> None:
    chunks = chunk_text(TEXT)
    assert len(chunks) > 1
    assert all(set(chunk) == set(FIELDS) for chunk in chunks)


def test_the_fields_are_plain_values() -> None:
    first = chunk_text(TEXT)[0]
    assert {name: type(value) for name, value in first.items()} == FIELDS


def test_lines_count_from_one_and_both_ends_are_in() -> None:
    (chunk,) = chunk_text("# Title\n\nWords.\n")
    assert (chunk["start_line"], chunk["end_line"]) == (1, 3)


def test_the_headings_above_a_chunk_are_its_path() -> None:
    assert chunk_text(TEXT)[-1]["header_path"] == ["Title", "Part"]


def test_the_headings_path_is_as_deep_as_asked() -> None:
    deep = (
        "# A\n\n## B\n\n### C\n\n"
        + "Words about something deep down in the tree of headings. " * 60
    )
    depths = {
        depth: len(chunk_text(deep, max_heading_level_for_path=depth)[-1]["header_path"])
        for depth in (1, 2, 3)
    }
    assert depths == {1: 1, 2: 2, 3: 3}


def test_ids_differ_and_stay_the_same() -> None:
    ids = [chunk["id"] for chunk in chunk_text(TEXT)]
    assert len(set(ids)) == len(ids)
    assert ids == [chunk["id"] for chunk in chunk_text(TEXT)]


def test_an_empty_text_has_no_chunks() -> None:
    assert chunk_text("") == []
    assert chunk_text(" \n\t\n") == []


# Options


def test_the_path_chooses_the_format() -> None:
    kinds = {
        path: chunk_text(CODE, path=path)[0]["kind"]
        for path in ("a.py", "a.md", "a.txt", "Makefile", "README")
    }
    assert kinds == {
        "a.py": "code",
        "a.md": "markdown",
        "a.txt": "text",
        "Makefile": "code",
        "README": "markdown",
    }


@pytest.mark.parametrize("path", [None, "", "a.unknown", "folder/noextension"])
def test_without_a_telling_path_a_text_is_markdown(path: str | None) -> None:
    assert chunk_text(TEXT, path=path)[0]["kind"] == "markdown"


def test_the_path_is_part_of_the_ids() -> None:
    assert chunk_text(TEXT, path="a.md")[0]["id"] != chunk_text(TEXT, path="b.md")[0]["id"]


def test_a_path_that_is_no_utf_8_names_a_file_as_well() -> None:
    assert chunk_text(CODE, path="\udcff.py")[0]["kind"] == "code"


@pytest.mark.parametrize("tokens", [64, 100, 200])
def test_no_chunk_is_over_the_wanted_tokens_with_the_two_special_ones(tokens: int) -> None:
    assert (
        max(chunk["token_count"] for chunk in chunk_text(TEXT, max_chunk_tokens=tokens)) + 2
        <= tokens
    )


def test_more_tokens_than_the_model_takes_change_nothing() -> None:
    assert chunk_text(TEXT, max_chunk_tokens=8192) == chunk_text(TEXT)


def test_the_strategy_may_be_named() -> None:
    assert chunk_text(TEXT, strategy="anchored") == chunk_text(TEXT)
    assert "fixed" in refused(strategy="fixed").message


def test_the_model_may_be_named_and_must_be_there() -> None:
    assert chunk_text(TEXT, model="all-MiniLM-L6-v2") == chunk_text(TEXT)
    with pytest.raises(ConfigError, match="`no-such-model` is not on this machine"):
        chunk_text(TEXT, model="no-such-model")


def test_an_unknown_option_is_refused_with_those_there_are() -> None:
    error = refused(pth="a.py")
    assert error.message == "chunk_text has no option `pth`"
    assert "path" in error.hint


@pytest.mark.parametrize(
    "options",
    [
        {"max_chunk_tokens": -5},
        {"max_chunk_tokens": 1},
        {"max_chunk_tokens": 10},
        {"max_chunk_tokens": "100"},
        {"max_chunk_tokens": 99.5},
        {"max_heading_level_for_path": -1},
        {"max_heading_level_for_path": 0},
        {"max_heading_level_for_path": 7},
        {"max_heading_level_for_path": "2"},
    ],
    ids=str,
)
def test_an_option_that_cannot_be_done_is_refused(options: dict[str, Any]) -> None:
    assert next(iter(options)) in refused(**options).message


# Any text


def test_line_ends_of_any_system_give_the_same_chunks() -> None:
    assert chunk_text(TEXT.replace("\n", "\r\n")) == chunk_text(TEXT)
    assert chunk_text(TEXT.replace("\n", "\r")) == chunk_text(TEXT)


def test_a_byte_order_mark_changes_nothing() -> None:
    assert chunk_text("\ufeff" + TEXT) == chunk_text(TEXT)


@pytest.mark.parametrize("odd", [chr(0xD800), chr(0xDFFF), "\0"], ids=ascii)
def test_h3_a_lone_surrogate_or_nul_is_read_as_the_replacement_character(odd: str) -> None:
    (chunk,) = chunk_text(f"# A{odd}\n\nb{odd}c\n")
    assert chunk["text"] == "# A\ufffd\n\nb\ufffdc"
    assert chunk["header_path"] == ["A\ufffd"]


@given(st.text(st.characters(), max_size=300))
@settings(deadline=None)
def test_chunks_of_any_text_can_be_written_and_stand_in_order(text: str) -> None:
    chunks = chunk_text(text)
    starts = [chunk["start_line"] for chunk in chunks]
    assert starts == sorted(starts)
    for chunk in chunks:
        assert chunk["text"].encode()
        assert chunk["embed_text"].encode()
        assert 1 <= chunk["start_line"] <= chunk["end_line"]


def test_the_bytes_of_a_file_give_the_chunks_of_its_text() -> None:
    model = find_model("all-MiniLM-L6-v2")
    origin = RootedPath("", "a.md")
    document = read_document(TEXT.encode("utf-16"), origin, "a.md")
    ids = [piece.chunk_id for piece in chunk_document(document, origin, Plan(), model.tokenizer)]
    assert ids == [chunk["id"] for chunk in chunk_text(TEXT, path="a.md")]
    with pytest.raises(UsageError, match=r"a\.md: binary content"):
        read_document(bytes(range(256)) * 8, origin, "a.md")
