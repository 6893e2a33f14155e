"""Search results, chunks and explanations as lines of text, with rich's markup.

The lines may hold control characters of indexed texts: print them with `print_line`, which
replaces these.
"""

from __future__ import annotations

import os
import re
import textwrap
from collections.abc import Iterator, Sequence
from datetime import datetime
from urllib.parse import quote

from anchord.cli.output.console import escape_markup
from anchord.core.quoting import escape_gaps, escape_path, quote_name, sanitize_line
from anchord.ipc.messages.chunks import ChunkAnswer
from anchord.ipc.messages.searching import (
    ConversationAnswer,
    ExplainAnswer,
    NeighborExchange,
    Passage,
    SearchAnswer,
)

_WIDTH = 78
_INDENT = "    "
_EXCERPT_WIDTH = _WIDTH - len(_INDENT)
_EXCERPT_LINES = 4
_MAX_INDENT = _WIDTH // 2
_GAPS_WIDTH = 4
"""Two spaces on each side of a section that is shown beside its place."""
_MAX_OTHER_HITS = 3
_ID_CHARS = 8
_COMMAND_ID_CHARS = 12
_TAB_WIDTH = 4
_ELLIPSIS = "…"
_DECISIONS = {
    "read": "will be read",
    "skip": "nothing to do",
    "forget": "will be removed from the index",
}
_AGE_UNITS = (("d", 86_400), ("h", 3_600), ("min", 60))


def format_age(seconds: float) -> str:
    """Return a duration in its largest unit: `2 d`, `3 h`, `5 min` or `0.4 s`."""
    for unit, unit_seconds in _AGE_UNITS:
        if seconds >= unit_seconds:
            count = seconds / unit_seconds
            return f"{count:.0f} {unit}"
    return f"{seconds:.1f} s"


# Search results


def search_lines(
    groups: Sequence[Sequence[Passage]], base_folder: str, *, with_explanations: bool = False
) -> Iterator[str]:
    """Yield search results: for each file its best hit with an excerpt, then up to three others.

    Args:
        groups: The hits of each file or exchange, best first; no group is empty.
        base_folder: Files below this folder are shown relative to it.
        with_explanations: Whether to say how each hit was found.
    """
    for number, group in enumerate(groups):
        if number:
            yield ""
        yield from _group_lines(group, base_folder, with_explanations=with_explanations)


def weighing_line(answer: SearchAnswer) -> str:
    """Say what a query was taken for, and how much meaning and words counted."""
    kinds = {"question": "a question", "sentence": "a sentence"}
    kind = kinds.get(answer.query_kind, "names, keywords or a heading")
    meaning = round(100 * answer.vector_weight)
    shares = f"meaning counts {meaning} %, words {100 - meaning} %"
    return f"[dim]taken for {kind}: in documents {shares}[/]"


def _group_lines(
    group: Sequence[Passage], base_folder: str, *, with_explanations: bool
) -> Iterator[str]:
    """Yield the best hit of a file or exchange, up to three others, and how many are left out."""
    best, *others = group
    yield from _best_hit(best, base_folder)
    if with_explanations:
        yield _explanation(best)
    for hit in others[:_MAX_OTHER_HITS]:
        yield _other_hit(hit)
        if with_explanations:
            yield _explanation(hit)
    omitted = len(others) - _MAX_OTHER_HITS
    if omitted > 0:
        unit = "exchange" if best.session else "file"
        yield f"  [dim]and {omitted} more places in this {unit}[/]"


def _best_hit(hit: Passage, base_folder: str) -> Iterator[str]:
    """Yield a hit's place, section and score, and an excerpt. A long section gets its own line."""
    place = _place(hit, base_folder)
    score_and_id = _score_and_id(hit)
    section = escape_gaps(hit.heading or hit.section)
    used_width = len(place) + len(score_and_id) + _GAPS_WIDTH
    fits = used_width + len(section) <= _WIDTH
    link = _file_link(place, hit)
    beside = ""
    if section and fits:
        beside = f"{_green(section)}  "
    yield f"[bold cyan]{link}[/]  {beside}[dim]{score_and_id}[/]"
    if section and not fits:
        truncated = _truncate(section, _EXCERPT_WIDTH)
        yield f"{_INDENT}{_green(truncated)}"
    yield from _highlighted_excerpt(hit)


def _highlighted_excerpt(hit: Passage) -> Iterator[str]:
    text = hit.text
    matched = hit.matched
    for line in _excerpt(text, matched):
        highlighted = _highlight(line, matched)
        yield f"{_INDENT}{highlighted}"


def _other_hit(hit: Passage) -> str:
    """Return a line with a hit's line numbers, section and score."""
    first_line = hit.start_line
    last_line = hit.end_line
    span = f"{first_line}-{last_line}"
    section = _section(hit)
    score_and_id = _score_and_id(hit)
    return f"  [dim]also {span:<9} {section}  {score_and_id}[/]"


def _score_and_id(hit: Passage) -> str:
    score = hit.score
    short_id = hit.id[:_ID_CHARS]
    return f"{score:.2f} {short_id}"


