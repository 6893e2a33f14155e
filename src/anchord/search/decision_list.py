"""Answer `decisions`: the exchanges of the archive that decide something, newest first."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from datetime import UTC, datetime

from anchord.core.dates import parse_time
from anchord.core.decisions import find_decision
from anchord.ipc.messages.decisions import DecisionAnswer, DecisionsParams
from anchord.search.headings import best_title, title_line
from anchord.search.project_names import ProjectNames
from anchord.sources.conversations.archive.reader import Archive
from anchord.sources.conversations.archive.session_records import SessionRecord


def list_decisions(archive: Archive | None, params: DecisionsParams) -> tuple[DecisionAnswer, ...]:
    """Return the newest exchanges that decide, each project and sentence once.

    Args:
        archive: The archive; None if there is none yet.
        params: The filters.

    Raises:
        UsageError: The date cannot be read.
        StoreError: The archive cannot be read.
    """
    if archive is None:
        return ()
    since = parse_time(params.since, datetime.now(UTC))
    records = archive.session_records.all()
    names = ProjectNames({record.project for record in records})
    if params.project:
        records = [each for each in records if names.is_meant(each.project, params.project)]
    newest: dict[tuple[str, str], DecisionAnswer] = {}
    for record in sorted(records, key=lambda each: each.last_at, reverse=True):
        if record.last_at < since or _are_complete(newest, params, record):
            break
        for found in _decisions_of(archive, record, names.name_of(record.project)):
            if found.at >= since:
                _keep_newer(newest, found)
    ordered = sorted(newest.values(), key=lambda each: (each.at, each.path), reverse=True)
    return tuple(ordered[: params.limit])


def _keep_newer(newest: dict[tuple[str, str], DecisionAnswer], found: DecisionAnswer) -> None:
    known = newest.get((found.project, found.sentence))
    if known is None or known.at < found.at:
        newest[found.project, found.sentence] = found


def _are_complete(
    newest: Mapping[tuple[str, str], DecisionAnswer], params: DecisionsParams, record: SessionRecord
) -> bool:
    """Whether no exchange of a session, or of an older one, can be among the newest."""
    if len(newest) < params.limit:
        return False
    times = sorted((each.at for each in newest.values()), reverse=True)
    return record.last_at < times[params.limit - 1]


def _decisions_of(
    archive: Archive, record: SessionRecord, project: str
) -> Iterator[DecisionAnswer]:
    exchanges = list(archive.session_records.exchanges_of(record.id))
    questions = [str(fields["question"]) for _, fields in exchanges]
    title = title_line(best_title(record.title, questions))
    for path, fields in exchanges:
        decision = find_decision(fields["question"], fields["answer"])
        if decision is None or fields["kind"] != "exchange":
            continue
        yield DecisionAnswer(
            id=fields["exchange"],
            path=path,
            at=fields["until"] or fields["at"],
            agent=record.source,
            session=record.name,
            title=title,
            project=project,
            question=title_line(fields["question"]),
            sentence=decision.sentence,
            by="user" if decision.is_users else "assistant",
        )
