"""Score one way of chunking, embedding and searching on questions, and count what edits cost.

Chunking, the table with both its searches, and the fusion are those of the index itself; the table
is in a temporary folder.
"""

from __future__ import annotations

import tempfile
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import islice
from statistics import fmean

from anchord.chunking.engine.layout import CountTokens
from anchord.chunking.plan import build_plans
from anchord.config.effective import chunking_by_kind
from anchord.config.schema import Config
from anchord.core.ports import Embedder, TextScorer
from anchord.core.query_syntax import ParsedQuery
from anchord.core.types import ChunkLocation, Hit, RootedPath, Row, Vector
from anchord.index.recipe import Recipe
from anchord.index.rows import PreparedRow, prepare_rows
from anchord.search.backends import Backends
from anchord.search.evaluation.metrics import (
    NDCG_DEPTH,
    ExpectedSection,
    RetrievedChunk,
    Scores,
    mean_scores,
    score_results,
)
from anchord.search.evaluation.questions import LINK, EvaluationQuestion, Section
from anchord.search.judging import judge_of
from anchord.search.known_queries import KnownQueries
from anchord.search.ranking import SearchRequest, find_hits
from anchord.search.reranking import rerank_hits
from anchord.store.table.maintenance import maintain
from anchord.store.table.table import LanceStore

EMBED_FORMS = ("content", "heading", "path")
"""What is embedded of a chunk: its text; with its nearest heading; with its whole header path."""
_ROOT = "eval"
_EMBED_BATCH = 256
_MAX_RESULTS = 2 * NDCG_DEPTH


@dataclass(frozen=True, slots=True, kw_only=True)
class Variant:
    """A way of chunking, embedding and searching."""

    strategy: str = "anchored"
    form: str = "heading"
    """One of `EMBED_FORMS`."""
    mode: str = "hybrid"
    share: float | None = None
    """Weight of meaning in a hybrid search, 0 to 1; None for the default."""
    model: str = ""
    """Embedding model; "" for the configured one."""
    is_reranked: bool = False
    """Whether the configured reranker sorts the best hits again."""

    @property
    def name(self) -> str:
        """The variant in words, for tables."""
        mode = self.mode
        if mode == "hybrid" and self.share is not None:
            mode = f"hybrid {self.share:g}"
        reranked = "reranked" if self.is_reranked else ""
        parts = (self.strategy, self.form, mode, reranked, self.model)
        return ", ".join(filter(None, parts))


@dataclass(frozen=True, slots=True, kw_only=True)
class VariantResult:
    """The scores of a variant, and the sizes of its index."""

    variant: Variant
    by_kind: Mapping[str, Scores]
    """Mean scores by kind of question."""
    scores_by_kind: Mapping[str, Sequence[Scores]]
    """The scores of each question by its kind."""
    chunks_a_target: Mapping[str, float]
    """Mean number of chunks that hold some of what answers, by kind of question."""
    chunks: int
    tokens: int
    """Tokens of all embedded texts."""
    embeds_an_edit: float | None = None
    """Mean number of new texts to embed per edited file; None without a git history."""


@dataclass(slots=True)
class VariantChunker:
    """Chunks documents by any strategy, for one model's window."""

    config: Config
    window_tokens: int
    count_tokens: CountTokens

    def prepare_rows_of(
        self, strategy: str, form: str, documents: Mapping[str, str]
    ) -> list[PreparedRow]:
        """Return the chunks of documents as rows, each with the text to embed.

        Args:
            strategy: The chunking strategy.
            form: One of `EMBED_FORMS`.
            documents: Texts by paths.
        """
        chunking = chunking_by_kind(self.config, strategy=strategy)
        plans = build_plans(self.window_tokens, {"": chunking})
        recipe = Recipe(
            plans=plans,
            model_identity=lambda: "",
            chunking_tools_identity="",
        )
        rows: list[PreparedRow] = []
        for path, text in documents.items():
            origin = RootedPath(_ROOT, path)
            prepared, _ = prepare_rows(
                origin,
                text.encode(),
                recipe,
                self.count_tokens,
            )
            rows += [_with_form(row, form) for row in prepared]
        return rows


def _with_form(prepared: PreparedRow, form: str) -> PreparedRow:
    """Return a row that is embedded in a form, under a vector key of its own."""
    row = replace(prepared.row, vector_key=prepared.row.id)
    embed_text = embed_text_of(prepared, form)
    return replace(prepared, row=row, embed_text=embed_text)


