"""Answer `sessions` and `session` from the archive of conversations."""

from __future__ import annotations

import os
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from datetime import UTC, datetime
from typing import Any

from anchord.core.dates import parse_time_span
from anchord.core.quoting import escape_non_utf8, quote_name, quote_names
from anchord.errors import UsageError
from anchord.ipc.messages.sessions import (
    SessionAnswer,
    SessionDetail,
    SessionExchange,
    SessionParams,
    SessionsParams,
)
from anchord.search.headings import best_title, title_line
from anchord.search.kept_sessions import KeptState
from anchord.search.project_names import ProjectNames
from anchord.sources.conversations.archive.reader import Archive
from anchord.sources.conversations.archive.session_records import SessionRecord
from anchord.sources.conversations.prompt_history import PromptSession

_SHOWN_MATCHES = 5
_PROMPTS_ONLY = -1
"""Stands for the id of a session that is not in the archive."""
_NO_ANSWER: Mapping[str, Any] = {"kind": "exchange", "answer": "", "tools": (), "files": ()}
_LISTS_THEM = "`anchord sessions` lists them"

KeptStateOf = Callable[[SessionRecord], KeptState]
"""Returns what is kept of the bytes of a session's transcript."""
ReadPrompts = Callable[[Collection[str]], Sequence[PromptSession]]
"""Returns the sessions of which only the prompts are known; takes the ids of the others."""


def no_prompts(_: Collection[str]) -> Sequence[PromptSession]:
    """Return no session."""
    return ()


def list_sessions(
    archive: Archive | None,
    params: SessionsParams,
    kept_state_of: KeptStateOf,
    read_prompts: ReadPrompts = no_prompts,
) -> tuple[SessionAnswer, ...]:
    """Return the sessions that the parameters ask for, newest first.

    Reads the texts of the sessions that are returned, and of no others.

    Args:
        archive: The archive; None if there is none yet.
        params: The filters.
        kept_state_of: Looks a transcript up among the kept ones.
        read_prompts: Reads the programs' prompt histories.

    Raises:
        UsageError: A date cannot be read; or there is no such root, program or project.
        StoreError: The archive cannot be read.
    """
    since, until = parse_time_span(params.since, params.until, datetime.now(UTC))
    if archive is None:
        return ()
    records = archive.session_records.all()
    prompts = {each.name: each for each in read_prompts({record.name for record in records})}
    records += map(_record_of_prompts, prompts.values())
    names = ProjectNames({record.project for record in records})
    _require_known_names(params, archive, records, names)
    chosen = [
        record
        for record in sorted(records, key=lambda each: (each.last_at, each.id), reverse=True)
        if _is_asked_for(record, params, names)
        and since <= record.last_at
        and not (until and record.last_at >= until)
    ]
    shown = chosen[: params.limit] if params.limit > 0 else chosen
    return tuple(
        SessionAnswer(**_fields(record, _texts(archive, record, prompts), names, kept_state_of))
        for record in shown
    )


def describe_session(
    archive: Archive | None,
    params: SessionParams,
    kept_state_of: KeptStateOf,
    read_prompts: ReadPrompts = no_prompts,
) -> SessionDetail:
    """Return a session with its exchanges.

    Args:
        archive: The archive; None if there is none yet.
        params: Which session, and which of its exchanges.
        kept_state_of: As for `list_sessions`.
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
        **_fields(record, texts, names, kept_state_of),
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


def _require_known_names(
    params: SessionsParams,
    archive: Archive,
    records: Sequence[SessionRecord],
    names: ProjectNames,
) -> None:
    """Raise UsageError for a root, a program or a project that no session is of.

    A folder is no name: no session may be about it.
    """
    roots = {name for _, _, name, _ in archive.folder_records.all()}
    if params.root and params.root not in roots:
        raise _no_such("root", params.root, roots)
    agents = {record.source for record in records}
    agent = params.agent.casefold()
    if agents and not any(agent in each.casefold() for each in agents):
        raise _no_such("agent", params.agent, agents)
    projects = {name for record in records if (name := names.name_of(record.project))}
    project = params.project.casefold()
    if project and "/" not in project and not any(project in each.casefold() for each in projects):
        raise _no_such("project", params.project, projects)


def _no_such(thing: str, name: str, known: Iterable[str]) -> UsageError:
    return UsageError(
        f"there is no {thing} {quote_name(name)}",
        f"there are: {quote_names(sorted(known), 'none yet')}",
    )


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
    record: SessionRecord, texts: _Texts, names: ProjectNames, kept_state_of: KeptStateOf
) -> dict[str, Any]:
    """Return the fields of a `SessionAnswer`."""
    exchanges = [fields for _, fields in texts if fields["kind"] == "exchange"]
    questions = [" ".join(str(each["question"]).split()) for each in exchanges]
    kept = KeptState() if record.id == _PROMPTS_ONLY else kept_state_of(record)
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
        "state": _state(record, kept),
        "path": escape_non_utf8(record.transcript),
        "root": record.root,
        "parent": record.parent,
        "kept": kept.is_kept,
    }


def _state(record: SessionRecord, kept: KeptState) -> str:
    if record.id == _PROMPTS_ONLY:
        return "prompts-only"
    if record.detached_because:
        return "detached"
    if not os.path.lexists(record.transcript):
        return "deleted"
    return kept.loss or "here"


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
