"""One table folder, two homes: one writes it, the other is refused."""

from __future__ import annotations

from pathlib import Path

import pytest

from anchord.errors import StoreError
from anchord.store.table_owner import OWNER_FILE, claim_table_folder


def home(base: Path, name: str) -> Path:
    """Make a home's catalog; return its data folder."""
    data = base / name / "data"
    data.mkdir(parents=True)
    (data / "state.sqlite").touch()
    return data


def claim(folder: Path, data: Path) -> None:
    """Claim a table's folder for a home."""
    claim_table_folder(folder, data, data / "state.sqlite")


def test_a_second_home_is_refused_by_name_and_the_first_goes_on(tmp_path: Path) -> None:
    one, other, table = home(tmp_path, "one"), home(tmp_path, "other"), tmp_path / "table"
    claim(table, one)
    with pytest.raises(StoreError, match=str(one)):
        claim(table, other)
    claim(table, one)


def test_the_table_of_a_home_that_is_gone_or_was_moved_can_be_claimed(tmp_path: Path) -> None:
    one, table = home(tmp_path, "one"), tmp_path / "table"
    claim(table, one)
    moved = one.rename(tmp_path / "moved")
    claim(table, moved)
    with pytest.raises(StoreError):
        claim(table, home(tmp_path, "third"))


def test_a_table_in_the_home_itself_needs_no_owner(tmp_path: Path) -> None:
    data = home(tmp_path, "one")
    claim(data / "lance", data)
    assert not (data / "lance" / OWNER_FILE).exists()


def test_a_link_in_place_of_the_owner_is_not_followed(tmp_path: Path) -> None:
    table, precious = tmp_path / "table", tmp_path / "precious"
    table.mkdir()
    precious.write_text("/nowhere")
    (table / OWNER_FILE).symlink_to(precious)
    with pytest.raises(OSError, match="symbolic"):
        claim(table, home(tmp_path, "one"))
    assert precious.read_text() == "/nowhere"
