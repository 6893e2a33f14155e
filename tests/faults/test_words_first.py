"""Words first in the daemon: what a slow model leaves to make never hides a word, and is never forgotten."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest
from faults.service import Service, until

from anchord.core.types import Vector
from anchord.daemon.writer import backoff, vector_queue
from anchord.embedding.hash_embedder import HashEmbedder
from anchord.errors import EmbedderError, TimeoutExpiredError
from anchord.index import commit
from anchord.index.generation import RECHUNK

PATIENCE_S = 60.0


class Gate:
    """A model that makes a text when it may, one at a time."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        """Let nothing through."""
        self.permits = threading.Semaphore(0)
        self.is_closing = False
        self.is_awaited = False
        """Whether a text has waited here: the writer thread makes vectors."""
        monkeypatch.setattr(commit, "DIRECT_TEXTS", -1)
        monkeypatch.setattr(commit, "DIRECT_S", 0.0)
        monkeypatch.setattr(HashEmbedder, "is_immediate", False)
        gate = self

        def embed_batches(
            self: HashEmbedder, texts: Sequence[str]
        ) -> Iterator[Mapping[int, Vector]]:
            for number, text in enumerate(texts):
                gate.wait()
                yield {number: self.embed([text])[0]}

        monkeypatch.setattr(HashEmbedder, "embed_batches", embed_batches)

    def wait(self) -> None:
        """Wait until another text may be made."""
        self.is_awaited = True
        while not self.permits.acquire(timeout=0.02):
            if self.is_closing:
                raise EmbedderError("the model was stopped", "")

    def open(self, texts: int = 10_000) -> None:
        """Let so many texts through."""
        self.permits.release(texts)

    def close(self) -> None:
        """Let nothing more through; what waits fails."""
        self.is_closing = True

    def reset(self) -> None:
        """Let nothing through, and wait again."""
        self.is_closing, self.permits = False, threading.Semaphore(0)


@pytest.fixture
def gate(monkeypatch: pytest.MonkeyPatch) -> Gate:
    return Gate(monkeypatch)


@pytest.fixture
def slow(tmp_path: Path, gate: Gate) -> Iterator[Service]:
    """Give a daemon of 20 notes whose model has made nothing yet."""
    service = Service(tmp_path)
    service.notes(20)
    service.start()
    assert service.ask("sync", words=True)["synced"]
    yield service
    gate.close()
    service.stop()


def search(service: Service, query: str, mode: str = "text") -> Any:  # noqa: ANN401 - any JSON value
    return service.ask("search", query=query, mode=mode)


def found(service: Service, query: str, mode: str = "text") -> set[str]:
    groups = search(service, query, mode)["groups"]
    return {Path(hit["path"]).name for group in groups for hit in group}


def test_words_are_found_before_a_vector_is_made_and_the_answer_says_so(slow: Service) -> None:
    assert found(slow, "note 007") >= {"007.md"}
    answer = search(slow, "note 007", "hybrid")
    assert "words find all of what is indexed, meaning 0 % of it so far" in answer["note"]
    assert answer["coverage"]["without_vector"] == 20
    assert answer["groups"]
    assert found(slow, "note 007", "vector") == set()
    status = slow.status()
    assert (status["without_vector"], status["chunks"], status["pending"]) == (20, 20, 0)
    assert status["state"] == "indexing"


def test_what_a_query_finds_gets_its_vectors_next(
    tmp_path: Path, gate: Gate, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(vector_queue, "FILES_PER_FILL", 4)
    service = Service(tmp_path)
    service.notes(20)
    service.start()
    assert service.ask("sync", words=True)["synced"]
    until(lambda: gate.is_awaited)
    # 019 is the newest and among the four that the model is given first; this is none of them.
    ((hit,),) = service.ask("search", query="003", mode="text", k=1)["groups"]
    assert hit["path"] == "003.md"
    gate.open(2)
    until(lambda: "003.md" in found(service, "note 003", "vector"))
    assert service.status()["without_vector"] >= 20 - 2
    gate.close()
    service.stop()


def test_sync_waits_for_both(slow: Service, gate: Gate) -> None:
    assert not slow.pipeline.wait_for_sync(0.3)
    gate.open()
    slow.sync()
    assert slow.status()["without_vector"] == 0
    assert slow.embedded() == 20
    assert found(slow, "note 007", "vector")
    assert "meaning" not in search(slow, "note 007", "hybrid")["note"]
    assert slow.is_right()


def test_a_save_is_found_by_words_while_vectors_are_made(slow: Service, gate: Gate) -> None:
    queue = slow.pipeline.work_queue
    until(lambda: gate.is_awaited)  # Before that the save would be indexed at once.
    slow.write("saved.md", "# Saved\n\nThe okapi.\n")
    until(lambda: queue.has_fresh_due(time.monotonic()))
    gate.open(1)
    until(lambda: found(slow, "okapi") == {"saved.md"})
    assert slow.status()["without_vector"] > 1
    gate.open()
    assert slow.is_right()
    assert slow.embedded() == 21


def test_the_next_daemon_goes_on_where_the_last_one_stopped(slow: Service, gate: Gate) -> None:
    gate.open(5)
    until(lambda: gate.permits._value == 0)
    gate.close()
    slow.stop()
    gate.reset()
    slow.start()
    assert slow.ask("sync", words=True)["synced"]
    left = slow.status()["without_vector"]
    assert left == 15
    gate.open()
    assert slow.is_right()
    assert slow.embedded() == left


def test_files_that_change_or_go_before_their_vectors_leave_nothing(
    slow: Service, gate: Gate
) -> None:
    slow.write("003.md", "# Other\n\nWords of another kind.\n")
    (slow.folder / "004.md").unlink()
    (slow.folder / "005.md").rename(slow.folder / "moved.md")
    assert slow.ask("sync", words=True)["synced"]
    gate.open()
    assert slow.is_right()
    assert slow.status()["without_vector"] == 0


def test_what_changed_is_found_by_meaning_while_its_vectors_wait(slow: Service, gate: Gate) -> None:
    gate.open()
    slow.sync()
    gate.reset()
    for number in range(20):
        file = slow.folder / f"{number:03}.md"
        slow.write(file.name, f"{file.read_text('utf-8')}\nAnother line.\n")
    assert slow.ask("sync", words=True)["synced"]
    answer = search(slow, "note 7 note 7", "vector")
    assert answer["groups"][0][0]["path"] == "007.md"
    assert "Another line." in answer["groups"][0][0]["text"]
    assert answer["coverage"]["without_vector"] == 20
    gate.close()
    slow.stop()
    gate.reset()
    slow.start()  # The next daemon knows what is missing.
    assert slow.ask("sync", words=True)["synced"]
    assert found(slow, "note 7 note 7", "vector") >= {"007.md"}
    assert slow.status()["without_vector"] == 20
    gate.open()
    assert slow.is_right()
    assert (slow.status()["without_vector"], slow.embedded()) == (0, 20)


def test_a_root_that_is_removed_takes_its_waiting_vectors_along(slow: Service) -> None:
    result: list[bool] = []
    waiting = threading.Thread(target=lambda: result.append(slow.pipeline.wait_for_sync(30)))
    waiting.start()
    until(lambda: slow.pipeline._barrier.has_waiters)
    slow.ask("roots.remove", name="docs")
    waiting.join(PATIENCE_S)
    assert result == [True]
    assert slow.status()["without_vector"] == 0


def test_verify_makes_the_vectors_first(slow: Service, gate: Gate) -> None:
    gate.open()
    answer = slow.ask("verify", repair=False, vectors=None)
    assert (answer["ok"], answer["without_vector"], answer["chunks"]) == (True, 0, 20)


def test_a_new_index_is_complete_when_it_takes_over(slow: Service, gate: Gate) -> None:
    gate.open()
    slow.ask("rebuild")
    until(lambda: slow.status()["generation"] is None)
    assert slow.is_right()
    assert slow.status()["without_vector"] == 0


def test_a_rechunked_copy_of_an_index_without_vectors_gets_them(slow: Service, gate: Gate) -> None:
    begun = slow.pipeline.submit(lambda: slow.pipeline.builds.start(RECHUNK))
    gate.open(1)
    begun.result(PATIENCE_S)
    gate.open()
    until(lambda: slow.status()["generation"] is None)
    assert slow.embedded() == 20
    assert slow.is_right()
    assert slow.status()["without_vector"] == 0


def test_pause_leaves_the_vectors_for_later(slow: Service, gate: Gate) -> None:
    slow.pipeline.set_paused(paused=True)
    gate.open()
    until(lambda: not slow.pipeline.work.root_name)
    left = slow.status()["without_vector"]
    assert left >= 19
    slow.pipeline.set_paused(paused=False)
    assert slow.is_right()


@pytest.mark.parametrize("direct_texts", [-1, 16])
def test_while_the_model_fails_new_saves_are_found_by_words(
    slow: Service, gate: Gate, monkeypatch: pytest.MonkeyPatch, direct_texts: int
) -> None:
    monkeypatch.setattr(commit, "DIRECT_TEXTS", direct_texts)
    monkeypatch.setattr(backoff, "_FIRST_PAUSE_S", 60.0)
    slow.pipeline.work.model_backoff.clear_reason()
    gate.close()
    until(lambda: slow.pipeline.work.model_problem)
    assert slow.pipeline.blocked_reason == ""
    assert "no vectors can be made: the model was stopped" in slow.reasons()
    slow.write("new.md", "# New\n\nIt tells of quokkas.\n")
    assert slow.ask("sync", words=True)["synced"]
    assert found(slow, "quokkas") == {"new.md"}
    with pytest.raises(TimeoutExpiredError, match=r"wait for vectors \(the model was stopped\)"):
        slow.ask("sync", timeout=0.1)
    gate.reset()
    gate.open()
    assert slow.is_right(), "a call that waits for vectors ends the pause of the model"
    assert slow.reasons() == ""
    assert slow.embedded() == 21


@pytest.mark.slow
def test_constant_saves_do_not_starve_vectors(slow: Service, gate: Gate) -> None:
    gate.open()
    result: list[bool] = []
    waiting = threading.Thread(target=lambda: result.append(slow.pipeline.wait_for_sync(60)))
    waiting.start()
    number = 0
    while not result and number < 3_000:
        slow.write(f"busy{number % 20}.md", f"# Busy\n\nAgain {number}.\n")
        number += 1
        time.sleep(0.01)
    waiting.join(PATIENCE_S)
    assert result == [True]
