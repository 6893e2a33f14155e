"""The daemon as a process: stopped and continued, restarted by itself, a branch switch."""

from __future__ import annotations

import os
import signal
import subprocess
import time
from pathlib import Path

import pytest
from live.conftest import Home, delete_folder, home, until

from anchord.errors import NotRunningError

__all__ = ["home"]  # pytest finds the fixture by this name.


def git(folder: Path, *arguments: str) -> None:
    settings = ["-c", "user.name=a", "-c", "user.email=a@b", "-c", "commit.gpgsign=false"]
    subprocess.run(["git", *settings, *arguments], cwd=folder, check=True, capture_output=True)


def test_a_daemon_over_its_ceiling_restarts_once_and_says_so_when_that_does_not_help(
    home: Home,
) -> None:
    home.write("a.md", "# A\n\nA wombat.\n")
    with (home.path / "config.toml").open("a") as config:
        config.write("[store]\nmax_memory_mb = 1\n")
    home.run()
    assert home.process is not None
    until(lambda: _is_helpless(home))
    home.call("sync")
    assert home.status()["pid"] == home.process.pid
    assert (home.path / "run.log").read_text().count("daemon.restarting") == 1
    assert home.found("wombat") == ["a.md"]
    assert home.command("verify").code == 0


def _is_helpless(home: Home) -> bool:
    try:
        return any("a restart did not help" in reason for reason in home.status()["degraded"])
    except NotRunningError:
        return False


def test_a_data_folder_that_is_deleted_twice_within_minutes_is_rebuilt_twice(home: Home) -> None:
    home.write("a.md", "# A\n\nA wombat.\n")
    home.run()
    for restarts in (1, 2):
        home.call("sync")
        delete_folder(home.path / "data")
        until(lambda: _has_restarted(home, restarts))  # noqa: B023 - called before the next turn
    home.call("sync")
    assert home.found("wombat") == ["a.md"]
    assert home.command("verify").code == 0
    assert home.process is not None
    assert home.status()["pid"] == home.process.pid
    assert "restart_waits" in (home.path / "run.log").read_text()


def test_commands_are_answered_while_the_daemon_restarts_itself(home: Home) -> None:
    home.write("a.md", "# A\n\nA wombat.\n")
    home.run()
    home.call("sync")
    delete_folder(home.path / "data")
    codes = [home.command("status").code]
    while not _has_restarted(home, 1):
        codes.append(home.command("status").code)
    codes.append(home.command("sync").code)
    assert 3 not in codes, "no daemon was found"
    assert codes[-1] == 0
    assert home.found("wombat") == ["a.md"]
    assert home.terminate() == 0
    assert not (home.path / "run" / "anchord.sock").exists()


def _has_restarted(home: Home, times: int) -> bool:
    done = (home.path / "run.log").read_text().count("daemon.ready")
    return done > times and home.answers()


def test_repair_commands_work_with_and_without_a_daemon(home: Home) -> None:
    for n in range(60):
        home.write(f"{n:02}.md", f"# Note {n}\n\nWords of note {n}.\n")
    home.write("private/x.md", "# X\n\nA swordfish.\n")
    home.run()
    home.call("sync")
    for command in (
        ["rescan"],
        ["reindex"],
        ["reindex", "--force-rechunk"],
        ["rebuild"],
        ["verify", "--vectors", "all"],
    ):
        done = home.command(*command)
        assert done.code == 0, (command, done.err)
    assert home.command("forget", "--yes", str(home.folder / "private")).code == 0
    assert home.found("swordfish") == []
    for file in home.folder.glob("*.md"):
        file.unlink()
    held = home.command("sync")
    assert '60 files of "docs" vanished at once' in held.err
    assert home.command("status").code == 1
    assert home.terminate() == 0
    assert "anchord confirm-delete docs" in home.command("index").err
    assert home.command("confirm-delete", "docs").out.startswith(
        'confirmed: 60 files of "docs" were deleted'
    )
    assert home.dump() == []
    assert home.command("forget", "--undo", str(home.folder / "private")).code == 0
    for command in (
        ["index"],
        ["rebuild"],
        ["reindex"],
        ["reindex", "--force-rechunk"],
        ["verify"],
    ):
        done = home.command(*command)
        assert done.code == 0, (command, done.err)
    assert [row["path"] for row in home.dump()] == ["private/x.md"]


@pytest.mark.slow
def test_c1_c8_a_daemon_that_was_stopped_while_18000_files_came_converges_and_reports_the_overflow(
    home: Home,
) -> None:
    for n in range(90):
        home.write(
            f"f{n}/before.md", "# Before\n"
        )  # Half of the folders are watched: the queue of events is sure to overflow.
    home.run()
    home.call("sync")
    assert home.process is not None
    home.process.send_signal(signal.SIGSTOP)
    for n in range(18_000):
        home.write(f"f{n % 180}/n{n}.md", f"# Note {n}\n\nWords of note {n}.\n")
        if n % 3 == 0:
            os.replace(home.folder / f"f{n % 180}/n{n}.md", home.folder / f"top{n}.md")
    home.process.send_signal(signal.SIGCONT)
    began = time.monotonic()
    until(lambda: home.status()["overflows"] >= 1)
    print(f"overflow shown after {time.monotonic() - began:.2f} s")  # noqa: T201 - a figure for the report
    home.call("sync")
    assert home.status()["files"] == 18_090
    assert home.command("verify").code == 0


@pytest.mark.slow
def test_b10_a_checkout_of_2000_changed_files_and_back_embeds_nothing_on_the_way_back(
    home: Home,
) -> None:
    for n in range(2_000):
        home.write(f"d{n % 40}/n{n}.md", f"# Note {n}\n\nWords of note {n}.\n")
    git(home.folder, "init", "-q", "-b", "main")
    git(home.folder, "add", ".")
    git(home.folder, "commit", "-qm", "one")
    git(home.folder, "checkout", "-qb", "other")
    for n in range(2_000):
        home.write(f"d{n % 40}/n{n}.md", f"# Note {n}\n\nMended words of note {n}.\n")
    git(home.folder, "commit", "-qam", "two")
    git(home.folder, "checkout", "-q", "main")
    home.run()
    home.call("sync")
    before = home.status()["embedded_total"]
    git(home.folder, "checkout", "-q", "other")
    home.call("sync")
    assert home.status()["embedded_total"] == before + 2_000
    assert len(home.call("search", query="mended", mode="text", k=1000)["groups"]) > 0
    git(home.folder, "checkout", "-q", "main")
    home.call("sync")
    assert home.found("mended") == []
    assert home.status()["embedded_total"] == before + 2_000
    assert home.command("verify").code == 0
