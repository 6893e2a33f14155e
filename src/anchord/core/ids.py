"""Digests, ids and keys that depend on content only, so that they survive restarts and edits.

Everything here is 128-bit XXH3, written as 32 hexadecimal digits, unless a function says otherwise.
Fields are joined with NUL, which normalised text cannot contain: different tuples therefore give
different bytes. This is the only module that uses xxhash.

A chunk id is made of the file, the header path, the chunk's lines counted from the nearest
*anchor*, and the content hash. An anchor is a cut that headings or content determine, never a
position. Nothing above the anchor changes the id: an edit at the top of a file leaves the ids
below the next anchor as they are.

The results are stored. No change of this module may change one of them.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import xxhash

from anchord.core.types import RootedPath

ID_LENGTH = 32
"""Characters of every id and key that this module returns as text."""
DUE_MARK = "~"
"""Stored before the vector key of a row that lacks its own vector. It sorts after every key."""
MODEL_TAG_LENGTH = 8
_TAG_END = "."


def hash_content(data: bytes) -> str:
    """Hash the content of a file."""
    return xxhash.xxh3_128_hexdigest(data)


def hash_blocks(blocks: Iterable[bytes]) -> str:
    """Hash content that is too large for memory, block by block.

    Returns:
        The same as `hash_content` of the joined blocks.
    """
    state = xxhash.xxh3_128()
    for block in blocks:
        state.update(block)
    return state.hexdigest()


def hash_fields(*fields: str) -> str:
    """Hash a tuple of texts. Their order and the borders between them matter."""
    return xxhash.xxh3_128_hexdigest("\0".join(fields).encode("utf-8", "surrogatepass"))


def make_file_key(root: str, path: str) -> str:
    """Return the key of a file that the ids of its chunks contain.

    Args:
        root: Name of the root. Its folder is left out, so moving the folder changes no id.
        path: Path in the root.
    """
    return hash_fields("file", root, path)


def boundary_priority(text: str) -> int:
    """Return the priority of a possible cut, as a 64-bit number that depends on the text only.

    Args:
        text: The text after the cut. Of its first 160 characters, the first 32 that are not white
            space count, so that re-indenting moves no cut.
    """
    without_blanks = "".join(text[:160].split())
    return xxhash.xxh64_intdigest(without_blanks[:32].encode())


def make_chunk_id(
    file_key: str,
    header_path: Sequence[str],
    lines_from_anchor: tuple[int, int],
    content_hash: str,
    occurrence: int,
) -> str:
    """Return the id of a chunk.

    Args:
        file_key: Key of its file, from `make_file_key`.
        header_path: Titles of the headings above the chunk, outermost first.
        lines_from_anchor: First and last line, counted from the chunk's anchor (0 is its line).
        content_hash: Hash of the chunk's content.
        occurrence: How many earlier chunks of the file have equal values for all of the above.
    """
    repeat = (str(occurrence),) if occurrence else ()
    first_line, last_line = lines_from_anchor
    return hash_fields(
        file_key,
        "\x1f".join(header_path),
        str(first_line),
        str(last_line),
        content_hash,
        *repeat,
    )


def make_vector_key(model_id: str, embed_text: str, model_tag: str = "") -> str:
    """Return the key of a vector: equal for equal texts embedded by the same model.

    Args:
        model_id: `Embedder.model_id`.
        embed_text: The text that is embedded.
        model_tag: `make_model_tag` of a further model; "" for the main one.

    Returns:
        A hash; for a further model its tag, a dot and the hash.
    """
    key = hash_fields(model_id, embed_text)
    return f"{model_tag}{_TAG_END}{key}" if model_tag else key


def make_model_tag(model_id: str) -> str:
    """Return what the vector keys of a further model begin with: eight hexadecimal digits."""
    return hash_fields("model", model_id)[:MODEL_TAG_LENGTH]


def model_tag_of(vector_key: str) -> str:
    """Return the tag of the further model of a stored vector key; "" for the main model."""
    key = without_due_mark(vector_key)
    has_tag = key.startswith(_TAG_END, MODEL_TAG_LENGTH)
    return key[:MODEL_TAG_LENGTH] if has_tag else ""


def without_model_tag(vector_key: str) -> str:
    """Return the hash of a vector key, which is the same whether its model is the main one."""
    tag = model_tag_of(vector_key)
    return vector_key.removeprefix(f"{tag}{_TAG_END}") if tag else vector_key


def other_model_key(vector_key: str, main_model_id: str) -> str:
    """Return the key of the same vector if its model were a further one, or the main one instead.

    Args:
        vector_key: Of a further model, or of the main one.
        main_model_id: The identity of the main one.
    """
    if model_tag_of(vector_key):
        return without_model_tag(vector_key)
    return f"{make_model_tag(main_model_id)}{_TAG_END}{vector_key}"


def without_due_mark(vector_key: str) -> str:
    """Return a stored vector key without the mark of a row that lacks its own vector."""
    return vector_key.removeprefix(DUE_MARK)


def is_due(vector_key: str) -> bool:
    """Whether a stored vector key is of a row that lacks its own vector."""
    return vector_key.startswith(DUE_MARK)


def hash_vector_seed(text: str) -> int:
    """Hash a text to 64 bits, for the embedder that makes up vectors without a model."""
    return xxhash.xxh3_64_intdigest(text.encode("utf-8", "surrogatepass"))


def row_checksum(fields: Iterable[str], vector: bytes) -> int:
    """Return a checksum of a stored row, which reveals a bit that flipped on the disk.

    Args:
        fields: The row's text columns, in a fixed order.
        vector: Its vector.

    Returns:
        A number that fits a signed 64-bit column.
    """
    state = xxhash.xxh3_64("\0".join(fields).encode("utf-8", "surrogatepass"))
    state.update(vector)
    return state.intdigest() - (1 << 63)


def make_doc_id(origin: RootedPath) -> str:
    """Return the id of a file that its rows contain."""
    return hash_fields("doc", origin.root, origin.path)
