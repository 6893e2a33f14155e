"""Steps that run the program: its commands, with or without a fault, and damage below its data folder."""

from __future__ import annotations

import signal
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path
from random import Random
from typing import Any

from tools.simulator import sources
from tools.simulator.faulty import Fault
from tools.simulator.oracle import Answer, Finding, judge
from tools.simulator.program import CommandLine, Daemon
from tools.simulator.transcripts import WORDS, readable_words
from tools.simulator.world import LINE_WORDS, World

_COMPLETE = 0.1
_UNSETTLED = 0.25
_AHEAD_S = 10
_CLIENTS = 40
SHORT_S = "20"
"""How long a `sync` of a daemon may take."""
_MONTH_S = 31 * 24 * 3600


@dataclass(slots=True)
class Stage:
    """A world and the program in it."""

    world: World
    program: CommandLine | Daemon
    trace: Callable[[str], None]
    beside: Callable[[Path], CommandLine]
    """Gives the command line for another home."""
    snapshot: Any = None
    """What the newest backup must give back, as `backups.Snapshot`."""

    @property
    def is_daemon(self) -> bool:
        """Whether the program is a running daemon."""
        return isinstance(self.program, Daemon)

    def run(self, *arguments: str, fault: Fault | None = None, **limits: int) -> list[Finding]:
        """Run a command and judge its answer."""
        return self.judge(self.answer(*arguments, fault=fault, **limits), fault)

    def answer(self, *arguments: str, fault: Fault | None = None, **limits: int) -> Answer:
        """Run a command."""
        is_complete = bool(limits.pop("is_complete", 0))
        limits.setdefault("ahead_s", _AHEAD_S)
        answer = self.program.run(*arguments, fault=fault, is_complete=is_complete, **limits)
        self.trace(f"$ {' '.join(arguments)} -> {answer.code} {fault or ''} {limits or ''}")
        self.trace(f"    {str(answer.json)[:500]} {answer.error.strip()[-500:]}")
        return answer

    def judge(self, answer: Answer, fault: Fault | None = None) -> list[Finding]:
        """Judge an answer; without the rules nothing need be indexed, but nothing ignored may be."""
        findings = judge(self.world, answer)
        for finding in findings:
            self.trace(f"    ** {finding.kind}: {finding.what}")
        if fault and fault.kind == "rules":
            harmless = ("row-missing", "row-stale", "row-of-absent", "archive-missing")
            findings = [each for each in findings if not each.kind.startswith(harmless)]
        return findings


Command = Callable[[Stage, Random], Iterable[Finding]]


def index(stage: Stage, rng: Random) -> list[Finding]:
    """Bring the index up to date."""
    if stage.is_daemon:
        return stage.run("sync", "--timeout", SHORT_S)
    ahead_s = 0 if rng.random() < _UNSETTLED else _AHEAD_S
    return stage.run("index", is_complete=rng.random() < _COMPLETE, ahead_s=ahead_s)


