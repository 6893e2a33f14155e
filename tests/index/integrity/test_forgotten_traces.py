"""What `forget` leaves in the log and in the files of recall: nothing that names the file."""

from __future__ import annotations

import errno
import json
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from anchord.core.types import RootedPath
from anchord.index.integrity.forgotten_traces import erase_traces

TALK = "1284c080-1111-4111-8111-000000000001"
GONE = "0123456789abcdef" * 2
KEPT = "fedcba9876543210" * 2
ORIGINS = [
    RootedPath("talks", f"app/{TALK}.jsonl"),
    RootedPath("talks", "/claude-code/q\u00e4"),
    RootedPath("talks", "a.md"),
]


@pytest.fixture
def home(tmp_path: Path) -> Any:  # noqa: ANN401 - as much of `Paths` as is used
    (tmp_path / "recall" / "sessions").mkdir(parents=True)
    return SimpleNamespace(data_folder=tmp_path, log_file=tmp_path / "anchord.log")


def test_names_and_ids_are_overwritten_and_everything_else_stays(home: Any) -> None:  # noqa: ANN401
    forgotten = f"/home/me/talks/app/{TALK}.jsonl"
    events: list[dict[str, object]] = [
        {"event": "file.handled", "path": ORIGINS[0].path, "chunks": 3},
        {"event": "file.handled", "path": ORIGINS[1].path},
        {"event": "file.handled", "path": "a.md"},
        {"event": "index.repaired", "what": f'`forget` of "{forgotten}" was interrupted'},
        {"event": "file.handled", "path": f"app/{TALK}/agent-1.jsonl"},
    ]
    others: list[dict[str, object]] = [
        {"event": "file.handled", "path": "data.md"},
        {"event": "file.handled", "path": "docs/a.md"},
        {"event": "file.handled", "path": f"app/{TALK[:-1]}2.jsonl"},
        {"event": "file.handled", "path": f"{forgotten}.bak"[:20]},
    ]
    lines = [json.dumps(each) for each in (*events, *others)]
    home.log_file.write_text("\n".join(lines))
    home.log_file.with_suffix(".log.1").write_text(lines[0])
    recall = home.data_folder / "recall"
    hit = json.dumps({"session": TALK, "hits": [ORIGINS[1].path]}, ensure_ascii=False)
    (recall / "log.jsonl").write_text(hit)
    (recall / "sessions" / "s").write_text(f"{GONE}\n{KEPT}\n")

    erase_traces(home, forgotten, ORIGINS, [GONE])

    text = home.log_file.read_text()
    assert text.split("\n")[len(events) :] == lines[len(events) :]
    assert len(text) == len("\n".join(lines))
    assert [json.loads(line)["event"] for line in text.split("\n")] == [
        str(each["event"]) for each in (*events, *others)
    ]
    for file in home.data_folder.rglob("*.*"):
        said = file.read_text()
        assert TALK not in said
        assert "q\u00e4" not in said
        assert "q\\u00e4" not in said
        assert '"a.md"' not in said
    assert (recall / "sessions" / "s").read_text() == f"{'*' * 32}\n{KEPT}\n"


def test_a_home_without_logs_has_no_traces(home: Any) -> None:  # noqa: ANN401
    erase_traces(home, "/home/me/a.md", ORIGINS, [GONE])
    assert sorted(each.name for each in home.data_folder.iterdir()) == ["recall"]


def test_a_log_that_cannot_be_written_is_told(
    home: Any,  # noqa: ANN401
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def fail(*_: object) -> None:
        raise PermissionError(errno.EACCES, "Permission denied")

    home.log_file.write_text("/home/me/a.md\n")
    monkeypatch.setattr(Path, "open", fail)
    assert erase_traces(home, "/home/me/a.md", ORIGINS, [GONE]) == [home.log_file]


def test_what_is_no_file_has_no_traces(home: Any) -> None:  # noqa: ANN401
    home.log_file.symlink_to("/dev/null")
    (home.data_folder / "recall" / "sessions" / "folder").mkdir(parents=True)
    assert erase_traces(home, "/home/me/a.md", ORIGINS, [GONE]) == []
