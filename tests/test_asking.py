"""Questions without a daemon: answered by a whole index, the old one or the new, whatever its writer does meanwhile."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from anchord import asking
from anchord.adapters.config_file import load_config
from anchord.adapters.lock import WriterLock
from anchord.errors import AnchordError, StoreError
from anchord.oneshot import bring_up_to_date
from anchord.places import Places, find_places
from anchord.workspace import open_writer

FILES = 4
PARAGRAPHS = "\n\n".join(f"Paragraph {n} has some words of its own, {n * 7} of them, and an end." for n in range(12))
SETTINGS = '[embedding]\nprovider = "hash"\n'
SMALL = SETTINGS + '[chunking]\nstrategy = "paragraph"\nmin_chunk_tokens = 1\n'


@pytest.fixture
def of(tmp_path: Path) -> Places:
    """Index a folder once."""
    folder = tmp_path / "docs"
    folder.mkdir()
    for n in range(FILES):
        (folder / f"d{n}.md").write_text(f"# Document {n}\n\n{PARAGRAPHS.replace('words', f'words{n}')}\n")
    places = find_places({"ANCHORD_HOME": str(tmp_path / "home")})
    places.make()
    index(places, SETTINGS)
    return places


def index(of: Places, settings: str) -> None:
    """Bring the index up to date, as `anchord index` does."""
    of.config.write_text(f'{settings}[[root]]\npath = "{of.data.parents[1] / "docs"}"\n')
    writer = open_writer(of, load_config(of.config), ())
    try:
        bring_up_to_date(writer, (), lambda *_: None)
    finally:
        writer.close()


def found(of: Places) -> list[str]:
    answer, live = asking.ask(of, "search", {"query": "words2", "mode": "text", "k": 100})
    assert not live
    return sorted({hit["path"] for group in answer["groups"] for hit in group})


def test_a_search_while_an_index_is_made_anew_finds_by_the_one_or_the_other(of: Places) -> None:
    """Their chunks have no id in common: a catalogue of one beside the table of the other would find nothing."""
    answers: list[object] = []
    ended = threading.Event()

    def ask() -> None:
        while not ended.is_set():
            try:
                answers.append(found(of))
            except AnchordError as error:
                answers.append(error)

    asker = threading.Thread(target=ask)
    asker.start()
    try:
        for settings in (SMALL, SETTINGS) * 3:
            index(of, settings)
    finally:
        ended.set()
        asker.join()
    assert answers
    assert [answer for answer in answers if answer != ["d2.md"]] == []


@pytest.fixture
def changing(of: Places) -> Iterator[WriterLock]:
    """Leave the index as it is while a new one takes over, its writer at work."""
    lock = WriterLock(of.lock)
    of.promoting.touch()
    yield lock
    of.promoting.unlink(missing_ok=True)


def test_a_question_waits_for_a_change_of_generations(of: Places, changing: WriterLock) -> None:
    answers: list[list[str]] = []
    asker = threading.Thread(target=lambda: answers.append(found(of)))
    asker.start()
    asker.join(0.5)
    assert answers == []
    of.promoting.unlink()
    asker.join()
    assert answers == [["d2.md"]]
    changing.release()


def test_a_change_that_takes_too_long_is_told(of: Places, changing: WriterLock, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(asking, "_PATIENCE_S", 0.1)
    with pytest.raises(StoreError, match="taking over"):
        found(of)
    changing.release()


def test_what_a_killed_writer_left_half_changed_is_not_answered_from(of: Places, changing: WriterLock) -> None:
    changing.release()
    with pytest.raises(StoreError, match="its writer ended") as told:
        found(of)
    assert "anchord start" in told.value.hint
    index(of, SETTINGS)
    assert found(of) == ["d2.md"]


def test_an_answer_that_a_change_got_in_the_way_of_is_asked_for_again(of: Places) -> None:
    asked: list[str] = []

    def question(reader: Any) -> int:  # noqa: ANN401 - as `read` gives it
        asked.append("")
        if len(asked) == 1:
            index(of, SMALL)
            raise StoreError("a file of the table is gone", "")
        return len(list(reader.store.ids()))

    assert asking.read(of, question) > FILES
    assert len(asked) == 2


def test_what_is_refused_for_another_reason_is_asked_once(of: Places) -> None:
    asked: list[str] = []

    def question(_: object) -> None:
        asked.append("")
        raise StoreError("a file of the table is gone", "")

    with pytest.raises(StoreError, match="is gone"):
        asking.read(of, question)
    assert len(asked) == 1
