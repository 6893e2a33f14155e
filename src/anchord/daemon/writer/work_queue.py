"""The writer's work queue: hints and walks go in, files to index come out.

Everything that waits is a set of paths, so memory does not grow with the number of events.
`file_queue` says which files go first: single saves before what a walk or a burst of events found.

A missing file is deleted from the index only after a look at its folder confirmed it
(`missing_files`). When many are missing at once, a walk of the whole root decides: it applies the
deletion guard, which holds mass deletions until somebody confirms them.
"""

from __future__ import annotations

import random
import threading
import time
from collections.abc import Iterable, Mapping, Sequence
from contextlib import ExitStack

import structlog

from anchord.config.schema import WatchConfig
from anchord.core.bursts import BurstDetector
from anchord.core.debounce import Debouncer
from anchord.core.deletion_guard import MIN_FILES_TO_HOLD, DeletionPolicy
from anchord.core.types import NO_FINGERPRINT, Fingerprint, RootedPath
from anchord.daemon.writer.deletions import DeletionDebouncer, RecentDeletions
from anchord.daemon.writer.file_queue import FileQueue, Turn, Urgency
from anchord.daemon.writer.hint_inspection import HintInspector, Inspection
from anchord.daemon.writer.root_checks import RootChecks
from anchord.daemon.writer.vector_queue import VectorQueue
from anchord.index.archive_roots import list_unlisted_files
from anchord.index.reconcile import ReconcileResult
from anchord.index.session import IndexWriter
from anchord.sources.files.folder_files import WAL_SUFFIX
from anchord.sources.files.ignore_rules import is_ignore_file
from anchord.sources.watch.root_watcher import RootWatcher

log = structlog.get_logger()

FILES_PER_TURN = 200
"""Files that are handed to the indexer at once."""
_NS_PER_S = 1e9
_JITTER = 0.1
"""The time between two walks of everything varies by so much, up and down."""


