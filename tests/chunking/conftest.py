"""Fixtures of the chunker's tests: token counters, the default chunker and seeded prose."""

from __future__ import annotations

import zlib
from collections.abc import Callable, Sequence

import pytest

from anchord.chunking.chunker import split_into_chunks
from anchord.chunking.engine.layout import CountTokens
from anchord.chunking.plan import Plan
from anchord.core.types import Chunk, Document
from anchord.embedding.model_files import find_model
from anchord.embedding.tokenizer import TokenCounter

_WORDS = """
river stone light paper garden window letter morning silver bridge winter summer kitchen music travel forest
island market number picture station teacher village weather yellow animal corner doctor engine father
ground history island journey language machine nature office people question road school table uncle voice
""".split()  # noqa: SIM905 - a list of forty literals would hide the words


@pytest.fixture(scope="session")
def count() -> CountTokens:
    """Count as the bundled model does."""
    return TokenCounter(find_model("all-MiniLM-L6-v2").tokenizer)


@pytest.fixture(scope="session")
def words() -> CountTokens:
    """Count words: a tokenizer whose numbers can be seen in the text."""

    def count_words(texts: Sequence[str]) -> list[int]:
        return [len(text.split()) for text in texts]

    return count_words


@pytest.fixture(scope="session")
def markdown(count: CountTokens) -> Callable[[str], list[Chunk]]:
    """Cut markdown with the real counter and the default limits."""

    def cut_markdown(text: str) -> list[Chunk]:
        return split_into_chunks(Document(text=text, kind="markdown"), Plan(), count, "file")

    return cut_markdown


@pytest.fixture(scope="session")
def prose() -> Callable[[int, int], str]:
    """Return `number` words of one token each; each seed gives different words."""

    def write(number: int, seed: int) -> str:
        return " ".join(
            _WORDS[zlib.crc32(f"{seed} {i}".encode()) % len(_WORDS)] for i in range(number)
        )

    return write
