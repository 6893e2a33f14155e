"""What `anchord status` tells, as the interface fixes it: everything is counted or measured when asked, with ages."""

from __future__ import annotations

import math
import os
import statistics
import time
from collections.abc import Mapping
from typing import Any

import psutil

from anchord import __version__
from anchord.adapters.catalogue import SqliteCatalogue
from anchord.model import printable
from anchord.pipeline import Pipeline
from anchord.queries import answer_failures, answer_index, failure_of
from anchord.tally import Tally
from anchord.workspace import Reader


class Status:
    """Looks at a running pipeline from outside its thread."""

    def __init__(self, pipeline: Pipeline, reader: Reader) -> None:
        """Remember when the process began."""
        self._pipeline = pipeline
        self._reader = reader
        self.config_trouble = ""
        self._began = time.monotonic()
        self._process = psutil.Process()

    def report(self, catalogue: SqliteCatalogue) -> dict[str, Any]:
        """Return the whole status."""
        pipeline, counters, now = self._pipeline, self._pipeline.counters, time.monotonic()
        state, reasons = self.state()
        counts = catalogue.counts()
        store = self._reader.store.stats()
        cpu = self._process.cpu_times()
        embedder, embedding = self._reader.embedder, self._reader.config.embedding
        return {
            "state": state,
            "degraded": reasons,
            "pid": os.getpid(),
            "uptime_s": round(now - self._began, 1),
            "version": __version__,
            "recipe": self._reader.recipe.digest(),
            "roots": [self._root(name, counts.get(name, (0, 0))) for name in list(pipeline.roots.states)],
            "files": sum(files for files, _ in counts.values()),
            "chunks": store.rows,
            "pending": pipeline.pending,
            "failed": self.failures(catalogue),
            "embedded_total": counters.work.embedded,
            "reused_total": counters.work.reused,
            "commits_total": pipeline.commits,
            "overflows": pipeline.roots.overflows,
            "reconciles": counters.reconciles,
            "last_event_age_s": _age(counters.last_event, now),
            "last_commit_age_s": _age(counters.last_commit, now),
            "last_verified_age_s": _age(counters.last_verified, now),
            "latency_ms": quantiles(list(counters.latencies_ms)),
            "embedder": {
                "state": embedder.state,
                "provider": embedding.provider,
                "model": embedding.model,
                "rate": round(embedder.rate, 1),
            },
            "store": {"rows": store.rows, "fragments": store.fragments, "versions": store.versions, "bytes": store.bytes},
            "rss_bytes": self._process.memory_info().rss,
            "cpu_s": round(cpu.user + cpu.system, 2),
        }

    def state(self) -> tuple[str, list[str]]:
        """Return the state and, where it is degraded, why."""
        pipeline = self._pipeline
        states = list(pipeline.roots.states.values())
        if not pipeline.alive:
            return ("degraded", ["the writer's thread ended"]) if pipeline.started else ("starting", [])
        reasons = [self.config_trouble] if self.config_trouble else []
        reasons += [f"indexing is held up: {pipeline.trouble}"] if pipeline.trouble else []
        reasons += [f"root {state.root.name}: {state.trouble}; its rows are kept" for state in states if state.trouble]
        reasons += [f"root {state.root.name} {state.watch_trouble}" for state in states if state.watch_trouble]
        if reasons:
            return "degraded", reasons
        if pipeline.paused:
            return "paused", []
        if not all(state.scanned for state in states):
            return "scanning", []
        return ("indexing" if pipeline.pending or pipeline.busy_with else "idle"), []

    def failures(self, catalogue: SqliteCatalogue) -> list[dict[str, Any]]:
        """Return the files and folders that are not indexed, or not wholly, and why."""
        states = list(self._pipeline.roots.states.values())
        files = answer_failures(catalogue, {state.root.name: state.root.path for state in states})
        folders = [
            failure_of(state.root.path, path, problem, since)
            for state in states
            for path, (problem, since) in state.folder_problems.items()
        ]
        return sorted([*files, *folders], key=lambda failure: str(failure["path"]))

    def summed_up(self, work: Tally, catalogue: SqliteCatalogue) -> dict[str, Any]:
        """Return what an `index` did."""
        away = [f"{state.root.name}: {state.trouble}" for state in list(self._pipeline.roots.states.values()) if state.trouble]
        return answer_index(work, catalogue.counts(), self._reader.store.count(), away, self.failures(catalogue))

    def progress(self) -> dict[str, Any]:
        """Return the few figures that `subscribe` streams."""
        pipeline = self._pipeline
        return {
            "state": self.state()[0],
            "pending": pipeline.pending,
            "done": pipeline.counters.done,
            "embedded_total": pipeline.counters.work.embedded,
            "rate": round(self._reader.embedder.rate, 1),
        }

    def _root(self, name: str, counted: tuple[int, int]) -> Mapping[str, Any]:
        state = self._pipeline.roots.states[name]
        doing = "indexing" if self._pipeline.busy_with == name else "idle"
        return {
            "name": name,
            "path": printable(state.root.path),
            "kind": state.root.kind,
            "state": "offline" if state.trouble else doing if state.scanned else "scanning",
            "files": counted[0],
            "chunks": counted[1],
            "skipped": state.skipped,
            "watching": state.watching,
            "watches": self._pipeline.roots.watches(name),
            "polled_dirs": 0 if state.watching else 1,
        }


def _age(then: float | None, now: float) -> float | None:
    return None if then is None else round(max(0.0, now - then), 1)


def quantiles(values: list[float]) -> dict[str, float | None]:
    """Return the half and the 95 % of some values; None of none."""
    if not values:
        return {"p50": None, "p95": None}
    ordered = sorted(values)
    rank = math.ceil(0.95 * len(ordered)) - 1  # The nearest rank: of two values the larger, so never below the half.
    return {"p50": round(statistics.median(ordered), 1), "p95": round(ordered[rank], 1)}
