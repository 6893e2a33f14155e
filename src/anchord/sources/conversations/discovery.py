"""Finds the folders on this machine in which assistants keep conversations."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from anchord.config.roots import covers, resolve_path
from anchord.core.types import Root
from anchord.sources.conversations.formats.registry import (
    FORMATS,
    HEAD_BYTES,
    IGNORED_FOLDERS,
    detect_format,
    may_be_transcript,
)
from anchord.sources.conversations.locations import known_program_folders


@dataclass(frozen=True, slots=True, kw_only=True)
class ConversationFolder:
    """A folder with transcript files."""

    program: str
    """Name of the program, such as `Claude Code`."""
    path: str
    """Absolute path, without symbolic links."""
    files: int
    """How many transcript files are in it and below."""
    bytes: int
    """Their total size."""
    newest_ns: int
    """Modification time of the newest one, in nanoseconds since the epoch."""
    root: str
    """Name of the root that contains the folder; "" if none does."""


def find_conversation_folders(
    home: str, env: Mapping[str, str], roots: Sequence[Root]
) -> Iterator[ConversationFolder]:
    """Find the programs' folders that contain at least one transcript file.

    Reads names, sizes and the first 64 KiB of files. Files that cannot be read are left out.

    Args:
        home: Absolute path of the user's home folder.
        env: Environment variables: programs read their folders from some.
        roots: The roots that may contain the folders already.
    """
    seen: set[str] = set()
    for place in known_program_folders(home, env, sys.platform):
        path = resolve_path(place.path)
        if path in seen or not os.path.isdir(path):
            continue
        seen.add(path)
        stats = [entry.stat() for entry in _transcript_files(path)]
        if stats:
            yield ConversationFolder(
                program=place.program,
                path=path,
                files=len(stats),
                bytes=sum(status.st_size for status in stats),
                newest_ns=max(status.st_mtime_ns for status in stats),
                root=next((root.name for root in roots if covers(root.path, path)), ""),
            )


def _transcript_files(top_folder: str) -> Iterator[os.DirEntry[str]]:
    """Yield the transcript files below a folder. Symbolic links are not followed."""
    folders = [top_folder]
    while folders:
        try:
            with os.scandir(folders.pop()) as entries:
                for entry in entries:
                    if _is_folder_to_enter(entry):
                        folders.append(entry.path)
                    elif _is_transcript_file(entry):
                        yield entry
        except OSError:
            continue  # A folder that cannot be read cannot be indexed either.


def _is_folder_to_enter(entry: os.DirEntry[str]) -> bool:
    return entry.is_dir(follow_symlinks=False) and entry.name not in IGNORED_FOLDERS


def _is_transcript_file(entry: os.DirEntry[str]) -> bool:
    if not entry.is_file(follow_symlinks=False) or not may_be_transcript(entry.name):
        return False
    try:
        with open(entry.path, "rb") as stream:
            head = stream.read(HEAD_BYTES)
    except OSError:
        return False
    if detect_format(head, entry.path) is not None:
        return True
    return any(each.transcript_folder(entry.path) for each in FORMATS)
