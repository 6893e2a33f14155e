"""When what was moved to the trash is deleted, whatever the clock does."""

from __future__ import annotations

import sqlite3

TRASH_DAYS = 30
_LAST_TIME_KEY = "trash looked at"
"""In `meta`: the time of the last `delete_old_trash`."""
_DAY_NS = 24 * 3600 * 10**9
_MAX_STEP_NS = 25 * _DAY_NS


def delete_old_trash(db: sqlite3.Connection, reason: str, now_ns: int) -> int:
    """Delete what has been in the trash for 30 days.

    If the clock went back, or more than 25 days forward since the last call, it may be wrong: what
    is in the trash then keeps its age. The first call deletes nothing.

    Args:
        db: The archive, in a transaction.
        reason: The reason of the groups that are trash.
        now_ns: The time, in nanoseconds since the epoch.

    Returns:
        How many exchanges were deleted.
    """
    row = db.execute("SELECT value FROM meta WHERE key=?", (_LAST_TIME_KEY,)).fetchone()
    db.execute("INSERT OR REPLACE INTO meta VALUES(?,?)", (_LAST_TIME_KEY, str(now_ns)))
    if row is None:
        return 0
    step_ns = now_ns - int(row[0])
    if not 0 <= step_ns <= _MAX_STEP_NS:
        db.execute(
            "UPDATE exchanges SET detached_ns=detached_ns+? "
            "WHERE root IN (SELECT key FROM detached WHERE reason=?)",
            (step_ns, reason),
        )
    return db.execute(
        "DELETE FROM exchanges WHERE detached_ns<? "
        "AND root IN (SELECT key FROM detached WHERE reason=?)",
        (now_ns - TRASH_DAYS * _DAY_NS, reason),
    ).rowcount
