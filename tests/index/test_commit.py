"""One commit: vectors are reused, made or kept, in an order that a crash or an interruption cannot harm."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

import pytest
from fakes import FakeCatalogue, FakeStore, FakeVanished

from anchord.core.ids import make_doc_id
from anchord.core.ports import IndexerDependencies
from anchord.core.types import (
    NO_FINGERPRINT,
    ChunkDiff,
    ChunkRecord,
    FileRecord,
    FileUpdate,
    Problem,
    RootedPath,
    Row,
    Vector,
)
from anchord.errors import EmbedderError
from anchord.index import commit as module
from anchord.index.commit import CommitResult, Committer, with_unembeddable_lines
from anchord.index.heartbeat import MODEL_STEP_TIMEOUT_S

FILE = RootedPath("r", "a.md")
CRASHES = "crash"


def vector_of(text: str) -> Vector:
    return bytes(8) if text == CRASHES else text.encode().ljust(8, b"x")[:8]


class Model:
    """An embedder of two numbers that makes two vectors a batch."""

    def __init__(self) -> None:
        """Begin with a model that makes 100 vectors a second."""
        self.dimension = 2
        self.is_immediate = False
        self.is_prepared = True
        self.preparations = 0
        self.texts_per_second = 100.0
        self.embedded: list[str] = []
        self.fails_after = 10**9

    def prepare_in_background(self) -> None:
        """Count the calls while the model is not prepared."""
        self.preparations += not self.is_prepared

    def embed_batches(self, texts: Sequence[str]) -> Iterator[Mapping[int, Vector]]:
        """Embed texts."""
        for start in range(0, len(texts), 2):
            if len(self.embedded) >= self.fails_after:
                raise EmbedderError("the model crashed", "")
            self.embedded += texts[start : start + 2]
            numbers = range(start, min(start + 2, len(texts)))
            yield {number: vector_of(texts[number]) for number in numbers}


class Recorded:
    """Records the order in which a thing's methods are called."""

    def __init__(self, inner: object, calls: list[str], *names: str) -> None:
        """Record only some methods."""
        self._inner, self._calls, self._names = inner, calls, names

    def __getattr__(self, name: str) -> Any:  # noqa: ANN401 - any method
        """Return the method; record its name."""
        if name in self._names:
            self._calls.append(name)
        return getattr(self._inner, name)


class Commits:
    """A committer over fakes."""

    def __init__(self) -> None:
        """Begin with an empty table."""
        self.store, self.catalog, self.cache = FakeStore(), FakeCatalogue(), FakeVanished()
        self.model, self.beats = Model(), list[float]()
        self.calls: list[str] = []
        self.committer = self.make()

    def make(self) -> Committer:
        """Give the committer of a new process."""
        named = ("save_intents", "upsert", "delete_rows", "confirm_updates", "delete")
        store: Any = Recorded(self.store, self.calls, *named)
        catalog: Any = Recorded(self.catalog, self.calls, *named)
        cache: Any = Recorded(self.cache, self.calls, *named)
        model: Any = self.model
        dependencies = IndexerDependencies(
            files=object(),  # type: ignore[arg-type]
            catalog=catalog,
            store=store,
            embedder=model,
            vector_cache=cache,
            clock=lambda: 77,
            heartbeat=self.beats.append,
        )
        return Committer(dependencies)

    def __call__(self, *updates: FileUpdate, stops: bool = False) -> CommitResult | None:
        """Commit updates; forget the calls before."""
        self.calls.clear()
        self.beats.clear()
        return self.committer.commit(updates, lambda: stops)


@pytest.fixture
def commit() -> Commits:
    return Commits()


def row(id_: str, text: str, file: RootedPath = FILE) -> Row:
    return Row(
        id=id_, doc_id=make_doc_id(file), root=file.root, path=file.path, kind="prose",
        header_path="", content_hash="", vector_key=f"key-of-{text}", text=text, search_text=text,
    )  # fmt: skip


def chunk(id_: str, vector_key: str, start_line: int, end_line: int) -> ChunkRecord:
    return ChunkRecord(
        chunk_id=id_, vector_key=vector_key, row_hash="", start_line=start_line, end_line=end_line
    )


