"""Groups A to F of FAULTS.md, exactly as worded there."""

from __future__ import annotations

import ctypes
import errno
import os
import shutil
import subprocess
import sys
import tarfile
import threading
import time
import zipfile
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
from faults.service import SETTINGS, Service, until
from faults.stage import Stage
from live.conftest import Home, home
from live.weak import needs_weakness, run_weak

from anchord.sources.watch.inotify import InotifyWatcher

__all__ = ["home"]  # pytest finds the fixture by this name.

LINUX = pytest.mark.skipif(sys.platform != "linux", reason="a call of Linux")
FIRST, SECOND = "# A\n\nThe first words, of aardvarks.\n", "# A\n\nThe second words, of buffalos.\n"
_DAY_NS = 86_400 * 10**9


def git(folder: Path, *arguments: str) -> None:
    settings = [
        "-c",
        "user.name=a",
        "-c",
        "user.email=a@b",
        "-c",
        "commit.gpgsign=false",
        "-c",
        "gc.auto=0",
    ]
    subprocess.run(["git", *settings, *arguments], cwd=folder, check=True, capture_output=True)


def searched(service: Service, word: str) -> set[str]:
    groups = service.ask("search", query=word, mode="text")["groups"]
    return {group[0]["path"] for group in groups}


# Group A


def test_a4_no_search_misses_a_file_while_vim_has_its_name_away(service: Service) -> None:
    file = service.write("a.md", FIRST)
    service.start().sync()
    backup = file.with_name("a.md~")
    file.rename(backup)
    deadline = time.monotonic() + 0.5  # Many times the debounce time.
    while time.monotonic() < deadline:
        assert searched(service, "aardvarks") == {"a.md"}
    file.write_text(SECOND)
    backup.unlink()
    until(lambda: searched(service, "buffalos") == {"a.md"})
    assert service.is_right()


def test_a2_no_search_misses_a_file_that_is_deleted_and_written_a_moment_later(
    service: Service,
) -> None:
    file = service.write("a.md", FIRST)
    service.start().sync()
    file.unlink()
    deadline = time.monotonic() + 0.5
    while time.monotonic() < deadline:
        assert searched(service, "aardvarks") == {"a.md"}
    file.write_text(SECOND)
    until(lambda: searched(service, "buffalos") == {"a.md"})
    assert service.is_right()


def test_a11_a_changed_line_of_five_thousand_embeds_its_neighbourhood_alone(
    service: Service,
) -> None:
    lines = [
        f"Line {n} tells of matter {n * 7919 % 10_007} and of nothing else.\n" for n in range(5_000)
    ]
    file = service.write("long.md", "# Long\n\n" + "".join(lines))
    service.start().sync()
    before = service.embedded()
    assert before > 200
    for at in (10, 2_500, 4_990):
        lines[at] = f"Line {at} was changed by a person.\n"
        file.write_text("# Long\n\n" + "".join(lines))
        service.sync()
        assert 1 <= service.embedded() - before <= 4
        before = service.embedded()
    assert service.is_right()


def test_a12_a_log_that_is_written_all_the_time_costs_far_fewer_commits_than_writes(
    service: Service,
) -> None:
    service.settings = SETTINGS.replace("settle_ms = 20", "settle_ms = 200").replace(
        "max_wait_ms = 200", "max_wait_ms = 1000"
    )
    file = service.write("log.md", "# Log\n")
    service.start().sync()
    commits, writes = service.writer.indexer.commit_count, 0
    while service.writer.indexer.commit_count < commits + 3:
        writes += 1
        with file.open("a") as log:
            log.write(f"\nEntry {writes}.\n")
        time.sleep(0.005)
    assert writes >= 30
    assert service.is_right()


# Group B

_AT_FDCWD, _EXCHANGE = -100, 2


@LINUX
def test_b8_two_folders_that_are_exchanged_in_one_call_are_followed(service: Service) -> None:
    service.notes(3, "a/deep/")
    service.write("b/only b.md", "# B\n\nThe buffalo.\n")
    service.start().sync()
    before = service.embedded()
    libc = ctypes.CDLL(None, use_errno=True)
    one, two = os.fsencode(service.folder / "a"), os.fsencode(service.folder / "b")
    assert libc.renameat2(_AT_FDCWD, one, _AT_FDCWD, two, _EXCHANGE) == 0, ctypes.get_errno()
    until(lambda: service.paths() == {"a/only b.md", *(f"b/deep/{n:03}.md" for n in range(3))})
    assert service.embedded() == before
    service.write("b/deep/later.md", "# Later\n\nIn the exchanged folder.\n")
    service.write("a/later.md", "# Later\n\nIn the other one.\n")
    until(lambda: {"b/deep/later.md", "a/later.md"} <= service.paths())
    assert service.is_right()


