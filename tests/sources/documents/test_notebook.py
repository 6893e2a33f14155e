"""Notebooks: cells become markdown with the file's line numbers; other files are read as JSON."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from anchord import chunk_text
from anchord.core.types import Document
from anchord.sources.documents.normalize import normalize_text
from anchord.sources.documents.notebook import Notebook, parse_notebook
from anchord.sources.documents.parse import parse_document

PROSE = "# Title\n\nSome words about “cats”."
CODE = "import math\n\nmath.pi"


def book(
    *cells: dict[str, Any], indent: int | None = 1, ascii_only: bool = False, **extra: object
) -> str:
    answer = {
        "cells": list(cells),
        "metadata": {"kernelspec": {"name": "python3", "language": "python"}},
        "nbformat": 4,
        **extra,
    }
    return json.dumps(answer, indent=indent, ensure_ascii=ascii_only)


def cell(kind: str, source: str, *, lines: bool = True, **extra: object) -> dict[str, Any]:
    return {
        "cell_type": kind,
        "metadata": {},
        "source": source.splitlines(keepends=True) if lines else source,
        **extra,
    }


def read(text: str) -> Notebook:
    found = parse_notebook(text)
    assert found is not None
    return found


@pytest.mark.parametrize("indent", [1, 4, None])
@pytest.mark.parametrize("ascii_only", [False, True])
@pytest.mark.parametrize("lines", [True, False])
def test_a_cell_of_text_is_markdown_and_a_cell_of_code_is_a_fence(
    indent: int | None, *, ascii_only: bool, lines: bool
) -> None:
    text = book(
        cell("markdown", PROSE, lines=lines),
        cell("code", CODE, lines=lines),
        indent=indent,
        ascii_only=ascii_only,
    )
    found = read(text)
    assert found.markdown == f"{PROSE}\n\n```python\n{CODE}\n```"
    assert found.cell_start_lines == (0, 4)
    assert len(found.source_lines) == found.markdown.count("\n") + 1


@pytest.mark.parametrize("ascii_only", [False, True])
def test_each_line_has_the_line_of_the_file_that_holds_it(*, ascii_only: bool) -> None:
    text = book(cell("markdown", PROSE), cell("code", CODE), ascii_only=ascii_only)
    found, rows = read(text), text.split("\n")
    for line, number in zip(found.markdown.split("\n"), found.source_lines, strict=True):
        if line and not line.startswith("```"):
            assert json.dumps(line, ensure_ascii=ascii_only)[1:-1] in rows[number - 1]
    assert list(found.source_lines) == sorted(found.source_lines)


def test_outputs_and_metadata_are_no_text() -> None:
    output = {"output_type": "stream", "text": ["SECRET NUMBER 42\n"]}
    assert (
        "SECRET" not in read(book(cell("code", CODE, outputs=[output], execution_count=7))).markdown
    )


def test_cells_of_version_3_are_in_worksheets() -> None:
    text = json.dumps(
        {"worksheets": [{"cells": [{"cell_type": "code", "input": ["x = 1"]}]}], "nbformat": 3}
    )
    assert read(text).markdown == "```python\nx = 1\n```"


def test_a_fence_in_a_cell_of_code_is_fenced_with_more() -> None:
    assert read(book(cell("code", 'x = """\n```\n"""'))).markdown.startswith("````python\n")


@pytest.mark.parametrize(
    "info", [{"language_info": {"name": "julia"}}, {"kernelspec": {"language": "julia"}}]
)
def test_the_fence_names_the_language_of_the_kernel(info: dict[str, Any]) -> None:
    assert read(json.dumps({"cells": [cell("code", "1")], "metadata": info})).markdown.startswith(
        "```julia\n"
    )


def test_empty_cells_are_left_out_and_no_cells_are_no_text() -> None:
    assert (
        read(book(cell("code", ""), cell("markdown", " \n"), cell("raw", "kept"))).markdown
        == "kept"
    )
    assert read(book()).markdown == ""


@pytest.mark.parametrize("text", ["", "{", "[]", "1", '"x"', "{}", '{"cells": 1}', "[" * 5_000])
def test_what_is_no_notebook_is_none_and_read_as_json_with_a_word_about_it(text: str) -> None:
    assert parse_notebook(text) is None
    document = parse_document(text.encode(), "a.ipynb")
    assert isinstance(document, Document)
    assert (document.kind, document.language, document.text) == ("text", "json", text)
    assert document.problem is not None
    assert document.problem.is_partial


@pytest.mark.parametrize(
    "cells",
    [
        [1],
        [None],
        [{}],
        [{"source": 1}],
        [{"source": [1, None, "x"]}],
        [{"cell_type": [], "source": "x"}],
        [[]],
    ],
    ids=str,
)
def test_odd_cells_are_passed_over(cells: list[Any]) -> None:
    assert read(json.dumps({"cells": cells})).markdown in ("", "x")


