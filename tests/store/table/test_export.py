"""An export has the vectors that rows own, and null for the others."""

from __future__ import annotations

import io
import json
from array import array
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from pyarrow import parquet

from anchord.core.types import Row
from anchord.ipc.messages.chunks import ChunkAnswer
from anchord.store.table.export import export_jsonl, export_parquet
from anchord.store.table.table import LanceStore

NORTH, WEST = array("f", (0, 1)).tobytes(), array("f", (-1, 0)).tobytes()


def row(row_id: str) -> Row:
    return Row(
        id=row_id,
        doc_id="document",
        root="notes",
        path="a.md",
        kind="markdown",
        header_path="Guide",
        content_hash="hash",
        vector_key=f"key {row_id}",
        text="text",
        search_text="text",
    )


def describe(rows: Sequence[Row]) -> list[ChunkAnswer]:
    return [
        ChunkAnswer(
            id=each.id,
            text=each.text,
            root=each.root,
            path=each.path,
            kind=each.kind,
            header_path=(each.header_path,),
            section=each.header_path,
            content_hash=each.content_hash,
            vector_key=each.vector_key,
            depth=0,
            char_count=len(each.text),
            contains_code=False,
            contains_table=False,
            keywords=(),
            parent_id="document",
            parent_title=each.path,
        )
        for each in rows
    ]


def exported_records(store: LanceStore, form: str) -> list[dict[str, Any]]:
    """Return the records of an export of three rows."""
    output = io.BytesIO()
    write = {"jsonl": export_jsonl, "parquet": export_parquet}[form]
    assert list(write(store, describe, output, include_vectors=True)) == [3]
    output.seek(0)
    if form == "jsonl":
        return [json.loads(line) for line in output]
    return list(parquet.read_table(output).to_pylist())


@pytest.mark.parametrize("form", ["jsonl", "parquet"])
def test_a_row_without_its_own_vector_has_none_in_an_export(tmp_path: Path, form: str) -> None:
    store = LanceStore(str(tmp_path / "lance"), 2, "model")
    due = {"key provisional": NORTH, "key missing": b""}
    rows = [row("provisional"), row("missing"), row("own")]
    store.upsert(rows, {"key own": WEST}, due=due)
    records = exported_records(store, form)
    vectors = {record["id"]: record["vector"] for record in records}
    assert vectors == {"provisional": None, "missing": None, "own": [-1.0, 0.0]}
    assert {record["vector_key"] for record in records} == {each.vector_key for each in rows}


@pytest.mark.parametrize("form", ["jsonl", "parquet"])
def test_each_row_is_exported_with_the_vector_of_its_own_model(tmp_path: Path, form: str) -> None:
    store = LanceStore(str(tmp_path / "lance"), {"": 2, "0123abcd": 1}, "model")
    other = replace(row("other"), vector_key="0123abcd.key other")
    made = {"key own": WEST, "0123abcd.key other": array("f", [1.0]).tobytes()}
    store.upsert([row("own"), other, row("missing")], made, due={"key missing": b""})
    records = exported_records(store, form)
    vectors = {record["id"]: record["vector"] for record in records}
    assert vectors == {"own": [-1.0, 0.0], "other": [1.0], "missing": None}
