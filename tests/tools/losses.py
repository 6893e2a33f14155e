"""One daemon that is killed, or loses a random file below `data/`, again and again while it works; what that costs is counted.

    python tests/tools/losses.py [--kills N] [--losses N] [--seed S] [--model hash|sentence-transformers]

Meanwhile notes are written and a session of Claude Code grows: each text has a word of its own. A turn ends with `sync` of the
daemon, or of the next one; then `lancedb` and `sqlite3` are asked for those words. After a loss, a file that held the only copy
of a vector has its texts embedded again, which is counted apart. Transcripts are never deleted.

exchanges lost     in the transcripts, and not in the archive
false synced       words that the table did not have although `sync` had returned after they were written
embedded twice     by the log, texts that were embedded again after a kill; what was embedded and not written when the
                   daemon was killed has left no line. After losses they are counted apart: their vector may be gone
differences        what `anchord verify` finds
not healed         turns whose daemon did not return from `sync` within two minutes

Exit code 1 if one of these is not 0, but for texts that were embedded again after a loss.
"""

from __future__ import annotations

import argparse
import json
import re
import sqlite3
import sys
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import closing, contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from random import Random

import lancedb

if __name__ == "__main__":
    sys.path[0] = str(Path(__file__).resolve().parent.parent)

from conversations.conftest import claude
from live.conftest import Home

from anchord.errors import AnchordError

_NOTE_PAUSE_S = 0.05
_NOTES_PER_EXCHANGE = 4
_LONGEST_LOAD_S = 2.0
_SYNC_S = 120.0
_WORD = re.compile(r"\bmark\d+\b")
_FAULTS = ("exchanges lost", "false synced", "embedded twice", "differences", "not healed")


@dataclass
class Load:
    """Writes notes and exchanges, each with a word of its own."""

    home: Home
    talks: Path
    written: set[str] = field(default_factory=set)
    exchanges: int = 0
    _count: int = 0

    @contextmanager
    def running(self) -> Iterator[None]:
        """Write in a thread for as long as the block takes."""
        ended = threading.Event()

        def write() -> None:
            while not ended.wait(_NOTE_PAUSE_S):
                self.write()

        thread = threading.Thread(target=write)
        thread.start()
        try:
            yield
        finally:
            ended.set()
            thread.join()

    def write(self) -> None:
        """Write a note, and now and then an exchange."""
        self._count += 1
        word = f"mark{self._count:06}"
        if self._count % _NOTES_PER_EXCHANGE:
            self.home.write(f"{word}.md", f"# Note {word}\n\nThis is about {word}.\n")
        else:
            start, self.exchanges = self.exchanges, self.exchanges + 1
            with (self.talks / "session.jsonl").open("ab") as stream:
                stream.write(claude((f"What is {word}?", f"It is {word}."), start=start))
        self.written.add(word)


