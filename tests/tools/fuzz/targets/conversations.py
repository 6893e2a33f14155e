"""Transcripts -> exchanges: the reader of every format, on any content.

An input's first line is the family and the path, the rest the carrier (see `carriers_in_memory`). A family that is not known is
the one that recognises it.
"""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Sequence

from tools.fuzz.inputs import headed, pick
from tools.fuzz.laws import hold
from tools.fuzz.targets.carriers_in_memory import carrier_of

from anchord.core.types import Document
from anchord.sources.conversations.events import (
    Event,
    Exchange,
    Role,
    SessionInfo,
    SupersededQuestions,
    TranscriptFile,
    Turn,
    UnknownRecord,
)
from anchord.sources.conversations.exchange_document import (
    add_session_info,
    decode_exchange,
    encode_exchange,
    exchange_path,
    is_exchange_path,
    question_line,
)
from anchord.sources.conversations.exchanges import build_exchanges
from anchord.sources.conversations.foreign_database import BrokenError
from anchord.sources.conversations.formats.registry import (
    FORMATS,
    TranscriptFormat,
    detect_folder_format,
    detect_format,
    may_be_transcript,
    read_events,
)
from anchord.sources.documents.normalize import normalize_text

_UNCLEAN = re.compile("[\r\0\ud800-\udfff]")
_TIME = re.compile(r"(?:\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z)?")
_SOURCES = {family.source: family for family in FORMATS}
_MOST_KEPT = 20


def conversations(data: bytes) -> None:
    """Read a transcript: nothing is raised, no text is lost, and a second read gives the same."""
    head, body = headed(data)
    source, _, path = head.partition(" ")
    path = _named(source, path)
    may_be_transcript(path)
    with carrier_of(path, body) as (carrier, begin):
        family = _family(source, path, carrier, begin)
        try:
            events = list(read_events(family, carrier))
        except BrokenError:
            return  # A text is given to a format that reads a database.
        hold(
            events == list(read_events(family, carrier)),
            "a carrier tells the same twice",
            where=family.source,
        )
    _offsets(family, events, body)
    hold(
        all(each.description for each in events if isinstance(each, UnknownRecord)),
        "what is not known has a name",
        where=family.source,
    )
    made = list(build_exchanges(events))
    found = [each for each in made if isinstance(each, Exchange)]
    _is_all_told(family, events, found)
    _are_written(family, found)
    _are_named(family, made)
    _are_left(family, made)
    _are_kept(
        family,
        found[:_MOST_KEPT],
        next((each for each in events if isinstance(each, SessionInfo)), SessionInfo(session="")),
    )


def _named(source: str, path: str) -> str:
    """Return a path that a file in a root can have: its name has letters, and an ending where a family has one."""
    name = path.rpartition("/")[2]
    stem, _, ending = name.rpartition(".")
    fits = (stem.strip(".") and ending) or (source == "ai-studio" and name[:1] not in ("", "."))
    return path if fits or path.endswith("/") else f"{path}x.jsonl"


def _family(source: str, path: str, carrier: TranscriptFile, begin: bytes) -> TranscriptFormat:
    for family in FORMATS:
        hold(
            family.matches(begin, path) in (True, False),
            "a family recognises a carrier or not",
            where=family.source,
        )
        hold(
            isinstance(family.transcript_folder(path), str),
            "a family names a folder or none",
            where=family.source,
        )
    names = carrier.member_names()
    if source in _SOURCES:
        return _SOURCES[source]
    by_content = detect_folder_format(names) if names else detect_format(begin, path)
    return by_content or _SOURCES[pick(tuple(_SOURCES), source)]


def _offsets(family: TranscriptFormat, events: Sequence[Event], body: bytes) -> None:
    """A resume point is the beginning of a line."""
    for turn in (event for event in events if isinstance(event, Turn)) if family.can_resume else ():
        begins = turn.offset == 0 or body[turn.offset - 1 : turn.offset] == b"\n"
        hold(begins, "a turn starts with a line", turn, where=family.source)


