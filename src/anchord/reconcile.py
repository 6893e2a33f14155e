"""A walk against the catalogue -> the paths that are due, and what must be asked before rows go."""

from __future__ import annotations

import gc
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field

from anchord.core.decide import decide, is_as_read
from anchord.core.guard import Leave, is_alarming, missing, moves, note_of
from anchord.core.recipe import Recipe
from anchord.model import Absent, Fingerprint, Known, Origin, Problem, Skip, Verdict, Walk
from anchord.ports import Entering, World
from anchord.rows import MAX_BYTES

NO_LIMIT = 1 << 62
"""Conversations are streamed: there is no size that is too large."""
_LET_IN = Verdict(included=True, reason="found by a walk")


@dataclass(frozen=True, slots=True)
class Reconciled:
    """What a walk found to do. `trouble`: why the folder as a whole could not be walked (nothing is forgotten then)."""

    due: tuple[Origin, ...] = ()
    """Files to look at; what has gone comes last, so that rows come before others go."""
    gone: Mapping[Origin, Fingerprint] = field(default_factory=dict)
    """Those among them that are not there any more, or have been emptied, as they were."""
    moved: Mapping[Origin, Origin] = field(default_factory=dict)
    """New place -> old place."""
    held: int = 0
    """Files that left all at once: they are not due before somebody confirms it."""
    folders: tuple[str, ...] = ()
    """What was listed on the way."""
    skipped: int = 0
    folder_problems: tuple[tuple[str, Problem], ...] = ()
    trouble: str = ""


def reconcile(world: World, recipe: Recipe, place: Origin, entering: Entering, leave: Leave) -> Reconciled:
    """Compare a tree with the catalogue by fingerprints alone; no content is read.

    Missing files of a whole root (an empty path) go through the delete guard; `leave` says which need not.
    """
    with _uncollected():
        return _reconcile(world, recipe, place, entering, leave)


def _reconcile(world: World, recipe: Recipe, place: Origin, entering: Entering, leave: Leave) -> Reconciled:
    root, prefix = place.root, place.path

    def enter(folder: Origin) -> None:
        world.beat(0)
        entering(folder)

    walk = world.files.walk(root, prefix, enter)
    known = world.catalogue.overview(root, prefix)
    if not isinstance(walk, Walk):
        if not prefix or isinstance(walk, Problem):  # What may not be listed is not gone.
            return Reconciled(trouble="the folder is gone" if isinstance(walk, Absent) else walk.reason)
        gone = {Origin(root, path): each.fingerprint for path, each in known.items()}
        return Reconciled(due=tuple(gone or [Origin(root, prefix)]), gone=gone)
    looks: dict[str, Fingerprint | Problem] = {found.path: found.fingerprint for found in walk.found}
    looks.update(walk.problems)
    wanted = recipe.digest(root)
    most = NO_LIMIT if world.conversations.is_carrier(place) else MAX_BYTES
    due = [path for path, seen in looks.items() if _is_due(seen, known.get(path), wanted, most)]
    left = missing(walk, known)
    new = {path: seen for path in due if path not in known and isinstance(seen := looks[path], Fingerprint)}
    moved = moves(left, new)
    unmoved = [Origin(root, path) for path in left.keys() - set(moved.values())]
    lost = {each.path: left[each.path] for each in unmoved if not (each in leave.let_go or world.conversations.keeps(each))}
    noted = world.catalogue.noted(note_of(root))
    recent = max(leave.recent, int(noted or 0))
    holding = not prefix and not leave.confirmed and is_alarming(lost, known, walk, recent)
    if not prefix and (str(recent) if holding else "") != noted:
        world.catalogue.note(note_of(root), str(recent) if holding else "")
    if holding:
        left = {path: left[path] for path in left.keys() - lost.keys()}
    emptied = {path: known[path].fingerprint for path in due if path in known and _is_empty(looks[path])}
    return Reconciled(
        due=tuple(Origin(root, path) for path in (*due, *left)),
        gone={Origin(root, path): fingerprint for path, fingerprint in (left | emptied).items()},
        moved={Origin(root, path): Origin(root, old) for path, old in moved.items()},
        held=len(lost) if holding else 0,
        folders=walk.folders,
        skipped=walk.skipped,
        folder_problems=walk.folder_problems,
    )


@contextmanager
def _uncollected() -> Iterator[None]:
    """Let no garbage be looked for meanwhile: hundreds of thousands of small values are made, and none of them is any."""
    was_on = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_on:
            gc.enable()


def _is_empty(seen: Fingerprint | Problem) -> bool:
    return isinstance(seen, Fingerprint) and not seen.size


def _is_due(seen: Fingerprint | Problem, known: Known | None, recipe: str, most: int) -> bool:
    if known and isinstance(seen, Fingerprint) and seen.size <= most and is_as_read(seen, known, recipe):
        return False  # As of nearly every file at nearly every walk.
    return not isinstance(decide(_LET_IN, seen, known, recipe, most), Skip)
