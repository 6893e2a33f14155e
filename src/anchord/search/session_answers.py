"""Answer `sessions` and `session` from the archive of conversations."""

from __future__ import annotations

import os
from collections.abc import Callable, Collection, Mapping, Sequence
from datetime import UTC, datetime
from typing import Any

from anchord.core.dates import parse_time_span
from anchord.core.quoting import escape_non_utf8, quote_name
from anchord.errors import UsageError
from anchord.ipc.messages.sessions import (
    SessionAnswer,
    SessionDetail,
    SessionExchange,
    SessionParams,
    SessionsParams,
)
from anchord.search.headings import best_title, title_line
from anchord.search.project_names import ProjectNames
from anchord.sources.conversations.archive.reader import Archive
from anchord.sources.conversations.archive.session_records import SessionRecord
from anchord.sources.conversations.prompt_history import PromptSession

_SHOWN_MATCHES = 5
_PROMPTS_ONLY = -1
"""Stands for the id of a session that is not in the archive."""
_NO_ANSWER: Mapping[str, Any] = {"kind": "exchange", "answer": "", "tools": (), "files": ()}
_LISTS_THEM = "`anchord sessions` lists them"

IsKept = Callable[[SessionRecord], bool]
"""Whether the bytes of a session's transcript are kept."""
ReadPrompts = Callable[[Collection[str]], Sequence[PromptSession]]
"""Returns the sessions of which only the prompts are known; takes the ids of the others."""


def no_prompts(_: Collection[str]) -> Sequence[PromptSession]:
    """Return no session."""
    return ()


def list_sessions(
    archive: Archive | None,
    params: SessionsParams,
    is_kept: IsKept,
    read_prompts: ReadPrompts = no_prompts,
) -> tuple[SessionAnswer, ...]:
    """Return the sessions that the parameters ask for, newest first.

    Reads the texts of the sessions that are returned, and of no others.

    Args:
        archive: The archive; None if there is none yet.
        params: The filters.
        is_kept: Looks a transcript up among the kept ones.
        read_prompts: Reads the programs' prompt histories.

    Raises:
        UsageError: A date cannot be read.
        StoreError: The archive cannot be read.
    """
    since, until = parse_time_span(params.since, params.until, datetime.now(UTC))
    records = archive.session_records.all() if archive else []
    prompts = {each.name: each for each in read_prompts({record.name for record in records})}
    records += map(_record_of_prompts, prompts.values())
    names = ProjectNames({record.project for record in records})
    chosen = [
        record
        for record in sorted(records, key=lambda each: (each.last_at, each.id), reverse=True)
        if _is_asked_for(record, params, names)
        and since <= record.last_at
        and not (until and record.last_at >= until)
    ]
    shown = chosen[: params.limit] if params.limit > 0 else chosen
    if archive is None:
        return ()
    return tuple(
        SessionAnswer(**_fields(record, _texts(archive, record, prompts), names, is_kept))
        for record in shown
    )


def describe_session(
    archive: Archive | None,
    params: SessionParams,
    is_kept: IsKept,
    read_prompts: ReadPrompts = no_prompts,
) -> SessionDetail:
    """Return a session with its exchanges.

    Args:
        archive: The archive; None if there is none yet.
        params: Which session, and which of its exchanges.
        is_kept: As for `list_sessions`.
        read_prompts: As for `list_sessions`.

    Raises:
        UsageError: No session has such an id or path, or several have.
        StoreError: The archive cannot be read.
    """
    if archive is None:
        raise UsageError("there are no conversations yet", "`anchord discover --add` indexes them")
    known = archive.session_records.all()
    prompts = {each.name: each for each in read_prompts({record.name for record in known})}
    record = find_session(archive, params.id, [*known, *map(_record_of_prompts, prompts.values())])
    texts = _texts(archive, record, prompts)
    names = ProjectNames([record.project])
    end = params.offset + params.limit if params.limit > 0 else None
    return SessionDetail(
        **_fields(record, texts, names, is_kept),
        exchange_count=len(texts),
        exchanges=tuple(_exchange(*each) for each in texts[max(params.offset, 0) : end]),
    )


