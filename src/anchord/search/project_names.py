"""What projects are called: the name of the repository, whichever agent or worktree it was.

Transcripts name a project by its folder, by a hash of the folder, or by the folder with "-" in the
place of each separator. Folders that exist on this machine are looked at; of others the name of the
folder is all there is.
"""

from __future__ import annotations

import functools
import hashlib
import os
import re
from collections.abc import Iterable
from contextlib import suppress
from time import monotonic

from anchord.search.headings import folder_of_worktree, project_name
from anchord.sources.files.git_repositories import (
    common_folder_of,
    git_folder_of,
    read_small_file,
)
from anchord.sources.secrets.redactor import redact

_ORIGIN_URL = re.compile(r'^\[remote "origin"\][^\[]*?^\s*url\s*=\s*(\S+)', re.MULTILINE)
_NO_LETTER = re.compile(r"[^A-Za-z0-9]")
_SHA256 = re.compile(r"[0-9a-f]{64}")
_MAX_FOLDERS = 64
"""So deep is a folder searched for a name that has "-" in the place of each "/"."""


def top_folder(folder: str) -> str:
    """Return the top folder of the repository or worktree around a folder; "" without one."""
    while folder not in {"", "/"}:
        if os.path.lexists(f"{folder}/.git"):
            return folder
        folder = os.path.dirname(folder)
    return ""


def path_in_repository(path: str) -> str:
    """Return a path as every checkout of its repository has it.

    Args:
        path: Absolute, or the end of a path.

    Returns:
        The path below the top folder of its repository; without a repository, or for a path that is
        not absolute, the path without "/" at its begin.
    """
    path = os.path.normpath(path)
    top = top_folder(os.path.dirname(path)) if path.startswith("/") else ""
    return os.path.relpath(path, top) if top else path.lstrip("/")


class ProjectNames:
    """Names projects; folders that other projects name make hashes and encoded names readable."""

    def __init__(self, projects: Iterable[str] = ()) -> None:
        """Learn what is known.

        Args:
            projects: Projects as transcripts name them.
        """
        _begin_minute(int(monotonic() // 60))
        folders = {each for each in projects if each.startswith("/")}
        self._folders = {_encode(folder): folder for folder in sorted(folders)}
        self._folders |= {_sha256(folder): folder for folder in sorted(folders)}

    def name_of(self, project: str) -> str:
        """Return a project's name in words; "" if nothing in words is known."""
        folder = self._folders.get(project) or self._folders.get(project.lstrip("-")) or project
        if folder.startswith("-"):
            folder = _decode(folder) or folder
        name = repository_name(folder) if folder.startswith("/") else ""
        if name or not _SHA256.fullmatch(folder):
            return name or _without_secret(project_name(folder_of_worktree(folder)))
        return ""

    def is_meant(self, project: str, wanted: str) -> bool:
        """Return whether a part of a name, or a folder, stands for a project.

        A folder stands for what is inside it, and for every checkout of its repository.
        """
        if "/" in wanted:
            folder = wanted.rstrip("/")
            repository = repository_name(folder)
            is_inside = f"{project}/".startswith(f"{folder}/")
            return is_inside or (bool(repository) and self.name_of(project) == repository)
        return wanted.casefold() in self.name_of(project).casefold()


@functools.lru_cache(1024)
def repository_name(folder: str) -> str:
    """Return the name of the git repository around a folder; "" if there is none.

    It is the last part of the address of `origin`, or the name of the main checkout's folder. A
    worktree that was deleted belongs to the repository around the folder that held it.
    """
    top = folder_of_worktree(folder)
    while top not in {"", "/"}:
        with suppress(OSError, ValueError):
            git_path = f"{top}/.git"
            git_folder = git_folder_of(git_path) if os.path.lexists(git_path) else None
            if git_folder:
                return _without_secret(_name_of_repository(common_folder_of(git_folder)))
        top = os.path.dirname(top)
    return ""


@functools.lru_cache(1024)
def _without_secret(name: str) -> str:
    """Return a name that this machine's folders or git have: no transcript's redaction saw it."""
    return redact(name).text


@functools.lru_cache(1)
def _begin_minute(_number: int) -> None:
    """Forget once a minute what folders are called: a daemon runs for weeks."""
    repository_name.cache_clear()
    _decode.cache_clear()


def _name_of_repository(common_folder: str) -> str:
    found = None
    with suppress(OSError):
        found = _ORIGIN_URL.search(read_small_file(f"{common_folder}/config"))
    url = found[1] if found else ""
    folder = common_folder.removesuffix("/.git")
    return project_name(re.split(r"[/:]", (url or folder).rstrip("/"))[-1].removesuffix(".git"))


def _sha256(folder: str) -> str:
    return hashlib.sha256(os.fsencode(folder)).hexdigest()


def _encode(folder: str) -> str:
    return _NO_LETTER.sub("-", folder).lstrip("-")


@functools.lru_cache(1024)
def _decode(encoded: str) -> str:
    """Return the folder of this machine whose path gives an encoded name; "" if there is none."""
    candidates = [("", encoded)]
    for _ in range(_MAX_FOLDERS):
        if not candidates:
            return ""
        folder, rest = candidates.pop()
        with suppress(OSError), os.scandir(folder or "/") as entries:
            for entry in entries:
                name = f"-{_NO_LETTER.sub('-', entry.name)}"
                is_begun = rest == name or rest.startswith(f"{name}-")
                if is_begun and entry.is_dir(follow_symlinks=False):
                    found = (f"{folder}/{entry.name}", rest.removeprefix(name))
                    if not found[1]:
                        return found[0]
                    candidates.append(found)
    return ""
