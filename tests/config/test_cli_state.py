"""The state written by commands: every path survives a round trip, and damage is reported."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from anchord.config.cli_state import (
    CliState,
    is_cli_state_whole,
    load_cli_state,
    save_cli_state,
)
from anchord.core.types import Root
from anchord.errors import StoreDamagedError

ROOT = Root(name="notes", path="/home/ada/caf\udce9", kind="project", is_configured=False)


def test_nothing_was_asked_for_at_first(tmp_path: Path) -> None:
    asked = load_cli_state(tmp_path / "asked.json")
    assert (asked.given_roots, asked.forgotten_paths) == ([], ())
    assert list(tmp_path.iterdir()) == []


def test_roots_and_paths_come_back_as_bytes_for_bytes(tmp_path: Path) -> None:
    file = tmp_path / "asked.json"
    save_cli_state(
        file,
        CliState().with_root(ROOT).with_forgotten_path("/secret/\udcff").with_forgotten_path("/a"),
    )
    again = load_cli_state(file)
    assert again.given_roots == [ROOT]
    assert again.forgotten_paths == ("/a", "/secret/\udcff")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["asked-copy.json", "asked.json"]


@pytest.mark.parametrize("content", [None, "", "{no json", "[]"])
def test_its_copy_is_read_if_it_is_lost_or_damaged(tmp_path: Path, content: str | None) -> None:
    file = tmp_path / "asked.json"
    state = CliState().with_forgotten_path("/secret")
    save_cli_state(file, state)
    assert is_cli_state_whole(file)
    file.unlink()
    if content is not None:
        file.write_text(content)
    assert load_cli_state(file) == state
    assert not is_cli_state_whole(file)


def test_what_either_file_forgets_stays_forgotten(tmp_path: Path) -> None:
    file, copy = tmp_path / "asked.json", tmp_path / "asked-copy.json"
    older = CliState().with_root(ROOT).with_forgotten_path("/a")
    save_cli_state(file, older)
    content = file.read_bytes()
    save_cli_state(file, older.without_root(ROOT.name).with_forgotten_path("/b"))
    file.write_bytes(content)
    again = load_cli_state(file)
    assert (again.forgotten_paths, again.given_roots) == (("/a", "/b"), [ROOT])
    assert not is_cli_state_whole(file)
    copy.unlink()
    assert load_cli_state(file) == older
    save_cli_state(file, again.without_forgotten_path("/b"))
    assert load_cli_state(file).forgotten_paths == ("/a",)


def test_a_named_pipe_in_its_place_is_not_waited_for(tmp_path: Path) -> None:
    file = tmp_path / "asked.json"
    os.mkfifo(file)
    with pytest.raises(StoreDamagedError, match="is not a file"):
        load_cli_state(file)


def test_a_root_is_kept_once_and_taken_out_by_its_name() -> None:
    asked = (
        CliState()
        .with_root(ROOT)
        .with_root(Root(name="notes", path="/elsewhere", is_configured=False))
    )
    assert [root.path for root in asked.given_roots] == ["/elsewhere"]
    assert asked.without_root("notes").given_roots == []
    assert asked.without_root("other") == asked


def test_a_path_is_kept_once_and_taken_out() -> None:
    asked = CliState().with_forgotten_path("/a").with_forgotten_path("/a")
    assert asked.forgotten_paths == ("/a",)
    assert asked.without_forgotten_path("/a").forgotten_paths == ()


@pytest.mark.parametrize("spoiled", [b"", b"{", b'{"given": 3}', b"\xff"])
def test_a_damaged_file_is_reported_and_not_taken_for_an_empty_one(
    tmp_path: Path, spoiled: bytes
) -> None:
    (tmp_path / "asked.json").write_bytes(spoiled)
    with pytest.raises(StoreDamagedError):
        load_cli_state(tmp_path / "asked.json")
