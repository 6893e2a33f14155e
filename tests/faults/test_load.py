"""Group I of FAULTS.md: idle cost, memory of very many files, and new saves before the backlog."""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Iterator
from concurrent.futures import Future
from contextlib import contextmanager
from pathlib import Path

import psutil
import pytest
from faults.service import Service, until
from live.conftest import Home, home
from live.held import Held

from anchord.core.types import RootedPath

__all__ = ["home"]  # pytest finds the fixture by this name.

_MILLION = 1_000_000
_A_FOLDER = 1_000
_IN_FLIGHT = 4 * 64
"""Texts: a few requests of one batch each are under way at once."""


@contextmanager
def stuck(service: Service) -> Iterator[None]:
    """Block the writer in a job, as a slow model would."""
    began, free = threading.Event(), threading.Event()

    def job() -> None:
        began.set()
        free.wait(200)

    done: Future[None] = service.pipeline.submit(job)
    assert began.wait(60)
    try:
        yield
    finally:
        free.set()
        done.result(60)


@pytest.fixture
def held() -> Iterator[Held]:
    """Give a model server that can be held up."""
    made = Held()
    yield made
    made.stop()


# I3: paths, not events


def test_i3_while_the_writer_is_stuck_a_hundred_thousand_events_of_five_hundred_files_are_five_hundred_paths(
    service: Service,
) -> None:
    service.notes(3)
    service.start().sync()
    survey = service.pipeline.work_queue
    with stuck(service):
        waiting = len(survey)
        for n in range(100_000):
            survey.add_hint(RootedPath("docs", f"deep/folder/file{n % 500:03}.md"))
        assert len(survey) <= waiting + 500
        assert service.status()["pending"] <= waiting + 500
    assert service.is_right()


def test_i3_events_of_more_files_than_are_kept_apart_become_one_walk_as_soon_as_they_are_taken_in(
    service: Service,
) -> None:
    service.notes(3)
    service.start().sync()
    survey = service.pipeline.work_queue
    with stuck(service):
        for n in range(50_000):
            survey.add_hint(RootedPath("docs", f"none/file{n}.md"))
        walks = survey.reconcile_count
    until(lambda: service.pipeline.pending_count == 0)
    assert survey.reconcile_count - walks <= 3
    assert service.is_right()


@pytest.mark.slow
def test_i3_events_of_a_million_files_cost_less_than_a_kilobyte_each(service: Service) -> None:
    service.start().sync()
    survey, process = service.pipeline.work_queue, psutil.Process()
    with stuck(service):
        before = process.memory_info().rss
        for _ in range(3):
            for n in range(_MILLION):
                survey.add_hint(
                    RootedPath("docs", f"some/deeper/folder/number{n // _A_FOLDER}/file{n}.md")
                )
        assert len(survey) <= _MILLION + 10
        assert process.memory_info().rss - before < 1_000 * _MILLION
    until(lambda: service.pipeline.pending_count == 0)


@pytest.mark.slow
@pytest.mark.timeout(1_500)
def test_i3_a_million_files_behind_a_slow_model_stay_under_the_daemons_own_ceiling(
    home: Home, held: Held
) -> None:
    first = home.folder / "first.md"
    for n in range(_MILLION):
        if n % _A_FOLDER == 0:
            folder = home.folder / f"d{n // _A_FOLDER}"
            folder.mkdir()
            first = folder / "0.md"
            first.write_text(f"# Note\n\nThe words of folder {n}.\n")
        else:
            os.link(first, folder / f"{n}.md")
    (home.path / "config.toml").write_text(held.settings)
    held.hold()
    home.run()
    assert home.process is not None
    process = psutil.Process(home.process.pid)
    before = process.memory_info().rss
    _until_long(lambda: home.status()["pending"] >= _MILLION - 500)
    _until_long(held.is_asked)
    status = home.status()
    peak = _peak(process) - before
    print(  # noqa: T201 - a figure
        f"{peak / _MILLION:.0f} bytes a file at the peak, {status['rss_bytes'] / 1e6:.0f} MB then"
    )
    assert peak < 1_500 * _MILLION
    assert status["degraded"] == []
    assert status["pid"] == home.process.pid
    assert "daemon.restarting" not in (home.path / "run.log").read_text()
    home.write("d7/saved.md", "# Saved\n\nJust now.\n")
    held.release()
    _until_long(lambda: home.found("saved just now") == ["d7/saved.md"])
    assert home.status()["pending"] > _MILLION // 2, "it did not wait for the others"
    assert home.terminate() == 0


def _until_long(condition: object) -> None:
    """Wait for something that takes minutes with this many files."""
    assert callable(condition)
    deadline = time.monotonic() + 600
    while not condition():
        assert time.monotonic() < deadline, "waited in vain"
        time.sleep(0.5)


def _peak(process: psutil.Process) -> int:
    lines = Path(f"/proc/{process.pid}/status").read_text().splitlines()
    (line,) = [line for line in lines if line.startswith("VmHWM:")]
    return int(line.split()[1]) * 1024


# I4: new saves first


def test_i4_a_save_goes_to_the_model_of_a_running_daemon_before_what_is_left_of_the_backlog(
    home: Home, held: Held
) -> None:
    for n in range(600):
        home.write(f"d{n % 9}/{n:03}.md", f"# Note {n}\n\nWords of note {n}.\n")
    (home.path / "config.toml").write_text(held.settings)
    held.hold()
    home.run()
    until(held.is_asked)
    home.write("d3/mine.md", "# Mine\n\nSaved in the middle of it.\n")
    until(
        lambda: (home.status()["last_event_age_s"] or 0.0) > 1.0
    )  # The debounce time is over, and the writer still waits for its model.
    held.release()
    until(lambda: home.found("saved in the middle") == ["d3/mine.md"])
    home.call("sync")
    texts = held.texts()
    at = next(number for number, text in enumerate(texts) if "Saved in the middle" in text)
    assert len(set(texts)) == 601
    assert len(texts) - 601 <= _IN_FLIGHT  # The cost of an interruption: the requests in progress.
    assert at < len(texts) - 200, "the rest of the backlog came after it"
    assert home.command("verify").code == 0


# I1: an idle daemon


@pytest.mark.slow
def test_i1_a_daemon_at_rest_hardly_wakes_and_commits_nothing(home: Home) -> None:
    for n in range(300):
        home.write(f"d{n % 9}/{n:03}.md", f"# Note {n}\n\nWords of note {n}.\n")
    home.run()
    home.call("sync")
    assert home.process is not None
    process = psutil.Process(home.process.pid)
    time.sleep(45)  # Maintenance waits for 30 idle seconds.
    before, wakes, commits, began = (
        _cpu_s(process),
        _wakes(process),
        home.status()["commits_total"],
        time.monotonic(),
    )
    time.sleep(60)
    lasted = time.monotonic() - began
    assert (_cpu_s(process) - before) / lasted < 0.02
    assert (_wakes(process) - wakes) / lasted < 50
    assert home.status()["commits_total"] == commits


def _cpu_s(process: psutil.Process) -> float:
    times = process.cpu_times()
    return float(times.user + times.system)


def _wakes(process: psutil.Process) -> int:
    """Count how often a thread of the process was woken."""
    found = 0
    for task in Path(f"/proc/{process.pid}/task").iterdir():
        lines = (task / "status").read_text().splitlines()
        found += sum(
            int(line.split()[1]) for line in lines if line.startswith("voluntary_ctxt_switches")
        )
    return found
