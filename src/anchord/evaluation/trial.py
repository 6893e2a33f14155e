"""One way of chunking, embedding and searching -> its scores on questions, and what edits cost under it.

Everything is the program's own: the chunker, the table with its two searches in a temporary folder, the fusion.
"""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

from anchord.adapters import lance_upkeep
from anchord.adapters.lance import LanceStore
from anchord.chunkers.layout import Count
from anchord.config import Config, chunking_by_kind
from anchord.core.recipe import Recipe, plans_of
from anchord.core.wording import Wording
from anchord.evaluation.measures import DEPTH, Result, Scores, Wanted, mean, score
from anchord.evaluation.questions import LINK, Question
from anchord.model import Hit, Origin, Row, Spot, Vector
from anchord.ports import Embedder
from anchord.rows import Made, make_rows
from anchord.search import Question as Search
from anchord.search import Ways, find

FORMS = ("content", "heading", "path")
"""What is embedded: the text alone, with its nearest heading, with its whole header path."""
_ROOT = "eval"
_AT_ONCE = 256
_RESULTS = 2 * DEPTH


@dataclass(frozen=True, slots=True)
class Variant:
    """What is compared."""

    strategy: str = "anchored"
    form: str = "heading"
    mode: str = "hybrid"
    share: float | None = None
    """How much meaning counts in a hybrid search; None: as the program has it."""
    model: str = ""

    @property
    def name(self) -> str:
        """Return a name for a table."""
        fused = self.mode if self.mode != "hybrid" or self.share is None else f"hybrid {self.share:g}"
        return ", ".join(part for part in (self.strategy, self.form, fused, self.model) if part)


@dataclass(frozen=True, slots=True)
class Outcome:
    """What came out: scores by kind of question, and sizes."""

    variant: Variant
    by_kind: Mapping[str, Scores]
    chunks: int
    tokens: int
    """Of all embedded texts."""
    embeds_an_edit: float | None = None
    """Texts that a commit's change of one file makes anew, in the mean; None without a history."""


@dataclass(slots=True)
class Cutter:
    """Documents -> rows, by one strategy for one model's window."""

    config: Config
    window: int
    count: Count

    def cut(self, strategy: str, form: str, documents: Mapping[str, str]) -> list[Made]:
        """Return the rows of documents, each with the text that would be embedded."""
        plans = plans_of(self.window, {"": chunking_by_kind(self.config, strategy)})
        recipe = Recipe(plans, lambda: "", "")
        made = (
            made
            for path, text in documents.items()
            for made in make_rows(Origin(_ROOT, path), text.encode(), recipe, self.count)[0]
        )
        return [
            Made(replace(each.row, vector_key=each.row.id), each.start_line, each.end_line, formed(each, form)) for each in made
        ]


def formed(made: Made, form: str) -> str:
    """Return what is embedded of a chunk in a form."""
    if form == "heading":
        return made.embed_text
    return made.row.text if form == "content" or not made.row.header_path else f"{made.row.header_path}\n{made.row.text}"