@pytest.mark.parametrize("folders", [False, True], ids=["files", "folders"])
def test_b7_a_becomes_b_b_becomes_c_and_there_is_a_new_a(service: Service, folders: bool) -> None:  # noqa: FBT001 - a case
    top, inside = ("", "/deep/n.md") if folders else (".md", "")
    a, b, c = (f"{name}{top}" for name in "abc")
    service.write(f"{a}{inside}", "# Old a\n\nThe words of the old a.\n")
    service.write(f"{b}{inside}", "# Old b\n\nThe words of the old b.\n")
    service.start().sync()
    before = service.embedded()
    os.rename(service.folder / b, service.folder / c)
    os.rename(service.folder / a, service.folder / b)
    service.write(f"{a}{inside}", "# New a\n\nThe words of the new a.\n")
    until(lambda: searched(service, '"the new a"') == {f"{a}{inside}"})
    until(lambda: searched(service, '"the old a"') == {f"{b}{inside}"})
    until(lambda: searched(service, '"the old b"') == {f"{c}{inside}"})
    assert service.is_right()
    assert service.embedded() == before + 1


@pytest.mark.parametrize("kind", ["tar", "zip"])
def test_b3_what_an_archive_unpacks_with_times_of_long_ago_is_found_and_unpacked_again_costs_nothing(
    service: Service, kind: str
) -> None:
    there = service.base / "packed"
    for n in range(40):
        file = there / f"d{n % 4}" / f"{n}.md"
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(f"# Note {n}\n\nPacked words {n}.\n")
        os.utime(file, (1_000_000_000, 1_000_000_000))
    packed = service.base / f"packed.{kind}"
    if kind == "tar":
        with tarfile.open(packed, "w") as tar:
            tar.add(there, "un")
    else:
        with zipfile.ZipFile(packed, "w") as archive:
            for file in there.rglob("*.md"):
                archive.write(file, f"un/{file.relative_to(there)}")
    service.start().sync()
    for _ in range(2):
        if kind == "tar":
            shutil.unpack_archive(packed, service.folder, filter="data")
        else:
            shutil.unpack_archive(packed, service.folder)
        until(lambda: len(service.paths()) == 40)
        assert service.is_right()
    assert service.embedded() == 40


def test_b9_a_folder_that_goes_in_the_middle_of_a_walk_leaves_nothing(
    service: Service, monkeypatch: pytest.MonkeyPatch
) -> None:
    service.notes(5, "keep/")
    service.notes(5, "go/a/")
    service.notes(5, "go/b/")
    real = InotifyWatcher.watch_folder
    gone: list[str] = []

    def enter(watcher: InotifyWatcher, folder: Any) -> None:  # noqa: ANN401 - an origin
        real(watcher, folder)
        if folder.path in ("go/a", "go/b") and not gone:
            gone.append(folder.path)
            shutil.rmtree(service.folder / "go")

    monkeypatch.setattr(InotifyWatcher, "watch_folder", enter)
    service.start()
    assert service.is_right()
    assert gone
    assert {path.split("/")[0] for path in service.paths()} == {"keep"}
    assert service.status()["failed"] == []


def test_b11_a_worktree_of_git_that_is_added_and_removed_leaves_no_watch_and_embeds_nothing(
    service: Service,
) -> None:
    service.notes(6, "docs/")
    git(service.folder, "init", "-q", "-b", "main")
    git(service.folder, "add", ".")
    git(service.folder, "commit", "-qm", "one")
    service.start().sync()
    before = service.embedded()
    for _ in range(3):
        git(service.folder, "worktree", "add", "-q", "-b", f"other{_}", f"tree{_}")
        until(lambda: len(service.paths()) == 12)
        until(lambda: service.status()["roots"][0]["watches"] == 4)
        git(service.folder, "worktree", "remove", "--force", f"tree{_}")
        until(lambda: len(service.paths()) == 6)
        until(lambda: service.status()["roots"][0]["watches"] == 2)
    assert service.embedded() == before
    assert service.is_right()


