"""Numbers with their nouns."""

from __future__ import annotations

from anchord.core.counted import counted, is_or_are


def test_one_thing_has_the_singular() -> None:
    assert [counted(number, "file") for number in (0, 1, 2, 2_000)] == [
        "0 files",
        "1 file",
        "2 files",
        "2,000 files",
    ]
    assert [is_or_are(number) for number in (0, 1, 2)] == ["are", "is", "are"]
