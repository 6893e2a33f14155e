"""Group G of FAULTS.md on a real daemon: one instance, allowed clients, blocked work, reload and exit."""

from __future__ import annotations

import concurrent.futures
import functools
import json
import os
import shutil
import signal
import socket
import sqlite3
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager, suppress
from pathlib import Path
from typing import Any, NoReturn, Self

import psutil
import pytest
from live.conftest import Home, until
from live.held import Held
from preloaded import PreloadedDaemon
from threads import in_thread

from anchord.cli.commands import daemon as lifecycle
from anchord.config.paths import find_paths
from anchord.daemon.main import _QUERY_THREADS
from anchord.errors import AlreadyRunningError, AnchordError, NotRunningError
from anchord.ipc import patience
from anchord.ipc.connections import MAX_CONNECTIONS
from anchord.ipc.messages.control import ShutdownAnswer
from anchord.ipc.protocol import MAX_REQUEST_BYTES
from anchord.store.writer_lock import WriterLock

_ENDS_S = 10.0
"""FAULTS.md, G10: seconds until a daemon has ended after a request to stop."""
_SOON_S = 8.0
"""Seconds to wait for a known defect: the server drops half a request after five seconds."""
_PLACES = MAX_CONNECTIONS
_PING = b'{"jsonrpc":"2.0","id":1,"method":"ping"}\n'
_NOBODY = 65_534
_needs_root = pytest.mark.skipif(os.geteuid() != 0, reason="only root can be somebody else")
_needs_proc = pytest.mark.skipif(
    not Path("/proc/self/fd").is_dir(), reason="no /proc to see another process in"
)


@pytest.fixture
def held() -> Iterator[Held]:
    """Return a model server that can be blocked."""
    made = Held()
    yield made
    made.stop()


@pytest.fixture
def held_home(home: Home, held: Held) -> Home:
    """Return a home whose daemon embeds with that server."""
    configure(home, held.settings)
    return home


def configure(home: Home, *lines: str) -> None:
    """Write the configuration."""
    (home.path / "config.toml").write_text("\n".join(lines))


def notes(home: Home, count: int, folder: str = "", word: str = "wombat") -> None:
    """Write this many different files of one chunk each."""
    for n in range(count):
        home.write(
            f"{folder}{n:03}.md",
            f"# Note {folder}{n}\n\nWords of note {folder}{n}, about a {word}.\n",
        )


def process_of(home: Home) -> psutil.Process:
    """Return the daemon's process."""
    assert home.process is not None
    return psutil.Process(home.process.pid)


def open_files(process: psutil.Process) -> int:
    """Return the number of files and sockets a process has open.

    Pipes are left out: they lead to its children, which come and go by themselves (the compaction
    of the table starts when there is something to compact, and stays a while).
    """
    folder = Path(f"/proc/{process.pid}/fd")
    return sum(not _target(entry).startswith("pipe:") for entry in folder.iterdir())


def _target(entry: Path) -> str:
    """Return what a descriptor leads to; empty if it was closed meanwhile."""
    try:
        return os.readlink(entry)
    except FileNotFoundError:
        return ""


def ends(home: Home, number: int = signal.SIGTERM) -> int:
    """Ask the daemon to stop; return its exit code."""
    assert home.process is not None
    home.process.send_signal(number)
    return home.process.wait(_ENDS_S)


def reloads(home: Home) -> None:
    """Send SIGHUP."""
    assert home.process is not None
    home.process.send_signal(signal.SIGHUP)


def roots(home: Home) -> set[str]:
    """Return the names of the roots."""
    return {root["name"] for root in home.call("roots")}


def is_true(home: Home) -> bool:
    """Whether the index is what a clean rebuild gives, every vector included."""
    home.call("sync")
    verified = home.command("verify", "--vectors", "all")
    assert verified.code == 0, verified.out + verified.err
    return True


def serves(home: Home) -> bool:
    """Whether a new client gets an answer."""
    try:
        return bool(home.call("ping") == "pong")
    except AnchordError:
        return False


# G1 to G5, G7: one daemon per home


