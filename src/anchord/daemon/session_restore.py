"""`session ID --restore`: puts a transcript back where its program finds it."""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass
from itertools import chain, count

from anchord.config.paths import Paths
from anchord.core.os_errors import os_errors_as_unavailable
from anchord.core.quoting import quote_command, quote_name, quote_names
from anchord.daemon.session_reading import open_archive
from anchord.errors import AnchordError, StoreError, UsageError
from anchord.search.kept_sessions import find_loss, kept_places
from anchord.search.session_answers import find_session
from anchord.sources.conversations.archive.session_records import SessionRecord
from anchord.sources.conversations.kept.restore import (
    Existing,
    compare_with_file,
    find_link,
    write_transcript,
)
from anchord.sources.conversations.kept.store import KeptTranscripts, Place
from anchord.sources.conversations.kept.versions import KeptVersion, best_version
from anchord.sources.conversations.locations import known_program_folders
from anchord.sources.conversations.programs import program_name


@dataclass(frozen=True, slots=True, kw_only=True)
class NamedVersion:
    """A kept state of a file."""

    name: str
    """A digest of its content: it stays the same whatever is kept later."""
    state: KeptVersion


@dataclass(frozen=True, slots=True, kw_only=True)
class RestoredFile:
    """A file of a transcript, and what became of it."""

    path: str
    """Absolute."""
    size: int
    """Bytes."""
    found: Existing
    """What was there: a file is only written where nothing was."""
    versions: tuple[NamedVersion, ...]
    """All kept states of the file, oldest first."""
    version: str
    """The name of the one that was restored."""


@dataclass(frozen=True, slots=True)
class _Target:
    """Where a file is to be written."""

    top_folder: str
    """Absolute path of a folder that exists. Nothing outside of it is written."""
    path: str
    """Relative to it."""

    @property
    def absolute(self) -> str:
        return os.path.join(self.top_folder, self.path)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Plan:
    """What to do with one file of a transcript."""

    place: Place
    target: _Target
    versions: tuple[NamedVersion, ...]
    chosen: NamedVersion
    found: Existing


def restore_session(
    paths: Paths, wanted: str, *, to: str = "", version: str = "", env: Mapping[str, str]
) -> list[RestoredFile]:
    """Write the transcript of a session back, byte for byte.

    Of a transcript that is several files, those are skipped whose place another file has.

    Args:
        paths: Where this anchord keeps its files.
        wanted: The session, as for "session"; or the path of a kept transcript.
        to: A file, or an existing folder, to write to; "" is the place that it had.
        version: The name of an earlier state, or its beginning; "" is the longest sound one.
        env: Environment variables: programs read their folders from some.

    Raises:
        UsageError: There is no such session; its transcript is not kept; or other files, no folder
            or a symbolic link are where it would be written.
        StoreUnavailableError: The disk is full.
        StoreError: The kept transcripts cannot be read.
        OSError: A file cannot be written.
    """
    record = _find_record(paths, wanted)
    if not paths.kept_transcripts_file.exists():
        raise _not_kept(record)
    with closing(KeptTranscripts(paths.kept_transcripts_file, read_only=True)) as kept:
        places = kept_places(kept, record)
        if not places:
            raise _not_kept(record)
        if to and len(places) > 1 and not os.path.isdir(to):
            raise UsageError(
                f"this transcript is {len(places)} files", "give a folder that exists to --to"
            )
        targets = [_target(record, place, to, env) for place in places]
        plans = [
            _plan(kept, place, target, version)
            for place, target in zip(places, targets, strict=True)
        ]
        if all(plan.found is Existing.OTHER for plan in plans):
            raise _in_the_way(kept, plans[0])
        return [_carry_out(kept, plan) for plan in plans]


def _find_record(paths: Paths, wanted: str) -> SessionRecord:
    with open_archive(paths) as archive:
        if archive is None:
            raise UsageError(
                "there are no conversations yet", "`anchord discover --add` indexes them"
            )
        try:
            return find_session(archive, wanted, archive.session_records.all())
        except UsageError:
            # A transcript without an exchange of its own, such as one of a sub-agent.
            unlisted = _record_of_file(paths, wanted)
            if unlisted is None:
                raise
            return unlisted


