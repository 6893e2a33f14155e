"""Answer `blame`: which exchanges changed a file."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from operator import itemgetter

from anchord.core.file_touches import Touch, TouchedFile
from anchord.core.quoting import escape_non_utf8
from anchord.core.types import FileContent, RootedPath, Row
from anchord.errors import UsageError
from anchord.index.session import IndexReader
from anchord.ipc.messages.blame import BlameAnswer, BlameParams, TouchAnswer
from anchord.search.answers import open_archive_of
from anchord.search.headings import title_line
from anchord.search.project_names import ProjectNames, repository_name, top_folder
from anchord.sources.conversations.archive.reader import Archive
from anchord.store.catalog.catalog import SqliteCatalog

_COLUMNS = ("id", "source", "files", "tools", "part_index", "project", "until", "at")


@dataclass(frozen=True, slots=True, kw_only=True)
class _Candidate:
    """The first chunk of an exchange whose files or tool calls contain a file's name."""

    id: str
    files: str
    tools: str
    project: str
    time: str
    """When its last message was written: ISO 8601 in UTC."""


def handle_blame(reader: IndexReader, _catalog: SqliteCatalog, params: BlameParams) -> BlameAnswer:
    """Answer `blame`.

    Args:
        reader: The index: its rows say which files an exchange changed.
        params: The file.

    Raises:
        UsageError: The path is not absolute, or has a NUL character.
    """
    if not params.path.startswith("/") or "\0" in params.path:
        raise UsageError("the path is not absolute", "give the absolute path of a file")
    path = os.path.normpath(params.path)
    top = top_folder(os.path.dirname(path))
    file = TouchedFile(path, os.path.relpath(path, top) if top else "")
    names = ProjectNames()
    repository = repository_name(top) if top else ""

    @cache
    def is_same_project(project: str) -> bool:
        return bool(repository) and names.name_of(project) == repository

    found: list[tuple[str, str, Touch]] = []
    for each in _candidates(reader, file.name):
        touch = file.find_touch(
            each.files.split("\n"),
            each.tools.split("\n"),
            each.project,
            is_same_project=is_same_project(each.project),
        )
        if touch:
            found.append((each.time, each.id, touch))
    found.sort(key=itemgetter(0, 1), reverse=True)
    shown = {chunk_id: touch for _, chunk_id, touch in found[: params.limit]}
    rows = {row.id: row for row in reader.store.get_rows(list(shown))}
    with open_archive_of(reader) as archive:
        touches = tuple(
            _message(archive, names, rows[chunk_id], touch)
            for chunk_id, touch in shown.items()
            if chunk_id in rows
        )
    return BlameAnswer(
        path=escape_non_utf8(path),
        inside=escape_non_utf8(file.inside),
        touches=touches,
        omitted=len(found) - len(shown),
    )


def _candidates(reader: IndexReader, name: str) -> Iterator[_Candidate]:
    """Yield the exchanges whose files or tool calls contain a file's name."""
    for batch in reader.store.scan(_COLUMNS):
        columns = [batch[column].to_pylist() for column in _COLUMNS]
        for chunk_id, source, files, tools, part, project, until, at in zip(*columns, strict=True):
            if source and part == 0 and (name in files or name in tools):
                yield _Candidate(
                    id=chunk_id,
                    files=files,
                    tools=tools,
                    project=project,
                    time=until or at,
                )


def _message(archive: Archive | None, names: ProjectNames, row: Row, touch: Touch) -> TouchAnswer:
    content = archive.read(RootedPath(row.root, row.path)) if archive else None
    fields = json.loads(content.data) if isinstance(content, FileContent) else {}
    return TouchAnswer(
        id=row.id,
        at=row.until or row.at,
        agent=row.source,
        session=row.session,
        title=title_line(str(fields.get("title", ""))),
        project=names.name_of(row.project),
        question=title_line(str(fields.get("question", "")) or row.text),
        how="edited" if touch.is_edit else "named",
        file=touch.file,
        elsewhere=touch.is_elsewhere,
    )