def test_g1_g2_of_daemons_that_start_at_once_over_a_stale_socket_one_serves_and_the_others_name_it(
    home: Home,
) -> None:
    home.write("a.md", "# A\n\nA wombat.\n")
    home.run()
    home.kill()
    assert (home.path / "run" / "anchord.sock").exists()
    logs = [home.path / f"run {number}.log" for number in range(3)]
    started = [PreloadedDaemon([str(home.folder)], home.environment, log) for log in logs]
    try:
        until(lambda: sum(each.poll() is None for each in started) == 1 and serves(home))
        (first,) = [each for each in started if each.poll() is None]
        assert home.call("hello")["pid"] == first.pid
        for other, log in zip(started, logs, strict=True):
            if other is not first:
                assert other.returncode == 1
                said = log.read_text()
                assert said.count("\n") == 1
                assert (
                    f"(process {first.pid})" in said or "(process unknown)" in said
                )  # It may not have written its id yet.
        home.call("sync")
        assert home.found("wombat") == ["a.md"]
    finally:
        for each in started:
            each.kill()
            each.wait()


def test_g3_deleting_the_lock_file_lets_no_second_daemon_and_no_command_write_beside_the_first(
    home: Home,
) -> None:
    home.write("a.md", "# A\n\nA wombat.\n")
    home.run()
    (home.path / "data" / "anchord.lock").unlink()
    for command in ("run", "start"):
        refused = home.anchord(command, str(home.folder))
        assert (refused.returncode, refused.stderr.count("\n")) == (1, 1), refused.stderr
    home.write("b.md", "# B\n\nA numbat.\n")
    assert home.anchord("index").returncode == 0
    assert home.found("numbat") == ["b.md"]
    assert is_true(home)


def test_g3_stop_waits_for_a_daemon_whose_lock_file_was_deleted(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    places = find_paths({"ANCHORD_HOME": str(tmp_path / "home")})
    places.create_folders()
    lock = WriterLock(places.lock_file)
    places.lock_file.unlink()
    monkeypatch.setattr(lifecycle, "try_connect", lambda _: _Stopping())
    stopping = in_thread(lambda: lifecycle._stop(places))
    try:
        assert concurrent.futures.wait([stopping], 1.0).not_done, (
            "it says that anchord has stopped while the lock is held"
        )
    finally:
        lock.release()
        stopping.result(60)


@pytest.mark.parametrize("times", [1, 2])
def test_stop_asks_again_when_the_daemon_ended_or_restarted_before_it_answered(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], times: int
) -> None:
    places = find_paths({"ANCHORD_HOME": str(tmp_path / "home")})
    places.create_folders()
    clients = iter([*[_Vanishing()] * times, _Stopping()])
    monkeypatch.setattr(lifecycle, "try_connect", lambda _: next(clients))
    lifecycle._stop(places)
    assert capsys.readouterr().out == "anchord has stopped\n"


