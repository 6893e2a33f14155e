"""From the results of a search to the context that a prompt gets."""

from __future__ import annotations

from collections.abc import Collection, Iterator

import msgspec

from anchord.core.token_counts import token_upper_bound
from anchord.ipc.messages.searching import Passage, SearchAnswer
from anchord.mcp.answers import search_answer
from anchord.mcp.render import render_answer

_HEADING = "anchord found this in the user's own files and conversations:\n"
_STRONG = "strong"


def select(found: SearchAnswer, shown: Collection[str], hits: int) -> SearchAnswer:
    """Return the results that are strong matches for the query and were not shown before.

    Args:
        found: Answer of the method "search".
        shown: Ids of chunks that the session has seen.
        hits: Maximum number of passages.
    """
    seen = set(shown)
    groups: list[tuple[Passage, ...]] = []
    for passage in sorted(_passages(found), key=lambda each: -each.score):
        if len(groups) < hits and passage.confidence == _STRONG and seen.isdisjoint(passage.ids):
            seen.update(passage.ids)
            groups.append((passage,))
    return msgspec.structs.replace(found, groups=tuple(groups), omitted=0, note="")


def _passages(found: SearchAnswer) -> Iterator[Passage]:
    if found.about:
        for group in found.groups:
            yield from group


def render(selected: SearchAnswer, tokens: int) -> tuple[str, int, list[Passage]]:
    """Return the context, its tokens, and the passages in it; ("", 0, []) if none fits.

    Args:
        selected: What `select` returned.
        tokens: Maximum tokens of the context, by `token_upper_bound`.
    """
    budget = tokens - token_upper_bound(_HEADING)
    while budget > 0:
        answer = search_answer(selected, budget)
        answer.pop("omitted", None)
        fitting = {result["id"] for result in answer["results"]}
        passages = [each for each in _passages(selected) if any(map(each.id.startswith, fitting))]
        if not passages:
            break
        # A text must not close the element in which Claude Code gives this to the model.
        context = _HEADING + render_answer(answer).replace("<", r"\u003c")
        used = token_upper_bound(context)
        if used <= tokens:
            return context, used, passages
        budget = budget * tokens // (used + 1)
    return "", 0, []