def embed_text_of(row: PreparedRow, form: str) -> str:
    """Return the text to embed of a chunk in one of `EMBED_FORMS`."""
    if form == "heading":
        return row.embed_text
    text = row.row.text
    header_path = row.row.header_path
    if form == "content" or not header_path:
        return text
    return f"{header_path}\n{text}"


@dataclass(slots=True, kw_only=True)
class VariantBenchmark:
    """Runs variants of one model on questions. It embeds each text once, for all variants."""

    documents: Mapping[str, str]
    questions: Sequence[EvaluationQuestion]
    chunker: VariantChunker
    embedder: Embedder
    progress: Callable[[int, int, str], None]
    """Called with (steps done, steps in all, what is being done)."""
    reranker: TextScorer | None = None
    """The configured reranker; there is one for variants that are reranked."""
    _vectors: dict[str, Vector] = field(default_factory=dict)
    _queries: KnownQueries = field(init=False)

    def __post_init__(self) -> None:
        """Begin without any vector."""
        self._queries = KnownQueries(self.embedder)

    def run(self, variants: Sequence[Variant]) -> Iterator[VariantResult]:
        """Yield the result of each variant; those that chunk and embed alike share a table.

        Each table is in a temporary folder, which is deleted afterwards.
        """
        variants_by_index: defaultdict[tuple[str, str], list[Variant]] = defaultdict(list)
        for variant in variants:
            index = (variant.strategy, variant.form)
            variants_by_index[index].append(variant)
        for (strategy, form), group in variants_by_index.items():
            yield from self._run_on_one_table(strategy, form, group)

    def _run_on_one_table(
        self, strategy: str, form: str, variants: Sequence[Variant]
    ) -> Iterator[VariantResult]:
        """Yield the result of each variant that chunks and embeds in this way."""
        rows = self.chunker.prepare_rows_of(strategy, form, self.documents)
        texts = [row.embed_text for row in rows]
        tokens = sum(self.chunker.count_tokens(texts))
        with tempfile.TemporaryDirectory(prefix="anchord-eval-") as folder:
            vectors = self._embed_texts(texts, strategy)
            table = _Table.build(
                folder,
                rows,
                self.embedder.dimension,
                vectors,
            )
            targets = self._chunks_a_target(table)
            for variant in variants:
                scores = self._score_variant(variant, table)
                yield VariantResult(
                    variant=variant,
                    by_kind={kind: mean_scores(each) for kind, each in scores.items()},
                    scores_by_kind=scores,
                    chunks_a_target=targets,
                    chunks=len(rows),
                    tokens=tokens,
                )

    def _embed_texts(self, texts: Sequence[str], strategy: str) -> list[Vector]:
        distinct_texts = dict.fromkeys(texts)
        new_texts = [text for text in distinct_texts if text not in self._vectors]
        for start in range(0, len(new_texts), _EMBED_BATCH):
            self.progress(start, len(new_texts), f"embedding {strategy}")
            end = start + _EMBED_BATCH
            batch = new_texts[start:end]
            vectors = self.embedder.embed(batch)
            self._vectors.update(zip(batch, vectors, strict=True))
        return [self._vectors[text] for text in texts]

    def _score_variant(self, variant: Variant, table: _Table) -> dict[str, list[Scores]]:
        """Return the scores of each question by its kind."""
        backends = Backends(table.store, self._queries)
        scores_by_kind: defaultdict[str, list[Scores]] = defaultdict(list)
        for number, question in enumerate(self.questions):
            self.progress(number, len(self.questions), f"asking {variant.name}")
            request = SearchRequest(
                query=question.text,
                mode=variant.mode,
                vector_weight=variant.share,
            )
            parsed_query = ParsedQuery(question.text)
            hits: Sequence[Hit] = find_hits(
                request, parsed_query, backends, table.locate_chunks
            ).hits
            if variant.is_reranked and self.reranker:
                judge = judge_of(parsed_query, hits, backends, variant.mode)
                hits = rerank_hits(hits, judge, self.reranker, table.store).hits
            results = list(islice(_countable_results(hits, question, table.rows), _MAX_RESULTS))
            answers = (question.answer_section, *question.other_answers)
            expected = [self._expected_section(answer, table) for answer in answers]
            scores_by_kind[question.kind].append(score_results(results, *expected))
        return dict(scores_by_kind)

    def _chunks_a_target(self, table: _Table) -> dict[str, float]:
        counts: defaultdict[str, list[int]] = defaultdict(list)
        for question in self.questions:
            counts[question.kind].append(table.count_chunks(question.answer_section))
        return {kind: fmean(each) for kind, each in counts.items()}

    def _expected_section(self, section: Section, table: _Table) -> ExpectedSection:
        lines = self.documents[section.path].split("\n")
        section_lines = lines[section.first_line - 1 : section.last_line]
        text_by_line: dict[int, str] = {}
        for number, line in enumerate(section_lines, section.first_line):
            text = line.strip()
            if text:
                text_by_line[number] = text
        chunk_count = table.count_chunks(section)
        return ExpectedSection(section.path, text_by_line, chunk_count)


