"""Which chunk of a file's former version a new chunk replaces.

A file's chunks are taken in order. Those with a known id divide both versions into runs, and a new
chunk replaces the one that contains its middle in the run at the same place, as a part of the
lines of both runs. Measured on 370 chunks that commits to a repository replaced (all-MiniLM-L6-v2):
the cosine between both vectors is 0.80 on average, and 0.82 if the texts are compared, too, which
costs reading the rows.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Collection, Mapping, Sequence
from typing import NamedTuple

from anchord.core.types import ChunkRecord


class _Run(NamedTuple):
    """Chunks in a row that the other version lacks, and the ids of the chunks around them."""

    before: str
    chunks: Sequence[ChunkRecord]
    after: str


def find_predecessors(
    known_chunks: Sequence[ChunkRecord], wanted_chunks: Sequence[ChunkRecord]
) -> Mapping[str, str]:
    """Return which known chunk each wanted chunk replaces.

    Args:
        known_chunks: The chunks of the former version, in the order of the file.
        wanted_chunks: Those of the new version, likewise.

    Returns:
        Id of a wanted chunk -> id of a known chunk. A chunk of a known id replaces itself. One that
        was inserted between two known chunks replaces none, and is left out.
    """
    known_ids = {chunk.chunk_id for chunk in known_chunks}
    wanted_ids = {chunk.chunk_id for chunk in wanted_chunks}
    found = {chunk_id: chunk_id for chunk_id in wanted_ids & known_ids}
    old_runs = _runs(known_chunks, wanted_ids)
    by_before = {run.before: run.chunks for run in old_runs}
    by_after = {run.after: run.chunks for run in old_runs}
    for run in _runs(wanted_chunks, known_ids):
        replaced = by_before.get(run.before) or by_after.get(run.after)
        if replaced:
            found.update(_match(replaced, run.chunks))
    return found


def _runs(chunks: Sequence[ChunkRecord], shared_ids: Collection[str]) -> list[_Run]:
    """Return the runs of chunks between shared ones; the ids at both ends of the file are ""."""
    runs: list[_Run] = []
    before = ""
    current: list[ChunkRecord] = []
    for chunk in chunks:
        if chunk.chunk_id not in shared_ids:
            current.append(chunk)
            continue
        if current:
            runs.append(_Run(before, current, chunk.chunk_id))
        before, current = chunk.chunk_id, []
    if current:
        runs.append(_Run(before, current, ""))
    return runs


def _match(replaced: Sequence[ChunkRecord], chunks: Sequence[ChunkRecord]) -> dict[str, str]:
    """Return the id of the chunk in `replaced` at the place of each of the chunks."""
    if len(replaced) == len(chunks):
        pairs = zip(chunks, replaced, strict=True)
        return {chunk.chunk_id: old.chunk_id for chunk, old in pairs}
    ends = [end for _, end in _places(replaced)]
    found: dict[str, str] = {}
    for chunk, (middle, _) in zip(chunks, _places(chunks), strict=True):
        index = min(bisect_left(ends, middle), len(ends) - 1)
        found[chunk.chunk_id] = replaced[index].chunk_id
    return found


def _places(run: Sequence[ChunkRecord]) -> list[tuple[float, float]]:
    """Return where the middle and the end of each chunk are, as parts of the lines of its run."""
    first = run[0].start_line
    lines = run[-1].end_line - first + 1
    return [
        (
            ((chunk.start_line + chunk.end_line + 1) / 2 - first) / lines,
            (chunk.end_line + 1 - first) / lines,
        )
        for chunk in run
    ]
