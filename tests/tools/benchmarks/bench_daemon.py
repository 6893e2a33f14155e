"""What a running daemon costs and how it answers: while it indexes, at rest, after lost events, and over a branch switch.

    python tests/tools/benchmarks/bench_daemon.py [--only PART,...] [--files N] [--idle-s S] [--lost N] [--changed N]

Each part starts a real daemon with the embedder that needs no model, in a home and on a folder of its own:

status    how long `status` takes to come over the socket while FILES new files are indexed, over one connection and over a
          fresh one each time, every 20 ms; and at rest afterwards. These are times of the clock, in milliseconds
idle      what the daemon does in --idle-s seconds once it has indexed FILES files and done its upkeep
overflow  the daemon is stopped (SIGSTOP) while --lost files appear in 180 folders that it watches, more events than the system
          keeps; then it goes on
checkout  `git checkout` of a branch with --changed other files and back, twice

held      how long `status` takes over a fresh connection while it is paused and 200 clients have called `sync` and left, 100
          send requests and read no answer, and 40 wait for `index`: more calls than there are threads for queries

CPU is that of the daemon; `verify` compares the index with a clean rebuild.
"""

from __future__ import annotations

import argparse
import json
import os
import signal
import socket
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import psutil
from daemons import Daemon, until
from figures import git, megabytes, quantile, table
from invented import note, write_notes

from anchord.ipc.client import Client

_POLL_S = 0.02
_PATIENCE_S = 3_600.0
_UPKEEP_S = 40.0
"""The daemon compacts its table after 30 idle seconds."""
_FOLDERS = 180
_REST_POLLS = 200
_HELD_POLLS = 500
_ABANDONED = 200
_DEAF = 100
_WAITING = 40

Row = tuple[str, str, str]


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--only", default="status,idle,overflow,checkout,held")
    parser.add_argument("--files", type=int, default=10_000)
    parser.add_argument("--idle-s", type=float, default=600.0)
    parser.add_argument("--lost", type=int, default=18_000)
    parser.add_argument("--changed", type=int, default=2_000)
    given = parser.parse_args()
    parts: dict[str, Callable[[Daemon], Iterator[Row]]] = {
        "status": lambda daemon: _status(daemon, given.files),
        "idle": lambda daemon: _idle(daemon, given.files, given.idle_s),
        "held": _held,
        "overflow": lambda daemon: _overflow(daemon, given.lost),
        "checkout": lambda daemon: _checkout(daemon, given.changed),
    }
    rows: list[Row] = []
    for name in given.only.split(","):
        with tempfile.TemporaryDirectory(prefix="anchord-b-") as base:
            for row in parts[name](Daemon(Path(os.path.realpath(base)))):
                rows.append(row)
                print(" ".join(row), file=sys.stderr, flush=True)
    print(table(("part", "measured", "figure"), rows))


# status


def _status(daemon: Daemon, files: int) -> Iterator[Row]:
    write_notes(daemon.folder, range(files))
    with daemon.running() as process, daemon.client() as client:
        kept: list[float] = []
        fresh: list[float] = []
        until(lambda: _poll(daemon, client, kept, fresh)["files"] == files, _POLL_S)
        yield from _latencies(f"while {files:,} files are indexed, one connection", kept)
        yield from _latencies(f"while {files:,} files are indexed, a fresh one each", fresh)
        daemon.sync()
        yield "status", "CPU s of the daemon until then, status included", f"{_cpu_s(process):.1f}"
        status = daemon.status()
        yield (
            "status",
            "fragments and versions of the table then",
            f"{status['store']['fragments']}, {status['store']['versions']}",
        )
        kept, fresh = [], []
        for _ in range(_REST_POLLS):
            _poll(daemon, client, kept, fresh)
            time.sleep(_POLL_S)
        yield from _latencies("at rest, one connection", kept)
        yield from _latencies("at rest, a fresh one each", fresh)


def _poll(daemon: Daemon, client: Client, kept: list[float], fresh: list[float]) -> dict[str, Any]:
    began = time.perf_counter()
    client.call("status")
    between = time.perf_counter()
    status = daemon.status()
    kept.append(1000 * (between - began))
    fresh.append(1000 * (time.perf_counter() - between))
    return status


def _latencies(when: str, milliseconds: list[float]) -> Iterator[Row]:
    half, most = quantile(milliseconds, 0.5), quantile(milliseconds, 0.99)
    figures = f"{half:.1f} / {most:.1f} / {max(milliseconds):.1f}, {len(milliseconds):,} calls"
    yield "status", f"ms {when}: p50 / p99 / max", figures


# idle


def _held(daemon: Daemon) -> Iterator[Row]:
    write_notes(daemon.folder, range(200))
    with daemon.running(), ExitStack() as stack:
        with daemon.client() as client:
            client.call("sync")
            client.call("pause")
        yield from _status_times(daemon, "at rest, for comparison")
        for _ in range(_ABANDONED):
            with _connection(daemon) as connection:
                connection.sendall(_request("sync"))
        for _ in range(_DEAF):
            stack.enter_context(_connection(daemon)).sendall(_request("search") * 200)
        for _ in range(_WAITING):
            stack.enter_context(_connection(daemon)).sendall(_request("index"))
        yield from _status_times(daemon, "held")


