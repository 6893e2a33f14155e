"""Conversations that are trees: the active branch comes first, then each superseded branch.

A superseded branch can begin with an answer: another answer to a question of the active branch. Its
question is repeated under an id of its own, so that the answer is kept, and apart from the active
one.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import chain, takewhile

from anchord.sources.conversations.events import Role, Turn


def flatten_tree(
    parents: Mapping[str, str], turns: Mapping[str, Sequence[Turn]], active_leaf: str
) -> Iterator[Turn]:
    """Yield all turns of a tree: the active branch, then what was superseded.

    Args:
        parents: Every node's parent, in the source's order. A parent that is no node, such as "",
            makes its node a root; a circle ends where it closes.
        turns: The turns of each node that has some.
        active_leaf: The last node of the active branch.
    """
    active = _path_from_root(active_leaf, parents, frozenset())
    for key in active:
        yield from turns.get(key, ())
    visited = set(active)
    inner_nodes = set(parents.values())
    leaves = [key for key in parents if key not in inner_nodes]
    question_cache: dict[str, Turn | None] = {}
    # Every node is below a leaf, but for circles without one: the second round finds those.
    for end in chain(leaves, parents):
        branch = _path_from_root(end, parents, visited)
        visited.update(branch)
        superseded = [turn for key in branch for turn in turns.get(key, ())]
        answers = list(takewhile(lambda turn: turn.role is not Role.QUESTION, superseded))
        if any(turn.text.strip() for turn in answers):
            fork = parents[branch[0]]
            question = _find_question(fork, parents, turns, question_cache)
            superseded.insert(0, _repeat_question(question, answers[0]))
        else:
            # Without a text such answers are tool calls, which say nothing by themselves.
            del superseded[: len(answers)]
        yield from (replace(turn, superseded=True) for turn in superseded)


def _path_from_root(key: str, parents: Mapping[str, str], visited: Collection[str]) -> list[str]:
    """Return the nodes down to one, beginning below the nearest visited node."""
    path: dict[str, None] = {}
    while key in parents and key not in path and key not in visited:
        path[key] = None
        key = parents[key]
    return list(path)[::-1]


def _find_question(
    key: str,
    parents: Mapping[str, str],
    turns: Mapping[str, Sequence[Turn]],
    cache: dict[str, Turn | None],
) -> Turn | None:
    """Return the nearest question at or above a node, None for none.

    Adds every node on the way to the cache, so that no way is walked twice.
    """
    path: list[str] = []
    while key in parents and key not in cache:
        path.append(key)
        question = _last_question(turns.get(key, ()))
        cache[key] = question
        if question is None:
            key = parents[key]
    found = cache.get(key)
    cache.update(dict.fromkeys(path, found))
    return found


def _last_question(turns: Sequence[Turn]) -> Turn | None:
    questions = (turn for turn in reversed(turns) if turn.role is Role.QUESTION)
    return next(questions, None)


def _repeat_question(question: Turn | None, answer: Turn) -> Turn:
    """Return the question of a superseded answer: an empty one where nothing was asked before."""
    if question is None:
        turn_id = f"~{answer.id}"
        return Turn(
            id=turn_id,
            role=Role.QUESTION,
            text="",
            offset=answer.offset,
        )
    return replace(question, id=f"{question.id}~{answer.id}")
