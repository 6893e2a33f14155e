"""Names that stay the same while their bytes do: digests, chunk ids, vector keys, recipes.

Everything is 128-bit XXH3, written as 32 hex digits. Fields are joined with NUL (which normalised text
cannot hold) so that no two different tuples give the same bytes. This is the only user of xxhash.

A chunk id is built from the file, the header path, the line range counted from the nearest *anchor* (a cut chosen by
headings or by content, never by position) and the content hash. Nothing above the anchor can change it: that is why an
edit at the top of a file leaves the ids below alone.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import xxhash

HEX_DIGITS = 32
"""Length of every id and key in this module."""


def digest(data: bytes) -> str:
    """Hash file content."""
    return xxhash.xxh3_128_hexdigest(data)


def digest_stream(blocks: Iterable[bytes]) -> str:
    """Hash content too large to hold; equals `digest` of the joined blocks."""
    state = xxhash.xxh3_128()
    for block in blocks:
        state.update(block)
    return state.hexdigest()


def fields_digest(*fields: str) -> str:
    """Hash a tuple of texts; the order and the borders between fields count."""
    return xxhash.xxh3_128_hexdigest("\0".join(fields).encode("utf-8", "surrogatepass"))


def file_key(root: str, path: str) -> str:
    """Name a file by its root's name and its path in it, so that a root can be moved without new ids."""
    return fields_digest("file", root, path)


def boundary_key(text: str) -> int:
    """Priority of a cut before `text`: of the first 32 characters that are no blanks (CHUNKER.md, step 4)."""
    return xxhash.xxh64_intdigest("".join(text[:160].split())[:32].encode())


def chunk_id(key: str, header_path: Sequence[str], lines: tuple[int, int], content_hash: str, occurrence: int) -> str:
    """Name a chunk. `lines` count from its anchor; `occurrence` is 0 but for repeats of an identical tuple."""
    repeat = (str(occurrence),) if occurrence else ()
    return fields_digest(key, "\x1f".join(header_path), str(lines[0]), str(lines[1]), content_hash, *repeat)


def vector_key(model: str, embed_text: str) -> str:
    """Name a vector by what it is made of: the model's own identity and the embedded text."""
    return fields_digest(model, embed_text)


def hash_vector_seed(text: str) -> int:
    """64 bits of a text, for the provider that embeds without a model."""
    return xxhash.xxh3_64_intdigest(text.encode("utf-8", "surrogatepass"))


def row_checksum(fields: Iterable[str], vector: bytes) -> int:
    """Sum up a stored row, so that a bit that flips on the disk is noticed; fits a signed column of 64 bits."""
    state = xxhash.xxh3_64("\0".join(fields).encode("utf-8", "surrogatepass"))
    state.update(vector)
    return state.intdigest() - (1 << 63)