def _is_all_told(
    family: TranscriptFormat, events: Sequence[Event], found: Sequence[Exchange]
) -> None:
    """Every word of every turn is in an exchange."""
    said = "\0".join(text for exchange in found for text in (exchange.question, exchange.answer))
    for turn in (event for event in events if isinstance(event, Turn)):
        text = normalize_text(turn.text)
        text = text.partition("\n")[2] if turn.role is Role.ATTACHMENT else text
        hold(
            text.strip("\n") in said or not text.strip(),
            "every turn is in an exchange",
            turn,
            where=family.source,
        )


def _are_written(family: TranscriptFormat, found: Sequence[Exchange]) -> None:
    """Texts can be written and chunked, and times have the one form."""
    for exchange in found:
        texts = (exchange.session, exchange.id, exchange.question, exchange.answer, exchange.model)
        unclean = [
            text for text in (*texts, *exchange.tools, *exchange.files) if _UNCLEAN.search(text)
        ]
        hold(not unclean, "an exchange has no CR, NUL or surrogate", unclean, where=family.source)
        times = [at for at in (exchange.at, exchange.until) if not _TIME.fullmatch(at)]
        hold(not times, "times are UTC to the millisecond", times, where=family.source)


def _are_named(family: TranscriptFormat, made: Sequence[object]) -> None:
    """Active exchanges have unique names, because the index would keep only one of two."""
    names: Counter[tuple[int, str, str]] = Counter()
    run = 0
    for each in made:
        hold(
            isinstance(each, SessionInfo | Exchange | SupersededQuestions | UnknownRecord)
            or family.can_resume,
            "only what is known is told",
            each,
        )
        run += isinstance(each, SessionInfo)
        if isinstance(each, Exchange) and not each.superseded:
            names[(run, each.session, each.id)] += 1
    twice = [name for name, count in names.items() if count > 1]
    hold(not twice, "no two exchanges have one name", twice[:2], where=family.source)


def _are_left(family: TranscriptFormat, made: Sequence[object]) -> None:
    """Superseded questions were read before: the archive marks only exchanges that it has."""
    read_before: set[tuple[str, str]] = set()
    session, left = "", set[tuple[str, str]]()
    for each in made:
        if isinstance(each, SessionInfo):
            session = each.session
        elif isinstance(each, SupersededQuestions):
            left |= {(session, name) for name in each.ids} - read_before
        elif isinstance(each, Exchange):
            read_before.add((each.session, each.id))
            late = (each.session, each.id) in left and not each.superseded
            hold(
                not late, "what is left is told before it is named so", each.id, where=family.source
            )


def _are_kept(family: TranscriptFormat, found: Sequence[Exchange], head: SessionInfo) -> None:
    """What the archive keeps of an exchange is the exchange."""
    for exchange in found:
        path = exchange_path(family.source, exchange.session, exchange.id)
        hold(
            is_exchange_path(path) and path.count("/") == 3,
            "an exchange has a path of its own",
            path,
            where=family.source,
        )
        kept = encode_exchange(exchange)
        whole = add_session_info(
            kept,
            family.source,
            exchange.session,
            normalize_text(head.title),
            normalize_text(head.project),
        )
        document = decode_exchange(whole)
        question_line(whole)
        restored = json.loads(kept)
        hold(
            restored["question"] == exchange.question,
            "a question is kept as it is",
            exchange.question,
            where=family.source,
        )
        hold(
            restored["answer"] == exchange.answer,
            "an answer is kept as it is",
            exchange.answer,
            where=family.source,
        )
        words = f"{exchange.question} {exchange.answer}".split()
        lost = isinstance(document, Document) and document.text.split() != words
        hold(not lost, "a document has the words of its exchange", words[:20], where=family.source)
        hold(
            isinstance(document, Document) == bool(words),
            "an exchange with words is a document",
            where=family.source,
        )
