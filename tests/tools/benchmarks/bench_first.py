"""The first minute: from `anchord run` in a fresh home until words, and then meanings, are found.

    python tests/tools/benchmarks/bench_first.py [--folder DIR] [--files 300] [--words]

DIR is copied; without it the files are some of Python's standard library. The real model embeds. Two homes that share an
empty cache folder: the first has to prepare the model (export it, once a user), the second finds it prepared.

first word      until a search by words finds any file
all words       until `anchord sync --words` returns
all meaning     until `anchord sync` returns
CPU             of the daemon with its processes, at that moment

With `--words` nothing is measured after the words: many files need hours for their meanings.
"""

from __future__ import annotations

import argparse
import os
import shutil
import sysconfig
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

from daemons import Daemon, cpu_s, until
from figures import table

_POLL_S = 0.1


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--folder", type=Path, default=Path(sysconfig.get_path("stdlib")))
    parser.add_argument("--files", type=int, default=300)
    parser.add_argument("--words", action="store_true", help="do not wait for meanings")
    given = parser.parse_args()
    found = sorted(
        file for file in given.folder.rglob("*.*") if file.suffix in {".py", ".md", ".txt"}
    )
    files = found[:: max(1, len(found) // given.files)][: given.files]
    with tempfile.TemporaryDirectory(prefix="anchord-b-") as base:
        os.environ["XDG_CACHE_HOME"] = str(Path(base) / "cache")
        rows = [
            (model, *_measure(Path(base) / model, files, words_only=given.words))
            for model in ("not prepared", "prepared")
        ]
    heads = ("model", "first word", "all words", "CPU", "all meaning", "CPU", "chunks")
    print(table(heads, rows))


def _measure(base: Path, files: Sequence[Path], *, words_only: bool) -> tuple[str, ...]:
    """Run a daemon on copies of files in a fresh home; return the cells of its row."""
    base.mkdir()
    daemon = Daemon(base, "")
    for number, file in enumerate(files):
        shutil.copyfile(file, daemon.folder / f"{number}-{file.name}")
    began = time.monotonic()
    with daemon.running() as process, daemon.client() as client:
        until(lambda: client.search("import", mode="text", k=1).groups, _POLL_S)
        first_s = time.monotonic() - began
        client.sync(words=True)
        words_s, words_cpu_s = time.monotonic() - began, cpu_s(process)
        meaning = ["", ""]
        if words_only:
            until(lambda: client.status().embedder.state == "busy", _POLL_S)  # It is prepared now.
        else:
            client.sync()
            meaning = [f"{time.monotonic() - began:.1f} s", f"{cpu_s(process):.1f} s"]
        chunks = client.status().chunks
    words = (f"{each:.1f} s" for each in (first_s, words_s, words_cpu_s))
    return (*words, *meaning, f"{chunks:,}")


if __name__ == "__main__":
    main()
