"""File names without the secrets in them.

Everywhere outside `FolderFiles` a file whose name holds a secret is known by its redacted name. It
is found again by the names in its folder. Of two files that get one redacted name, the first in
order is indexed.
"""

from __future__ import annotations

import os
import re
from dataclasses import replace
from functools import lru_cache

from anchord.core.types import FoundFile, WalkResult
from anchord.sources.secrets.encodings import INVISIBLE
from anchord.sources.secrets.finding import MARK_START
from anchord.sources.secrets.redactor import redact
from anchord.sources.secrets.runs import generated_runs

_MAY_HOLD_SECRET = re.compile(rf"[=:@%&\\<{INVISIBLE}]")
"""Assignments, and what can stand within a token unseen."""
_SUFFIX = re.compile(r"(?:\.[A-Za-z]\w{0,5}){1,2}$")


def redact_path(path: str) -> str:
    """Return a path with each secret in a name replaced by `[REDACTED:kind]`.

    Args:
        path: An absolute or relative path with "/".
    """
    folder, slash, name = path.rpartition("/")
    return f"{_redact_folder(folder)}{slash}{_redact_name(name)}"


def actual_path(top_folder: str, path: str) -> str:
    """Return the path of a file on disk, given its redacted one; reads folders only if it must.

    Args:
        top_folder: Absolute path of the folder that `path` is relative to.
        path: A path from `redact_path`. A path without a redacted name is returned unchanged.
    """
    if MARK_START not in path:
        return path
    found: list[str] = []
    for name in path.split("/"):
        found.append(_actual_name(os.path.join(top_folder, *found), name))
    return "/".join(found)


def redact_walk(result: WalkResult) -> WalkResult:
    """Return what a walk saw, with redacted paths. The names of listed folders stay."""
    paths = {found.path: redact_path(found.path) for found in result.files}
    if all(path == redacted for path, redacted in paths.items()):
        files = result.files
    else:
        by_path: dict[str, FoundFile] = {}
        for found in sorted(result.files, reverse=True):
            path = paths[found.path]
            by_path[path] = FoundFile(path, found.fingerprint)
        files = tuple(by_path.values())
    return replace(
        result,
        files=files,
        file_problems=tuple((redact_path(path), why) for path, why in result.file_problems),
        folder_problems=tuple((redact_path(path), why) for path, why in result.folder_problems),
        unreadable_folders=tuple(map(redact_path, result.unreadable_folders)),
        unknown_rules=tuple(map(redact_path, result.unknown_rules)),
    )


def _actual_name(folder: str, name: str) -> str:
    if MARK_START not in name:
        return name
    try:
        names = sorted(os.listdir(folder))
    except OSError:
        return name
    return next((each for each in names if _redact_name(each) == name), name)


@lru_cache(maxsize=10_000)
def _redact_folder(path: str) -> str:
    return "/".join(map(_redact_name, path.split("/")))


@lru_cache(maxsize=50_000)
def _redact_name(name: str) -> str:
    if not generated_runs(name) and not _MAY_HOLD_SECRET.search(name):
        return name
    suffix = _SUFFIX.search(name)
    stem_end = suffix.start() if suffix else len(name)
    redacted = redact(name[:stem_end])
    if not redacted.counts_by_kind:
        return name
    # A secret over several lines leaves empty lines. The name is one.
    return redacted.text.replace("\n", "") + name[stem_end:]
