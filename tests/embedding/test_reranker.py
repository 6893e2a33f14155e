"""A CrossEncoder in a process of its own: a tiny one with random weights, made here.

Tests that start a process again are slow: each start takes 8 s of CPU. That a process which died or was ended is started
again is also tested in `ipc/` and `workers/`, with processes that load no model.
"""

from __future__ import annotations

import shutil
import time
from collections.abc import Iterator
from contextlib import closing, suppress
from pathlib import Path

import psutil
import pytest

from anchord.embedding.model_files import find_model
from anchord.embedding.reranker import CrossEncoderReranker
from anchord.errors import EmbedderError

TEXTS = ["the cat sleeps", "rates rise", "onions in the soup"]


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Give a folder with a CrossEncoder of one layer."""
    import torch  # noqa: PLC0415 - likewise
    from transformers import BertConfig, BertForSequenceClassification  # noqa: PLC0415 - half a second

    folder = tmp_path_factory.mktemp("cross")
    bundled = find_model("all-MiniLM-L6-v2").tokenizer.parent
    for name in ("tokenizer.json", "tokenizer_config.json", "vocab.txt", "special_tokens_map.json"):
        if (bundled / name).exists():
            shutil.copy(bundled / name, folder / name)
    size = {
        "hidden_size": 16,
        "num_hidden_layers": 1,
        "num_attention_heads": 2,
        "intermediate_size": 32,
    }
    config = BertConfig.from_dict(
        {**size, "num_labels": 1, "initializer_range": 1.0}
    )  # So that texts get different scores.
    torch.manual_seed(1)
    BertForSequenceClassification(config).save_pretrained(folder)
    return folder


@pytest.fixture(scope="module")
def reranker(model: Path) -> Iterator[CrossEncoderReranker]:
    """Give a running one."""
    with closing(CrossEncoderReranker(str(model), idle_s=600.0, load_wait_s=120.0)) as made:
        yield made


@pytest.mark.slow
def test_each_text_gets_the_same_number_every_time(reranker: CrossEncoderReranker) -> None:
    first = reranker.score_texts("a question", TEXTS)
    assert len(set(first)) == len(TEXTS)
    assert reranker.score_texts("a question", TEXTS) == pytest.approx(first)
    assert reranker.score_texts("a question", TEXTS[:1]) == pytest.approx(first[:1], abs=1e-4)


@pytest.mark.slow
def test_a_process_that_was_killed_is_an_error_and_the_next_question_is_answered(
    model: Path, reranker: CrossEncoderReranker
) -> None:
    """Reuses the process of the test before: each start takes 8 s of CPU."""
    reranker.score_texts("a question", TEXTS)
    running = children(model)
    assert len(running) == 1
    for child in running:
        child.kill()
        child.wait()
    assert len(reranker.score_texts("a question", TEXTS)) == len(TEXTS)


@pytest.mark.slow
def test_it_ends_after_a_while_without_a_question_and_starts_again(
    model: Path, reranker: CrossEncoderReranker, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(reranker, "_idle_s", 0.2)
    reranker.score_texts("a question", TEXTS)
    deadline = time.monotonic() + 30
    while children(model):
        assert time.monotonic() < deadline
        time.sleep(0.05)
    assert len(reranker.score_texts("a question", TEXTS)) == len(TEXTS)


@pytest.mark.slow
def test_a_model_that_cannot_be_loaded_says_why(model: Path, tmp_path: Path) -> None:
    broken = tmp_path / "broken"
    shutil.copytree(model, broken)
    (broken / "model.safetensors").write_bytes(b"no weights")
    with (
        closing(CrossEncoderReranker(str(broken), 600.0, load_wait_s=120.0)) as reranker,
        pytest.raises(EmbedderError, match="cannot be loaded"),
    ):
        reranker.score_texts("a question", TEXTS)
    assert "cannot be loaded" in reranker.problem
    with pytest.raises(EmbedderError, match="cannot be loaded"):
        reranker.score_texts("a question", TEXTS)
    assert not children(broken)  # It is not loaded again at once.


@pytest.mark.slow
def test_a_search_does_not_wait_for_a_model_that_is_being_loaded(model: Path) -> None:
    with closing(CrossEncoderReranker(str(model), 600.0)) as reranker:
        with pytest.raises(EmbedderError, match="is being loaded"):
            reranker.score_texts("a question", TEXTS)
        assert reranker.problem == ""


def test_a_model_that_is_not_here_or_could_hold_code_is_a_problem(tmp_path: Path) -> None:
    nowhere = CrossEncoderReranker(str(tmp_path / "none"), idle_s=600.0, load_wait_s=120.0)
    assert "not on this machine" in nowhere.problem
    with pytest.raises(EmbedderError, match="not on this machine"):
        nowhere.score_texts("a question", TEXTS)
    pickled = tmp_path / "pickled"
    pickled.mkdir()
    for name in ("config.json", "tokenizer.json", "model.safetensors"):
        (pickled / name).write_text("{}")
    assert CrossEncoderReranker(str(pickled), idle_s=600.0).problem == ""
    (pickled / "model.safetensors").rename(pickled / "pytorch_model.bin")
    assert "has no model" in CrossEncoderReranker(str(pickled), idle_s=600.0).problem


def children(folder: Path) -> list[psutil.Process]:
    found = []
    for child in psutil.Process().children():
        with suppress(psutil.Error):  # It is just ending.
            found += [child] if str(folder) in child.cmdline() else []
    return found
