"""Find the files that changed in a span of time."""

from __future__ import annotations

import math
from collections.abc import Iterable

from anchord.core.dates import nanoseconds_of
from anchord.core.ids import make_doc_id
from anchord.core.types import DatedFiles, RootedPath


def find_dated_files(
    since: str, until: str, change_times: Iterable[tuple[RootedPath, int]]
) -> DatedFiles:
    """Return the files that changed last in a span of time.

    Args:
        since: Its begin as `parse_time` returns it; "" for none.
        until: Its end, which is not part of it; "" for none.
        change_times: Each file with its time of change, in ns.
    """
    begin_ns = nanoseconds_of(since) if since else -math.inf
    end_ns = nanoseconds_of(until) if until else math.inf
    inside: list[RootedPath] = []
    outside: list[RootedPath] = []
    for origin, changed_ns in change_times:
        (inside if begin_ns <= changed_ns < end_ns else outside).append(origin)
    is_complement = len(outside) < len(inside)
    shorter = outside if is_complement else inside
    return DatedFiles(tuple(map(make_doc_id, shorter)), is_complement)
