"""`status`, `errors`, `subscribe`: what the daemon does and whether it is healthy."""

from __future__ import annotations

from anchord.ipc.messages.base import Message


class Failure(Message, frozen=True, kw_only=True):
    """A file or folder that is not indexed, or only in part."""

    path: str
    reason: str
    partial: bool
    since: str
    """ISO 8601 in UTC."""


class ConversationCounts(Message, frozen=True, kw_only=True):
    """What the archive holds of a root."""

    sessions: int
    exchanges: int
    source_missing: int
    """Exchanges that no transcript file contains any more."""
    superseded: int
    """Exchanges on an abandoned branch."""
    redacted: dict[str, int]
    """Kind of secret -> how many were replaced."""


class RootStatus(Message, frozen=True, kw_only=True):
    """An indexed folder."""

    name: str
    path: str
    kind: str
    state: str
    """offline, held, scanning, indexing or idle."""
    files: int
    chunks: int
    skipped: int
    left_out: int = 0
    """Files of further worktrees that equal the main checkout's: `worktrees = "one"`."""
    watching: bool
    held: int
    """Files whose deletion waits for a confirmation."""
    watches: int
    polled_dirs: int
    conversations: ConversationCounts | None = None
    """None for a project, and for a root without conversations."""


class DetachedCounts(Message, frozen=True, kw_only=True):
    """A group of exchanges that are kept and not indexed."""

    reason: str
    root: str
    folder: str
    sessions: int
    exchanges: int
    source_missing: int


class KeptStatus(Message, frozen=True, kw_only=True):
    """The transcripts that are kept byte for byte."""

    transcripts: int
    transcript_bytes: int
    """Their size."""
    bytes: int
    """What they take on the disk."""


class Percentiles(Message, frozen=True, kw_only=True):
    """The median and the 95th percentile; both None without values."""

    p50: float | None
    p95: float | None


class ModelStatus(Message, frozen=True, kw_only=True):
    """A model. What only some providers know is None for the others."""

    state: str
    provider: str
    model: str
    rate: float
    """Texts a second."""
    why: str
    """Why it could be faster here, "" if it could not."""
    runtime: str | None = None
    device: str | None = None
    precision: str | None = None


class EmbedderStatus(ModelStatus, frozen=True, kw_only=True):
    """The main model."""

    measured: dict[str, float] | None = None
    starts: int | None = None
    rss_bytes: int | None = None
    refused: int | None = None
    over_window: int | None = None
    in_flight: int | None = None
    further: tuple[ModelStatus, ...] = ()
    """The models for some of the documents."""


class StoreStatus(Message, frozen=True, kw_only=True):
    """The table."""

    rows: int
    fragments: int
    versions: int
    bytes: int


class UpkeepStatus(Message, frozen=True, kw_only=True):
    """The maintenance of the table since the start."""

    passes: int
    seconds: float
    mended: int


class GenerationStatus(Message, frozen=True, kw_only=True):
    """How far the next generation is."""

    why: str
    done: int
    due: int
    waits_for: tuple[str, ...]


class WaitingFile(Message, frozen=True, kw_only=True):
    """A file that is indexed next."""

    root: str
    path: str
    why: str


class RecentChange(Message, frozen=True, kw_only=True):
    """What was done with a file; the numbers count its chunks."""

    root: str
    path: str
    action: str
    reason: str
    kept: int
    moved: int
    embedded: int
    reused: int
    deleted: int
    age_s: float


class StatusAnswer(Message, frozen=True, kw_only=True):
    """Answer of "status". Counters are since the daemon's start."""

    state: str
    """starting, degraded, paused, scanning, indexing, checking or idle."""
    degraded: tuple[str, ...]
    """Why it is degraded."""
    pid: int
    uptime_s: float
    version: str
    recipe: str
    roots: tuple[RootStatus, ...]
    files: int
    chunks: int
    pending: int
    left_s: float | None
    without_vector: int = 0
    """Chunks that only words find so far."""
    vectors_left_s: float | None = None
    """Seconds until they have vectors; None for unknown."""
    failed: tuple[Failure, ...]
    kept: KeptStatus | None = None
    """None if there are none, or they cannot be counted."""
    detached: tuple[DetachedCounts, ...]
    embedded_total: int
    reused_total: int
    commits_total: int
    overflows: int
    reconciles: int
    last_event_age_s: float | None
    last_commit_age_s: float | None
    last_verified_age_s: float | None
    latency_ms: Percentiles
    """From a save until it is searchable."""
    embedder: EmbedderStatus
    store: StoreStatus
    upkeep: UpkeepStatus
    on_battery: bool
    generation: GenerationStatus | None
    repairs: tuple[str, ...]
    waiting: tuple[WaitingFile, ...]
    recent: tuple[RecentChange, ...]
    """The last outcomes, newest first."""
    rss_bytes: int
    cpu_s: float
    reranker_problem: str = ""
    """Why searches go on without the configured reranker; "" if they do not."""


class DoneOfTotal(Message, frozen=True, kw_only=True):
    """How far a piece of work is."""

    done: int
    total: int


class Progress(Message, frozen=True, kw_only=True):
    """What "subscribe" streams several times a second."""

    state: str
    pending: int
    left_s: float | None
    done: int
    embedded_total: int
    rate: float
    backup: DoneOfTotal | None = None
    """In megabytes."""
    verify: DoneOfTotal | None = None
    """In transcripts."""
    without_vector: int = 0
    vectors_left_s: float | None = None
    model: str = ""
    """State of the model, as in `status`."""