@given(
    st.lists(
        st.tuples(st.sampled_from(["markdown", "code", "raw"]), st.text(max_size=60)), max_size=8
    ),
    st.booleans(),
)
def test_any_cells_give_as_many_lines_as_numbers_and_lose_no_line(
    cells: list[tuple[str, str]],
    ascii_only: bool,  # noqa: FBT001
) -> None:
    text = book(*(cell(kind, source) for kind, source in cells), ascii_only=ascii_only)
    found = read(text)
    assert len(found.source_lines) == len(found.markdown.split("\n")) or not found.markdown
    assert all(1 <= number <= text.count("\n") + 1 for number in found.source_lines)
    for _, source in cells:
        if source.strip():
            assert normalize_text(source).strip("\n") in found.markdown


def test_the_chunks_of_a_notebook_have_the_lines_of_its_file_and_its_cells_apart() -> None:
    cells = [cell("markdown", f"## Part {n}\n\n" + f"words of part {n} " * 60) for n in range(3)]
    text = book(*cells, cell("code", "\n".join(f"value_{n} = {n}" for n in range(30))))
    chunks = chunk_text(text, path="a.ipynb")
    rows = text.split("\n")
    assert [chunk["language"] for chunk in chunks if chunk["contains_code"]] == ["python"]
    assert {chunk["header_path"][-1] for chunk in chunks} == {"Part 0", "Part 1", "Part 2"}
    for chunk in chunks:
        here = "\n".join(rows[chunk["start_line"] - 1 : chunk["end_line"]])
        assert (
            next(line for line in chunk["text"].split("\n") if not line.startswith("```")) in here
        )


def test_a_run_of_a_notebook_changes_no_chunk() -> None:
    cells = [cell("markdown", PROSE), cell("code", CODE, execution_count=None, outputs=[])]
    ran = [
        cell("markdown", PROSE),
        cell("code", CODE, execution_count=3, outputs=[{"text": ["3.14\n"] * 40}]),
    ]
    before, after = (chunk_text(book(*some), path="a.ipynb") for some in (cells, ran))
    assert [chunk["id"] for chunk in before] == [chunk["id"] for chunk in after]


def test_h3_what_a_tokenizer_cannot_take_is_replaced_in_cells_too() -> None:
    text = json.dumps({"cells": [cell("markdown", "a\0b" + chr(0xD800) + "c\rd\r\ne")]})
    assert read(text).markdown == "a\ufffdb\ufffdc\nd\ne"


@pytest.mark.parametrize("escape", [r"\\u003c", r"\\u003C", "<"])
def test_lines_are_right_however_the_strings_are_written(escape: str) -> None:
    text = book(cell("code", "1\n2\n3"), cell("markdown", "a < b\n\nsecond")).replace(
        "<", escape.replace("\\\\", "\\")
    )
    found, rows = read(text), text.split("\n")
    number = found.source_lines[found.markdown.split("\n").index("a < b")]
    assert '"a ' in rows[number - 1]


def test_an_output_or_a_key_with_the_text_of_a_cell_is_not_taken_for_it() -> None:
    output = {"output_type": "stream", "text": ["df\n"]}
    text = json.dumps(
        {
            "cells": [
                {"cell_type": "code", "outputs": [output], "source": ["df\n", "x"]},
                cell("markdown", "source"),
            ]
        },
        indent=1,
    )
    found, rows = read(text), text.split("\n")
    assert [rows[number - 1].strip() for number in found.source_lines if number][1:3] == [
        '"df\\n",',
        '"x"',
    ]
    assert rows[found.source_lines[-1] - 1].strip() == '"source"'


def test_a_heading_of_version_3_is_one() -> None:
    cells = [
        {"cell_type": "heading", "level": 2, "source": ["Part\n", "one"]},
        {"cell_type": "markdown", "source": "x"},
    ]
    assert read(json.dumps({"worksheets": [{"cells": cells}]})).markdown == "## Part one\n\nx"


def test_a_fence_that_a_cell_leaves_open_ends_with_the_cell() -> None:
    chunks = chunk_text(
        book(cell("markdown", "```py\nx"), cell("markdown", "# H\n\nafter"), cell("code", "1")),
        path="a.ipynb",
    )
    assert "H" in chunks[-1]["header_path"] or "# H" in chunks[-1]["text"]
    assert read(book(cell("markdown", "~~~\nx"), cell("raw", "y"))).markdown == "~~~\nx\n~~~\n\ny"


def test_a_notebook_of_many_odd_strings_is_read_in_one_pass() -> None:
    text = '{"cells":[{"cell_type":"code","source":[' + ",".join([r'"\/"'] * 60_000) + "]}]}"
    assert read(text).markdown.count("/") == 60_000
