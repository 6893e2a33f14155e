"""`verify` over an opened index, and the repair of what it found: the thin part around `verification`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from anchord.model import Origin, printable
from anchord.ports import unfelt
from anchord.verification import Difference, Kind, Verification, rebuild, verify
from anchord.workspace import Reader, Writer

_LISTED = 1_000


def verify_index(reader: Reader, vectors: int | None) -> Verification:
    """Compare the whole index with a clean rebuild; `vectors`: how many to embed again, None for all."""
    means = reader.means
    roots = [root.name for root in reader.roots]
    parts = rebuild(roots, (reader.files, reader.catalogue), means.recipe, means.count)
    beat = reader.pulse.beat if isinstance(reader, Writer) else unfelt
    return verify(parts, reader.catalogue, reader.store, (means.embedder, vectors), beat)


def repair(writer: Writer, differences: Sequence[Difference]) -> list[Origin]:
    """Drop what belongs to nothing or is spoiled; return the files to index again. Nothing else is touched."""
    extra = [d.chunk_id for d in differences if d.kind in (Kind.EXTRA, Kind.DUPLICATE)]
    spoiled = [d.chunk_id for d in differences if d.kind in (Kind.VECTOR, Kind.SPOILED)]
    doubtful = list(dict.fromkeys(d.origin for d in differences if d.origin.root in writer.by_name))
    return list(writer.indexer.repair(extra, doubtful, spoiled))


def verification_dict(result: Verification) -> dict[str, Any]:
    """Return a verification as JSON values; of very many differences only the first are listed."""
    return {
        "ok": not result.differences,
        "files": result.files,
        "chunks": result.chunks,
        "vectors_checked": result.vectors,
        "differences": [
            {"kind": str(d.kind), "root": d.origin.root, "path": printable(d.origin.path), "chunk_id": d.chunk_id}
            for d in result.differences[:_LISTED]
        ],
        "differences_total": len(result.differences),
        "changing": [str(origin) for origin in result.changing],
    }
