"""The lines in which two texts differ, to be shown."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from difflib import SequenceMatcher
from itertools import takewhile


def changed_lines(before: str, after: str) -> Iterator[str]:
    """Yield the lines that are removed, with "- ", and added, with "+ ", in their order.

    A line to which only a comma is added, or from which one is removed, counts as the same.
    """
    old, new = before.splitlines(), after.splitlines()
    bare_old, bare_new = _without_commas(old), _without_commas(new)
    # The texts are equal but for a few lines: what differs is found in those alone.
    start = _count_equal(bare_old, bare_new)
    rest_old, rest_new = bare_old[start:], bare_new[start:]
    end = _count_equal(rest_old[::-1], rest_new[::-1])
    matcher = SequenceMatcher(
        None, rest_old[: len(rest_old) - end], rest_new[: len(rest_new) - end], autojunk=False
    )
    for tag, old_from, old_to, new_from, new_to in matcher.get_opcodes():
        if tag != "equal":
            yield from (f"- {line}" for line in old[start + old_from : start + old_to])
            yield from (f"+ {line}" for line in new[start + new_from : start + new_to])


def _without_commas(lines: Sequence[str]) -> list[str]:
    return [line.rstrip().removesuffix(",") for line in lines]


def _count_equal(one: Sequence[str], other: Sequence[str]) -> int:
    """Return with how many equal lines two texts begin."""
    pairs = zip(one, other, strict=False)
    return sum(1 for _ in takewhile(lambda pair: pair[0] == pair[1], pairs))
