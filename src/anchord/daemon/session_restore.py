"""`session ID --restore`: puts a transcript back where its program finds it."""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass

from anchord.config.paths import Paths
from anchord.core.quoting import quote_command, quote_name
from anchord.daemon.session_reading import open_archive
from anchord.errors import AnchordError, StoreError, UsageError
from anchord.search.kept_sessions import kept_places
from anchord.search.session_answers import find_session
from anchord.sources.conversations.archive.session_records import SessionRecord
from anchord.sources.conversations.kept.restore import (
    Existing,
    compare_with_file,
    write_transcript,
)
from anchord.sources.conversations.kept.store import KeptTranscripts, Place
from anchord.sources.conversations.kept.versions import KeptVersion, best_version
from anchord.sources.conversations.locations import known_program_folders
from anchord.sources.conversations.programs import program_name


@dataclass(frozen=True, slots=True, kw_only=True)
class RestoredFile:
    """A file of a transcript, and what became of it."""

    path: str
    """Absolute."""
    size: int
    """Bytes."""
    found: Existing
    """What was there: a file is only written where nothing was."""
    versions: tuple[KeptVersion, ...]
    """All kept states of the file, oldest first."""
    version: int
    """The number of the one that was restored, from 1."""


def restore_session(
    paths: Paths, wanted: str, *, to: str = "", version: int = 0, env: Mapping[str, str]
) -> list[RestoredFile]:
    """Write the transcript of a session back, byte for byte.

    Of a transcript that is several files, those are skipped whose place another file has.

    Args:
        paths: Where this anchord keeps its files.
        wanted: The session, as for "session".
        to: A file, or an existing folder, to write to; "" is the place that it had.
        version: The number of an earlier state; 0 is the longest sound one.
        env: Environment variables: programs read their folders from some.

    Raises:
        UsageError: There is no such session; its transcript is not kept; or other files, or no
            folder, are where it would be written.
        StoreError: The kept transcripts cannot be read.
        OSError: A file cannot be written.
    """
    with open_archive(paths) as archive:
        if archive is None:
            raise UsageError(
                "there are no conversations yet", "`anchord discover --add` indexes them"
            )
        try:
            record = find_session(archive, wanted, archive.session_records.all())
        except UsageError:
            # A transcript without an exchange of its own, such as one of a sub-agent.
            unlisted = _record_of_file(paths, wanted)
            if unlisted is None:
                raise
            record = unlisted
    if not paths.kept_transcripts_file.exists():
        raise _not_kept(record)
    kept = KeptTranscripts(paths.kept_transcripts_file, read_only=True)
    try:
        places = kept_places(kept, record)
        if not places:
            raise _not_kept(record)
        if to and len(places) > 1 and not os.path.isdir(to):
            raise UsageError(
                f"this transcript is {len(places)} files", "give a folder that exists to --to"
            )
        targets = [_target(record, place, to, env) for place in places]
        chosen = [_choose(kept.versions(place), version) for place in places]
        found = [
            compare_with_file(kept, each, target)
            for each, target in zip(chosen, targets, strict=True)
        ]
        if all(existing is Existing.OTHER for existing in found):
            raise UsageError(
                f"{quote_name(targets[0])} exists and is another file: it was left as it is",
                "add `--to FILE` to write the transcript elsewhere",
            )
        results = []
        for place, target, each, existing in zip(places, targets, chosen, found, strict=True):
            if existing is Existing.NOTHING:
                write_transcript(kept.read(each), target)
            versions = tuple(kept.versions(place))
            results.append(
                RestoredFile(
                    path=target,
                    size=each.size,
                    found=existing,
                    versions=versions,
                    version=versions.index(each) + 1,
                )
            )
        return results
    finally:
        kept.close()


def _record_of_file(paths: Paths, wanted: str) -> SessionRecord | None:
    """Return a record for a kept transcript file that no session is known of; None if none is."""
    path = os.path.abspath(os.path.expanduser(wanted))
    if "/" not in wanted or not paths.kept_transcripts_file.exists():
        return None
    with closing(KeptTranscripts(paths.kept_transcripts_file, read_only=True)) as kept:
        place = next((each for each in kept.find_below(path) if each.absolute == path), None)
        if place is None or not kept.versions(place):
            return None
    return SessionRecord(
        id=0,
        source="",
        name=wanted,
        title="",
        project="",
        parent="",
        root="",
        detached_because="",
        folder=place.folder,
        path=place.path,
        last_at="",
        exchange_count=0,
        has_file=False,
    )


def _not_kept(record: SessionRecord) -> AnchordError:
    return UsageError(
        f"the transcript of {quote_name(record.name)} is not kept, only what was said",
        f"{quote_command('anchord session --markdown', record.name)} prints it",
    )


def _choose(versions: Sequence[KeptVersion], number: int) -> KeptVersion:
    if number > len(versions):
        raise UsageError(
            f"there is no version {number}",
            f"there are {len(versions)}; without --version the longest one is restored",
        )
    best = versions[number - 1] if number else best_version(versions)
    if best is None:
        raise StoreError("the kept transcript has no version", "restore a backup")
    return best


def _target(record: SessionRecord, place: Place, to: str, env: Mapping[str, str]) -> str:
    if to:
        target = os.path.abspath(os.path.expanduser(to))
        is_folder = os.path.isdir(target)
        return os.path.join(target, _path_in_transcript(record, place)) if is_folder else target
    folder = record.folder or place.folder
    if os.path.isdir(folder):
        return os.path.join(folder, place.path)
    program = program_name(record.source)
    home = os.path.expanduser("~")
    here = [
        each.path
        for each in known_program_folders(home, env, sys.platform)
        if each.program == program
    ]
    existing = [path for path in here if os.path.isdir(path)]
    looks_in = (existing or here)[:1]
    if not looks_in:
        raise UsageError(
            f"the folder {quote_name(folder)} does not exist on this machine",
            "add `--to FILE` to write it elsewhere",
        )
    suggested = quote_command("--to", os.path.join(looks_in[0], place.path))
    raise UsageError(
        f"the folder {quote_name(folder)} does not exist on this machine; {program} looks in "
        f"{quote_name(looks_in[0])}",
        f"add {suggested}",
    )


def _path_in_transcript(record: SessionRecord, place: Place) -> str:
    """Return the path of a file below the folder that is a transcript; else its name."""
    top = f"{record.path}/"
    is_below = place.path.startswith(top)
    return place.path.removeprefix(top) if is_below else os.path.basename(place.path)
