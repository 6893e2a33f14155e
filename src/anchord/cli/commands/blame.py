"""`blame`: which conversations changed a file, beside git's commits of its lines."""

from __future__ import annotations

import os
import re
from dataclasses import asdict
from datetime import UTC, datetime
from typing import Annotated

from anchord.cli.app import (
    JsonOption,
    app,
    ensure_paths,
    print_json,
    print_line,
    warn,
)
from anchord.cli.output.blame_table import blame_lines as table_lines
from anchord.cli.parameters import Argument, Option
from anchord.config.paths import absolute_path
from anchord.core.quoting import escape_non_utf8, quote_name
from anchord.daemon.access import ask_daemon_or_index
from anchord.errors import AnchordError, UsageError
from anchord.ipc import requests
from anchord.ipc.messages.files import MAX_LISTED

_WITH_LINES = re.compile(r"(?P<file>.+):(?P<lines>[^:/]*)", re.DOTALL)
_LINES = re.compile(r"([0-9]{1,9})(?:-([0-9]{1,9}))?")


@app.command()
def blame(
    file: Annotated[str, Argument(metavar="FILE[:LINES]", help="A file, or app.py:10-20 of it.")],
    n: Annotated[int, Option("-n", min=1, max=MAX_LISTED, help="How many exchanges.")] = 20,
    json: JsonOption = False,
) -> None:
    """Show which conversations changed a file, and which commits its lines come from."""
    from anchord.sources.files.git_blame import blame_lines

    path, first, last = _split_lines(file)
    absolute = os.path.realpath(absolute_path(path))
    if escape_non_utf8(absolute) != absolute:
        raise UsageError("the path is not UTF-8", "no transcript can name it")
    answer = ask_daemon_or_index(ensure_paths(), requests.blame(absolute, limit=n)).value
    if not answer.touches and not os.path.lexists(absolute):
        raise AnchordError(
            f"{quote_name(path)} does not exist, and no indexed conversation names it",
            "check its path; `anchord sessions` lists the conversations",
        )
    commits, reason = blame_lines(absolute, first, last)
    if json:
        listed = [asdict(commit) for commit in commits]
        print_json({**answer.as_json(), "commits": listed, "git": reason})
        return
    for line in table_lines(answer, commits, datetime.now(UTC).astimezone()):
        print_line(line, markup=True)
    if answer.omitted:
        warn(f"{answer.omitted:,} older exchanges are not shown: -n shows more")
    if reason:
        warn(f"no commits: {reason}")


def _split_lines(file: str) -> tuple[str, int, int]:
    """Return path, first and last line; 0 and 0 for all. A file of that very name comes first."""
    match = None if os.path.lexists(file) else _WITH_LINES.fullmatch(file)
    lines = _LINES.fullmatch(match["lines"]) if match else None
    if match is None or (lines is None and not os.path.lexists(match["file"])):
        return file, 0, 0
    first, last = (int(lines[1]), int(lines[2] or lines[1])) if lines else (0, 0)
    if not 0 < first <= last:
        raise UsageError(
            f"{quote_name(match['lines'])} is no range of lines",
            "write FILE:10 or FILE:10-20; lines count from 1",
        )
    return match["file"], first, last
