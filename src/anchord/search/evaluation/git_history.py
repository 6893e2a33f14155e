"""A folder's git history as real edits of its documents."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator

from anchord.core.quoting import quote_name
from anchord.errors import UsageError
from anchord.sources.documents.file_types import MARKDOWN_SUFFIXES

Edit = tuple[str, str, str]
"""Path below the folder, text before, text after."""
_MARKDOWN_PATHSPECS = tuple(
    f":(icase)*{suffix}" for suffix in sorted(MARKDOWN_SUFFIXES - {".ipynb"})
)
_LOG_ARGUMENTS = (
    "log",
    "--no-merges",
    "--no-renames",
    "--diff-filter=M",
    "--format=%H",
    "--name-only",
    "-z",
    "--relative",
)
_HASH_LENGTHS = (40, 64)  # SHA-1, SHA-256
_GIT_TIMEOUT_S = 120.0
"""Git waits without end for a named pipe in its folder; a log of a large history takes seconds."""


def recent_edits(folder: str, max_edits: int) -> list[Edit]:
    """Return the last edits of markdown files below a folder. Runs git, which blocks.

    Args:
        folder: A folder in a repository.
        max_edits: How many edits to return, and how many commits to read, at most.

    Returns:
        The edits, newest first; none where git is missing or has no history of the folder.

    Raises:
        UsageError: git does not answer.
    """
    try:
        log = _run_git(
            folder, *_LOG_ARGUMENTS, f"--max-count={max_edits}", "--", *_MARKDOWN_PATHSPECS
        )
    except FileNotFoundError:
        return []
    if log is None:
        return []
    edits: list[Edit] = []
    for commit, path in _changed_files(log):
        before = _run_git(folder, "show", f"{commit}^:./{path}")
        after = _run_git(folder, "show", f"{commit}:./{path}")
        if before is not None and after is not None and before != after:
            edits.append((path, before, after))
        if len(edits) >= max_edits:
            break
    return edits


def _changed_files(log: str) -> Iterator[tuple[str, str]]:
    """Yield (commit, path) for each changed file of a log.

    With -z, a NUL ends the line of a commit, and a line feed comes before its first path.
    """
    commit = ""
    for part in log.split("\0"):
        name = part.strip("\n")
        if _is_commit_hash(name):
            commit = name
        elif name:
            yield commit, name


def _is_commit_hash(name: str) -> bool:
    return len(name) in _HASH_LENGTHS and set(name) <= set("0123456789abcdef")


def _run_git(folder: str, *arguments: str) -> str | None:
    """Return git's output, None where it fails: no repository, or no such object.

    Raises:
        FileNotFoundError: git is not installed.
        UsageError: git does not answer.
    """
    try:
        result = subprocess.run(
            ["git", "-C", folder, *arguments],
            capture_output=True,
            check=False,
            stdin=subprocess.DEVNULL,
            timeout=_GIT_TIMEOUT_S,
        )
    except subprocess.TimeoutExpired:
        raise UsageError(
            f"git did not answer within {_GIT_TIMEOUT_S:.0f} s in {quote_name(folder)}",
            "look for a named pipe in its .git folder, or leave edits out with --commits 0",
        ) from None
    if result.returncode != 0:
        return None
    return result.stdout.decode("utf-8", "replace")
