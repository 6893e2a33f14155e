"""A verification adds up what archive, catalog and table say; a repair deletes what is wrong, by its kind."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from anchord.core.ports import no_heartbeat
from anchord.core.types import RootedPath
from anchord.index.integrity import repair as module
from anchord.index.integrity.merged_files import merged_files
from anchord.index.integrity.repair import delete_damaged_rows, list_repairs, verify_index
from anchord.index.integrity.verify import Difference, DifferenceKind, VerifyResult
from anchord.index.integrity.verify_archive import ArchiveComparison
from anchord.sources.conversations.archive.reader import ExchangePlace

FILE, TALK, OTHER_TALK = (RootedPath("r", name) for name in ("a.md", "talk.jsonl", "other.jsonl"))
AWAY = RootedPath("away", "a.md")
MISSING = Difference(DifferenceKind.MISSING, FILE, "1")
UNARCHIVED = Difference(DifferenceKind.NOT_ARCHIVED, TALK, "/codex/s/1")


class Index:
    """An index whose parts count what they hold."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        """Begin with differences in the archive and in the table."""
        self.compared = ArchiveComparison(
            transcripts={TALK, OTHER_TALK},
            differences=[UNARCHIVED],
            changing_files=[OTHER_TALK],
            unreadable_files=[RootedPath("r", "gone.jsonl"), RootedPath("s", "gone.jsonl")],
        )
        self.result = VerifyResult(
            file_count=90, chunk_count=91, vectors_checked=4, differences=(MISSING,),
            changing_files=(FILE,), kept_files={"r": 2}, unread_rules={"r": 1},
        )  # fmt: skip
        self.verified: list[tuple[Any, ...]] = []
        self.reader: Any = SimpleNamespace(
            profile=SimpleNamespace(models="models", recipe="recipe", token_counter=len),
            roots=[SimpleNamespace(name="r"), SimpleNamespace(name="s")],
            files=SimpleNamespace(
                archive=SimpleNamespace(
                    counts_by_root=lambda: {"r": {"exchanges": 5}, "s": {"exchanges": 6}}
                ),
                folder_files=SimpleNamespace(worktrees="worktrees"),
            ),
            catalog=SimpleNamespace(counts_by_root=lambda: {"r": (10, 1), "s": (20, 2)}),
            store=SimpleNamespace(count_rows=lambda: 33, count_due=lambda: 7),
        )
        monkeypatch.setattr(module, "compare_archive", self._compare)
        monkeypatch.setattr(module, "expected_rows_of_roots", lambda *given: given)
        monkeypatch.setattr(module, "verify", self._verify)

    def _compare(self, reader: object, on_progress: Any) -> ArchiveComparison:  # noqa: ANN401 - a callback
        assert reader is self.reader
        on_progress(1, 2)
        return self.compared

    def _verify(self, *given: Any) -> VerifyResult:  # noqa: ANN401 - as in the original
        self.verified.append(given)
        return self.result


@pytest.fixture
def index(monkeypatch: pytest.MonkeyPatch) -> Index:
    return Index(monkeypatch)


def test_a_verification_adds_up_what_the_index_and_the_archive_hold(index: Index) -> None:
    assert verify_index(index.reader, 4) == VerifyResult(
        file_count=30,
        chunk_count=33,
        vectors_checked=4,
        differences=(UNARCHIVED, MISSING),
        changing_files=(FILE, OTHER_TALK),
        kept_files={"r": 3, "s": 1},
        unread_rules={"r": 1},
        without_vector=7,
        exchange_count=11,
        transcript_count=2,
    )
    ((expected, catalog, store, models_and_size, heartbeat),) = index.verified
    files_and_catalog = (merged_files(index.reader), index.reader.catalog)
    assert expected == (["r", "s"], files_and_catalog, "recipe", len)
    assert (catalog, store) == (index.reader.catalog, index.reader.store)
    assert models_and_size == ("models", 4)
    assert heartbeat is no_heartbeat, "a reader has none"


def test_an_index_without_an_archive_has_no_exchanges(index: Index) -> None:
    index.reader.files.archive = None
    assert verify_index(index.reader, None).exchange_count == 0


def test_a_writer_gives_signs_of_life_and_each_transcript_is_told(
    index: Index, monkeypatch: pytest.MonkeyPatch
) -> None:
    told: list[tuple[int, int]] = []
    index.reader.heartbeat = SimpleNamespace(beat="a beat")
    monkeypatch.setattr(module, "IndexWriter", SimpleNamespace)
    verify_index(index.reader, None, lambda done, total: told.append((done, total)))
    assert index.verified[0][-1] == "a beat"
    assert told == [(1, 2)]


def test_each_kind_of_difference_is_mended_in_its_own_way() -> None:
    events: list[tuple[str, Any]] = []

    def delete(extra: list[str], files: list[RootedPath], corrupt: list[str]) -> tuple[Any, ...]:
        events.append(("deleted", (extra, corrupt)))
        return tuple(files)

    writer: Any = SimpleNamespace(
        archive=SimpleNamespace(schedule_full_reads=lambda files: events.append(("full", files))),
        roots_by_name={"r": None},
        indexer=SimpleNamespace(delete_damaged_rows=delete),
    )
    differences = [
        Difference(kind, AWAY if kind is DifferenceKind.EXTRA else FILE, kind.value)
        for kind in DifferenceKind
        if kind not in {DifferenceKind.NOT_ARCHIVED, DifferenceKind.ARCHIVED}
    ]
    archived = [UNARCHIVED, Difference(DifferenceKind.ARCHIVED, OTHER_TALK, "/codex/s/2")]
    files = delete_damaged_rows(writer, [*differences, *archived])
    assert files == [FILE, TALK, OTHER_TALK], "each once, and none of a root that is no more"
    assert events == [
        ("full", [TALK, OTHER_TALK]),
        ("deleted", (["extra", "duplicate"], ["vector", "spoiled"])),
    ]


def test_what_was_restored_from_the_index_is_said_after_the_other_repairs() -> None:
    conversations = SimpleNamespace(without_copy={}, restored={})
    places = {
        RootedPath("talks", f"/codex/s/{number}"): ExchangePlace(transcript, number)
        for number, transcript in enumerate((None, "s.jsonl", None, None), 1)
    }
    writer: Any = SimpleNamespace(
        repairs=["it was mended"],
        conversations=conversations,
        archive=SimpleNamespace(
            exchange_places=lambda paths: {path: places[path] for path in paths}
        ),
    )
    told = list_repairs(writer)
    assert told == ["it was mended"]
    assert told is not writer.repairs, "a copy"
    conversations.restored = dict.fromkeys(places)
    first, second = list_repairs(writer)
    assert first == "it was mended"
    assert second.startswith("the archive of conversations had lost 3 exchanges")
    assert writer.repairs == ["it was mended"], "each call adds nothing"
    conversations.without_copy = {RootedPath("talks", "/codex/s/1"): None}
    *_, lost = list_repairs(writer)
    assert lost.startswith("1 exchange could not be restored")
    assert '"talks/codex/s/1"' in lost