@pytest.mark.slow
def test_b13_a_rebase_of_two_hundred_commits_is_followed_with_fewer_commits_of_ours(
    service: Service,
) -> None:
    folder = service.folder
    service.write("base.md", "# Base\n\nThe first.\n")
    git(folder, "init", "-q", "-b", "main")
    git(folder, "add", ".")
    git(folder, "commit", "-qm", "base")
    git(folder, "checkout", "-qb", "work")
    for n in range(200):
        service.write(f"f{n % 20}.md", f"# File {n % 20}\n\nThe words of commit {n}.\n")
        git(folder, "add", ".")
        git(folder, "commit", "-qm", f"number {n}")
    git(folder, "checkout", "-q", "main")
    service.write("base.md", "# Base\n\nThe second.\n")
    git(folder, "commit", "-qam", "second base")
    git(folder, "checkout", "-q", "work")
    service.start().sync()
    commits = service.writer.indexer.commit_count
    git(folder, "rebase", "-q", "main")
    service.sync()
    assert service.writer.indexer.commit_count - commits < 100
    assert service.is_right()


# Group D, with a real daemon


@needs_weakness
@pytest.mark.parametrize(
    "mode",
    [
        pytest.param("poll", id="found by a walk"),
        pytest.param("auto", id="told by an event"),
    ],
)  # fmt: skip
def test_d13_a_folder_that_cannot_be_read_for_a_while_keeps_its_rows_and_is_named(
    home: Home, mode: str
) -> None:
    (home.path / "config.toml").write_text(
        f'{home.settings}[watch]\nmode = "{mode}"\npoll_s = 0.5\n'
    )
    for n in range(3):
        home.write(f"closed/deep/{n}.md", f"# Closed {n}\n\nA wombat, number {n}.\n")
    home.write("open.md", "# Open\n\nA numbat.\n")
    run_weak(home)
    home.call("sync")
    embedded, closed = home.status()["embedded_total"], home.folder / "closed"
    closed.chmod(0)
    until(lambda: home.status()["failed"])
    home.call("sync")
    assert len(home.found("wombat")) == 3
    (failed,) = home.status()["failed"]
    assert (failed["path"], failed["reason"]) == (str(closed), "permission denied: not indexed")
    home.write("open.md", "# Open\n\nNow a quokka.\n")
    until(lambda: home.found("quokka") == ["open.md"])
    assert len(home.dump()) == 4
    closed.chmod(0o755)
    home.write("closed/deep/0.md", "# Closed 0\n\nA wombat that is back.\n")
    home.call("sync")
    assert home.status()["failed"] == []
    assert home.found("back") == ["closed/deep/0.md"]
    assert home.status()["embedded_total"] == embedded + 2
    assert home.command("verify").code == 0


@needs_weakness
def test_d12_a_root_that_cannot_be_read_is_an_error_and_keeps_its_rows(home: Home) -> None:
    home.write("a.md", "# A\n\nA wombat.\n")
    run_weak(home)
    home.call("sync")
    home.folder.chmod(0)
    home.call("sync")
    status = home.status()
    assert (status["state"], status["roots"][0]["state"]) == ("degraded", "offline")
    assert "permission denied" in status["degraded"][0]
    assert home.found("wombat") == ["a.md"]
    home.folder.chmod(0o755)
    until(lambda: home.status()["state"] == "idle")
    home.write("a.md", "# A\n\nA numbat.\n")
    until(lambda: home.found("numbat") == ["a.md"])


@needs_weakness
def test_f4_a_file_that_cannot_be_read_is_listed_with_its_reason_until_it_can(home: Home) -> None:
    home.write("good.md", "# Good\n\nA wombat.\n")
    home.write("closed.md", "# Closed\n\nA numbat.\n")
    (home.folder / "closed.md").chmod(0)
    run_weak(home)
    home.call("sync")
    assert home.found("wombat") == ["good.md"]
    assert "closed.md" in home.command("errors").out
    assert home.status()["failed"][0]["reason"] == "permission denied: not indexed"
    (home.folder / "closed.md").chmod(0o644)
    until(lambda: home.found("numbat") == ["closed.md"])
    assert home.status()["failed"] == []


def test_d16_a_home_inside_a_root_is_not_indexed_and_feeds_nothing_back(home: Home) -> None:
    home.write("a.md", "# A\n\nA wombat.\n")
    (home.path / "note.md").write_text("# Own\n\nNobody's wombat.\n")
    home.run(str(home.folder.parent))
    home.call("sync")
    assert {row["path"] for row in home.dump()} == {"docs/a.md"}
    home.write("a.md", "# A\n\nA numbat.\n")
    until(lambda: home.found("numbat") == ["docs/a.md"])
    home.call("sync")
    commits, events = home.status()["commits_total"], home.status()["last_event_age_s"]
    until(
        lambda: home.status()["last_event_age_s"] > events + 3
    )  # Its own databases and logs were written meanwhile.
    assert home.status()["commits_total"] == commits
    assert home.command("verify").code == 0


