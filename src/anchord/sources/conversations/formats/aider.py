"""Aider: `.aider.chat.history.md` in a repository, one file for all sessions, appended to.

A session has a time; its questions and answers have none. Their ids are positions in the session.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field

from anchord.core.lazy_re import lazy_re
from anchord.sources.conversations.events import Event, Role, SessionInfo, TranscriptFile, Turn
from anchord.sources.conversations.formats.aider_lines import (
    ParsedAnswer,
    UserBlock,
    find_user_blocks,
    has_aider_spacing,
    parse_answer,
)
from anchord.sources.conversations.formats.boilerplate import BoilerplateFilter
from anchord.sources.conversations.formats.json_records import normalize_timestamp

SOURCE = "aider"

_FILE_NAME = ".aider.chat.history.md"
_SESSION_PREFIX = b"# aider chat started at "
_SESSION_HEADER = lazy_re(
    rb"^# aider chat started at \d{4}-\d\d-\d\d \d\d:\d\d:\d\d\s*$", re.MULTILINE
)
_BOM = b"\xef\xbb\xbf"
_COMMAND = lazy_re(r"(?:/([a-z][a-z_-]*)|!\S*)(?:\s+(.*))?$", re.DOTALL)
_MODEL_COMMANDS = frozenset({"ask", "code", "architect", "context", "help"})
"""Commands whose text goes to the model: aider writes it again, as a question."""
_EMPTY_INPUT = "<blank>"
_HELP_HEADING = "# Question:"
_BOILERPLATE = BoilerplateFilter(tags=[], prefixes=["# Fix any errors below, if possible."])


def matches(head: bytes, path: str) -> bool:
    """Return whether a file is a chat history.

    It is one by its name, or as Markdown that begins with a session's header or has two of them.

    Args:
        head: The first bytes of the file, at most `registry.HEAD_BYTES`.
        path: The path relative to its root, with "/".
    """
    if path.rpartition("/")[2] == _FILE_NAME:
        return True
    if not path.endswith(".md"):
        return False
    if _SESSION_HEADER.match(head.removeprefix(_BOM).lstrip()):
        return True
    return len(_SESSION_HEADER.findall(head)) > 1


@dataclass(slots=True)
class _Session:
    id: str
    timestamp: str = ""
    """When it began; "" for what is above the file's first header."""
    lines: list[str] = field(default_factory=list)
    offsets: list[int] = field(default_factory=list)
    """The byte offset of each line."""


def read_events(transcript_file: TranscriptFile, start: int = 0) -> Iterator[Event]:
    """Yield the events of each session.

    Args:
        transcript_file: A chat history. It is read from its beginning whatever `start` is, because
            ids count a session's questions.
        start: Byte offset of the question to begin with; 0 yields everything.
    """
    for session in _split_sessions(transcript_file, start):
        yield SessionInfo(session=session.id)
        yield from (turn for turn in _make_turns(session) if turn.offset >= start)


def _split_sessions(transcript_file: TranscriptFile, start: int) -> Iterator[_Session]:
    """Yield the sessions that reach beyond a byte offset.

    Lines above the file's first header, whose own header was cut off, are a session without a time.
    """
    session = _Session(transcript_file.path)
    time_counts = Counter[str]()
    offset = 0
    with transcript_file.open() as stream:
        for raw_line in stream:
            line = raw_line if offset else raw_line.removeprefix(_BOM)
            if _starts_session(line, session):
                if offset > start and _has_content(session):
                    yield session
                session = _begin_session(line, time_counts)
            else:
                session.lines.append(line.decode("utf-8", "replace").rstrip("\r\n"))
                session.offsets.append(offset)
            offset += len(raw_line)
    if _has_content(session):
        yield session


def _starts_session(line: bytes, session: _Session) -> bool:
    """Return whether a line is a header, and is not quoted: right below a fence's mark."""
    if not line.startswith(_SESSION_PREFIX) or not _SESSION_HEADER.match(line):
        return False
    return not session.lines or not session.lines[-1].startswith(("```", "~~~"))


def _begin_session(header: bytes, time_counts: Counter[str]) -> _Session:
    """Return the session of a header, and count its time: sessions of one second are numbered."""
    time = header[len(_SESSION_PREFIX) :].decode("utf-8", "replace").strip()
    time_counts[time] += 1
    count = time_counts[time]
    session_id = time if count == 1 else f"{time} #{count}"
    return _Session(session_id, normalize_timestamp(time))


def _has_content(session: _Session) -> bool:
    return bool(session.timestamp) or any(line.strip() for line in session.lines)


def _make_turns(session: _Session) -> Iterator[Turn]:
    lines = session.lines
    question_count = 0
    model = ""
    command = ""  # The argument of the last command, until an answer follows.
    answer_start = 0
    end_mark = UserBlock(len(lines), len(lines), "")
    for block in [*find_user_blocks(lines), end_mark]:
        has_spacing = has_aider_spacing(lines, answer_start, block.start)
        answer = parse_answer(lines[answer_start : block.start], has_spacing=has_spacing)
        model = answer.model or model
        if answer.text:
            command = ""
        if answer.text or answer.tools or answer.files:
            turn_id = f"{question_count}.{answer_start}"
            yield _answer_turn(
                session,
                turn_id,
                answer,
                model,
                session.offsets[answer_start],
            )
        answer_start = block.end
        question = _typed_text(block.text)
        if question and not _repeats_command(question, command):
            question_count += 1
            command = _command_argument(question)
            yield Turn(
                id=str(question_count),
                role=Role.QUESTION,
                text=question,
                at=session.timestamp,
                offset=session.offsets[block.start],
            )


def _answer_turn(
    session: _Session, turn_id: str, answer: ParsedAnswer, model: str, offset: int
) -> Turn:
    return Turn(
        id=turn_id,
        role=Role.ANSWER,
        text=answer.text,
        at=session.timestamp,
        model=model,
        tools=answer.tools,
        files=answer.files,
        offset=offset,
    )


def _typed_text(block_text: str) -> str:
    """Return the question in what was typed, "" for a command that does not go to the model."""
    text = block_text.strip("\n").rstrip()
    command = _COMMAND.match(text)
    if command:
        has_question = command[1] in _MODEL_COMMANDS and command[2]
        if not has_question:
            return ""
    return "" if text == _EMPTY_INPUT else _BOILERPLATE.remove_from(text)


def _command_argument(question: str) -> str:
    command = _COMMAND.match(question)
    return command[2].strip() if command else ""


def _repeats_command(question: str, command_argument: str) -> bool:
    """Return whether a question is aider's repetition of the argument of a command before it.

    `/help` repeats it in the first line, above pages of documentation.
    """
    if not command_argument:
        return False
    first_line = question.partition("\n")[0].removeprefix(_HELP_HEADING).strip()
    return command_argument in (question.strip(), first_line)
