"""The Python API for chunking, and what `anchord chunk` is made of. Nothing here uses an index."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any

from anchord.chunking.chunk_metadata import describe_chunks
from anchord.chunking.chunker import split_into_chunks
from anchord.chunking.plan import Plan, build_plan
from anchord.chunking.validate import ChunkingReport, check_chunks_of_documents
from anchord.config.effective import parse_chunking_options
from anchord.config.schema import KindConfig
from anchord.core.ids import make_file_key
from anchord.core.quoting import escape_non_utf8
from anchord.core.types import Chunk, Document, Problem, RootedPath
from anchord.embedding.model_files import find_model
from anchord.embedding.tokenizer import TokenCounter
from anchord.errors import UsageError
from anchord.sources.documents.file_types import kind_of
from anchord.sources.documents.normalize import normalize_text
from anchord.sources.documents.parse import document_from_text, parse_document

_DEFAULT_MODEL = "all-MiniLM-L6-v2"

ChunkDict = dict[str, Any]
"""A `ChunkAnswer` as JSON values."""


def chunk_text(md_text: str, **options: Any) -> list[dict[str, Any]]:  # noqa: ANN401 - any JSON value
    """Split a text into chunks whose ids survive edits elsewhere in the text.

    Args:
        md_text: The text. It is read as Markdown unless `path` says otherwise.
        **options: All optional:

            - `path`: Name of the file; its suffix selects the format, and ids depend on it.
            - `model`: The model whose tokenizer and window limit the chunks: a bundled name, a
              folder, or an id in the local Hugging Face cache. Nothing is downloaded. Default:
              all-MiniLM-L6-v2.
            - `strategy`: "anchored" (default), "window", "exchange", "headers", "paragraph",
              "semantic", "sentences", "two_stage" or "recursive".
            - Any other key of the [chunking] table. `anchord.config.strategies.STRATEGIES` lists
              those that each strategy uses, with their defaults; it ignores the rest.

    Returns:
        One dictionary per chunk, in order. `anchord.ipc.messages.chunks` describes its keys.

    Raises:
        UsageError: An option is unknown, of the wrong type, or out of range; or the text is not a
            `str`.
    """
    if not isinstance(md_text, str):
        raise UsageError(f"the text is {type(md_text).__name__}, not str", "decode it first")
    known_options = {"path", "model", *KindConfig.__struct_fields__}
    if unknown := set(options) - known_options:
        hint = f"known: {', '.join(sorted(known_options))}"
        raise UsageError(f"chunk_text has no option `{min(unknown)}`", hint)
    path = str(options.pop("path", None) or "")
    model_name = options.pop("model", None) or _DEFAULT_MODEL
    model = find_model(str(model_name))
    chunking = parse_chunking_options(options)
    plan = build_plan(model.window, chunking)
    text = normalize_text(md_text)
    document = document_from_text(text, path)
    origin = RootedPath("", path)
    chunks = chunk_document(document, origin, plan, model.tokenizer)
    described = describe_chunks(chunks, document, origin, plan.strategy)
    return [chunk.as_json() for chunk in described]


def read_document(data: bytes, origin: RootedPath, display_name: str) -> Document:
    """Parse the bytes of a file. A file without a known suffix is read as Markdown.

    Args:
        data: The content.
        origin: The file; the suffix of its path selects the format. The path may be "".
        display_name: How to name the file in an error message.

    Raises:
        UsageError: The content is binary, or is not text in a known encoding.
    """
    document = parse_document(data, origin.path)
    if isinstance(document, Problem):
        name = escape_non_utf8(display_name) or "the text"
        raise UsageError(f"{name}: {document.reason}", "give a text file")
    if kind_of(origin.path):
        return document
    return replace(document, kind="markdown")


def chunk_document(
    document: Document, origin: RootedPath, plan: Plan, tokenizer_file: Path
) -> list[Chunk]:
    """Split a document into chunks.

    Args:
        document: The parsed document.
        origin: Its root and path, which the ids of the chunks depend on.
        plan: Strategy and limits.
        tokenizer_file: `tokenizer.json` of the model whose tokens are counted.

    Returns:
        The chunks in order, with the ids that they have in an index of that root.
    """
    file_key = make_file_key(origin.root, origin.path)
    return split_into_chunks(
        document,
        plan,
        _token_counter(tokenizer_file),
        file_key,
    )


def check_documents(
    chunked_documents: Sequence[tuple[Document, Sequence[Chunk]]], plan: Plan, tokenizer_file: Path
) -> ChunkingReport:
    """Check what chunking guarantees (coverage, sizes, unique ids) on documents and their chunks.

    Args:
        chunked_documents: (document, its chunks), chunked with `plan`.
        plan: Strategy and limits.
        tokenizer_file: `tokenizer.json` of the model whose tokens are counted.
    """
    return check_chunks_of_documents(chunked_documents, plan, _token_counter(tokenizer_file))


def compare_chunks(before: Sequence[ChunkDict], after: Sequence[ChunkDict]) -> dict[str, Any]:
    """Compare the chunks of two versions of a document.

    Args:
        before: Chunks of the old version, as `chunk_text` returns them.
        after: Chunks of the new version.

    Returns:
        - `kept`, `moved`, `new`, `vanished`: number of chunks by what happened to them. `moved`
          chunks have the same id on other lines.
        - `embedded`, `tokens`: distinct texts to embed for the new version, and their tokens.
        - `chunks`: all chunks of both versions in order, each with `change`, `before_lines`
          ([first, last] or None) and `embeds` besides its own keys.
    """
    known_texts = {chunk["embed_text"] for chunk in before}
    rows = [_compare_pair(old, new, known_texts) for old, new in _align_by_id(before, after)]
    changes = ("kept", "moved", "new", "vanished")
    counts = {change: sum(row["change"] == change for row in rows) for change in changes}
    tokens_by_text = {row["embed_text"]: row["token_count"] for row in rows if row["embeds"]}
    return {
        **counts,
        "embedded": len(tokens_by_text),
        "tokens": sum(tokens_by_text.values()),
        "chunks": rows,
    }


def _compare_pair(
    old: ChunkDict | None, new: ChunkDict | None, known_texts: set[str]
) -> dict[str, Any]:
    """Return the row of a chunk; at least one of `old` and `new` is not None."""
    return {
        "change": _change(old, new),
        "before_lines": [old["start_line"], old["end_line"]] if old else None,
        **(new or old or {}),
        "embeds": new is not None and new["embed_text"] not in known_texts,
    }


def _align_by_id(
    before: Sequence[ChunkDict], after: Sequence[ChunkDict]
) -> Iterator[tuple[ChunkDict | None, ChunkDict | None]]:
    """Yield (old, new) chunks in the order of the new version, None for the missing side.

    A vanished chunk comes before the first kept chunk that followed it in the old version.
    """
    old_by_id = {chunk["id"]: chunk for chunk in before}
    new_ids = {chunk["id"] for chunk in after}
    vanished = [chunk for chunk in before if chunk["id"] not in new_ids]
    for new in after:
        old = old_by_id.get(new["id"])
        while vanished and old and vanished[0]["start_char"] < old["start_char"]:
            yield vanished.pop(0), None
        yield old, new
    for chunk in vanished:
        yield chunk, None


def _change(old: ChunkDict | None, new: ChunkDict | None) -> str:
    if new is None:
        return "vanished"
    if old is None:
        return "new"
    is_same_place = all(old[key] == new[key] for key in ("start_line", "end_line"))
    return "kept" if is_same_place else "moved"


@cache
def _token_counter(tokenizer_file: Path) -> TokenCounter:
    """Return the counter of a tokenizer file, loaded once per process."""
    return TokenCounter(tokenizer_file)
