"""Query -> passages: found by meaning and by words, fused by scores, grouped by file, each text once.

Scores, not ranks, are fused (convex combination): a share of the cosine, scaled between the worst and the best found, and the
rest of the BM25 score over the best. Measured against reciprocal ranks in SEARCH.md: better or equal on every set. What was
said in conversations has a share of its own. Names of code and paths that the query spells out lift the chunks that hold them
letter by letter, the more of the query they are; a heading whose words are all in the query lifts what stands below it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field, replace
from typing import Protocol, TypeVar

from anchord.core.wording import Wording, parse_query
from anchord.errors import EmbedderError, UsageError
from anchord.model import Filters, Hit, Origin, Row, Scored, Spot, printable
from anchord.ports import Catalogue, Embedder, Reranker, Store
from anchord.sources.archived import is_archived

CANDIDATES = 100
VECTOR_SHARE = 0.3
"""Measured with the two below on seven sets of documents, against 0.4 and a quarter for any name: nDCG@10 of 362 sentences that
hold a link 46 for 38 (better on each set), of 350 without the link's own words 26 for 24, of 573 headings 91 for 83."""
TALK_VECTOR_SHARE = 0.35
EXACT_SHARE = 0.25
"""For a query of nothing but names; of less for one that has other words too."""
HEADING_SHARE = 0.15
MODES = ("hybrid", "vector", "text")
RERANKED = 30
_NAMES = 3
"""So many names of a query are looked for letter by letter: each is a look into every row."""
_NEIGHBOURS = 8


@dataclass(frozen=True, slots=True)
class Question:
    """What is searched for, how (`hybrid`, `vector` or `text`), where, and how the answer is to be laid out."""

    text: str
    mode: str = "hybrid"
    filters: Filters = field(default_factory=Filters)
    limit: int = 10
    """Groups; or passages, when it is a flat list."""
    flat: bool = False
    """Every chunk by itself, by its score."""
    expand: int = 0
    """Characters up to which each passage takes in what stands around it in its section."""
    vector_share: float | None = None
    """How much meaning counts against words; None: as was found best."""


@dataclass(frozen=True, slots=True)
class Passage:
    """Text of one file that is shown as one: a hit, with hits that touch it in the same section, and neighbours on request.

    `row` and `hit` are those of the best chunk; `ids` are all its chunks, in order.
    """

    row: Row
    hit: Hit
    start_line: int
    end_line: int
    text: str
    ids: tuple[str, ...]


Group = tuple[Passage, ...]


@dataclass(frozen=True, slots=True)
class Answer:
    """What was found: groups (of a file, or of an exchange) and in each passages, best first; and what is to be said of it."""

    groups: tuple[Group, ...]
    wording: Wording
    note: str = ""


A = TypeVar("A")
B = TypeVar("B")


class Both(Protocol):
    """Does two things that do not need each other, and returns what both gave."""

    def __call__(self, first: Callable[[], A], second: Callable[[], B], /) -> tuple[A, B]:
        """Do them; what one raises is raised."""


def one_after_another(first: Callable[[], A], second: Callable[[], B], /) -> tuple[A, B]:
    """Do two things in order."""
    return first(), second()


@dataclass(frozen=True, slots=True)
class Ways:
    """Where is looked: rows by words and by vectors, vectors by texts; both at once where the caller has threads."""

    store: Store
    embedder: Embedder
    both: Both = one_after_another


def search(question: Question, ways: Ways, catalogue: Catalogue, reranker: Reranker | None = None) -> Answer:
    """Answer with the lines that chunks have now; rows that left their file since are not among them.

    While no vector of the query can be had, a hybrid search goes by words alone, and says so. A reranker orders the best hits
    anew, but for a search by words.

    Raises:
        UsageError: there is nothing to look for. EmbedderError: a search by vectors alone cannot be done now.
    """
    wording = parse_query(question.text)
    if not wording.text and wording.without:
        raise UsageError("the query only says what must not be there", "add what to look for; quote what begins with `-`")
    hits, note = find(question, wording, ways, catalogue.spots)
    if reranker and question.mode != "text" and wording.text:
        try:
            hits = reranked(hits, wording.text, reranker, ways.store)
        except EmbedderError as error:
            note = note or f"not ordered anew: {error.message}"
    groups = [[hit] for hit in hits] if question.flat else grouped(hits)
    return Answer(tuple(_shown(groups[: question.limit], question, ways.store, catalogue)), wording, note)


