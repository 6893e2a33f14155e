"""When hits are from, and weighing older ones down."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from anchord.core.dates import nanoseconds_of
from anchord.core.ports import Catalog, ChunkStore
from anchord.core.types import Hit
from anchord.sources.conversations.exchange_document import is_exchange_path


@dataclass(frozen=True, slots=True)
class Recency:
    """How fast hits lose their score as they get older."""

    half_life_s: float
    """A hit of this age keeps half of its score, one twice as old a quarter."""
    now_ns: int
    """The present time, in ns since 1970."""

    def factor(self, time_ns: int | None) -> float:
        """Return what a hit keeps of its score, 0 to 1; all of it if its time is not known."""
        if time_ns is None:
            return 1.0
        age_s = max(0, self.now_ns - time_ns) / 1e9
        return float(0.5 ** (age_s / self.half_life_s))


def weigh_by_age(
    hits: Sequence[Hit], recency: Recency, store: ChunkStore, catalog: Catalog
) -> list[Hit]:
    """Return hits with the scores that their age leaves them, best first."""
    times = _times_of(hits, store, catalog)
    weighed = []
    for hit in hits:
        factor = recency.factor(times.get(hit.id))
        weighed.append(replace(hit, score=hit.score * factor, recency=factor))
    return sorted(weighed, key=lambda hit: (-hit.score, hit.id))


def _times_of(hits: Sequence[Hit], store: ChunkStore, catalog: Catalog) -> Mapping[str, int]:
    """Return hit id -> when its file changed last, or its exchange ended; unknown times left out.

    Returns:
        Nanoseconds since 1970.
    """
    exchanges = [hit.id for hit in hits if is_exchange_path(hit.location.origin.path)]
    times = {
        row.id: nanoseconds_of(row.until or row.at)
        for row in store.get_display_rows(exchanges)
        if row.until or row.at
    }
    changed = catalog.change_times(
        {hit.location.origin for hit in hits if not is_exchange_path(hit.location.origin.path)}
    )
    for hit in hits:
        if hit.location.origin in changed:
            times[hit.id] = changed[hit.location.origin]
    return times