@dataclass(slots=True)
class Bench:
    """Questions, and what texts were embedded before: the same text is embedded once for all variants of a model."""

    documents: Mapping[str, str]
    questions: Sequence[Question]
    cutter: Cutter
    embedder: Embedder
    progress: Callable[[int, int, str], None]
    _vectors: dict[str, Vector] = field(default_factory=dict)

    def run(self, variants: Sequence[Variant]) -> Iterator[Outcome]:
        """Yield the outcome of each variant; those that cut and embed alike share a table."""
        for strategy, form in dict.fromkeys((variant.strategy, variant.form) for variant in variants):
            made = self.cutter.cut(strategy, form, self.documents)
            tokens = sum(self.cutter.count([each.embed_text for each in made]))
            with tempfile.TemporaryDirectory(prefix="anchord-eval-") as folder:
                table = _Table.of(
                    folder, made, self.embedder.dimension, self._embedded([each.embed_text for each in made], strategy)
                )
                for variant in variants:
                    if (variant.strategy, variant.form) == (strategy, form):
                        yield Outcome(variant, self._scores(variant, table), len(made), tokens)

    def _embedded(self, texts: Sequence[str], what: str) -> list[Vector]:
        missing = [text for text in dict.fromkeys(texts) if text not in self._vectors]
        for at in range(0, len(missing), _AT_ONCE):
            self.progress(at, len(missing), f"embedding {what}")
            some = missing[at : at + _AT_ONCE]
            self._vectors.update(zip(some, self.embedder.embed(some), strict=True))
        return [self._vectors[text] for text in texts]

    def _scores(self, variant: Variant, table: _Table) -> dict[str, Scores]:
        found: dict[str, list[Scores]] = {}
        for number, question in enumerate(self.questions):
            self.progress(number, len(self.questions), f"asking {variant.name}")
            search = Search(question.text, variant.mode, vector_share=variant.share)
            hits, _ = find(search, Wording(question.text), Ways(table.store, self.embedder), table.spots_of)
            results = list(self._results(hits, question, table.rows))
            found.setdefault(question.kind, []).append(score(results, self._wanted(question, table)))
        return {kind: mean(scores) for kind, scores in found.items()}

    def _results(self, hits: Sequence[Hit], question: Question, rows: Mapping[str, Row]) -> Iterator[Result]:
        for hit in hits[:_RESULTS]:
            spot = hit.spot
            asks = question.kind == LINK and question.source
            if not (asks and asks[0] == spot.origin.path and spot.start_line <= asks[2] and asks[1] <= spot.end_line):
                yield Result(spot.origin.path, spot.start_line, spot.end_line, rows[hit.id].text)

    def _wanted(self, question: Question, table: _Table) -> Wanted:
        target = question.target
        lines = self.documents[target.path].split("\n")
        told = {n: lines[n - 1].strip() for n in range(target.first, min(target.last, len(lines)) + 1) if lines[n - 1].strip()}
        holding = sum(first <= target.last and target.first <= last for first, last in table.places.get(target.path, ()))
        return Wanted(target.path, told, holding)


@dataclass(slots=True)
class _Table:
    store: LanceStore
    rows: Mapping[str, Row]
    spots: Mapping[str, Spot]
    places: Mapping[str, list[tuple[int, int]]]

    @classmethod
    def of(cls, folder: str, made: Sequence[Made], dimension: int, vectors: Sequence[Vector]) -> _Table:
        store = LanceStore(folder, dimension, "")
        keyed = [(each.row, each) for each in made]
        store.upsert(
            [row for row, _ in keyed], {row.vector_key: vector for (row, _), vector in zip(keyed, vectors, strict=True)}
        )
        lance_upkeep.maintain(store)  # What no index has is read as a whole by every question.
        spots = {row.id: Spot(Origin(row.root, row.path), each.start_line, each.end_line) for row, each in keyed}
        places: dict[str, list[tuple[int, int]]] = {}
        for row, each in keyed:
            places.setdefault(row.path, []).append((each.start_line, each.end_line))
        return cls(store, {row.id: row for row, _ in keyed}, spots, places)

    def spots_of(self, ids: Sequence[str]) -> Mapping[str, Spot]:
        return {chunk: self.spots[chunk] for chunk in ids if chunk in self.spots}


def cost_of_edits(cutter: Cutter, variant: Variant, edits: Sequence[tuple[str, str, str]]) -> float | None:
    """Return how many texts an edit (path, before, after) makes anew, in the mean."""
    if not edits:
        return None
    made = 0
    for path, before, after in edits:
        old, new = (
            {each.embed_text for each in cutter.cut(variant.strategy, variant.form, {path: text})} for text in (before, after)
        )
        made += len(new - old)
    return made / len(edits)
