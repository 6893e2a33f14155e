"""The status as a live view: roots, what waits and why, what was done last and what it cost, health."""

from __future__ import annotations

from typing import Any

from rich.console import Group, RenderableType
from rich.panel import Panel
from rich.table import Table
from rich.text import Text

from anchord.cli.render import age, printable

_COLOURS = {"degraded": "red", "idle": "green", "held": "red", "offline": "red"}
_HEADS = ("kept", "moved", "embedded", "reused", "gone")
_LAST, _NEXT, _FAILED = 10, 5, 5


def dashboard(report: dict[str, Any]) -> RenderableType:
    """Return the view of one status report."""
    parts: list[RenderableType] = [_health(report), _roots(report)]
    if report["pending"] or report["waiting"]:
        parts.append(_queue(report))
    if report["recent"]:
        parts.append(_recent(report))
    if report["failed"]:
        parts.append(_failed(report))
    return Group(*parts)


def _health(report: dict[str, Any]) -> Panel:
    colour = _COLOURS.get(report["state"], "yellow")
    embedder, store, latency = report["embedder"], report["store"], report["latency_ms"]
    lines = [Text(printable(reason), "red") for reason in report["degraded"]]
    rate = f", {embedder['rate']:.0f} texts/s" if embedder["rate"] else ""
    lines.append(
        _line(
            f"{report['files']} files, {store['rows']} chunks, {store['bytes'] / 1e6:.1f} MB in {store['fragments']} fragments"
        )
    )
    lines.append(_line(f"model {embedder['model']}: {embedder['state']}{rate}; embedded {report['embedded_total']}, "
                       f"reused {report['reused_total']}, commits {report['commits_total']}"))  # fmt: skip
    ages = [f"{name} {age(report[key])} ago" for name, key in _AGES if report[key] is not None]
    if latency["p50"] is not None:
        ages.append(f"save to searchable {latency['p50']:.0f} ms (95 %: {latency['p95']:.0f} ms)")
    lines.append(_line("; ".join(ages) or "nothing has changed yet"))
    lines.append(_line(f"memory {report['rss_bytes'] / 1e6:.0f} MB, CPU {report['cpu_s']:.1f} s, up {age(report['uptime_s'])}"))
    title = Text.assemble((report["state"], f"bold {colour}"), f"  anchord {report['version']}, process {report['pid']}")
    return Panel(Group(*lines), title=title, title_align="left", border_style=colour)


_AGES = (("last event", "last_event_age_s"), ("last commit", "last_commit_age_s"), ("verified", "last_verified_age_s"))


def _roots(report: dict[str, Any]) -> Table:
    table = _table("roots", ("", "state", "files", "chunks", "watched by", "folder"), right=(2, 3))
    for root in report["roots"]:
        watched = f"{root['watches']} watches" if root["watching"] else "polling"
        if root["watching"] and root["polled_dirs"]:
            watched += f", {root['polled_dirs']} polled"
        state = Text(root["state"], _COLOURS.get(root["state"], "yellow"))
        table.add_row(_line(root["name"]), state, str(root["files"]), str(root["chunks"]), watched, _line(root["path"]))
    return table


def _queue(report: dict[str, Any]) -> Table:
    left = f", about {age(report['left_s'])} left" if report["left_s"] else ""
    table = _table(f"{report['pending']} files wait{left}", ("next", "why"))
    for waiting in report["waiting"][:_NEXT]:
        table.add_row(_line(waiting["path"]), waiting["why"])
    return table


def _recent(report: dict[str, Any]) -> Table:
    table = _table("last changes", ("", "file", "", *_HEADS, "why"), right=(3, 4, 5, 6, 7))
    for done in report["recent"][:_LAST]:
        figures = (done["kept"], done["moved"], done["embedded"], done["reused"], done["deleted"])
        shown = (
            Text(str(n), "bold" if name == "embedded" and n else "" if n else "dim")
            for name, n in zip(_HEADS, figures, strict=True)
        )
        table.add_row(
            f"{age(done['age_s'])} ago", _line(done["path"]), done["action"], *shown, Text(printable(done["reason"]), "dim")
        )
    return table


def _failed(report: dict[str, Any]) -> Table:
    table = _table(f"{len(report['failed'])} files are not indexed, or not wholly", ("file", "reason"))
    for failure in report["failed"][:_FAILED]:
        table.add_row(_line(failure["path"]), Text(printable(failure["reason"]), "yellow"))
    return table


def _table(title: str, heads: tuple[str, ...], right: tuple[int, ...] = ()) -> Table:
    table = Table(title=title, title_justify="left", title_style="bold", box=None, pad_edge=False, expand=False)
    for number, head in enumerate(heads):
        table.add_column(
            head, justify="right" if number in right else "left", no_wrap=True, overflow="ellipsis", header_style="dim"
        )
    return table


def _line(text: str) -> Text:
    return Text(printable(text))
