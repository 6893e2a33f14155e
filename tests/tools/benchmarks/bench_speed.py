"""The time to chunk 100 KB: this chunker and others on the same text in the same run.

    python tests/tools/benchmarks/bench_speed.py [FILE]

FILE is repeated up to 100 KB; without one, words and headings are invented. `first` is with empty caches,
`again` the median of nine runs, as after each save; milliseconds of CPU. The others are those that are installed
(`pip install -e '.[peers]'`).
"""

from __future__ import annotations

import random
import statistics
import sys
import time
from pathlib import Path

from bench_edits import Chunker, anchord, by_strategy, peers

from anchord.embedding.model_files import find_model
from anchord.embedding.tokenizer import TokenCounter

SIZE = 100_000
RUNS = 9
WORDS = "river stone light paper garden window letter morning silver bridge winter summer kitchen music travel".split()  # noqa: SIM905


def main() -> None:
    """Print the table."""
    text = made() if len(sys.argv) == 1 else Path(sys.argv[1]).read_text("utf-8")
    text = (text * (SIZE // max(1, len(text)) + 1))[:SIZE]
    chunkers: dict[str, Chunker] = {
        "anchord": anchord,
        "anchord, recursive": by_strategy("recursive"),
    }
    chunkers |= dict(peers(TokenCounter(find_model("all-MiniLM-L6-v2").tokenizer)))
    anchord("warm the imports", "a.md")
    print(f"{'':<28} chunks  first ms  again ms  MB/s")
    for name, chunker in chunkers.items():
        times, chunks = [], 0
        for _ in range(RUNS + 1):
            began = time.process_time()
            chunks = len(chunker(text, "a.md"))
            times.append(1000 * (time.process_time() - began))
        again = statistics.median(times[1:])
        print(
            f"{name:<28} {chunks:>6}  {times[0]:>8.0f}  {again:>8.0f}  {len(text) / 1000 / again:>4.1f}"
        )


def made() -> str:
    """Return a text of headings and paragraphs, the same each time."""
    choose = random.Random(1)  # noqa: S311 - the same words each time
    parts = []
    for number in range(200):
        lines = [" ".join(choose.choices(WORDS, k=12)) for _ in range(choose.randint(2, 8))]
        parts += [f"## Part {number}"] * (number % 5 == 0) + ["\n".join(lines)]
    return "\n\n".join(parts)


if __name__ == "__main__":
    main()