def update(
    added: Sequence[Row] = (),
    changed: Sequence[Row] = (),
    removed: Sequence[str] = (),
    *,
    file: RootedPath = FILE,
    forgets: bool = False,
) -> FileUpdate:
    written = (*added, *changed)
    chunks = tuple(
        chunk(each.id, each.vector_key, number, number + 1)
        for number, each in enumerate(written, 1)
    )
    record = FileRecord(NO_FINGERPRINT, 1, "digest", "recipe", is_confirmed=True, chunks=chunks)
    return FileUpdate(
        origin=file,
        new_record=record,
        diff=ChunkDiff(
            added=tuple(added), changed=tuple(changed), removed=tuple(removed), shifted=0, kept=0
        ),
        texts_to_embed=tuple({each.vector_key: each.text for each in written}.items()),
        reason="new",
        forgets_vectors=forgets,
    )


def texts(count: int, word: str = "text") -> list[Row]:
    return [row(f"{word}{number}", f"{word}-{number}") for number in range(count)]


# The order


def test_intents_come_before_rows_new_rows_before_deletions_and_the_confirmation_last(
    commit: Commits,
) -> None:
    assert commit(update(texts(2))) is not None
    assert commit.calls == ["save_intents", "upsert", "delete_rows", "confirm_updates"]
    commit(update([row("c", "new")], removed=["text0"]))
    assert commit.calls == ["save_intents", "upsert", "delete_rows", "confirm_updates"]
    assert sorted(commit.store.table) == ["c", "text1"]
    assert commit.committer.commit_count == 2


def test_an_update_of_lines_alone_changes_no_table_and_counts_as_no_commit(commit: Commits) -> None:
    told = commit(update())
    assert told is not None
    assert told[1] == set()
    assert commit.calls == ["delete_rows", "confirm_updates"]
    assert commit.store.deletes == []
    assert commit.committer.commit_count == 0
    assert commit.beats == [0]


def test_many_rows_are_written_and_deleted_in_parts(
    commit: Commits, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "ROWS_PER_WRITE", 3)
    commit(update(texts(7)))
    assert [len(each) for each in commit.store.upserts] == [3, 3, 1]
    commit(update(removed=[f"text{number}" for number in range(7)]))
    assert [len(each) for each in commit.store.deletes] == [3, 3, 1]
    assert commit.store.table == {}
    assert set(commit.cache.kept) == {f"key-of-text-{number}" for number in range(7)}
    assert commit.cache.kept["key-of-text-6"] == (vector_of("text-6"), 77)


# Vectors that exist


def test_vectors_of_other_rows_and_of_the_cache_are_not_made_again(commit: Commits) -> None:
    commit(update(texts(2)))
    commit.cache.kept["key-of-kept"] = (vector_of("kept"), 1)
    commit.model.embedded.clear()
    other = RootedPath("r", "b.md")
    copies = [row("copy", "text-1", other), row("k", "kept", other), row("n", "new", other)]
    told = commit(update(copies, file=other))
    assert told is not None
    assert told[1] == {"key-of-new"}
    assert commit.model.embedded == ["new"]
    assert commit.cache.asked[-1] == ("key-of-kept", "key-of-new")
    assert {name: vector for name, (_, vector) in commit.store.table.items()} == {
        "text0": vector_of("text-0"),
        "text1": vector_of("text-1"),
        "copy": vector_of("text-1"),
        "k": vector_of("kept"),
        "n": vector_of("new"),
    }


def test_vectors_of_changed_and_deleted_rows_go_to_the_cache(commit: Commits) -> None:
    commit(update(texts(3)))
    assert commit.cache.kept == {}
    commit(update(changed=[row("text0", "other")], removed=["text1", "unknown"]))
    assert set(commit.cache.kept) == {"key-of-text-0", "key-of-text-1"}
    assert commit.store.table["text0"][1] == vector_of("other")
    assert set(commit.store.table) == {"text0", "text2"}


def test_a_row_that_gets_another_text_under_its_id_counts_as_present(commit: Commits) -> None:
    """The fake refuses rows that are said to be absent and are not."""
    commit(update(texts(1)))
    commit(update([row("text0", "a heading was added"), row("n", "new")]))
    assert set(commit.store.table) == {"text0", "n"}


def test_vectors_of_an_excluded_file_stay_nowhere(commit: Commits) -> None:
    commit(update(texts(2)), update([row("other", "kept")], file=RootedPath("r", "b.md")))
    commit.cache.kept["key-of-text-0"] = (vector_of("text-0"), 1)
    commit(update(removed=["text0", "text1"], forgets=True))
    assert commit.calls == ["save_intents", "delete", "delete_rows", "confirm_updates"]
    assert commit.cache.kept == {}
    commit(update(removed=["other"], file=RootedPath("r", "b.md")))
    assert set(commit.cache.kept) == {"key-of-kept"}, "only those of the excluded file"


