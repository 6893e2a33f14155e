"""Events -> exchanges: the one place where they are made, whatever the format.

An exchange starts at a question and ends before the next one. Two questions in a row are two exchanges: the unanswered one is
not dropped. Nothing is cut, joined or left out: the answer is every turn in its order, with a blank line between two.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field, replace

from anchord.conversation import Earlier, Event, Exchange, Head, Role, Superseded, Turn, Unknown
from anchord.sources.clean import clean

_KIND_CHARS = 80
_NEAR = 50
"""So far back an answer that is being written is looked for."""
PREAMBLE = "preamble"
"""The id of what was said before the first question."""

Told = Head | Exchange | Superseded | Unknown | Earlier


@dataclass(slots=True)
class _Open:
    """The exchange that is being made. Superseded answers of an active question make exchanges of their own."""

    first: Turn | None
    number: int
    offset: int
    answers: list[Turn] = field(default_factory=list)
    attachments: list[Turn] = field(default_factory=list)
    left: list[list[Turn]] = field(default_factory=list)
    """Superseded answers, each run of them together."""
    was_left: bool = False


def exchanges(events: Iterable[Event], first_number: int = 0) -> Iterator[Told]:
    """Make exchanges; what else is told passes through. `first_number`: of the first exchange of the first session."""
    session, number = "", first_number
    current: _Open | None = None
    left: list[Superseded] = []
    for event in events:
        if isinstance(event, Head):
            head = Head(*(clean(each) for each in (event.session, event.title, event.project, event.parent, event.updated)))
            if session and head.session != session:
                yield from _ended(session, current, left)
                number = number if current is None else 0  # Before anything was said it was only named otherwise.
                current = None
            session = head.session
            yield head
        elif isinstance(event, Superseded):
            left.append(Superseded(frozenset(map(clean, event.ids))))
            if current is None:
                yield left.pop()
        elif isinstance(event, Unknown):
            yield Unknown(clean(event.told)[:_KIND_CHARS])
        elif not isinstance(event, Turn):
            yield event
        elif event.role is Role.SUMMARY:
            text = clean(event.text).strip("\n")
            if text.strip():
                place = current.number if current else number
                yield Exchange(session, clean(event.id), place, "", text, kind="summary", at=event.at, offset=event.offset)
        elif event.role is Role.QUESTION or current is None:
            yield from _ended(session, current, left)
            current = _Open(event if event.role is Role.QUESTION else None, number, event.offset)
            number += 1
            if event.role is not Role.QUESTION:
                _take(current, event)
        else:
            _take(current, event)
    yield from _ended(session, current, left)


def _ended(session: str, current: _Open | None, left: list[Superseded]) -> Iterator[Told]:
    """Tell of an exchange, and then what was left: it can be among that."""
    yield from _closed(session, current)
    yield from left
    left.clear()


def _take(current: _Open, turn: Turn) -> None:
    if turn.role is Role.ATTACHMENT:
        current.attachments.append(turn)
        return
    is_left = turn.superseded and current.first is not None and not current.first.superseded
    if is_left and current.was_left:
        current.left[-1].append(turn)
    elif is_left:
        current.left.append([turn])
    else:
        _append(current.answers, turn)
    current.was_left = is_left


def _append(answers: list[Turn], turn: Turn) -> None:
    """Add an answer; one that was told before as far as it was written takes its place."""
    for place in range(len(answers) - 1, max(-1, len(answers) - _NEAR), -1):
        if answers[place].id == turn.id and turn.text.startswith(answers[place].text):
            answers[place] = replace(turn, tools=(*answers[place].tools, *turn.tools))
            return
    answers.append(turn)


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
            superseded=first.superseded if first else all(turn.superseded for turn in said),
            offset=current.offset,
        )
    for run in current.left:
        if first is None:
            break  # There are none then.
        named = replace(first, id=f"{first.id}~{run[0].id}", superseded=True)
        yield from _closed(session, _Open(named, current.number, current.offset, run))
    for place, turn in enumerate(current.attachments, 1):
        name, _, text = clean(turn.text).partition("\n")
        if text.strip():
            key = f"{clean(first.id) if first else PREAMBLE}+{place}"
            yield Exchange(session, key, current.number, name, text, kind="attachment", at=turn.at, offset=current.offset)


def _spoken(turn: Turn) -> str:
    text = clean(turn.text).strip("\n")
    return f"{clean(turn.speaker)}: {text}" if turn.speaker else text
