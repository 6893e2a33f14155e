"""`anchord service` with a fake `systemctl` that records its calls, and with systemd's user manager."""

from __future__ import annotations

import json
import os
import shutil
import stat
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

_LINUX = sys.platform.startswith("linux")
pytestmark = pytest.mark.skipif(
    not _LINUX, reason="not Linux: the agent of launchd is tested in test_units.py, as text"
)

_SYSTEMD = Path("/lib/systemd/systemd")


class Person:
    """A user's home, and the calls of their `systemctl`."""

    def __init__(self, base: Path) -> None:
        """Make the home."""
        self.home = base
        self.asked = base / "asked"
        self.bin = base / "bin"
        self.bin.mkdir()
        self.environment = {
            "HOME": str(base), "PATH": f"{self.bin}:/usr/bin:/bin", "ANCHORD_HOME": str(base / "a"), "LC_ALL": "C.UTF-8",
            "PYTHONPATH": os.environ.get("PYTHONPATH", ""),
        }  # fmt: skip
        (base / "a").mkdir(mode=0o700)
        (base / "a" / "config.toml").write_text('[embedding]\nprovider = "hash"\n')

    def systemctl(self, script: str) -> None:
        """Put a `systemctl` on the path that records its arguments, then runs a script."""
        program = self.bin / "systemctl"
        program.write_text(f'#!/bin/sh\necho "$@" >> "{self.asked}"\n{script}\n')
        program.chmod(0o755)

    def run(self, *arguments: str) -> subprocess.CompletedProcess[str]:
        """Run a command of anchord."""
        return subprocess.run(
            [sys.executable, "-m", "anchord", *arguments],
            env=self.environment, capture_output=True, text=True, check=False, timeout=120, stdin=subprocess.DEVNULL,
        )  # fmt: skip

    @property
    def units(self) -> Path:
        """The folder of the units."""
        return self.home / ".config" / "systemd" / "user"


@pytest.fixture
def person(tmp_path: Path) -> Person:
    return Person(tmp_path)


def test_install_writes_what_print_shows_and_asks_systemd_to_start_it(person: Person) -> None:
    person.systemctl("exit 0")
    printed = json.loads(person.run("service", "print", "--sandbox", "--json").stdout)
    done = person.run("service", "install", "--sandbox")
    assert done.returncode == 0, done.stderr
    written = {str(file): file.read_text() for file in person.units.rglob("*") if file.is_file()}
    assert written == printed
    assert {stat.S_IMODE(Path(file).stat().st_mode) for file in written} == {0o644}
    unit = written[str(person.units / "anchord.service")]
    assert f'Environment="ANCHORD_HOME={person.home / "a"}"' in unit
    asked = person.asked.read_text().splitlines()
    assert [line.removeprefix("--user --no-pager ") for line in asked] == [
        "daemon-reload", "stop anchord.service", "enable anchord.service", "restart anchord.service"
    ]  # fmt: skip
    assert "no roots yet" in done.stdout
    assert person.run("service", "status").returncode == 0


def test_uninstall_deletes_its_own_files_alone(person: Person) -> None:
    person.systemctl("exit 0")
    person.run("service", "install", "--sandbox", "--socket")
    (person.units / "anchord.service.d" / "mine.conf").write_text("[Service]\n")
    (person.units / "other.service").write_text("")
    gone = json.loads(person.run("service", "uninstall", "--json").stdout)["removed"]
    assert len(gone) == 3
    left = sorted(
        str(file.relative_to(person.units)) for file in person.units.rglob("*") if file.is_file()
    )
    assert left == ["anchord.service.d/mine.conf", "other.service"]
    assert "not installed" in person.run("service", "uninstall").stdout
    assert person.run("service", "status").returncode == 3


def test_a_sandbox_and_a_socket_that_are_not_asked_for_again_go(person: Person) -> None:
    person.systemctl("exit 0")
    person.run("service", "install", "--sandbox", "--socket")
    person.asked.unlink()
    person.run("service", "install")
    assert [file.name for file in person.units.rglob("*") if file.is_file()] == ["anchord.service"]
    assert "--user --no-pager disable --now anchord.socket" in person.asked.read_text().splitlines()


