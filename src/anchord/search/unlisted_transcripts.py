"""Lists kept transcripts that no session is read from: copies, and those without a question."""

from __future__ import annotations

import os
from collections.abc import Callable, Collection, Iterator
from datetime import UTC, datetime

from anchord.core.dates import format_utc, parse_time_span
from anchord.core.quoting import escape_non_utf8, quote_name
from anchord.ipc.messages.sessions import SessionAnswer, SessionDetail, SessionsParams
from anchord.search.kept_sessions import find_loss
from anchord.sources.conversations.archive.reader import Archive
from anchord.sources.conversations.archive.session_records import ReadTranscript
from anchord.sources.conversations.kept.store import KeptTranscripts, Place

RedactPath = Callable[[str], str]
"""Returns a path without the secrets in its names."""
_NOTHING_ASKED = "nobody asked anything in it: it is a sub-agent's, or a session without a prompt"
_UNKNOWN = "no session was read from it last: nobody asked anything in it, or it was a copy"


def list_unlisted(
    archive: Archive | None,
    kept: KeptTranscripts | None,
    params: SessionsParams,
    redact_path: RedactPath,
) -> tuple[SessionAnswer, ...]:
    """Return the kept transcripts that no session names as its own, newest first.

    Args:
        archive: The archive; None if there is none yet.
        kept: The kept transcripts; None if there are none or they cannot be read.
        params: The filters; those for a project fit no such transcript.
        redact_path: How the archive knows a path.

    Raises:
        UsageError: A date cannot be read.
        StoreError: The archive or the kept transcripts cannot be read.
    """
    since, until = parse_time_span(params.since, params.until, datetime.now(UTC))
    if archive is None or kept is None or params.project:
        return ()
    found = [
        each
        for each in _unlisted(archive, kept, redact_path)
        if params.agent.casefold() in each.agent.casefold()
        and params.root in {"", each.root}
        and since <= each.last_at
        and not (until and each.last_at >= until)
    ]
    found.sort(key=lambda each: (each.last_at, each.id), reverse=True)
    return tuple(found[: params.limit] if params.limit > 0 else found)


def describe_unlisted(
    archive: Archive | None, kept: KeptTranscripts | None, path: str, redact_path: RedactPath
) -> SessionDetail | None:
    """Return a kept transcript without an exchange of its own; None if a path is of no such one.

    Args:
        archive: As for `list_unlisted`.
        kept: Likewise.
        path: Absolute path of the transcript.
        redact_path: How the archive knows a path.

    Raises:
        StoreError: The archive or the kept transcripts cannot be read.
    """
    if archive is None or kept is None or not path.startswith("/"):
        return None
    known_as = {path, escape_non_utf8(path), escape_non_utf8(redact_path(path))}
    found = (each for each in _unlisted(archive, kept, redact_path) if each.path in known_as)
    first = next(found, None)
    return SessionDetail(**first.as_json(), exchange_count=0, exchanges=()) if first else None


def _unlisted(
    archive: Archive, kept: KeptTranscripts, redact_path: RedactPath
) -> Iterator[SessionAnswer]:
    listed = {record.transcript for record in archive.session_records.all()}
    read = archive.session_records.read_transcripts()
    for place in kept.find_below("/"):
        known_path = redact_path(place.absolute)
        if not _is_listed(place, known_path, listed) and kept.versions(place):
            yield _answer(archive, kept, place, known_path, read.get(known_path))


def _is_listed(place: Place, known_path: str, listed: Collection[str]) -> bool:
    """Return whether a session is read from a file, or from a folder above it in its root."""
    while len(known_path) > len(place.folder):
        if known_path in listed:
            return True
        known_path = os.path.dirname(known_path)
    return False


def _answer(
    archive: Archive,
    kept: KeptTranscripts,
    place: Place,
    known_path: str,
    read: ReadTranscript | None,
) -> SessionAnswer:
    session = archive.session_records.session_in(read.id) if read else ""
    note = _NOTHING_ASKED if read else _UNKNOWN
    if session:
        note = f"what was said in it is in the session {quote_name(session)}, too"
    fingerprint = kept.fingerprint(place)
    is_there = os.path.lexists(place.absolute)
    loss = find_loss(kept, place, place.absolute)
    path = escape_non_utf8(known_path)
    return SessionAnswer(
        id=path,
        agent=read.source if read else "",
        project="",
        project_path="",
        title="",
        started_at="",
        last_at=format_utc(fingerprint.mtime_ns) if fingerprint else "",
        turns=0,
        files=0,
        state=(loss or "here") if is_there else "deleted",
        path=path,
        root=read.root if read else "",
        kept=True,
        note=note,
    )
