"""Real files of every format, where available: all are read, and chosen questions find their exchange."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest
from conversations.conftest import ROOT, Talks

from anchord.core.types import SearchFilters

SAMPLES = Path(__file__).resolve().parents[2].parent / "shared" / "samples"
pytestmark = pytest.mark.skipif(
    not SAMPLES.exists(), reason="the samples are beside the repository only where it is developed"
)

FOUND = [
    (
        "stdin consumption is limiting",
        "claude-code",
        "hmm, I feel like this stdin consumption is limiting",
    ),
    ("PostgreSQL over MongoDB", "claude-code", "Why PostgreSQL over MongoDB?"),
    ("Add rate limiting", "codex", "Add rate limiting"),
    ("setup.py dependencies docker", "slack", "what should setup.py do?"),
    ("theme oauth selector", "pi", "read packages/coding-agent/docs/theme.md in full"),
    ("help me with Go", "opencode", "Hello, help me with Go"),
    ("login bug", "gemini-cli", "Fix the login bug"),
    ("capital of Germany", "ai-studio", "And of Germany?"),
    ("rawText user content", "cursor", "User content from rawText"),
    ("analyze the attached fixture", "chatgpt", "Analyze the attached fixture"),
]
"""A query, and the exchange that must be the first result."""


@pytest.fixture(scope="module")
def samples(tmp_path_factory: pytest.TempPathFactory) -> Talks:
    base = tmp_path_factory.mktemp("samples")
    shutil.copytree(
        SAMPLES, base / "talks", ignore=shutil.ignore_patterns("aider")
    )  # 4 MB that say little more here.
    talks = Talks(base)
    talks.sync()
    return talks


def test_every_format_is_read_and_the_index_is_right(samples: Talks) -> None:
    assert {row.source for row in samples.rows() if row.source} == {
        "ai-studio", "chatgpt", "claude-ai", "claude-code", "codex", "cursor", "gemini-cli", "opencode", "pi", "slack",
        "vscode-copilot",
    }  # fmt: skip
    assert samples.is_right()
    assert samples.cost() == (0, 0, 0)


def test_only_what_no_reader_knows_is_refused(samples: Talks) -> None:
    refused = [
        failure.origin.path
        for failure in samples.catalogue.list_failures()
        if not failure.problem.is_partial
    ]
    assert {path.partition("/")[0] for path in refused} == {"hermes"}


def test_no_exchange_is_json(samples: Talks) -> None:
    raw = [
        row.text[:80]
        for row in samples.rows()
        if row.source and row.text.startswith('{"') and '"uuid"' in row.text
    ]
    assert raw == []


@pytest.mark.parametrize(("words", "source", "question"), FOUND)
def test_a_question_chosen_by_hand_finds_its_exchange(
    samples: Talks, words: str, source: str, question: str
) -> None:
    best, *_ = samples.store.search_by_words(words, 1, SearchFilters(root=ROOT))
    (row,) = samples.store.get_rows([best.id])
    assert row.source == source
    assert question in row.header_path


def test_an_edited_answer_of_chatgpt_is_left_out_and_the_active_one_found(samples: Talks) -> None:
    texts = [row.text for row in samples.rows() if row.session == "chatgpt-fixture-conversation"]
    assert any("Final answer." in text for text in texts)
    assert not any("Superseded answer." in text for text in texts)