# Group E


@pytest.fixture
def stage(tmp_path: Path) -> Iterator[Stage]:
    """Give an index whose clock can be moved."""
    made = Stage(tmp_path)
    yield made
    made.close()


@pytest.mark.parametrize(
    "jumps",
    [(_DAY_NS, 0), (-_DAY_NS, 0), (0, _DAY_NS, -_DAY_NS, 0)],
    ids=["on", "back", "to and fro"],
)
def test_e8_a_clock_that_jumps_a_day_hides_no_edit_and_embeds_nothing_again(
    stage: Stage, jumps: tuple[int, ...]
) -> None:
    for name in ("a.md", "b.md"):
        stage.write(name, f"# {name}\n\nThe words number 0.\n")
    stage.sync()
    for number, jump in enumerate(jumps, 1):
        stage.ahead_ns = jump
        file = stage.folder / "a.md"
        before = file.stat()
        stage.write("a.md", f"# a.md\n\nThe words number {number}.\n")
        os.utime(file, ns=(before.st_atime_ns, before.st_mtime_ns))
        outcomes = stage.sync()
        assert [outcome.origin.path for outcome in outcomes] == ["a.md"]
        assert sum(outcome.embedded for outcome in outcomes) == 1
        assert stage.sync() == []
        assert not stage.verify().differences


def test_e10_a_file_that_got_the_inode_and_the_size_of_another_is_not_taken_for_it(
    service: Service,
) -> None:
    file = service.write("old.md", "# Old\n\nThe words of old.\n")
    service.start().sync()
    inode = file.stat().st_ino
    made = []
    file.unlink()
    for n in range(200):
        made.append(service.write(f"new{n:03}.md", f"# New\n\nThe words of {n:03}.\n"))
        if made[-1].stat().st_ino == inode:
            break
    else:
        pytest.skip("this file system gives no inode again so soon")
    until(lambda: service.paths() == {each.name for each in made})
    assert service.is_right()
    assert service.embedded() == 1 + len(made)


# Group F


@pytest.mark.parametrize("saves", [12, pytest.param(40, marks=pytest.mark.slow)])
def test_f7_somebody_else_who_folds_the_table_meanwhile_loses_no_row_and_holds_nothing_up(
    service: Service, saves: int
) -> None:
    import lance  # noqa: PLC0415 - heavy, and for this test alone

    service.notes(30)
    service.start().sync()
    uri, ending, folded = service.writer.store.dataset_uri, threading.Event(), []

    def fold_on() -> None:
        while not ending.is_set():
            with suppress(OSError, RuntimeError, ValueError):  # It may be the process that lost.
                folded.append(lance.dataset(uri).optimize.compact_files())

    other = threading.Thread(target=fold_on)
    other.start()
    try:
        for n in range(saves):
            service.write(f"{n % 30:03}.md", f"# Note {n}\n\nRewritten words {n}.\n")
            service.sync()
    finally:
        ending.set()
        other.join()
    assert len(folded) > 3
    until(lambda: service.reasons() == "")
    assert service.is_right()
    assert service.restarts == []


def test_f4_input_errors_on_one_file_are_listed_and_the_others_go_on(
    service: Service, monkeypatch: pytest.MonkeyPatch
) -> None:
    bad = service.write("bad.md", "# Bad\n\nOn a failing sector.\n").stat().st_ino
    service.notes(5)
    real = os.pread

    def failing(descriptor: int, *args: int) -> bytes:
        if os.fstat(descriptor).st_ino == bad:
            raise OSError(errno.EIO, os.strerror(errno.EIO))
        return real(descriptor, *args)

    with monkeypatch.context() as patched:
        patched.setattr(os, "pread", failing)
        service.start().sync()
        assert service.paths() == {f"{n:03}.md" for n in range(5)}
        (failed,) = service.status()["failed"]
        assert failed["path"].endswith("/bad.md")
        assert failed["reason"] == "input/output error: not indexed"
        service.write("later.md", "# Later\n\nAnother file.\n")
        until(lambda: "later.md" in service.paths())
    os.utime(service.folder / "bad.md")
    until(lambda: "bad.md" in service.paths())
    assert service.status()["failed"] == []
    assert service.is_right()
