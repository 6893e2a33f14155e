"""What anchord last saw of roots and ignore files, in a file of anchord's own: `data/seen.json`.

    {"version": 1,
     "rules": {absolute path of an ignore file: its last good content without comments},
     "roots": {name of a root: {"path", "link", "device", "inode"}},
     "repositories": {absolute path of a repository: {"excludes_file", "ignores_case"}}}

Paths and contents are bytes, stored as Latin-1. A file that is lost or damaged is an empty one: the
next walk fills it again, and until then an ignore file that cannot be read has no last good rules.
"""

from __future__ import annotations

import json
import os
from contextlib import suppress
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from anchord.core.regular_files import read_regular_file
from anchord.sources.secrets.redactor import redact

_VERSION = 1


@dataclass(frozen=True, slots=True, kw_only=True)
class RootIdentity:
    """The folder that a root's rows were made from."""

    path: str
    """Absolute path of the folder itself."""
    link: str
    """The configured path if the user configured a symbolic link, else ""."""
    device: int
    inode: int


@dataclass(frozen=True, slots=True)
class GitSettings:
    """The settings of a repository that decide what git ignores in it."""

    excludes_file: str = ""
    """Absolute path of `core.excludesFile`; "" if there is none."""
    ignores_case: bool = False
    """`core.ignoreCase`."""


class SourceMemory:
    """Remembers rules, repositories and roots. Not thread-safe."""

    def __init__(self, file: Path | None = None, *, read_only: bool = False) -> None:
        """Load what was saved.

        Args:
            file: Where it is saved; None remembers in this object only.
            read_only: Never write the file; `refresh` reads it again when it changed.
        """
        self.rules: dict[str, bytes] = {}
        self.roots: dict[str, RootIdentity] = {}
        self.repositories: dict[str, GitSettings] = {}
        self._file = file
        self._read_only = read_only
        self._saved: tuple[object, ...] = ({}, {}, {})
        self._signature: tuple[int, ...] | None = None
        self._load()

    def refresh(self) -> None:
        """Load the file again if another process replaced it; only if read-only."""
        if self._read_only and self._current_signature() != self._signature:
            self._load()

    def save(self) -> None:
        """Replace the file if anything changed. Where that fails, the next call tries again."""
        if self._file is None or self._read_only:
            return
        state = (dict(self.rules), dict(self.roots), dict(self.repositories))
        if state == self._saved:
            return
        new_file = self._file.with_name(self._file.name + ".tmp")
        with suppress(OSError):  # A full disk: what was seen is still in memory.
            with new_file.open("w", encoding="ascii") as stream:
                json.dump(self._as_json(), stream)
                stream.flush()
                os.fsync(stream.fileno())
            new_file.replace(self._file)
            self._saved = state

    def _load(self) -> None:
        self._signature = self._current_signature()
        state: dict[str, Any] = {}
        if self._file is not None:
            with suppress(OSError, ValueError):
                state = json.loads(read_regular_file(self._file))
        if not isinstance(state, dict) or state.get("version") != _VERSION:
            return
        with suppress(KeyError, TypeError, AttributeError):
            self.rules = {
                _path(path): text.encode("latin-1") for path, text in state["rules"].items()
            }
            self.roots = {
                name: RootIdentity(
                    **{**seen, "path": _path(seen["path"]), "link": _path(seen["link"])}
                )
                for name, seen in state["roots"].items()
            }
            self.repositories = {
                _path(path): GitSettings(_path(seen["excludes_file"]), seen["ignores_case"])
                for path, seen in state["repositories"].items()
            }
            self._saved = (dict(self.rules), dict(self.roots), dict(self.repositories))

    def _as_json(self) -> dict[str, Any]:
        return {
            "version": _VERSION,
            "rules": {
                _text(path): stored.decode("latin-1")
                for path, rules in self.rules.items()
                if (stored := _without_secrets(rules)) is not None
            },
            "roots": {
                name: {**asdict(seen), "path": _text(seen.path), "link": _text(seen.link)}
                for name, seen in self.roots.items()
            },
            "repositories": {
                _text(path): {**asdict(seen), "excludes_file": _text(seen.excludes_file)}
                for path, seen in self.repositories.items()
            },
        }

    def _current_signature(self) -> tuple[int, ...] | None:
        try:
            status = os.stat(self._file or "")
        except OSError:
            return None
        return status.st_mtime_ns, status.st_ino, status.st_size


def _without_secrets(rules: bytes) -> bytes | None:
    """Return rules without their comments; None if a pattern holds a secret.

    Rules that are not stored are unknown after a restart: while their file cannot be read, nothing
    below it is indexed.
    """
    lines = [b"#" if line.startswith(b"#") else line for line in rules.split(b"\n")]
    stored = b"\n".join(lines)
    return None if redact(stored.decode("utf-8", "replace")).counts_by_kind else stored


def _text(path: str) -> str:
    return os.fsencode(path).decode("latin-1")


def _path(text: str) -> str:
    return os.fsdecode(text.encode("latin-1"))
