"""The checks of `anchord doctor` that are about the machine: watches, open files, disk, clock."""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator

from anchord.daemon.findings import CheckContext, Finding, Health
from anchord.daemon.host import limits
from anchord.ipc.confinement import missing_layers
from anchord.store import disk_usage
from anchord.store.catalog.catalog import SqliteCatalog

_WATCHES_NEARLY_USED = 0.8
"""Share of the allowed watches from which on they are about to run out."""
_MIN_WATCHES = 524_288
"""The limit that is suggested at least."""
_MIN_INSTANCES = 128
_MIN_OPEN_FILES = 1_024
_LOW_DISK_BYTES = 1_000_000_000
_FULL_DISK_BYTES = 200_000_000
_MAX_CLOCK_SKEW_S = 2.0
_RELEASED_AT = 1_790_000_000
"""September 2026, in Unix time: a clock that is before it is wrong."""


def check_watches(context: CheckContext) -> Iterator[Finding]:
    """Check the limits of inotify; nothing where there is no inotify."""
    allowed = limits.inotify_limits()
    if allowed is None:
        return
    yield _check_watch_count(context, allowed)
    if allowed.max_instances < _MIN_INSTANCES:
        yield Finding(
            "watches",
            Health.DOUBTFUL,
            f"only {allowed.max_instances} programs per user may watch files at once",
            f"`sudo sysctl fs.inotify.max_user_instances={_MIN_INSTANCES}`",
        )


def check_open_files(_: CheckContext) -> Iterator[Finding]:
    """Check how many files a process may have open."""
    limit = limits.open_file_limit()
    if limit < _MIN_OPEN_FILES:
        yield Finding(
            "open files",
            Health.DOUBTFUL,
            f"a process may open only {limit}",
            f"`ulimit -n {_MIN_OPEN_FILES * 4}`",
        )
    else:
        yield Finding("open files", Health.GOOD, f"a process may open {limit:,}")


def check_confinement(_: CheckContext) -> Iterator[Finding]:
    """Check what confines the processes that read transcripts and parse code."""
    missing = missing_layers()
    if not missing:
        yield Finding("confinement", Health.GOOD, "by Landlock, seccomp and resource limits")
    elif sys.platform != "linux":
        yield Finding("confinement", Health.GOOD, "by resource limits only; Linux has more")
    else:
        yield Finding(
            "confinement",
            Health.DOUBTFUL,
            f"without {' and '.join(missing)}, readers of transcripts and code are limited less",
            "use Linux 5.13 or later with Landlock enabled, and install libseccomp",
        )


def check_disk(context: CheckContext) -> Iterator[Finding]:
    """Check the free space on the disk of the index."""
    folder = context.paths.data_folder
    free_bytes = disk_usage.free_bytes(folder)
    index_bytes = disk_usage.folder_bytes(folder)
    usage = f"{free_bytes / 1e9:.1f} GB free, the index uses {index_bytes / 1e6:.0f} MB"
    if free_bytes < _FULL_DISK_BYTES:
        yield Finding(
            "disk",
            Health.BAD,
            usage,
            f"free some space on the disk of {folder}; indexing resumes then, nothing is lost",
        )
    elif free_bytes < max(_LOW_DISK_BYTES, index_bytes):
        yield Finding(
            "disk",
            Health.DOUBTFUL,
            f"{usage}: too little to build a new index beside it",
            "free some space before you change a setting that needs a new index",
        )
    else:
        yield Finding("disk", Health.GOOD, usage)


def check_clock(context: CheckContext) -> Iterator[Finding]:
    """Compare the machine's clock with the disk's; writes a temporary file beside the index."""
    folder = context.paths.data_folder
    now = time.time()
    skew_s = limits.measure_clock_skew_s(folder)
    if now < _RELEASED_AT:
        date = time.strftime("%Y-%m-%d", time.gmtime(now))
        yield Finding(
            "clock",
            Health.BAD,
            f"the clock of this machine says {date}",
            "set the clock (`timedatectl set-ntp true`)",
        )
    elif abs(skew_s) > _MAX_CLOCK_SKEW_S:
        direction = "ahead of" if skew_s > 0 else "behind"
        yield Finding(
            "clock",
            Health.DOUBTFUL,
            f"the disk of {folder} is {abs(skew_s):.0f} s {direction} this machine",
            "synchronize both clocks: until then, recently edited files are read twice",
        )
    else:
        yield Finding("clock", Health.GOOD, "this machine and the disk agree on the time")


def _check_watch_count(context: CheckContext, allowed: limits.InotifyLimits) -> Finding:
    """Check whether all folders can be watched now, and if anchord does not run, once it does."""
    status = context.daemon_status
    roots = status.roots if status else ()
    polled = sum(root.polled_dirs for root in roots)
    needed = allowed.watches_used + polled
    usage = f"{allowed.watches_used:,} of {allowed.max_watches:,} are used"
    if status:
        watched = sum(root.watches for root in roots)
        usage += f", {watched:,} by anchord"
    else:
        needed += _count_indexed_folders(context)
    if not polled and needed <= _WATCHES_NEARLY_USED * allowed.max_watches:
        return Finding("watches", Health.GOOD, usage)
    # A power of two, at least twice what is needed.
    limit = max(_MIN_WATCHES, 1 << (2 * needed).bit_length())
    remedy = (
        f"`sudo sysctl fs.inotify.max_user_watches={limit}` until the next boot, and for good: "
        f"`echo fs.inotify.max_user_watches={limit} | sudo tee /etc/sysctl.d/60-anchord.conf`"
    )
    if not polled:
        return Finding("watches", Health.DOUBTFUL, usage, remedy)
    observation = f"{usage}; {polled:,} folders cannot be watched and are polled"
    return Finding("watches", Health.BAD, observation, remedy)


def _count_indexed_folders(context: CheckContext) -> int:
    """Count the folders that hold indexed files: at least so many will be watched."""
    if not context.paths.catalog_file.exists():
        return 0
    folders = set()
    with SqliteCatalog(context.paths.catalog_file, read_only=True) as catalog:
        for root in context.roots:
            for path in catalog.list_records(root.name, ""):
                folders.add((root.name, path.rpartition("/")[0]))
    return len(folders)
