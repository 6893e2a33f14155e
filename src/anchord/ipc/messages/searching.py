"""`search`, `show`, `explain`, `dump`: what is read from the index."""

from __future__ import annotations

from typing import Annotated

import msgspec
from msgspec import Meta

from anchord.ipc.messages.base import Message, Params
from anchord.ipc.messages.chunks import ChunkAnswer

MAX_HITS = 1_000
MAX_CONTEXT_CHUNKS = 10_000
MAX_EXPAND_CHARS = 100_000
MIN_BUDGET = 300
MAX_BUDGET = 1_000_000
MAX_QUERY_CHARS = 100_000
MAX_FILTER_CHARS = 10_000


class SearchParams(Params, frozen=True, kw_only=True):
    """Parameters of "search"."""

    query: Annotated[str, Meta(max_length=MAX_QUERY_CHARS)]
    k: Annotated[int, Meta(ge=1, le=MAX_HITS)] = 10
    """Maximum number of hits."""
    mode: str = "hybrid"
    """"hybrid", "vector" or "text"."""
    root: str = ""
    path: Annotated[str, Meta(max_length=MAX_FILTER_CHARS)] = ""
    """A folder, or a pattern in .gitignore syntax."""
    kind: str = ""
    section: Annotated[str, Meta(max_length=MAX_FILTER_CHARS)] = ""
    """Headings joined with " > "."""
    room: str = ""
    session: str = ""
    chunk_type: str = ""
    """"section", "text", "code_block", "table" or "list"."""
    language: str = ""
    """A programming language, such as "python" or "py"."""
    file: Annotated[str, Meta(max_length=MAX_FILTER_CHARS)] = ""
    """A file: only conversations that changed it or named it in a tool call."""
    branch: str = ""
    """A git branch: only conversations on it."""
    project: str = ""
    """A part of a project's name, or its folder: only conversations about it."""
    tool: str = ""
    """A tool, such as "Bash": only exchanges that called it."""
    agent: str = ""
    """A part of a program's name, such as "claude": only its conversations."""
    since: str = ""
    """A date or an age, such as 2026-01-31, 7d or 3h: files that changed and conversations that
    went on since then."""
    until: str = ""
    """Like `since`."""
    recent: str = ""
    """A half-life, such as 30d: a hit of this age keeps half of its score; "" weighs none down."""
    show_chunks: bool = False
    expand: Annotated[int, Meta(ge=0, le=MAX_EXPAND_CHARS)] = 0
    """Characters of context to add from the same section."""
    budget: Annotated[int, Meta(ge=0, le=MAX_BUDGET)] = 0
    """Maximum tokens of all passages, with their places and headings; 0 for all that is found."""
    cwd: str = ""
    """The caller's folder, absolute: of copies, the one in it is shown."""
    fresh: bool = False
    """True waits until everything written before the call is searchable."""
    detached: bool = False
    """True also searches conversations that are kept and not indexed, by words."""
    is_prompt: bool = False
    """True takes the query as a text that was typed to another program: its secrets are redacted
    first, quotes and signs have no meaning, and its first 1,000 characters are searched. Only
    passages with the confidence "strong" are returned."""

    def with_query(self, query: str) -> SearchParams:
        """Return the same search for another query."""
        return msgspec.structs.replace(self, query=query)


class ShowParams(Params, frozen=True, kw_only=True):
    """Parameters of "show": a chunk by its id, or all chunks of a file by `root` and `path`."""

    id: str = ""
    root: str = ""
    path: str = ""
    whole: bool = False
    """True shows all of the chunk's file or exchange."""
    context: Annotated[int, Meta(ge=0, le=MAX_CONTEXT_CHUNKS)] = 0
    """Number of chunks to add before the chunk, and after it."""


class ExplainParams(Params, frozen=True, kw_only=True):
    """Parameters of "explain"."""

    path: str
    """Absolute path."""


class ConfidenceParts(Message, frozen=True, kw_only=True):
    """What the confidence of a passage is made of; all numbers are 0 to 1."""

    score: float
    """The parts together: from 0.7 "strong", from 0.57 "likely"."""
    meaning: float | None
    """How near it is in meaning: 0 for unrelated texts, 1 for a question and its answer; None where
    that cannot be judged."""
    words: float
    """The share of the query's words that it contains."""
    all_words: float
    """The share of the query's words that the best hits contain together."""


class PlaceAnswer(Message, frozen=True, kw_only=True):
    """Where a copy of a passage is."""

    root: str
    path: str
    file: str | None
    """Absolute path; None for an exchange whose transcript files are all deleted."""
    start_line: int
    end_line: int