def find_session(archive: Archive, wanted: str, records: Sequence[SessionRecord]) -> SessionRecord:
    """Return the session with an id, or the beginning of one; or by a transcript or an exchange.

    Args:
        archive: The archive.
        wanted: An id, at least its first characters; an absolute path; or the id or path of an
            exchange.
        records: All sessions, also those that the archive does not have.

    Raises:
        UsageError: There is none, or the beginning is that of several.
    """
    found = _matching(records, wanted)
    if not found and (by_exchange := archive.session_records.find_by_exchange(wanted)):
        found = [by_exchange]
    if len(found) == 1:
        return found[0]
    if not found:
        raise UsageError(f"there is no session {quote_name(wanted)}", _LISTS_THEM)
    listed = ", ".join(quote_name(each.name) for each in found[:_SHOWN_MATCHES])
    more = ", ..." if len(found) > _SHOWN_MATCHES else ""
    raise UsageError(
        f"{quote_name(wanted)} stands for {len(found)} sessions: {listed}{more}",
        "give more of the id",
    )


def _matching(records: Sequence[SessionRecord], wanted: str) -> Sequence[SessionRecord]:
    """Return the sessions of an id or a transcript; else those whose ids begin so."""
    named = [each for each in records if each.name == wanted]
    if named:  # Two programs can have the same id.
        return sorted(named, key=lambda each: each.last_at)[-1:]
    in_file = [each for each in records if escape_non_utf8(each.transcript) == wanted != ""]
    return in_file or [each for each in records if wanted and each.name.startswith(wanted)]


def _is_asked_for(record: SessionRecord, params: SessionsParams, names: ProjectNames) -> bool:
    if record.parent and not params.subagents:
        return False
    if params.root and record.root != params.root:
        return False
    if params.agent.casefold() not in record.source.casefold():
        return False
    return not params.project or names.is_meant(record.project, params.project)


_Texts = list[tuple[str, Mapping[str, Any]]]
"""Path and stored fields of each exchange."""


def _texts(archive: Archive, record: SessionRecord, prompts: Mapping[str, PromptSession]) -> _Texts:
    if record.id != _PROMPTS_ONLY:
        return list(archive.session_records.exchanges_of(record.id))
    return [
        ("", {**_NO_ANSWER, "exchange": f"prompt {number}", "question": text, "at": at})
        for number, (at, text) in enumerate(prompts[record.name].shown_prompts(), 1)
    ]


def _record_of_prompts(session: PromptSession) -> SessionRecord:
    folder, name = os.path.split(session.file)
    return SessionRecord(
        id=_PROMPTS_ONLY,
        source=session.source,
        name=session.name,
        title="",
        project=session.project,
        parent="",
        root="",
        detached_because="",
        folder=folder,
        path=name,
        last_at=session.prompts[-1][0],
        exchange_count=len(session.prompts),
        has_file=False,
    )


def _fields(
    record: SessionRecord, texts: _Texts, names: ProjectNames, is_kept: IsKept
) -> dict[str, Any]:
    """Return the fields of a `SessionAnswer`."""
    exchanges = [fields for _, fields in texts if fields["kind"] == "exchange"]
    questions = [" ".join(str(each["question"]).split()) for each in exchanges]
    changed = {file for each in exchanges for file in each["files"]}
    return {
        "id": record.name,
        "agent": record.source,
        "project": names.name_of(record.project),
        "project_path": record.project,
        "title": title_line(best_title(record.title, questions)),
        "started_at": next((str(each["at"]) for each in exchanges if each["at"]), ""),
        "last_at": record.last_at,
        "turns": sum(map(bool, questions)),
        "files": len(changed),
        "state": _state(record),
        "path": escape_non_utf8(record.transcript),
        "root": record.root,
        "parent": record.parent,
        "kept": record.id != _PROMPTS_ONLY and is_kept(record),
    }


def _state(record: SessionRecord) -> str:
    if record.id == _PROMPTS_ONLY:
        return "prompts-only"
    if record.detached_because:
        return "detached"
    return "here" if os.path.lexists(record.transcript) else "deleted"


def _exchange(path: str, fields: Mapping[str, Any]) -> SessionExchange:
    return SessionExchange(
        id=fields["exchange"],
        at=fields["at"],
        question=fields["question"],
        answer=fields["answer"],
        tools=tuple(fields["tools"]),
        files=tuple(fields["files"]),
        path=path,
        kind=fields["kind"],
    )
