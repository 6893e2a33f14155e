"""Counting tokens: every one of them, no special ones, and each text once."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from tokenizers import Tokenizer
from tokenizers.models import WordLevel
from tokenizers.pre_tokenizers import Whitespace
from tokenizers.processors import TemplateProcessing

from anchord.adapters import tokenizer as tokenizer_module
from anchord.adapters.models import find_model
from anchord.adapters.tokenizer import TokenCounter


@pytest.fixture
def small(tmp_path: Path) -> TokenCounter:
    """Give a tokenizer of words that cuts at 3, pads to 5 and adds two special tokens, when it is asked to."""
    made = Tokenizer(WordLevel({"[CLS]": 0, "[SEP]": 1, "[UNK]": 2, "word": 3}, unk_token="[UNK]"))  # noqa: S106 - a token
    made.pre_tokenizer = Whitespace()
    made.post_processor = TemplateProcessing(single="[CLS] $A [SEP]", special_tokens=[("[CLS]", 0), ("[SEP]", 1)])
    made.enable_truncation(3)
    made.enable_padding(length=5)
    file = tmp_path / "tokenizer.json"
    made.save(str(file))
    return TokenCounter(file)


class Asked:
    """Stands before a tokenizer and keeps what it is asked."""

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


def test_the_memory_is_bounded_and_counts_stay_right(small: TokenCounter, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tokenizer_module, "_CACHED_TEXTS", 5)
    for n in range(1, 40):
        assert small(["word " * n, "word", ""]) == [n, 1, 0]
        assert len(small._counts) <= 5 + 3


def test_the_bundled_tokenizer_counts_past_its_own_truncation() -> None:
    count = TokenCounter(find_model("all-MiniLM-L6-v2").tokenizer)
    assert count(["hello world", "hello " * 1_000, "日本", "a\tb\n"]) == [2, 1_000, 2, 2]
