"""Two invented sessions of an assistant about the notes; the older one's transcript is deleted after it was indexed."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import NamedTuple

GONE = "5e2f7c1a-90b4-4d6e-8a37-1c0d9f4b2e61"
HERE = "b83d4f06-2c5b-47a9-9e1f-7d6a0c3e5f42"


class Turn(NamedTuple):
    """A question, its answer, and the file that was edited for it."""

    question: str
    answer: str
    edited: str = ""


_SESSIONS = (
    (
        GONE,
        41,
        (
            Turn(
                "The backup of the photos takes all night. What can we do?",
                "Most of it is the check of the whole repository after each run. restic can check a "
                "part of the data each time:\n\n```sh\nrestic check --read-data-subset=1/7\n```\n\n"
                "After a week everything was read once.",
            ),
            Turn(
                "Good. Write that down.",
                "We decided to check a seventh of the data each night, and all of it on the first "
                "Sunday of a month. I added it to the page about backups.",
                "ops/backups.md",
            ),
        ),
    ),
    (
        HERE,
        2,
        (
            Turn(
                "Why does the router lose the tunnel when the line drops?",
                "It keeps the old address until the lease ends. A shorter lease for the tunnel's "
                "interface solves that; I noted the setting.",
                "ops/router.md",
            ),
        ),
    ),
)


def write_sessions(home: Path, now: datetime | None = None) -> Path:
    """Write the sessions below a home folder; return the transcript that is to be deleted."""
    folder = home / ".claude" / "projects" / "-notes"
    folder.mkdir(parents=True)
    at = now or datetime.now(UTC)
    for session, days, turns in _SESSIONS:
        lines = _lines(session, at - timedelta(days=days), home / "notes", turns)
        text = "".join(f"{json.dumps(line)}\n" for line in lines)
        (folder / f"{session}.jsonl").write_text(text, "utf-8")
    return folder / f"{GONE}.jsonl"


def _lines(
    session: str, begin: datetime, project: Path, turns: Sequence[Turn]
) -> Iterator[dict[str, object]]:
    parent: str | None = None
    for number, turn in enumerate(turns):
        blocks: list[dict[str, object]] = [{"type": "text", "text": turn.answer}]
        if turn.edited:
            edit = {"file_path": str(project / turn.edited), "old_string": "a", "new_string": "b"}
            blocks.insert(0, {"type": "tool_use", "id": "t1", "name": "Edit", "input": edit})
        for kind, content in (("user", turn.question), ("assistant", blocks)):
            begin += timedelta(minutes=2)
            uuid = f"{session[:8]}-{number}-{kind}"
            yield {
                "type": kind,
                "uuid": uuid,
                "parentUuid": parent,
                "sessionId": session,
                "timestamp": begin.isoformat().replace("+00:00", "Z"),
                "cwd": str(project),
                "gitBranch": "main",
                "message": {"id": f"m-{uuid}", "role": kind, "content": content},
            }
            parent = uuid
