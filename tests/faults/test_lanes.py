"""New saves go before the backlog, and on battery."""

from __future__ import annotations

import threading
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

import psutil
import pytest
from faults.service import SETTINGS, Service, until

from anchord.core.types import RootedPath, Vector
from anchord.daemon.host.battery import on_battery
from anchord.daemon.writer.file_queue import Urgency
from anchord.embedding.hash_embedder import HashEmbedder
from anchord.sources.files.folder_files import FolderFiles


@pytest.fixture
def service(tmp_path: Path) -> Iterator[Service]:
    """Return a service that is not started."""
    made = Service(tmp_path)
    yield made
    made.stop()


def test_a_save_is_indexed_while_a_backlog_is_being_embedded(
    service: Service, monkeypatch: pytest.MonkeyPatch
) -> None:
    seen: list[str] = []
    gate = threading.Event()

    def slowly(embedder: HashEmbedder, texts: Sequence[str]) -> Iterator[Mapping[int, Vector]]:
        """Make one text a batch; the first of the backlog waits for the save."""
        for number, text in enumerate(texts):
            seen.append(text)
            if len(seen) == 1:
                gate.wait(60)
            yield {number: embedder.embed([text])[0]}

    monkeypatch.setattr(HashEmbedder, "embed_batches", slowly)
    service.notes(30)
    service.start()
    until(lambda: seen)
    service.write("saved.md", "# Saved\n\nJust now.\n")
    until(lambda: service.pipeline.work_queue.has_hints or len(service.pipeline.work_queue) > 30)
    until(lambda: service.pipeline.work_queue.has_fresh_due(float("inf")))
    gate.set()
    service.sync()
    at = next(number for number, text in enumerate(seen) if "Just now." in text)
    assert at < 30, "the rest of the backlog came after it"
    assert len(seen) == len(set(seen)) == 31, "the interruption cost no text twice"
    assert service.embedded() == 31
    assert service.is_right()


def test_without_mains_a_backlog_waits_if_asked_and_saves_go_on(
    service: Service, monkeypatch: pytest.MonkeyPatch
) -> None:
    mains = False
    monkeypatch.setattr("anchord.daemon.writer.loop.on_battery", lambda: not mains)
    monkeypatch.setattr("anchord.daemon.writer.loop._SUPERVISE_S", 0.05)
    service.settings = SETTINGS.replace(
        'provider = "hash"', 'provider = "hash"\non_battery = "pause"'
    )
    service.notes(3)
    service.start()
    until(lambda: service.status()["state"] == "paused")
    assert (service.status()["on_battery"], service.paths()) == (True, set())
    service.write("saved.md", "# Saved\n\nJust now.\n")
    until(lambda: service.paths() == {"saved.md"})
    assert service.status()["pending"] == 3
    mains = True
    until(lambda: len(service.paths()) == 4)
    assert service.status()["state"] == "idle"
    assert service.is_right()


def test_on_battery_a_waiting_sync_is_served(
    service: Service, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("anchord.daemon.writer.loop.on_battery", lambda: True)
    monkeypatch.setattr("anchord.daemon.writer.loop._SUPERVISE_S", 0.05)
    service.settings = SETTINGS.replace(
        'provider = "hash"', 'provider = "hash"\non_battery = "pause"'
    )
    service.notes(3)
    service.start()
    until(lambda: service.status()["state"] == "paused")
    assert service.is_right()
    assert len(service.paths()) == 3


def test_without_mains_the_backlog_waits_again_once_sync_has_returned(
    service: Service, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("anchord.daemon.writer.loop.on_battery", lambda: True)
    monkeypatch.setattr("anchord.daemon.writer.loop._SUPERVISE_S", 0.05)
    service.settings = SETTINGS.replace(
        'provider = "hash"', 'provider = "hash"\non_battery = "pause"'
    )
    service.notes(3)
    service.start().sync()
    for _ in range(3):
        service.sync()
    until(lambda: service.pipeline.backlog_waits_for_mains)
    service.pipeline.submit(service.writer.catalog.mark_all_for_reread).result()
    service.pipeline.submit(lambda: service.pipeline.work_queue.reconcile("docs")).result()
    until(lambda: service.status()["state"] == "paused")
    assert service.status()["pending"] == 3


@pytest.mark.parametrize("lane", ["backlog", "saved"])
def test_pause_does_not_wait_for_the_files_that_are_queued(
    service: Service, monkeypatch: pytest.MonkeyPatch, lane: str
) -> None:
    """The call comes while the third of 100 files is read: the rest stays in the queue."""
    read: list[object] = []
    service.notes(100)
    service.start().sync()
    real = FolderFiles.read

    def reading(files: FolderFiles, origin: RootedPath) -> object:
        if origin.path.endswith(".md"):
            read.append(origin)
        if len(read) == 3:
            service.pipeline.set_paused(paused=True)
        return real(files, origin)

    service.pipeline.set_paused(paused=True)
    if lane == "backlog":
        service.pipeline.submit(service.writer.catalog.mark_all_for_reread).result()
        service.pipeline.submit(lambda: service.pipeline.work_queue.reconcile("docs")).result()
        assert service.pipeline.work_queue.files.count(Urgency.LATER) == 100
    else:
        service.notes(100, "saved/")
        until(lambda: service.pipeline.work_queue.file_count == 100)
    monkeypatch.setattr(FolderFiles, "read", reading)
    service.pipeline.set_paused(paused=False)
    until(lambda: service.pipeline.paused and not service.pipeline.work.root_name)
    assert len(read) == 3
    monkeypatch.undo()
    service.pipeline.set_paused(paused=False)
    service.sync()
    assert len(service.paths()) == (100 if lane == "backlog" else 200)


def test_by_default_a_battery_changes_nothing(
    service: Service, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("anchord.daemon.writer.loop.on_battery", lambda: True)
    service.notes(3)
    service.start()
    until(lambda: len(service.paths()) == 3)
    assert service.status()["on_battery"] is False


@pytest.mark.parametrize(
    ("plugged", "expected"),
    [(True, False), (False, True), (None, False), ("no battery", False)],
    ids=str,
)
def test_only_a_battery_without_mains_counts(
    monkeypatch: pytest.MonkeyPatch,
    plugged: object,
    expected: bool,  # noqa: FBT001
) -> None:
    class Battery:
        power_plugged = plugged

    monkeypatch.setattr(
        psutil,
        "sensors_battery",
        lambda: None if plugged == "no battery" else Battery(),
        raising=False,
    )
    assert on_battery() is expected
