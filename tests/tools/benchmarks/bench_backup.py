"""The size of a second backup when nothing changed, and after one edit.

    python tests/tools/benchmarks/bench_backup.py [--files N]

A real daemon with the embedder that needs no model indexes FILES documents of about ten chunks. Then it is backed up to one
folder three times: at first, with nothing changed, and after a line of one file was edited. At the end the newest backup is
restored into an empty home and compared with a clean rebuild.

copied   the bytes that the backup reports as copied
on disk  the growth of the folder of all backups: shared files count once
"""

from __future__ import annotations

import argparse
import os
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

from daemons import Daemon
from figures import megabytes, run, table
from invented import article

from anchord.store.disk_usage import folder_bytes

Row = tuple[str, str, str, str, str]
_SECTIONS = 10


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--files", type=int, default=10_000)
    given = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="anchord-b-") as base:
        rows = list(_backups(Path(os.path.realpath(base)), given.files))
    print(table(("backup", "files, copied", "MB, copied", "MB on disk", "seconds"), rows))


def _backups(base: Path, files: int) -> Iterator[Row]:
    daemon, target = Daemon(base), base / "backups"
    for number in range(files):
        folder = daemon.folder / f"{number // 100:03}"
        folder.mkdir(exist_ok=True)
        (folder / f"{number}.md").write_text(article(number, _SECTIONS), "utf-8")
    with daemon.running():
        daemon.sync()
        chunks = daemon.status()["chunks"]
        print(f"{files:,} files, {chunks:,} chunks", file=sys.stderr, flush=True)
        yield _back_up(daemon, target, f"first, {chunks:,} chunks")
        yield _back_up(daemon, target, "nothing changed")
        edited = daemon.folder / "000" / "0.md"
        edited.write_text(edited.read_text("utf-8") + "\nOne more line.\n", "utf-8")
        daemon.sync()
        yield _back_up(daemon, target, "one line edited")
    _check_restored(base, target)


def _back_up(daemon: Daemon, target: Path, name: str) -> Row:
    before = folder_bytes(target)
    began = time.monotonic()
    with daemon.client() as client:
        made = client.backup(str(target))
    took_s = time.monotonic() - began
    return (
        name,
        f"{made.files:,}, {made.copied_files:,}",
        f"{megabytes(made.bytes)}, {megabytes(made.copied_bytes)}",
        megabytes(folder_bytes(target) - before),
        f"{took_s:.1f}",
    )


def _check_restored(base: Path, target: Path) -> None:
    environment = os.environ | {"ANCHORD_HOME": str(base / "other")}
    for command in (["restore", str(target)], ["verify"]):
        done = run([sys.executable, "-m", "anchord", *command], environment)
        if done.code:
            raise RuntimeError(f"`anchord {command[0]}` ended with exit code {done.code}")


if __name__ == "__main__":
    main()
