"""Two versions of a file side by side, chunk by chunk, and what the change costs."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import groupby, zip_longest
from typing import Any

from rich.table import Table
from rich.text import Text

from anchord.cli.app import print_line
from anchord.cli.output.console import stdout_console
from anchord.core.quoting import sanitize_line

_COLORS = {"kept": "dim", "moved": "yellow", "new": "green", "vanished": "red"}
_UNCHANGED = ("kept", "moved")
_MAX_UNCHANGED_ROWS = 4
_ROWS_BEFORE_ELLIPSIS = 2
_MAX_CHANGED_LINES = 4
_TAB_WIDTH = 4

DiffChunk = dict[str, Any]


def print_diff(diff: DiffChunk) -> None:
    """Print a comparison of two versions: before on the left, now on the right, the cost below.

    A run of more than four chunks that stay or move is shortened.

    Args:
        diff: The result of `api.compare_chunks`.
    """
    table = Table(
        box=None,
        expand=True,
        pad_edge=False,
        header_style="bold",
    )
    for title in ("before", "now"):
        table.add_column(title, ratio=1, no_wrap=True, overflow="ellipsis")
    chunks = diff["chunks"]
    for run in _runs(chunks):
        change = run[0]["change"]
        if change in _UNCHANGED:
            _add_unchanged(table, run)
        else:
            _add_changed(table, run)
    if chunks:
        stdout_console().print(table, soft_wrap=False)
    print_line(_summary(diff))


def _summary(diff: DiffChunk) -> str:
    counts = ", ".join(f"{diff[change]} {change}" for change in _COLORS)
    cost = _embedding_cost(diff)
    return f"{counts}; {cost}"


def _embedding_cost(diff: DiffChunk) -> str:
    """Return how many texts would be embedded, and their tokens."""
    embedded = diff["embedded"]
    if not embedded:
        return "0 texts would be embedded"
    texts = "1 text" if embedded == 1 else f"{embedded} texts"
    tokens = diff["tokens"]
    return f"{texts} would be embedded ({tokens:,} tokens)"


def _runs(chunks: Sequence[DiffChunk]) -> Iterator[list[DiffChunk]]:
    """Yield runs of neighbours that are kept, that moved, or that vanished or are new."""

    def kind(chunk: DiffChunk) -> str:
        change = str(chunk["change"])
        if change in _UNCHANGED:
            return change
        return ""

    for _, run in groupby(chunks, kind):
        yield list(run)


def _add_unchanged(table: Table, run: list[DiffChunk]) -> None:
    """Add a run of kept or moved chunks; of a long one the first two, a count, and the last."""
    if len(run) <= _MAX_UNCHANGED_ROWS:
        for chunk in run:
            _add_on_both_sides(table, chunk)
        return
    first_chunks = run[:_ROWS_BEFORE_ELLIPSIS]
    last_chunk = run[-1]
    for chunk in first_chunks:
        _add_on_both_sides(table, chunk)
    change = last_chunk["change"]
    omitted = len(run) - len(first_chunks) - 1
    ellipsis = Text(f"... {omitted} more {change}", style=_COLORS[change])
    table.add_row(ellipsis, ellipsis)
    _add_on_both_sides(table, last_chunk)


def _add_on_both_sides(table: Table, chunk: DiffChunk) -> None:
    before = _title(chunk, chunk["before_lines"])
    now = _title(chunk, _lines_now(chunk))
    table.add_row(before, now)


def _add_changed(table: Table, run: list[DiffChunk]) -> None:
    """Add vanished chunks on the left and new ones on the right, each with its differing lines."""
    vanished = [chunk for chunk in run if chunk["change"] == "vanished"]
    new = [chunk for chunk in run if chunk["change"] == "new"]
    lines_before = _all_lines(vanished)
    lines_now = _all_lines(new)
    for old_chunk, new_chunk in zip_longest(vanished, new):
        left = _changed_lines(old_chunk, lines_now)
        right = _changed_lines(new_chunk, lines_before)
        table.add_row(left, right)


def _all_lines(chunks: Sequence[DiffChunk]) -> set[str]:
    lines: set[str] = set()
    for chunk in chunks:
        lines.update(_lines(chunk))
    return lines


def _lines(chunk: DiffChunk) -> list[str]:
    content = str(chunk["text"])
    return content.split("\n")


def _lines_now(chunk: DiffChunk) -> list[int]:
    return [chunk["start_line"], chunk["end_line"]]


def _title(chunk: DiffChunk, lines: Sequence[int]) -> Text:
    section = chunk["section"]
    if not section:
        section = _lines(chunk)[0]
    change = chunk["change"]
    first_line, last_line = lines
    label = f"{change:<8} {first_line}-{last_line}"
    title = sanitize_line(f"{label:<18} {section}")
    return Text(title, style=_COLORS[change])


def _changed_lines(chunk: DiffChunk | None, lines_of_other_side: set[str]) -> Text:
    """Return a chunk's title and the first four of its lines that the other side does not have.

    Returns:
        An empty text if there is no chunk.
    """
    if chunk is None:
        return Text("")
    text = _title(chunk, _lines_now(chunk))
    if chunk["change"] == "new" and not chunk["embeds"]:
        text.append("  (reuses a vector)", style="dim")
    changed: list[str] = []
    for line in _lines(chunk):
        is_blank = not line.strip()
        if not is_blank and line not in lines_of_other_side:
            changed.append(line)
    for line in changed[:_MAX_CHANGED_LINES]:
        expanded = line.expandtabs(_TAB_WIDTH)
        text.append(f"\n  {sanitize_line(expanded)}", style="default")
    omitted = len(changed) - _MAX_CHANGED_LINES
    if omitted > 0:
        text.append(f"\n  ... {omitted} more lines", style="dim")
    return text
