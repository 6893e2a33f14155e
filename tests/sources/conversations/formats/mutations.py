"""Broken transcripts for the tests of the readers: any value in any position, truncated bytes."""

from __future__ import annotations

import json
from collections.abc import Iterator
from copy import deepcopy
from types import ModuleType
from typing import Any

from hypothesis import strategies as st
from sources.conversations.formats.carriers import (
    HEAD_BYTES,
    MemoryTranscript,
    jsonl,
    parse_transcript,
)

ANYTHING = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(st.characters(), max_size=20),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3)
    ),
    max_leaves=6,
)


def places(value: object, above: tuple[str | int, ...] = ()) -> Iterator[tuple[str | int, ...]]:
    """Yield the path to each nested value."""
    inner: Any = (
        value.items()
        if isinstance(value, dict)
        else enumerate(value)
        if isinstance(value, list)
        else ()
    )
    for key, each in inner:
        yield (*above, key)
        yield from places(each, (*above, key))


@st.composite
def mutated(draw: st.DrawFn, value: object) -> Any:  # noqa: ANN401 - it is any JSON
    """Draw a value with a few of its values replaced by others, or left out."""
    changed: Any = deepcopy(value)
    for _ in range(draw(st.integers(1, 3))):
        ways = list(places(changed))
        if not ways:
            break
        *way, last = draw(st.sampled_from(ways))
        holder = changed
        for key in way:
            holder = holder[key]
        if isinstance(holder, dict) and draw(st.booleans()):
            del holder[last]
        else:
            holder[last] = draw(ANYTHING)
    return changed


@st.composite
def broken(draw: st.DrawFn, value: object, *, lines: bool = False) -> bytes:
    """Draw the bytes of a mutated value, now and then cut short."""
    changed = draw(mutated(value))
    data = jsonl(*changed) if lines else json.dumps(changed).encode()
    return data[: draw(st.integers(0, len(data)))] if draw(st.booleans()) else data


def survives(reader: ModuleType, path: str, data: bytes) -> None:
    """Read any bytes: nothing is raised, every text can be stored, and active exchanges have unique names."""
    assert reader.matches(data[:HEAD_BYTES], path) in (True, False)
    parsed = parse_transcript(reader, MemoryTranscript(path, data))
    names = [
        (exchange.session, exchange.id) for exchange in parsed.exchanges if not exchange.superseded
    ]
    assert len(set(names)) == len(names)
    for exchange in parsed.exchanges:
        f"{exchange.question}{exchange.answer}".encode()
