"""A new save interrupts the embedding of a backlog: nothing is lost or embedded twice."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from functools import partial

import pytest
from scenarios.conftest import Index

from anchord.core.types import Action, Vector
from anchord.embedding.hash_embedder import HashEmbedder
from anchord.errors import EmbedderError

_FILES = 12


class Stepwise(HashEmbedder):
    """Embeds one text after another, records each, and fails where a test says so."""

    def __init__(self) -> None:
        """Start without a failure."""
        super().__init__()
        self.seen: Counter[str] = Counter()
        self.fails_at = 0

    def has_made(self, texts: int) -> bool:
        """Return whether this many texts were embedded."""
        return sum(self.seen.values()) >= texts

    def embed_batches(self, texts: Sequence[str]) -> Iterator[Mapping[int, Vector]]:
        """Yield one at a time."""
        for number, text in enumerate(texts):
            if self.fails_at and sum(self.seen.values()) == self.fails_at:
                self.fails_at = 0
                raise EmbedderError("it died")
            self.seen[text] += 1
            yield {number: self.embed([text])[0]}


@pytest.fixture
def stepwise(index: Index) -> Stepwise:
    """Return an index whose embedder can be stopped after each text."""
    index.close()
    made = index.embedder = Stepwise()
    index.open()
    for n in range(_FILES):
        index.write(f"{n}.md", f"# Note {n}\n\nWords of note {n}.\n")
    return made


def test_what_was_embedded_before_an_interruption_is_not_embedded_again(
    index: Index, stepwise: Stepwise
) -> None:
    due = index.indexer.reconcile("tree").paths_due
    for wanted in (3, 7):
        outcomes = list(index.indexer.index(due, partial(stepwise.has_made, wanted)))
        assert [o for o in outcomes if o.action is Action.INDEXED] == []
    assert sum(stepwise.seen.values()) == 7
    assert index.store.count_rows() == 0, (
        "what is left has no rows, and no intent that would need repair"
    )
    outcomes = index.sync()
    assert len(outcomes) == _FILES
    assert set(stepwise.seen.values()) == {1}
    assert sum(outcome.embedded for outcome in outcomes) == _FILES, (
        "each text counts, whenever it was embedded"
    )
    assert not index.verify().differences


def test_once_it_is_interrupted_nothing_after_it_is_done(index: Index, stepwise: Stepwise) -> None:
    due = index.indexer.reconcile("tree").paths_due
    answers = iter([*[False] * (_FILES + 2), True])
    assert list(index.indexer.index(due, lambda: next(answers, False))) == []
    assert sum(stepwise.seen.values()) == 3


def test_an_interruption_after_the_last_text_is_none(index: Index, stepwise: Stepwise) -> None:
    due = index.indexer.reconcile("tree").paths_due
    outcomes = list(index.indexer.index(due, lambda: sum(stepwise.seen.values()) >= _FILES))
    assert len(outcomes) == _FILES


def test_an_embedder_that_dies_in_a_batch_costs_no_text_twice(
    index: Index, stepwise: Stepwise
) -> None:
    stepwise.fails_at = 5
    with pytest.raises(EmbedderError):
        index.sync()
    assert len(index.sync()) == _FILES
    assert set(stepwise.seen.values()) == {1}
    assert not index.verify().differences


def test_a_large_file_is_kept_while_it_is_embedded(
    index: Index, stepwise: Stepwise, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("anchord.index.commit.TEXTS_PER_COMMIT_RANGE", (4, 4))
    index.write("large.md", "\n\n".join(f"# Part {n}\n\n{f'word{n} ' * 150}" for n in range(20)))
    stepwise.fails_at = 30
    with pytest.raises(EmbedderError):
        index.sync()
    index.close()
    index.open()  # As after a crash: only the files on disk remain.
    index.sync()
    assert max(stepwise.seen.values()) == 1
    assert not index.verify().differences