def test_stop_of_a_daemon_that_never_answers_says_so(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(lifecycle, "try_connect", lambda _: _Vanishing())
    with pytest.raises(NotRunningError, match="ended before it answered"):
        lifecycle._stop(find_paths({"ANCHORD_HOME": str(tmp_path / "home")}))


def test_start_beside_a_running_daemon_adds_folders_and_may_be_repeated(home: Home) -> None:
    other = home.path.parent / "other" / "inside"
    other.mkdir(parents=True)
    (other / "b.md").write_text("# B\n\npomegranate\n")
    home.write("a.md", "# A\n\nquince\n")
    # Two at once: one becomes the daemon, and the folder of the other is added to it.
    starting = [
        in_thread(functools.partial(home.anchord, "start", str(each)))
        for each in (home.folder, other)
    ]
    both = [each.result(60) for each in starting]
    pid = home.status()["pid"]
    try:
        for done in both:
            assert done.returncode == 0, done.stderr
            assert f"anchord is running (process {pid})" in done.stdout
        again = home.anchord("start", str(other), str(home.folder / "."))
        assert (again.returncode, again.stdout) == (0, f"anchord is running (process {pid})\n")
        assert home.anchord("sync").returncode == 0
        assert sorted(root["path"] for root in home.call("roots")) == sorted(
            [str(home.folder), str(other)]
        )
        assert home.found("pomegranate") == ["b.md"]
        refused = home.anchord("start", str(home.path.parent / "missing"))
        assert (refused.returncode != 0, "missing" in refused.stderr) == (True, True)
    finally:
        assert home.anchord("stop").returncode == 0


def test_start_beside_a_command_that_writes_names_it(home: Home) -> None:
    places = find_paths({"ANCHORD_HOME": str(home.path)})
    places.create_folders()
    lock = WriterLock(places.lock_file)
    try:
        refused = home.anchord("start", str(home.folder))
        assert refused.returncode == AlreadyRunningError.exit_code
        assert (
            f"another command of anchord (process {os.getpid()}) has the index open"
            in refused.stderr
        )
    finally:
        lock.release()


def test_stop_ends_a_daemon_whose_socket_was_replaced_by_a_file(home: Home) -> None:
    assert home.anchord("start", str(home.folder)).returncode == 0
    socket_file = home.path / "run" / "anchord.sock"
    pid = home.status()["pid"]
    socket_file.unlink()
    socket_file.touch()
    stopped = home.anchord("stop")
    assert (stopped.returncode, stopped.stdout) == (0, "anchord has stopped\n")
    assert f"(process {pid}) was lost" in stopped.stderr
    assert home.anchord("start", str(home.folder)).returncode == 0
    assert home.anchord("stop").returncode == 0


def test_stop_ends_a_daemon_that_is_frozen(home: Home, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(patience, "_LONG_SILENCE_S", 0.5)
    monkeypatch.setattr(patience, "_SHORT_SILENCE_S", 0.5)
    home.run()
    assert home.process is not None
    home.process.send_signal(signal.SIGSTOP)
    home.command("status").is_refused(1, f"process {home.process.pid}", "`anchord restart`")
    home.command("sync", "--timeout", "0").is_refused(1, "does not answer")
    home.command("verify").is_refused(1, "does not answer")
    doctor = home.command("doctor")
    assert "does not answer `status`" in doctor.out
    assert "runs version" not in doctor.out
    stopped = home.command("stop")
    assert (stopped.code, stopped.out) == (0, "anchord has stopped\n")
    assert home.process.wait(60) == -signal.SIGKILL


def test_stop_kills_no_process_that_the_lock_file_names_wrongly(
    home: Home, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(patience, "_LONG_SILENCE_S", 0.5)
    monkeypatch.setattr(patience, "_SHORT_SILENCE_S", 0.5)
    home.run()
    assert home.process is not None
    lock_file = home.path / "data" / "anchord.lock"
    written = lock_file.read_text()
    with subprocess.Popen(["sleep", "60"]) as other:
        home.process.send_signal(signal.SIGSTOP)
        lock_file.write_text(str(other.pid))
        home.command("stop").is_refused(1, "does not answer")
        assert other.poll() is None
        lock_file.write_text(written)
        home.process.send_signal(signal.SIGCONT)
        other.kill()
    assert home.answers()


class _Stopping:
    """Replaces a connection to a daemon in this process that is asked to stop."""

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        pass

    def shutdown(self) -> ShutdownAnswer:
        return ShutdownAnswer(stopping=True, pid=os.getpid())


class _Vanishing(_Stopping):
    """A daemon that ends, or restarts itself, before it answers."""

    def shutdown(self) -> NoReturn:
        raise NotRunningError("the daemon ended before it answered this call", "")


def test_g4_another_process_with_the_id_of_a_dead_daemon_is_left_alone(
    home: Home,
) -> None:
    home.write("a.md", "# A\n\nA wombat.\n")
    home.run()
    home.call("sync")
    home.kill()
    with subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE) as stranger:
        try:
            (home.path / "data" / "anchord.lock").write_text(f"{stranger.pid}\n")
            assert home.anchord("status").returncode == 3
            assert home.anchord("stop").stdout.strip() == "anchord is not running"
            home.run()
            assert home.anchord("stop").returncode == 0
            assert stranger.poll() is None
        finally:
            stranger.kill()


def test_g5_a_home_too_deep_for_a_socket_is_refused_by_every_command_with_what_to_do(
    home: Home,
) -> None:
    deep = home.path / ("d" * 100)
    home.environment = home.environment | {"ANCHORD_HOME": str(deep)}
    for command in ("run", "index"):
        refused = home.anchord(command, str(home.folder))
        assert (refused.returncode, refused.stderr.count("\n")) == (2, 1), refused.stderr
        assert "longer than the 107 bytes allowed" in refused.stderr
        assert "set ANCHORD_HOME to a shorter path" in refused.stderr


def _linked(home: Home) -> None:
    theirs = home.path.with_name("theirs")
    theirs.mkdir(0o777)
    (home.path / "run").symlink_to(theirs)


def _foreign(home: Home) -> None:
    (home.path / "run").mkdir(0o700)
    os.chown(home.path / "run", _NOBODY, _NOBODY)


def _open(home: Home) -> None:
    (home.path / "run").mkdir(0o700)
    (home.path / "run").chmod(0o770)


@pytest.mark.parametrize(
    ("spoil", "why"),
    [
        pytest.param(_linked, "is a symbolic link", id="a link"),
        pytest.param(
            _foreign,
            f"belongs to another user (uid {_NOBODY})",
            id="another user's",
            marks=_needs_root,
        ),
        pytest.param(_open, "is writable by other users", id="open to a group"),
    ],
)
def test_g7_a_daemon_does_not_start_in_a_folder_that_cannot_be_trusted(
    home: Home,
    spoil: Any,  # noqa: ANN401
    why: str,
) -> None:
    spoil(home)
    refused = home.anchord("run", str(home.folder))
    assert (refused.returncode, refused.stderr.count("\n")) == (2, 1), refused.stderr
    assert why in refused.stderr
    assert list((home.path / "run").iterdir()) == []
    assert not (home.path / "data" / "lance").exists()


# G6: another user

_STRANGER = """
import os, socket, sys
os.setgroups([]); os.setgid(65534); os.setuid(65534)
try:
    with socket.socket(socket.AF_UNIX) as connection:
        connection.settimeout(60)
        connection.connect(sys.argv[1])
        connection.sendall(sys.argv[2].encode())
        print("answered", connection.recv(1000))
except PermissionError:
    print("kept out")
except (ConnectionResetError, BrokenPipeError):
    print("answered b''")
"""


@pytest.fixture
def open_home() -> Iterator[Home]:
    """Give a home whose path every user may follow up to it; pytest's own folders are closed to others."""
    with tempfile.TemporaryDirectory(prefix="g6-", dir="/tmp") as base:
        Path(base).chmod(0o755)
        made = Home(Path(base), "hash")
        made.path.chmod(0o755)
        yield made
        if made.process is not None and made.process.poll() is None:
            made.kill()


def stranger(home: Home) -> str:
    """Send a ping as another user; return the result."""
    where = str(home.path / "run" / "anchord.sock")
    asked = subprocess.run(
        [sys.executable, "-I", "-S", "-c", _STRANGER, where, _PING.decode()],
        capture_output=True, text=True, check=True, timeout=120,
    )  # fmt: skip
    return asked.stdout.strip()


@_needs_root
def test_g6_another_user_is_kept_out_by_the_folder_and_where_it_was_opened_by_the_daemon(
    open_home: Home,
) -> None:
    home = open_home
    home.run()
    assert stranger(home) == "kept out"
    (home.path / "run").chmod(0o711)
    assert stranger(home) == "kept out"  # The socket itself is for its owner alone.
    (home.path / "run" / "anchord.sock").chmod(0o666)
    assert stranger(home) == "answered b''"
    assert "socket.refused" in (home.path / "run.log").read_text()
    assert serves(home)


# G8: many clients


@contextmanager
def connected(home: Home, count: int) -> Iterator[list[socket.socket]]:
    """Open silent connections, and close them."""
    opened: list[socket.socket] = []
    try:
        for _ in range(count):
            connection = socket.socket(socket.AF_UNIX)
            opened.append(connection)
            connection.connect(
                str(home.path / "run" / "anchord.sock")
            )  # It waits where the queue is full.
            connection.settimeout(60)
        yield opened
    finally:
        for connection in opened:
            connection.close()


def says(connections: Sequence[socket.socket], what: bytes) -> None:
    """Send a request on each connection that was not refused."""
    for connection in connections:
        with suppress(OSError):
            connection.sendall(what)


def ask_at_once(home: Home) -> None:
    """Send as many parallel requests as the limit allows, so that every query thread has started."""
    with concurrent.futures.ThreadPoolExecutor(30) as pool:
        for _ in range(3):
            list(pool.map(lambda _: home.status(), range(30)))


@_needs_proc
def test_g8_ten_thousand_connections_are_outlived_and_leave_nothing_open(home: Home) -> None:
    home.write("a.md", "# A\n\nA wombat.\n")
    home.run()
    home.call("sync")
    ask_at_once(home)
    process = process_of(home)
    files, threads = open_files(process), process.num_threads()
    for batch in range(25):
        with connected(home, 400) as many:
            says(many, (_PING, _PING[:20], b"garbage\n", b"\0" * 100)[batch % 4])
        until(lambda: serves(home))
    # Each thread that answers queries keeps a connection to the catalog, of up to three files.
    until(lambda: open_files(process) <= files + 3 * _QUERY_THREADS)
    assert (
        process.num_threads() <= threads + 10
    )  # Forty answer at most, and thirty of them have begun before.
    assert home.found("wombat") == ["a.md"]
    assert home.status()["degraded"] == []


@pytest.mark.slow
@_needs_proc
def test_g8_half_lines_on_all_places_are_dropped_and_the_next_client_is_served(home: Home) -> None:
    home.run()
    home.call("sync")
    ask_at_once(home)
    process = process_of(home)
    files = open_files(process)
    with connected(home, _PLACES) as half:
        says(half, _PING[:20])
        until(lambda: serves(home))
        until(lambda: open_files(process) <= files)


def test_g8_as_soon_as_one_silent_client_of_all_leaves_the_next_is_served(home: Home) -> None:
    home.run()
    with connected(home, _PLACES) as silent:
        until(lambda: not serves(home))
        refused = home.anchord("status")
        assert refused.returncode == 1
        assert f"over {_PLACES} clients at once" in refused.stderr
        silent.pop().close()
        until(lambda: serves(home))


@pytest.mark.slow
@pytest.mark.parametrize("what", ["silent", "deaf"])
def test_g8_clients_that_hold_all_places_for_nothing_lock_nobody_out(home: Home, what: str) -> None:
    for n in range(40):
        home.write(
            f"{n}.md",
            "# Long\n\n" + "".join(f"Sentence {m} of note {n} goes here.\n\n" for m in range(600)),
        )
    home.run()
    home.call("sync")
    with connected(home, _PLACES) as idle:
        says(idle, b'{"id":1,"method":"dump"}\n' if what == "deaf" else b"")
        served = threading.Event()
        answered = in_thread(lambda: until(lambda: served.is_set() or serves(home)))
        try:
            assert concurrent.futures.wait([answered], _SOON_S).done
        finally:
            served.set()


@_needs_proc
@pytest.mark.parametrize(
    "block",
    [b"x" * MAX_REQUEST_BYTES, pytest.param(bytes(range(11, 256)) * 4_096, marks=pytest.mark.slow)],
    ids=["x", "all"],
)
def test_g8_a_line_of_a_gigabyte_is_cut_off_after_a_few_megabytes_and_costs_no_memory(
    home: Home, block: bytes
) -> None:
    home.run()
    process = process_of(home)
    before, sent = process.memory_info().rss, 0
    with connected(home, 1) as (endless,), suppress(BrokenPipeError, ConnectionResetError):
        while sent < 1 << 30:
            sent += endless.send(block)
    assert sent < 16 * MAX_REQUEST_BYTES
    assert _peak(process) - before < 100_000_000
    assert serves(home)


def _peak(process: psutil.Process) -> int:
    """Return the peak memory of a process in bytes."""
    lines = Path(f"/proc/{process.pid}/status").read_text().splitlines()
    (line,) = [line for line in lines if line.startswith("VmHWM:")]
    return int(line.split()[1]) * 1024


@_needs_proc
def test_g8_a_client_that_asks_for_everything_and_reads_nothing_costs_one_answer_and_blocks_no_one(
    home: Home,
) -> None:
    for n in range(60):
        home.write(
            f"{n}.md",
            "# Long\n\n" + "".join(f"Sentence {m} of note {n} goes here.\n\n" for m in range(600)),
        )
    home.run()
    home.call("sync")
    size = len(json.dumps(home.call("dump")))
    assert size > 1_000_000
    ask_at_once(home)
    process = process_of(home)
    files, before = open_files(process), process.memory_info().rss
    with connected(home, 4) as deaf:
        says(deaf, b'{"id":1,"method":"dump"}\n' * 100)
        for _ in range(30):
            assert home.call("ping") == "pong"
        assert home.found("sentence")
        assert process.memory_info().rss - before < 60 * size
    until(lambda: open_files(process) <= files)


# G9: status during work


def test_g9_status_is_answered_while_the_writer_waits_for_its_model(
    held_home: Home, held: Held
) -> None:
    notes(held_home, 100)
    held.hold()
    held_home.run()
    until(held.is_asked)
    for _ in range(50):
        status = held_home.status()
        assert (status["state"], status["degraded"]) == ("indexing", [])
        assert (status["pending"], status["without_vector"]) == (0, 100)
    held.release()
    assert is_true(held_home)
    assert held_home.status()["chunks"] == 100


@pytest.mark.parametrize(
    "name", ["state.sqlite", pytest.param("vectors.sqlite", marks=pytest.mark.slow)]
)
def test_g9_status_and_searches_are_answered_while_somebody_else_holds_a_database(
    home: Home, name: str
) -> None:
    notes(home, 3)
    home.run()
    home.call("sync")
    home.write("000.md", "# Note\n\nNow about a numbat.\n")
    home.call("sync")  # So that the vector cache is not empty.
    with closing(
        sqlite3.connect(home.path / "data" / name, isolation_level=None, timeout=60)
    ) as other:
        other.execute("BEGIN EXCLUSIVE")
        home.write("001.md", "# Note\n\nNow about a quokka.\n")
        # The file before may be hinted at once more, late.
        until(lambda: home.status()["pending"] >= 1)
        for _ in range(50):
            assert home.status()["pending"] >= 1
        assert home.found("numbat") == ["000.md"]
        other.execute("ROLLBACK")
    until(lambda: home.found("quokka") == ["001.md"])
    assert is_true(home)


def test_g9_status_is_answered_again_and_again_while_files_are_indexed(home: Home) -> None:
    for n in range(300):
        home.write(
            f"d{n % 7}/{n:03}.md",
            f"# Note {n}\n\n" + "".join(f"Sentence {m} of {n} goes here.\n\n" for m in range(60)),
        )
    home.run()
    seen = []
    until(lambda: seen.append(home.status()) or seen[-1]["pending"] == 0 < seen[-1]["chunks"])  # type: ignore[func-returns-value]
    busy = [status["pending"] for status in seen if status["pending"]]
    assert len(busy) >= 10
    assert sorted(busy[1:], reverse=True) == busy[1:], "what is pending went down before our eyes"


@pytest.mark.slow
def test_g9_h4_a_hostile_source_file_stops_no_answer_and_no_other_file(home: Home) -> None:
    notes(home, 3)
    home.run()
    home.call("sync")
    home.write("hostile.rb", "<!--" * 1_500)
    home.write("later.md", "# Later\n\nA quokka.\n")
    longest, known = 0.0, 3
    while known < 5:
        began = time.monotonic()
        known = home.status()["files"]
        longest = max(longest, time.monotonic() - began)
    assert longest < _SOON_S
    assert home.found("quokka") == ["later.md"]


# G10: the end


@pytest.mark.parametrize(
    "number", [signal.SIGTERM, pytest.param(signal.SIGINT, marks=pytest.mark.slow)]
)
def test_g10_a_daemon_that_is_ended_while_it_indexes_ends_well_and_the_next_one_goes_on(
    home: Home, number: int
) -> None:
    notes(home, 400)
    home.run()
    until(lambda: home.status()["chunks"] > 0)
    assert ends(home, number) == 0
    assert not (home.path / "run" / "anchord.sock").exists()
    committed = len(home.dump())
    assert 0 < committed < 400
    home.run()
    home.call("sync")
    assert home.status()["embedded_total"] == 400 - committed
    assert is_true(home)


def test_g10_a_batch_that_is_being_embedded_is_given_up_and_made_up_for_at_the_next_start(
    held_home: Home, held: Held
) -> None:
    notes(held_home, 100)
    held.hold()
    held_home.run()
    until(held.is_asked)
    assert ends(held_home) == 0
    held.release()
    held_home.run()
    assert is_true(held_home)
    assert held_home.status()["embedded_total"] == held_home.status()["chunks"] == 100


def test_g10_a_waiting_sync_returns_when_the_daemon_ends(held_home: Home, held: Held) -> None:
    notes(held_home, 10)
    held.hold()
    held_home.run()
    until(held.is_asked)
    waiting = in_thread(lambda: held_home.call("sync"))
    meanwhile(held_home)
    assert ends(held_home) == 0
    assert isinstance(waiting.exception(60), AnchordError)


def meanwhile(home: Home) -> None:
    """Wait for some answers of the daemon, so that it has processed earlier signals."""
    for _ in range(20):
        home.status()


@pytest.mark.parametrize("command", [pytest.param("roots.add", marks=pytest.mark.slow), "rescan"])
def test_g10_a_command_that_waits_for_the_writer_does_not_keep_the_daemon_from_ending(
    held_home: Home, held: Held, tmp_path: Path, command: str
) -> None:
    notes(held_home, 10)
    held.hold()
    held_home.run()
    until(held.is_asked)
    params = {"path": str(tmp_path)} if command == "roots.add" else {"name": "docs"}
    waiting = in_thread(lambda: held_home.call(command, **params))
    meanwhile(held_home)
    assert ends(held_home) == 0
    assert isinstance(waiting.exception(60), AnchordError)


@pytest.mark.slow
def test_g10_a_daemon_that_is_ended_while_the_real_model_is_at_work_ends_well(
    real_home: Home,
) -> None:
    home = real_home
    for n in range(60):
        home.write(
            f"{n}.md",
            "# Long\n\n"
            + "".join(f"Sentence {m} of note {n} tells something new.\n\n" for m in range(200)),
        )
    home.run()
    until(lambda: home.status()["embedder"]["state"] != "idle")  # The export takes seconds.
    assert ends(home) == 0
    home.run()
    until(lambda: home.status()["embedded_total"] > 0)
    assert ends(home) == 0
    committed = len(home.dump())
    home.run()
    home.call("sync")
    assert home.status()["embedded_total"] < home.status()["chunks"] - committed + 1
    assert home.command("verify", "--vectors", "all").code == 0


# G11: other roots


def root_of(folder: Path, *lines: str) -> str:
    """Return a `[[root]]` of a configuration."""
    return "\n".join(["[[root]]", f'path = "{folder}"', *lines, ""])


@pytest.fixture
def folders(tmp_path: Path) -> dict[str, Path]:
    """Return three folders of five different files each."""
    made = {name: tmp_path / name for name in ("one", "two", "three")}
    for name, folder in made.items():
        folder.mkdir()
        for n in range(5):
            (folder / f"{n}.md").write_text(f"# {name} {n}\n\nThe {name} words, number {n}.\n")
    return made


def test_g11_sighup_takes_roots_in_and_out_and_embeds_only_what_is_new(
    home: Home, folders: dict[str, Path]
) -> None:
    one, two, three = (root_of(folder) for folder in folders.values())
    notes(home, 5)
    configure(home, home.settings, one, two)
    home.run()
    home.call("sync")
    assert home.status()["embedded_total"] == 15
    shutil.copy(folders["two"] / "0.md", folders["three"] / "4.md")
    configure(home, home.settings, two, three)
    reloads(home)
    until(lambda: roots(home) == {"docs", "two", "three"})
    assert is_true(home)
    assert home.status()["embedded_total"] == 15 + 4
    assert {(row["root"], row["path"]) for row in home.dump()} == {
        *(("docs", f"{n:03}.md") for n in range(5)), *((name, f"{n}.md") for name in ("two", "three") for n in range(5)),
    }  # fmt: skip
    configure(home, home.settings, one, two, three)
    reloads(home)
    until(lambda: "one" in roots(home))
    assert is_true(home)
    assert home.status()["embedded_total"] == 15 + 4, (
        "what was there before the root left is used again"
    )


@pytest.mark.slow
def test_g11_sighup_follows_what_a_root_leaves_out_and_how_it_is_called(
    home: Home, folders: dict[str, Path]
) -> None:
    configure(home, home.settings, root_of(folders["one"]), root_of(folders["two"]))
    home.run()
    home.call("sync")
    before = home.status()["embedded_total"]
    configure(
        home,
        home.settings,
        root_of(folders["one"], 'exclude = ["3.md"]'),
        root_of(folders["two"], 'name = "deux"'),
    )
    reloads(home)
    until(lambda: "deux" in roots(home))
    assert is_true(home)
    assert {row["path"] for row in home.dump() if row["root"] == "one"} == {
        "0.md",
        "1.md",
        "2.md",
        "4.md",
    }
    assert {row["root"] for row in home.dump()} == {"one", "deux"}
    assert home.status()["embedded_total"] == before


def test_g11_roots_come_and_go_while_files_are_embedded_and_no_text_is_embedded_twice(
    held_home: Home, held: Held, folders: dict[str, Path]
) -> None:
    home = held_home
    notes(home, 150)
    held.hold()
    home.run()
    until(held.is_asked)
    adding = in_thread(lambda: home.anchord("add", str(folders["one"])))
    until(lambda: "[[root]]" in (home.path / "config.toml").read_text())
    held.release()
    assert adding.result(60).returncode == 0
    home.call("sync")
    assert home.status()["embedded_total"] == home.status()["chunks"] == 155
    notes(home, 100, "more/")
    held.hold()
    until(held.is_asked)
    removing = in_thread(lambda: home.anchord("remove", "one"))
    held.release()
    assert removing.result(60).returncode == 0
    assert is_true(home)
    assert roots(home) == {"docs"}
    assert {row["root"] for row in home.dump()} == {"docs"}
    assert home.status()["embedded_total"] == 255
    asked = held.texts()
    assert len(set(asked)) == 255


BROKEN: dict[str, bytes] = {
    "no TOML": b"[[root]\n",
    "an unknown key": b"[wach]\n",
    "a wrong value": b"[watch]\nsettle_ms = -1\n",
    "a root around another": b'[[root]]\npath = "/"\n',
    "no UTF-8": b'[[root]]\npath = "/caf\xe9"\n',
}


def test_g11_a_broken_configuration_at_sighup_is_reported_and_everything_goes_on(
    home: Home, folders: dict[str, Path]
) -> None:
    good = home.settings + root_of(folders["one"])
    configure(home, good)
    home.run()
    home.call("sync")
    before = home.status()["embedded_total"]
    for number, broken in enumerate(BROKEN.values()):
        (home.path / "config.toml").write_bytes(broken)
        reloads(home)
        until(lambda: "the configuration was not reloaded" in " ".join(home.status()["degraded"]))
        assert home.anchord("status").returncode == 1
        (folders["one"] / "0.md").write_text(f"# Still\n\nFollowed quokka{number}.\n")
        until(lambda number=number: home.found(f"quokka{number}") == ["0.md"])
        assert roots(home) == {"docs", "one"}
        configure(home, good)
        reloads(home)
        until(lambda: home.status()["degraded"] == [])
    assert home.status()["embedded_total"] == before + len(BROKEN)
    assert is_true(home)


def test_g11_of_two_sighups_the_last_configuration_holds(
    held_home: Home, held: Held, folders: dict[str, Path]
) -> None:
    home = held_home
    notes(home, 100)
    held.hold()
    home.run()
    until(held.is_asked)
    configure(home, held.settings, root_of(folders["one"]))
    reloads(home)
    meanwhile(home)
    configure(home, held.settings, root_of(folders["two"]))
    reloads(home)
    meanwhile(home)
    held.release()
    until(lambda: {"docs", "two"} <= roots(home))
    home.call("sync")
    assert roots(home) == {"docs", "two"}
