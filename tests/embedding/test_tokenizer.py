"""Counting tokens: without special tokens, each text once, one counter per tokenizer."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from itertools import chain
from pathlib import Path
from typing import Any

import pytest
from tokenizers import Tokenizer
from tokenizers.models import WordLevel
from tokenizers.pre_tokenizers import Whitespace
from tokenizers.processors import TemplateProcessing

from anchord.embedding import tokenizer as tokenizer_module
from anchord.embedding.model_files import find_model
from anchord.embedding.tokenizer import TokenCounter, shared_token_counter


def saved(folder: Path, *, special: bool = True) -> Path:
    """Save a tokenizer of words that cuts at 3 and pads to 5 and, if it is asked to, adds two special tokens."""
    made = Tokenizer(WordLevel({"[CLS]": 0, "[SEP]": 1, "[UNK]": 2, "word": 3}, unk_token="[UNK]"))  # noqa: S106 - a token
    made.pre_tokenizer = Whitespace()
    if special:
        made.post_processor = TemplateProcessing(
            single="[CLS] $A [SEP]", special_tokens=[("[CLS]", 0), ("[SEP]", 1)]
        )
    made.enable_truncation(3)
    made.enable_padding(length=5)
    file = folder / f"tokenizer-{special}.json"
    made.save(str(file))
    return file


@pytest.fixture
def small(tmp_path: Path) -> TokenCounter:
    """Give a tokenizer of words."""
    return TokenCounter(saved(tmp_path))


class Asked:
    """Wraps a tokenizer and records its calls."""

    def __init__(self, counter: TokenCounter) -> None:
        """Take its place."""
        self.batches: list[list[str]] = []
        self._real: Any = counter._tokenizer
        counter._tokenizer = self  # type: ignore[assignment]

    def encode_batch_fast(self, texts: list[str], **options: Any) -> list[Any]:  # noqa: ANN401 - as tokenizers has it
        """Pass on."""
        self.batches.append(sorted(texts))
        return list(self._real.encode_batch_fast(texts, **options))


def test_special_tokens_padding_and_truncation_are_left_out(small: TokenCounter) -> None:
    assert small(["word", "word word", "word " * 40, "other, word!", ""]) == [1, 2, 40, 4, 0]


def test_nothing_is_counted_for_nothing(small: TokenCounter) -> None:
    asked = Asked(small)
    assert small([]) == []
    assert small([""]) == [0]
    assert asked.batches == []


def test_each_text_is_counted_once(small: TokenCounter) -> None:
    asked = Asked(small)
    assert small(["word", "word word", "word"]) == [1, 2, 1]
    assert small(["word word", "word word word"]) == [2, 3]
    assert asked.batches == [["word", "word word"], ["word word word"]]


def test_the_memory_is_bounded_and_counts_stay_right(
    small: TokenCounter, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tokenizer_module, "_CACHED_TEXTS", 5)
    for n in range(1, 40):
        assert small(["word " * n, "word", ""]) == [n, 1, 0]
        assert len(small._counts) <= 5 + 3


def test_the_bundled_tokenizer_counts_past_its_own_truncation() -> None:
    count = TokenCounter(find_model("all-MiniLM-L6-v2").tokenizer)
    assert count(["hello world", "hello " * 1_000, "日本", "a\tb\n"]) == [2, 1_000, 2, 2]


# Once


def test_a_text_that_will_not_come_again_is_counted_alike(small: TokenCounter) -> None:
    texts = ["word", "word word", "word " * 40, "other, word!", "", "word"]
    assert small.count_without_caching(texts) == small(texts) == [1, 2, 40, 4, 0, 1]
    assert small.count_without_caching(tuple(texts)) == [1, 2, 40, 4, 0, 1]
    assert small.count_without_caching([]) == []


def test_a_text_that_will_not_come_again_is_not_remembered(small: TokenCounter) -> None:
    asked = Asked(small)
    assert [
        small.count_without_caching(["word word"]),
        small.count_without_caching(["word word"]),
        small(["word word"]),
    ] == [
        [2],
        [2],
        [2],
    ]
    assert asked.batches == [["word word"]] * 3


def test_many_threads_count_at_once(small: TokenCounter) -> None:
    def count(words: int) -> list[bool]:
        return [
            small.count_without_caching(["word " * words] * 20) == [words] * 20 for _ in range(20)
        ]

    with ThreadPoolExecutor(8) as pool:
        assert all(chain.from_iterable(pool.map(count, range(8))))


# Special tokens


def test_the_tokens_around_a_text_are_reported(tmp_path: Path) -> None:
    assert TokenCounter(saved(tmp_path)).special_token_count == 2
    assert TokenCounter(saved(tmp_path, special=False)).special_token_count == 0


def test_the_bundled_tokenizer_needs_two_around_a_text() -> None:
    assert TokenCounter(find_model("all-MiniLM-L6-v2").tokenizer).special_token_count == 2


# One counter per tokenizer


def test_a_tokenizer_is_loaded_once_for_all_who_ask(tmp_path: Path) -> None:
    file, other = saved(tmp_path), saved(tmp_path, special=False)
    assert shared_token_counter(file) is shared_token_counter(Path(str(file)))
    assert shared_token_counter(file) is not shared_token_counter(other)
    assert [
        shared_token_counter(file).special_token_count,
        shared_token_counter(other).special_token_count,
    ] == [2, 0]
    assert shared_token_counter(file)(["word word"]) == [2]
