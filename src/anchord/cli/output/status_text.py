"""The status as lines of text, with rich's markup."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from anchord.cli.output.detached import detached_group_lines
from anchord.cli.output.markup import escape_markup
from anchord.cli.output.render import format_age
from anchord.cli.output.sizes import format_bytes
from anchord.core.counted import counted
from anchord.core.quoting import escape_gaps, escape_path
from anchord.ipc.messages.status import (
    EmbedderStatus,
    GenerationStatus,
    KeptStatus,
    ModelStatus,
    RootStatus,
    StatusAnswer,
    StoreStatus,
)

_COLORS = {"degraded": "red", "idle": "green"}
_AGES = {
    "last event": "last_event_age_s",
    "last commit": "last_commit_age_s",
    "last verified": "last_verified_age_s",
}


def status_lines(report: StatusAnswer) -> Iterator[str]:
    """Yield the lines of a status report.

    Args:
        report: The daemon's answer to `status`.
    """
    yield _state(report)
    for reason in report.degraded:
        yield f"  [red]{escape_markup(reason)}[/]"
    for line in progress_lines(report):
        yield f"  {line}"
    generation = report.generation
    if generation:
        yield _new_index_progress(generation)
    for repair in report.repairs:
        yield f"  [yellow]repaired: {escape_markup(repair)}[/]"
    yield from _root_lines(report.roots)
    yield from detached_group_lines(report.detached)
    if report.kept and report.kept.transcripts:
        yield _kept(report.kept)
    yield _work(report)
    yield from _activity(report)
    yield _store(report.store)
    yield from _model(report.embedder)
    if report.reranker_problem:
        yield f"  [yellow]{escape_markup(report.reranker_problem)}: searches go on without it[/]"
    if report.on_battery:
        yield "  [yellow]on battery: anchord indexes single saves; the backlog waits[/]"
    yield _process_cost(report)
    for failure in report.failed:
        path = escape_markup(escape_path(failure.path))
        reason = escape_markup(failure.reason)
        yield f"  [yellow]{path}[/]: {reason}"


def _state(report: StatusAnswer) -> str:
    state = report.state
    color = _COLORS.get(state, "yellow")
    version = report.version
    process = report.pid
    uptime = format_age(report.uptime_s)
    return f"[bold {color}]{state}[/]  anchord {version}, process {process}, up {uptime}"


def _new_index_progress(generation: GenerationStatus) -> str:
    why = escape_markup(generation.why)
    done = generation.done
    due = generation.due
    return f"  [yellow]building a new index ({why}): {done} files done, {due} to go[/]"


def _root_lines(roots: Sequence[RootStatus]) -> Iterator[str]:
    names = [escape_gaps(root.name) for root in roots]
    width = max(map(len, names), default=0)
    for shown_name, root in zip(names, roots, strict=True):
        name = escape_markup(shown_name)
        state = root.state
        counts = _root_counts(root)
        path = escape_markup(escape_gaps(root.path))
        padded_name = f"{name:<{width}}"
        yield f"  {padded_name}  {state}  {counts}  [dim]{path}[/]"


def _root_counts(root: RootStatus) -> str:
    files = counted(root.files, "file")
    chunks = counted(root.chunks, "chunk")
    skipped = root.skipped
    watched = _watch_method(root)
    equal = f", {root.left_out} equal to the main checkout" if root.left_out else ""
    counts = f"{files}, {chunks}{equal}, {skipped} skipped, {watched}"
    conversations = root.conversations
    if not conversations:
        return counts
    sessions = conversations.sessions
    exchanges = conversations.exchanges
    said = f"{counted(sessions, 'conversation')}, {counted(exchanges, 'exchange')}"
    return f"{said} in {counts}"


def _watch_method(root: RootStatus) -> str:
    if not root.watching:
        return "polled"
    watches = root.watches
    polled_folders = root.polled_dirs
    if not polled_folders:
        return f"{watches} watches"
    return f"{watches} watches, {polled_folders} folders polled"


def progress_lines(report: StatusAnswer) -> Iterator[str]:
    """Yield how much of the files is found by words, and by meaning, while something is missing.

    Args:
        report: The daemon's answer to `status`.
    """
    files, chunks = report.files, report.chunks
    # The files of a new index have a line of their own.
    waiting = report.pending - (report.generation.due if report.generation else 0)
    if waiting > 0:
        indexed = f"words: {chunks:,} chunks of {files:,} files so far"
        yield f"{indexed}; {waiting:,} files wait{_time_left(report.left_s)}"
    missing = report.without_vector
    if missing:
        made = max(0, chunks - missing)
        yield f"meaning: {made:,} of {chunks:,} chunks so far{_time_left(report.vectors_left_s)}"
    if report.embedder.state == "preparing":
        yield "preparing the model for this machine: once, about 15 s"


def _time_left(seconds: float | None) -> str:
    return f", about {format_age(seconds)} left" if seconds else ""


def _work(report: StatusAnswer) -> str:
    pending = report.pending
    failed = len(report.failed)
    embedded = report.embedded_total
    reused = report.reused_total
    commits = report.commits_total
    queue = f"pending {pending}, failed {failed}"
    return f"  {queue}, embedded {embedded}, reused {reused}, commits {commits}"


def _activity(report: StatusAnswer) -> Iterator[str]:
    ages = list(_ages(report))
    if ages:
        listed = ", ".join(ages)
        yield f"  {listed}"
    latency = report.latency_ms
    p50 = latency.p50
    if p50 is not None:
        p95 = latency.p95
        yield f"  save to searchable: p50 {p50:.0f} ms, p95 {p95:.0f} ms"
    overflows = report.overflows
    if overflows:
        consequence = "the system dropped file events; anchord walked all folders again"
        yield f"  overflows {overflows}: {consequence}"


def _ages(report: StatusAnswer) -> Iterator[str]:
    for name, key in _AGES.items():
        seconds: float | None = getattr(report, key)
        if seconds is not None:
            yield f"{name} {format_age(seconds)} ago"


def _store(store: StoreStatus) -> str:
    rows = store.rows
    fragments = store.fragments
    megabytes = store.bytes / 1e6
    return f"  store: {rows} rows, {fragments} fragments, {megabytes:.1f} MB"


def _kept(kept: KeptStatus) -> str:
    whole, disk = format_bytes(kept.transcript_bytes), format_bytes(kept.bytes)
    return f"  {counted(kept.transcripts, 'transcript')} of {whole} kept byte for byte, in {disk}"


def _model(embedder: EmbedderStatus) -> Iterator[str]:
    yield f"  model: {_model_state(embedder)}"
    yield from _why_slow(embedder)
    for further in embedder.further:
        yield f"  further model: {_model_state(further)}"
        yield from _why_slow(further)


def _model_state(model: ModelStatus) -> str:
    return f"{escape_markup(model.model)} ({_runtime(model)}), {model.state}"


def _why_slow(model: ModelStatus) -> Iterator[str]:
    if model.why:
        yield f"  [yellow]the model could be faster here: {escape_markup(model.why)}[/]"


def _process_cost(report: StatusAnswer) -> str:
    megabytes = report.rss_bytes / 1e6
    cpu_seconds = report.cpu_s
    return f"  memory {megabytes:.0f} MB, CPU {cpu_seconds:.1f} s"


def _runtime(model: ModelStatus) -> str:
    """Return where a model runs; what is unknown before the first text is left out."""
    parts = (
        model.provider,
        model.runtime,
        model.device,
        model.precision,
    )
    return ", ".join(escape_markup(str(part)) for part in parts if part)
