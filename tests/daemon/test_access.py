"""Reads without a daemon get one whole index, the old or the new, whatever the writer does."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from index.running import index_all

from anchord.config.file import load_config
from anchord.config.paths import Paths, find_paths
from anchord.daemon import access
from anchord.errors import AnchordError, StoreError, UsageError
from anchord.index.opening import open_writer
from anchord.ipc import requests
from anchord.store.writer_lock import WriterLock

FILES = 4
PARAGRAPHS = "\n\n".join(
    f"Paragraph {n} has some words of its own, {n * 7} of them, and an end." for n in range(12)
)
SETTINGS = '[embedding]\nprovider = "hash"\n'
SMALL = SETTINGS + '[chunking]\nstrategy = "paragraph"\nmin_chunk_tokens = 1\n'


@pytest.fixture
def of(tmp_path: Path) -> Paths:
    """Index a folder once."""
    folder = tmp_path / "docs"
    folder.mkdir()
    for n in range(FILES):
        (folder / f"d{n}.md").write_text(
            f"# Document {n}\n\n{PARAGRAPHS.replace('words', f'words{n}')}\n"
        )
    places = find_paths({"ANCHORD_HOME": str(tmp_path / "home")})
    places.create_folders()
    index(places, SETTINGS)
    return places


def index(of: Paths, settings: str) -> None:
    """Bring the index up to date, as `anchord index` does."""
    of.config_file.write_text(
        f'{settings}[[root]]\npath = "{of.data_folder.parents[1] / "docs"}"\n'
    )
    writer = open_writer(of, load_config(of.config_file), ())
    try:
        index_all(writer)
    finally:
        writer.close()


def found(of: Paths) -> list[str]:
    answer = access.ask_daemon_or_index(of, requests.search("words2", mode="text", k=100))
    assert not answer.is_live
    return sorted({hit.path for group in answer.value.groups for hit in group})


def test_a_search_while_an_index_is_rebuilt_finds_by_the_one_or_the_other(of: Paths) -> None:
    """The two indexes share no id: the catalog of one with the table of the other would find nothing."""
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
def changing(of: Paths) -> Iterator[WriterLock]:
    """Stop while a new index takes over, with its writer running."""
    lock = WriterLock(of.lock_file)
    of.promotion_marker.touch()
    yield lock
    of.promotion_marker.unlink(missing_ok=True)


def test_a_question_waits_for_a_change_of_generations(of: Paths, changing: WriterLock) -> None:
    answers: list[list[str]] = []
    asker = threading.Thread(target=lambda: answers.append(found(of)))
    asker.start()
    asker.join(0.5)
    assert answers == []
    of.promotion_marker.unlink()
    asker.join()
    assert answers == [["d2.md"]]
    changing.release()


def test_a_change_that_takes_too_long_is_reported(
    of: Paths, changing: WriterLock, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(access, "_MAX_WAIT_S", 0.1)
    with pytest.raises(StoreError, match="being replaced"):
        found(of)
    changing.release()


def test_what_a_killed_writer_left_half_changed_is_not_answered_from(
    of: Paths, changing: WriterLock
) -> None:
    changing.release()
    with pytest.raises(StoreError, match="anchord was killed") as result:
        found(of)
    assert "anchord start" in result.value.hint
    index(of, SETTINGS)
    assert found(of) == ["d2.md"]


def test_an_answer_that_a_change_got_in_the_way_of_is_asked_for_again(of: Paths) -> None:
    asked: list[str] = []

    def question(reader: Any) -> int:  # noqa: ANN401 - as `read` gives it
        asked.append("")
        if len(asked) == 1:
            index(of, SMALL)
            raise StoreError("a file of the table is gone", "")
        return len(list(reader.store.all_ids()))

    assert access.query_index(of, question) > FILES
    assert len(asked) == 2


def test_what_is_refused_for_another_reason_is_asked_once(of: Paths) -> None:
    asked: list[str] = []

    def question(_: object) -> None:
        asked.append("")
        raise StoreError("a file of the table is gone", "")

    with pytest.raises(StoreError, match="is gone"):
        access.query_index(of, question)
    assert len(asked) == 1


class FormerDaemon:
    """A client of a daemon that does not know how results are shown."""

    def __init__(self) -> None:
        """Hear nothing yet."""
        self.heard: list[Any] = []

    def ask(self, call: Any) -> str:  # noqa: ANN401 - a call of a search
        """Refuse the parameters that it does not know."""
        self.heard.append(call.params)
        if call.params.cwd or call.params.budget:
            raise UsageError("unknown parameter 'cwd'", "known: query")
        return "found"


def test_a_daemon_of_before_an_update_is_asked_again_without_what_it_does_not_know() -> None:
    daemon: Any = FormerDaemon()
    call: Any = requests.search("words", k=3, cwd="/home/me", budget=500)
    assert access.ask(daemon, call) == "found"
    first, second = daemon.heard
    assert (first.budget, second.budget, second.cwd, second.k) == (500, 0, "", 3)


def test_another_refusal_of_a_search_is_not_asked_again() -> None:
    class Refusing(FormerDaemon):
        def ask(self, call: Any) -> str:  # noqa: ANN401 - a call of a search
            self.heard.append(call.params)
            raise UsageError("there is no root")

    daemon: Any = Refusing()
    with pytest.raises(UsageError, match="no root"):
        access.ask(daemon, requests.search("words", budget=500))
    assert len(daemon.heard) == 1
