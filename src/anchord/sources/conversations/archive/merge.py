"""Decides what the archive stores of an exchange: what it knows, and what a file tells -> changes.

Several files can contain the same exchange, in different forms: an export from last month lacks the
end of its answer. What is stored depends on neither the order in which files are read nor on how
often, so decisions use properties of the forms alone. The winning form is the one with the latest
last message; among equals the form in the file that was modified last, then the larger digest, then
the file whose path sorts last.

What the archive stores stays until something at least as late replaces it. Only the file that is
being read has its text at hand. If another file's form wins and is not stored, that file must be
read again.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from anchord.sources.conversations.events import Exchange
from anchord.sources.conversations.exchange_document import ExchangeTexts, decode_texts


class Telling(NamedTuple):
    """That a file contains an exchange, and in which form. The largest one wins."""

    until: str
    """Time of the last message, ISO 8601 in UTC, "" if unknown. Compares as text."""
    mtime_ns: int
    """When the file was modified."""
    digest: str
    """The digest of the form."""
    path: bytes
    """The file's path."""
    file_id: int


@dataclass(frozen=True, slots=True)
class KnownExchange:
    """What the archive has of an exchange."""

    id: int
    session: str
    """The name of the session that it is shown in."""
    number: int
    digest: str
    """The digest of the stored form; "" if its text is damaged."""
    until: str
    is_superseded: bool
    file_id: int | None
    """The file that it is read from; None for an orphan: no file contains this form."""
    tellings: Sequence[Telling] = ()
    """The files that contain it, with what the file that is being read says now."""
    texts: ExchangeTexts | None = None
    """Only where `needs_texts` says so."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ToldExchange:
    """An exchange in the file that is being read, in the form in which it is stored."""

    file_id: int
    session_id: int
    path: str
    exchange: Exchange
    content: bytes
    """The exchange as JSON."""
    digest: str
    redaction_counts: str = ""
    has_unique_ids: bool = False
    """Whether the same id in another session is a copy of this exchange."""
    preserve: bool = False
    """Whether to keep what the file no longer contains of it."""

    @property
    def texts(self) -> ExchangeTexts:
        """Question and answer as they are stored."""
        return decode_texts(self.content)


class Gone(NamedTuple):
    """A file no longer contains an exchange."""

    file_id: int


class Abandoned(NamedTuple):
    """A file says that an exchange is on a branch that was left."""

    file_id: int


Told = ToldExchange | Gone | Abandoned
"""What a file says of an exchange."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Changes:
    """What the archive has to change."""

    file_id: int | None
    """The file that the exchange is read from afterwards."""
    is_superseded: bool
    form: ToldExchange | None = None
    """Replaces the stored form; None leaves it."""
    session_id: int | None = None
    """The session that it moves to; None leaves it."""
    copies_aside: bool = False
    """Keep a detached copy of the stored form first."""
    is_left: bool = False
    """No file contains it any more, since now."""
    reread_file_id: int | None = None
    """A file whose form wins and is not stored: it must be read again."""


def merge(known: KnownExchange, told: Told) -> Changes:
    """Decide what changes in the archive because of what a file tells of an exchange.

    Args:
        known: What the archive has of it.
        told: What the file says.
    """
    if isinstance(told, Gone):
        return _without(known, told.file_id)
    if isinstance(told, Abandoned):
        return _abandoned(known, told.file_id)
    return _with_form(known, told)


def _abandoned(known: KnownExchange, file_id: int) -> Changes:
    """Decide what changes when a file says that an exchange was left: only the winner counts."""
    winner = max(known.tellings, default=None)
    is_said_by_winner = winner is not None and winner.file_id == file_id
    return Changes(
        file_id=known.file_id,
        is_superseded=known.is_superseded or is_said_by_winner,
    )


