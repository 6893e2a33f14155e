"""The one record of a chunk, in every answer that has chunks."""

from __future__ import annotations

from typing import Any

from anchord.ipc.messages.base import Message


class ChunkAnswer(Message, frozen=True, kw_only=True):
    """A chunk: `chunk_text`, `chunk`, `search`, `show`, `dump`, `export` and the socket give it.

    Where a chunk comes from decides what is known of it:

    - Stored: read from a column of the table.
    - Located: read from the catalog, and null while an update of the chunk's file is committed.
    - Cut: known only while a file is chunked, so null for every chunk of an index.
    - Derived: computed from the other fields when the record is made, by `chunking.derived_fields`.

    What says nothing else is stored. A field of a conversation is null, or empty, for a file.
    """

    id: str
    text: str
    """The exact text. In `search` that of the whole passage."""
    root: str
    """Name of the root; "" for a text of no root."""
    path: str
    """Relative to the root; `/source/session/exchange` for an exchange."""
    kind: str
    """"markdown", "text", "code", or a kind of conversation text, such as "exchange"."""
    header_path: tuple[str, ...]
    """Titles of the headings above it, outermost first. They are stored joined by " > ": in a chunk
    of an index, a title that contains " > " is two."""
    section: str
    """`header_path` joined by " > ". Derived."""
    content_hash: str
    vector_key: str | None = None
    """Hash of the model and of `embed_text`; null in `search`, which does not read it, and in
    `chunk`."""
    embed_text: str | None = None
    """What the model reads: the text, after a heading where it has none of its own. Cut."""

    start_line: int | None = None
    """First line in the file, from 1. Located."""
    end_line: int | None = None
    """Last line in the file, inclusive. Located."""
    anchor_line: int | None = None
    """The line, from 1, from which the lines in the id are counted. Cut."""
    start_char: int | None = None
    """Offset of its first character in the file's text, from 0. Cut."""
    end_char: int | None = None
    """Offset after its last character. Cut."""
    file: str | None = None
    """Absolute path of the file that holds the text. Located; null in `chunk`, and where every
    transcript file of an exchange is deleted."""
    locator: str | None = None
    """A short name for people: path#heading#number. Located."""

    chunk_type: str | None = None
    """"code_block", "table" or "list" where the chunk is nothing else; otherwise "section" under a
    heading, and "text" elsewhere. This and the next three are null while the table is of an older
    version."""
    language: str | None = None
    """Language of its code, or several separated by spaces; null if nothing names it."""
    level: int | None = None
    """Level of its last heading, 1 to 6; 0 without one."""
    token_count: int | None = None
    """Tokens of the embedded text."""
    depth: int
    """Number of headings above its last heading. Derived."""
    char_count: int
    """Characters of the text. Derived."""
    granularity: str | None = None
    """"fine" below 400 tokens, "medium" up to 1,200, then "coarse". Derived, from `token_count`."""
    below_typical_size: bool | None = None
    """Whether it has fewer than 150 tokens. Derived, from `token_count`."""
    contains_code: bool
    """Whether it is code or has a fenced block of it. Derived."""
    contains_table: bool
    """Whether it is a table or has one of Markdown. Derived."""
    keywords: tuple[str, ...]
    """Up to five of its most frequent words, without stop words. Derived."""
    exceeds_limit: bool | None = None
    """Whether it is a part of a block that fits in no chunk. Cut."""
    is_contextually_enriched: bool | None = None
    """Whether `embed_text` has a heading that the text does not have. Cut."""
    strategy: str | None = None
    """The strategy that cut it: for a chunk of an index, the one that is configured."""

    parent_id: str
    """Id of its file or exchange. Derived."""
    parent_title: str
    """Its outermost heading, or else the name of its file. Derived."""
    parent_section: str | None = None
    """Its last heading. Derived."""
    chunk_index: int | None = None
    """Its number in the file, from 0. Located, as all below."""
    sibling_count: int | None = None
    """Chunks of the file, with this one."""
    position: float | None = None
    """How far into the file it is: over 0, and 1 for the last chunk."""
    prev_id: str | None = None
    """Id of the chunk before it; null for the first."""
    next_id: str | None = None
    """Id of the chunk after it; null for the last."""

    room: str | None = None
    """Topic of the file or conversation; null in `chunk`."""
    source: str | None = None
    """The program that wrote the transcript, such as "claude-code"."""
    session: str | None = None
    exchange_id: str | None = None
    turn: int | None = None
    """Number of the exchange in its conversation, from 1; null if the user abandoned it. Derived
    from the archive."""
    part_index: int | None = None
    """Number of the chunk in its exchange, from 0."""
    total_parts: int | None = None
    """Chunks of the exchange."""
    at: str | None = None
    """When the question was asked, ISO 8601 in UTC."""
    until: str | None = None
    """When the answer ended, likewise."""
    project: str | None = None
    """The folder in which the conversation was held."""
    model: str | None = None
    """The model that answered."""
    branch: str | None = None
    """"superseded" for an exchange that the user abandoned."""
    tools: tuple[str, ...] = ()
    """Tool calls of the exchange."""
    files: tuple[str, ...] = ()
    """Files that they changed."""

    def as_json(self) -> dict[str, Any]:
        """Return the record as JSON values, whose arrays are lists."""
        fields = super().as_json()
        return {name: _listed(value) for name, value in fields.items()}


def _listed(value: object) -> object:
    return list(value) if isinstance(value, tuple) else value
