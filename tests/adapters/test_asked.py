"""What was asked for by commands: it comes back as it was, whatever the paths, and damage is told."""

from __future__ import annotations

from pathlib import Path

import pytest

from anchord.adapters.asked import Asked, load_asked, save_asked
from anchord.errors import StoreDamagedError
from anchord.model import Root

ROOT = Root("notes", "/home/ada/caf\udce9", "project", configured=False)


def test_nothing_was_asked_for_at_first(tmp_path: Path) -> None:
    asked = load_asked(tmp_path / "asked.json")
    assert (asked.roots, asked.paths) == ([], ())
    assert list(tmp_path.iterdir()) == []


def test_roots_and_paths_come_back_as_bytes_for_bytes(tmp_path: Path) -> None:
    file = tmp_path / "asked.json"
    save_asked(file, Asked().with_root(ROOT).with_path("/secret/\udcff").with_path("/a"))
    again = load_asked(file)
    assert again.roots == [ROOT]
    assert again.paths == ("/a", "/secret/\udcff")
    assert [path.name for path in tmp_path.iterdir()] == ["asked.json"]


def test_a_root_is_kept_once_and_taken_out_by_its_name() -> None:
    asked = Asked().with_root(ROOT).with_root(Root("notes", "/elsewhere", configured=False))
    assert [root.path for root in asked.roots] == ["/elsewhere"]
    assert asked.without_root("notes").roots == []
    assert asked.without_root("other") == asked


def test_a_path_is_kept_once_and_taken_out() -> None:
    asked = Asked().with_path("/a").with_path("/a")
    assert asked.paths == ("/a",)
    assert asked.without_path("/a").paths == ()


@pytest.mark.parametrize("spoiled", [b"", b"{", b'{"given": 3}', b"\xff"])
def test_a_damaged_file_is_told_and_not_taken_for_an_empty_one(tmp_path: Path, spoiled: bytes) -> None:
    (tmp_path / "asked.json").write_bytes(spoiled)
    with pytest.raises(StoreDamagedError):
        load_asked(tmp_path / "asked.json")