def _explanation(hit: Passage) -> str:
    """Return a line that says how a hit was found."""
    parts = [_found_by_meaning(hit), _found_by_words(hit)]
    if hit.exact:
        parts.append("contains the identifier exactly")
    if hit.named:
        parts.append("the query contains its heading")
    matched = ", ".join(hit.matched)
    if matched:
        parts.append(f"matched: {matched}")
    explanation = escape_markup("; ".join(parts))
    # Less indented than quoted text, which could have the same words.
    return f"  [dim]{explanation}[/]"


def _found_by_meaning(hit: Passage) -> str:
    rank = hit.cosine_rank
    if not rank:
        return "not by meaning"
    cosine = hit.cosine
    return f"meaning: cosine {cosine:.3f}, no. {rank}"


def _found_by_words(hit: Passage) -> str:
    rank = hit.bm25_rank
    if not rank:
        return "not by words"
    score = hit.bm25
    return f"words: BM25 {score:.2f}, no. {rank}"


def _place(hit: Passage, base_folder: str) -> str:
    if hit.session:
        return _source_and_time(hit)
    file = str(hit.file)
    folder_prefix = base_folder.rstrip("/") + "/"
    if file.startswith(folder_prefix):
        file = os.path.relpath(file, base_folder)
    line = hit.start_line
    return f"{escape_path(file)}:{line}"


def _source_and_time(exchange: ChunkAnswer) -> str:
    """Return where an exchange is from, and its time in the local time zone."""
    source = exchange.source or ""
    timestamp = exchange.at
    if not timestamp:
        return escape_gaps(str(source))
    utc_time = datetime.fromisoformat(timestamp)
    local_time = utc_time.astimezone()
    return f"{escape_gaps(source)} {local_time:%Y-%m-%d %H:%M}"


def _file_link(place: str, hit: Passage) -> str:
    """Link a place to its line in its file (OSC 8, for terminals that have links)."""
    escaped_place = escape_markup(place)
    if hit.session or not hit.file:
        return escaped_place
    quoted_path = quote(str(hit.file))
    line = hit.start_line
    return f"[link=file://{quoted_path}#{line}]{escaped_place}[/link]"


def _section(hit: ChunkAnswer) -> str:
    section = escape_gaps(hit.section)
    return escape_markup(_truncate(section))


def _green(text: str) -> str:
    escaped = escape_markup(text)
    return f"[green]{escaped}[/]"


def _truncate(line: str, width: int = _WIDTH) -> str:
    if len(line) <= width:
        return line
    beginning = line[: width - 1]
    return beginning + _ELLIPSIS


def _highlight(line: str, words: Sequence[str]) -> str:
    """Highlight whole words of a line, in any case; of two that begin at one place the longer."""
    if not words:
        return escape_markup(line)
    pieces: list[str] = []
    end = 0
    for match in re.finditer(_any_word(words), line, re.IGNORECASE):
        before = line[end : match.start()]
        word = escape_markup(match[0])
        pieces.append(escape_markup(before))
        pieces.append(f"[bold yellow]{word}[/]")
        end = match.end()
    rest = line[end:]
    pieces.append(escape_markup(rest))
    return "".join(pieces)


def _any_word(words: Sequence[str]) -> str:
    """Return a pattern that matches any of these words as a whole, longer words first."""
    alternatives: list[str] = []
    for word in sorted(words, key=len, reverse=True):
        literal = re.escape(word)
        alternatives.append(rf"(?<!\w){literal}(?!\w)")
    return "|".join(alternatives)


def _excerpt(text: str, matched: Sequence[str]) -> list[str]:
    """Return the four lines with the most matched words; of equal ones the first.

    Blank lines are dropped and long lines wrapped. An ellipsis marks what is left out on each side.
    """
    lines = _wrapped_lines(text)
    start = _best_start(lines, matched)
    end = start + _EXCERPT_LINES
    excerpt = lines[start:end]
    if start > 0:
        excerpt.insert(0, _ELLIPSIS)
    if end < len(lines):
        excerpt.append(_ELLIPSIS)
    return excerpt


def _best_start(lines: Sequence[str], matched: Sequence[str]) -> int:
    """Return where the lines with the most matched words start; of equal places the first."""
    words = [word.lower() for word in matched]
    word_counts = [_count_words(line, words) for line in lines]

    def words_from(start: int) -> int:
        end = start + _EXCERPT_LINES
        return sum(word_counts[start:end])

    last_start = max(0, len(lines) - _EXCERPT_LINES)
    starts = range(last_start + 1)
    # `max` returns the first of equal starts.
    return max(starts, key=words_from)


def _count_words(line: str, lowercase_words: Sequence[str]) -> int:
    """Count the words that a line contains, in any case."""
    lowercase_line = line.lower()
    return sum(word in lowercase_line for word in lowercase_words)


def _wrapped_lines(text: str) -> list[str]:
    nonblank = [line for line in text.split("\n") if line.strip()]
    dedented = textwrap.dedent("\n".join(nonblank))
    lines: list[str] = []
    for line in dedented.split("\n"):
        lines += _wrap(line)
    return lines