class Passage(ChunkAnswer, frozen=True, kw_only=True):
    """A passage that a search found: neighbouring chunks, or one.

    Text, lines and `ids`, and what is derived from the text, are those of the whole passage; all
    else is of its best chunk. The text of a conversation has the exchanges around the one that was
    found, and says who speaks; the lines are those of the exchange that was found.
    """

    score: float
    """Decides the order; relative to the best of this search."""
    confidence: str = ""
    """How surely it is about the query: "strong", "likely" or "weak", which say the same in every
    search; "" from a daemon of an older version."""
    confidence_parts: ConfidenceParts | None = None
    """What `confidence` is made of."""
    cosine: float | None
    cosine_rank: int | None
    """Place among what was found by meaning, from 1; None if it was not."""
    bm25: float | None
    bm25_rank: int | None
    """Place among what was found by words, from 1; None if it was not."""
    exact: bool
    """Whether it contains the query as an identifier."""
    named: bool
    """Whether the query contains its heading."""
    matched: tuple[str, ...]
    """Words of the query that it contains."""
    ids: tuple[str, ...]
    """All its chunks, in the order of the file or session."""
    heading: str | None = None
    """What its conversation is called: title, project and date in words; null for a file."""
    match_line: int | None = None
    """The line with most of the query's words; the first line of the best chunk without such."""
    also_at: tuple[PlaceAnswer, ...] = ()
    """Other places where its best chunk was found, with the same text below the same heading."""
    date: str | None = None
    """When its file changed last, or its exchange ended, in ISO 8601, UTC."""
    recency: float | None = None
    """What its age left of its score, 0 to 1; None without `recent`."""


class DetachedHit(Message, frozen=True, kw_only=True):
    """An exchange that was found in the archive and is not indexed."""

    reason: str
    root: str
    path: str
    transcript: str
    source: str
    session: str
    title: str
    project: str
    at: str
    question: str
    snippet: str


class CoverageAnswer(Message, frozen=True, kw_only=True):
    """How much of the files the index covers."""

    state: str
    """The daemon's state; "" without a daemon."""
    done: int
    """Files that are up to date."""
    found: int
    """Files that the last walks found."""
    held: dict[str, int]
    """Root -> files that were deleted or excluded all at once, and are still found."""
    without_vector: int = 0
    """Chunks that only words find so far."""
    vectors_left_s: float | None = None
    """Seconds until they have vectors; None for unknown."""


class RerankerAnswer(Message, frozen=True, kw_only=True):
    """What the configured reranker did in a search."""

    hits: int
    """How many of the best hits it sorted; 0 for none."""
    ms: float
    """How long that took; 0 where it was not asked."""
    reason: str
    """Why it sorted none: the best hit is sure, or what is wrong; "" if it did."""


class SearchAnswer(Message, frozen=True, kw_only=True):
    """Answer of "search"."""

    query: str
    mode: str
    note: str
    """What a person must know to judge the results; "" if nothing."""
    about: bool = True
    """Whether anything found seems to be about the query. If not, `groups` has up to three that are
    nearest."""
    complete: bool
    """Whether everything that is known to have changed is in the index; False without a daemon."""
    coverage: CoverageAnswer
    query_kind: str
    """What the query looks like: "terms", "sentence" or "question"."""
    vector_weight: float
    """How much meaning counted beside words in documents, 0 to 1."""
    groups: tuple[tuple[Passage, ...], ...]
    """The passages of each file or exchange, best first; no group is empty."""
    omitted: int = 0
    """Files and exchanges that were found, and of which nothing fits in the budget."""
    detached: tuple[DetachedHit, ...] = ()
    reranker: RerankerAnswer | None = None
    """None where no reranker is configured, and with mode "text"."""


class NeighborExchange(Message, frozen=True, kw_only=True):
    """The exchange before or after another one."""

    id: str
    """Its first chunk."""
    question: str


class ConversationAnswer(Message, frozen=True, kw_only=True):
    """The conversation that an exchange is part of."""

    source: str
    session: str
    title: str | None
    project: str | None
    number: int
    """The exchange's number in the conversation, from 1."""
    exchanges: int
    source_missing: bool
    previous: NeighborExchange | None
    next: NeighborExchange | None


class ShowAnswer(Message, frozen=True, kw_only=True):
    """Answer of "show"."""

    id: str
    chunks: tuple[ChunkAnswer, ...]
    previous: str | None
    """Id of the chunk before those shown; None at the beginning of the file."""
    next: str | None
    conversation: ConversationAnswer | None = None
    replaced: str | None = None
    """The id that was asked for, if edits replaced its chunk by that of `id`; else None."""


class ExplainAnswer(Message, frozen=True, kw_only=True):
    """Answer of "explain". Outside all roots only the first five fields have values."""

    path: str
    indexed: bool
    rule: str
    decision: str
    """What the next walk does: "read", "skip" or "forget"."""
    reason: str
    root: str | None = None
    chunks: int = 0
    exchanges: int | None = None
    """None for what is no transcript."""
    strategy: str | None = None
    last_reason: str | None = None
    problem: str | None = None
    size: int | None = None
    """Bytes; None while the file cannot be looked at."""
