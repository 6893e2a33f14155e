"""The Python API for chunking: one function, dictionaries out."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any

from anchord.adapters.models import find_model
from anchord.adapters.tokenizer import TokenCounter
from anchord.chunkers import chunk
from anchord.chunkers.check import Figures, check
from anchord.chunkers.layout import Limits
from anchord.config import chunking_config
from anchord.core.identity import file_key
from anchord.core.recipe import limits_of
from anchord.errors import UsageError
from anchord.model import Chunk, Document, Origin, Problem, printable
from anchord.sources import clean, kind_of, language_of, parse

_CHUNKING = ("strategy", "max_chunk_tokens", "max_heading_level_for_path")


def chunk_text(md_text: str, **options: Any) -> list[dict[str, Any]]:  # noqa: ANN401 - any JSON value
    """Cut a text into chunks whose ids stay the same where an edit did not reach.

    Args:
        md_text: the text; markdown unless `path` says otherwise.
        **options: `path`: names the file, and so its format; `model`: whose tokeniser and window count (default
            all-MiniLM-L6-v2); `max_chunk_tokens`: a smaller window, at least 64; `max_heading_level_for_path`: 1 to 6;
            `strategy`: "anchored".

    Returns:
        A dictionary a chunk, in order: chunk_id, content, embed_text, header_path (a list), start_line and end_line
        (1-based, inclusive), anchor_line, content_hash, token_count, kind.

    Raises:
        UsageError: an option is unknown or cannot be done.
    """
    known = {"path", "model", *_CHUNKING}
    if unknown := set(options) - known:
        raise UsageError(f"unknown option `{min(unknown)}`", f"known: {', '.join(sorted(known))}")
    if options.get("strategy", "anchored") != "anchored":
        raise UsageError(f"strategy `{options['strategy']}` is not in this version", 'use "anchored"')
    path = str(options.get("path") or "")
    model = find_model(str(options.get("model") or "all-MiniLM-L6-v2"))
    chunking = chunking_config({name: options[name] for name in _CHUNKING if name in options})
    limits = limits_of(model.window, chunking.max_chunk_tokens, chunking.max_heading_level_for_path)
    document = Document(clean(md_text), kind_of(path) or "markdown", None, language_of(path))
    return [chunk_dict(piece) for piece in chunk(document, limits, _counter(model.tokenizer), file_key("", path))]


def read_document(data: bytes, origin: Origin, name: str) -> Document:
    """Read a file's bytes; a path of no known type, and none at all, is taken for markdown. `name` is for the message.

    Raises:
        UsageError: the content is binary.
    """
    document = parse(data, origin.path)
    if isinstance(document, Problem):
        raise UsageError(f"{printable(name) or 'the text'}: {document.reason}", "give a text file")
    return replace(document, kind=kind_of(origin.path) or "markdown")


def chunk_document(document: Document, origin: Origin, limits: Limits, tokenizer: Path) -> list[Chunk]:
    """Cut a document, with the ids that it has at its origin."""
    return chunk(document, limits, _counter(tokenizer), file_key(origin.root, origin.path))


def check_document(document: Document, pieces: Sequence[Chunk], limits: Limits, tokenizer: Path) -> Figures:
    """Say whether the chunks of a document are what they promise to be."""
    return check(document, pieces, limits, _counter(tokenizer))


def compare(before: Sequence[Chunk], now: Sequence[Chunk]) -> dict[str, Any]:
    """Return which chunks are kept, moved, new and vanished between two versions, and how many texts embedding would take."""
    old, new = {piece.chunk_id: piece for piece in before}, {piece.chunk_id for piece in now}
    texts = {piece.embed_text for piece in before}
    rows = [{"change": _change(old.get(p.chunk_id), p), **chunk_dict(p), "embeds": p.embed_text not in texts} for p in now]
    rows += [{"change": "vanished", **chunk_dict(p), "embeds": False} for p in before if p.chunk_id not in new]
    counts = {what: sum(row["change"] == what for row in rows) for what in ("kept", "moved", "new", "vanished")}
    return {**counts, "embedded": len({row["embed_text"] for row in rows if row["embeds"]}), "chunks": rows}


def _change(known: Chunk | None, piece: Chunk) -> str:
    if known is None:
        return "new"
    return "kept" if (known.start_line, known.end_line) == (piece.start_line, piece.end_line) else "moved"


def chunk_dict(piece: Chunk) -> dict[str, Any]:
    """Return a chunk as JSON values."""
    return {
        "chunk_id": piece.chunk_id,
        "content": piece.content,
        "embed_text": piece.embed_text,
        "header_path": list(piece.header_path),
        "start_line": piece.start_line,
        "end_line": piece.end_line,
        "anchor_line": piece.anchor_line,
        "content_hash": piece.content_hash,
        "token_count": piece.tokens,
        "kind": piece.kind,
    }


@cache
def _counter(tokenizer: Path) -> TokenCounter:
    return TokenCounter(tokenizer)