def find(
    question: Question, wording: Wording, ways: Ways, spots_of: Callable[[Sequence[str]], Mapping[str, Spot]]
) -> tuple[list[Hit], str]:
    """Return all hits, best first, and what is to be said of them. `spots_of` says where chunks stand."""
    text, mode = wording.text, question.mode
    filters = replace(question.filters, phrases=wording.phrases, without=wording.without, prefixes=wording.prefixes)

    def by_meaning() -> tuple[Sequence[Scored], str]:
        if mode == "text" or not text:
            return (), ""
        try:
            return ways.store.nearest(ways.embedder.embed([text], query=True)[0], CANDIDATES, filters), ""
        except EmbedderError as error:
            if mode == "vector":
                raise
            return (), f"found by words alone: {error.message}"

    def by_words() -> tuple[Sequence[Scored], set[str]]:
        if mode == "vector":
            return (), set()
        exact = (ways.store.holding(name, CANDIDATES, filters) for name in wording.identifiers[:_NAMES])
        return ways.store.matching(text, CANDIDATES, filters), {chunk for chunks in exact for chunk in chunks}

    both = ways.both if mode == "hybrid" else one_after_another
    (near, note), (words, exact) = both(by_meaning, by_words)
    fixed = {"vector": 1.0, "text": 0.0}.get("text" if note else mode, question.vector_share)

    def share(spot: Spot) -> float:
        return fixed if fixed is not None else TALK_VECTOR_SHARE if is_archived(spot.origin.path) else VECTOR_SHARE

    spots = spots_of(list({found.id for found in (*near, *words)} | exact))
    named = {
        found.id: sure
        for found in words
        if found.id in spots
        and not is_archived(spots[found.id].origin.path)  # What titles of sessions tell is not measured.
        and (sure := wording.names(found.header_path.rpartition(" > ")[2]))
    }
    return fuse(near, words, spots, share, Lifts(exact, wording.naming, named)), note


def reranked(hits: Sequence[Hit], query: str, reranker: Reranker, store: Store) -> list[Hit]:
    """Order the best hits by how well their texts answer a query; the others follow as they are. Scores stay in order.

    Raises:
        EmbedderError: the reranker cannot be used now.
    """
    texts = {row.id: f"{row.header_path}\n{row.text}" for row in store.shown([hit.id for hit in hits[:RERANKED]])}
    best = [hit for hit in hits[:RERANKED] if hit.id in texts]
    scores = reranker.scores(query, [texts[hit.id] for hit in best]) if best else []
    ordered = [hit for _, hit in sorted(zip(scores, best, strict=True), key=lambda each: (-each[0], each[1].id))]
    steps = sorted((hit.score for hit in best), reverse=True)
    return [*(replace(hit, score=score) for hit, score in zip(ordered, steps, strict=True)), *hits[RERANKED:]]


@dataclass(frozen=True, slots=True)
class Lifts:
    """What a query spells out, and where it stands."""

    exact: AbstractSet[str] = frozenset()
    """Chunks that hold a name of it letter by letter."""
    naming: float = 1.0
    """The share of such names of the query's words."""
    named: Mapping[str, float] = field(default_factory=dict)
    """Chunks whose heading it speaks of, and how surely: above 0, up to 1."""


def fuse(
    near: Sequence[Scored],
    words: Sequence[Scored],
    spots: Mapping[str, Spot],
    vector_share: Callable[[Spot], float],
    lifts: Lifts = Lifts(),
) -> list[Hit]:
    """Combine two lists into one; a row that one way did not find counts as its worst there. What has no spot is left out."""
    cosines, scores = ({found.id: found.score for found in each} for each in (near, words))
    near_ranks, word_ranks = _ranks(near), _ranks(words)
    low, high = min(cosines.values(), default=0.0), max(cosines.values(), default=1.0)
    top = max(scores.values(), default=1.0)
    exact_share = EXACT_SHARE * lifts.naming if lifts.exact else 0.0
    heading_share = HEADING_SHARE if lifts.named else 0.0
    hits = []
    for chunk in {*cosines, *scores, *lifts.exact} & spots.keys():
        cosine, bm25, share = cosines.get(chunk), scores.get(chunk), vector_share(spots[chunk])
        meaning = 0.0 if cosine is None else (cosine - low) / (high - low) if high > low else 1.0
        wording = 0.0 if bm25 is None else bm25 / top if top > 0 else 0.0
        fused = share * meaning + (1 - share) * wording
        lifted = exact_share * (chunk in lifts.exact) + heading_share * lifts.named.get(chunk, 0.0)
        score = (1 - exact_share - heading_share) * fused + lifted
        ranks = near_ranks.get(chunk), word_ranks.get(chunk)
        hits.append(Hit(chunk, spots[chunk], score, cosine, bm25, *ranks, chunk in lifts.exact, chunk in lifts.named))
    return sorted(hits, key=lambda hit: (-hit.score, hit.id))


