"""Notifications to systemd: the unit's own command line, with the test's socket as systemd's."""

from __future__ import annotations

import os
import re
import shlex
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from live.conftest import Home, until

from anchord.daemon.service.supervisor import read_templates
from anchord.daemon.service.unit_files import SERVICE_UNIT, ServiceSettings, render_systemd_files

_WATCHDOG_S = 2.0


class Systemd:
    """The other end of $NOTIFY_SOCKET."""

    def __init__(self, path: Path) -> None:
        """Listen."""
        self.path = path
        self.messages: list[tuple[float, str]] = []
        """When, and one assignment."""
        self._socket = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        self._socket.bind(str(path))
        threading.Thread(target=self._listen, daemon=True).start()

    def _listen(self) -> None:
        while True:
            try:
                datagram = self._socket.recv(65_536)
            except OSError:
                return
            self.messages += [(time.monotonic(), line) for line in datagram.decode().splitlines()]

    def heard(self, beginning: str, since: float = 0.0) -> bool:
        """Whether a message with this beginning came since a time."""
        return any(line.startswith(beginning) and at >= since for at, line in self.messages)

    def close(self) -> None:
        """Listen no more."""
        self._socket.close()


@pytest.fixture
def systemd(home: Home) -> Iterator[Systemd]:
    other_end = Systemd(home.path / "notify")
    yield other_end
    other_end.close()


def command_of_the_unit(home: Home) -> list[str]:
    """Return the command line of the installed unit, parsed as systemd parses it."""
    made = ServiceSettings(
        command=(sys.executable, "-m", "anchord"),
        environment={},
        home=str(home.path),
        writable_folders=(str(home.path),),
        socket_path="",
    )
    unit = render_systemd_files(
        made, {name: text.decode() for name, text in read_templates("systemd").items()}
    )[SERVICE_UNIT]
    found = re.search(r"^ExecStart=(.*)$", unit, re.MULTILINE)
    assert found
    return [word.replace("$$", "$").replace("%%", "%") for word in shlex.split(found[1])]


def start(home: Home, systemd: Systemd, watchdog_s: float = _WATCHDOG_S) -> subprocess.Popen[bytes]:
    with (home.path / "run.log").open("ab") as log:
        home.process = subprocess.Popen(
            command_of_the_unit(home),
            env=home.environment | {"NOTIFY_SOCKET": str(systemd.path), "WATCHDOG_USEC": str(round(watchdog_s * 1e6))},
            stdout=log, stderr=log, stdin=subprocess.DEVNULL,
        )  # fmt: skip
    return home.process


def add_root(home: Home) -> None:
    with (home.path / "config.toml").open("a") as config:
        config.write(f'[[root]]\npath = "{home.folder}"\n')


def test_ready_comes_with_the_socket_then_states_and_pings_then_stopping(
    home: Home, systemd: Systemd
) -> None:
    home.write("a.md", "# One\n\nwords\n")
    add_root(home)
    process = start(home, systemd)
    until(lambda: systemd.heard("READY=1"))
    assert home.answers()  # At once: a program that waits for READY finds the socket.
    order = [line for _, line in systemd.messages]
    assert order.index("STATUS=opening the index") < order.index("READY=1")
    until(lambda: systemd.heard("STATUS=idle, 0 pending"))
    seen = time.monotonic()
    until(lambda: systemd.heard("WATCHDOG=1", seen))
    process.send_signal(signal.SIGTERM)
    assert process.wait(60) == 0
    until(lambda: systemd.heard("STOPPING=1"))
    assert not systemd.heard("RELOADING=1")


