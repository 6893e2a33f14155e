"""The live status: folders, the queue, the last changes with their cost, and health."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import chain

from rich.console import Group, RenderableType
from rich.panel import Panel
from rich.table import Table
from rich.text import Text

from anchord.cli.output.render import format_age
from anchord.cli.output.status_text import progress_lines
from anchord.core.quoting import sanitize_line
from anchord.ipc.messages.status import RootStatus, StatusAnswer

_COLORS = {"degraded": "red", "idle": "green", "held": "red", "offline": "red"}
_DEFAULT_COLOR = "yellow"
_COST_COLUMNS = {
    "kept": "kept",
    "moved": "moved",
    "embedded": "embedded",
    "reused": "reused",
    "gone": "deleted",
}
"""Heading -> key in the report, of the chunks that a change touched."""
_AGES = {
    "last event": "last_event_age_s",
    "last commit": "last_commit_age_s",
    "verified": "last_verified_age_s",
}
_MAX_RECENT, _MAX_WAITING, _MAX_FAILED = 10, 5, 5


def build_dashboard(report: StatusAnswer) -> RenderableType:
    """Return the view of a status report.

    Args:
        report: The daemon's answer to `status`.
    """
    parts: list[RenderableType] = [_health(report), _roots(report)]
    if report.pending or report.waiting:
        parts.append(_queue(report))
    if report.recent:
        parts.append(_recent_changes(report))
    if report.failed:
        parts.append(_failed_files(report))
    return Group(*parts)


def _health(report: StatusAnswer) -> Panel:
    state = report.state
    color = _COLORS.get(state, _DEFAULT_COLOR)
    version = report.version
    process = report.pid
    about = f"  anchord {version}, process {process}"
    lines = [Text(sanitize_line(reason), "red") for reason in report.degraded]
    lines += map(_text, chain(progress_lines(report), _health_lines(report)))
    return Panel(
        Group(*lines),
        title=Text.assemble((state, f"bold {color}"), about),
        title_align="left",
        border_style=color,
    )


def _health_lines(report: StatusAnswer) -> Iterator[str]:
    yield _size(report)
    yield _model(report)
    yield _activity(report)
    yield _process_cost(report)


def _size(report: StatusAnswer) -> str:
    files = report.files
    store = report.store
    chunks = store.rows
    fragments = store.fragments
    megabytes = store.bytes / 1e6
    return f"{files} files, {chunks} chunks, {megabytes:.1f} MB in {fragments} fragments"


def _model(report: StatusAnswer) -> str:
    embedder = report.embedder
    name = embedder.model
    state = embedder.state
    rate = embedder.rate
    rate_note = f", {rate:.0f} texts/s" if rate else ""
    embedded = report.embedded_total
    reused = report.reused_total
    commits = report.commits_total
    counts = f"embedded {embedded}, reused {reused}, commits {commits}"
    return f"model {name}: {state}{rate_note}; {counts}"


def _process_cost(report: StatusAnswer) -> str:
    megabytes = report.rss_bytes / 1e6
    cpu_seconds = report.cpu_s
    uptime = format_age(report.uptime_s)
    return f"memory {megabytes:.0f} MB, CPU {cpu_seconds:.1f} s, up {uptime}"


def _activity(report: StatusAnswer) -> str:
    parts: list[str] = []
    for name, key in _AGES.items():
        seconds: float | None = getattr(report, key)
        if seconds is not None:
            parts.append(f"{name} {format_age(seconds)} ago")
    latency = report.latency_ms
    p50 = latency.p50
    if p50 is not None:
        p95 = latency.p95
        parts.append(f"save to searchable p50 {p50:.0f} ms, p95 {p95:.0f} ms")
    return "; ".join(parts) or "no changes yet"


def _roots(report: StatusAnswer) -> Table:
    headings = ("", "state", "files", "chunks", "watched by", "folder")
    table = _table("folders", headings, right_aligned=("files", "chunks"))
    for root in report.roots:
        state = root.state
        color = _COLORS.get(state, _DEFAULT_COLOR)
        table.add_row(
            _text(root.name),
            Text(state, color),
            str(root.files),
            str(root.chunks),
            _watch_method(root),
            _text(root.path),
        )
    return table


def _watch_method(root: RootStatus) -> str:
    if not root.watching:
        return "polling"
    watches = root.watches
    polled_folders = root.polled_dirs
    if not polled_folders:
        return f"{watches} watches"
    return f"{watches} watches, {polled_folders} polled"


def _queue(report: StatusAnswer) -> Table:
    table = _table(_queue_title(report), ("next", "why"))
    for waiting in report.waiting[:_MAX_WAITING]:
        table.add_row(_text(waiting.path), _text(waiting.why))
    return table


def _queue_title(report: StatusAnswer) -> str:
    pending = report.pending
    seconds_left = report.left_s
    if report.without_vector and not pending:
        return f"{report.without_vector:,} chunks are found by words, and by meaning soon"
    if not seconds_left:
        return f"{pending} files wait"
    time_left = format_age(seconds_left)
    return f"{pending} files wait, about {time_left} left"


def _recent_changes(report: StatusAnswer) -> Table:
    headings = ("", "file", "", *_COST_COLUMNS, "why")
    table = _table(
        "last changes",
        headings,
        right_aligned=tuple(_COST_COLUMNS),
    )
    for change in report.recent[:_MAX_RECENT]:
        age = format_age(change.age_s)
        counts = [_count(heading, getattr(change, key)) for heading, key in _COST_COLUMNS.items()]
        reason = sanitize_line(change.reason)
        table.add_row(
            f"{age} ago",
            _text(change.path),
            change.action,
            *counts,
            Text(reason, "dim"),
        )
    return table


def _count(heading: str, count: int) -> Text:
    """Return a count of chunks: zeros dim, embedded ones (the cost of the change) bold."""
    if not count:
        return Text("0", "dim")
    style = "bold" if heading == "embedded" else ""
    return Text(str(count), style)


def _failed_files(report: StatusAnswer) -> Table:
    failures = report.failed
    title = f"{len(failures)} files are not indexed, or only in part"
    table = _table(title, ("file", "reason"))
    for failure in failures[:_MAX_FAILED]:
        path = _text(failure.path)
        reason = sanitize_line(failure.reason)
        table.add_row(path, Text(reason, "yellow"))
    return table


def _table(title: str, headings: Sequence[str], right_aligned: Sequence[str] = ()) -> Table:
    table = Table(
        title=title,
        title_justify="left",
        title_style="bold",
        box=None,
        pad_edge=False,
        expand=False,
    )
    for heading in headings:
        table.add_column(
            heading,
            justify="right" if heading in right_aligned else "left",
            no_wrap=True,
            overflow="ellipsis",
            header_style="dim",
        )
    return table


def _text(line: str) -> Text:
    sanitized = sanitize_line(line)
    return Text(sanitized)
