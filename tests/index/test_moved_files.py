"""A file that moved gets its rows from those at its old path: they equal what chunking it there gives."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from unittest import mock

import pytest
from index.test_indexer import World
from index.test_reconcile import RECIPE

from anchord.chunking import chunker
from anchord.config.schema import RoomConfig
from anchord.core.ports import VectorLookup
from anchord.core.types import Action, FileOutcome, Problem, RootedPath
from anchord.index.indexer import Indexer
from anchord.index.topics import OwnRooms

MARKDOWN = "\n\nWords before.\n\n" + "".join(
    f"# Part {part}\n\n"
    + "".join(f"Line {line} of the part.\n\n" for line in range(30))
    + f"## Below {part}\n\n```python\nx = 1\n```\n\nThe same words.\n\n"
    for part in range(4)
)
CODE = '"""Code."""\n\n' + "".join(
    f"def work_{number}(given):\n" + "    given += 1\n" * 20 + "    return given\n\n\n"
    for number in range(6)
)
REPEATED = "The same words.\n\n---\n\n" * 40
GERMAN = "Die Häuser und die Bäume sind nicht auf dem Berg.\n\n" * 5
FILES = {
    "old/guide.md": MARKDOWN,
    "old/code.py": CODE,
    "old/repeated.md": REPEATED,
    "old/german.txt": GERMAN,
    "old/one.txt": "A line without an end " * 200,
    "old/Makefile": "all:\n\techo done\n",
}


@pytest.fixture
def chunked() -> Iterator[mock.Mock]:
    with mock.patch(
        "anchord.index.rows.split_into_chunks", side_effect=chunker.split_into_chunks
    ) as counted:
        yield counted


def indexed(*names: str, texts: dict[str, str] = FILES, recipe: object = RECIPE) -> World:
    """Index files afresh."""
    world = World()
    if recipe is not RECIPE:
        world.indexer = Indexer(world.dependencies, world.count, recipe)  # type: ignore[arg-type]
    for name in names or texts:
        world.files.put(RootedPath("r", name), texts[name])
    world.index(*world.files.contents)
    return world


def move(world: World, names: dict[str, str]) -> list[FileOutcome]:
    """Move files, and index each new path before its old one, as the work queue does."""
    paths = []
    for old, new in names.items():
        before, after = RootedPath("r", old), RootedPath("r", new)
        world.files.contents[after] = world.files.contents[before]
        world.files.put(after, world.files.contents[before].decode())
        world.files.remove(before)
        paths += [after, before]
    gone = [RootedPath("r", old) for old in names]
    return list(world.indexer.index(paths, confirmed_gone=gone))


def rows_of(world: World) -> dict[str, object]:
    return dict(world.store.table)


def records_of(world: World) -> dict[RootedPath, object]:
    return {path: file.known.chunks for path, file in world.catalog.files.items()}


def test_a_moved_folder_is_as_if_indexed_afresh_and_nothing_is_chunked(chunked: mock.Mock) -> None:
    world = indexed()
    chunked.reset_mock()
    names = {name: name.replace("old/", "new/deeper/") for name in FILES}
    outcomes = move(world, names)
    assert chunked.call_count == 0
    assert {each.action for each in outcomes} == {Action.INDEXED, Action.REMOVED}
    assert sum(each.embedded for each in outcomes) == 0
    fresh = indexed(texts={names[name]: text for name, text in FILES.items()})
    assert rows_of(world) == rows_of(fresh)
    assert records_of(world) == records_of(fresh)


@pytest.mark.parametrize(
    "new", ["guide.md", "roadmap.md", "die-haeuser-und-wege/guide.md", "naïve/Führer und Wege.md"]
)
def test_its_room_and_its_search_text_are_those_of_the_new_path(
    new: str, chunked: mock.Mock
) -> None:
    world = indexed("old/guide.md")
    chunked.reset_mock()
    move(world, {"old/guide.md": new})
    assert chunked.call_count == 0
    assert rows_of(world) == rows_of(indexed(texts={new: MARKDOWN}))


def test_own_rooms_are_those_of_the_new_path(chunked: mock.Mock) -> None:
    rooms = OwnRooms((RoomConfig(name="kitchen", keywords=("guide",), paths=("new/**",)),))
    recipe = replace(RECIPE, own_rooms=rooms)
    world = indexed("old/german.txt", recipe=recipe)
    chunked.reset_mock()
    move(world, {"old/german.txt": "new/german.txt"})
    assert chunked.call_count == 0
    assert {row.room for row, _ in world.store.table.values()} == {"kitchen"}


def test_another_suffix_or_another_language_is_chunked(chunked: mock.Mock) -> None:
    for old, new in {"old/guide.md": "old/guide.txt", "old/Makefile": "old/Dockerfile"}.items():
        world = indexed(old)
        chunked.reset_mock()
        move(world, {old: new})
        assert chunked.call_count == 1
        assert rows_of(world) == rows_of(indexed(texts={new: FILES[old]}))


def test_a_heading_that_reads_like_two_is_chunked(chunked: mock.Mock) -> None:
    text = "# One > two\n\nWords.\n"
    world = indexed(texts={"a.md": text})
    chunked.reset_mock()
    move(world, {"a.md": "b.md"})
    assert chunked.call_count == 1
    assert rows_of(world) == rows_of(indexed(texts={"b.md": text}))


def test_rows_that_differ_from_the_catalog_are_not_taken_over(chunked: mock.Mock) -> None:
    world = indexed("old/code.py")
    row_id, (row, vector) = next(iter(world.store.table.items()))
    world.store.table[row_id] = (replace(row, text="damaged"), vector)
    chunked.reset_mock()
    move(world, {"old/code.py": "new/code.py"})
    assert chunked.call_count == 1
    assert rows_of(world) == rows_of(indexed(texts={"new/code.py": CODE}))


def test_rows_that_lack_their_vector_are_not_taken_over(chunked: mock.Mock) -> None:
    world = indexed("old/code.py")
    row_id, (row, _) = next(iter(world.store.table.items()))
    world.store.table[row_id] = (row, b"")
    chunked.reset_mock()
    move(world, {"old/code.py": "new/code.py"})
    assert chunked.call_count == 1
    assert rows_of(world) == rows_of(indexed(texts={"new/code.py": CODE}))


def test_a_file_with_a_problem_is_chunked_again(chunked: mock.Mock) -> None:
    world = indexed("old/code.py")
    file = world.catalog.files[RootedPath("r", "old/code.py")]
    file.known = file.known._replace(problem=Problem("its parser crashed", is_partial=True))
    chunked.reset_mock()
    move(world, {"old/code.py": "new/code.py"})
    assert chunked.call_count == 1


def test_of_two_copies_of_a_moved_file_one_is_chunked(chunked: mock.Mock) -> None:
    world = indexed("old/code.py")
    world.files.put(RootedPath("r", "new/copy.py"), CODE)
    chunked.reset_mock()
    copy, moved = RootedPath("r", "new/copy.py"), {"old/code.py": "new/code.py"}
    gone = RootedPath("r", "old/code.py")
    world.files.put(RootedPath("r", "new/code.py"), CODE)
    world.files.remove(gone)
    paths = [RootedPath("r", new) for new in moved.values()]
    list(world.indexer.index([*paths, copy, gone], confirmed_gone=[gone]))
    assert chunked.call_count == 1
    texts = {"new/code.py": CODE, "new/copy.py": CODE}
    assert rows_of(world) == rows_of(indexed(texts=texts))


def test_without_a_confirmed_deletion_nothing_is_taken_over(chunked: mock.Mock) -> None:
    world = indexed("old/code.py")
    world.files.put(RootedPath("r", "new/code.py"), CODE)
    chunked.reset_mock()
    world.index(RootedPath("r", "new/code.py"), RootedPath("r", "old/code.py"))
    assert chunked.call_count == 1


def test_a_vector_that_is_gone_at_the_commit_is_made_later() -> None:
    world = indexed("old/code.py")
    with (
        mock.patch.object(world.cache, "get", return_value={}),
        mock.patch.object(world.store, "look_up_vectors", return_value=VectorLookup({}, {})),
    ):
        outcomes = move(world, {"old/code.py": "new/code.py"})
    written = len(world.store.table)
    assert [each.due for each in outcomes] == [written, 0]
    assert len(world.store.due_ids()) == written


def test_its_vectors_stay_in_the_table_and_are_not_cached() -> None:
    world = indexed("old/code.py")
    move(world, {"old/code.py": "new/code.py"})
    assert world.cache.kept == {}


def test_redacted_words_decide_the_room_as_they_do_in_a_new_file(chunked: mock.Mock) -> None:
    recipe = replace(RECIPE, redaction_identity="rules")
    text = "Deploy with the api token ghp_0123456789abcdefghijABCDEFGHIJ012345 now.\n"
    world = indexed("a/a.txt", texts={"a/a.txt": text}, recipe=recipe)
    chunked.reset_mock()
    move(world, {"a/a.txt": "a.txt"})
    assert chunked.call_count == 0
    assert rows_of(world) == rows_of(indexed(texts={"a.txt": text}, recipe=recipe))
