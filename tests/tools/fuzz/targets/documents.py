"""A file's bytes -> Document: `sources.parse`, notebooks among them.

An input's first line is the path, the rest the file.
"""

from __future__ import annotations

import json
import re
from typing import Any

from tools.fuzz.inputs import headed
from tools.fuzz.laws import hold
from tools.fuzz.targets.counting import count

from anchord.chunking.chunker import split_into_chunks
from anchord.chunking.plan import Plan
from anchord.chunking.validate import check_chunks
from anchord.core.types import Document, Problem
from anchord.sources.documents.file_types import kind_of
from anchord.sources.documents.normalize import normalize_text
from anchord.sources.documents.parse import parse_document

_KINDS = frozenset({"markdown", "text", "code"})
_UNCLEAN = re.compile("[\r\0\ud800-\udfff]|\\A\ufeff")
_CONTROLS = re.compile("[\x00-\x08\x0e-\x1a\x1c-\x1f\ufffd]")


def documents(data: bytes) -> None:
    """Read a file: any content gives a document or a problem, and no valid text is lost."""
    path, body = headed(data)
    read = parse_document(body, path)
    plain = _plain(body)
    if isinstance(read, Problem):
        hold(plain is None, "a sound text is no problem", path, read.reason)
        hold(read.reason and not read.is_partial, "what is not indexed has a reason", read)
        return
    hold(
        isinstance(read, Document) and read.kind in _KINDS,
        "what is read is a document of a known kind",
        read.kind,
    )
    hold(not _UNCLEAN.search(read.text), "a document has no CR, NUL, surrogate or BOM", read.text)
    hold(kind_of(path) is not None or read.kind == "text", "a file of no known kind is text", path)
    if read.language == "ipynb":
        _notebook(read, body)
    elif plain is not None:
        hold(read.text == plain, "a sound text is read as it is", read.text[:80], plain[:80])
        is_sound = read.problem is None or path.lower().endswith(".ipynb")
        hold(is_sound, "a sound text has no problem", read.problem)
    elif _is_spoiled(body):
        hold(
            read.problem is not None and read.problem.is_partial,
            "what is read otherwise is told",
            read.text[:80],
        )


def _has_bom(body: bytes) -> bool:
    return body.startswith((b"\xef\xbb\xbf", b"\xff\xfe", b"\xfe\xff", b"\0\0\xfe\xff"))


def _is_spoiled(body: bytes) -> bool:
    """Whether a text without BOM cannot be read as it is."""
    return not _has_bom(body) and (b"\0" in body or body.decode("utf-8", "ignore").encode() != body)


def _plain(body: bytes) -> str | None:
    """Return what a text without BOM and control characters says; None for any other."""
    try:
        text = body.decode("utf-8")
    except UnicodeDecodeError:
        return None
    return (
        None
        if _has_bom(body) or _CONTROLS.search(text)
        else text.replace("\r\n", "\n").replace("\r", "\n")
    )


def _notebook(read: Document, body: bytes) -> None:
    lines = read.text.split("\n")
    last = read_lines(body)
    hold(
        not read.text or len(read.source_lines) == len(lines),
        "each line of a notebook is mapped",
        len(lines),
        read.source_lines,
    )
    hold(
        all(1 <= number <= last for number in read.source_lines),
        "lines are mapped into the file",
        read.source_lines,
        last,
    )
    hold(
        list(read.part_start_lines) == sorted({*read.part_start_lines}),
        "cells begin in their order",
        read.part_start_lines,
    )
    hold(
        all(0 <= part < len(lines) for part in read.part_start_lines),
        "cells begin in the text",
        read.part_start_lines,
        len(lines),
    )
    shown = set(lines) | set(read.text.split())
    lost = [
        line
        for line in _cells(json.loads(_text_of(body)))
        if line not in shown and not set(line.split()) <= shown
    ]
    hold(not lost, "every line of a notebook's cells is in its text", lost[:3])
    figures = (
        check_chunks(read, split_into_chunks(read, Plan(), count(), "file"), Plan(), count())
        if read.text
        else None
    )
    hold(
        figures is None or not figures.has_violations(Plan()),
        "the chunks of a notebook are what they promise to be",
        figures,
    )


def _text_of(body: bytes) -> str:
    read = parse_document(body, "notebook.json")
    return read.text if isinstance(read, Document) else "null"


def read_lines(body: bytes) -> int:
    """Return how many lines the text of a file has."""
    return _text_of(body).count("\n") + 1


def _cells(book: Any) -> list[str]:  # noqa: ANN401 - any JSON
    """Return the lines of all cells that have words, read in a way of its own."""
    sheets = book.get("worksheets")
    holders = [book, *(sheets if isinstance(sheets, list) else [])]
    listed = [holder.get("cells") for holder in holders if isinstance(holder, dict)]
    cells = [
        cell for each in listed if isinstance(each, list) for cell in each if isinstance(cell, dict)
    ]
    lines: list[str] = []
    for cell in cells:
        source = cell["source"] if "source" in cell else cell.get("input")
        pieces = source if isinstance(source, list) else [source]
        said = "".join(normalize_text(piece) for piece in pieces if isinstance(piece, str))
        lines += [line for line in said.split("\n") if line.strip()]
    return lines
