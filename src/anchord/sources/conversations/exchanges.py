"""Events -> exchanges, in one place for all formats.

An exchange starts at a question and ends before the next one. Two questions in a row are two
exchanges: the unanswered one is not dropped. No text is cut or left out: the answer is every turn
in its order, with a blank line between two.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field, replace

from anchord.sources.conversations.events import (
    Event,
    Exchange,
    NeedsFullRead,
    Role,
    SessionInfo,
    SupersededQuestions,
    Turn,
    UnknownRecord,
)
from anchord.sources.documents.normalize import normalize_text

_MAX_KIND_CHARS = 80
_STREAMED_ANSWER_WINDOW = 50
"""How many answers back an answer is looked for that a later record completes."""
PREAMBLE_ID = "preamble"
POSITIONAL_IDS = (PREAMBLE_ID, "at-")
"""Ids that begin so come from a place in the file, and are not unique over sessions."""
"""The id of the exchange that holds what was said before the first question."""

ExchangeStreamItem = SessionInfo | Exchange | SupersededQuestions | UnknownRecord | NeedsFullRead


@dataclass(slots=True, kw_only=True)
class _OpenExchange:
    """The exchange that turns are added to at present."""

    question: Turn | None
    """None for the preamble: a text before the first question."""
    number: int
    offset: int
    answers: list[Turn] = field(default_factory=list)
    attachments: list[Turn] = field(default_factory=list)
    superseded_runs: list[list[Turn]] = field(default_factory=list)
    """Superseded answers to a question that is not: each uninterrupted run is one exchange."""
    is_last_superseded: bool = False
    """Whether the last answer went to `superseded_runs`."""

    def add(self, turn: Turn) -> None:
        """Add an answer or an attachment."""
        if turn.role is Role.ATTACHMENT:
            self.attachments.append(turn)
            return
        has_active_question = self.question is not None and not self.question.superseded
        is_superseded = turn.superseded and has_active_question
        if not is_superseded:
            _add_answer(self.answers, turn)
        elif self.is_last_superseded:
            self.superseded_runs[-1].append(turn)
        else:
            self.superseded_runs.append([turn])
        self.is_last_superseded = is_superseded

    @property
    def id(self) -> str:
        """The exchange's id, unique in its session."""
        return normalize_text(self.question.id) if self.question else PREAMBLE_ID

    def turns(self) -> list[Turn]:
        """Return the question, if there is one, and the answers."""
        return [self.question, *self.answers] if self.question else self.answers

    def answers_with_text(self) -> list[Turn]:
        """Return the answers that are not blank."""
        return [turn for turn in self.answers if turn.text.strip()]

    @property
    def is_superseded(self) -> bool:
        """Whether the question is superseded or, without a question, every answer."""
        if self.question is not None:
            return self.question.superseded
        return all(turn.superseded for turn in self.answers_with_text())


def build_exchanges(events: Iterable[Event], first_number: int = 0) -> Iterator[ExchangeStreamItem]:
    """Build exchanges from a transcript's events.

    All text is normalised (`normalize_text`). Items come in the order of the events; an exchange
    comes as soon as it is complete.

    Args:
        events: The events of a whole transcript, or of its part from a resume point on.
        first_number: The number of the first exchange of the first session.

    Yields:
        The exchanges, and every event that is not a turn. `SupersededQuestions` follow the
        exchange in which they came.
    """
    builder = _ExchangeBuilder(first_number)
    for event in events:
        yield from builder.handle(event)
    yield from builder.finish_exchange()


