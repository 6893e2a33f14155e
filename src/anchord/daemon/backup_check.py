"""What `anchord doctor` says of backups: how old the last one is, once there is something to lose.

Files can be indexed again. What cannot be made again are conversations whose assistant has deleted
them: the archive has the only copy.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing
from datetime import UTC, datetime, timedelta

from anchord.core.counted import counted
from anchord.daemon.findings import CheckContext, Finding, Health
from anchord.sources.conversations.archive.reader import Archive
from anchord.store.backup.last_backup import load_last_backup

_MAX_AGE = timedelta(days=7)
_REMEDY = "`anchord backup FOLDER` makes one; best on another disk"


def check_backup(context: CheckContext) -> Iterator[Finding]:
    """Yield how old the last backup is, and whether that is too old for what exists only here.

    Raises:
        StoreError: The archive cannot be read.
    """
    only_here = _count_only_here(context)
    last = load_last_backup(context.paths.data_folder)
    exist = "exists" if only_here == 1 else "exist"
    exchanges = counted(only_here, "exchange")
    conversations = f"{exchanges} of conversations {exist} only in anchord's archive"
    if last is None:
        if only_here:
            observation = f"{conversations}, and there is no backup"
            yield Finding("backup", Health.DOUBTFUL, observation, _REMEDY)
        return
    age = datetime.now(UTC) - last.made_at
    observation = f"the last one is {_describe(age)} old, in {last.folder}"
    if only_here and age > _MAX_AGE:
        yield Finding(
            "backup",
            Health.DOUBTFUL,
            f"{conversations}; {observation}",
            _REMEDY,
        )
    else:
        yield Finding("backup", Health.GOOD, observation)


def _count_only_here(context: CheckContext) -> int:
    """Return how many exchanges are in no transcript file any more."""
    if not context.paths.archive_file.exists():
        return 0
    with closing(Archive(context.paths.archive_file, read_only=True)) as archive:
        counts = archive.counts_by_root().values()
        return sum(int(count["source_missing"]) for count in counts)


def _describe(age: timedelta) -> str:
    hours = max(0, int(age.total_seconds() // 3600))
    number, unit = (hours // 24, "day") if hours >= 48 else (hours, "hour")
    return f"{number} {unit}" if number == 1 else f"{number} {unit}s"
