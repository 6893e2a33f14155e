"""The sessions of which only a program's prompt history is left."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from anchord.sources.conversations.prompt_history import read_prompt_sessions

GONE = "eeeeeeee-0000-4000-8000-000000000005"


def typed(session: str = GONE, project: str = "/home/me/app", **fields: object) -> str:
    record = {"display": "Write it", "timestamp": 1_750_000_000_000, "project": project}
    return json.dumps({**record, "sessionId": session, **fields}) + "\n"


@pytest.mark.parametrize(
    "odd",
    [
        json.dumps({"display": "no time", "sessionId": GONE}),
        typed(timestamp=float("inf")),
        json.dumps({"session_id": GONE, "text": "no time"}),
        "[]",
        "{torn",
    ],
)
def test_a_line_of_another_form_is_skipped(tmp_path: Path, odd: str) -> None:
    (tmp_path / "projects").mkdir()
    (tmp_path / "history.jsonl").write_text(f"{odd}\n{typed()}")
    (found,) = read_prompt_sessions([str(tmp_path / "projects")], (), (), str)
    assert (found.name, len(found.prompts)) == (GONE, 1)
