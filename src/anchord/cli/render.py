"""JSON values -> lines for a terminal, with rich's markup. `frame.say` takes out what could steer the terminal."""

from __future__ import annotations

import os
import re
import textwrap
from collections.abc import Iterator, Sequence
from datetime import datetime
from typing import Any
from urllib.parse import quote

from rich.markup import escape

from anchord import model

_UNSAFE = re.compile("[\x00-\x08\x0a-\x1f\x7f-\x9f\u200b\u200e\u200f\u2028-\u202e\u2060-\u2069\ufeff]")
_EXCERPT_LINES = 4
_WIDTH = 78


def printable(line: str) -> str:
    """Return a line without what could steer a terminal, hide something, or begin another line.

    The joiners U+200C and U+200D stay: Persian, Indic scripts and emoji are spelled with them.
    """
    return _UNSAFE.sub("\N{REPLACEMENT CHARACTER}", model.printable(line))


def search_lines(groups: Sequence[Sequence[dict[str, Any]]], folder: str, *, explain: bool = False) -> Iterator[str]:
    """Yield search results: each file's best passage with an excerpt, then where its others are. What matched is marked."""
    for number, (best, *others) in enumerate(groups):
        if number:
            yield ""
        place, figures = _place(best, folder), f"{best['score']:.2f} {best['id'][:8]}"
        room = _WIDTH - len(place) - len(figures) - 4
        section = str(best["header_path"])
        beside = len(section) <= room
        yield f"[bold cyan]{_linked(place, best)}[/]  {_green(section, room) if beside else ''}[dim]{figures}[/]"
        if section and not beside:
            yield f"    {_green(section, _WIDTH - 4)}"
        for line in _excerpt(best["text"], best["matched"]):
            yield f"    {_marked(line, best['matched'])}"
        if explain:
            yield f"    [dim]{escape(_found_by(best))}[/]"
        for hit in others[:3]:
            span = f"{hit['start_line']}-{hit['end_line']}"
            yield f"  [dim]also {span:<9} {_section(hit)}  {hit['score']:.2f} {hit['id'][:8]}[/]"
            if explain:
                yield f"    [dim]{escape(_found_by(hit))}[/]"
        if others[3:]:
            yield f"  [dim]and {len(others) - 3} more places of this {'exchange' if 'session' in best else 'file'}[/]"


def _green(section: str, most: int) -> str:
    return f"[green]{escape(_cut(section, most))}[/]  " if section else ""


def _found_by(hit: dict[str, Any]) -> str:
    """Say how a hit was found."""
    near = f"meaning: cosine {hit['cosine']:.3f}, no. {hit['cosine_rank']}" if hit["cosine_rank"] else "not by meaning"
    words = f"words: BM25 {hit['bm25']:.2f}, no. {hit['bm25_rank']}" if hit["bm25_rank"] else "not by words"
    exact = "; holds the name letter by letter" if hit["exact"] else ""
    named = "; the query has its heading" if hit["named"] else ""
    matched = f"; matched: {', '.join(hit['matched'])}" if hit["matched"] else ""
    return f"{near}; {words}{exact}{named}{matched}"


def _linked(place: str, hit: dict[str, Any]) -> str:
    """Make a place a link to its line (OSC 8), where the terminal has links."""
    if "session" in hit or not hit["file"]:
        return escape(place)
    return f"[link=file://{quote(str(hit['file']))}#{hit['start_line']}]{escape(place)}[/link]"


def _marked(line: str, words: Sequence[str]) -> str:
    """Mark words in a line."""
    if not words:
        return escape(line)
    pattern = "|".join(rf"(?<!\w){re.escape(word)}(?!\w)" for word in sorted(words, key=len, reverse=True))
    pieces, at = list[str](), 0
    for found in re.finditer(pattern, line, re.IGNORECASE):
        pieces += [escape(line[at : found.start()]), f"[bold yellow]{escape(found[0])}[/]"]
        at = found.end()
    return "".join([*pieces, escape(line[at:])])


