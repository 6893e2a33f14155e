"""The hits of a search as passages: read their texts and those of their neighbours, and pack them.

Exchanges that several files or roots contain are found once.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import chain

from anchord.core.ports import Catalog, ChunkStore
from anchord.core.types import ChunkLocation, Hit, RootedPath, Row
from anchord.search.packing import Layout, pack
from anchord.search.passages import Passage, Piece
from anchord.sources.conversations.exchange_document import is_exchange_path

Group = tuple[Passage, ...]

_SPARE_GROUPS = 10
"""So many groups take the place of exchanges that are shown once and were found more often."""
_EXPAND_NEIGHBORS = 8
"""How many chunks before and after a hit are looked at to expand it."""
_PACK_NEIGHBORS = 3
"""How many are looked at to fill a budget."""
_TOKENS_PER_HIT = 100
_SPARE_HITS = 8
"""With a budget, the texts of so many hits are read: more never fit."""


def show_hits(
    hits: Sequence[Hit], limit: int, layout: Layout, store: ChunkStore, catalog: Catalog
) -> tuple[tuple[Group, ...], int]:
    """Return the passages of the first groups; rows that were just deleted are left out.

    Args:
        hits: Best first.
        limit: Number of groups: files and exchanges, or chunks in a flat list.
        layout: How much is shown.
        store: Where the texts are.
        catalog: Says which chunks are neighbours.

    Returns:
        One group a file or exchange, best first, its passages likewise; and how many of the first
        groups have no passage, because the budget is spent.
    """
    candidates = _candidates(hits, limit, layout)
    rows = _read_rows(candidates, layout, store)
    originals = _without_copies(candidates, rows)[:limit]
    shown_hits = [hit for group in originals for hit in group if hit.id in rows]
    pieces = [Piece(rows[hit.id], hit.location, hit) for hit in shown_hits]
    wanted = _neighbors(shown_hits, layout, catalog)
    rows_beside = store.get_display_rows(list(wanted), layout.neighbor_filters) if wanted else ()
    pieces += [Piece(row, wanted[row.id]) for row in rows_beside]
    shown = _in_groups(pack(pieces, layout), layout)
    omitted = 0 if layout.budget is None else len(originals) - len(shown)
    return shown, omitted


def _candidates(hits: Sequence[Hit], limit: int, layout: Layout) -> list[list[Hit]]:
    """Return the groups that can be among the first, with spare ones in place of copies."""
    groups = [[hit] for hit in hits] if layout.is_flat else group_hits_by_file(hits)
    has_exchange = any(_is_exchange(group[0]) for group in groups[:limit])
    return groups[: limit + _SPARE_GROUPS] if has_exchange else groups[:limit]


def _in_groups(passages: Iterable[Passage], layout: Layout) -> tuple[Group, ...]:
    groups: dict[RootedPath | str, list[Passage]] = {}
    for passage in passages:
        key = passage.hit.id if layout.is_flat else passage.hit.location.origin
        groups.setdefault(key, []).append(passage)
    return tuple(map(tuple, groups.values()))


def group_hits_by_file(hits: Sequence[Hit]) -> list[list[Hit]]:
    """Group hits by file, in the order of each file's first hit; hits keep their order."""
    groups: dict[RootedPath, list[Hit]] = {}
    for hit in hits:
        groups.setdefault(hit.location.origin, []).append(hit)
    return list(groups.values())


def _read_rows(
    groups: Sequence[Sequence[Hit]], layout: Layout, store: ChunkStore
) -> Mapping[str, Row]:
    """Return the rows of the groups' hits by id; with a budget only of those that can fit."""
    ids = [hit.id for hit in _best_hits(chain.from_iterable(groups), layout)]
    return {row.id: row for row in store.get_display_rows(ids)}


def _best_hits(hits: Iterator[Hit], layout: Layout) -> list[Hit]:
    if layout.budget is None:
        return list(hits)
    best = sorted(hits, key=lambda hit: (-hit.score, hit.id))
    return best[: layout.budget // _TOKENS_PER_HIT + _SPARE_HITS]


def _neighbors(hits: Sequence[Hit], layout: Layout, catalog: Catalog) -> dict[str, ChunkLocation]:
    """Return where the chunks around hits are that were not found themselves, by id."""
    distance = _EXPAND_NEIGHBORS if layout.expand_chars else _PACK_NEIGHBORS
    if not layout.expand_chars and (layout.budget is None or layout.is_flat):
        return {}
    ids_by_hit = {hit.id: catalog.neighbor_chunk_ids(hit.id, distance) for hit in hits}
    locations = catalog.locate_chunks(list(dict.fromkeys(chain(*ids_by_hit.values()))))
    # Else a hit's file changed since it was found.
    present = [hit for hit in hits if locations.get(hit.id) == hit.location]
    near = dict.fromkeys(chain.from_iterable(ids_by_hit[hit.id] for hit in present))
    found = {hit.id for hit in hits}
    return {each: locations[each] for each in near if each in locations and each not in found}


def _is_exchange(hit: Hit) -> bool:
    return is_exchange_path(hit.location.origin.path)


def _without_copies(
    groups: Sequence[Sequence[Hit]], rows: Mapping[str, Row]
) -> list[Sequence[Hit]]:
    """Leave out exchanges that repeat a better hit; the original's best hit names their places."""
    original_of = _find_copies(list(chain.from_iterable(groups)), rows)
    copies: dict[RootedPath, list[ChunkLocation]] = {}
    for group in groups:
        origin = group[0].location.origin
        if origin in original_of:
            copies.setdefault(original_of[origin], []).append(group[0].location)
    originals: list[Sequence[Hit]] = []
    for group in groups:
        best, *others = group
        if best.location.origin in original_of:
            continue
        places = copies.get(best.location.origin, ())
        originals.append([replace(best, copies=(*best.copies, *places)), *others])
    return originals


def _find_copies(hits: Sequence[Hit], rows: Mapping[str, Row]) -> dict[RootedPath, RootedPath]:
    """Return the exchanges that repeat a better hit, and which one each of them repeats.

    They have the same program, times and text. Of equal hits the first is the better one.
    """
    first_by_identity: dict[tuple[str, ...], RootedPath] = {}
    original_of: dict[RootedPath, RootedPath] = {}
    for hit in hits:
        origin, row = hit.location.origin, rows.get(hit.id)
        if row is None or origin in original_of or not _is_exchange(hit):
            continue
        identity = (row.source, row.at, row.until, row.text)
        original = first_by_identity.setdefault(identity, origin)
        if original in original_of:
            first_by_identity[identity] = origin
        elif original != origin:
            original_of[origin] = original
    return original_of
