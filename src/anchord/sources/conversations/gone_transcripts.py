"""Decides of which sessions in a prompt history the transcripts are gone, and may be shown.

A prompt history contains every session, also those that a user excluded or had forgotten. Where the
transcript was follows from the session, so the rules of its root apply to it still.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import datetime

from anchord.config.roots import covers, find_root
from anchord.core.ports import PathFilter
from anchord.core.types import Root, RootedPath

_TRANSCRIPT_SUFFIXES = (".jsonl", ".zst")


@dataclass(frozen=True, slots=True, kw_only=True)
class PromptSource:
    """The session of a prompt, as a history names it."""

    program: str
    """Such as `claude-code`."""
    session: str
    """The session's id."""
    project: str
    """Its folder; "" if the history does not say."""
    at: str
    """When the session's first prompt was typed: ISO 8601 in UTC."""


@dataclass(slots=True, kw_only=True)
class GoneTranscripts:
    """Knows the transcripts of a program that exist, and the rules for the others."""

    home: str
    """Absolute path of the folder that contains the prompt history."""
    roots: Sequence[Root]
    """The roots of conversations."""
    match: PathFilter
    """Applies the rules of the roots."""
    forgotten_paths: Sequence[str]
    """Absolute paths that `forget` deleted."""
    _names: str | None = field(default=None, init=False)

    def may_show(self, source: PromptSource) -> bool:
        """Return whether a session's transcript is gone, and no rule keeps it out of the index.

        A session in no root is kept out, and one in a root that deletes with the transcript.
        """
        places = [
            found
            for path in _transcript_paths(self.home, source)
            if (found := find_root(self.roots, path))
        ]
        return (
            bool(places)
            and not self._is_forgotten(source)
            and all(
                root.on_delete == "keep" and self.match(RootedPath(root.name, inside)).is_included
                for root, inside in places
            )
            and source.session not in self._names_on_disk()
        )

    def _is_forgotten(self, source: PromptSource) -> bool:
        """Return whether a session may be in a file or folder that was forgotten."""
        paths = _transcript_paths(self.home, source)
        for forgotten in self.forgotten_paths:
            if not (covers(self.home, forgotten) or covers(forgotten, self.home)):
                continue
            if source.session in forgotten or any(covers(forgotten, path) for path in paths):
                return True
            # A transcript can have been moved to a folder whose name says nothing.
            inside = os.path.relpath(forgotten, self.home).split("/")
            is_project = source.program == "claude-code" and inside[1:2] and inside[1][0] == "-"
            if not is_project and not forgotten.endswith(_TRANSCRIPT_SUFFIXES):
                return True
        return False

    def _names_on_disk(self) -> str:
        """Return the names of all files in the roots of this program, one a line."""
        if self._names is None:
            tops = [root.path for root in self.roots if covers(self.home, root.path)]
            walked = (entry for top in tops for entry in os.walk(top))
            self._names = "\n".join(name for _, _, names in walked for name in names)
        return self._names


def _transcript_paths(home: str, source: PromptSource) -> list[str]:
    """Return where a program writes the transcript of a session, and where it moves it to."""
    if source.program == "claude-code":
        folder = "".join(
            each if each.isascii() and each.isalnum() else "-" for each in source.project
        )
        return [os.path.join(home, "projects", folder, f"{source.session}.jsonl")]
    began = datetime.fromisoformat(source.at).astimezone()
    name = f"rollout-{began:%Y-%m-%dT%H-%M-%S}-{source.session}.jsonl"
    return [f"{home}/sessions/{began:%Y/%m/%d}/{name}", f"{home}/archived_sessions/{name}"]