def chunk_lines(chunk: dict[str, Any]) -> Iterator[str]:
    """Yield a chunk with its place above it."""
    span = f"{chunk['start_line']}-{chunk['end_line']}"
    place = _said(chunk) if "session" in chunk else f"{chunk['root']}:{chunk['path']}:{span}"
    yield f"[bold cyan]{escape(place)}[/]  [green]{_section(chunk)}[/]  [dim]{chunk['id']}[/]"
    for line in chunk["text"].split("\n"):
        yield escape(line)


def conversation_lines(talk: dict[str, Any]) -> Iterator[str]:
    """Yield what an exchange is part of, and how to go on from it."""
    gone = ", whose file is gone" if talk["source_missing"] else ""
    name = escape(str(talk["title"] or talk["project"] or talk["source"]))
    yield ""
    yield f"[dim]exchange {talk['number']} of {talk['exchanges']} in[/] [green]{name}[/] [dim]({talk['session']}{gone})[/]"
    for way in ("previous", "next"):
        if talk[way]:
            yield f"  [dim]{way + ':':<9} anchord show {talk[way]['id'][:12]} --whole[/]  {escape(_cut(talk[way]['question']))}"


def status_lines(report: dict[str, Any]) -> Iterator[str]:
    """Yield the status."""
    colour = {"degraded": "red", "idle": "green"}.get(report["state"], "yellow")
    who = f"anchord {report['version']}, process {report['pid']}, up {age(report['uptime_s'])}"
    yield f"[bold {colour}]{report['state']}[/]  {who}"
    for reason in report["degraded"]:
        yield f"  [red]{escape(reason)}[/]"
    if report["generation"]:
        building = report["generation"]
        progress = f"{building['done']} files, {building['due']} to go"
        yield f"  [yellow]building a new index ({escape(building['why'])}): {progress}[/]"
    for repair in report["repairs"]:
        yield f"  [yellow]at the start: {escape(repair)}[/]"
    embedder = report["embedder"]
    width = max((len(root["name"]) for root in report["roots"]), default=0)
    for root in report["roots"]:
        watch = f"{root['watches']} watches" if root["watching"] else "polled"
        if root["watching"] and root["polled_dirs"]:
            watch += f", {root['polled_dirs']} folders polled"
        counts = f"{root['files']} files, {root['chunks']} chunks, {root['skipped']} left out, {watch}"
        if talks := root.get("conversations"):
            counts = f"{talks['sessions']} conversations, {talks['exchanges']} exchanges in {counts}"
        yield f"  {escape(root['name']):<{width}}  {root['state']}  {counts}  [dim]{escape(root['path'])}[/]"
    left = _left(report)
    yield f"  pending {report['pending']}{left}, failed {len(report['failed'])}, embedded {report['embedded_total']}, " + (
        f"reused {report['reused_total']}, commits {report['commits_total']}"
    )
    latency, store = report["latency_ms"], report["store"]
    ages = [f"{name} {age(report[key])} ago" for name, key in _AGES if report[key] is not None]
    if ages:
        yield f"  {', '.join(ages)}"
    if latency["p50"] is not None:
        yield f"  save to searchable: half within {latency['p50']:.0f} ms, 95 % within {latency['p95']:.0f} ms"
    if report["overflows"]:
        yield f"  overflow {report['overflows']}: the system dropped events, and all was walked again"
    yield f"  store: {store['rows']} rows, {store['fragments']} fragments, {store['bytes'] / 1e6:.1f} MB"
    yield f"  model: {escape(embedder['model'])} ({_runtime(embedder)}), {embedder['state']}"
    yield from _embedding_notes(report)
    yield f"  memory {report['rss_bytes'] / 1e6:.0f} MB, CPU {report['cpu_s']:.1f} s"
    for failure in report["failed"]:
        yield f"  [yellow]{escape(failure['path'])}[/]: {escape(failure['reason'])}"


_DECISIONS = {"read": "would be read", "skip": "nothing to do", "forget": "would leave the index"}


