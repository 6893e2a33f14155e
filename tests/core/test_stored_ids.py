"""Ids and checksums are stored: another value for the same input makes every index wrong."""

from __future__ import annotations

import pytest

from anchord.core.ids import DUE_MARK, make_doc_id, row_checksum, without_due_mark
from anchord.core.types import RootedPath


@pytest.mark.parametrize("stored", ["ab12", f"{DUE_MARK}ab12"])
def test_a_vector_key_has_no_mark_once_it_is_taken_off(stored: str) -> None:
    assert without_due_mark(stored) == "ab12"


@pytest.mark.parametrize(
    ("fields", "vector", "checksum"),
    [
        (["a", "b"], b"vector", -6486793621694698739),
        (["0"], b"", -7385090129395445675),
        (["2"], b"", 8905207672179893012),
    ],
)
def test_the_checksum_of_a_row_is_the_stored_one_and_fits_a_signed_column(
    fields: list[str], vector: bytes, checksum: int
) -> None:
    assert row_checksum(fields, vector) == checksum
    assert -(1 << 63) <= row_checksum(fields, vector) < 1 << 63


def test_the_id_of_a_file_is_the_stored_one() -> None:
    assert make_doc_id(RootedPath("notes", "a.md")) == "35b53fbc7564dc5b521e4484776cfdeb"
    assert make_doc_id(RootedPath("other", "a.md")) != make_doc_id(RootedPath("notes", "a.md"))
    assert make_doc_id(RootedPath("notes", "b.md")) != make_doc_id(RootedPath("notes", "a.md"))
