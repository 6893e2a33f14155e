"""Turn a file's bytes into the rows that the index should hold, for indexing and verification."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace

from anchord.chunking.chunk_metadata import chunk_type_of, language_of
from anchord.chunking.chunker import split_into_chunks
from anchord.chunking.engine.layout import CountTokens
from anchord.chunking.formats.code_symbols import Definition, ParserProcessError
from anchord.core.ids import hash_content, make_doc_id, make_file_key, make_vector_key
from anchord.core.natural_language import detect_language
from anchord.core.quoting import escape_non_utf8
from anchord.core.types import Chunk, Document, ExchangeMetadata, Problem, RootedPath, Row
from anchord.core.word_forms import forms_of_text
from anchord.index.model_choice import LANGUAGE_SAMPLE_CHARS, DocumentModel
from anchord.index.recipe import Recipe
from anchord.index.topics import OwnRooms, memory_type_of, room_of_exchange, room_of_file
from anchord.sources.conversations.exchange_document import decode_exchange, is_exchange_path
from anchord.sources.documents.parse import parse_document
from anchord.sources.secrets.documents import redact_document
from anchord.sources.secrets.finding import MARK_START

HEADING_SEPARATOR = " > "
"""Between the titles in `Row.header_path`."""
_DAY_LENGTH = len("2026-01-31")


@dataclass(frozen=True, slots=True)
class PreparedRow:
    """A row, its lines in the file (1-based, inclusive), and the text to embed for its vector."""

    row: Row
    start_line: int
    end_line: int
    embed_text: str


def prepare_rows(
    origin: RootedPath, data: bytes, recipe: Recipe, count_tokens: CountTokens
) -> tuple[tuple[PreparedRow, ...], Problem | None]:
    """Parse and chunk a file. Never raises: whatever a parser raises becomes the file's problem.

    Args:
        origin: The file, or an exchange of a conversation.
        data: Its bytes.
        recipe: How to chunk; its quarantine records the parse.
        count_tokens: Counts a text's tokens as the main model does; a further one has its own.

    Returns:
        The rows in the order of the file, and what is wrong with the file, if anything. No rows
        where it could not be parsed, or crashed the process twice.
    """
    if not recipe.quarantine.begin_parse_unless_quarantined(hash_content(data)):
        return (), Problem(
            "parsing it crashed anchord twice: not indexed; "
            "an edit or an update of anchord tries it again"
        )
    try:
        return _parse_and_chunk(origin, data, recipe, count_tokens)
    except Exception as error:  # noqa: BLE001 - one bad file must not stop the indexing of others
        return (), Problem(f"not indexed: chunking failed with {type(error).__name__}")
    finally:
        recipe.quarantine.end_parse()


def prepare_moved_rows(
    origin: RootedPath,
    data: bytes,
    recipe: Recipe,
    rows: Sequence[Row],
    chunk_ids: Sequence[str],
) -> list[Row] | None:
    """Return the rows of a file that moved, made of those that it had at its old path.

    Args:
        origin: The file at its new path; not an exchange.
        data: Its bytes, the same as at the old path.
        recipe: How it was chunked.
        rows: Its rows at the old path, in the order of the file.
        chunk_ids: The ids of its chunks at the new path, in the same order.

    Returns:
        What `prepare_rows` would return of it, in the same order. None if it has a problem.
    """
    document = parse_document(data, origin.path)
    if isinstance(document, Document) and MARK_START in "".join(row.text for row in rows):
        document = redact_document(document)  # Else there was nothing to redact.
    if not isinstance(document, Document) or document.problem:
        return None
    path = escape_non_utf8(origin.path)
    doc_id = make_doc_id(origin)
    room = room_of_file(path, document.text, recipe.own_rooms)
    language = _language_of_document(document)
    moved: list[Row] = []
    for row, chunk_id in zip(rows, chunk_ids, strict=True):
        at_new_path = Row(
            id=chunk_id,
            doc_id=doc_id,
            root=origin.root,
            path=path,
            kind=row.kind,
            header_path=row.header_path,
            content_hash=row.content_hash,
            vector_key=row.vector_key,
            text=row.text,
            search_text=search_text_of(path, row.header_path, row.text),
            room=room,
            chunk_type=row.chunk_type,
            language=row.language,
            level=row.level,
            token_count=row.token_count,
        )
        moved.append(_with_word_forms(at_new_path, language))
    return moved


def _parse_and_chunk(
    origin: RootedPath, data: bytes, recipe: Recipe, count_tokens: CountTokens
) -> tuple[tuple[PreparedRow, ...], Problem | None]:
    if is_exchange_path(origin.path):
        document = decode_exchange(data)
    else:
        document = parse_document(data, origin.path)
        if isinstance(document, Document) and recipe.redaction_identity:
            document = redact_document(document)
    if not isinstance(document, Document):
        return (), document
    model = _model_of(origin, document, recipe, count_tokens)
    plan = model.plans.plan_for(origin.root, document.kind)
    definitions, parser_problem = _find_definitions(document, recipe)
    file_key = make_file_key(origin.root, origin.path)
    chunks = split_into_chunks(
        document,
        plan,
        model.count_tokens,
        file_key,
        definitions,
    )
    rooms = _rooms_of_chunks(
        origin,
        document,
        chunks,
        plan.extract,
        recipe.own_rooms,
    )
    rows = [
        _prepare_row(origin, chunk, document, model, room)
        for chunk, room in zip(chunks, rooms, strict=True)
    ]
    if document.exchange_metadata.session:
        rows = [
            _with_exchange_metadata(row, document.exchange_metadata, index, len(rows))
            for index, row in enumerate(rows)
        ]
    language = _language_of_document(document)
    rows = [replace(each, row=_with_word_forms(each.row, language)) for each in rows]
    return tuple(rows), parser_problem or document.problem


def _model_of(
    origin: RootedPath, document: Document, recipe: Recipe, count_tokens: CountTokens
) -> DocumentModel:
    further = recipe.model_choice.model_of(origin.root, document.text)
    return further or DocumentModel(
        tag="",
        model_id=recipe.model_identity(),
        plans=recipe.plans,
        count_tokens=count_tokens,
    )


def _language_of_document(document: Document) -> str:
    return detect_language(document.text[:LANGUAGE_SAMPLE_CHARS])


def _with_word_forms(row: Row, document_language: str) -> Row:
    """Add to a row's search text the base forms of its words, if they are not English."""
    forms = forms_of_text(row.search_text, document_language)
    if not forms:
        return row
    return replace(row, search_text=f"{row.search_text}\n{forms}")