def test_deleting_rows_keeps_their_vectors(
    commit: Commits, monkeypatch: pytest.MonkeyPatch
) -> None:
    commit(update(texts(5)))
    monkeypatch.setattr(module, "ROWS_PER_WRITE", 2)
    commit.beats.clear()
    commit.committer.delete_rows([f"text{number}" for number in range(5)])
    assert len(commit.cache.kept) == 5
    assert [len(each) for each in commit.store.deletes] == [2, 2, 1]
    assert commit.beats == [0, 0, 0]


# Interruptions


@pytest.mark.parametrize("is_stopped", [True, False])
def test_vectors_of_an_interrupted_commit_are_kept_and_count_for_the_next(
    commit: Commits, *, is_stopped: bool
) -> None:
    rows = texts(6)
    if is_stopped:
        assert commit(update(rows), stops=True) is None
    else:
        commit.model.fails_after = 2
        with pytest.raises(EmbedderError):
            commit(update(rows))
        commit.model.fails_after = 10**9
    assert commit.calls == []
    assert (commit.store.table, commit.catalog.files) == ({}, {})
    assert set(commit.cache.kept) == {"key-of-text-0", "key-of-text-1"}
    told = commit(update(rows))
    assert told is not None
    assert told[1] == {each.vector_key for each in rows}
    assert commit.model.embedded == [each.text for each in rows]
    commit(update(removed=[each.id for each in rows]))
    told = commit(update(rows))
    assert told is not None
    assert told[1] == set(), "counted once"


def test_the_last_batch_is_not_thrown_away(commit: Commits) -> None:
    assert commit(update(texts(2)), stops=True) is not None
    assert commit.beats == [MODEL_STEP_TIMEOUT_S, 0]


def test_a_long_embedding_gives_signs_of_life_and_keeps_its_vectors_until_the_commit(
    commit: Commits, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "NS_PER_CACHING", 0)
    commit.model.fails_after = 9
    with pytest.raises(EmbedderError):
        commit(update(texts(11)))
    assert len(commit.cache.kept) == 10
    assert commit.beats == [MODEL_STEP_TIMEOUT_S] * 6
    commit.cache.kept.clear()
    commit.model.embedded.clear()
    commit.model.fails_after = 10**9
    cached: list[str] = []
    with monkeypatch.context() as seen:
        seen.setattr(commit.cache, "put", lambda vectors, _: cached.extend(vectors))
        commit(update(texts(9, "other")))
    assert len(cached) == 8  # The last part goes to the table.
    assert commit.beats == [*[MODEL_STEP_TIMEOUT_S] * 5, 0]


@pytest.mark.parametrize(
    ("per_second", "count"), [(1.0, 64), (21.0, 64), (22.0, 66), (600.0, 1800), (1e6, 2048)]
)
def test_a_commit_embeds_for_about_three_seconds(
    commit: Commits, per_second: float, count: int
) -> None:
    commit.model.texts_per_second = per_second
    assert commit.committer.texts_per_commit == count


# Words first


def words_first(commit: Commits, per_second: float = 1.0) -> Commits:
    """Let rows be written before vectors that take long."""
    commit.committer.words_first = True
    commit.model.texts_per_second = per_second
    return commit


def vectorless(commit: Commits) -> set[str]:
    return {name for name, (_, vector) in commit.store.table.items() if not vector}


@pytest.mark.parametrize(
    ("per_second", "count", "waits"),
    [(1.0, 16, True), (1.0, 17, False), (40.0, 20, True), (40.0, 21, False)],
)
def test_a_commit_waits_for_sixteen_texts_or_half_a_second(
    commit: Commits,
    per_second: float,
    count: int,
    waits: bool,  # noqa: FBT001 - a column of the table
) -> None:
    rows = texts(count)
    told = words_first(commit, per_second)(update(rows))
    assert told is not None
    keys = {each.vector_key for each in rows}
    assert told.embedded_keys == (keys if waits else set())
    assert told.due_keys == (set() if waits else keys)
    assert vectorless(commit) == (set() if waits else {each.id for each in rows})
    assert len(commit.model.embedded) == (count if waits else 0)


