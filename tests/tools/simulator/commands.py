"""Steps that run the program: its commands, with or without a fault, and damage below its data folder."""

from __future__ import annotations

import os
import shutil
import signal
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path
from random import Random

from tools.simulator import sources
from tools.simulator.faulty import ERRORS, KILL, Fault
from tools.simulator.oracle import Answer, Finding, judge, rebase_archive
from tools.simulator.program import CommandLine, Daemon
from tools.simulator.transcripts import WORDS, readable_words
from tools.simulator.world import LINE_WORDS, World

_DATABASES = ("conversations.sqlite", "conversations.sqlite", "state.sqlite", "vectors.sqlite")
_PAGE = 4096
_CALLS = (1, 2, 3, 5, 8, 13, 21, 34, 55)
_COMPACTED = 0.15
_UNSETTLED = 0.25
_AHEAD_S = 10
_CLIENTS = 40
_SHORT_S = "20"


@dataclass(slots=True)
class Stage:
    """A world and the program in it."""

    world: World
    program: CommandLine | Daemon
    trace: Callable[[str], None]

    @property
    def is_daemon(self) -> bool:
        """Whether the program is a running daemon."""
        return isinstance(self.program, Daemon)

    def run(self, *arguments: str, fault: Fault | None = None, **limits: int) -> list[Finding]:
        """Run a command and judge its answer."""
        return self.judge(self.answer(*arguments, fault=fault, **limits), fault)

    def answer(self, *arguments: str, fault: Fault | None = None, **limits: int) -> Answer:
        """Run a command."""
        compacts = bool(limits.pop("compacts", 0))
        limits.setdefault("ahead_s", _AHEAD_S)
        answer = self.program.run(*arguments, fault=fault, compacts=compacts, **limits)
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
        return stage.run("sync", "--timeout", _SHORT_S)
    ahead_s = 0 if rng.random() < _UNSETTLED else _AHEAD_S
    return stage.run("index", compacts=rng.random() < _COMPACTED, ahead_s=ahead_s)


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
    words = readable_words(path) | set(WORDS.findall(path.read_bytes().decode("utf-8", "replace")))
    words |= set(LINE_WORDS.findall(path.read_bytes().decode("utf-8", "replace")))
    answer = stage.answer("forget", "--yes", str(path))
    if answer.code == 0:
        world.forgotten.add(path)
    elif answer.code == 1:
        stage.answer("forget", "--undo", str(path))  # Whether a refusal is remembered is open.
    world.erased |= {word for word in words if WORDS.fullmatch(word)}
    answer.arguments = (str(path), *sorted(words))
    return stage.judge(answer)


def unforget(stage: Stage, rng: Random) -> list[Finding]:
    """Allow a forgotten file again."""
    if not stage.world.forgotten or not stage.world.has_config or stage.world.moved_roots:
        return []
    path = rng.choice(sorted(stage.world.forgotten))
    answer = stage.answer("forget", "--undo", str(path))
    if answer.code == 0:
        stage.world.forgotten.discard(path)
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


# Faults


def _any_command(rng: Random) -> tuple[str, ...]:
    return rng.choice((("index",),) * 5 + (("reindex",), ("verify", "--repair"), ("rebuild",)))


def failing_call(stage: Stage, rng: Random) -> list[Finding]:
    """Let a call of SQLite fail once, with an error that is no damage."""
    nth = rng.choice(_CALLS) + rng.randrange(5)
    fault = Fault("sqlite", nth, rng.choice(sorted(ERRORS)), rng.choice(_DATABASES))
    return _with_fault(stage, rng, fault)


def killed(stage: Stage, rng: Random) -> list[Finding]:
    """End the process at a call of SQLite."""
    nth = rng.choice(_CALLS) + rng.randrange(8)
    return _with_fault(stage, rng, Fault("sqlite", nth, KILL, rng.choice(_DATABASES)))


def unreadable_rules(stage: Stage, rng: Random) -> list[Finding]:
    """Let the N-th or every read of a rule file fail."""
    return _with_fault(stage, rng, Fault("rules", rng.choice((0, 1, 2, 3)), "IOERR"))


def _with_fault(stage: Stage, rng: Random, fault: Fault) -> list[Finding]:
    if stage.is_daemon:
        return stage.run("sync", "--timeout", _SHORT_S, fault=fault)
    return stage.run(*_any_command(rng), fault=fault, compacts=rng.random() < _COMPACTED)


def full_disk(stage: Stage, rng: Random) -> list[Finding]:
    """Let no file grow over a limit."""
    limit = rng.choice((1 << 10, 1 << 13, 1 << 15, 1 << 16, 1 << 17))
    return stage.run(*_any_command(rng), file_limit=limit)


def damage(stage: Stage, rng: Random) -> list[Finding]:
    """Remove a file below `data/`, or overwrite a page of it."""
    path = _damageable(stage.world.data, rng)
    if path is None:
        return []
    how = "lost" if path.is_dir() or rng.random() < 0.5 else "flipped"
    stage.trace(f"  {how}: {path.relative_to(stage.world.data)}")
    if how == "lost" and path.is_dir():
        shutil.rmtree(path)
    elif how == "lost":
        path.unlink()
    else:
        _overwrite_page(path, rng)
    if stage.world.damage != "flipped":
        stage.world.damage = how
    rebase_archive(stage.world)
    return []


def _damageable(data: Path, rng: Random) -> Path | None:
    """Draw a kind of file, then one of it; the names of the table's files differ in each run."""
    kinds = (
        "conversations.sqlite", "state.sqlite", "vectors.sqlite", "*.sqlite-wal", "lance/*.lance/data/*",
        "lance/*.lance/_versions/*", "lance/*.lance/_indices/*/*", "lance/*.lance/_transactions/*",
        "lance/chunks.lance",
    )  # fmt: skip
    found = sorted(data.glob(rng.choice(kinds)), key=lambda file: file.stat().st_mtime_ns)
    return rng.choice(found) if found else None


def _overwrite_page(path: Path, rng: Random) -> None:
    """Overwrite a page of a database, or one byte of another file, with something else."""
    size = path.stat().st_size
    with path.open("r+b") as file:
        if ".sqlite" in path.name and size > _PAGE:
            file.seek(_PAGE * rng.randrange(size // _PAGE))
            file.write(rng.randbytes(_PAGE))
        elif size:
            at = rng.randrange(size)
            file.seek(at)
            byte = file.read(1)[0]
            file.seek(at)
            file.write(bytes([byte ^ (1 << rng.randrange(8))]))
        file.flush()
        os.fsync(file.fileno())


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


def restart_after_kill(stage: Stage, rng: Random) -> list[Finding]:
    """Kill the daemon, start it and sync as its socket opens."""
    if not isinstance(stage.program, Daemon):
        return []
    stage.program.stop(signal.SIGKILL)
    if rng.random() < 0.3:
        damage(stage, rng)
    started = stage.judge(stage.program.start())
    stage.world.is_applied = True
    return [*started, *index(stage, rng)]


def pause(stage: Stage, rng: Random) -> list[Finding]:
    """Pause; abandon clients that wait; ask for the status; resume."""
    del rng
    if not isinstance(stage.program, Daemon):
        return []
    paused = stage.run("pause")
    stage.program.abandon(_CLIENTS)
    return [*paused, *stage.run("status"), *stage.run("resume")]


def reload(stage: Stage, rng: Random) -> list[Finding]:
    """Make the daemon read its configuration."""
    del rng
    if not stage.is_daemon:
        return []
    answer = stage.answer("reload")
    stage.world.is_applied = answer.code == 0
    return stage.judge(answer)