class WorkQueue:
    """Files that wait to be indexed, and the hints that lead to them.

    Other threads may call `add_hint`, `next_files` and `len()`, and read `has_hints`,
    `last_event_at` and `reconcile_count`. Everything else belongs to the writer thread. All times
    are of the monotonic clock.
    """

    def __init__(self, writer: IndexWriter, config: WatchConfig) -> None:
        """Start empty; nothing is watched until `root_watcher.start` is called."""
        self.files = FileQueue()
        """The files that wait."""
        self.vectors = VectorQueue()
        """The files that are indexed and wait for vectors."""
        self.hinted_at: dict[RootedPath, float] = {}
        """Queued files that a hint led to, with the time of their first hint."""
        self.missing_files: dict[RootedPath, Fingerprint] = {}
        """Queued files that are gone or were emptied, with the fingerprint they were indexed with.

        Their deletion was checked: the indexer may delete their rows.
        """
        self.moved_from: dict[RootedPath, RootedPath] = {}
        """New path -> old path, for queued files that moved."""
        self.reconcile_count = 0
        """Walks of a whole root since the start."""
        self.last_event_at: float | None = None
        """When the last hint came, None before the first."""
        self.wake_condition = threading.Condition()
        """Notified by every hint; protects the hints."""
        self.root_watcher = RootWatcher(writer.roots, self.add_hint)
        self.root_checks = RootChecks(writer.files.folder_files.rules)
        """Roots to walk for their rules, or their folder."""
        self._writer = writer
        self._config = config
        self._settle_s = config.settle_ms / 1000
        self._debouncer = Debouncer(self._settle_s, config.max_wait_ms / 1000)
        self._hints: dict[RootedPath, float] = {}
        self._inspector = HintInspector(writer, self._walk)
        self._bursts = BurstDetector()
        self._last_turn = Turn([], Urgency.LATER)
        self._deletions = DeletionDebouncer()
        self._recent_deletions = RecentDeletions()
        self._next_reconcile = 0.0
        self._next_poll = 0.0

    # For other threads

    def add_hint(self, origin: RootedPath) -> None:
        """Record that a path may have changed, and wake the writer. Never blocks, never raises.

        Args:
            origin: The path; an empty `path` means that anything in the root may have changed.
        """
        now = time.monotonic()
        self.last_event_at = now
        known_as = RootedPath(origin.root, self._writer.files.redact_path(origin.path))
        with self.wake_condition:
            self._hints[known_as] = now
            self.wake_condition.notify_all()

    def __len__(self) -> int:
        """Count the waiting files and hints."""
        hints = len(self._hints) + len(self._debouncer) + len(self._deletions)
        return self.file_count + hints

    def next_files(self, limit: int) -> list[tuple[RootedPath, str]]:
        """Return files that wait, the next ones first, each with the reason it is queued."""
        waiting = self.files
        taken = (file for file in self._last_turn.files if file in waiting)
        in_order = dict.fromkeys([*taken, *waiting.snapshot()])
        files = list(in_order)[:limit]
        return [(file, "saved" if file in self.hinted_at else "found by a walk") for file in files]

    @property
    def file_count(self) -> int:
        """How many files wait; hints that were not looked at yet do not count."""
        return len(self.files)

    @property
    def has_hints(self) -> bool:
        """Whether hints wait that `drain_hints` has not seen."""
        return bool(self._hints)

    # In the writer thread: hints

    def has_more_urgent(self, than: Urgency, now: float) -> bool:
        """Whether a file waits, or a hint has settled, that goes before files of an urgency."""
        return self.files.has_more_urgent(than) or self.has_fresh_due(now)

    def has_files_before_vectors(self, *, without_later: bool) -> bool:
        """Whether something is to be indexed before vectors are made for indexed files.

        Args:
            without_later: Leave out the files that nobody has just saved or deleted.
        """
        now = time.monotonic()
        if self.vectors.may_go_on(now):
            return False
        has_later = self.files.count(Urgency.LATER) > 0 and not without_later
        return has_later or self.has_more_urgent(Urgency.LATER, now)

    def has_fresh_due(self, now: float) -> bool:
        """Whether a hint has settled, so that it should be looked at."""
        with self.wake_condition:
            oldest_hint_at = next(iter(self._hints.values()), None)
        if oldest_hint_at is not None and oldest_hint_at + self._settle_s <= now:
            return True
        debounced_at = self._debouncer.next_due_at()
        return debounced_at is not None and debounced_at <= now

    def next_due_at(self) -> float:
        """Return when the next hint, deletion, poll or walk is due."""
        times = [
            self._next_reconcile,
            *self.root_checks.due_times,
            self._debouncer.next_due_at(),
            self._deletions.next_due_at(),
        ]
        if self._has_polled_folders():
            times.append(self._next_poll)
        return min(due_at for due_at in times if due_at is not None)

    def drain_hints(self, *, skip_debounce: bool) -> None:
        """Move hints that have settled on to `files`; walk a root where that is needed.

        Args:
            skip_debounce: Process all hints now, settled or not, deletions included.

        Raises:
            StoreError: The catalog cannot be read. The hints are lost; every root is walked next.
        """
        with ExitStack() as undo:
            undo.callback(self._walk_all_next)
            self._drain_hints(skip_debounce=skip_debounce)
            undo.pop_all()

    def _walk_all_next(self) -> None:
        self._next_reconcile = 0.0

    def _drain_hints(self, *, skip_debounce: bool) -> None:
        with self.wake_condition:
            hints, self._hints = self._hints, {}
        for origin, hinted_at in hints.items():
            if origin.root in self.root_watcher.states:  # Not one that was removed meanwhile.
                self._debouncer.add_hint(origin, hinted_at)
        due_by_root: dict[str, dict[str, float]] = {}
        due = self._debouncer.pop_due(time.monotonic(), include_unsettled=skip_debounce)
        for origin, hinted_at in due:
            due_by_root.setdefault(origin.root, {})[origin.path] = hinted_at
        for root, hinted_paths in due_by_root.items():
            self._process_hints(root, hinted_paths, delay_deletions=not skip_debounce)
        for root in self._deletions.roots_due(include_unsettled=skip_debounce):
            self._process_hints(root, self._deletions.pop_root(root), delay_deletions=False)

    # In the writer thread: walks

    def walk_if_due(self, now: float) -> bool:
        """Walk all roots, or all polled folders, if it is time; return whether a walk was made.

        A root is also walked when its ignore rules have settled.
        All roots are walked every `[watch] reconcile_s`, folders that cannot be watched every
        `poll_s`.
        """
        if now >= self._next_reconcile:
            self.reconcile_all()
            return True
        rules_due = self.root_checks.roots_due(now)
        for name in rules_due:
            self.reconcile(name)
        if rules_due:
            return True
        if now < self._next_poll or not self._has_polled_folders():
            return False
        self._next_poll = now + self._config.poll_s
        # Listed before the first walk: a walk can change which folders are polled.
        polled_folders = [
            RootedPath(name, folder)
            for name in self.root_watcher.states
            for folder in self.root_watcher.polled_folders(name)
        ]
        for folder in polled_folders:
            self.reconcile(folder.root, folder.path)
        return True

    def reconcile_all(self) -> None:
        """Walk every root, and schedule the next walk of everything."""
        for name in list(self.root_watcher.states):
            self.reconcile(name)
        # The jitter keeps several daemons on one machine from walking at the same moment.
        jitter = 1 + _JITTER * random.uniform(-1, 1)  # noqa: S311 - no secret depends on it
        self._next_reconcile = time.monotonic() + self._config.reconcile_s * jitter

    def reconcile(
        self, root_name: str, folder: str = "", *, deletions_confirmed: bool = False
    ) -> ReconcileResult:
        """Walk a root or a folder of it, and queue what differs from the index.

        Args:
            root_name: Name of a root that is watched.
            folder: Path relative to the root; "" walks the whole root, applies the deletion guard
                and updates the root's state in `root_watcher`. So does a folder in which so many
                files are missing that the guard must decide.
            deletions_confirmed: A user confirmed the deletions, so none is held.

        Returns:
            What the walk found; its paths are queued already.
        """
        if not folder and root_name in self.root_checks.unsettled_roots:
            self._list_unlisted_files(root_name)
        result = self._walk(root_name, folder, deletions_confirmed=deletions_confirmed)
        if folder and self._needs_deletion_guard(root_name, result.gone_or_emptied):
            return self.reconcile(root_name)
        self._recent_deletions.record(root_name, result.released_deletions)
        self.missing_files.update(result.gone_or_emptied)
        self._enqueue_later(result.paths_due, result.mtimes_ns)
        if not folder:
            self._update_root_state(root_name, result)
        self.root_checks.note_walk(root_name)
        if not (folder or result.walk_error):
            self.vectors.retry_unreadable(root_name)
        return result

    def _list_unlisted_files(self, root_name: str) -> None:
        """Let the next walk find deleted transcripts to which other rules may apply now."""
        writer, files = self._writer, self._writer.files.folder_files
        files.rules.begin_walk(root_name)
        list_unlisted_files(writer.archive, writer.catalog, writer.roots, files)

    # In the writer thread: files

    @property
    def pending_paths(self) -> set[RootedPath]:
        """The files that wait to be indexed, and "" in each root whose rules settle soon."""
        unsettled = (RootedPath(name, "") for name in self.root_checks.unsettled_roots)
        return {*self.files.snapshot(), *unsettled}

    def next_turn(
        self, *, without_later: bool = False, without_vectors: bool = False
    ) -> Turn | None:
        """Return what to index next; None if nothing waits. The files stay queued until `remove`.

        None too where vectors have waited for seven turns: constant saves must not starve them.

        Args:
            without_later: Leave out the files that nobody has just saved or deleted.
            without_vectors: No vectors can be made now: no turn is theirs.
        """
        allowed = [each for each in Urgency if not (without_later and each is Urgency.LATER)]
        now = time.monotonic()
        if not without_vectors and self.vectors.takes_turn(now, saved_only=without_later):
            return None
        urgency = self.files.next_urgency(allowed)
        if urgency is None:
            return None
        files = self.files.next_files(urgency[0], FILES_PER_TURN, self.moved_from)
        self._last_turn = Turn(files, *urgency, now)
        return self._last_turn

    def enqueue(self, origins: Iterable[RootedPath]) -> None:
        """Queue files that nobody has just saved; those that wait already keep their place."""
        for origin in origins:
            self.files.add(origin, Urgency.LATER, time.time())

    def requeue_later(self, origin: RootedPath) -> None:
        """Take a file off the queues and add a hint for it, so that it is retried once settled."""
        self.remove(origin)
        self._debouncer.add_hint(origin, time.monotonic())

    def remove(self, origin: RootedPath) -> None:
        """Take a file off the queue, and forget that it was missing or moved."""
        self.files.remove(origin)
        for known in (self.hinted_at, self.missing_files, self.moved_from):
            known.pop(origin, None)

    def drop_root_hints(self, root_name: str) -> list[RootedPath]:
        """Drop a root's hints; return its queued files, which stay queued until `remove`."""
        self._debouncer.drop_root(root_name)
        self._deletions.pop_root(root_name)
        self.root_checks.drop(root_name)
        return [origin for origin in self.files.snapshot() if origin.root == root_name]

    def _has_polled_folders(self) -> bool:
        return any(self.root_watcher.polled_folders(name) for name in self.root_watcher.states)

    def _walk(
        self, root_name: str, folder: str, *, deletions_confirmed: bool = False
    ) -> ReconcileResult:
        policy = DeletionPolicy(
            all_confirmed=deletions_confirmed,
            released=self.missing_files,
            recent_count=self._recent_deletions.count(root_name),
        )
        result = self._writer.indexer.reconcile(
            root_name, folder, self.root_watcher.watch_folder, policy
        )
        self.root_watcher.unwatch_unlisted_folders(
            RootedPath(root_name, folder), result.listed_folders
        )
        self.moved_from.update(result.moved_from)
        return result

    def _update_root_state(self, root_name: str, result: ReconcileResult) -> None:
        """Store what a walk of a whole root found for status, and log what is new."""
        self.reconcile_count += 1
        state = self.root_watcher.states[root_name]
        if result.walk_error and result.walk_error != state.walk_error:
            log.warning("root.unavailable", root=root_name, reason=result.walk_error)
        elif state.walk_error and not result.walk_error:
            log.info("root.available", root=root_name)
        if result.held_deletions != state.held_deletions:
            log.warning("root.deletions_held", root=root_name, files=result.held_deletions)
        state.walk_error = result.walk_error
        state.is_refused = result.is_refused
        state.held_deletions = result.held_deletions
        state.file_count = result.file_count
        state.skipped_count = result.skipped
        state.is_scanned = True
        state.replace_folder_problems(result.folder_problems, time.time_ns())

    # In the writer thread: from hints to files

    def _process_hints(
        self, root: str, hinted_at: Mapping[str, float], *, delay_deletions: bool
    ) -> None:
        """Turn the settled hints of one root into fresh files, or walk the root.

        With `delay_deletions`, a file that is missing and did not move waits in `_deletions`: more
        deletions may follow, and the deletion guard must see them together. So does a file that
        was emptied: usually its new content is about to be written.
        """
        # A change of SQLite's write-ahead log is a change of its database.
        hinted_at = {path.removesuffix(WAL_SUFFIX): at for path, at in hinted_at.items()}
        if "" in hinted_at or any(map(is_ignore_file, hinted_at)):
            # The whole root was hinted at, or its ignore rules changed: any file can be affected.
            self.root_checks.expect_new_rules(root)
            self.reconcile(root)
            return
        inspection = self._inspector.inspect(root, hinted_at)
        if inspection is None:
            # A folder could not be walked. A walk of the root keeps the rows below that folder
            # and records the problem; it also finds what the other hints were about.
            self.reconcile(root)
            return
        # Here each hinted path is a file to index, a walked folder, or missing.
        self.moved_from.update(self._inspector.find_moves(inspection))
        if delay_deletions:
            self._delay_deletions(inspection, hinted_at)
        # Here each missing file has moved, or has waited for others to follow.
        if self._needs_deletion_guard(root, inspection.missing):
            # The walk compares them with the whole root: it queues them, or holds them.
            for file in list(inspection.missing):
                inspection.drop(file)
            self.reconcile(root)
        elif inspection.missing:
            self._recent_deletions.record(root, len(inspection.missing))
            self.missing_files.update(inspection.missing)
        self._enqueue_hinted(inspection)

    def _delay_deletions(self, inspection: Inspection, hinted_at: Mapping[str, float]) -> None:
        """Move the missing files that did not move from the inspection to `_deletions`."""
        moved = set(self.moved_from.values())
        for file in list(inspection.missing):
            if file not in moved:
                path = inspection.hinted_paths[file]
                self._deletions.add(RootedPath(inspection.root, path), hinted_at[path])
                inspection.drop(file)

    def _needs_deletion_guard(self, root: str, missing: Mapping[RootedPath, Fingerprint]) -> bool:
        """Whether a walk of the whole root must decide about these deletions.

        So it is when 50 or more files were deleted within 30 s, or when a missing file was on
        another device than the root is now: a disk may have been unmounted.
        """
        if not missing:
            return False
        if self._recent_deletions.count(root) + len(missing) >= MIN_FILES_TO_HOLD:
            return True
        expected_devices = (NO_FINGERPRINT.device, self.root_watcher.stat_device(root))
        return any(seen.device not in expected_devices for seen in missing.values())

    def _enqueue_hinted(self, inspection: Inspection) -> None:
        """Queue the files: single saves first, those of a burst with what walks find."""
        in_burst = self._bursts.find_bursts(inspection.files_due, time.monotonic())
        later = []
        for file, hinted_at in inspection.files_due.items():
            self.hinted_at.setdefault(file, hinted_at)
            if file in inspection.missing or file in in_burst:
                later.append(file)
            else:
                self.files.add(file, Urgency.SAVED, hinted_at)
        self._enqueue_later(later, inspection.mtimes_ns)

    def _enqueue_later(
        self, files: Sequence[RootedPath], mtimes_ns: Mapping[RootedPath, int]
    ) -> None:
        """Queue files that nobody has just saved. Those that leave the index go soon."""
        sources = set(self.moved_from.values())
        for file in files:
            has_left = file in self.missing_files and file not in sources
            urgency = Urgency.LEAVING if has_left else Urgency.LATER
            self.files.add(file, urgency, mtimes_ns.get(file, 0) / _NS_PER_S)
