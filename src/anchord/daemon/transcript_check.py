"""What `anchord doctor` says of transcripts that Claude Code is about to delete."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from contextlib import closing, suppress

from anchord.config.roots import find_root
from anchord.core.counted import counted, is_or_are
from anchord.core.quoting import quote_name
from anchord.core.types import Root
from anchord.daemon.findings import CheckContext, Finding, Health
from anchord.search.kept_sessions import open_kept
from anchord.sources.conversations.archive.reader import Archive
from anchord.sources.conversations.kept.store import KeptTranscripts, Place
from anchord.sources.conversations.locations import claude_folders
from anchord.sources.files.file_status import fingerprint_of

_DEFAULT_DAYS = 30
_NAME = "transcripts"


def check_transcripts(context: CheckContext) -> Iterator[Finding]:
    """Yield for each folder of Claude Code after how long it deletes, and whether that matters.

    Raises:
        StoreError: The archive cannot be read.
    """
    for folder in claude_folders(os.path.expanduser("~"), context.environment):
        sessions = _sessions_in(f"{folder}/projects")
        if sessions:
            days = _days_until_deletion(f"{folder}/settings.json")
            yield _check_folder(context, os.path.realpath(f"{folder}/projects"), sessions, days)


def _check_folder(context: CheckContext, projects: str, sessions: list[str], days: int) -> Finding:
    its_sessions = counted(len(sessions), "session")
    deletes = f"Claude Code deletes its transcripts after {days} days (cleanupPeriodDays)"
    roots = [root for root in context.roots if root.kind == "conversations"]
    found = find_root(roots, projects)
    if found is None:
        return Finding(
            _NAME,
            Health.DOUBTFUL,
            f"{deletes}, and its {its_sessions} in {quote_name(projects)} "
            f"{is_or_are(len(sessions))} not indexed",
            "`anchord discover --add` indexes and keeps them",
        )
    root, inside = found
    read = _read_files(context, root)
    prefix = f"{inside}/" if inside else ""
    unread = [each for each in sessions if prefix + each not in read]
    if unread:
        return Finding(
            _NAME,
            Health.DOUBTFUL,
            f"{deletes}; of its {its_sessions}, {len(unread):,} "
            f"{is_or_are(len(unread))} not archived yet",
            "`anchord index` reads them; `anchord errors` lists those that cannot be read",
        )
    if not root.keep_raw:
        return Finding(
            _NAME,
            Health.GOOD,
            f"{deletes}; what was said in its {its_sessions} is in the archive. "
            "The transcripts are not kept (keep_raw = false)",
        )
    with open_kept(context.paths.kept_transcripts_file) as kept:
        unkept = [
            each
            for each in sessions
            if kept is None or not _is_kept_as_it_is(kept, Place(root.path, prefix + each))
        ]
    if unkept:
        return Finding(
            _NAME,
            Health.DOUBTFUL,
            f"{deletes}; what was said in its {its_sessions} is in the archive, but "
            f"{counted(len(unkept), 'transcript')} {is_or_are(len(unkept))} not kept byte for "
            "byte, or not as on the disk",
            "`anchord index`, or a daemon that has time, keeps them; files over 2 GB, and those "
            "that contain what `forget` deleted, are never kept",
        )
    return Finding(
        _NAME,
        Health.GOOD,
        f"{deletes}; anchord has all of its {its_sessions}, byte for byte",
    )


def _read_files(context: CheckContext, root: Root) -> set[str]:
    """Return the transcripts of a root that were read."""
    if not context.paths.archive_file.exists():
        return set()
    with closing(Archive(context.paths.archive_file, read_only=True)) as archive:
        return {origin.path for origin in archive.transcript_files(root.name)}


def _is_kept_as_it_is(kept: KeptTranscripts, place: Place) -> bool:
    """Return whether all bytes of a transcript are kept, and it was not changed since.

    One that is gone by now was kept or not: it is not the question.
    """
    try:
        present = fingerprint_of(os.lstat(place.absolute))
    except OSError:
        return True
    if kept.fingerprint(place) != present:
        return False
    # What may not be kept, or no longer, has a fingerprint and no version of this size.
    return any(version.size == present.size for version in kept.versions(place))


def _sessions_in(projects: str) -> list[str]:
    """Return the transcripts of sessions, relative to the folder; without those of sub-agents."""
    found: list[str] = []
    with suppress(OSError):
        for project in sorted(os.listdir(projects)):
            with suppress(OSError):
                found += [
                    f"{project}/{name}"
                    for name in sorted(os.listdir(f"{projects}/{project}"))
                    if name.endswith(".jsonl") and not name.startswith("agent-")
                ]
    return found


def _days_until_deletion(settings: str) -> int:
    """Return the setting `cleanupPeriodDays`; its default if it is not set or cannot be read."""
    with suppress(OSError, ValueError, AttributeError):
        with open(settings, "rb") as stream:
            days = json.load(stream).get("cleanupPeriodDays")
        if isinstance(days, int) and not isinstance(days, bool):
            return days
    return _DEFAULT_DAYS
