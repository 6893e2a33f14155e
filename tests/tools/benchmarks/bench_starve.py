"""How long a save takes to be found beside a copy of many files.

    python tests/tools/benchmarks/bench_starve.py [--copies 0,100,400,2000] [--saves 20] [--rate 120]

A daemon embeds with a server on this machine that answers as slowly as the real model: --rate texts a second. In a home of
its own for each number of --copies, that many files are copied into a new folder of the root; from one second later on,
a note is saved every other second. Each has a new word: the time is that from the write until a word search finds it.
With 0 copies the machine is quiet. Compare two commits in one run of the machine.
"""

from __future__ import annotations

import argparse
import tempfile
import time
from pathlib import Path

from daemons import Daemon, until
from endpoint import DIMENSION, counting
from figures import quantile, table
from invented import article

_EVERY_S = 2.0
_POLL_S = 0.05
_NOTES = 50


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--copies", default="0,100,400,2000")
    parser.add_argument("--saves", type=int, default=20)
    parser.add_argument("--rate", type=float, default=120.0)
    given = parser.parse_args()
    rows = []
    with counting(given.rate) as server:
        for copies in map(int, given.copies.split(",")):
            with tempfile.TemporaryDirectory(prefix="anchord-b-") as base:
                times, waiting = _measure(Path(base), server.url, copies, given.saves)
            figures = (quantile(times, 0.5), quantile(times, 0.95), max(times))
            rows.append((f"{copies:,}", *(f"{each:.2f} s" for each in figures), f"{waiting:,}"))
    heads = ("files copied", "half within", "95 % within", "the longest", "files that still waited")
    print(table(heads, rows))


def _measure(base: Path, url: str, copies: int, saves: int) -> tuple[list[float], int]:
    """Return the seconds of each save, and how many files waited after the last."""
    settings = f'[embedding]\nprovider = "openai"\nmodel = "slow"\nurl = "{url}"\n'
    daemon = Daemon(base, f"{settings}dimension = {DIMENSION}\n")
    for number in range(_NOTES):
        (daemon.folder / f"note-{number}.md").write_text(f"# Note {number}\n\nOld.\n", "utf-8")
    with daemon.running():
        daemon.sync()
        copied = daemon.folder / "copied"
        copied.mkdir()
        for number in range(copies):
            (copied / f"article-{number}.md").write_text(article(number, 2), "utf-8")
        time.sleep(1.0)
        times = [_save(daemon, number) for number in range(saves)]
        return times, int(daemon.status()["pending"])


def _save(daemon: Daemon, number: int) -> float:
    """Save a note with a new word, and return the seconds until a search finds it."""
    word = f"zanzibar{number}x"
    began = time.monotonic()
    with daemon.client() as client:
        note = daemon.folder / f"note-{number % _NOTES}.md"
        note.write_text(f"# Note {number}\n\nA note about {word}.\n", "utf-8")
        until(lambda: client.search(word, mode="text", k=1).groups, _POLL_S)
    took_s = time.monotonic() - began
    time.sleep(max(0.0, _EVERY_S - took_s))
    return took_s


if __name__ == "__main__":
    main()
