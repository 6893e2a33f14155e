"""Erases what logs and recall have of a forgotten file: its names, and the ids of its chunks.

They are overwritten where they stand: other threads and programs append to these files meanwhile.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Iterable, Sequence
from collections.abc import Set as AbstractSet
from contextlib import suppress
from pathlib import Path
from typing import Any

from anchord.config.paths import Paths
from anchord.core.quoting import escape_fields, escape_non_utf8
from anchord.core.types import RootedPath

_LEAST_NAME_CHARS = 20
"""A shorter name, such as `session`, can be a word. Ids of chunks have 32 characters."""
_VALUE = re.compile(rb'(?<=")(?:[^"\\]|\\.)*+(?=")')
_NAME = re.compile(rb"[\w-]{20,}")
_Trace = tuple[re.Pattern[bytes], AbstractSet[bytes] | None]
"""What to look for, and which of the matches count: None for all."""


def erase_traces(
    paths: Paths, forgotten: str, origins: Iterable[RootedPath], row_ids: Sequence[str]
) -> list[Path]:
    """Overwrite names of files, and ids of chunks, in the log and in the files of recall.

    Args:
        paths: Where this anchord keeps its files.
        forgotten: Absolute path of the file or folder.
        origins: The files and exchanges that are forgotten.
        row_ids: The ids of their chunks.

    Returns:
        The files that cannot be written now, and may still have such names.
    """
    recall = paths.data_folder / "recall"
    files = [origin.path for origin in origins]
    stems = {os.path.basename(path).partition(".")[0] for path in (forgotten, *files)}
    long_stems = {stem.encode() for stem in stems if len(stem) >= _LEAST_NAME_CHARS}
    values = {text for path in files for text in _as_logged(path)}
    roots = map(re.escape, _as_logged(forgotten))
    traces: list[_Trace] = [
        (re.compile(rb"(?:" + b"|".join(roots) + rb")(?![\w.-])"), None),
        (_VALUE, values),
        (_NAME, long_stems),
    ]
    ids: list[_Trace] = [(_NAME, {row_id.encode() for row_id in row_ids})]
    logs = (
        paths.log_file,
        paths.log_file.with_suffix(".log.1"),
        recall / "log.jsonl",
        recall / "log.1.jsonl",
    )
    traces_by_file = dict.fromkeys(logs, traces) | dict.fromkeys(
        _files_in(recall / "sessions"), ids
    )
    return [file for file, each in traces_by_file.items() if not _overwrite(file, each)]


def _as_logged(text: str) -> set[bytes]:
    """Return a text as it is inside of a string of JSON, with and without letters beyond ASCII."""
    shown: Any = escape_fields(escape_non_utf8(text))
    return {json.dumps(shown, ensure_ascii=is_ascii)[1:-1].encode() for is_ascii in (True, False)}


def _files_in(folder: Path) -> list[Path]:
    with suppress(FileNotFoundError, NotADirectoryError):
        return sorted(folder.iterdir())
    return []


def _overwrite(file: Path, traces: Iterable[_Trace]) -> bool:
    """Replace each trace in a file by as many asterisks; return whether that could be done.

    What is no file, such as a log that is a link to a terminal, keeps nothing.
    """
    if not file.is_file():
        return True
    try:
        with file.open("r+b") as log:
            data = log.read()
            for pattern, wanted in traces:
                for found in pattern.finditer(data):
                    if wanted is None or found[0] in wanted:
                        log.seek(found.start())
                        log.write(b"*" * len(found[0]))
    except OSError:
        return not file.exists()
    return True
