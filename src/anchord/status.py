"""What `anchord status` tells, as the interface fixes it: everything is counted or measured when asked, with ages."""

from __future__ import annotations

import math
import os
import statistics
import time
from collections.abc import Mapping
from contextlib import closing
from typing import Any

import psutil

from anchord import __version__
from anchord.adapters.archive import Archive
from anchord.adapters.catalogue import SqliteCatalogue
from anchord.means import LostModel
from anchord.model import Outcome, printable
from anchord.pipeline import Pipeline
from anchord.queries import answer_failures, answer_index, failure_of
from anchord.tally import Tally
from anchord.watching import RootState
from anchord.workspace import Writer

_TALKS_S = 2.0
_SHOWN = 8


class Status:
    """Looks at a running pipeline from outside its thread."""

    def __init__(self, pipeline: Pipeline, writer: Writer) -> None:
        """Remember when the process began."""
        self._pipeline = pipeline
        self._writer = writer
        self.config_trouble = ""
        self.restart_trouble = ""
        self.store = writer.store
        """A handle of its own, once there is one: the writer's moves with its commits."""
        self._began = time.monotonic()
        self._process = psutil.Process()
        self._counted_talks: dict[str, dict[str, Any]] = {}
        self._talks_at = float("-inf")

    def report(self, catalogue: SqliteCatalogue) -> dict[str, Any]:
        """Return the whole status."""
        pipeline, counters, now = self._pipeline, self._pipeline.counters, time.monotonic()
        state, reasons = self.state()
        counts = catalogue.counts()
        store = self.store.stats()
        cpu = self._process.cpu_times()
        means = self._writer.means
        embedder = means.embedder
        return {
            "state": state,
            "degraded": reasons,
            "pid": os.getpid(),
            "uptime_s": round(now - self._began, 1),
            "version": __version__,
            "recipe": means.recipe.digest(),
            "roots": [self._root(name, counts.get(name, (0, 0))) for name in list(pipeline.survey.roots.states)],
            "files": sum(files for files, _ in counts.values()),
            "chunks": store.rows,
            "pending": pipeline.pending,
            "left_s": counters.pace.left_s(pipeline.pending),
            "failed": self.failures(catalogue),
            "embedded_total": counters.work.embedded,
            "reused_total": counters.work.reused,
            "commits_total": pipeline.commits,
            "overflows": pipeline.survey.roots.overflows,
            "reconciles": pipeline.survey.reconciles,
            "last_event_age_s": _age(pipeline.survey.last_event, now),
            "last_commit_age_s": _age(counters.last_commit, now),
            "last_verified_age_s": _age(counters.last_verified, now),
            "latency_ms": quantiles(list(counters.latencies_ms)),
            "embedder": {
                "state": embedder.state,
                "provider": means.provider,
                "model": means.model.name,
                "rate": round(embedder.rate, 1),
                "why": embedder.why,
                **embedder.describe(),
            },
            "store": {"rows": store.rows, "fragments": store.fragments, "versions": store.versions, "bytes": store.bytes},
            "upkeep": {
                "passes": pipeline.upkeep.passes,
                "seconds": round(pipeline.upkeep.seconds, 2),
                "mended": pipeline.upkeep.mended,
            },
            "on_battery": pipeline.on_battery,
            "generation": self._generation(),
            "repairs": list(self._writer.repairs),
            "waiting": [
                {"root": origin.root, "path": printable(origin.path), "why": why}
                for origin, why in pipeline.survey.waiting(_SHOWN)
            ],
            "recent": [_done(outcome, now - at) for at, outcome in reversed(list(counters.recent))],
            "rss_bytes": self._process.memory_info().rss,
            "cpu_s": round(cpu.user + cpu.system, 2),
        }

    def state(self) -> tuple[str, list[str]]:
        """Return the state and, where it is degraded, why."""
        pipeline, roots = self._pipeline, self._pipeline.survey.roots
        states = list(roots.states.values())
        if not pipeline.alive:
            return ("degraded", ["the writer's thread ended"]) if pipeline.started else ("starting", [])
        reasons = [self.config_trouble] if self.config_trouble else []
        reasons += [f"indexing is held up: {pipeline.trouble}"] if pipeline.trouble else []
        late_s = self._writer.pulse.late_s
        reasons += [f"the writer has been stuck for {late_s:.0f} s; `anchord restart` ends it"] if late_s else []
        reasons += [f"root {state.root.name}: {state.trouble}; its rows are kept" for state in states if state.trouble]
        reasons += [f"root {state.root.name}: {_held(state)}" for state in states if state.held]
        reasons += [f"root {state.root.name}: {why}" for state in states if (why := roots.why_polled(state.root.name))]
        reasons += [f"upkeep of the table: {trouble}" for trouble in pipeline.upkeep.trouble]
        reasons += [self.restart_trouble] if self.restart_trouble else []
        if isinstance(self._writer.means.embedder, LostModel):
            reasons.append(f"the model {self._writer.means.model.name} of this index is gone: only text can be searched until")
        if reasons:
            return "degraded", reasons
        if pipeline.paused or (pipeline.on_battery and (pipeline.survey.backlog or pipeline.building)):
            return "paused", []
        if not all(state.scanned for state in states):
            return "scanning", []
        return ("indexing" if pipeline.pending or pipeline.busy_with else "idle"), []

    def failures(self, catalogue: SqliteCatalogue) -> list[dict[str, Any]]:
        """Return the files and folders that are not indexed, or not wholly, and why."""
        states = list(self._pipeline.survey.roots.states.values())
        files = answer_failures(catalogue, {state.root.name: state.root.path for state in states})
        folders = [
            failure_of(state.root.path, path, problem, since)
            for state in states
            for path, (problem, since) in state.folder_problems.items()
        ]
        return sorted([*files, *folders], key=lambda failure: str(failure["path"]))

    def summed_up(self, work: Tally, catalogue: SqliteCatalogue) -> dict[str, Any]:
        """Return what an `index` did."""
        states = list(self._pipeline.survey.roots.states.values())
        away = [f"{state.root.name}: {state.trouble}" for state in states if state.trouble]
        away += [f"{state.root.name}: {_held(state)}" for state in states if state.held]
        return answer_index(work, catalogue.counts(), self.store.count(), away, self.failures(catalogue))

    def progress(self) -> dict[str, Any]:
        """Return the few figures that `subscribe` streams."""
        pipeline = self._pipeline
        return {
            "state": self.state()[0],
            "pending": pipeline.pending,
            "left_s": pipeline.counters.pace.left_s(pipeline.pending),
            "done": pipeline.counters.done,
            "embedded_total": pipeline.counters.work.embedded,
            "rate": round(self._writer.means.embedder.rate, 1),
        }

    def _generation(self) -> dict[str, Any] | None:
        """Return how far the next generation is, None when none is being built."""
        building = self._pipeline.building
        if building is None:
            return None
        return {"why": building.why, "done": building.done, "due": building.due, "waits_for": list(building.waits_for)}

    def _root(self, name: str, counted: tuple[int, int]) -> Mapping[str, Any]:
        roots = self._pipeline.survey.roots
        state = roots.states[name]
        talks = {"conversations": self._talks().get(name, {})} if state.root.kind == "conversations" else {}
        doing = "indexing" if self._pipeline.busy_with == name else "idle"
        return {
            "name": name,
            "path": printable(state.root.path),
            "kind": state.root.kind,
            "state": "offline" if state.trouble else "held" if state.held else doing if state.scanned else "scanning",
            "files": counted[0],
            "chunks": counted[1],
            "skipped": state.skipped,
            "watching": state.watching,
            "held": state.held,
            "watches": roots.watches(name),
            "polled_dirs": len(roots.polled(name)),
            **talks,
        }

    def _talks(self) -> dict[str, dict[str, Any]]:
        """Count the archive, at most every few seconds."""
        if time.monotonic() - self._talks_at > _TALKS_S:
            with closing(Archive(self._writer.places.conversations, read_only=True)) as archive:
                self._counted_talks, self._talks_at = archive.counts(), time.monotonic()
        return self._counted_talks


