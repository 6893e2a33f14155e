"""The Python API for chunking: one function, dictionaries out."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any

from anchord.adapters.models import find_model
from anchord.adapters.tokenizer import TokenCounter
from anchord.chunkers import chunk
from anchord.chunkers.check import Figures, check_all
from anchord.chunkers.plan import Plan
from anchord.config import KindConfig, chosen_values
from anchord.core.identity import file_key
from anchord.core.recipe import plan_of
from anchord.description import describe
from anchord.errors import UsageError
from anchord.model import Chunk, Document, Origin, Problem, printable
from anchord.sources import document_of, kind_of, parse
from anchord.sources.clean import clean

Described = dict[str, Any]
"""A chunk as `description.describe` gives it."""


def chunk_text(md_text: str, **options: Any) -> list[dict[str, Any]]:  # noqa: ANN401 - any JSON value
    """Cut a text into chunks whose ids stay the same where an edit did not reach.

    Args:
        md_text: the text; markdown unless `path` says otherwise.
        **options: `path`: names the file, and so its format; `model`: whose tokeniser and window count (default
            all-MiniLM-L6-v2); `strategy`: "anchored" (default), "window", "exchange", "headers", "paragraph", "semantic",
            "sentences", "two_stage" or "recursive"; and the keys of `[chunking]`: those that the strategy heeds are
            in `anchord.settings.STRATEGIES` with their defaults, the others have no effect.

    Returns:
        A dictionary a chunk, in order; `anchord.description` says what is in it.

    Raises:
        UsageError: an option is unknown or cannot be done.
    """
    if not isinstance(md_text, str):
        raise UsageError(f"the text is {type(md_text).__name__}, not str", "decode it first")
    known = {"path", "model", *KindConfig.__struct_fields__}
    if unknown := set(options) - known:
        raise UsageError(f"unknown option `{min(unknown)}`", f"known: {', '.join(sorted(known))}")
    given = {name: value for name, value in options.items() if name not in {"path", "model"}}
    path = str(options.get("path") or "")
    model = find_model(str(options.get("model") or "all-MiniLM-L6-v2"))
    plan = plan_of(model.window, chosen_values(given))
    document = document_of(clean(md_text), path)
    origin = Origin("", path)
    return describe(chunk_document(document, origin, plan, model.tokenizer), document, origin, plan.strategy)


def read_document(data: bytes, origin: Origin, name: str) -> Document:
    """Read a file's bytes; a path of no known type, and none at all, is taken for markdown. `name` is for the message.

    Raises:
        UsageError: the content is binary.
    """
    document = parse(data, origin.path)
    if isinstance(document, Problem):
        raise UsageError(f"{printable(name) or 'the text'}: {document.reason}", "give a text file")
    return document if kind_of(origin.path) else replace(document, kind="markdown")


def chunk_document(document: Document, origin: Origin, plan: Plan, tokenizer: Path) -> list[Chunk]:
    """Cut a document, with the ids that it has at its origin."""
    return chunk(document, plan, _counter(tokenizer), file_key(origin.root, origin.path))


def check_documents(cut: Sequence[tuple[Document, Sequence[Chunk]]], plan: Plan, tokenizer: Path) -> Figures:
    """Say whether the chunks of documents are what they promise to be."""
    return check_all(cut, plan, _counter(tokenizer))


def compare(before: Sequence[Described], now: Sequence[Described]) -> dict[str, Any]:
    """Return which chunks are kept, moved, new and vanished between two versions, in order, and what embedding would cost."""
    known = {each["embed_text"] for each in before}
    rows = [
        {
            "change": _change(old, new),
            "before_lines": [old["start_line"], old["end_line"]] if old else None,
            **(new or old or {}),
            "embeds": new is not None and new["embed_text"] not in known,
        }
        for old, new in _aligned(before, now)
    ]
    counts = {what: sum(row["change"] == what for row in rows) for what in ("kept", "moved", "new", "vanished")}
    cost = {row["embed_text"]: row["token_count"] for row in rows if row["embeds"]}
    return {**counts, "embedded": len(cost), "tokens": sum(cost.values()), "chunks": rows}


def _aligned(before: Sequence[Described], now: Sequence[Described]) -> Iterator[tuple[Described | None, Described | None]]:
    """Yield pairs of the same id in their order now, and what vanished before what stood after it."""
    old, here = {each["chunk_id"]: each for each in before}, {each["chunk_id"] for each in now}
    gone = [each for each in before if each["chunk_id"] not in here]
    for each in now:
        was = old.get(each["chunk_id"])
        while gone and was and gone[0]["start_char"] < was["start_char"]:
            yield gone.pop(0), None
        yield was, each
    yield from ((each, None) for each in gone)


def _change(old: Described | None, new: Described | None) -> str:
    if old is None or new is None:
        return "vanished" if new is None else "new"
    return "kept" if all(old[key] == new[key] for key in ("start_line", "end_line")) else "moved"


@cache
def _counter(tokenizer: Path) -> TokenCounter:
    return TokenCounter(tokenizer)
