"""A writer that dies between any two steps: the next start repairs the index and embeds nothing twice."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from scenarios.conftest import Index
from scenarios.test_edits import guide

from anchord.core.types import RootedPath

STEPS = (
    ("catalogue", "save_intents", "before"),
    ("catalogue", "save_intents", "after"),
    ("store", "upsert", "before"),
    ("store", "upsert", "after"),
    ("vanished", "put", "before"),
    ("store", "delete_rows", "before"),
    ("store", "delete_rows", "after"),
    ("catalogue", "confirm_updates", "before"),
    ("catalogue", "confirm_updates", "after"),
)


class Killed(BaseException):
    """Simulates the end of the process: nothing may catch it."""


def kill_at(index: Index, target: str, method: str, moment: str) -> None:
    """Make one step of the commit kill the writer."""
    thing = getattr(index, target)
    real: Callable[..., Any] = getattr(thing, method)

    def killed(*args: Any, **kwargs: Any) -> None:  # noqa: ANN401 - any method
        if moment == "after":
            real(*args, **kwargs)
        raise Killed

    setattr(thing, method, killed)


def restarted(index: Index) -> Index:
    index.close()
    again = Index(index.base, embedder=index.embedder)
    again.sync()
    doubtful = again.indexer.delete_stray_rows()
    list(again.indexer.index(doubtful))
    return again


@pytest.mark.parametrize(("target", "method", "moment"), STEPS)
def test_f1_a_kill_at_any_step_of_a_commit_converges(
    tmp_path: Path, target: str, method: str, moment: str
) -> None:
    index = Index(tmp_path)
    index.write("guide.md", guide())
    index.write("gone.md", "# Gone\n\nSoon.\n")
    index.write("moved.md", "# Moved\n\nElsewhere.\n")
    index.sync()
    (index.folder / "gone.md").unlink()
    (index.folder / "moved.md").rename(index.folder / "there.md")
    index.write("guide.md", guide().replace("chunks3word4", "chunks three"))
    kill_at(index, target, method, moment)
    with pytest.raises(Killed):
        index.sync()
    again = restarted(index)
    assert not again.verify().differences
    again.close()


def test_f1_what_was_committed_before_a_kill_is_not_embedded_again(tmp_path: Path) -> None:
    index = Index(tmp_path)
    for n in range(60):
        index.write(
            f"{n:02}.md",
            guide().replace("word", f"word{n}x") if n % 20 == 0 else f"# Note {n}\n\nText {n}.\n",
        )
    real, calls = index.store.upsert, 0

    def second_upsert_kills(*args: Any) -> None:  # noqa: ANN401 - replaces the method
        nonlocal calls
        calls += 1
        if calls == 2:
            raise Killed
        real(*args)

    index.store.upsert = second_upsert_kills  # type: ignore[assignment, method-assign] # the fault
    with pytest.raises(Killed):
        index.sync()
    committed = index.store.count_rows()
    assert committed > 0
    before = index.embedder.embedded
    again = restarted(index)
    assert again.embedder.embedded - before == again.store.count_rows() - committed
    assert not again.verify().differences
    again.close()


def test_f6_a_catalogue_that_was_lost_is_rebuilt_without_embedding(tmp_path: Path) -> None:
    index = Index(tmp_path)
    index.write("guide.md", guide())
    index.write("gone.md", "# Gone\n\nIts row must not stay.\n")
    index.sync()
    index.close()
    for file in tmp_path.glob("state.sqlite*"):
        file.unlink()
    (index.folder / "gone.md").unlink()
    before = index.embedder.embedded
    again = restarted(index)
    assert again.embedder.embedded == before
    assert not again.verify().differences
    again.close()


def test_f6_a_table_that_lost_and_gained_rows_is_repaired_by_the_audit(tmp_path: Path) -> None:
    index = Index(tmp_path)
    index.write("guide.md", guide())
    index.sync()
    ids = sorted(index.store.all_ids())
    stranger = index.store.get_rows(ids[:1])[0]
    vectors = index.store.vectors_by_key_of_rows(ids[:1])
    index.store.delete_rows(ids[3:6])
    index.store.upsert([type(stranger)(**{**_fields(stranger), "id": "f" * 32})], vectors)
    assert {str(d.kind) for d in index.verify().differences} == {"missing", "extra"}
    again = restarted(index)
    assert not again.verify().differences
    again.close()


def test_f6_a_table_that_went_back_to_an_older_text_under_the_same_id_is_repaired_by_the_audit(
    tmp_path: Path,
) -> None:
    index = Index(tmp_path)
    index.write("note.md", "# Note\n\nRemember the milk.\n")
    index.sync()
    (older,) = index.store.get_rows(index.store.all_ids())
    index.write("note.md", "# Note  \n\nRemember the milk.\n")
    index.sync()
    index.store.upsert([older], index.store.vectors_by_key_of_rows([older.id]))
    assert {str(d.kind) for d in index.verify().differences} == {"text"}
    again = restarted(index)
    assert not again.verify().differences
    again.close()


def test_an_embedder_that_fails_leaves_nothing_half_done(tmp_path: Path) -> None:
    index = Index(tmp_path)
    index.write("guide.md", guide())
    index.sync()
    index.write("guide.md", guide().replace("chunks3word4", "chunks three"))
    kill_at(index, "embedder", "embed", "before")
    with pytest.raises(Killed):
        index.sync()
    known = index.catalogue.get_record(RootedPath("tree", "guide.md"))
    assert known is not None
    assert known.is_confirmed
    index.close()


def _fields(row: Any) -> dict[str, Any]:  # noqa: ANN401 - a slotted dataclass
    return {name: getattr(row, name) for name in row.__slots__}