def _with_form(known: KnownExchange, told: ToldExchange) -> Changes:
    """Decide what changes when a file contains an exchange."""
    winner = max(known.tellings, default=None)
    stores, must_reread = _stores_or_rereads(known, told, winner)
    # A copied exchange belongs to the session whose name sorts first, in any reading order.
    moves = told.has_unique_ids and told.exchange.session < known.session
    return Changes(
        file_id=told.file_id if stores else _file_with(known.digest, known.tellings),
        is_superseded=told.exchange.superseded if stores else known.is_superseded,
        form=told if stores else None,
        session_id=told.session_id if moves else None,
        copies_aside=stores and _loses_text(known, told),
        reread_file_id=winner.file_id if winner and must_reread else None,
    )


def _stores_or_rereads(
    known: KnownExchange, told: ToldExchange, winner: Telling | None
) -> tuple[bool, bool]:
    """Return whether the told form is stored, and whether the winner's file must be read again."""
    is_winner = winner is None or winner.file_id == told.file_id
    is_needed = winner is not None and known.digest != winner.digest
    keeps = _has_lost_its_end(known, told)
    # Where another file wins, its form may be stored already, or it must be read again. Until then
    # this file's form stands in: the stored one is no file's any more, or loses as well.
    stores = (is_winner or is_needed) and not keeps and not _is_later_orphan(known, told)
    return stores, is_needed and not is_winner and not keeps


def _file_with(digest: str, tellings: Iterable[Telling]) -> int | None:
    """Return which file a form is read from; None for an orphan, which no file contains."""
    latest = max((each for each in tellings if each.digest == digest), default=None)
    return latest and latest.file_id


def _without(known: KnownExchange, file_id: int) -> Changes:
    """Decide what changes when a file no longer contains an exchange."""
    tellings = [each for each in known.tellings if each.file_id != file_id]
    winner = max(tellings, default=None)
    # Where another file, or none, provided the stored form, nothing else wins now.
    was_source = known.file_id == file_id
    is_needed = winner is not None and winner.until >= known.until and winner.digest != known.digest
    return Changes(
        file_id=_file_with(known.digest, tellings),
        is_superseded=known.is_superseded,
        is_left=was_source and winner is None,
        reread_file_id=winner.file_id if winner and was_source and is_needed else None,
    )


def needs_texts(known: KnownExchange, told: ToldExchange) -> bool:
    """Return whether `merge` must compare the texts: the stored one may be nowhere else."""
    is_orphan = known.file_id is None
    may_be_lost = is_orphan or (told.preserve and known.file_id == told.file_id)
    # Of a damaged text, which has no digest, nothing can be kept.
    is_other = known.digest not in ("", told.digest)
    return may_be_lost and is_other and not _is_later_orphan(known, told)


def _is_later_orphan(known: KnownExchange, told: ToldExchange) -> bool:
    return known.file_id is None and told.exchange.until < known.until


def _has_lost_its_end(known: KnownExchange, told: ToldExchange) -> bool:
    """Return whether a file contains only the beginning of a stored answer."""
    kept = known.texts
    if kept is None or (texts := told.texts).question != kept.question:
        return False
    is_less = len(texts.answer) < len(kept.answer) or told.exchange.until < known.until
    return is_less and kept.answer.startswith(texts.answer)


def _loses_text(known: KnownExchange, told: ToldExchange) -> bool:
    """Return whether a stored text is in no file any more once another replaces it.

    Its id names another question now: it was a place in the file. Or no file contains the stored
    answer, and the told one is another of the same time.
    """
    kept = known.texts
    if kept is None or (texts := told.texts).question != kept.question:
        return kept is not None
    is_of_same_time = known.file_id is None and told.exchange.until == known.until
    return is_of_same_time and not texts.answer.startswith(kept.answer)


def is_repeated(texts: ExchangeTexts, present: Iterable[ExchangeTexts]) -> bool:
    """Return whether a question is present with the same answer, or with more of it."""
    return any(
        texts.question == other.question and other.answer.startswith(texts.answer)
        for other in present
    )
