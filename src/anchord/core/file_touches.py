"""Whether an exchange changed or used a file, from what its transcript says."""

from __future__ import annotations

import posixpath
import re
from collections.abc import Iterable
from dataclasses import dataclass
from typing import NamedTuple


class Touch(NamedTuple):
    """How an exchange names a file."""

    file: str
    """As it is named."""
    is_edit: bool
    """False if only a tool call names it."""
    is_elsewhere: bool
    """Whether it is in another worktree or clone."""


@dataclass(frozen=True, slots=True)
class TouchedFile:
    """A file that exchanges are asked for."""

    path: str
    """Absolute, normalised."""
    inside: str
    """Its path in its repository; "" if only the very path counts."""

    @property
    def name(self) -> str:
        """The last part of its path: whatever names the file contains it."""
        return posixpath.basename(self.path)

    def find_touch(
        self, files: Iterable[str], tools: Iterable[str], project: str, *, is_same_project: bool
    ) -> Touch | None:
        """Return how an exchange names the file; an edit rather than a tool call.

        Args:
            files: The files that the exchange changed, absolute or relative to the project.
            tools: Its tool calls, one line each.
            project: The folder that its conversation is about, or another name of it.
            is_same_project: Whether that is the repository of the file: only then a file of the
                same path in another folder is the same file.
        """
        for file in files:
            absolute = self._absolute(file, project)
            if absolute == self.path:
                return Touch(file, is_edit=True, is_elsewhere=False)
            if is_same_project and self._is_inside(absolute):
                return Touch(file, is_edit=True, is_elsewhere=True)
        for tool in tools:
            if self.name not in tool:
                continue
            for word in re.split(r"[\s'\"`=:;,()<>|&]+", tool):
                absolute = self._absolute(word, project)
                if absolute == self.path:
                    return Touch(word, is_edit=False, is_elsewhere=False)
                if is_same_project and self._is_inside(absolute):
                    return Touch(word, is_edit=False, is_elsewhere=True)
        return None

    def _absolute(self, file: str, project: str) -> str:
        slashed = file.replace("\\", "/")
        return posixpath.normpath(posixpath.join(project, slashed)) if slashed else ""

    def _is_inside(self, absolute: str) -> bool:
        return bool(self.inside) and f"/{absolute}".endswith(f"/{self.inside}")