def _ranks(found: Sequence[Scored]) -> dict[str, int]:
    ordered = sorted(found, key=lambda scored: (-scored.score, scored.id))
    return {scored.id: rank for rank, scored in enumerate(ordered, 1)}


def grouped(hits: Sequence[Hit]) -> list[list[Hit]]:
    """Group hits by file, each best first, in the order of their best."""
    groups: dict[Origin, list[Hit]] = {}
    for hit in hits:
        groups.setdefault(hit.spot.origin, []).append(hit)
    return list(groups.values())


def _shown(groups: Sequence[Sequence[Hit]], question: Question, store: Store, catalogue: Catalogue) -> Iterator[Group]:
    """Yield groups with their text; a row that has just gone is left out."""
    rows = {row.id: row for row in store.shown([hit.id for group in groups for hit in group])}
    for group in groups:
        present = [(rows[hit.id], hit) for hit in group if hit.id in rows]
        passages = [_passage([each]) for each in present] if question.flat else merged(present)
        if question.expand:
            passages = [_widened(passage, question.expand, store, catalogue) for passage in passages]
        if passages:
            yield tuple(apart(passages))


def merged(found: Sequence[tuple[Row, Hit]]) -> list[Passage]:
    """Make passages of a file's hits: those that touch within a section are one. Best first."""
    runs: list[list[tuple[Row, Hit]]] = []
    for row, hit in sorted(found, key=lambda each: each[1].spot.ordinal):
        last = runs[-1][-1] if runs else None
        if last and last[0].header_path == row.header_path and hit.spot.ordinal == last[1].spot.ordinal + 1:
            runs[-1].append((row, hit))
        else:
            runs.append([(row, hit)])
    return sorted(map(_passage, runs), key=lambda passage: (-passage.hit.score, passage.hit.id))


def _passage(run: Sequence[tuple[Row, Hit]]) -> Passage:
    row, hit = min(run, key=lambda each: (-each[1].score, each[1].id))
    text = joined([(row.text, hit.spot) for row, hit in run])
    spots = [hit.spot for _, hit in run]
    row = replace(row, root=hit.spot.origin.root, path=printable(hit.spot.origin.path))
    return Passage(row, hit, spots[0].start_line, spots[-1].end_line, text, tuple(row.id for row, _ in run))


def joined(pieces: Sequence[tuple[str, Spot]]) -> str:
    """Put chunks that follow each other together, with the blank lines that stand between them."""
    text, end = pieces[0][0], pieces[0][1].end_line
    for more, spot in pieces[1:]:
        text += "\n" * max(1, spot.start_line - end) + more
        end = spot.end_line
    return text


def _widened(passage: Passage, most: int, store: Store, catalogue: Catalogue) -> Passage:
    """Take in neighbours of the same section, nearest first, while the text stays within so many characters."""
    ids = list(catalogue.neighbours(passage.hit.id, _NEIGHBOURS + len(passage.ids)))
    if passage.ids[0] not in ids or passage.ids[-1] not in ids:
        return passage
    rows, spots = {row.id: row for row in store.shown(ids)}, catalogue.spots(ids)
    first, last = ids.index(passage.ids[0]), ids.index(passage.ids[-1])
    size, open_ends = len(passage.text), {-1, 1}
    while open_ends:
        for way in (1, -1):
            at = last + 1 if way == 1 else first - 1
            row = rows.get(ids[at]) if 0 <= at < len(ids) else None
            fits = row and row.id in spots and row.header_path == passage.row.header_path and size + len(row.text) <= most
            if way not in open_ends or not row or not fits:
                open_ends.discard(way)
                continue
            size += len(row.text) + 1
            first, last = (first, at) if way == 1 else (at, last)
    taken = ids[first : last + 1]
    if not all(chunk in rows and chunk in spots for chunk in taken):
        return passage
    lines = spots[taken[0]].start_line, spots[taken[-1]].end_line
    text = joined([(rows[chunk].text, spots[chunk]) for chunk in taken])
    return replace(passage, start_line=lines[0], end_line=lines[1], text=text, ids=tuple(taken))


def apart(passages: Sequence[Passage]) -> Iterator[Passage]:
    """Yield passages, best first, but for those whose chunks all stand in better ones: no text is told twice."""
    told: set[str] = set()
    for passage in passages:
        if not told.issuperset(passage.ids):
            yield passage
        told.update(passage.ids)
