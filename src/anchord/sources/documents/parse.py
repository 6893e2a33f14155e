"""Parses the bytes of a project file into a document."""

from __future__ import annotations

import codecs
from dataclasses import replace

from anchord.core.lazy_re import lazy_re
from anchord.core.types import Document, Problem
from anchord.sources.documents.file_types import kind_of, language_of
from anchord.sources.documents.normalize import normalize_text
from anchord.sources.documents.notebook import parse_notebook

_BOMS = (  # The UTF-32 BOM begins with the UTF-16 one, so it is tried first.
    (codecs.BOM_UTF8, "utf-8"),
    (codecs.BOM_UTF32_LE, "utf-32-le"),
    (codecs.BOM_UTF32_BE, "utf-32-be"),
    (codecs.BOM_UTF16_LE, "utf-16-le"),
    (codecs.BOM_UTF16_BE, "utf-16-be"),
)

_CONTROL_CHARS = lazy_re("[\x00-\x08\x0e-\x1a\x1c-\x1f]")

_MAX_ODD_SHARE = 0.1
"""A file with a larger share of control and undecodable characters is binary."""


def parse_document(data: bytes, path: str) -> Document | Problem:
    """Decode a file and parse it as a document. Never raises.

    Args:
        data: The file's bytes: UTF-8, or UTF-16 or UTF-32 with a BOM.
        path: The file's path relative to its root. Its name decides the kind and the language.

    Returns:
        The document, or a problem if the content is binary: more than 10 % of its characters are
        control characters or not decodable. Fewer of them become U+FFFD, and the document then
        carries a partial problem.
    """
    bom, encoding = _detect_encoding(data)
    problem = None
    try:
        text = data[len(bom) :].decode(encoding)
    except UnicodeDecodeError as error:
        text = data[len(bom) :].decode(encoding, "replace")
        offset = len(bom) + error.start
        problem = Problem(
            f"not {encoding.upper()} at byte {offset}: read with U+FFFD there", is_partial=True
        )
    odd_chars = len(_CONTROL_CHARS.findall(text)) + text.count("\ufffd")
    if odd_chars > _MAX_ODD_SHARE * len(text):
        return Problem("binary content: not indexed")
    if problem is None and "\0" in text:
        offset = text.find("\0")
        problem = Problem(f"NUL at character {offset}: read with U+FFFD there", is_partial=True)
    document = document_from_text(normalize_text(text), path)
    if kind_of(path) is None:
        document = replace(document, kind="text")
    return replace(document, problem=problem or document.problem)


def _detect_encoding(data: bytes) -> tuple[bytes, str]:
    """Return the BOM that a file begins with and the encoding; without a BOM b"" and UTF-8."""
    for bom, encoding in _BOMS:
        if data.startswith(bom):
            return bom, encoding
    return b"", "utf-8"


def document_from_text(text: str, path: str) -> Document:
    """Make a document of a text.

    Args:
        text: Normalised text (`normalize_text`).
        path: Its name decides the kind and the language. An unknown kind is `markdown`. A
            notebook (.ipynb) is converted to Markdown; one that is invalid is text.
    """
    if not path.lower().endswith(".ipynb"):
        return Document(
            text=text,
            kind=kind_of(path) or "markdown",
            language=language_of(path),
        )
    notebook = parse_notebook(text)
    if notebook is None:
        problem = Problem("not a valid notebook: read as JSON", is_partial=True)
        return Document(
            text=text,
            kind="text",
            problem=problem,
            language="json",
        )
    return Document(
        text=notebook.markdown,
        kind="markdown",
        language="ipynb",
        source_lines=notebook.source_lines,
        part_start_lines=notebook.cell_start_lines,
    )
