"""The same folder and the same changes for anchord and for other programs that index a folder for an assistant.

    python tests/tools/benchmarks/bench_peers.py [--files 300] [--folder DIR] [--rate 120] [--only anchord,memsearch]

A program that is not on PATH is left out, and the command that installs it is printed. Texts are embedded by a server on
this machine that answers --rate texts a second and counts them; texts of one word are queries and are not counted.
Without --folder the notes are invented. With it, DIR's texts are copied as .md files; the folder is never changed.
Each note has a word that no other has. A search finds it if what the program prints has the word that follows it, and
the right path. A vector of the server is near to a query for such a word if the text has it.

CPU   of the command and, until two seconds after it, of the program's daemon, with their processes
s     on the clock. The first index begins with the start of the daemon, if the program has one
-     the program cannot do that, or it cannot be seen from outside
"""

from __future__ import annotations

import argparse
import statistics
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path

from commands import Command
from daemons import until
from endpoint import Endpoint, counting
from figures import folder_bytes, git, table
from invented import article
from peers import PROGRAMS, Program

_SECTIONS = 4
_MOVED = 113
_BRANCH = range(3, 23)
_SUFFIXES = {".md", ".txt", ".rst"}
_SETTLE_S = 2.0
_PAUSE_S = 0.5
_KILLED_AT = 0.4
_CALLS = 3
_SAMPLE = 2


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--files", type=int, default=300)
    parser.add_argument("--folder", type=Path)
    parser.add_argument("--rate", type=float, default=120.0)
    parser.add_argument("--only", default=",".join(each.name for each in PROGRAMS))
    given = parser.parse_args()
    notes = _notes(given.folder, given.files)
    columns: dict[str, dict[str, str]] = {}
    missing = []
    for program in (each for each in PROGRAMS if each.name in given.only.split(",")):
        if version := program.version():
            columns[f"{program.name} {version}"] = _measure(program, notes, given.rate)
        else:
            missing.append(f"{program.name}: not installed ({program.install})")
    names = dict.fromkeys(name for cells in columns.values() for name in cells)
    rows = [(name, *(cells.get(name, "-") for cells in columns.values())) for name in names]
    print(table(("", *columns), rows), *missing, sep="\n")


class Cells(dict[str, str]):
    """The cells of a column; each is also printed to standard error at once, because a run takes long."""

    def __setitem__(self, name: str, cell: str) -> None:
        """Set and print."""
        print(f"  {name}: {cell}", file=sys.stderr, flush=True)
        super().__setitem__(name, cell)


