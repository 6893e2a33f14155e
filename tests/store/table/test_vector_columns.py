"""A table with the vectors of two models: a column for each, and no row in both."""

from __future__ import annotations

from array import array
from pathlib import Path

import pytest
from contracts.test_store import ANY, row

from anchord.core.types import Row, Vector
from anchord.errors import DimensionMismatchError, NewerStateError
from anchord.store.table import connection
from anchord.store.table.compaction import CompactionRequest, compact_table
from anchord.store.table.table import LanceStore
from anchord.store.table.vector_columns import tag_of_column, vector_column, vector_columns
from anchord.store.table.versions import SCHEMA_VERSION, SEVERAL_MODELS_VERSION

TAG = "0123abcd"
BOTH = {"": 4, TAG: 2}
MAIN, FURTHER = array("f", [1, 0, 0, 0]).tobytes(), array("f", [0, 1]).tobytes()


def of_main(row_id: str) -> Row:
    return row(row_id, vector_key=f"main {row_id}")


def of_further(row_id: str) -> Row:
    return row(row_id, vector_key=f"{TAG}.further {row_id}")


def vectors(*rows: Row) -> dict[str, Vector]:
    return {each.vector_key: FURTHER if each.vector_key.startswith(TAG) else MAIN for each in rows}


@pytest.fixture
def store(tmp_path: Path) -> LanceStore:
    """Return a table with a row of each model."""
    made = LanceStore(str(tmp_path / "lance"), BOTH, "model")
    rows = [of_main("1"), of_further("2")]
    made.upsert(rows, vectors(*rows))
    return made


def found(store: LanceStore, vector: Vector, model_tag: str) -> list[str]:
    return [each.id for each in store.search_by_vector(vector, 5, ANY, model_tag)]


def test_each_search_compares_the_vectors_of_one_model(store: LanceStore) -> None:
    assert found(store, MAIN, "") == ["1"]
    assert found(store, FURTHER, TAG) == ["2"]
    assert found(store, FURTHER, "ffffffff") == [], "no such model"


def test_a_row_moves_to_the_column_of_its_model(store: LanceStore) -> None:
    rows = [of_further("1"), of_main("2")]
    store.upsert(rows, vectors(*rows))
    assert (found(store, MAIN, ""), found(store, FURTHER, TAG)) == (["2"], ["1"])
    assert store.vectors_by_id(["1", "2"]) == {"1": FURTHER, "2": MAIN}
    assert list(store.find_corrupt_ids(["1", "2"])) == []


def test_a_vector_that_is_made_later_is_in_the_column_of_its_model(store: LanceStore) -> None:
    rows = [of_main("3"), of_further("4")]
    store.upsert(rows, {}, due=dict.fromkeys(vectors(*rows), b""))
    assert sorted(store.due_ids()) == ["3", "4"]
    made = vectors(*rows)
    store.set_vectors({each.id: (each.vector_key, made[each.vector_key]) for each in rows})
    assert sorted(found(store, MAIN, "")) == ["1", "3"]
    assert sorted(found(store, FURTHER, TAG)) == ["2", "4"]
    assert store.count_due() == 0
    assert store.vectors_by_key(list(made)) == made
    assert list(store.find_corrupt_ids(["1", "2", "3", "4"])) == []


def test_compaction_keeps_both(store: LanceStore) -> None:
    request = CompactionRequest(
        dataset=store.dataset_uri,
        merge=True,
        kept_s=0.0,
    )
    assert compact_table(request) == []
    store.refresh(clear_cache=True)
    assert (found(store, MAIN, ""), found(store, FURTHER, TAG)) == (["1"], ["2"])


def test_a_writer_must_name_the_models_of_the_table_and_a_reader_only_the_main_one(
    store: LanceStore,
) -> None:
    for others in (4, {"": 4, TAG: 3}, {"": 4, "ffffffff": 2}, {"": 2, TAG: 2}):
        with pytest.raises(DimensionMismatchError):
            LanceStore(store.uri, others, "model")
    reader = LanceStore(store.uri, 4, "", read_only=True)
    assert found(reader, FURTHER, TAG) == ["2"]


def test_only_a_table_of_several_models_has_another_version(
    store: LanceStore, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert store.schema_version == SEVERAL_MODELS_VERSION
    one = LanceStore(str(tmp_path / "one"), 4, "model")
    assert (one.schema_version, one.vector_columns) == (SCHEMA_VERSION, ["vector"])
    monkeypatch.setattr(connection, "SEVERAL_MODELS_VERSION", SCHEMA_VERSION)
    with pytest.raises(NewerStateError):
        LanceStore(store.uri, BOTH, "model")


def test_a_column_has_the_name_of_its_model() -> None:
    assert (vector_column(""), vector_column(TAG)) == ("vector", f"vector_{TAG}")
    assert (tag_of_column("vector"), tag_of_column(f"vector_{TAG}")) == ("", TAG)
    names = ["id", "vector_key", "vector", f"vector_{TAG}", "vector_other", "vectors"]
    assert vector_columns(names) == ["vector", f"vector_{TAG}"]
