"""A document -> chunks: every format and every strategy.

An input's first line is `kind language strategy tokens chars least question-lines`, the rest the text. `-` stands for the
strategy's own size.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from tools.fuzz.inputs import headed, number, pick, word
from tools.fuzz.laws import hold
from tools.fuzz.targets.counting import count

from anchord.chunking.chunk_metadata import describe_chunks
from anchord.chunking.chunker import CONVERSATION_KINDS, split_into_chunks
from anchord.chunking.plan import Plan, build_plan
from anchord.chunking.validate import check_chunks
from anchord.config.effective import parse_chunking_options
from anchord.config.strategies import STRATEGIES
from anchord.core.types import Chunk, Document, RootedPath
from anchord.errors import AnchordError
from anchord.index.topics import memory_type_of, topic_of
from anchord.sources.documents.normalize import normalize_text

KINDS = ("markdown", "text", "code", *CONVERSATION_KINDS)
LANGUAGES = (
    "-", "rst", "adoc", "org", "html", "yaml", "toml", "ini", "json", "csv", "tsv", "python", "rust", "typescript", "tsx",
    "javascript", "go", "java", "c", "cpp", "csharp", "ruby", "php", "bash",
)  # fmt: skip
_WINDOW = 254


@dataclass(frozen=True, slots=True)
class Task:
    """A document, and how it is to be cut."""

    document: Document
    plan: Plan


def task_of(data: bytes) -> Task | None:
    """Read an input; None where its sizes are such that the configuration refuses them."""
    head, body = headed(data)
    words = head.split()
    kind, language = pick(KINDS, word(words, 0)), pick(LANGUAGES, word(words, 1)).removeprefix("-")
    strategy = pick(tuple(STRATEGIES), word(words, 2))
    given: dict[str, Any] = {"strategy": strategy}
    for place, (key, least, most) in enumerate(_SIZES, 3):
        if word(words, place) not in ("", "-"):
            given[key] = number(word(words, place), least, most)
    text = normalize_text(body.decode("utf-8", "replace"))
    asked = number(word(words, 6), 0, 40) if kind in CONVERSATION_KINDS else 0
    try:
        plan = build_plan(_WINDOW, parse_chunking_options(given))
    except AnchordError:
        return None
    return Task(
        Document(
            text=text,
            kind=kind,
            language=language,
            question_line_count=min(asked, text.count("\n") + 1),
        ),
        plan,
    )


_SIZES = (("max_chunk_tokens", 64, 600), ("max_chars", 64, 3_000), ("min_chars", 0, 500))


def chunking(data: bytes) -> None:
    """Chunk a document: `anchord chunk --check` passes, nothing is lost, and a second run gives the same."""
    task = task_of(data)
    if task is None:
        return
    document, plan = task.document, task.plan
    where = f"{document.kind}, {plan.strategy}"
    chunks = split_into_chunks(document, plan, count(), "file")
    hold(
        chunks == split_into_chunks(document, plan, count(), "file"),
        "the same text gives the same chunks",
        where=where,
    )
    _is_whole(task, chunks, where)
    _is_counted(plan, chunks, where)
    _is_told(document, plan, chunks)


def _is_whole(task: Task, chunks: list[Chunk], where: str) -> None:
    """Every character that is not blank is in a chunk, and the chunks are what their check asks."""
    text = task.document.text
    figures = check_chunks(task.document, chunks, task.plan, count())
    hold(figures.repeated_ids == 0, "ids are unique", figures, where=where)
    hold(
        figures.lines_not_covered == 0,
        "every line that is not blank is in a chunk",
        figures,
        where=where,
    )
    hold(figures.out_of_order == 0, "chunks come in their order", figures, where=where)
    hold(figures.over_window == 0, "no chunk is over the window", figures.tokens_max, task.plan)
    if task.plan.keeps_fences_whole:
        hold(figures.split_fences == 0, "a fence that fits is whole", figures, task.plan)
        hold(figures.unbalanced_fences == 0, "no chunk leaves a fence open", figures, task.plan)
    hold(
        not figures.has_violations(task.plan), "the check finds nothing else", figures, where=where
    )
    reached = 0
    for piece in chunks:
        between = text[reached : piece.start_char]
        hold(
            not between.strip(),
            "every character that is not blank is in a chunk",
            between,
            where=where,
        )
        inside = text[piece.start_char : piece.end_char]
        hold(
            inside in piece.content,
            "a chunk holds the exact text of its place",
            inside,
            piece.content,
            where=where,
        )
        reached = max(reached, piece.end_char)
    hold(
        not text[reached:].strip(),
        "every character that is not blank is in a chunk",
        text[reached:],
        where=where,
    )


def _is_counted(plan: Plan, chunks: list[Chunk], where: str) -> None:
    counted = (
        count().count_without_caching([piece.embed_text for piece in chunks]) if chunks else []
    )
    reported = [piece.token_count for piece in chunks]
    hold(reported == counted, "a chunk's count is the model's", reported, counted, where=where)
    hold(
        max(counted, default=0) <= plan.limits.window,
        "no embedded text is over the window",
        counted,
        where=where,
    )


def _is_told(document: Document, plan: Plan, chunks: list[Chunk]) -> None:
    """What is said of chunks can be said of these."""
    reported = describe_chunks(chunks, document, RootedPath("root", "file.md"), plan.strategy)
    hold(len(reported) == len(chunks), "each chunk is described")
    topic_of(document.text)
    for piece in chunks:
        memory_type_of(piece.content)
