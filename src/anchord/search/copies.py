"""One hit a content: the same chunk in several worktrees, copies or exports is found once.

Two chunks are the same if their vector keys are: the key is a hash of the text and of the heading
that is embedded with it. Exchanges are left out, because the same words at two times are two events
(`search.groups` knows repeated exchanges).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

from anchord.core.types import Hit, RootedPath
from anchord.sources.conversations.exchange_document import is_exchange_path


def merge_copies(hits: Sequence[Hit], is_near: Callable[[RootedPath], bool]) -> list[Hit]:
    """Return one hit for each content, best first.

    Its place is one in a near file, else in the file that was found first. So the chunks of two
    equal files are all shown from one of them. The other places are its copies.

    Args:
        hits: Hits, best first.
        is_near: Whether a file is below the caller's folder.
    """
    rank_by_file: dict[RootedPath, tuple[bool, int]] = {}
    hits_by_content: dict[str, list[Hit]] = {}
    for number, hit in enumerate(hits):
        origin = hit.location.origin
        if origin not in rank_by_file:
            rank_by_file[origin] = (not is_near(origin), number)
        hits_by_content.setdefault(_content_key(hit), []).append(hit)

    def file_rank(hit: Hit) -> tuple[bool, int]:
        return rank_by_file[hit.location.origin]

    # A dictionary keeps the order in which its keys came: that of the best hit of each content.
    return [_merge(same, file_rank) for same in hits_by_content.values()]


def _content_key(hit: Hit) -> str:
    """Return what equal chunks have in common; a key of its own for what is never merged."""
    is_exchange = is_exchange_path(hit.location.origin.path)
    if is_exchange or not hit.location.vector_key:
        return f"id:{hit.id}"
    return hit.location.vector_key


def _merge(same: Sequence[Hit], file_rank: Callable[[Hit], tuple[bool, int]]) -> Hit:
    if len(same) == 1:
        return same[0]
    shown, *others = sorted(same, key=file_rank)
    # Equal texts are equally well found: one of them can be missing in a list that was cut.
    nearest = max(same, key=lambda hit: -1.0 if hit.cosine is None else hit.cosine)
    by_words = max(same, key=lambda hit: -1.0 if hit.bm25 is None else hit.bm25)
    return replace(
        shown,
        score=same[0].score,
        cosine=nearest.cosine,
        cosine_rank=nearest.cosine_rank,
        bm25=by_words.bm25,
        bm25_rank=by_words.bm25_rank,
        contains_identifier=any(hit.contains_identifier for hit in same),
        matches_heading=any(hit.matches_heading for hit in same),
        copies=tuple(other.location for other in others),
    )
