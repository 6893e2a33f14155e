"""Shrinks an input: parts are dropped while the defect keeps its name."""

from __future__ import annotations

import re
from collections.abc import Callable

from tools.fuzz.laws import signature

_MOST_RUNS = 3_000

Smaller = Callable[[bytes, int, int], bytes]


def defect(run: Callable[[bytes], None], data: bytes) -> str:
    """Return the name of the defect that an input shows; "" if there is none."""
    try:
        run(data)
    except Exception as error:  # noqa: BLE001 - whatever a target raises is its defect
        return signature(error)
    return ""


def shrink(run: Callable[[bytes], None], data: bytes) -> bytes:
    """Return a smaller input with the same defect: parts are left out, large ones first; then letters become plain ones."""
    name, left = defect(run, data), _MOST_RUNS
    before = b""
    while name and data != before and left > 0:
        before = data
        for places in (_without, _plainer):
            data, left = _tried(run, data, name, places, left)
    return data


def _tried(
    run: Callable[[bytes], None], data: bytes, name: str, places: Smaller, left: int
) -> tuple[bytes, int]:
    """Take smaller forms with the same defect, one after the other, within a number of runs."""
    size = 2 * len(data)
    while size := size // 2:
        at = 0
        while at < len(data) and left > 0:
            smaller = places(data, at, size)
            left -= smaller != data
            if smaller != data and defect(run, smaller) == name:
                at += 0 if len(smaller) < len(data) else size
                data = smaller
            else:
                at += size
    return data, left


def _without(data: bytes, at: int, size: int) -> bytes:
    return data[:at] + data[at + size :]


def _plainer(data: bytes, at: int, size: int) -> bytes:
    return (
        data[:at] + re.sub(rb"[^\W_]|[\x80-\xff]", b"a", data[at : at + size]) + data[at + size :]
    )
