"""Chunks, conversations and explanations as lines of text, with rich's markup.

The lines may hold control characters of indexed texts: print them with `print_line`, which
replaces these.
"""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime

from anchord.cli.output.markup import escape_markup
from anchord.cli.output.wrapping import chop, truncate
from anchord.core.quoting import escape_gaps, escape_path, quote_name
from anchord.ipc.messages.chunks import ChunkAnswer
from anchord.ipc.messages.searching import (
    ConversationAnswer,
    ExplainAnswer,
    NeighborExchange,
)

_WIDTH = 78
_INDENT = "    "
_COMMAND_ID_CHARS = 12
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


# Chunks and conversations


def source_and_time(exchange: ChunkAnswer) -> str:
    """Return where an exchange is from, and its time in the local time zone."""
    source = exchange.source or ""
    timestamp = exchange.at
    if not timestamp:
        return escape_gaps(str(source))
    utc_time = datetime.fromisoformat(timestamp)
    local_time = utc_time.astimezone()
    return f"{escape_gaps(source)} {local_time:%Y-%m-%d %H:%M}"


def chunk_lines(chunk: ChunkAnswer, width: int | None = None) -> Iterator[str]:
    """Yield a chunk's place, section and id, then its text.

    The lines of the text are indented, so that none of them can pass for the head of a chunk.

    Args:
        chunk: A chunk of the answer of `show`.
        width: Columns of the terminal, which would continue a longer line at its left edge; None
            for other outputs.
    """
    place = escape_markup(_chunk_place(chunk))
    section = escape_markup(truncate(escape_gaps(chunk.section), _WIDTH))
    chunk_id = chunk.id
    yield f"[bold cyan]{place}[/]  [green]{section}[/]  [dim]{chunk_id}[/]"
    lines = chunk.text.split("\n")
    for line in lines:
        for piece in [line] if width is None else chop(line, width - len(_INDENT)):
            yield f"{_INDENT}{escape_markup(piece)}" if piece else ""


def _chunk_place(chunk: ChunkAnswer) -> str:
    if chunk.session:
        return source_and_time(chunk)
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
    question = truncate(exchange.question, _WIDTH)
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
    if last_reason and last_reason != explanation.reason:
        done = "indexed" if explanation.indexed or explanation.problem else "left out"
        yield f"  last  {done} because: {escape_markup(last_reason)}"


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