def _status_times(daemon: Daemon, state: str) -> Iterator[Row]:
    times = []
    for _ in range(_HELD_POLLS):
        began = time.perf_counter()
        daemon.status()
        times.append((time.perf_counter() - began) * 1000)
        time.sleep(_POLL_S)
    for share in (0.5, 0.95, 0.99, 1.0):
        yield state, f"status, p{share * 100:.0f}", f"{quantile(times, share):.1f} ms"


def _connection(daemon: Daemon) -> socket.socket:
    connection = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    connection.connect(str(daemon.home / "run" / "anchord.sock"))
    return connection


def _request(method: str) -> bytes:
    params = {"query": "note", "k": 100} if method == "search" else {}
    return json.dumps({"id": 1, "method": method, "params": params}).encode() + b"\n"


def _idle(daemon: Daemon, files: int, idle_s: float) -> Iterator[Row]:
    write_notes(daemon.folder, range(files))
    with daemon.running() as process:
        daemon.sync()
        time.sleep(_UPKEEP_S)
        before, cpu_s, wakes, began = (
            daemon.status(),
            _cpu_s(process),
            _wakes(process),
            time.monotonic(),
        )
        time.sleep(idle_s)
        cpu_s, took = _cpu_s(process) - cpu_s, time.monotonic() - began
        woken = sum(times - wakes.get(thread, 0) for thread, times in _wakes(process).items())
        after = daemon.status()
        yield "idle", f"CPU in {took:.0f} s with {files:,} files", f"{cpu_s / took:.3%}"
        yield "idle", "wakes a second, of all threads that live", f"{woken / took:.1f}"
        yield "idle", "commits", str(after["commits_total"] - before["commits_total"])
        yield "idle", "walks over everything", str(after["reconciles"] - before["reconciles"])
        yield "idle", "threads", str(process.num_threads())
        yield "idle", "open files", str(process.num_fds())
        yield "idle", "RSS MB", megabytes(process.memory_info().rss)
        yield "idle", "table MB on disk, fragments, versions", _shape(after)


def _wakes(process: psutil.Process) -> dict[str, int]:
    """Return the voluntary context switches of each thread; empty where the system has no count."""
    found = {}
    for file in Path(f"/proc/{process.pid}/task").glob("*/status"):
        fields = dict(
            line.split(":\t", 1) for line in file.read_text().splitlines() if ":\t" in line
        )
        found[file.parent.name] = int(fields["voluntary_ctxt_switches"])
    return found


def _shape(status: dict[str, Any]) -> str:
    store = status["store"]
    return f"{megabytes(store['bytes'])}, {store['fragments']}, {store['versions']}"


# overflow


def _overflow(daemon: Daemon, lost: int) -> Iterator[Row]:
    for number in range(_FOLDERS):
        (daemon.folder / f"folder-{number:03}").mkdir()
    with daemon.running() as process:
        daemon.sync()
        cpu_s = _cpu_s(process)
        process.send_signal(signal.SIGSTOP)
        try:
            for number in range(lost):
                file = daemon.folder / f"folder-{number % _FOLDERS:03}" / f"note-{number}.md"
                file.write_text(note(number), "utf-8")
        finally:
            process.send_signal(signal.SIGCONT)
        began = time.monotonic()
        until(lambda: daemon.status()["overflows"] >= 1)
        yield "overflow", "s until status shows it", f"{time.monotonic() - began:.2f}"
        daemon.sync()
        yield "overflow", "s until `sync` returned", f"{time.monotonic() - began:.1f}"
        status = daemon.status()
        yield "overflow", "CPU s of the daemon until then", f"{_cpu_s(process) - cpu_s:.1f}"
        yield "overflow", f"files known, of {lost:,}", f"{status['files']:,}"
        yield "overflow", "overflows, walks", f"{status['overflows']}, {status['reconciles']}"
        yield "overflow", "exit code of `verify`", str(daemon.verify())


# checkout


def _checkout(daemon: Daemon, changed: int) -> Iterator[Row]:
    folder, numbers = daemon.folder, range(changed + changed // 2)
    write_notes(folder, numbers)
    for arguments in (
        ["init", "--quiet"],
        ["add", "."],
        ["commit", "-qm", "Notes"],
        ["branch", "-M", "first"],
    ):
        git(folder, *arguments)
    git(folder, "checkout", "-qb", "second")
    for path in sorted(folder.rglob("note-*.md"))[:changed]:
        path.write_text(path.read_text("utf-8") + "\nA line of the other branch.\n", "utf-8")
    git(folder, "commit", "-qam", "Other notes")
    git(folder, "checkout", "-q", "first")
    with daemon.running() as process:
        daemon.sync()
        for turn, branch in enumerate(("second", "first", "second", "first"), 1):
            before, cpu_s = daemon.status(), _cpu_s(process)
            git(folder, "checkout", "-q", branch)
            took = daemon.sync()
            after = daemon.status()
            embedded, reused, commits = (
                after[key] - before[key]
                for key in ("embedded_total", "reused_total", "commits_total")
            )
            figures = f"{embedded:,} embedded, {reused:,} reused, {commits} commits, {took:.1f} s, {_cpu_s(process) - cpu_s:.1f} s"
            yield "checkout", f"{turn}. to `{branch}`, {changed:,} files: sync's s, CPU s", figures
        yield "checkout", "exit code of `verify`", str(daemon.verify())


# Waiting


def _cpu_s(process: psutil.Process) -> float:
    times = process.cpu_times()
    return float(times.user + times.system)


if __name__ == "__main__":
    main()