def _plan(kept: KeptTranscripts, place: Place, target: _Target, version: str) -> _Plan:
    if link := find_link(target.top_folder, target.path):
        raise UsageError(
            f"{quote_name(link)} is a symbolic link to {quote_name(os.path.realpath(link))}: "
            "nothing is written through it",
            "add `--to FOLDER` to write the transcript to a folder of your choice",
        )
    versions = tuple(
        NamedVersion(name=kept.name_of(each), state=each) for each in kept.versions(place)
    )
    chosen = _choose(versions, version)
    return _Plan(
        place=place,
        target=target,
        versions=versions,
        chosen=chosen,
        found=compare_with_file(kept, chosen.state, target.absolute),
    )


def _carry_out(kept: KeptTranscripts, plan: _Plan) -> RestoredFile:
    target = plan.target
    if plan.found is Existing.NOTHING:
        with os_errors_as_unavailable(target.absolute):
            write_transcript(kept.read(plan.chosen.state), target.top_folder, target.path)
    return RestoredFile(
        path=target.absolute,
        size=plan.chosen.state.size,
        found=plan.found,
        versions=plan.versions,
        version=plan.chosen.name,
    )


def _in_the_way(kept: KeptTranscripts, plan: _Plan) -> UsageError:
    """Return the error for a file that is there and is not what is kept."""
    path = plan.target.absolute
    shown = quote_name(path)
    loss = find_loss(kept, plan.place, path)
    if not loss:
        return UsageError(
            f"{shown} exists and is another file: it was left as it is",
            "add `--to FILE` to write the transcript elsewhere",
        )
    beside = quote_command("--to", _free_name_beside(path))
    kept_bytes = f"{plan.chosen.state.size:,} bytes"
    what = "is damaged (NUL bytes)" if loss == "damaged" else "is shorter than what anchord keeps"
    return UsageError(
        f"{shown} {what}, and was left as it is; {kept_bytes} are kept",
        f"add {beside} to write them beside it, or move it away and restore again",
    )


def _free_name_beside(path: str) -> str:
    stem, suffix = os.path.splitext(path)
    names = chain([f"{stem}.restored{suffix}"], (f"{stem}.restored-{n}{suffix}" for n in count(2)))
    return next(name for name in names if not os.path.lexists(name))


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


def _choose(versions: Sequence[NamedVersion], name: str) -> NamedVersion:
    if name:
        named = [each for each in versions if each.name.startswith(name)]
        if len(named) == 1:
            return named[0]
        raise UsageError(
            f"there is no version {quote_name(name)}",
            f"there are: {quote_names(each.name for each in versions)}; without --version the "
            "longest one is restored",
        )
    best = best_version(each.state for each in versions)
    if best is None:
        raise StoreError("the kept transcript has no version", "restore a backup")
    return next(each for each in versions if each.state is best)


def _target(record: SessionRecord, place: Place, to: str, env: Mapping[str, str]) -> _Target:
    if to:
        return _given_target(record, place, os.path.abspath(os.path.expanduser(to)))
    folder = record.folder or place.folder
    if os.path.isdir(folder):
        return _Target(folder, place.path)
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


def _given_target(record: SessionRecord, place: Place, given: str) -> _Target:
    """Return where `--to` writes. The folders that exist may be links."""
    if os.path.isdir(given):
        return _Target(os.path.realpath(given), _path_in_transcript(record, place))
    top_folder = os.path.dirname(given)
    while not os.path.isdir(top_folder):
        top_folder = os.path.dirname(top_folder)
    return _Target(os.path.realpath(top_folder), os.path.relpath(given, top_folder))


def _path_in_transcript(record: SessionRecord, place: Place) -> str:
    """Return the path of a file below the folder that is a transcript; else its name."""
    top = f"{record.path}/"
    is_below = place.path.startswith(top)
    return place.path.removeprefix(top) if is_below else os.path.basename(place.path)
