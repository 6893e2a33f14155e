"""What commands beside a running daemon cost, and a restart of the daemon with nothing changed.

    python tests/tools/benchmarks/bench_start.py [FOLDER] [--files N] [--runs N] [--beside SRC]

Without FOLDER, N notes are written. Every figure is taken RUNS times, in turns with Python alone and, with --beside, with the
code in SRC (the `src` of another commit): the machine may be busy. The table has the median and, in brackets, the least.

command   CPU of a whole process, in milliseconds; `complete` is `anchord search --mode <Tab>`
restart   CPU of the daemon until three seconds after it is idle, and seconds from its start until `search` by words answers
"""

from __future__ import annotations

import argparse
import shutil
import statistics
import sys
import tempfile
import time
from collections import defaultdict
from collections.abc import Sequence
from pathlib import Path

from daemons import Daemon, until
from figures import run, table
from invented import write_notes

from anchord.errors import AnchordError

_COMMANDS = (
    "status", "status --json", "search unicode", "search unicode --mode text --json", "show 0", "sync", "errors", "roots", "pause",
    "resume", "--version", "config path",
)  # fmt: skip
_COMPLETION = {
    "_ANCHORD_COMPLETE": "complete_bash",
    "COMP_WORDS": "anchord search --mode ",
    "COMP_CWORD": "3",
}
_REST_S = 3.0


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("folder", nargs="?", type=Path)
    parser.add_argument("--files", type=int, default=1_104)
    parser.add_argument("--runs", type=int, default=9)
    parser.add_argument("--beside", type=Path)
    options = parser.parse_args()
    sources = {"this": ""} | ({"beside": str(options.beside)} if options.beside else {})
    with tempfile.TemporaryDirectory(prefix="start") as base:
        daemon = Daemon(Path(base))
        if options.folder:
            shutil.copytree(options.folder, daemon.folder, dirs_exist_ok=True)
        else:
            write_notes(daemon.folder, range(options.files))
        with daemon.running():
            daemon.sync()
            commands = _commands(daemon, sources, options.runs)
        restarts = _restarts(daemon, sources, options.runs)
    print(table(["CPU ms", *sources], commands))
    print()
    print(table(["restart", *sources], restarts))


def _commands(daemon: Daemon, sources: dict[str, str], runs: int) -> list[Sequence[str]]:
    cpu_ms: dict[tuple[str, str], list[float]] = defaultdict(list)
    calls = {"python alone": (["-c", "pass"], {}), "complete": (["-m", "anchord"], _COMPLETION)}
    calls |= {command: (["-m", "anchord", *command.split()], {}) for command in _COMMANDS}
    for _ in range(runs):
        for name, (arguments, variables) in calls.items():
            for label, source in sources.items():
                environment = daemon.environment(source) | variables
                ran = run([sys.executable, *arguments], environment)
                cpu_ms[name, label].append(ran.cpu_s * 1e3)
    return [(name, *(_figure(cpu_ms[name, label], 0) for label in sources)) for name in calls]


def _restarts(daemon: Daemon, sources: dict[str, str], runs: int) -> list[Sequence[str]]:
    figures: dict[tuple[str, str], list[float]] = defaultdict(list)
    for _ in range(runs):
        for label, source in sources.items():
            began = time.monotonic()
            with daemon.running(source) as process:
                until(lambda: _finds_words(daemon), 0.01)
                figures["s until a search by words answers", label].append(time.monotonic() - began)
                until(lambda: daemon.status()["state"] == "idle")
                time.sleep(_REST_S)
                used = process.cpu_times()
                figures["CPU s", label].append(used.user + used.system)
    rows = dict.fromkeys(name for name, _ in figures)
    return [(name, *(_figure(figures[name, label], 2) for label in sources)) for name in rows]


def _finds_words(daemon: Daemon) -> bool:
    try:
        with daemon.client() as client:
            return bool(client.search("unicode", mode="text", k=1))
    except AnchordError:
        return False


def _figure(values: Sequence[float], digits: int) -> str:
    return f"{statistics.median(values):.{digits}f} ({min(values):.{digits}f})"


if __name__ == "__main__":
    main()