def test_files_of_another_version_are_reported(person: Person) -> None:
    person.systemctl("exit 0")
    person.run("service", "install")
    with (person.units / "anchord.service").open("a") as unit:
        unit.write("# older\n")
    answer = person.run("service", "status")
    assert answer.returncode == 1
    assert "`anchord service install` rewrites them" in answer.stderr
    assert json.loads(person.run("service", "status", "--json").stdout)["current"] is False


def test_without_a_session_of_systemd_it_says_what_to_do(person: Person) -> None:
    person.systemctl('echo "Failed to connect to bus: No medium found"; exit 1')
    done = person.run("service", "install")
    assert done.returncode == 1
    assert done.stderr.count("\n") == 1
    assert "Failed to connect to bus" in done.stderr
    assert "session of your own" in done.stderr
    assert (person.units / "anchord.service").exists()


def test_without_systemd_it_says_so(person: Person) -> None:
    (person.bin / "sh").symlink_to("/bin/sh")
    person.environment["PATH"] = str(person.bin)
    done = person.run("service", "install")
    assert done.returncode == 1
    assert "systemctl is not on this machine" in done.stderr


def test_a_sandbox_that_this_machine_cannot_make_is_named(person: Person) -> None:
    person.systemctl('case "$*" in *restart*) exit 1;; *ExecMainStatus*) echo 226;; esac')
    done = person.run("service", "install", "--sandbox")
    assert done.returncode == 1
    assert "226/NAMESPACE" in done.stderr
    assert "without --sandbox" in done.stderr


def test_a_key_that_a_service_does_not_see_is_reported(person: Person) -> None:
    person.systemctl("exit 0")
    (person.home / "a" / "config.toml").write_text(
        '[embedding]\nprovider = "openai"\nurl = "http://localhost:1/v1"\nmodel = "m"\napi_key_env = "MY_KEY"\n'
    )
    done = person.run("service", "install")
    assert "$MY_KEY" in done.stderr
    assert "AF_INET" in (person.units / "anchord.service").read_text()


_SESSION = """
set -e
mkdir -p /run/systemd; mount -t tmpfs none /run/systemd; mkdir -p /run/systemd/system
/lib/systemd/systemd --user --log-target=null & manager=$!
trap 'systemctl --user exit; wait $manager' EXIT
for _ in $(seq 100); do systemctl --user is-system-running > /dev/null 2>&1 && break; sleep 0.1; done
{script}
"""


def _session(person: Person, script: str) -> str:
    """Run a script in a session of systemd's real user manager."""
    runtime = person.home / "rt"
    runtime.mkdir(mode=0o700)
    environment = {key: value for key, value in person.environment.items() if key != "ANCHORD_HOME"}
    environment |= {
        "XDG_RUNTIME_DIR": str(runtime),
        "PATH": f"{Path(sys.executable).parent}:/usr/bin:/bin",
    }
    (person.home / ".config" / "anchord").mkdir(mode=0o700, parents=True)
    shutil.copy(
        person.home / "a" / "config.toml", person.home / ".config" / "anchord" / "config.toml"
    )
    ran = subprocess.run(
        ["unshare", "--mount", "bash", "-c", _SESSION.replace("{script}", script)],
        env=environment, capture_output=True, text=True, check=False, timeout=240, stdin=subprocess.DEVNULL,
    )  # fmt: skip
    assert ran.returncode == 0, ran.stdout + ran.stderr
    return ran.stdout


def _can_have_a_session() -> bool:
    if not (_LINUX and _SYSTEMD.exists() and shutil.which("systemctl") and os.geteuid() == 0):
        return False
    ran = subprocess.run(
        ["unshare", "--mount", "true"], check=False, capture_output=True, timeout=20
    )
    return ran.returncode == 0


