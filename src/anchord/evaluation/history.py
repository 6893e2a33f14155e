"""A folder's git history -> real edits of its documents."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator

from anchord.sources import MARKDOWN

Edit = tuple[str, str, str]
"""Path, text before, text after."""
_ENDINGS = tuple(f":(icase)*{ending}" for ending in sorted(MARKDOWN - {".ipynb"}))
_LOG = ("log", "--no-merges", "--no-renames", "--diff-filter=M", "--format=%H", "--name-only", "-z", "--relative")


def edits_of(folder: str, most: int) -> list[Edit]:
    """Return the last changes of markdown files below a folder, newest first; none where git has no history of it."""
    try:
        log = _git(folder, *_LOG, f"--max-count={most}", "--", *_ENDINGS)
    except FileNotFoundError:
        return []
    if log is None:
        return []
    edits: list[Edit] = []
    for commit, path in _changes(log):
        before, after = (_git(folder, "show", f"{revision}:./{path}") for revision in (f"{commit}^", commit))
        if before is not None and after is not None and before != after:
            edits.append((path, before, after))
        if len(edits) >= most:
            break
    return edits


def _changes(log: str) -> Iterator[tuple[str, str]]:
    """Yield (commit, path): with -z, a commit's line ends with a NUL and a line feed begins its first path."""
    commit = ""
    for field in log.split("\0"):
        name = field.strip("\n")
        if len(name) in (40, 64) and all(c in "0123456789abcdef" for c in name):
            commit = name
        elif name:
            yield commit, name


def _git(folder: str, *arguments: str) -> str | None:
    """Run git; None when it refuses: it is no repository, or has no such object."""
    ran = subprocess.run(["git", "-C", folder, *arguments], capture_output=True, check=False, stdin=subprocess.DEVNULL)
    return ran.stdout.decode("utf-8", "replace") if ran.returncode == 0 else None