class _ExchangeBuilder:
    """The state between two events: the session, its next number, and the open exchange."""

    def __init__(self, first_number: int) -> None:
        self._session = ""
        self._next_number = first_number
        self._open: _OpenExchange | None = None
        self._superseded: list[SupersededQuestions] = []
        """Events that wait until the open exchange is complete."""

    def handle(self, event: Event) -> Iterator[ExchangeStreamItem]:
        """Take an event in; yield what is complete."""
        if isinstance(event, Turn):
            yield from self._handle_turn(event)
        elif isinstance(event, SessionInfo):
            yield from self._enter_session(event)
        elif isinstance(event, SupersededQuestions):
            normalized = SupersededQuestions(frozenset(map(normalize_text, event.ids)))
            if self._open is None:
                yield normalized
            else:
                self._superseded.append(normalized)
        elif isinstance(event, UnknownRecord):
            yield UnknownRecord(normalize_text(event.description)[:_MAX_KIND_CHARS])
        else:
            yield event

    def _enter_session(self, info: SessionInfo) -> Iterator[ExchangeStreamItem]:
        normalized = SessionInfo(
            session=normalize_text(info.session),
            title=normalize_text(info.title),
            project=normalize_text(info.project),
            parent=normalize_text(info.parent),
            updated=normalize_text(info.updated),
        )
        if self._session and normalized.session != self._session:
            if self._open is not None:
                self._next_number = 0
            # Else nothing has been said in the session yet: it only got another name.
            yield from self.finish_exchange()
        self._session = normalized.session
        yield normalized

    def _handle_turn(self, turn: Turn) -> Iterator[ExchangeStreamItem]:
        if turn.role is Role.SUMMARY:
            number = self._open.number if self._open else self._next_number
            yield from _summary_exchange(self._session, turn, number)
        elif turn.role is Role.QUESTION or self._open is None:
            yield from self._start_exchange(turn)
        else:
            self._open.add(turn)

    def _start_exchange(self, turn: Turn) -> Iterator[ExchangeStreamItem]:
        yield from self.finish_exchange()
        is_question = turn.role is Role.QUESTION
        question = turn if is_question else None
        self._open = _OpenExchange(
            question=question,
            number=self._next_number,
            offset=turn.offset,
        )
        self._next_number += 1
        if not is_question:
            self._open.add(turn)

    def finish_exchange(self) -> Iterator[ExchangeStreamItem]:
        """Yield the open exchange, and what waited for it. No exchange is open afterwards."""
        if self._open is not None:
            yield from _exchanges_of(self._session, self._open)
        self._open = None
        yield from self._superseded
        self._superseded.clear()


def _add_answer(answers: list[Turn], turn: Turn) -> None:
    """Append an answer; one that continues an earlier record of the same answer replaces it.

    Some programs write an answer again and again while it grows.
    """
    oldest = max(0, len(answers) - _STREAMED_ANSWER_WINDOW + 1)
    for index in range(len(answers) - 1, oldest - 1, -1):
        earlier = answers[index]
        if earlier.id == turn.id and turn.text.startswith(earlier.text):
            answers[index] = replace(turn, tools=(*earlier.tools, *turn.tools))
            return
    answers.append(turn)


def _exchanges_of(session: str, done: _OpenExchange) -> Iterator[Exchange]:
    """Yield a complete exchange, its superseded answers, and its attachments."""
    main = _main_exchange(session, done)
    if main.question.strip() or main.answer.strip():
        yield main
    if done.question is not None:  # Without a question no run of answers is superseded.
        for run in done.superseded_runs:
            yield from _superseded_exchange(session, done, done.question, run)
    for place, turn in enumerate(done.attachments, 1):
        name, _, text = normalize_text(turn.text).partition("\n")
        if text.strip():
            yield Exchange(
                session=session,
                id=f"{done.id}+{place}",
                number=done.number,
                question=name,
                answer=text,
                kind="attachment",
                at=turn.at,
                offset=done.offset,
            )


def _main_exchange(session: str, done: _OpenExchange) -> Exchange:
    turns = done.turns()
    times = [turn.at for turn in turns if turn.at]
    models = [turn.model for turn in turns if turn.model]
    branches = (turn.branch for turn in turns if turn.branch)
    answers = done.answers_with_text()
    return Exchange(
        session=session,
        id=done.id,
        number=done.number,
        question=_text_of(done.question) if done.question else "",
        answer="\n\n".join(_text_of(turn) for turn in answers),
        at=times[0] if times else "",
        until=max(times, default=""),
        model=normalize_text(models[-1]) if models else "",
        tools=_unique(turn.tools for turn in turns),
        files=_unique(turn.files for turn in turns),
        branch=normalize_text(next(branches, "")),
        superseded=done.is_superseded,
        offset=done.offset,
    )


def _unique(values_by_turn: Iterable[tuple[str, ...]]) -> tuple[str, ...]:
    """Join the turns' values in their order, without repetitions."""
    normalized = (normalize_text(value) for values in values_by_turn for value in values)
    return tuple(dict.fromkeys(normalized))


def _superseded_exchange(
    session: str, done: _OpenExchange, question: Turn, run: list[Turn]
) -> Iterator[Exchange]:
    """Yield a run of superseded answers as an exchange with the same question."""
    copy_id = f"{question.id}~{run[0].id}"
    copy = replace(question, id=copy_id, superseded=True)
    yield from _exchanges_of(
        session,
        _OpenExchange(
            question=copy,
            number=done.number,
            offset=done.offset,
            answers=run,
        ),
    )


def _summary_exchange(session: str, turn: Turn, number: int) -> Iterator[Exchange]:
    text = normalize_text(turn.text).strip("\n")
    if text.strip():
        yield Exchange(
            session=session,
            id=normalize_text(turn.id),
            number=number,
            question="",
            answer=text,
            kind="summary",
            at=turn.at,
            offset=turn.offset,
        )


def _text_of(turn: Turn) -> str:
    text = normalize_text(turn.text).strip("\n")
    return f"{normalize_text(turn.speaker)}: {text}" if turn.speaker else text
