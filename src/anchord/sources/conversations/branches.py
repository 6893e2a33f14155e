"""Conversations that are trees: the branch that was seen last comes first, then what was left, branch by branch.

A branch that was left and begins with an answer has its question told again under another name, so that no answer is lost and
none is ever put to a question of the active branch.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import takewhile

from anchord.conversation import Role, Turn


def told(above: Mapping[str, str], turns: Mapping[str, Sequence[Turn]], leaf: str) -> Iterator[Turn]:
    """Tell of all of a tree. `above`: every node in the source's order and the node above it; a circle ends where it closes."""
    active = _up_from(leaf, above, frozenset())
    for key in active:
        yield from turns.get(key, ())
    done = set(active)
    inner = set(above.values())
    questions: dict[str, Turn | None] = {}
    for end in (*(key for key in above if key not in inner), *above):  # The second time finds circles, which have no end.
        fresh = _up_from(end, above, done)
        done.update(fresh)
        left = [turn for key in fresh for turn in turns.get(key, ())]
        answers = list(takewhile(lambda turn: turn.role is not Role.QUESTION, left))
        if any(turn.text.strip() for turn in answers):
            left.insert(0, _asked_again(_question_above(above[fresh[0]], above, turns, questions), answers[0]))
        else:
            del left[: len(answers)]
        yield from (replace(turn, superseded=True) for turn in left)


def _up_from(key: str, above: Mapping[str, str], done: set[str] | frozenset[str]) -> list[str]:
    """Return the nodes down to one, from the first that is not yet done."""
    path: dict[str, None] = {}
    while key in above and key not in path and key not in done:
        path[key] = None
        key = above[key]
    return list(path)[::-1]


def _question_above(
    key: str, above: Mapping[str, str], turns: Mapping[str, Sequence[Turn]], known: dict[str, Turn | None]
) -> Turn | None:
    """Return the nearest question at or above a node. `known`: those that were found before, so that no way is gone twice."""
    path = list[str]()
    while key in above and key not in known:
        path.append(key)
        known[key] = next((turn for turn in reversed(turns.get(key, ())) if turn.role is Role.QUESTION), None)
        key = key if known[key] else above[key]
    found = known.get(key)
    known.update(dict.fromkeys(path, found))
    return found


def _asked_again(asked: Turn | None, answer: Turn) -> Turn:
    """Return a question for an answer that was left: what was said before any question has an empty one."""
    if asked is None:
        return Turn(f"~{answer.id}", Role.QUESTION, "", offset=answer.offset)
    return replace(asked, id=f"{asked.id}~{answer.id}")