def month_later(stage: Stage, rng: Random) -> list[Finding]:
    """Bring the index up to date in the middle and at the end of a month; then the clock is set back.

    A clock that jumps by a month is not believed.
    """
    del rng
    if stage.is_daemon:
        return []
    return [
        *stage.run("index", ahead_s=_MONTH_S // 2),
        *stage.run("index", ahead_s=_MONTH_S),
    ]


def reindex(stage: Stage, rng: Random) -> list[Finding]:
    """Read or chunk everything again."""
    return stage.run("reindex", *rng.choice(((), ("--force-rechunk",))))


def rebuild(stage: Stage, rng: Random) -> list[Finding]:
    """Build a new index."""
    del rng
    return stage.run("rebuild")


def verify(stage: Stage, rng: Random) -> list[Finding]:
    """Verify, and repair sometimes."""
    return stage.run("verify", *rng.choice(((), ("--repair",))))


def search(stage: Stage, rng: Random) -> list[Finding]:
    """Search for a word that a file has or had."""
    texts = [
        path.read_bytes()
        for path in stage.world.files_below(rng.choice(("project", "conversations")))
    ]
    words = sorted(
        {word for text in texts for word in LINE_WORDS.findall(text.decode("utf-8", "replace"))}
    )
    words += sorted(stage.world.archived)
    if not words:
        return []
    return stage.run("search", rng.choice(words), "--mode", "text")


def forget(stage: Stage, rng: Random) -> list[Finding]:
    """Forget a document or a transcript."""
    world = stage.world
    files = world.files_below(rng.choice(("project", "conversations")))
    covered = [
        path for path in files if any(world.folder_of(root) in path.parents for root in world.roots)
    ]
    if not covered or not world.has_config or world.moved_roots:
        return []
    path = rng.choice(covered)
    text = path.read_bytes().decode("utf-8", "replace")
    torn = set(WORDS.findall(text))
    lineage = world.said_at.get(path, set()) | torn
    # What was never read at this path, and cannot be read there now, is another transcript's.
    words = readable_words(path) | (torn & world.was_read.get(path, set()))
    words |= set(LINE_WORDS.findall(text))
    answer = stage.answer("forget", "--yes", str(path))
    exchanges = {word for word in words if WORDS.fullmatch(word)}
    if answer.code == 0:
        world.forgotten.add(path)
        world.note_unread_copies(path)
        world.erased |= exchanges
        world.doubtful |= lineage
    else:
        # Whether a refusal is remembered is open.
        if stage.answer("forget", "--undo", str(path)).code == 0:
            world.note_undo(path)
        is_nothing = isinstance(answer.json, dict) and not answer.json.get("exchanges")
        world.doubtful |= set() if is_nothing else exchanges | lineage
    answer.arguments = (str(path), *sorted(words))
    return stage.judge(answer)


def unforget(stage: Stage, rng: Random) -> list[Finding]:
    """Allow a forgotten file again."""
    if not stage.world.forgotten or not stage.world.has_config or stage.world.moved_roots:
        return []
    path = rng.choice(sorted(stage.world.forgotten))
    answer = stage.answer("forget", "--undo", str(path))
    if answer.code == 0:
        stage.world.note_undo(path)
    return stage.judge(answer)


def confirm(stage: Stage, rng: Random) -> list[Finding]:
    """Confirm a mass deletion."""
    if not stage.world.roots:
        return []
    return stage.run("confirm-delete", rng.choice(stage.world.roots).name)


def remove_root(stage: Stage, rng: Random) -> list[Finding]:
    """Remove a root by the command."""
    world = stage.world
    if len(world.roots) < 2 or not world.has_config:
        return []
    root = rng.choice(world.roots)
    answer = stage.answer("remove", root.name)
    if answer.code == 0:
        world.roots.remove(root)
        world.indexed_roots.discard(root)
        world.last_rows = 0
    return stage.judge(answer)


def add_root(stage: Stage, rng: Random) -> list[Finding]:
    """Add a root by the command."""
    world = stage.world
    folder, kind = rng.choice((("docs", "project"), ("talks", "conversations")))
    if any(root.folder.startswith(folder) for root in world.roots) or not world.has_config:
        return []
    root = sources.new_root(world, folder, kind)
    answer = stage.answer("add", str(world.folder_of(root)), "--kind", kind, "--name", root.name)
    if answer.code == 0:
        world.roots.append(root)
    return stage.judge(answer)


# The daemon alone


def start(stage: Stage, rng: Random) -> list[Finding]:
    """Start the daemon if it does not run."""
    if not isinstance(stage.program, Daemon):
        return []
    started = stage.judge(stage.program.start())
    return [*started, *reload(stage, rng)]


def stop(stage: Stage, rng: Random) -> list[Finding]:
    """Stop the daemon."""
    del rng
    if not isinstance(stage.program, Daemon):
        return []
    return stage.judge(stage.program.stop(signal.SIGTERM))


def pause(stage: Stage, rng: Random) -> list[Finding]:
    """Pause; abandon clients that wait; ask for the status; resume."""
    del rng
    if not isinstance(stage.program, Daemon):
        return []
    paused = stage.run("pause")
    stage.program.abandon(_CLIENTS)
    return [*paused, *stage.run("status"), *stage.run("resume")]


def abandon_clients(stage: Stage, rng: Random) -> list[Finding]:
    """Abandon clients in the middle of their requests; the status must still be answered."""
    if not isinstance(stage.program, Daemon):
        return []
    stage.program.abandon(_CLIENTS, rng.choice(("sync", "verify", "search", "half")))
    return stage.run("status")


def reload(stage: Stage, rng: Random) -> list[Finding]:
    """Make the daemon read its configuration."""
    del rng
    if not stage.is_daemon:
        return []
    answer = stage.answer("reload")
    stage.world.is_applied = answer.code == 0
    return stage.judge(answer)
