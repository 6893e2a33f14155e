"""Steps that run a command with a fault, and damage below the data folder."""

from __future__ import annotations

import os
import shutil
import signal
from pathlib import Path
from random import Random

from tools.simulator.commands import SHORT_S, Stage
from tools.simulator.faulty import ERRORS, FILE_ERRORS, KILL, LANCE_ERRORS, Fault
from tools.simulator.oracle import Finding, rebase_archive
from tools.simulator.program import Daemon

_DATABASES = ("conversations.sqlite", "conversations.sqlite", "state.sqlite", "vectors.sqlite")
_PAGE = 4096
_CALLS = (1, 2, 3, 5, 8, 13, 21, 34, 55)
_COMPLETE = 0.1


def _any_command(rng: Random) -> tuple[str, ...]:
    return rng.choice((("index",),) * 5 + (("reindex",), ("verify", "--repair"), ("rebuild",)))


def failing_call(stage: Stage, rng: Random) -> list[Finding]:
    """Let a call of SQLite fail once, with an error that is no damage."""
    nth = rng.choice(_CALLS) + rng.randrange(5)
    fault = Fault("sqlite", nth, rng.choice(sorted(ERRORS)), rng.choice(_DATABASES))
    return _with_fault(stage, rng, fault)


def failing_lance(stage: Stage, rng: Random) -> list[Finding]:
    """Let a call of Lance fail, once or from then on, with an error that is no damage."""
    nth = rng.choice((0, 1, 2, 3, 4, 5, 6, 8, 10, 13, 17, 21))
    return _with_fault(stage, rng, Fault("lance", nth, rng.choice(sorted(LANCE_ERRORS))))


def failing_file(stage: Stage, rng: Random) -> list[Finding]:
    """Let a write, a flush or a rename of the program's own files fail, once or each time."""
    nth = rng.choice((0, *_CALLS)) + rng.randrange(3)
    return _with_fault(stage, rng, Fault("files", nth, rng.choice(FILE_ERRORS), "/home/data/"))


def killed(stage: Stage, rng: Random) -> list[Finding]:
    """End the process at a call of SQLite, of Lance or of the file system."""
    nth = rng.choice(_CALLS) + rng.randrange(8)
    faults = (
        Fault("sqlite", nth, KILL, rng.choice(_DATABASES)),
        Fault("sqlite", nth, KILL, rng.choice(_DATABASES)),
        Fault("lance", 1 + nth % 20, KILL),
        Fault("files", nth, KILL, "/home/data/"),
    )
    return _with_fault(stage, rng, rng.choice(faults))


def unreadable_rules(stage: Stage, rng: Random) -> list[Finding]:
    """Let the N-th or every read of a rule file fail."""
    return _with_fault(stage, rng, Fault("rules", rng.choice((0, 1, 2, 3)), "IOERR"))


def _with_fault(stage: Stage, rng: Random, fault: Fault) -> list[Finding]:
    if stage.is_daemon:
        return stage.run("sync", "--timeout", SHORT_S, fault=fault)
    return stage.run(*_any_command(rng), fault=fault, is_complete=rng.random() < _COMPLETE)


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
    if path.name.startswith("conversations.sqlite"):
        stage.world.fileless |= stage.world.archived.keys()
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


def restart_after_kill(stage: Stage, rng: Random) -> list[Finding]:
    """Kill the daemon, start it and sync as its socket opens."""
    if not isinstance(stage.program, Daemon):
        return []
    stage.program.stop(signal.SIGKILL)
    if rng.random() < 0.3:
        damage(stage, rng)
    started = stage.judge(stage.program.start())
    stage.world.is_applied = True
    return [*started, *stage.run("sync", "--timeout", SHORT_S)]
