"""Snapshots of real output, for review when the chunker changes: `pytest --snapshot-update` writes them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from syrupy.assertion import SnapshotAssertion
from syrupy.extensions.single_file import SingleFileSnapshotExtension, WriteMode

from anchord import chunk_text
from anchord.config.strategies import STRATEGIES

CORPUS = Path(__file__).parent / "corpus"


class Pages(SingleFileSnapshotExtension):
    """A text file for each snapshot, so that a changed one is read as a diff."""

    _write_mode = WriteMode.TEXT
    file_extension = "txt"


def page(chunks: list[dict[str, Any]]) -> str:
    """Format chunks for review: location, kind, text, and the heading that the model sees."""
    lines = []
    for chunk in chunks:
        title = chunk["embed_text"].split("\n", 1)[0] if chunk["is_contextually_enriched"] else ""
        flags = [
            chunk["chunk_type"],
            *(["part"] if chunk["exceeds_limit"] else []),
            *([f"under {title!r}"] if title else []),
        ]
        place = f"{chunk['start_line']}-{chunk['end_line']} from {chunk['anchor_line']}"
        path = " > ".join(chunk["header_path"])
        lines.append(
            f"=== {place} | {path} | {chunk['token_count']} tokens | {', '.join(flags)} | {chunk['id'][:8]}"
        )
        lines += chunk["text"].split("\n")
    return "\n".join([*lines, ""])


@pytest.mark.parametrize("name", sorted(file.name for file in CORPUS.iterdir()))
def test_the_corpus_is_cut_as_it_was(snapshot: SnapshotAssertion, name: str) -> None:
    text = (CORPUS / name).read_text("utf-8")
    assert page(chunk_text(text, path=name)) == snapshot(extension_class=Pages)


@pytest.mark.parametrize(
    "strategy", [name for name in STRATEGIES if name not in ("anchored", "exchange")]
)
def test_each_strategy_cuts_the_guide_as_it_did(snapshot: SnapshotAssertion, strategy: str) -> None:
    text = (CORPUS / "guide.md").read_text("utf-8")
    assert page(chunk_text(text, path="guide.md", strategy=strategy)) == snapshot(
        extension_class=Pages
    )


def test_a_transcript_is_cut_by_its_exchanges_as_it_was(snapshot: SnapshotAssertion) -> None:
    text = (CORPUS / "talk.txt").read_text("utf-8")
    assert page(chunk_text(text, path="talk.txt", strategy="exchange")) == snapshot(
        extension_class=Pages
    )
