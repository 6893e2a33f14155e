"""What the archive stores of an exchange follows from what its files contain, not from the reading."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import dataclass, replace

from hypothesis import given, settings
from hypothesis import strategies as st

from anchord.core.ids import hash_content
from anchord.sources.conversations.archive.merge import (
    Abandoned,
    Gone,
    KnownExchange,
    Telling,
    Told,
    ToldExchange,
    merge,
    needs_texts,
)
from anchord.sources.conversations.events import Exchange
from anchord.sources.conversations.exchange_document import decode_texts, encode_exchange


@dataclass(frozen=True)
class File:
    """What a file contains of one exchange."""

    id: int
    until: str = "1"
    mtime: int = 1
    answer: str = "So."
    question: str = "How?"
    session: str = "s"
    number: int = 0
    superseded: bool = False
    is_abandoned: bool = False
    """It says so at its end, after the exchange."""

    def told(self) -> ToldExchange:
        """Return what it tells."""
        exchange = Exchange(
            session=self.session, id="e", number=self.number, question=self.question,
            answer=self.answer, until=self.until, superseded=self.superseded,
        )  # fmt: skip
        content = encode_exchange(exchange)
        return ToldExchange(
            file_id=self.id, session_id=ord(self.session), path="/e", exchange=exchange,
            content=content, digest=hash_content(content), has_unique_ids=True, preserve=True,
        )  # fmt: skip


class OneExchange:
    """An archive of one exchange in memory: it stores what `merge` decides."""

    def __init__(self) -> None:
        """Know nothing."""
        self.files: dict[int, File] = {}
        self.known: KnownExchange | None = None
        self.stored: ToldExchange | None = None
        self.copies: list[str] = []

    def read(self, file: File) -> None:
        """Read a file in its present state, and then those that must be read again."""
        self.files[file.id] = file
        due = [file.id]
        for file_id in due:
            assert len(due) < 20, "files are read again and again"
            due += self._merge(self.files[file_id].told())
            if self.files[file_id].is_abandoned:
                due += self._merge(Abandoned(file_id))

    def remove(self, file_id: int) -> None:
        """Delete a file."""
        del self.files[file_id]
        for reread in self._merge(Gone(file_id)):
            self.read(self.files[reread])

    def _merge(self, told: Told) -> list[int]:
        if self.known is None or self.stored is None:
            assert isinstance(told, ToldExchange)
            self.stored = told
            self.known = KnownExchange(
                id=1, session=told.exchange.session, number=told.exchange.number,
                digest=told.digest, until=told.exchange.until,
                is_superseded=told.exchange.superseded, file_id=told.file_id,
            )  # fmt: skip
            return []
        known = replace(self.known, tellings=self._tellings())
        if isinstance(told, ToldExchange) and needs_texts(known, told):
            known = replace(known, texts=decode_texts(self.stored.content))
        changes = merge(known, told)
        if changes.copies_aside:
            self.copies.append(self.stored.exchange.answer)
        form = self.stored = changes.form or self.stored
        self.known = replace(
            self.known,
            session=chr(changes.session_id) if changes.session_id else known.session,
            number=form.exchange.number,
            digest=form.digest,
            until=form.exchange.until,
            is_superseded=changes.is_superseded,
            file_id=changes.file_id,
        )
        return [changes.reread_file_id] if changes.reread_file_id is not None else []

    def _tellings(self) -> list[Telling]:
        return [
            Telling(file.until, file.mtime, file.told().digest, b"%d" % file.id, file.id)
            for file in self.files.values()
        ]


def after(files: Sequence[File]) -> OneExchange:
    archive = OneExchange()
    for file in files:
        archive.read(file)
    return archive


def files(count: int) -> st.SearchStrategy[list[File]]:
    """Return files with different ids, which have few different forms and times."""
    one = st.builds(
        File,
        id=st.integers(1, 9),
        until=st.sampled_from(["", "1", "2"]),
        mtime=st.integers(1, 3),
        answer=st.sampled_from(["So.", "So. And more.", "Otherwise."]),
        session=st.sampled_from("rst"),
        number=st.integers(0, 2),
        superseded=st.booleans(),
        is_abandoned=st.booleans(),
    )
    return st.lists(one, min_size=1, max_size=count, unique_by=lambda file: file.id)


@settings(deadline=None)
@given(files(4))
def test_any_order_of_files_ends_in_one_archive(found: list[File]) -> None:
    first, *others = (after(order) for order in itertools.permutations(found))
    assert [each.known for each in others] == [first.known] * len(others)
    assert not any(each.copies for each in others)


@settings(deadline=None)
@given(st.data())
def test_any_repetition_of_reads_changes_nothing(data: st.DataObject) -> None:
    found = data.draw(files(4))
    again = data.draw(st.lists(st.sampled_from(found), max_size=6))
    order = data.draw(st.permutations(found + again))
    assert after(order).known == after(found).known


@settings(deadline=None)
@given(st.data())
def test_any_cuts_of_a_file_before_the_whole_change_nothing(data: st.DataObject) -> None:
    others = [file for file in data.draw(files(3)) if file.id != 1]
    answer = "A first part. A second one. The end."
    whole = File(1, until="2", mtime=9, answer=answer, number=data.draw(st.integers(0, 2)))
    lengths = data.draw(st.lists(st.integers(0, len(answer)), max_size=4))
    cuts = [
        replace(whole, answer=answer[:length], until=str(length // 14), mtime=length // 10)
        for length in lengths
    ]
    order = data.draw(st.permutations(others + cuts))
    # Another file may be read after the whole as well.
    late = data.draw(st.integers(0, len(order)))
    ended = after([*order, whole, *(each for each in order[late:] if each.id != 1)])
    assert ended.known == after([whole, *others]).known


@settings(deadline=None)
@given(files(4), st.data())
def test_a_file_that_goes_loses_nothing(found: list[File], data: st.DataObject) -> None:
    archive = after(found)
    before = archive.known
    gone = data.draw(st.sampled_from(found))
    archive.remove(gone.id)
    assert before
    assert archive.known
    assert archive.known.until == before.until
    left = [file for file in found if file is not gone]
    if left and (fresh := after(left).stored) and fresh.exchange.until == before.until:
        # The longer of two answers stays if the other is its beginning.
        assert archive.stored
        assert archive.stored.exchange.answer.startswith(fresh.exchange.answer)
    assert (archive.known.file_id is None) is not any(
        file.told().digest == archive.known.digest for file in archive.files.values()
    )


def test_the_beginning_of_a_stored_answer_does_not_replace_it() -> None:
    archive = after([File(1, until="2", answer="All of it."), File(1, until="1", answer="All")])
    assert archive.stored
    assert archive.stored.exchange.answer == "All of it."
    assert archive.known
    assert archive.known.file_id is None
    assert archive.copies == []


def test_of_another_question_in_the_same_place_a_copy_is_kept() -> None:
    archive = after([File(1, answer="First."), File(1, question="Why?", answer="Second.")])
    assert archive.stored
    assert archive.stored.exchange.answer == "Second."
    assert archive.copies == ["First."]


def test_a_branch_counts_as_left_only_if_the_file_that_wins_says_so() -> None:
    old, new = File(1, mtime=1, is_abandoned=True), File(2, mtime=2)
    assert not after([old, new]).known.is_superseded  # type: ignore[union-attr]
    assert after([replace(old, mtime=3), new]).known.is_superseded  # type: ignore[union-attr]