@pytest.mark.slow
def test_the_pings_stop_while_the_writer_is_stuck_though_the_socket_answers(
    home: Home, systemd: Systemd, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The writer blocks in a directory listing: the socket still answers, and systemd gets no watchdog ping."""
    stuck = home.path / "stuck.py"
    stuck.write_text(_STUCK, "utf-8")
    monkeypatch.setitem(
        home.environment, "PYTHONPATH", f"{home.path}:{os.environ.get('PYTHONPATH', '')}"
    )
    monkeypatch.setattr(
        sys.modules[__name__], "command_of_the_unit", lambda _: [sys.executable, str(stuck), "run"]
    )
    (home.path / "go").touch()
    home.write("a.md", "# One\n")
    add_root(home)
    process = start(home, systemd)
    until(lambda: systemd.heard("READY=1"))
    until(lambda: systemd.heard("STATUS=idle"))
    (home.path / "go").unlink()
    home.write("b.md", "# Two\n")
    until((home.path / "reached").exists)
    until(lambda: any("stuck" in reason for reason in home.status()["degraded"]))
    quiet_since = time.monotonic()
    until(
        lambda: systemd.heard("STATUS=degraded", quiet_since + 2 * _WATCHDOG_S)
    )  # The event loop runs and reports ...
    assert not systemd.heard(
        "WATCHDOG=1", quiet_since
    )  # ... and systemd sees that the writer is stuck.
    (home.path / "go").touch()
    until(lambda: systemd.heard("WATCHDOG=1", quiet_since))
    until(lambda: not home.status()["degraded"])
    assert sorted(row["path"] for row in home.dump()) == ["a.md", "b.md"]
    process.send_signal(signal.SIGTERM)
    assert process.wait(60) == 0


_STUCK = '''
"""anchord with files that cannot be read while the file `go` is not there."""
import os, sys, time
from anchord.sources.files.folder_files import FolderFiles
read = FolderFiles.read
home = os.environ["ANCHORD_HOME"]

def reads(self, origin):
    while not os.path.exists(home + "/go"):
        open(home + "/reached", "w").close()
        time.sleep(0.05)
    return read(self, origin)

FolderFiles.read = reads
from anchord.cli import main
main()
'''


def test_a_daemon_that_restarts_by_itself_says_reloading_and_is_ready_again(
    home: Home, systemd: Systemd
) -> None:
    with (home.path / "config.toml").open("a") as config:
        config.write("[store]\nmax_memory_mb = 1\n")
    add_root(home)
    process = start(home, systemd, watchdog_s=60)
    until(lambda: sum(line == "READY=1" for _, line in systemd.messages) >= 2)
    order = [line for _, line in systemd.messages]
    assert order.index("RELOADING=1") < len(order) - 1 - order[::-1].index("READY=1")
    assert (
        "STOPPING=1" not in order
    )  # Otherwise the new process would get only the time limit of a stop.
    assert home.answers()
    process.send_signal(signal.SIGTERM)
    assert process.wait(60) == 0


def test_a_socket_that_systemd_opened_is_served_and_left_in_place(home: Home) -> None:
    """Socket activation: a first client that came before the daemon is answered; the socket outlives it."""
    add_root(home)
    path = home.path / "run" / "anchord.sock"
    path.parent.mkdir(mode=0o700)
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as listener:
        listener.bind(str(path))
        listener.listen(8)
        early = threading.Thread(target=_ask_status, args=(home,))
        early.start()
        handed = _with_listener(listener, lambda: [sys.executable, "-m", "anchord", "run"], home)
        early.join(60)
        assert not early.is_alive()
        handed.send_signal(signal.SIGTERM)
        assert handed.wait(60) == 0
        assert path.exists()


def _ask_status(home: Home) -> None:
    assert home.status()["pid"]


def _with_listener(
    listener: socket.socket, command: Callable[[], list[str]], home: Home
) -> subprocess.Popen[bytes]:
    """Start a command as systemd does: the socket is file 3, and LISTEN_PID is its own process."""
    shell = 'exec 3<&"$0"; export LISTEN_PID=$$ LISTEN_FDS=1; exec "$@"'
    home.process = subprocess.Popen(
        ["bash", "-c", shell, str(listener.fileno()), *command()],
        env=home.environment, pass_fds=(listener.fileno(),), stdin=subprocess.DEVNULL,
    )  # fmt: skip
    return home.process
