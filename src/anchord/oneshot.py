"""`anchord index` without a daemon: everything once, with the same indexer that the daemon's loop drives."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from anchord.adapters import lance_upkeep
from anchord.errors import UsageError
from anchord.generation import REBUILD, RECHUNK, Building, Order, away_from, discard, left_over, needed
from anchord.model import Action, Origin, Problem
from anchord.roots import real, root_of
from anchord.tally import Tally, log_outcome
from anchord.upkeep import FOLD_COMMITS
from anchord.workspace import Writer

_TRIES = 25
_PAUSE_S = 0.2

_ORDERS = {"rechunk": RECHUNK, "rebuild": REBUILD}

Progress = Callable[[int, int, str], None]
"""(files done, files known to be due, what is being done) -> None."""


@dataclass(slots=True)
class Summary(Tally):
    """What one run did; roots that were away, and what was wrong beyond what the catalogue lists."""

    away: list[str] = field(default_factory=list)
    problems: list[tuple[Origin, Problem]] = field(default_factory=list)


def bring_up_to_date(writer: Writer, paths: Sequence[str], progress: Progress, how: str = "") -> Summary:
    """Walk the roots (or what of them `paths` name) and index what is due; each commit is durable at once.

    `how`: "reread" every file, "rechunk" every file into a new generation, or "rebuild" all of it with new vectors.

    Raises:
        EmbedderError, StoreError: work stops here; what was committed stays, and another run goes on from it.
    """
    summary = Summary()
    writer.catalogue.note("clean", "0")
    scopes = _scopes(writer, paths)
    order = _ORDERS.get(how) or needed(writer) or left_over(writer)
    if how == "reread":
        writer.catalogue.distrust()
    if order:
        _build(writer, order, summary, progress)
    else:
        discard(writer)
    progress(0, 0, "looking for changes")
    due: list[Origin] = []
    gone: set[Origin] = set()
    for name, prefix in scopes:
        found = writer.indexer.reconcile(name, prefix)
        due += found.due
        gone.update(found.gone)
        summary.problems += [(Origin(name, path), problem) for path, problem in found.folder_problems]
        if found.trouble:
            summary.away.append(f"{name}: {found.trouble}")
        if found.held:
            hint = f"`anchord confirm-delete {name}` lets them go"
            summary.away.append(f"{name}: {found.held} files left at once, their rows are kept; {hint}")
    _index(writer, due, (summary, gone), progress)
    wanted = sum(chunks for _, chunks in writer.catalogue.counts().values())
    if not writer.was_clean or wanted != writer.store.count():
        progress(0, 0, "comparing the table with the catalogue")
        _index(writer, writer.indexer.audit(), (summary, gone), progress)
    progress(0, 0, "folding the table")
    if writer.indexer.commits:
        troubles = lance_upkeep.maintain(writer.store, merge=True)
        summary.away += [f"upkeep of the table: {trouble}" for trouble in troubles]
    writer.catalogue.note("clean", "1")
    return summary


def _build(writer: Writer, order: Order, summary: Summary, progress: Progress) -> None:
    """Build the new generation and put it in place; where a root is away the present one is kept and kept up."""
    building = Building(writer, order)
    building.waits_for = away_from(writer)
    while not building.finished:
        if building.waits_for:
            summary.away.append(f"a new index ({order.why}) waits for {', '.join(building.waits_for)}, which is away")
            building.close()
            return
        for outcome in building.step(lambda: False):
            summary.add(outcome)
            log_outcome(outcome)
        progress(building.done, building.done + building.due, "building a new index")
    building.promote()


def _index(writer: Writer, due: Sequence[Origin], into: tuple[Summary, set[Origin]], progress: Progress) -> None:
    summary, gone = into
    done, total, folded = 0, len(due), writer.indexer.commits
    for _ in range(_TRIES):
        again: list[Origin] = []
        for outcome in writer.indexer.index(due, gone=gone):
            if outcome.action is Action.RETRY:
                again.append(outcome.origin)
                continue
            done += 1
            summary.add(outcome)
            log_outcome(outcome)
            progress(done, total, "indexing")
            if writer.indexer.commits - folded >= FOLD_COMMITS:
                lance_upkeep.maintain(writer.store)
                folded = writer.indexer.commits
        if not again:
            return
        due = again
        time.sleep(_PAUSE_S)
        for name in {origin.root for origin in due}:
            gone.update(writer.indexer.reconcile(name).gone)
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
