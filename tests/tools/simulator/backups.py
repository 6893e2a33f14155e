"""Steps that back up the home and restore it into another one: both must be equal."""

from __future__ import annotations

import copy
import shutil
from dataclasses import dataclass, field
from pathlib import Path
from random import Random

from tools.simulator.commands import Stage
from tools.simulator.faulty import FILE_ERRORS, KILL, Fault
from tools.simulator.oracle import Answer, Finding, archived_words, judge, read_rows
from tools.simulator.world import World

_FAULTY = 0.3
_RESTORED = "restored"


@dataclass(frozen=True, slots=True)
class Snapshot:
    """What a backup must give back."""

    world: World
    """The world of that moment, with the folder to restore into as its home."""
    row_ids: frozenset[str] = field(repr=False)
    words: frozenset[str] = field(repr=False)
    """Words in the archive."""


def backup(stage: Stage, rng: Random) -> list[Finding]:
    """Make a backup, with a fault sometimes, and check all backups."""
    world = stage.world
    before = _snapshot(world)
    fault = None
    if rng.random() < _FAULTY:
        error = rng.choice((*FILE_ERRORS, KILL))
        fault = Fault("files", rng.choice((1, 2, 3, 5, 8, 13, 21, 34)), error, "/backups/")
    answer = stage.answer("backup", str(world.backups), fault=fault)
    findings = stage.judge(answer, fault)
    if answer.code == 0:
        # While a daemon goes on with its work, what it had at that moment is not known.
        stage.snapshot = None if stage.is_daemon else before
    elif "there is no index yet" in answer.error and not (world.data / "state.sqlite").exists():
        pass  # There is nothing to back up.
    elif "while it replaced the index" in answer.error and (world.data / "promoting").exists():
        pass  # It says so, and that the next `index` finishes the replacement.
    elif not (fault or world.damage or answer.code == 3):
        findings.append(Finding("backup-refused", f"{answer.code} {answer.error.strip()[-300:]}"))
    if any(world.backups.glob("*/manifest.json")):
        checked = stage.beside(world.home).run("backup", "--check", str(world.backups))
        stage.trace(f"$ backup --check -> {checked.code} {checked.error.strip()[-300:]}")
        if checked.code:
            what = f"{checked.code} {checked.json} {checked.error.strip()[-300:]}"
            findings.append(Finding("backup-damaged", what))
    return findings


def restore(stage: Stage, rng: Random) -> list[Finding]:
    """Restore the newest backup into another home, index and verify there; then delete it."""
    snapshot = stage.snapshot
    if snapshot is None:
        return []
    world = copy.deepcopy(snapshot.world)
    world.moved_roots = dict(stage.world.moved_roots)
    world.home.mkdir(mode=0o700)
    try:
        if rng.random() < _FAULTY:
            fault = Fault("files", rng.randrange(1, 30), rng.choice(FILE_ERRORS), f"/{_RESTORED}/")
            failed = _run(stage, world, "restore", str(world.backups), fault=fault)
            if failed.code == 0:
                return _compare(stage, snapshot, world)
        answer = _run(stage, world, "restore", str(world.backups))
        if answer.code:
            return [Finding("restore-refused", f"{answer.code} {answer.error.strip()[-300:]}")]
        return _compare(stage, snapshot, world)
    finally:
        shutil.rmtree(world.home)


def _snapshot(world: World) -> Snapshot:
    attic, world.attic = world.attic, {}
    copied = copy.deepcopy(world)
    world.attic = attic
    copied.home_name = _RESTORED
    rows, _ = read_rows(world.data)
    ids = frozenset(row["id"] for row in rows or ())
    return Snapshot(copied, ids, frozenset(archived_words(world.data)))


def _compare(stage: Stage, snapshot: Snapshot, world: World) -> list[Finding]:
    """Compare the restored home with what was backed up, then index in it as anywhere."""
    findings = []
    rows, error = read_rows(world.data)
    ids = frozenset(row["id"] for row in rows or ())
    if not snapshot.world.damage and (rows is None or ids != snapshot.row_ids):
        lost, more = len(snapshot.row_ids - ids), len(ids - snapshot.row_ids)
        findings.append(Finding("restored-rows", f"{lost} rows lost, {more} more {error}"))
    words = frozenset(archived_words(world.data))
    if words != snapshot.words:
        lost, more = len(snapshot.words - words), len(words - snapshot.words)
        findings.append(Finding("restored-archive", f"{lost} words lost, {more} more"))
    for command in ("index", "verify"):
        answer = _run(stage, world, command, ahead_s=10)
        findings += [
            Finding(f"restored/{finding.kind}", finding.what) for finding in judge(world, answer)
        ]
    return findings


def _run(
    stage: Stage, world: World, *arguments: str, fault: Fault | None = None, ahead_s: int = 0
) -> Answer:
    answer = stage.beside(Path(world.home)).run(
        *arguments, fault=fault, ahead_s=ahead_s, is_complete=False
    )
    stage.trace(f"$ {' '.join(arguments)} (restored) -> {answer.code} {fault or ''}")
    stage.trace(f"    {str(answer.json)[:300]} {answer.error.strip()[-300:]}")
    return answer
