"""Events -> exchanges: the one place where they are made, whatever the format.

An exchange starts at a question and ends before the next one. Two questions in a row are two exchanges: the unanswered one is
not dropped. Nothing is cut, joined or left out: the answer is every turn in its order, with a blank line between two.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field

from anchord.conversation import Earlier, Event, Exchange, Head, Role, Superseded, Turn, Unknown
from anchord.sources.clean import clean

PREAMBLE = "preamble"
"""The id of what was said before the first question."""

Told = Head | Exchange | Superseded | Unknown | Earlier


@dataclass(slots=True)
class _Open:
    """The exchange that is being made. Superseded turns of an active question make an exchange of their own."""

    first: Turn | None
    number: int
    offset: int
    answers: list[Turn] = field(default_factory=list)
    attachments: list[Turn] = field(default_factory=list)


def exchanges(events: Iterable[Event], first_number: int = 0) -> Iterator[Told]:
    """Make exchanges; what else is told passes through. `first_number`: of the first exchange of the first session."""
    session, number = "", first_number
    current: _Open | None = None
    for event in events:
        if isinstance(event, Head):
            head = Head(*(clean(each) for each in (event.session, event.title, event.project, event.parent, event.updated)))
            if session and head.session != session:
                yield from _closed(session, current)
                current, number = None, 0
            session = head.session
            yield head
        elif isinstance(event, Superseded):
            yield Superseded(frozenset(map(clean, event.ids)))
        elif not isinstance(event, Turn):
            yield event
        elif event.role is Role.SUMMARY:
            text = clean(event.text).strip("\n")
            if text.strip():
                place = current.number if current else number
                yield Exchange(session, clean(event.id), place, "", text, kind="summary", at=event.at, offset=event.offset)
        elif event.role is Role.QUESTION or current is None:
            yield from _closed(session, current)
            current = _Open(event if event.role is Role.QUESTION else None, number, event.offset)
            number += 1
            if event.role is not Role.QUESTION:
                _take(current, event)
        else:
            _take(current, event)
    yield from _closed(session, current)


def _take(current: _Open, turn: Turn) -> None:
    (current.attachments if turn.role is Role.ATTACHMENT else current.answers).append(turn)


def _closed(session: str, current: _Open | None) -> Iterator[Exchange]:
    if current is None:
        return
    first = current.first
    said = [turn for turn in current.answers if turn.text.strip()]
    question = _spoken(first) if first else ""
    answer = "\n\n".join(_spoken(turn) for turn in said)
    turns = [*([first] if first else []), *current.answers]
    times = [turn.at for turn in turns if turn.at]
    if question.strip() or answer.strip():
        yield Exchange(
            session,
            clean(first.id) if first else PREAMBLE,
            current.number,
            question,
            answer,
            at=times[0] if times else "",
            until=times[-1] if times else "",
            model=clean(next((turn.model for turn in reversed(turns) if turn.model), "")),
            tools=tuple(dict.fromkeys(clean(tool) for turn in turns for tool in turn.tools)),
            files=tuple(dict.fromkeys(clean(file) for turn in turns for file in turn.files)),
            superseded=bool(first and first.superseded),
            offset=current.offset,
        )
    for place, turn in enumerate(current.attachments, 1):
        name, _, text = clean(turn.text).partition("\n")
        if text.strip():
            key = f"{clean(first.id) if first else PREAMBLE}+{place}"
            yield Exchange(session, key, current.number, name, text, kind="attachment", at=turn.at, offset=current.offset)


def _spoken(turn: Turn) -> str:
    text = clean(turn.text).strip("\n")
    return f"{turn.speaker}: {text}" if turn.speaker else text
