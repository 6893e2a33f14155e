"""Every row of the five documents that the chunker answers to has a test whose name has its number.

`test_002_16_003_26_...` proves the rows 002.16 and 003.26.
"""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from anchord.config.strategies import STRATEGIES

TESTS = Path(__file__).parent
LAST_ROWS = {"000": 29, "001": 21, "002": 25, "003": 33, "004": 21}
"""Document -> the number of its last row; each begins with 1."""
_TEST = re.compile(r"^(?:async )?def (test_\w+)", re.MULTILINE)
_ROWS = re.compile(r"(?:^test|seed|(?<=\d))_(00\d)((?:_\d\d)+)(?=_)")


def rows_of(name: str) -> set[str]:
    """Return the rows that a test's name has."""
    return {
        f"{document}.{number}"
        for document, numbers in _ROWS.findall(name)
        for number in numbers.strip("_").split("_")
    }


def test_every_row_has_a_test_with_its_number() -> None:
    proven = {
        row
        for file in TESTS.rglob("test_*.py")
        for name in _TEST.findall(file.read_text("utf-8"))
        for row in rows_of(name)
    }
    rows = {
        f"{document}.{number:02}"
        for document, last in LAST_ROWS.items()
        for number in range(1, last + 1)
    }
    assert sorted(rows - proven) == []
    assert sorted(proven - rows) == []


@pytest.mark.parametrize(
    ("name", "rows"),
    [
        ("test_002_16_003_26_a_file", {"002.16", "003.26"}),
        ("test_seed_000_20_a_room", {"000.20"}),
        ("test_001_04_12_a_path", {"001.04", "001.12"}),
        ("test_a_window_of_800_characters", set()),
    ],
)
def test_a_name_has_these_rows(name: str, rows: set[str]) -> None:
    assert rows_of(name) == rows


def test_002_25_004_21_every_strategy_has_a_test_of_its_own() -> None:
    texts = [file.read_text("utf-8") for file in (TESTS / "chunking").rglob("test_*.py")]
    for strategy in STRATEGIES:
        assert any(f'"{strategy}"' in text for text in texts), strategy
