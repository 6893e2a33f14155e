"""Every position of a record with every odd value, one at a time: random examples miss some."""

from __future__ import annotations

from collections.abc import Iterator
from copy import deepcopy
from typing import Any

from sources.conversations.formats.mutations import places

ODD: tuple[object, ...] = (
    None,
    True,
    0,
    -1,
    1.5,
    10**400,
    "x",
    "",
    "\ud800",
    [],
    {},
    [[1]],
    {"a": [1]},
)


def everywhere(value: object) -> Iterator[Any]:
    """Yield a value with one of its values replaced by an odd one."""
    for *way, last in places(value):
        for odd in ODD:
            changed: Any = deepcopy(value)
            holder = changed
            for key in way:
                holder = holder[key]
            holder[last] = odd
            yield changed