class Trial:
    """A home, its load, and what was counted."""

    def __init__(self, base: Path, model: str, seed: int) -> None:
        """Make the home and start the first daemon."""
        self.counts: Counter[str] = Counter()
        self._dice = Random(seed)  # noqa: S311 - the same turns each time
        self.home = Home(base, model)
        talks = base / "talks"
        talks.mkdir()
        settings = f'[[root]]\npath = "{self.home.folder}"\n'
        settings += f'[[root]]\npath = "{talks}"\nkind = "conversations"\n'
        (self.home.path / "config.toml").write_text(self.home.settings + settings)
        self.load = Load(self.home, talks)
        self.load.write()
        self._log_read = 0
        self._embedded: Counter[str] = Counter()
        self._start()
        self._sync()
        self._read_log("embedded twice")

    def turn(self, kind: str) -> None:
        """Kill the daemon, or take a file from it, while it works; then judge."""
        with self.load.running():
            time.sleep(self._dice.uniform(0.2, _LONGEST_LOAD_S))
            if kind == "kill":
                self.home.kill()
                what = "kill -9"
                self._start()
            else:
                what = self._lose_a_file()
        self.counts[f"turns: {kind}"] += 1
        before = self.counts.copy()
        if self._sync():
            self._judge()
        self._read_log("embedded twice" if kind == "kill" else "embedded again after a loss")
        found = {name: number for name, number in (self.counts - before).items() if number}
        sys.stderr.write(f"{kind} {self.counts[f'turns: {kind}']}: {what}: {found or 'held'}\n")

    def _start(self) -> None:
        self.home.run()

    def _lose_a_file(self) -> str:
        data = self.home.path / "data"
        while True:
            files = sorted(path for path in data.rglob("*") if path.is_file())
            lost = self._dice.choice(files)
            with suppress(FileNotFoundError):
                lost.unlink()
                return str(lost.relative_to(data))

    def _sync(self) -> bool:
        """Wait until the daemon, or the one after it, is up to date; else start another one."""
        deadline = time.monotonic() + _SYNC_S
        while time.monotonic() < deadline:
            with suppress(AnchordError):
                self.home.call("sync", timeout=_SYNC_S / 2)
                return True
            time.sleep(0.2)
        self.counts["not healed"] += 1
        self.home.kill()
        self._start()
        return False

    def _judge(self) -> None:
        words = set(self.load.written)
        texts = self._read_texts() or self._read_texts()
        found = {word for text in texts for word in _WORD.findall(text)}
        self.counts["false synced"] += len(words - found)
        with closing(sqlite3.connect(self.home.path / "data" / "conversations.sqlite")) as archive:
            (kept,) = archive.execute("SELECT count(*) FROM exchanges").fetchone()
        self.counts["exchanges lost"] += max(0, self.load.exchanges - kept)
        verified = json.loads(self.home.anchord("verify", "--json").stdout)
        self.counts["differences"] += verified["differences_total"]

    def _read_texts(self) -> list[str]:
        """Return the table's texts; none if a file is missing.

        A compaction can delete a file between the opening and the reading: then the second try
        reads another version.
        """
        try:
            table = lancedb.connect(str(self.home.path / "data" / "lance")).open_table("chunks")
            texts: list[str] = (
                table.search().select(["text"]).limit(None).to_arrow()["text"].to_pylist()
            )
        except (RuntimeError, OSError, ValueError) as error:
            sys.stderr.write(f"a read of the table failed: {error}\n")
            return []
        return texts

    def _read_log(self, name: str) -> None:
        """Count what was embedded a second time since the log was last read."""
        lines = (self.home.path / "run.log").read_text("utf-8", "replace").splitlines()
        for line in lines[self._log_read :]:
            if '"file.handled"' in line:
                event = json.loads(line)
                path, embedded = f"{event['root']}/{event['path']}", event["embedded"]
                # A file that was written with its words alone is handled twice, and embedded once.
                again = self._embedded[path] > 0
                self.counts[name] += embedded if again else 0
                self._embedded[path] += embedded
        self._log_read = len(lines)


def main() -> int:
    """Run the turns; return the exit code."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--kills", type=int, default=10)
    parser.add_argument("--losses", type=int, default=10)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--model", default="sentence-transformers")
    given = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="anchord-l-") as base:
        trial = Trial(Path(base), given.model, given.seed)
        try:
            for number in range(max(given.kills, given.losses)):
                if number < given.kills:
                    trial.turn("kill")
                if number < given.losses:
                    trial.turn("loss")
        finally:
            process = trial.home.process
            if process is not None and process.poll() is None:
                trial.home.terminate()
    names = [*_FAULTS, *sorted(trial.counts.keys() - set(_FAULTS))]
    sys.stdout.write("".join(f"{name:30}{trial.counts[name]}\n" for name in names))
    sys.stdout.write(f"{'texts written':30}{len(trial.load.written)}\n")
    return int(any(trial.counts[name] for name in _FAULTS))


if __name__ == "__main__":
    sys.exit(main())