def _countable_results(
    hits: Sequence[Hit], question: EvaluationQuestion, rows: Mapping[str, Row]
) -> Iterator[RetrievedChunk]:
    """Yield the hits, but for those in the document that asks by a link."""
    asking = ""
    if question.kind == LINK and question.source_lines:
        asking = question.source_lines[0]
    for hit in hits:
        location = hit.location
        if location.origin.path != asking:
            yield RetrievedChunk(
                path=location.origin.path,
                first_line=location.start_line,
                last_line=location.end_line,
                text=rows[hit.id].text,
            )


@dataclass(slots=True)
class _Table:
    """The chunks of a variant in a table of the index's own kind."""

    store: LanceStore
    rows: Mapping[str, Row]
    """Rows by their ids."""
    locations: Mapping[str, ChunkLocation]
    """Locations by the rows' ids."""
    locations_by_path: Mapping[str, Sequence[ChunkLocation]]

    @classmethod
    def build(
        cls,
        folder: str,
        prepared_rows: Sequence[PreparedRow],
        dimension: int,
        vectors: Sequence[Vector],
    ) -> _Table:
        """Write rows and their vectors, which are in the same order, to a new table."""
        store = LanceStore(folder, dimension, "")
        rows = [prepared.row for prepared in prepared_rows]
        keys = [row.vector_key for row in rows]
        vector_by_key = dict(zip(keys, vectors, strict=True))
        store.upsert(rows, vector_by_key)
        maintain(store)  # Each question would read all rows that are in no index.
        location_by_id: dict[str, ChunkLocation] = {}
        locations_by_path: defaultdict[str, list[ChunkLocation]] = defaultdict(list)
        for prepared in prepared_rows:
            location = _location_of(prepared)
            location_by_id[prepared.row.id] = location
            locations_by_path[location.origin.path].append(location)
        return cls(
            store=store,
            rows={row.id: row for row in rows},
            locations=location_by_id,
            locations_by_path=locations_by_path,
        )

    def locate_chunks(self, ids: Sequence[str]) -> Mapping[str, ChunkLocation]:
        """Return the locations of those ids that are in the table."""
        return {chunk: self.locations[chunk] for chunk in ids if chunk in self.locations}

    def count_chunks(self, section: Section) -> int:
        """Count the chunks that hold some lines of a section."""
        locations = self.locations_by_path.get(section.path, ())
        return sum(_overlaps(location, section) for location in locations)


def _location_of(prepared: PreparedRow) -> ChunkLocation:
    origin = RootedPath(prepared.row.root, prepared.row.path)
    return ChunkLocation(origin, prepared.start_line, prepared.end_line)


def _overlaps(location: ChunkLocation, section: Section) -> bool:
    if location.start_line > section.last_line:
        return False
    return section.first_line <= location.end_line


def mean_embeds_per_edit(
    chunker: VariantChunker, variant: Variant, edits: Sequence[tuple[str, str, str]]
) -> float | None:
    """Return the mean number of texts that an edit makes new, which is what it costs to embed.

    Args:
        chunker: Chunks the documents before and after each edit.
        variant: Its strategy and form count.
        edits: (path, text before, text after) of each edit.

    Returns:
        The mean; None without edits.
    """
    if not edits:
        return None
    new_texts = 0
    for path, before, after in edits:
        old = _embed_texts_of(chunker, variant, path, before)
        new = _embed_texts_of(chunker, variant, path, after)
        new_texts += len(new - old)
    return new_texts / len(edits)


def _embed_texts_of(chunker: VariantChunker, variant: Variant, path: str, text: str) -> set[str]:
    rows = chunker.prepare_rows_of(variant.strategy, variant.form, {path: text})
    return {row.embed_text for row in rows}
