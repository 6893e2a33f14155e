"""A file's bytes -> the rows that the index should hold of it. Both the indexer and its judge, `verification`, start here."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace

from anchord.chunkers import chunk
from anchord.chunkers.layout import Count
from anchord.chunkers.symbols import Definition, ParserEndedError
from anchord.core.identity import digest, file_key, vector_key
from anchord.core.recipe import Recipe
from anchord.description import doc_id
from anchord.model import About, Chunk, Document, Origin, Problem, Row, printable
from anchord.sources import parse
from anchord.sources.archived import is_archived, load
from anchord.sources.rooms import memory_of, room_of_file, topic_of

MAX_BYTES = 2_000_000
"""Larger files are named in status and not read: what a person wrote is smaller."""


@dataclass(frozen=True, slots=True)
class Made:
    """A row, its lines, and the text that its vector is made of."""

    row: Row
    start_line: int
    end_line: int
    embed_text: str


def make_rows(origin: Origin, data: bytes, recipe: Recipe, count: Count) -> tuple[tuple[Made, ...], Problem | None]:
    """Parse and chunk. A file that breaks the parser is that file's problem and nobody else's."""
    if not recipe.poison.enter(digest(data)):
        return (), Problem("it ended the process twice: not indexed; an edit, or an update of anchord, tries it again")
    try:
        return _made(origin, data, recipe, count)
    except Exception as error:  # noqa: BLE001 - see above; the daemon's loop never sees it
        return (), Problem(f"cannot be chunked ({type(error).__name__}): not indexed")
    finally:
        recipe.poison.leave()


def _made(origin: Origin, data: bytes, recipe: Recipe, count: Count) -> tuple[tuple[Made, ...], Problem | None]:
    document = load(data) if is_archived(origin.path) else parse(data, origin.path)
    if not isinstance(document, Document):
        return (), document
    plan = recipe.plans.of(origin.root, document.kind)
    found, problem = _definitions(document, recipe)
    chunks = chunk(document, plan, count, file_key(origin.root, origin.path), found)
    rooms = _rooms(origin, document, chunks, plan.extract)
    made = [_make(origin, piece, recipe.model(), room) for piece, room in zip(chunks, rooms, strict=True)]
    if document.about.session:
        made = [_said(each, document.about, number, len(made)) for number, each in enumerate(made)]
    return tuple(made), problem or document.problem


def _definitions(document: Document, recipe: Recipe) -> tuple[list[Definition], Problem | None]:
    """Return what is defined in code. Where its parser ends over it, nothing is, and the file says so."""
    if document.kind != "code":
        return [], None
    try:
        return recipe.define(document.text, document.language), None
    except ParserEndedError as error:
        why = f"the parser of {document.language} {error}: cut without its definitions; an edit tries it again"
        return [], Problem(why, partial=True)


def _rooms(origin: Origin, document: Document, chunks: Sequence[Chunk], extract: str) -> list[str]:
    """Return the room of each chunk."""
    if not document.about.session:
        return [room_of_file(printable(origin.path), document.text)] * len(chunks)
    topic = topic_of(document.text)
    return [(memory_of(piece.content) if extract == "general" else "") or topic for piece in chunks]


def _make(origin: Origin, piece: Chunk, model: str, room: str) -> Made:
    path, section = printable(origin.path), " > ".join(piece.header_path)
    row = Row(
        id=piece.chunk_id,
        doc_id=doc_id(origin),
        root=origin.root,
        path=path,
        kind=piece.kind,
        header_path=section,
        content_hash=piece.content_hash,
        vector_key=vector_key(model, piece.embed_text),
        text=piece.content,
        search_text=f"{path}\n{section}\n{section}\n{piece.content}",
        room=room,
    )
    return Made(row, piece.start_line, piece.end_line, piece.embed_text)


def _said(made: Made, about: About, number: int, parts: int) -> Made:
    """Add what is told of an exchange. Its title, its day and what was done in it are found by words as well."""
    row = made.row
    done = "\n".join(part for part in (about.at[:10], about.project, about.tools, about.files) if part)
    search_text = f"{row.header_path}\n{row.header_path}\n{row.text}\n{done}"
    return replace(made, row=replace(row, search_text=search_text, part_index=number, total_parts=parts, **asdict(about)))
