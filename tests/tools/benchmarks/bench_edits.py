"""What one edit costs, on real edits from git histories: this chunker and others, in one table.

    python tests/tools/benchmarks/bench_edits.py DATA [--set md|code] [--limit N] [--peers] [--strategies]

DATA is a folder with `edits-md.jsonl.gz` and `edits-code.jsonl.gz`: one JSON object a line with `path`, `old` (the text before)
and `ops` = [[first line, last line excluded, new text], ...]. `--peers` also runs those of LangChain, semantic-text-splitter
and chonkie that are installed (`pip install -e '.[peers]'`); `--strategies` ours
beside `anchored`.

embedded  texts that were not among the file's texts before the edit, a mean an edit; one-line edits apart, with their worst
new ids   chunk ids that were not there before; others have none, and are given the hash of their text
chars     characters embedded again for each one changed
over      share of chunks over the model's window; what is beyond is not embedded
MB/s      of CPU
"""

from __future__ import annotations

import argparse
import gzip
import json
import random
import statistics
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from anchord import chunk_text
from anchord.config.strategies import STRATEGIES
from anchord.embedding.model_files import find_model
from anchord.embedding.tokenizer import TokenCounter

WINDOW = 254
Piece = tuple[str, str]
"""The embedded text and the id."""
Chunker = Callable[[str, str], Sequence[Piece]]


@dataclass(slots=True)
class Score:
    """Sums over edits."""

    embedded: list[int]
    ids: list[int]
    one: list[int]
    cost: int = 0
    changed: int = 0
    chunks: int = 0
    over: int = 0
    chars: int = 0
    seconds: float = 0.0


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("data", type=Path)
    parser.add_argument("--set", default="md", choices=("md", "code"))
    parser.add_argument("--limit", type=int, default=600)
    parser.add_argument("--peers", action="store_true")
    parser.add_argument("--strategies", action="store_true")
    given = parser.parse_args()
    count = TokenCounter(find_model("all-MiniLM-L6-v2").tokenizer)
    chunkers: dict[str, Chunker] = {"anchord": anchord}
    if given.strategies:
        chunkers |= {
            f"anchord, {name}": by_strategy(name) for name in STRATEGIES if name != "anchored"
        }
    if given.peers:
        chunkers |= dict(peers(count))
    print(f"{'':<28} embedded  one-line: mean/p99/max  new ids  chars  chunks  over  MB/s")
    for name, chunker in chunkers.items():
        s = score(chunker, edits(given.data / f"edits-{given.set}.jsonl.gz", given.limit), count)
        one, over = sorted(s.one), s.over / s.chunks
        print(
            f"{name:<28} {statistics.mean(s.embedded):>8.2f}  {statistics.mean(one):>12.2f} {one[int(0.99 * len(one))]:>4} "
            f"{one[-1]:>4}  {statistics.mean(s.ids):>7.2f}  {s.cost / s.changed:>5.2f}  {s.chunks:>6}  {over:>4.0%}  "
            f"{s.chars / 1e6 / s.seconds:>4.1f}"
        )


def edits(file: Path, limit: int) -> list[dict[str, Any]]:
    """Return edits, shuffled in the same way each time."""
    with gzip.open(file, "rt", encoding="utf-8") as stream:
        rows = [json.loads(line) for line in stream]
    random.Random(1).shuffle(rows)  # noqa: S311 - the same ones each time
    return rows[: limit or None]


def score(chunker: Chunker, rows: Sequence[dict[str, Any]], count: TokenCounter) -> Score:
    """Chunk each text before and after its edit, and compare."""
    s = Score([], [], [])
    for row in rows:
        old, ops = row["old"], row["ops"]
        new = after(old, ops)
        began = time.process_time()
        before, now = chunker(old, row["path"]), chunker(new, row["path"])
        s.seconds += time.process_time() - began
        fresh = {text for text, _ in now} - {text for text, _ in before}
        s.embedded.append(len(fresh))
        s.ids.append(len({name for _, name in now} - {name for _, name in before}))
        if len(ops) == 1 and ops[0][1] - ops[0][0] <= 1 and len(ops[0][2].splitlines()) <= 1:
            s.one.append(len(fresh))
        lines = old.splitlines(keepends=True)
        gone = sum(len(line) for first, last, _ in ops for line in lines[first:last])
        s.changed += max(1, gone, sum(len(text) for *_, text in ops))
        s.cost += sum(map(len, fresh))
        s.chars += len(old) + len(new)
        s.chunks += len(now)
        s.over += sum(tokens > WINDOW for tokens in count([text for text, _ in now]))
    return s


def after(old: str, ops: Sequence[Sequence[Any]]) -> str:
    """Apply an edit."""
    lines, parts, at = old.splitlines(keepends=True), [], 0
    for first, last, text in ops:
        parts += [*lines[at:first], text]
        at = last
    return "".join(parts + lines[at:])


def anchord(text: str, path: str) -> Sequence[Piece]:
    """This chunker."""
    return by_strategy("anchored")(text, path)


def by_strategy(strategy: str) -> Chunker:
    """This chunker with a strategy."""
    return lambda text, path: [
        (p["embed_text"], p["id"]) for p in chunk_text(text, path=path, strategy=strategy)
    ]


def peers(count: TokenCounter) -> Iterator[tuple[str, Chunker]]:
    """Yield the others that are installed, at their usual sizes and at sizes like ours."""

    def plain(split: Callable[[str], Sequence[str]]) -> Chunker:
        return lambda text, _path: [(piece, piece) for piece in split(text)]

    if find_spec("langchain_text_splitters"):
        from langchain_text_splitters import (  # noqa: PLC0415
            MarkdownHeaderTextSplitter,
            RecursiveCharacterTextSplitter,
        )

        for size, overlap in ((1000, 200), (600, 0)):
            recursive = RecursiveCharacterTextSplitter(chunk_size=size, chunk_overlap=overlap)
            yield f"LangChain recursive {size}/{overlap}", plain(recursive.split_text)
        headers = MarkdownHeaderTextSplitter(
            [("#", "1"), ("##", "2"), ("###", "3")], strip_headers=False
        )
        small = RecursiveCharacterTextSplitter(chunk_size=600, chunk_overlap=0)

        def two_stage(text: str) -> list[str]:
            return [
                part
                for section in headers.split_text(text)
                for part in small.split_text(section.page_content)
            ]

        yield "LangChain two-stage 600/0", plain(two_stage)
    if find_spec("semantic_text_splitter"):
        from semantic_text_splitter import MarkdownSplitter  # noqa: PLC0415

        yield "semantic-text-splitter 600", plain(MarkdownSplitter(600).chunks)
        by_tokens = MarkdownSplitter.from_callback(lambda text: count([text])[0], 200)
        yield "semantic-text-splitter 200 t", plain(by_tokens.chunks)
    if find_spec("chonkie"):
        from chonkie import RecursiveChunker  # noqa: PLC0415

        chonkie = RecursiveChunker(tokenizer="character", chunk_size=600)
        yield (
            "chonkie recursive 600",
            plain(lambda text: [piece.text for piece in chonkie.chunk(text)]),
        )


if __name__ == "__main__":
    main()
