"""Ignore files, with git as the reference; the input is that of `ignoring`."""

from __future__ import annotations

import atexit
import os
import re
import shutil
import subprocess
import tempfile
from functools import cache
from pathlib import Path

from tools.fuzz.inputs import headed
from tools.fuzz.laws import hold

from anchord.core.types import Root
from anchord.sources.files.ignore_rules import IgnoreFile, root_rules
from anchord.sources.files.rule_files import split_lines

_ROOT = Root(name="root", path="/srv/root")
_ALONE = {**os.environ, "GIT_CONFIG_GLOBAL": os.devnull, "GIT_CONFIG_NOSYSTEM": "1"}


def as_git(data: bytes) -> None:
    """Check a path: a file that git ignores is not indexed. Other rules may exclude more."""
    head, body = headed(data)
    path = "/".join(
        part for part in head.replace("\0", "").split("/") if part not in ("", ".", "..")
    )[:200].rstrip("/")
    if not path or not _included(path, body):
        return
    Path(_repository(), ".gitignore").write_bytes(body)
    if _ignored(path):
        hold(False, "what git ignores is left out", path, body, where=_form(path, body))


def _included(path: str, body: bytes) -> bool:
    """Whether a file belongs to the index, as a walk finds out: each folder is asked for before what is in it."""
    scope = root_rules(_ROOT, ()).for_subfolder("", [IgnoreFile(".gitignore", split_lines(body))])
    *folders, name = path.split("/")
    for folder in folders:
        if not scope.match(folder, is_folder=True).is_included:
            return False
        scope = scope.for_subfolder(folder, [])
    return scope.match(name, is_folder=False).is_included


def _ignored(path: str) -> bool:
    """Whether git ignores a file of that path."""
    asked = _asked(path, "--quiet")
    hold(asked.returncode in (0, 1), "git answers", path, asked.returncode)
    return asked.returncode == 0


def _form(path: str, body: bytes) -> str:
    """Say what is special about the lines by which git ignores a path: something else is another defect, most often."""
    pattern = _asked(path, "--verbose").stdout.split(b"\0")[2].decode("utf-8", "replace")
    if b"\0" in body:
        return "NUL"
    if any(
        line.startswith(b"!")
        and line.rstrip(b" ") != line.decode("utf-8", "replace").rstrip().encode()
        for line in body.split(b"\n")
    ):
        return "blanks"
    named = {"brackets": "[", "stars": "**"}
    return next(
        (name for name, sign in named.items() if sign in pattern),
        re.sub(r"[^!*?\\/ ]+", "a", pattern)[:40],
    )


def _asked(path: str, how: str) -> subprocess.CompletedProcess[bytes]:
    command = ["git", "check-ignore", how, "--no-index", "-z", "--stdin"]
    given = f"./{path}\0".encode()
    return subprocess.run(
        command, input=given, cwd=_repository(), env=_ALONE, check=False, stdout=subprocess.PIPE
    )


@cache
def _repository() -> str:
    """Return an empty repository, which goes with the process."""
    folder = tempfile.mkdtemp(prefix="fuzz-git-")
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    subprocess.run(["git", "init", "--quiet", folder], env=_ALONE, check=True, capture_output=True)
    return folder