def test_a_row_has_the_vector_of_the_row_that_it_replaces_until_its_own_is_made(
    commit: Commits,
) -> None:
    old = [*texts(18), row("crash", CRASHES)]
    commit(update(old))
    words_first(commit)
    new = [row(f"new{number}", f"new-{number}") for number in range(20)]
    predecessors = {each.id: former.id for each, former in zip(new, old, strict=False)}
    told = commit(
        replace(
            update(new, removed=[each.id for each in old]),
            predecessors=predecessors | {"new19": "of another file"},
        )
    )
    assert told is not None
    assert len(told.due_keys) == 20
    assert vectorless(commit) == {each.id for each in new}
    assert commit.store.provisional | {"crash": b""} == {
        **dict.fromkeys(("crash", "new18", "new19"), b""),  # Zeros find nothing.
        **{f"text{number}": b"" for number in range(18)},
        **{f"new{number}": vector_of(f"text-{number}") for number in range(18)},
    }
    assert not any(key.startswith("~") for key in commit.cache.kept)


def test_words_do_not_wait_until_the_model_is_prepared_which_begins_with_the_first_text(
    commit: Commits,
) -> None:
    words_first(commit).model.is_prepared = False
    commit.committer.restless_files.add(FILE)
    told = commit(update(texts(1)))
    assert told is not None
    assert vectorless(commit) == {"text0"}
    assert (commit.model.embedded, commit.model.preparations) == ([], 1)
    commit(update([]))
    assert commit.model.preparations == 1
    commit.model.is_prepared = True
    commit(update(texts(2)))
    assert len(commit.model.embedded) == 2
    assert commit.model.preparations == 1


def test_where_rows_need_their_vectors_the_commit_waits_for_a_model_that_is_not_prepared(
    commit: Commits,
) -> None:
    commit.model.is_prepared = False
    commit(update(texts(1)))
    assert vectorless(commit) == set()
    assert len(commit.model.embedded) == 1


@pytest.mark.parametrize("why", ["asked for", "immediate", "needs vectors"])
def test_a_commit_of_words_is_larger_and_only_where_vectors_can_follow(
    commit: Commits, monkeypatch: pytest.MonkeyPatch, why: str
) -> None:
    words_first(commit)
    if why == "immediate":
        commit.model.is_immediate = True
    elif why == "needs vectors":
        monkeypatch.setattr(FakeStore, "can_lack_vectors", False)
    assert commit.committer.texts_per_commit == (512 if why == "asked for" else 64)
    told = commit(update(texts(17)))
    assert told is not None
    assert len(told.due_keys) == (17 if why == "asked for" else 0)
    commit.model.texts_per_second = 200.0
    assert commit.committer.texts_per_commit == 600


def test_a_model_that_fails_is_not_asked_again_and_its_vectors_are_kept(commit: Commits) -> None:
    words_first(commit).model.fails_after = 4
    told = commit(update(texts(10)))
    assert told is not None
    assert commit.committer.model_fails
    assert vectorless(commit) == {f"text{number}" for number in range(4, 10)}
    assert told.due_keys == {f"key-of-text-{number}" for number in range(4, 10)}
    assert told.embedded_keys == {f"key-of-text-{number}" for number in range(4)}
    commit.model.fails_after = 10**9
    commit.committer.restless_files.add(FILE)
    told = commit(update([row("n", "new")]))
    assert told is not None
    assert told.due_keys == {"key-of-new"}
    assert commit.model.embedded[4:] == []
    commit.committer.model_fails = False
    told = commit(update([row("m", "more")]))
    assert told is not None
    assert told.due_keys == set()
    assert commit.model.embedded[4:] == ["more"]


def test_where_rows_need_their_vectors_a_model_that_fails_is_raised_and_remembered(
    commit: Commits,
) -> None:
    commit.model.fails_after = 0
    with pytest.raises(EmbedderError):
        commit(update(texts(1)))
    assert commit.committer.model_fails
    assert commit.store.table == {}
    commit.model.fails_after = 10**9
    told = commit(update(texts(1)))
    assert told is not None
    assert told.due_keys == set()


def test_a_restless_file_waits_for_its_own_vectors_once(commit: Commits) -> None:
    words_first(commit).committer.restless_files.add(FILE)
    other = RootedPath("r", "b.md")
    told = commit(update(texts(20)), update(texts(20, "other"), file=other))
    assert told is not None
    assert told.embedded_keys == {f"key-of-text-{number}" for number in range(20)}
    assert told.due_keys == {f"key-of-other-{number}" for number in range(20)}
    assert vectorless(commit) == {f"other{number}" for number in range(20)}
    assert commit.committer.restless_files == set()
    told = commit(update(texts(20, "later")))
    assert told is not None
    assert len(told.due_keys) == 20


def test_a_commit_that_is_interrupted_leaves_a_file_restless(commit: Commits) -> None:
    words_first(commit).committer.restless_files.add(FILE)
    assert commit(update(texts(20)), stops=True) is None
    assert commit.committer.restless_files == {FILE}