def _notes(folder: Path | None, count: int) -> list[str]:
    """Return the texts of the notes, each with a line of its own word in its middle."""
    if folder:
        files = sorted(each for each in folder.rglob("*") if each.suffix in _SUFFIXES)
        step = max(1, len(files) // count)
        texts = [each.read_text("utf-8", "replace") for each in files[::step][:count]]
    else:
        texts = [article(number, _SECTIONS) for number in range(count)]
    if len(texts) < 2 * _BRANCH.stop:
        raise SystemExit(f"needs at least {2 * _BRANCH.stop} files")
    return [_marked(text, number) for number, text in enumerate(texts)]


def _marked(text: str, number: int) -> str:
    lines = text.splitlines()
    middle = len(lines) // 2
    mark = f"The word {_word(number)} is followed by {_after(_word(number))}."
    return "\n".join((*lines[:middle], mark, *lines[middle:], ""))


def _word(number: int, change: str = "zanzibar") -> str:
    return f"{change}{number}x"


def _after(word: str) -> str:
    """Return the word after it: a program that repeats its query has not found it."""
    return word.replace("zanzibar", "kyoto").replace("tripoli", "osaka") + "y"


def _measure(kind: type[Program], notes: list[str], rate: float) -> dict[str, str]:
    """Return the cells of a program's column."""
    with counting(rate) as endpoint, tempfile.TemporaryDirectory(prefix="anchord-b-") as base:
        trial = Trial(kind(Path(base) / "first", endpoint.url), endpoint, notes)
        print(kind.name, file=sys.stderr, flush=True)
        try:
            trial.first()
            trial.changes()
            trial.calls()
            trial.wrong()
        finally:
            trial.program.stop()
        if kind.embeds:
            again = Trial(kind(Path(base) / "killed", endpoint.url), endpoint, notes)
            try:
                again.killed(trial.needed)
                trial.cells |= again.cells
            finally:
                again.program.stop()
    return trial.cells


@dataclass
class Trial:
    """A program in a fresh home, on a fresh copy of the notes in a git repository."""

    program: Program
    endpoint: Endpoint
    notes: list[str]
    cells: Cells = field(default_factory=Cells)
    needed: int = 0
    """The texts of the first index."""

    def __post_init__(self) -> None:
        """Write the notes, and a branch in which twenty of them have another word."""
        self.folder = self.program.folder
        self.moved = range(len(self.notes) - min(_MOVED, len(self.notes) // 2), len(self.notes))
        for number, text in enumerate(self.notes):
            self.path(number).parent.mkdir(exist_ok=True)
            self.path(number).write_text(text, "utf-8")
        git(self.folder, "init", "-b", "main")
        git(self.folder, "add", "shelf", "drafts")
        git(self.folder, "commit", "-m", "notes")
        git(self.folder, "checkout", "-b", "other")
        for number in _BRANCH:
            self.edit(number)
        git(self.folder, "commit", "-a", "-m", "other")
        git(self.folder, "checkout", "main")

    def path(self, number: int) -> Path:
        """Return where a note is at first."""
        return self.folder / ("drafts" if number in self.moved else "shelf") / f"note-{number}.md"

    def edit(self, number: int) -> None:
        """Change the word of a note."""
        old, new = _word(number), _word(number, "tripoli")
        text = self.notes[number].replace(old, new).replace(_after(old), _after(new))
        self.path(number).write_text(text, "utf-8")

    def texts(self) -> int:
        """Return how many texts were embedded, without queries and probes of one word."""
        return sum(" " in text for text in self.endpoint.texts[:])

    def first(self) -> None:
        """Index the notes the first time, and look when words are found."""
        program, began, cpu_s, texts = self.program, *self.now()
        program.start()
        index, words = program.index(), program.words()
        until(lambda: program.has_words_first or self.texts() > texts or index.is_ended)
        while not index.is_ended and not self.finds_any():
            time.sleep(_PAUSE_S)
        self.cells["first word found, s"] = f"{time.monotonic() - began:.1f}"
        if words:
            words.end()
            self.cells["all words found, s; CPU s"] = self.since(began, cpu_s, words)
        self.done(index)
        if not words:
            self.cells["all words found, s; CPU s"] = self.since(began, cpu_s, index)
        self.needed = self.texts() - texts
        if program.embeds:
            self.cells["all texts embedded, s; CPU s"] = self.since(began, cpu_s, index)
            repeated = self.needed - len({text for text in self.endpoint.texts if " " in text})
            self.cells["texts embedded; a second time"] = f"{self.needed:,}; {repeated:,}"
        size = folder_bytes(program.data())
        part = f"; {size / self.needed / 1e3:.1f}" if self.needed else ""
        self.cells["disk just after: MB; KB a text"] = f"{size / 1e6:.1f}{part}"

    def changes(self) -> None:
        """Make each change and let the program follow."""
        self.operation("nothing changed", lambda: None)
        self.operation("one line edited", lambda: self.edit(0))
        self.operation("another line edited", lambda: self.edit(_BRANCH.stop))
        renamed = self.path(1).with_name("renamed.md")
        self.operation("one file renamed", lambda: self.path(1).rename(renamed))
        self.operation("one file deleted", self.path(2).unlink)
        drafts, final = self.folder / "drafts", self.folder / "final"
        self.operation(f"folder of {len(self.moved)} files renamed", lambda: drafts.rename(final))
        for name, branch in (("checkout of 20 other files", "other"), ("and back", "main")):
            self.operation(name, partial(git, self.folder, "checkout", branch))

    def operation(self, name: str, change: Callable[[], object]) -> None:
        """Measure what a change costs."""
        _, cpu_s, texts = self.now()
        change()
        index = self.done(self.program.index())
        time.sleep(_SETTLE_S if self.program.daemon() else 0.0)
        counted = f"{self.texts() - texts:,}; " if self.program.embeds else "-; "
        used_s = self.program.daemon_s() - cpu_s + index.cpu_s
        self.cells[f"{name}: texts; CPU s"] = f"{counted}{used_s:.2f}"

    def calls(self) -> None:
        """Measure single calls; the first search of a daemon may learn something and is left out."""
        self.program.search("zanzibar9x").end()
        calls: dict[str, Callable[[], Command]] = {
            "one search": lambda: self.program.search("zanzibar9x"),
            "one status": self.program.status,
        }
        for name, call in calls.items():
            used_s = []
            for _ in range(_CALLS):
                before_s = self.program.daemon_s()
                used_s.append(call().end().cpu_s + self.program.daemon_s() - before_s)
            self.cells[f"{name}: CPU s"] = f"{statistics.median(used_s):.2f}"

    def wrong(self) -> None:
        """Ask for words that must be found, at their paths, and for those that must not be."""
        branch, moved = _BRANCH[:_SAMPLE], self.moved[:: max(1, len(self.moved) // _SAMPLE)]
        there = {_word(0, "tripoli"): "shelf/note-0.md", _word(1): "shelf/renamed.md"}
        there |= {_word(number): f"shelf/note-{number}.md" for number in branch}
        there |= {_word(number): f"final/note-{number}.md" for number in moved}
        gone = [_word(0), _word(2), *(_word(number, "tripoli") for number in branch)]
        lost = sum(not self.finds(word, path) for word, path in there.items())
        stale = sum(self.finds(word) for word in gone)
        self.cells["after all: wrong of asked"] = f"{lost + stale} of {len(there) + len(gone)}"

    def killed(self, needed: int) -> None:
        """Kill the program with SIGKILL in its first index, and run it again."""
        _, _, texts = self.now()
        self.program.start()
        index = self.program.index()
        until(lambda: self.texts() - texts >= needed * _KILLED_AT or index.is_ended)
        self.program.stop(9)
        index.kill()
        at = self.texts() - texts
        self.program.start()
        self.done(self.program.index())
        made = self.texts() - texts
        numbers = range(0, len(self.notes), len(self.notes) // _SAMPLE)
        lost = sum(not self.finds(_word(number)) for number in numbers)
        self.cells[f"killed at {_KILLED_AT:.0%}, run again: texts of needed"] = (
            f"{made:,} of {needed:,} ({made / needed:.2f})"
        )
        self.cells["killed after texts; then wrong of asked"] = f"{at:,}; {lost} of {len(numbers)}"

    def finds(self, word: str, path: str = "") -> bool:
        """Return whether a search prints what follows a word, and the path."""
        found = self.program.find(word).end().output
        return _after(word) in found and path in found

    def finds_any(self) -> bool:
        """Return whether a search for a word of all notes prints any note."""
        return "note-" in self.program.find("followed").end().output

    def now(self) -> tuple[float, float, int]:
        """Return the time, the daemon's CPU and the texts so far."""
        return time.monotonic(), self.program.daemon_s(), self.texts()

    def since(self, began: float, cpu_s: float, command: Command) -> str:
        """Return the seconds and the CPU seconds since then, with those of a command."""
        used_s = self.program.daemon_s() - cpu_s + command.cpu_s
        return f"{time.monotonic() - began:.1f}; {used_s:.1f}"

    def done(self, command: Command) -> Command:
        """Wait for its end; say why if it failed."""
        if command.end().code:
            print(f"exit {command.code}: {command.output[-1_500:]}", file=sys.stderr, flush=True)
        return command


if __name__ == "__main__":
    main()