_needs_session = pytest.mark.skipif(
    not _can_have_a_session(), reason="needs root, unshare and systemd's own program"
)


@pytest.fixture
def short() -> Iterator[Person]:
    """Return a home with a short path, because a socket's path has a limit; a sandbox has a `/dev` of its own."""
    with tempfile.TemporaryDirectory(dir="/tmp") as folder:
        yield Person(Path(folder))


@_needs_session
def test_systemd_itself_starts_it_restarts_it_after_a_kill_and_stops_it(short: Person) -> None:
    said = _session(
        short,
        """
        mkdir $HOME/notes; echo '# Seagull' > $HOME/notes/a.md
        anchord start > /dev/null; anchord add $HOME/notes > /dev/null   # by hand first: it gives way
        anchord service install > /dev/null
        anchord service status --json
        anchord search --fresh --mode text seagull
        systemctl --user show anchord -p Type -p StatusText -p WatchdogUSec
        before=$(systemctl --user show anchord -p MainPID --value)
        systemctl --user kill -s KILL anchord
        for _ in $(seq 150); do
            now=$(systemctl --user show anchord -p MainPID --value)
            test $now != 0 -a $now != $before && systemctl --user is-active -q anchord && break; sleep 0.1
        done
        anchord search --fresh --mode text seagull
        systemctl --user show anchord -p NRestarts
        anchord stop
        for _ in $(seq 150); do test $(systemctl --user is-active anchord) = inactive && break; sleep 0.1; done
        systemctl --user is-active anchord || true
        anchord service uninstall
        """,
    )
    assert (
        json.loads(next(line for line in said.splitlines() if line.startswith("{")))["active"]
        is True
    )
    assert said.count("a.md:1") == 2
    assert "Type=notify" in said
    assert "WatchdogUSec=2min" in said
    assert "NRestarts=1" in said
    assert "\ninactive\n" in said


@pytest.mark.slow
@_needs_session
def test_with_a_socket_the_first_command_starts_it_and_so_does_one_after_a_stop(
    short: Person,
) -> None:
    said = _session(
        short,
        """
        mkdir $HOME/notes; echo '# Seagull' > $HOME/notes/a.md; anchord add $HOME/notes > /dev/null
        anchord service install --socket > /dev/null
        systemctl --user is-active anchord.service || true
        anchord search --fresh --mode text seagull
        anchord stop
        for _ in $(seq 150); do test $(systemctl --user is-active anchord.service) = inactive && break; sleep 0.1; done
        anchord search --mode text seagull
        systemctl --user is-active anchord.service
        anchord service install > /dev/null
        systemctl --user is-active anchord.service anchord.socket || true
        """,
    )
    assert said.splitlines()[0] == "inactive"
    assert said.count("a.md:1") == 2
    assert said.splitlines()[-3:] == ["active", "active", "inactive"]


@pytest.mark.slow
@_needs_session
def test_in_the_sandbox_it_indexes_and_writes_nothing_elsewhere(short: Person) -> None:
    """A drop-in resets three settings: two need a full /proc, and this test runs in /tmp."""
    said = _session(
        short,
        """
        mkdir $HOME/notes; echo '# Seagull' > $HOME/notes/a.md; anchord add $HOME/notes > /dev/null
        mkdir -p $HOME/.config/systemd/user/anchord.service.d
        printf '[Service]\\nProtectKernelTunables=no\\nProtectKernelLogs=no\\nPrivateTmp=no\\n' \
            > $HOME/.config/systemd/user/anchord.service.d/60-here.conf
        anchord service install --sandbox > /dev/null
        anchord search --fresh --mode text seagull
        pid=$(systemctl --user show anchord -p MainPID --value)
        nsenter -t $pid -m touch $HOME/notes/b.md 2>&1 || true
        nsenter -t $pid -m touch /usr/b 2>&1 || true
        test ! -e /proc/$pid/root/dev/vda && echo no devices
        """,
    )
    assert "a.md:1" in said
    assert said.count("Read-only file system") == 2
    assert "no devices" in said