# What is left over


def test_rows_that_are_deleted_after_an_excluded_file_keep_their_vectors(commit: Commits) -> None:
    other = RootedPath("r", "b.md")
    commit(update(texts(1)), update([row("copy", "text-0")], file=other))
    commit(update(removed=["text0"], forgets=True))
    assert commit.cache.kept == {}
    commit.committer.delete_rows(["copy"])
    assert set(commit.cache.kept) == {"key-of-text-0"}


def test_nothing_is_looked_up_for_an_update_of_lines_alone(
    commit: Commits, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[object] = []
    real = commit.store.look_up_vectors

    def look_up(ids: Sequence[str], keys: Sequence[str]) -> Any:  # noqa: ANN401 - as in the original
        asked.append((list(ids), list(keys)))
        return real(ids, keys)

    monkeypatch.setattr(commit.store, "look_up_vectors", look_up)
    commit(update())
    assert (asked, commit.cache.asked) == ([], [])
    commit(update(texts(1)))
    commit(update(changed=[row("text0", "other")], removed=["gone"]))
    assert asked == [
        (["text0"], ["key-of-text-0"]),
        (["text0", "gone"], ["key-of-other"]),
    ]


def test_a_vector_is_put_into_the_cache_once(
    commit: Commits, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "NS_PER_CACHING", 0)
    kept: list[list[str]] = []
    monkeypatch.setattr(commit.cache, "put", lambda vectors, _: kept.append(list(vectors)))
    commit(update(texts(5)))
    assert kept == [
        [f"key-of-text-{number}" for number in part] for part in (range(2), range(2, 4))
    ]


def test_vectors_that_waited_in_the_cache_leave_it_with_the_commit(
    commit: Commits, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "NS_PER_CACHING", 0)
    commit.model.fails_after = 4
    with pytest.raises(EmbedderError):
        commit(update(texts(9)))
    assert len(commit.cache.kept) == 4
    commit.model.fails_after = 10**9
    commit(update(texts(9)))
    assert commit.cache.kept == {}
    assert len(commit.store.table) == 9


# Texts that the model cannot embed


def test_a_deleted_file_has_no_lines_that_the_model_cannot_embed(commit: Commits) -> None:
    commit(update([row("b", CRASHES)]))
    gone = replace(update(removed=["b"]), new_record=None)
    told = commit(gone)
    assert told is not None
    assert told.updates == [gone]
    assert (commit.store.table, commit.catalog.files) == ({}, {})


def test_a_text_that_crashes_the_model_is_listed_and_not_tried_again(commit: Commits) -> None:
    told = commit(update([row("a", "fine"), row("b", CRASHES)]))
    assert told is not None
    record = told[0][0].new_record
    assert record is not None
    assert record.problem is not None
    assert record.problem.is_partial
    assert record.problem.reason.startswith("lines 2-3 crash the embedding process")
    assert commit.catalog.get_meta("refused") == f"key-of-{CRASHES}"
    assert commit.catalog.files[FILE].known.problem == record.problem
    commit.model.embedded.clear()
    commit.store.table.clear()
    commit.committer = commit.make()
    told = commit(update([row("b", CRASHES), row("c", "new")]))
    assert told is not None
    assert told[1] == {"key-of-new"}
    assert commit.model.embedded == ["new"]
    assert commit.store.table["b"][1] == bytes(8)
    assert commit.committer.unembeddable_keys == {f"key-of-{CRASHES}"}


def test_files_without_such_a_text_are_as_they_were(commit: Commits) -> None:
    told = commit(update([row("b", CRASHES)]))
    clean = update([row("c", "new")], file=RootedPath("r", "b.md"))
    told = commit(clean)
    assert told is not None
    assert told[0][0].new_record is clean.new_record


def test_lines_are_added_to_a_problem_that_is_there() -> None:
    chunks = tuple(chunk(str(n), f"k{n}", n, n + 4) for n in (1, 5, 9))
    record = FileRecord(
        NO_FINGERPRINT, 1, "", "", is_confirmed=True, chunks=chunks, problem=Problem("too long")
    )
    told = with_unembeddable_lines(record, {"k1", "k9"}).problem
    assert told is not None
    assert told.reason.startswith("too long; lines 1-5, 9-13 crash the embedding process: ")
    assert with_unembeddable_lines(record, {"k2"}) is record
    noted = with_unembeddable_lines(record, {"k1", "k9"})
    assert with_unembeddable_lines(noted, {"k1", "k9"}) is noted, "once"