def _wrap(line: str) -> list[str]:
    """Break a line between words where it can be; at least one line, even if it is empty."""
    indent_width = len(line) - len(line.lstrip())
    indent = line[:indent_width]
    wrapped = textwrap.wrap(
        line.expandtabs(_TAB_WIDTH),
        _EXCERPT_WIDTH,
        subsequent_indent=indent[:_MAX_INDENT],
        break_on_hyphens=False,
        drop_whitespace=True,
    )
    lines = wrapped or [line[:_EXCERPT_WIDTH]]
    if line.isascii():
        return lines
    # Wide characters have two columns: the terminal would continue a longer line at its left edge.
    return [piece for each in lines for piece in _chop(each, _EXCERPT_WIDTH)]


# Chunks and conversations


def chunk_lines(chunk: ChunkAnswer, width: int | None = None) -> Iterator[str]:
    """Yield a chunk's place, section and id, then its text.

    The lines of the text are indented, so that none of them can pass for the head of a chunk.

    Args:
        chunk: A chunk of the answer of `show`.
        width: Columns of the terminal, which would continue a longer line at its left edge; None
            for other outputs.
    """
    place = escape_markup(_chunk_place(chunk))
    section = _section(chunk)
    chunk_id = chunk.id
    yield f"[bold cyan]{place}[/]  [green]{section}[/]  [dim]{chunk_id}[/]"
    lines = chunk.text.split("\n")
    for line in lines:
        for piece in [line] if width is None else _chop(line, width - len(_INDENT)):
            yield f"{_INDENT}{escape_markup(piece)}" if piece else ""


def _chop(line: str, width: int) -> list[str]:
    """Cut a line into pieces of so many columns; at least one piece."""
    from rich.cells import chop_cells

    printable = sanitize_line(line).expandtabs(_TAB_WIDTH)
    return chop_cells(printable, max(width, 1)) or [""]


def _chunk_place(chunk: ChunkAnswer) -> str:
    if chunk.session:
        return _source_and_time(chunk)
    root = chunk.root
    path = chunk.path
    first_line = chunk.start_line
    last_line = chunk.end_line
    file = f"{escape_path(root)}:{escape_path(path)}"
    return f"{file}:{first_line}-{last_line}"


def conversation_lines(conversation: ConversationAnswer) -> Iterator[str]:
    """Yield which conversation an exchange is from, and how to show the previous and next one."""
    session = conversation.session
    if conversation.source_missing:
        session = f"{session}, whose file was deleted"
    name = conversation.title or conversation.project or conversation.source
    escaped_name = escape_markup(escape_gaps(str(name)))
    number = conversation.number
    total = conversation.exchanges
    yield ""
    place = f"[dim]exchange {number} of {total} in[/] [green]{escaped_name}[/]"
    yield f"{place} [dim]({escape_markup(escape_gaps(session))})[/]"
    for direction in ("previous", "next"):
        neighbor: NeighborExchange | None = getattr(conversation, direction)
        if neighbor:
            yield _neighbor_line(direction, neighbor)


def _neighbor_line(direction: str, exchange: NeighborExchange) -> str:
    """Return how to show the previous or next exchange, and its question."""
    label = f"{direction}:"
    short_id = exchange.id[:_COMMAND_ID_CHARS]
    command = f"anchord show {short_id} --whole"
    question = _truncate(exchange.question)
    escaped_question = escape_markup(question)
    return f"  [dim]{label:<9} {command}[/]  {escaped_question}"


# Explanations


def explain_lines(explanation: ExplainAnswer) -> Iterator[str]:
    """Yield what the index has of a file, which rule includes it, and what anchord would do now.

    Args:
        explanation: The answer of `explain`; without a root the file lies in no indexed folder.
    """
    state = "[bold yellow]not indexed[/]"
    if explanation.indexed:
        state = "[bold green]indexed[/]"
    path = escape_markup(escape_gaps(explanation.path))
    rule = escape_markup(escape_gaps(explanation.rule))
    reason = escape_markup(escape_gaps(explanation.reason))
    yield f"{state}  [bold cyan]{path}[/]"
    if explanation.problem:
        yield f"  [yellow]{escape_markup(explanation.problem)}[/]"
    if explanation.root is None:
        yield f"  {rule}: {reason}"
        return
    root = escape_markup(quote_name(explanation.root))
    yield f"  root  {root}: {_indexed_size(explanation)}"
    yield f"  rule  {rule}"
    decision = explanation.decision
    yield f"  now   {_DECISIONS[decision]}: {reason}"
    last_reason = explanation.last_reason
    if last_reason:
        yield f"  last  indexed because: {escape_markup(last_reason)}"


def _indexed_size(explanation: ExplainAnswer) -> str:
    chunks = explanation.chunks
    strategy = explanation.strategy
    exchanges = explanation.exchanges
    of_exchanges = f" of {exchanges} exchanges" if exchanges else ""
    counts = f"{chunks} chunks{of_exchanges} by the strategy {strategy}"
    size = explanation.size
    if size is None:
        return counts
    return f"{counts}, {size:,} bytes"
