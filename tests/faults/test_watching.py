"""Group C of FAULTS.md: the index is right although events are late or lost. The real watcher."""

from __future__ import annotations

import ctypes
import errno
import os
import shutil
import sys
import threading
import time
from pathlib import Path
from typing import Any

import pytest
from faults.service import Service, until

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="inotify is Linux's")

if sys.platform == "linux":
    from watchdog.observers import inotify_c

    from anchord.sources.watch import inotify
    from anchord.sources.watch.inotify import InotifyWatcher


def watcher_of(service: Service) -> InotifyWatcher:
    watcher = service.pipeline.work_queue.root_watcher._watcher
    assert isinstance(watcher, InotifyWatcher)
    return watcher


def is_followed(service: Service, name: str = "later.md") -> bool:
    """Write a file and see it indexed without a walk being asked for."""
    service.write(name, f"# {name}\n\nWritten at {time.monotonic_ns()}.\n")
    until(lambda: name in service.paths())
    return True


def test_c1_an_overflow_is_counted_and_walked_over(
    service: Service, monkeypatch: pytest.MonkeyPatch
) -> None:
    service.notes(3)
    service.start().sync()
    stopped = threading.Event()
    real = inotify._InotifyThread.handle_event

    def held(queue: Any, event: Any) -> None:  # noqa: ANN401 - of watchdog
        stopped.wait(60)
        real(queue, event)

    monkeypatch.setattr(inotify._InotifyThread, "handle_event", held)
    limit = int(Path("/proc/sys/fs/inotify/max_queued_events").read_text("ascii"))
    if limit > 100_000:
        pytest.skip(f"a queue of {limit} events takes too long to overflow")
    for n in range(limit + 100):  # The kernel merges equal events, so each event has its own file.
        os.close(os.open(service.folder / f"e{n}.tmp", os.O_CREAT | os.O_WRONLY))
        os.unlink(service.folder / f"e{n}.tmp")
    service.write("lost.md", "# Lost\n\nIts event was dropped.\n")
    stopped.set()
    until(lambda: service.status()["overflows"] == 1)
    until(lambda: "lost.md" in service.paths())
    assert is_followed(service)
    assert service.is_right()


def test_c2_folders_over_the_limit_of_watches_are_named_and_polled(
    service: Service, monkeypatch: pytest.MonkeyPatch
) -> None:
    for n in range(6):
        service.notes(2, f"d{n}/sub/")
    real, given = inotify_c.inotify_add_watch, set[bytes]()

    def limited(descriptor: int, path: bytes, mask: int) -> int:
        if path not in given and len(given) >= 5:
            ctypes.set_errno(errno.ENOSPC)
            return -1
        given.add(path)
        return real(descriptor, path, mask)

    monkeypatch.setattr(inotify_c, "inotify_add_watch", limited)
    service.start().sync()
    status = service.status()
    assert status["state"] == "degraded"
    assert "cannot be watched and are polled" in service.reasons()
    assert "fs.inotify.max_user_watches" in service.reasons()
    assert status["roots"][0]["watches"] == 5
    assert status["roots"][0]["polled_dirs"] >= 1
    unwatched = watcher_of(service).refused_folders("docs")
    assert is_followed(service, f"{unwatched[0]}/polled.md")
    monkeypatch.setattr(inotify_c, "inotify_add_watch", real)
    service.rescan()
    assert service.status()["state"] == "idle"
    assert service.status()["roots"][0]["watches"] == 13