def _find_definitions(
    document: Document, recipe: Recipe
) -> tuple[list[Definition], Problem | None]:
    """Return the definitions of source code; none, and a problem, if its parser crashed."""
    if document.kind != "code":
        return [], None
    try:
        return recipe.find_definitions(document.text, document.language), None
    except ParserProcessError as error:
        reason = (
            f"the parser of {document.language} {error}: "
            "chunked without its definitions; an edit tries it again"
        )
        return [], Problem(reason, is_partial=True)


def _rooms_of_chunks(
    origin: RootedPath,
    document: Document,
    chunks: Sequence[Chunk],
    extract: str,
    own_rooms: OwnRooms,
) -> list[str]:
    if not document.exchange_metadata.session:
        room = room_of_file(escape_non_utf8(origin.path), document.text, own_rooms)
        return [room] * len(chunks)
    room = room_of_exchange(document.text, own_rooms)
    if extract != "general":
        return [room] * len(chunks)
    return [memory_type_of(chunk.content) or room for chunk in chunks]


def search_text_of(path: str, section: str, text: str) -> str:
    """Return what the word search looks at of a file's chunk, without other forms of its words.

    Args:
        path: The file's path, escaped.
        section: The headings above the chunk; they count twice.
        text: The chunk's text.
    """
    return f"{path}\n{section}\n{section}\n{text}"


def _prepare_row(
    origin: RootedPath, chunk: Chunk, document: Document, model: DocumentModel, room: str
) -> PreparedRow:
    path = escape_non_utf8(origin.path)
    section = HEADING_SEPARATOR.join(chunk.header_path)
    row = Row(
        id=chunk.chunk_id,
        doc_id=make_doc_id(origin),
        root=origin.root,
        path=path,
        kind=chunk.kind,
        header_path=section,
        content_hash=chunk.content_hash,
        vector_key=make_vector_key(model.model_id, chunk.embed_text, model.tag),
        text=chunk.content,
        search_text=search_text_of(path, section, chunk.content),
        room=room,
        chunk_type=chunk_type_of(chunk),
        language=language_of(chunk, document),
        level=chunk.heading_level,
        token_count=chunk.token_count,
    )
    return PreparedRow(
        row,
        chunk.start_line,
        chunk.end_line,
        chunk.embed_text,
    )


def _with_exchange_metadata(
    prepared: PreparedRow, metadata: ExchangeMetadata, part_index: int, total_parts: int
) -> PreparedRow:
    """Add the metadata of an exchange to a row.

    Word search then finds its day, project, tools and changed files.
    """
    row = prepared.row
    day = metadata.at[:_DAY_LENGTH]
    searchable = [day, metadata.project, metadata.tools, metadata.files]
    metadata_lines = "\n".join(part for part in searchable if part)
    # The heading counts twice, as in every row.
    headings = f"{row.header_path}\n{row.header_path}"
    search_text = f"{headings}\n{row.text}\n{metadata_lines}"
    extended_row = replace(
        row,
        search_text=search_text,
        part_index=part_index,
        total_parts=total_parts,
        **asdict(metadata),
    )
    return replace(prepared, row=extended_row)
