"""Which commits the lines of a file come from, by git, also in a repository of a stranger.

Nothing that the repository configures is run: no hook, no file system monitor, no textconv, no
filter, and nothing is fetched. Filters run where git reads a file of the working tree, so the lines
are those of the last commit.
"""

from __future__ import annotations

import os
import re
import subprocess
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime

_TIMEOUT_S = 30.0
_SAFE_SETTINGS = (
    "core.fsmonitor=false",
    "core.hooksPath=/dev/null",
    "core.pager=cat",
    "core.attributesFile=/dev/null",
    "log.showSignature=false",
    "protocol.allow=never",
)
_HEADER = re.compile(rb"([0-9a-f]{40}|[0-9a-f]{64}) \d+ (\d+)(?: \d+)?")
_KEPT_VARIABLES = frozenset({"HOME", "PATH", "TMPDIR", "XDG_CONFIG_HOME"})


@dataclass(slots=True)
class BlamedCommit:
    """A commit, and which lines of the file are its own."""

    hash: str
    author: str = ""
    at: str = ""
    """When it was written: ISO 8601 in UTC."""
    subject: str = ""
    lines: list[tuple[int, int]] = field(default_factory=list)
    """First and last line of each run, in the file's order."""


def blame_lines(path: str, first: int = 0, last: int = 0) -> tuple[tuple[BlamedCommit, ...], str]:
    """Return the commits of a file's lines, the newest first.

    Args:
        path: Absolute path of the file.
        first: The first line, from 1; 0 for all lines.
        last: The last line.

    Returns:
        The commits; none and a reason where git does not know the file or the lines, or is not
        installed.
    """
    folder, name = os.path.split(path)
    lines = ("-L", f"{first},{last}") if first else ()
    settings = [word for setting in _SAFE_SETTINGS for word in ("-c", setting)]
    arguments = ("blame", "--porcelain", "--no-textconv", *lines, "HEAD", "--", f"./{name}")
    environment = {key: value for key, value in os.environ.items() if key in _KEPT_VARIABLES}
    safe = {
        "GIT_NO_LAZY_FETCH": "1",
        "GIT_NO_REPLACE_OBJECTS": "1",
        "GIT_OPTIONAL_LOCKS": "0",
        "GIT_TERMINAL_PROMPT": "0",
        "LC_ALL": "C",
    }
    try:
        process = subprocess.run(
            ["git", "--literal-pathspecs", *settings, *arguments],
            cwd=folder,
            env={**environment, **safe},
            stdin=subprocess.DEVNULL,
            capture_output=True,
            timeout=_TIMEOUT_S,
            check=False,
        )
    except FileNotFoundError:
        return (), "git is not installed, or the folder does not exist"
    except subprocess.TimeoutExpired:
        return (), f"git did not answer within {_TIMEOUT_S:.0f} s"
    except OSError as error:
        return (), f"git cannot be started: {error.strerror}"
    if process.returncode:
        return (), _problem(process.stderr.decode("utf-8", "replace").splitlines())
    commits = parse_porcelain(process.stdout)
    return tuple(sorted(commits.values(), key=lambda commit: commit.at, reverse=True)), ""


def _problem(lines: Sequence[str]) -> str:
    """Return what git says is wrong."""
    fatal = (line.removeprefix("fatal: ") for line in lines if line.startswith("fatal: "))
    problem = next(fatal, lines[0] if lines else "git failed")
    if problem.startswith("invalid object name"):
        # It goes on with a line of the file that the setting names, which can be any file.
        return "blame.ignoreRevsFile of the repository names a file that is no list of commits"
    return problem


def parse_porcelain(output: bytes) -> Mapping[str, BlamedCommit]:
    """Return hash -> commit of what `git blame --porcelain` printed."""
    commits: dict[str, BlamedCommit] = {}
    current = BlamedCommit("")
    for line in output.split(b"\n"):
        if line.startswith(b"\t"):
            continue  # The text of the line; what begins with another character is a header.
        if header := _HEADER.fullmatch(line):
            current = commits.setdefault(header[1].decode(), BlamedCommit(header[1].decode()))
            _add_line(current.lines, int(header[2]))
            continue
        key, _, value = line.partition(b" ")
        text = value.decode("utf-8", "replace")
        if key == b"author":
            current.author = text
        elif key == b"author-time" and text.lstrip("-").isdigit():
            current.at = _utc(int(text))
        elif key == b"summary":
            current.subject = text
    return commits


def _add_line(runs: list[tuple[int, int]], number: int) -> None:
    if runs and runs[-1][1] == number - 1:
        runs[-1] = (runs[-1][0], number)
    else:
        runs.append((number, number))


def _utc(seconds: int) -> str:
    try:
        return datetime.fromtimestamp(seconds, UTC).isoformat().replace("+00:00", "Z")
    except (ValueError, OverflowError, OSError):
        return ""