def _done(outcome: Outcome, age_s: float) -> dict[str, Any]:
    """Return what was done with a file: how many chunks stayed, moved to other lines, were made anew or again, or went."""
    return {
        "root": outcome.origin.root,
        "path": printable(outcome.origin.path),
        "action": str(outcome.action),
        "reason": printable(outcome.reason),
        "kept": outcome.kept,
        "moved": outcome.shifted,
        "embedded": outcome.embedded,
        "reused": outcome.reused,
        "deleted": outcome.deleted,
        "age_s": round(age_s, 1),
    }


def _held(state: RootState) -> str:
    hint = f"`anchord confirm-delete {state.root.name}` lets them go"
    return f"{state.held} files left at once, their rows are kept until they are back; {hint}"


def _age(then: float | None, now: float) -> float | None:
    return None if then is None else round(max(0.0, now - then), 1)


def quantiles(values: list[float]) -> dict[str, float | None]:
    """Return the half and the 95 % of some values; None of none."""
    if not values:
        return {"p50": None, "p95": None}
    ordered = sorted(values)
    rank = math.ceil(0.95 * len(ordered)) - 1  # The nearest rank: of two values the larger, so never below the half.
    return {"p50": round(statistics.median(ordered), 1), "p95": round(ordered[rank], 1)}
