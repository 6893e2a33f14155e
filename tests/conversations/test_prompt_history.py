"""The sessions of which only a program's prompt history is left."""

from __future__ import annotations

import json
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path

import pytest

from anchord.core.types import Root
from anchord.sources.conversations.prompt_history import read_prompt_sessions
from anchord.sources.files.folder_files import MAX_FILE_BYTES, FolderFiles

GONE = "eeeeeeee-0000-4000-8000-000000000005"
AT_S = 1_750_000_000
PROJECT = "-home-me-app"


def typed(session: str = GONE, project: str = "/home/me/app", **fields: object) -> str:
    record = {"display": "Write it", "timestamp": AT_S * 1_000, "project": project}
    return json.dumps({**record, "sessionId": session, **fields}) + "\n"


def found(
    home: Path, root: Root | None = None, forgotten: Sequence[str] = (), folder: str = "projects"
) -> list[str]:
    """Return the ids of the sessions that are shown, of which the archive knows none."""
    (home / folder).mkdir(exist_ok=True)
    root = root or conversations(home, folder=folder)
    files = FolderFiles({root.name: root}, (), MAX_FILE_BYTES)
    files.set_forgotten_paths(forgotten)
    sessions = read_prompt_sessions([root], (), files.path_filter(), forgotten, str)
    return [each.name for each in sessions for _ in each.prompts]


def conversations(
    home: Path, exclude: Sequence[str] = (), folder: str = "projects", on_delete: str = "keep"
) -> Root:
    return Root(
        name="talks",
        path=str(home / folder),
        kind="conversations",
        exclude=tuple(exclude),
        on_delete=on_delete,
    )


@pytest.fixture
def home(tmp_path: Path) -> Path:
    (tmp_path / "history.jsonl").write_text(typed())
    return tmp_path


@pytest.mark.parametrize(
    "odd",
    [
        json.dumps({"display": "no time", "sessionId": GONE}),
        typed(timestamp=float("inf")),
        typed(timestamp=10**30),
        typed(session="../x"),
        json.dumps({"session_id": GONE, "text": "no time"}),
        "[]",
        "{torn",
    ],
)
def test_a_line_of_another_form_is_skipped(home: Path, odd: str) -> None:
    (home / "history.jsonl").write_text(f"{odd}\n{typed()}")
    assert found(home) == [GONE]


def test_a_session_that_the_rules_exclude_is_not_shown(home: Path) -> None:
    assert found(home) == [GONE]
    for pattern in (PROJECT, f"{PROJECT}/", f"{GONE}.jsonl", "*"):
        assert found(home, conversations(home, [pattern])) == []
    (home / "projects" / ".anchordignore").write_text(f"/{PROJECT}/\n")
    assert found(home) == []
    (home / "projects" / ".anchordignore").write_text("/-home-me-other/\n")
    assert found(home) == [GONE]
    (home / "projects" / PROJECT).mkdir()
    (home / "projects" / PROJECT / ".anchordignore").write_text("*\n")
    assert found(home) == []


def test_a_session_of_two_projects_is_not_shown_if_one_is_excluded(home: Path) -> None:
    (home / "history.jsonl").write_text(typed() + typed(project="/secret") + typed())
    assert found(home) == [GONE] * 3
    assert found(home, conversations(home, ["-secret"])) == []


def test_a_session_of_codex_that_the_rules_exclude_is_not_shown(tmp_path: Path) -> None:
    record = {"session_id": GONE, "ts": AT_S, "text": "hi"}
    (tmp_path / "history.jsonl").write_text(json.dumps(record))
    day = datetime.fromtimestamp(AT_S, UTC).astimezone()
    root = conversations(tmp_path, [f"{day:%Y/%m/%d}/"], "sessions")
    assert found(tmp_path, folder="sessions") == [GONE]
    assert found(tmp_path, root, folder="sessions") == []
    archived = conversations(tmp_path, [f"rollout-*{GONE}.jsonl"], "archived_sessions")
    assert found(tmp_path, archived, folder="archived_sessions") == []


def test_a_session_whose_transcript_exists_is_not_shown(home: Path) -> None:
    elsewhere = home / "projects" / "moved"
    elsewhere.mkdir(parents=True)
    (elsewhere / f"{GONE}.jsonl").touch()
    assert found(home) == []


def test_a_session_of_no_root_or_of_one_that_deletes_is_not_shown(home: Path) -> None:
    assert found(home, folder="transcripts") == []
    assert found(home, conversations(home, on_delete="delete")) == []


@pytest.mark.parametrize(
    "path",
    ["", "projects", "projects/moved", f"projects/{PROJECT}", f"projects/x/{GONE}.jsonl"],
)
def test_a_session_that_may_be_in_what_was_forgotten_is_not_shown(home: Path, path: str) -> None:
    assert found(home, forgotten=[str(home / path)]) == []


def test_what_was_forgotten_of_other_sessions_hides_none(home: Path) -> None:
    others = ["projects/-home-me-other", f"projects/{PROJECT}/another.jsonl"]
    assert found(home, forgotten=[str(home / path) for path in others]) == [GONE]
