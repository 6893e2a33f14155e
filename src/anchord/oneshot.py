"""`anchord index` without a daemon: everything once, with the same indexer that the daemon's loop drives."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from anchord.errors import UsageError
from anchord.model import Action, Origin, Problem
from anchord.roots import real, root_of
from anchord.tally import Tally, log_outcome
from anchord.workspace import Writer

_TRIES = 25
_PAUSE_S = 0.2

Progress = Callable[[int, int, str], None]
"""(files done, files known to be due, what is being done) -> None."""


@dataclass(slots=True)
class Summary(Tally):
    """What one run did; roots that were away, and what was wrong beyond what the catalogue lists."""

    away: list[str] = field(default_factory=list)
    problems: list[tuple[Origin, Problem]] = field(default_factory=list)


def bring_up_to_date(writer: Writer, paths: Sequence[str], progress: Progress) -> Summary:
    """Walk the roots (or what of them `paths` name) and index what is due; each commit is durable at once.

    Raises:
        EmbedderError, StoreError: work stops here; what was committed stays, and another run goes on from it.
    """
    summary = Summary()
    was_clean = writer.catalogue.noted("clean") == "1"
    writer.catalogue.note("clean", "0")
    progress(0, 0, "looking for changes")
    due: list[Origin] = []
    for name, prefix in _scopes(writer, paths):
        found = writer.indexer.reconcile(name, prefix)
        due += found.due
        summary.problems += [(Origin(name, path), problem) for path, problem in found.folder_problems]
        if found.trouble:
            summary.away.append(f"{name}: {found.trouble}")
    _index(writer, due, summary, progress)
    wanted = sum(chunks for _, chunks in writer.catalogue.counts().values())
    if not was_clean or wanted != writer.store.count():
        progress(0, 0, "comparing the table with the catalogue")
        _index(writer, writer.indexer.audit(), summary, progress)
    progress(0, 0, "folding the table")
    if writer.indexer.commits:
        writer.store.maintain()
    writer.catalogue.note("clean", "1")
    return summary


def _index(writer: Writer, due: Sequence[Origin], summary: Summary, progress: Progress) -> None:
    done, total = 0, len(due)
    for _ in range(_TRIES):
        again: list[Origin] = []
        for outcome in writer.indexer.index(due):
            if outcome.action is Action.RETRY:
                again.append(outcome.origin)
                continue
            done += 1
            summary.add(outcome)
            log_outcome(outcome)
            progress(done, total, "indexing")
        if not again:
            return
        due = again
        time.sleep(_PAUSE_S)
    summary.problems += [(origin, Problem("written all the time: not indexed")) for origin in due]


def _scopes(writer: Writer, paths: Sequence[str]) -> list[tuple[str, str]]:
    if not paths:
        return [(root.name, "") for root in writer.roots]
    scopes = []
    for path in paths:
        found = root_of(writer.roots, real(path))
        if found is None:  # pragma: no cover - `open_writer` made a root of each path that none covers
            raise UsageError(f"{path} is in no root", "`anchord add FOLDER` makes its folder one")
        scopes.append((found[0].name, found[1]))
    return scopes
