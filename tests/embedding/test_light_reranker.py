"""The reranker's process, with a program in its place that loads no model: it starts in a tenth of a second."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from anchord.embedding import reranker as reranker_module
from anchord.embedding.reranker import CrossEncoderReranker
from anchord.errors import EmbedderError

PROGRAM = """
import os, sys
from anchord.ipc.framing import read_frame, write_frame

write_frame(sys.stdout.buffer, {loaded})
while (request := read_frame(sys.stdin.buffer)) is not None:
    if request["query"] == "die":
        os._exit(1)
    if request["query"] == "fail":
        write_frame(sys.stdout.buffer, {{"error": "no memory"}})
    else:
        write_frame(sys.stdout.buffer, {{"scores": [float(len(text)) for text in request["texts"]]}})
"""
TEXTS = ["a", "bbb"]
SCORES = [1.0, 3.0]


@pytest.fixture
def reranked_by(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Iterator[Callable[..., CrossEncoderReranker]]:
    """Return a function that makes a reranker whose process says `loaded` first."""
    made: list[CrossEncoderReranker] = []

    def make(loaded: str = "{}", idle_s: float = 600.0) -> CrossEncoderReranker:
        (tmp_path / "a_reranker.py").write_text(PROGRAM.format(loaded=loaded))
        made.append(CrossEncoderReranker(str(tmp_path), idle_s, load_wait_s=30.0))
        return made[0]

    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    monkeypatch.setattr(reranker_module, "_WORKER_MODULE", "a_reranker")
    monkeypatch.setattr(reranker_module, "find_model_folder", Path)
    yield make
    for each in made:
        each.close()


def test_one_process_answers_all_questions(
    reranked_by: Callable[..., CrossEncoderReranker],
) -> None:
    reranker = reranked_by()
    assert reranker.score_texts("q", TEXTS) == SCORES
    first = reranker._process
    assert reranker.score_texts("q", TEXTS[:1]) == SCORES[:1]
    assert reranker._process is first


def test_a_process_that_ends_is_an_error_and_the_next_question_starts_another(
    reranked_by: Callable[..., CrossEncoderReranker],
) -> None:
    reranker = reranked_by()
    with pytest.raises(EmbedderError, match=r"the reranker .* ended before it answered"):
        reranker.score_texts("die", TEXTS)
    assert reranker.score_texts("q", TEXTS) == SCORES


def test_a_process_that_was_killed_between_two_questions_is_replaced(
    reranked_by: Callable[..., CrossEncoderReranker],
) -> None:
    reranker = reranked_by()
    reranker.score_texts("q", TEXTS)
    assert reranker._process
    reranker._process.popen.kill()
    reranker._process.popen.wait()
    assert reranker.score_texts("q", TEXTS) == SCORES


def test_a_model_that_cannot_be_loaded_says_why(
    reranked_by: Callable[..., CrossEncoderReranker],
) -> None:
    reranker = reranked_by(loaded='{"error": "bad weights"}')
    with pytest.raises(EmbedderError, match=r"cannot be loaded: bad weights"):
        reranker.score_texts("q", TEXTS)
    assert reranker._process is None


def test_a_question_that_fails_keeps_the_process(
    reranked_by: Callable[..., CrossEncoderReranker],
) -> None:
    reranker = reranked_by()
    with pytest.raises(EmbedderError, match=r"failed \(no memory\)"):
        reranker.score_texts("fail", TEXTS)
    first = reranker._process
    assert reranker.score_texts("q", TEXTS) == SCORES
    assert reranker._process is first


def test_it_ends_after_a_while_without_a_question_and_starts_again(
    reranked_by: Callable[..., CrossEncoderReranker],
) -> None:
    reranker = reranked_by(idle_s=0.05)
    reranker.score_texts("q", TEXTS)
    first = reranker._process
    deadline = time.monotonic() + 30
    assert first
    while first.is_alive:
        assert time.monotonic() < deadline
        time.sleep(0.01)
    assert reranker.score_texts("q", TEXTS) == SCORES