def test_c2_a_root_that_cannot_be_watched_for_another_reason_has_no_advice_on_limits(
    service: Service, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refused(descriptor: int, path: bytes, mask: int) -> int:
        del descriptor, path, mask
        ctypes.set_errno(errno.EACCES)
        return -1

    monkeypatch.setattr(inotify_c, "inotify_add_watch", refused)
    service.start().sync()
    assert "cannot be watched (permission denied): polled instead" in service.reasons()
    assert "max_user_watches" not in service.reasons()
    assert is_followed(service)


def test_c3_without_an_inotify_instance_everything_is_polled_until_there_is_one(
    service: Service, monkeypatch: pytest.MonkeyPatch
) -> None:
    real = inotify_c.inotify_init

    def refused() -> int:
        ctypes.set_errno(errno.EMFILE)
        return -1

    monkeypatch.setattr(inotify_c, "inotify_init", refused)
    service.start().sync()
    assert "the system gives no events" in service.reasons()
    assert is_followed(service)
    monkeypatch.setattr(inotify_c, "inotify_init", real)
    until(lambda: not service.reasons())
    assert service.status()["roots"][0]["watching"]
    assert is_followed(service, "seen.md")


@pytest.mark.parametrize(
    "fault", ["c4_c5 the thread ends", "c6 the handler raises", "c7 the descriptor is closed"]
)
def test_c4_to_c7_a_watcher_that_died_is_replaced(
    service: Service, monkeypatch: pytest.MonkeyPatch, fault: str
) -> None:
    service.notes(3, "deep/er/")
    service.start().sync()
    watcher = watcher_of(service)
    if fault.startswith("c4"):
        watcher._inotify_thread.stop()
    elif fault.startswith("c6"):
        monkeypatch.setattr(threading, "excepthook", lambda _: None)
        watcher._roots["docs"]._on_hint = _raise
        service.write("unheard.md", "# Unheard\n\nIts event killed the watcher.\n")
    else:
        # Reading it gives EBADF, as a closed one does, but no other thread can be given the number meanwhile.
        unreadable = os.open(os.devnull, os.O_WRONLY)
        os.dup2(unreadable, watcher._inotify_thread._inotify_fd)
        os.close(unreadable)
    until(lambda: not watcher.is_alive())
    until(lambda: service.pipeline.work_queue.root_watcher._watcher is not watcher)
    until(lambda: service.status()["roots"][0]["watches"] == 3)
    assert is_followed(service)
    assert is_followed(service, "deep/er/too.md")
    assert service.is_right()


def _raise(_: object) -> None:
    raise RuntimeError("the handler's fault")


def test_c9_a_file_moved_out_does_not_hide_what_was_written_behind_it(service: Service) -> None:
    service.notes(5)
    service.start().sync()
    for n in range(5):
        os.rename(service.folder / f"{n:03}.md", service.base / f"out{n}.md")
        service.write("behind.md", f"# Behind\n\nWritten right after move {n}.\n")
        service.sync()
        assert service.paths() == {*(f"{m:03}.md" for m in range(n + 1, 5)), "behind.md"}
    assert service.is_right()


def test_c10_what_changes_between_the_watch_and_the_listing_is_seen(
    service: Service, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A folder is watched, then listed: what is written in between is listed, what is written after it has an event."""
    service.notes(2, "a/")
    service.notes(2, "b/")
    real = InotifyWatcher.watch_folder
    written: list[str] = []

    def enter(watcher: InotifyWatcher, folder: Any) -> None:  # noqa: ANN401 - an origin
        real(watcher, folder)
        name = f"{folder.path}/between.md".removeprefix("/")
        if name not in written:
            written.append(name)
            service.write(name, f"# Between\n\nIn {folder.path}.\n")

    monkeypatch.setattr(InotifyWatcher, "watch_folder", enter)
    service.start()
    until(lambda: {"between.md", "a/between.md", "b/between.md"} <= service.paths())
    assert service.is_right()


def test_b12_a_storm_in_an_ignored_folder_takes_no_watch_and_no_work(service: Service) -> None:
    service.write(".gitignore", "build/\n")
    service.write("a.md", "# A\n\nWords.\n")
    service.start().sync()
    watches = service.status()["roots"][0]["watches"]
    for top in ("node_modules", "build", ".git"):
        for n in range(40):
            service.write(f"{top}/p{n}/index.md", "# Package\n\nNothing to see.\n")
    service.sync()
    assert service.status()["roots"][0]["watches"] == watches == 1
    work = service.pipeline.stats.totals
    assert (work.upserted, work.actions["skipped"]) == (1, 0)
    assert service.paths() == {"a.md"}


def test_a_folder_that_becomes_ignored_is_no_longer_watched(service: Service) -> None:
    service.notes(2, "notes/old/")
    service.start().sync()
    assert service.status()["roots"][0]["watches"] == 3
    service.write(".gitignore", "notes/\n")
    until(lambda: service.status()["roots"][0]["watches"] == 1)
    until(lambda: service.paths() == set())
    service.write(".gitignore", "")
    until(lambda: service.status()["roots"][0]["watches"] == 3)
    until(lambda: len(service.paths()) == 2)


def test_b5_a_tree_moved_out_is_forgotten_and_its_later_events_are_not_heard(
    service: Service,
) -> None:
    service.notes(3, "tree/deep/")
    service.write("stays.md", "# Stays\n\nHere.\n")
    service.start().sync()
    os.rename(service.folder / "tree", service.base / "outside")
    until(lambda: service.paths() == {"stays.md"})
    until(lambda: service.status()["roots"][0]["watches"] == 1)
    before = service.pipeline.work_queue.last_event_at
    (service.base / "outside" / "deep" / "000.md").write_text(
        "# Private\n\nWritten outside of the root.\n"
    )
    (service.folder / "tree").mkdir()
    until(lambda: service.pipeline.work_queue.last_event_at != before)
    service.sync()
    assert service.paths() == {"stays.md"}


def test_b3_b4_a_tree_that_arrives_whole_is_followed_in_all_its_folders(service: Service) -> None:
    service.start().sync()
    outside = service.base / "outside"
    for n in range(30):
        (outside / f"d{n}" / "sub").mkdir(parents=True)
        (outside / f"d{n}" / "sub" / "n.md").write_text(f"# Note {n}\n\nArrived.\n")
    os.rename(outside, service.folder / "moved")
    shutil.copytree(service.folder / "moved", service.folder / "copied")
    until(lambda: len(service.paths()) == 60)
    assert is_followed(service, "moved/d7/sub/new.md")
    assert is_followed(service, "copied/d9/sub/new.md")
    assert service.is_right()


def test_b7_b8_folders_that_swap_names_are_followed(service: Service) -> None:
    service.notes(2, "a/")
    service.notes(2, "b/")
    service.start().sync()
    os.rename(service.folder / "a", service.folder / "t")
    os.rename(service.folder / "b", service.folder / "a")
    os.rename(service.folder / "t", service.folder / "b")
    until(lambda: service.pipeline.pending_count == 0)
    assert is_followed(service, "a/new.md")
    assert is_followed(service, "b/new.md")
    assert service.is_right()


def test_an_end_to_end_save_needs_no_walk(service: Service) -> None:
    service.notes(3)
    service.start().sync()
    walks = service.pipeline.work_queue.reconcile_count
    for n in range(5):
        assert is_followed(service, f"new{n}.md")
    assert service.pipeline.work_queue.reconcile_count == walks
