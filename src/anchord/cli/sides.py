"""Two versions of a file side by side, chunk by chunk, and what the change costs."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import groupby
from typing import Any

from rich.table import Table
from rich.text import Text

from anchord.cli.frame import out, say
from anchord.cli.render import printable

_COLOURS = {"kept": "dim", "moved": "yellow", "new": "green", "vanished": "red"}
_QUIET = 2
_LINES = 4

Row = dict[str, Any]


def show_diff(found: Row) -> None:
    """Print what `api.compare` found: before on the left, now on the right, long runs of what stays cut short."""
    table = Table(box=None, expand=True, pad_edge=False, header_style="bold")
    for title in ("before", "now"):
        table.add_column(title, ratio=1, no_wrap=True, overflow="ellipsis")
    for rows in _runs(found["chunks"]):
        _add(table, rows)
    if found["chunks"]:
        out.print(table, soft_wrap=False)
    summary = ", ".join(f"{found[what]} {what}" for what in ("kept", "moved", "new", "vanished"))
    number = found["embedded"]
    cost = f" ({found['tokens']:,} tokens)" if number else ""
    say(f"{summary}; {number} {'text' if number == 1 else 'texts'} would be embedded{cost}")


def _runs(rows: Sequence[Row]) -> Iterator[list[Row]]:
    """Put together what belongs side by side: neighbours that only stay or move, and neighbours that vanish and are new."""
    for _, run in groupby(rows, lambda row: row["change"] if row["change"] in ("kept", "moved") else ""):
        yield list(run)


def _add(table: Table, rows: list[Row]) -> None:
    change = rows[0]["change"]
    if change in ("kept", "moved"):
        shown = rows if len(rows) <= 2 * _QUIET else rows[:_QUIET]
        for row in shown:
            table.add_row(_title(row, row["before_lines"]), _title(row, _lines(row)))
        if len(rows) > len(shown):
            rest = rows[len(shown) : -1]
            more = Text(f"... {len(rest)} more {change}", style=_COLOURS[change])
            table.add_row(more, more)
            table.add_row(_title(rows[-1], rows[-1]["before_lines"]), _title(rows[-1], _lines(rows[-1])))
        return
    gone = [row for row in rows if row["change"] == "vanished"]
    made = [row for row in rows if row["change"] == "new"]
    left = {line for row in gone for line in row["content"].split("\n")}
    right = {line for row in made for line in row["content"].split("\n")}
    for number in range(max(len(gone), len(made))):
        old, new = gone[number : number + 1], made[number : number + 1]
        cells = [_body(old, right), _body(new, left)]
        table.add_row(*cells)


def _lines(row: Row) -> list[int]:
    return [row["start_line"], row["end_line"]]


def _title(row: Row, lines: Sequence[int]) -> Text:
    section = " > ".join(row["header_path"]) or row["content"].split("\n", 1)[0]
    what = f"{row['change']:<8} {lines[0]}-{lines[1]}"
    return Text(printable(f"{what:<18} {section}"), style=_COLOURS[row["change"]])


def _body(rows: Sequence[Row], other: set[str]) -> Text:
    """A chunk's title and the first of its lines that the other side has not."""
    if not rows:
        return Text("")
    row = rows[0]
    text = _title(row, _lines(row))
    if row["change"] == "new" and not row["embeds"]:
        text.append("  (its vector is known)", style="dim")
    fresh = [line for line in row["content"].split("\n") if line.strip() and line not in other]
    for line in fresh[:_LINES]:
        text.append("\n  " + printable(line.expandtabs(4)), style="default")
    if len(fresh) > _LINES:
        text.append(f"\n  ... {len(fresh) - _LINES} more lines", style="dim")
    return text
