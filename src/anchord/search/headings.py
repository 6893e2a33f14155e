"""What a conversation is called, in words: `Fix the parser, project app, 3 March 2026`."""

from __future__ import annotations

import re
from collections.abc import Iterable
from datetime import datetime

_MAX_TITLE_CHARS = 80
_ELLIPSIS = "…"
_ENCODED_HOME = re.compile(r"^-(?:home|Users|[A-Za-z]--Users)-[^-]+-(?=.)")
"""How some programs name the folder of a project: its path with "-" in the place of each "/"."""
_WORKTREE_FOLDERS = frozenset({".worktrees", "worktrees", ".claude"})
_MONTHS = (
    "January", "February", "March", "April", "May", "June", "July", "August", "September",
    "October", "November", "December",
)  # fmt: skip


def conversation_heading(title: str, project: str, at: str) -> str:
    """Return the heading of a conversation's hit; what is not known is left out.

    Args:
        title: The session's title, or its first question; cut after 80 characters.
        project: The project's folder, as the transcript has it.
        at: When it was said: ISO 8601 in UTC, or "". The day is one of the local time zone.
    """
    name = project_name(project)
    parts = (title_line(title), f"project {name}" if name else "", _day(at))
    return ", ".join(filter(None, parts))


def best_title(title: str, first_questions: Iterable[str]) -> str:
    """Return a session's title; without one, the first question that is more than a command."""
    if title:
        return title
    asked = [question for question in first_questions if question.strip()]
    saying = (each for each in asked if len(each.split()) > 1 and not each.startswith("/"))
    return next(saying, asked[0] if asked else "")


def project_name(project: str) -> str:
    r"""Return the name of a project's folder.

    Args:
        project: A path with "/" or "\", or one that is encoded as a name, `-home-me-app`: of that
            the home folder is left out. Which "-" was a "/" in the rest cannot be known.
    """
    folders = [each for each in project.replace("\\", "/").split("/") if each]
    named = [each for each in folders if each not in _WORKTREE_FOLDERS] or folders
    if not named:
        return ""
    last = named[-1]
    if last.isdigit():  # The number of a worktree or a run: the folder above it has the name.
        return title_line("/".join(named[-2:]))
    return title_line(_ENCODED_HOME.sub("", last).lstrip("-") or last)


def folder_of_worktree(project: str) -> str:
    """Return the folder around `.worktrees/NAME` or `.claude/worktrees/NAME`; else the project."""
    before, found, _ = project.partition("/.worktrees/")
    if not found:
        before, _, _ = project.partition("/.claude/worktrees/")
    return before or project


def title_line(text: str) -> str:
    """Return a text in one line, cut between words after 80 characters."""
    line = " ".join(text.split())
    if len(line) <= _MAX_TITLE_CHARS:
        return line
    beginning = line[:_MAX_TITLE_CHARS]
    whole_words = beginning.rpartition(" ")[0] or beginning
    return f"{whole_words.rstrip(' ,;:')}{_ELLIPSIS}"


def _day(at: str) -> str:
    try:
        local = datetime.fromisoformat(at).astimezone()
    except (ValueError, OverflowError):
        return ""
    return f"{local.day} {_MONTHS[local.month - 1]} {local.year}"