def explain_lines(told: dict[str, Any]) -> Iterator[str]:
    """Yield what is known of a file, which rule let it in, and what would be done with it now."""
    state = "[bold green]indexed[/]" if told["indexed"] else "[bold yellow]not indexed[/]"
    yield f"{state}  [bold cyan]{escape(told['path'])}[/]"
    if told.get("problem"):
        yield f"  [yellow]{escape(told['problem'])}[/]"
    if "root" not in told:
        yield f"  {escape(told['rule'])}: {escape(told['reason'])}"
        return
    size = f", {told['size']:,} bytes" if told["size"] is not None else ""
    exchanges = f" of {told['exchanges']} exchanges" if told.get("exchanges") else ""
    yield f"  root  {escape(told['root'])}: {told['chunks']} chunks{exchanges} by the strategy {told['strategy']}{size}"
    yield f"  rule  {escape(told['rule'])}"
    yield f"  now   {_DECISIONS[told['decision']]}: {escape(told['reason'])}"
    if told["last_reason"]:
        yield f"  last  was taken in: {escape(told['last_reason'])}"


_AGES = (("last event", "last_event_age_s"), ("last commit", "last_commit_age_s"), ("last verified", "last_verified_age_s"))


def _left(report: dict[str, Any]) -> str:
    return f" (about {age(report['left_s'])} left, {report['embedder']['rate']:.0f} texts/s)" if report["left_s"] else ""


def _embedding_notes(report: dict[str, Any]) -> Iterator[str]:
    if report["embedder"]["why"]:
        yield f"  [yellow]the model could be faster here: {escape(report['embedder']['why'])}[/]"
    if report["on_battery"]:
        yield "  [yellow]on battery: single saves are indexed, the backlog waits[/]"


def _runtime(embedder: dict[str, Any]) -> str:
    """Where the model runs, as far as is known: nothing is before the first text."""
    known = (embedder["provider"], embedder.get("runtime"), embedder.get("device"), embedder.get("precision"))
    return ", ".join(escape(str(part)) for part in known if part)


def _place(hit: dict[str, Any], folder: str) -> str:
    if "session" in hit:
        return _said(hit)
    file = str(hit["file"])
    shown = os.path.relpath(file, folder) if file.startswith(folder.rstrip("/") + "/") else file
    return f"{shown}:{hit['start_line']}"


def _said(hit: dict[str, Any]) -> str:
    """Where and when something was said, in the reader's own time."""
    at = datetime.fromisoformat(hit["at"]).astimezone().strftime(" %Y-%m-%d %H:%M") if hit["at"] else ""
    return f"{hit['source']}{at}"


def _section(hit: dict[str, Any]) -> str:
    return escape(_cut(str(hit["header_path"])))


def _cut(line: str, most: int = _WIDTH) -> str:
    return line if len(line) <= most else f"{line[: most - 1]}…"


def _wrapped(line: str) -> list[str]:
    """Break a long line between words, as far as there are any."""
    indent = line[: len(line) - len(line.lstrip())][: _WIDTH // 2]
    return textwrap.wrap(
        line.expandtabs(4), _WIDTH - 4, subsequent_indent=indent, break_on_hyphens=False, drop_whitespace=True
    ) or [line[: _WIDTH - 4]]


def _excerpt(text: str, matched: Sequence[str] = ()) -> list[str]:
    """Return the few lines of a text that hold most of what matched; the first ones, of those that hold as much."""
    whole = textwrap.dedent("\n".join(line for line in text.split("\n") if line.strip())).split("\n")
    lines = [part for line in whole for part in _wrapped(line)]
    words = [word.lower() for word in matched]
    holds = [sum(word in line.lower() for word in words) for line in lines]
    starts = range(max(1, len(lines) - _EXCERPT_LINES + 1))
    first = max(starts, key=lambda start: (sum(holds[start : start + _EXCERPT_LINES]), -start))
    shown = lines[first : first + _EXCERPT_LINES]
    return ["…"] * (first > 0) + shown + ["…"] * (first + _EXCERPT_LINES < len(lines))


def age(seconds: float) -> str:
    """Return how long ago, in one unit."""
    for unit, size in (("d", 86_400), ("h", 3_600), ("min", 60)):
        if seconds >= size:
            return f"{seconds / size:.0f} {unit}"
    return f"{seconds:.1f} s"
