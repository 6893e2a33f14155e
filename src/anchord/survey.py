"""What is due: hints and walks lead here, through the settling and the delete guard, and files wait here to be indexed.

Everything that waits is a set of paths, so nothing grows with the number of events. Two kinds of files wait: `fresh` ones, to
which a hint led, go before the `backlog`, which a walk found. A file that is not there any more is let go only once a look at
its folder has said so (`gone`), and when many are missing at once only after a walk of the whole root, which asks the guard.
"""

from __future__ import annotations

import random
import threading
import time
from collections import deque
from collections.abc import Iterable

import structlog

from anchord.adapters.files import LOG
from anchord.config import WatchConfig
from anchord.core.guard import LEAST_FILES, Leave, moves
from anchord.core.rules import changes_rules
from anchord.core.settle import Settling
from anchord.model import UNSEEN, Fingerprint, Origin
from anchord.reconcile import Reconciled
from anchord.watching import RootWatch
from anchord.workspace import Writer

log = structlog.get_logger()

_AT_ONCE_S = 30.0
"""Deletions closer together than this are weighed as one."""
_LEAVING_QUIET_S = 1.0
_LEAVING_MOST_S = 10.0
_JITTER = 0.1


class Survey:
    """The writer's to-do list. Only `hint` and the counts are for other threads."""

    def __init__(self, writer: Writer, config: WatchConfig) -> None:
        """Start with nothing to do."""
        self.fresh: dict[Origin, float] = {}
        """Files that a hint led to, with the time of the hint."""
        self.backlog: dict[Origin, None] = {}
        """Files that a walk found."""
        self.gone: dict[Origin, Fingerprint] = {}
        """Those of both that are not there any more, or have been emptied, as they were."""
        self.moved: dict[Origin, Origin] = {}
        """New place -> old place, of those."""
        self.reconciles = 0
        self.last_event: float | None = None
        self.wake = threading.Condition()
        """Notified by every hint."""
        self.roots = RootWatch(writer.roots, self.hint)
        self._writer = writer
        self._config = config
        self._settle_s = config.settle_ms / 1000
        self._settling = Settling(config.settle_ms / 1000, config.max_wait_ms / 1000)
        self._hints: dict[Origin, float] = {}
        self._let_go: dict[str, deque[tuple[float, int]]] = {}
        self._leaving: dict[str, dict[str, float]] = {}
        """By root: paths of which something is gone, with the time of the hint."""
        self._left_at: dict[str, float] = {}
        self._next_reconcile = 0.0
        self._next_poll = 0.0

    # For other threads

    def hint(self, origin: Origin) -> None:
        """Note that a path may have changed. The watcher's thread calls it, so it is quick and never raises."""
        now = time.monotonic()
        self.last_event = now
        with self.wake:
            self._hints[origin] = now
            self.wake.notify_all()

    def __len__(self) -> int:
        """Count the files and hints that wait."""
        leaving = sum(map(len, self._leaving.values()))
        return len(self.fresh) + len(self.backlog) + len(self._settling) + len(self._hints) + leaving

    def waiting(self, most: int) -> list[tuple[Origin, str]]:
        """Return the next files to be handled, with why."""
        fresh = [(origin, "saved") for origin in list(self.fresh)[:most]]  # Made at once, whatever other threads do.
        return [*fresh, *((origin, "found by a walk") for origin in list(self.backlog)[: most - len(fresh)])]

    @property
    def hinted(self) -> bool:
        """Whether hints wait to be taken in."""
        return bool(self._hints)

    # In the writer's thread

    def pressing(self, now: float) -> bool:
        """Whether something fresh is due by now: the backlog should make room for it."""
        with self.wake:
            oldest = next(iter(self._hints.values()), None)
        settled = self._settling.next_at()
        return (oldest is not None and oldest + self._settle_s <= now) or (settled is not None and settled <= now)

    def next_at(self) -> float:
        """Return when something is due next, by the steady clock."""
        times = [self._next_reconcile, *([self._next_poll] if self._polls() else [])]
        settled = self._settling.next_at()
        leaving = [self._leave_at(root) for root in self._leaving]
        return min([*times, *leaving, *([] if settled is None else [settled])])

    def drain(self, *, everything: bool) -> None:
        """Move hints through the settling to the files that are due."""
        with self.wake:
            hints, self._hints = self._hints, {}
        for origin, at in hints.items():
            if origin.root in self.roots.states:
                self._settling.hint(origin, at)
        due: dict[str, dict[str, float]] = {}
        for origin, first in self._settling.due(time.monotonic(), all_of_it=everything):
            due.setdefault(origin.root, {})[origin.path] = first
        for root, paths in due.items():
            self._look(root, paths, patient=not everything)
        for root in [root for root in self._leaving if everything or self._leave_at(root) <= time.monotonic()]:
            self._look(root, self._leaving.pop(root), patient=False)

    def is_time(self, now: float) -> bool:
        """Walk what is due to be walked: everything now and then, often what nothing tells of; say whether something was."""
        if now >= self._next_reconcile:
            self.reconcile_all()
            return True
        if now >= self._next_poll and self._polls():
            self._next_poll = now + self._config.poll_s
            for name, folders in [(name, self.roots.polled(name)) for name in list(self.roots.states)]:
                for folder in folders:
                    self.reconcile(name, folder)
            return True
        return False

    def reconcile_all(self) -> None:
        """Walk every root."""
        for name in list(self.roots.states):
            self.reconcile(name)
        spread = 1 + _JITTER * random.uniform(-1, 1)  # noqa: S311 - so that daemons of one machine do not walk in step
        self._next_reconcile = time.monotonic() + self._config.reconcile_s * spread

    def reconcile(self, name: str, folder: str = "", *, confirmed: bool = False) -> Reconciled:
        """Walk a root, or a folder of it; what there is to do joins the backlog."""
        found = self._walk(name, folder, confirmed=confirmed)
        self.gone.update(found.gone)
        self.enqueue(found.due)
        if not folder:
            self._note(name, found)
        return found

    def enqueue(self, origins: Iterable[Origin]) -> None:
        """Have files looked at."""
        self.backlog.update(dict.fromkeys(origins))

    def again(self, origin: Origin) -> None:
        """Look at a file once more a little later."""
        self.finish(origin)
        self._settling.hint(origin, time.monotonic())

    def finish(self, origin: Origin) -> None:
        """Take a file off the list."""
        for waiting in (self.fresh, self.backlog, self.gone, self.moved):
            waiting.pop(origin, None)

    def drop(self, name: str) -> list[Origin]:
        """Forget all that waits of a root; return the files."""
        self._settling.drop(name)
        self._leaving.pop(name, None)
        return [origin for origin in (*self.fresh, *self.backlog) if origin.root == name]

    def _leave_at(self, root: str) -> float:
        """Return when what left a root is looked at: once nothing more leaves, or after the longest wait."""
        return min(self._left_at[root] + _LEAVING_QUIET_S, min(self._leaving[root].values()) + _LEAVING_MOST_S)

    def _polls(self) -> bool:
        return any(self.roots.polled(name) for name in self.roots.states)

    def _walk(self, name: str, folder: str, *, confirmed: bool = False) -> Reconciled:
        leave = Leave(confirmed, self.gone, sum(count for _, count in self._recent(name)))
        found = self._writer.indexer.reconcile(name, folder, self.roots.enter, leave)
        self.roots.prune(Origin(name, folder), found.folders)
        self.moved.update(found.moved)
        return found

    def _note(self, name: str, found: Reconciled) -> None:
        state = self.roots.states[name]
        self.reconciles += 1
        if found.trouble != state.trouble:
            log.warning("root.trouble", root=name, reason=found.trouble or "over")
        if found.held != state.held:
            log.warning("root.held", root=name, files=found.held)
        state.trouble, state.held, state.skipped, state.scanned = found.trouble, found.held, found.skipped, True
        state.note_problems(found.folder_problems, time.time_ns())

    def _look(self, root: str, paths: dict[str, float], *, patient: bool) -> None:
        """Find out what hints are about: files, folders, things gone, or the rules of the whole root.

        What is gone, and did not only move, waits a moment if there is time: more may follow, and then the guard must know.
        So does what is empty now: most often its next words are being written.
        """
        paths = {path.removesuffix(LOG): first for path, first in paths.items()}
        if "" in paths or any(map(changes_rules, paths)):
            self.reconcile(root)
            return
        due: dict[Origin, float] = {}
        missing: dict[Origin, Fingerprint] = {}
        there: dict[str, Fingerprint] = {}
        left_by: dict[Origin, str] = {}
        for path, first in paths.items():
            origin = Origin(root, path)
            seen = self._writer.files.fingerprint(origin)
            if isinstance(seen, Fingerprint):
                due[origin] = first
                known = None if seen.size else self._writer.catalogue.known(origin)
                if known and known.chunks:
                    missing[origin], left_by[origin] = known.fingerprint, path
                else:
                    there[path] = seen
                continue
            found = self._walk(root, path)
            if found.trouble:
                self.reconcile(root)  # Which keeps what lies below, and names the folder.
                return
            due.update(dict.fromkeys(found.due, first))
            missing.update(found.gone)
            left_by.update(dict.fromkeys(found.gone, path))
        self._pair(root, due, missing, there)
        if patient:
            places = set(self.moved.values())
            for origin in [origin for origin in missing if origin not in places]:
                del missing[origin], due[origin]
                self._leaving.setdefault(root, {}).setdefault(left_by[origin], paths[left_by[origin]])
                self._left_at[root] = time.monotonic()
        if self._is_alarming(root, missing):
            due = {origin: first for origin, first in due.items() if origin not in missing}
            self.reconcile(root)
        else:
            self.gone.update(missing)
        for origin, first in sorted(due.items(), key=lambda item: item[0] in missing):
            self.fresh.setdefault(origin, first)

    def _pair(
        self, root: str, due: dict[Origin, float], missing: dict[Origin, Fingerprint], there: dict[str, Fingerprint]
    ) -> None:
        """Note which of the missing files stand elsewhere now."""
        if not missing:
            return
        for origin in due.keys() - missing.keys():
            seen = self._writer.files.fingerprint(origin)
            if isinstance(seen, Fingerprint):
                there[origin.path] = seen
        judge = self._writer.files.judge()
        there = {path: seen for path, seen in there.items() if judge(Origin(root, path)).included}
        left = {origin.path: fingerprint for origin, fingerprint in missing.items()}
        self.moved.update({Origin(root, new): Origin(root, old) for new, old in moves(left, there).items()})

    def _is_alarming(self, root: str, missing: dict[Origin, Fingerprint]) -> bool:
        """Whether so much left that the whole root must be walked, and the guard asked, before rows go."""
        if not missing:
            return False
        let_go, device = self._recent(root), self.roots.device(root)
        if sum(count for _, count in let_go) + len(missing) >= LEAST_FILES:
            return True
        if any(fingerprint.device not in (UNSEEN.device, device) for fingerprint in missing.values()):
            return True
        let_go.append((time.monotonic(), len(missing)))
        return False

    def _recent(self, root: str) -> deque[tuple[float, int]]:
        """Return when how many files were let go lately."""
        let_go = self._let_go.setdefault(root, deque())
        while let_go and let_go[0][0] < time.monotonic() - _AT_ONCE_S:
            let_go.popleft()
        return let_go
