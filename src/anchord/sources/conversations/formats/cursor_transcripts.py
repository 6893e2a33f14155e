"""Cursor's agent transcripts: `agent-transcripts/<id>/<id>.jsonl`, or the older `<id>.txt`.

A JSONL file holds one message per line; a text file starts each message with a line like `user:`.
A message of the user comes wrapped: contexts first, then `<user_query>`. Neither form has ids, and
none has times but for a `<timestamp>` among the contexts. The last line may lack its line end, so
this reader takes it as whole.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field

from anchord.core.lazy_re import lazy_re
from anchord.sources.conversations.events import (
    Event,
    Role,
    SessionInfo,
    TranscriptFile,
    Turn,
    UnknownRecord,
)
from anchord.sources.conversations.formats.boilerplate import BoilerplateFilter
from anchord.sources.conversations.formats.json_fields import (
    first_str,
    get_dict,
    get_dicts,
    get_str,
)
from anchord.sources.conversations.formats.json_records import (
    Record,
    format_tool_call,
    join_text_blocks,
    normalize_timestamp,
    parse_head_lines,
    parse_object,
    unknown_record,
    word_set,
)

_ROLES = {"user": Role.QUESTION, "assistant": Role.ANSWER}
_IGNORED_ROLES = word_set("system tool")
_BLOCK_TYPES = word_set("text tool_use tool_result thinking redacted_thinking image")
_FILE_EDIT_TOOL = lazy_re(
    r"(?i)(?:multi|str|search)?_?(?:edit|write|replace|delete|apply_?patch)"
    r"(?:_?(?:file|notebook))?(?:_v\d)?"
)
_FILE_KEYS = (
    "path",
    "file_path",
    "filePath",
    "target_file",
    "targetFile",
    "relativeWorkspacePath",
    "target_notebook",
)
_BOILERPLATE = BoilerplateFilter(
    tags=[
        "timestamp",
        "user_info",
        "attached_files",
        "open_and_recently_viewed_files",
        "additional_data",
        "project_context",
        "project_layout",
        "git_status",
        "system_reminder",
        "system-reminder",
        "system_notification",
        "task_notification",
        "agent_skills",
        "agent_transcripts",
        "manually_attached_skills",
        "user_rules",
        "always_applied_workspace_rules",
        "hooks_context",
        "mcp_file_system",
        "plugin_info",
        "image_files",
        "dynamic_tools",
    ],
    prefixes=[],
)
_USER_QUERY = lazy_re(r"\s*<user_query>(.*?)(?:</user_query>|\Z)", re.DOTALL)
_TIMESTAMP = lazy_re(
    r"\s*<timestamp>(?:\w+, )?(?P<month>\w{3}) (?P<day>\d{1,2}), (?P<year>\d{4}), "
    r"(?P<hour>\d{1,2}):(?P<minute>\d\d) (?P<half>[AP])M "
    r"\(UTC(?:(?P<sign>[+-])(?P<zone_hours>\d{1,2})(?::(?P<zone_minutes>\d\d))?)?\)<"
)
_MONTHS = ("Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec")
_FOLDER = "agent-transcripts"
_ROLE_LINE = lazy_re(rb"(user|assistant|tool):\s*")
_STEP_LINE = lazy_re(r"\[(Thinking|Tool call|Tool result)\]\s*(.*)")
_MAX_LINE_BYTES = 64 << 20


def matches(head: bytes, path: str) -> bool:
    """Return whether a file is a transcript.

    The text form needs its folder too, for many texts have lines like `user:`.

    Args:
        head: The first bytes of the file, at most `registry.HEAD_BYTES`.
        path: The path relative to its root, with "/".
    """
    if path.endswith(".jsonl"):
        records = parse_head_lines(head)
        return any(map(_is_own_record, records))
    if not path.endswith(".txt"):
        return False
    if f"{_FOLDER}/" not in path:
        return False
    lines = head.split(b"\n")
    return any(map(_ROLE_LINE.fullmatch, lines))


def _is_own_record(record: Record) -> bool:
    if "type" in record or get_str(record, "role") not in _ROLES:
        return False
    return "content" in get_dict(record, "message")


def read_events(transcript_file: TranscriptFile) -> Iterator[Event]:
    """Yield the events of a session; its id is the name of its file."""
    yield _session_of_path(transcript_file.path)
    if transcript_file.path.endswith(".jsonl"):
        yield from _read_jsonl(transcript_file)
    else:
        yield from _read_text_form(transcript_file)


def _session_of_path(path: str) -> SessionInfo:
    """Return what `PROJECT/agent-transcripts/PARENT/subagents/ID.jsonl` says of a session."""
    *folders, file_name = path.split("/")
    session, _, _ = file_name.rpartition(".")
    if _FOLDER not in folders:
        return SessionInfo(session=session)
    place = folders.index(_FOLDER)
    project = ""
    if place > 0:
        project = folders[place - 1]
    parent = ""
    if "subagents" in folders[place:]:
        parent = folders[-2]
    return SessionInfo(session=session, project=project, parent=parent)


def _iter_lines(transcript_file: TranscriptFile) -> Iterator[tuple[int, bytes]]:
    """Yield each line with its byte offset, the last one also without a line end."""
    offset = 0
    with transcript_file.open() as stream:
        while line := stream.readline(_MAX_LINE_BYTES):
            yield offset, line
            offset += len(line)


def _read_jsonl(transcript_file: TranscriptFile) -> Iterator[Turn | UnknownRecord]:
    for offset, line in _iter_lines(transcript_file):
        record = parse_object(line)
        if record is not None:
            yield from _read_record(offset, record)
        elif line.strip():
            yield UnknownRecord("broken line")


def _read_record(offset: int, record: Record) -> Iterator[Turn | UnknownRecord]:
    role = get_str(record, "role")
    if role in _ROLES:
        message = get_dict(record, "message")
        try:
            yield from _read_message(offset, _ROLES[role], message)
        except RecursionError:
            yield UnknownRecord("message beyond measure")
    elif role not in _IGNORED_ROLES and record.get("type") != "turn_ended":
        name = role or get_str(record, "type")
        yield unknown_record("", name, unnamed="record without a role")


def _read_message(offset: int, role: Role, message: Record) -> Iterator[Turn | UnknownRecord]:
    blocks = _blocks_of(message)
    for block in blocks:
        kind = get_str(block, "type")
        if kind not in _BLOCK_TYPES:
            yield UnknownRecord("block", kind)
    if role is Role.QUESTION:
        yield from _question_turns(offset, blocks)
    else:
        yield from _answer_turns(offset, blocks)


def _blocks_of(message: Record) -> list[Record]:
    content = message.get("content")
    if isinstance(content, str):
        return [{"type": "text", "text": content}]
    return get_dicts(message, "content")


def _blocks_of_type(blocks: list[Record], kind: str) -> list[Record]:
    return [block for block in blocks if block.get("type") == kind]


def _question_turns(offset: int, blocks: list[Record]) -> Iterator[Turn]:
    texts = [get_str(block, "text") for block in _blocks_of_type(blocks, "text")]
    parts = [part for part in map(typed_text, texts) if part]
    parts += ["[image]"] * len(_blocks_of_type(blocks, "image"))
    if parts:
        yield Turn(
            id=f"at-{offset}",
            role=Role.QUESTION,
            text="\n\n".join(parts),
            at=_find_timestamp(texts),
            offset=offset,
        )


def _answer_turns(offset: int, blocks: list[Record]) -> Iterator[Turn]:
    answer = join_text_blocks(blocks, "text")
    calls = [
        (get_str(block, "name"), get_dict(block, "input"))
        for block in _blocks_of_type(blocks, "tool_use")
    ]
    if answer or calls:
        yield Turn(
            id=f"at-{offset}",
            role=Role.ANSWER,
            text=answer,
            tools=tuple(format_tool_call(tool, arguments) for tool, arguments in calls),
            files=tuple(file for call in calls for file in edited_files(*call)),
            offset=offset,
        )


def typed_text(raw_text: str) -> str:
    """Return what a person typed of a message's text, without the contexts around it.

    Args:
        raw_text: A text with contexts and `<user_query>` blocks, or a plain one.
    """
    parts: list[str] = []
    rest = _BOILERPLATE.remove_from(raw_text)
    while query := _USER_QUERY.match(rest):
        typed = query[1]
        parts.append(typed.strip("\n"))
        end = query.end()
        below_query = rest[end:]
        rest = _BOILERPLATE.remove_from(below_query)
    parts.append(rest)
    spoken = [part for part in parts if part.strip()]
    return "\n\n".join(spoken)


def edited_files(tool: str, arguments: Record) -> tuple[str, ...]:
    """Return the file that a tool call changed: one, or none for a tool that changes no files."""
    if not _FILE_EDIT_TOOL.fullmatch(tool):
        return ()
    file = first_str(arguments, *_FILE_KEYS)
    return (file,) if file else ()


def _find_timestamp(texts: list[str]) -> str:
    """Return the time in the first text that begins with one, "" for none."""
    for text in texts:
        stamp = _TIMESTAMP.match(text)
        if stamp:
            return _format_timestamp(stamp)
    return ""


def _format_timestamp(stamp: re.Match[str]) -> str:
    month_name = stamp["month"]
    if month_name not in _MONTHS:
        return ""
    year = stamp["year"]
    month_index = _MONTHS.index(month_name)
    month = month_index + 1
    day = int(stamp["day"])
    clock_hour = int(stamp["hour"])
    hour = clock_hour % 12
    if stamp["half"] == "P":
        hour += 12
    minute = stamp["minute"]
    zone = _format_zone(stamp)
    date = f"{year}-{month:02}-{day:02}"
    time = f"{hour:02}:{minute}:00"
    return normalize_timestamp(f"{date}T{time}{zone}")


def _format_zone(stamp: re.Match[str]) -> str:
    sign = stamp["sign"]
    if not sign:
        return "Z"
    hours = int(stamp["zone_hours"])
    minutes = stamp["zone_minutes"]
    if not minutes:
        minutes = "00"
    return f"{sign}{hours:02}:{minutes}"


def _read_text_form(transcript_file: TranscriptFile) -> Iterator[Turn | UnknownRecord]:
    message: _TextMessage | None = None
    for offset, line in _iter_lines(transcript_file):
        role = _ROLE_LINE.fullmatch(line)
        if message is not None and (role is None or message.is_fenced):
            text = line.decode("utf-8", "replace")
            message.add_line(text)
        elif role is not None:
            if message is not None:
                yield from message.make_turns()
            name = role[1].decode()
            message = _TextMessage(role=name, offset=offset)
        elif line.strip():
            yield UnknownRecord("text before the first message")
    if message is not None:
        yield from message.make_turns()


@dataclass(slots=True, kw_only=True)
class _TextMessage:
    """The lines of a message. Prose is at the margin; the content of a step is indented."""

    role: str
    offset: int
    lines: list[str] = field(default_factory=list)
    tools: list[str] = field(default_factory=list)
    in_step: bool = False
    is_fenced: bool = False
    """A fence is open: a line like `user:` in it is code."""

    def add_line(self, line: str) -> None:
        step = self._match_step(line)
        if step is not None:
            self.in_step = True
            if step[1] == "Tool call":
                tool, _, arguments = step[2].partition(" ")
                self.tools.append(format_tool_call(tool, arguments))
            return
        if self.in_step and line[0].isspace():
            return  # The step's content.
        self.in_step = False
        self.lines.append(line)
        self._follow_fence(line)

    def _match_step(self, line: str) -> re.Match[str] | None:
        if self.role != "assistant" or self.is_fenced:
            return None
        return _STEP_LINE.match(line)

    def _follow_fence(self, line: str) -> None:
        """Open or close a fence at its mark; the end of a query closes it in any case."""
        if line.lstrip().startswith("```"):
            self.is_fenced = not self.is_fenced
        if "</user_query>" in line:
            self.is_fenced = False

    def make_turns(self) -> Iterator[Turn]:
        """Yield the message's turn, nothing for a tool's or an empty one."""
        role = _ROLES.get(self.role)
        text = "".join(self.lines).strip("\n")
        if role is Role.QUESTION:
            text = typed_text(text)
        if role is not None and (text.strip() or self.tools):
            yield Turn(
                id=f"at-{self.offset}",
                role=role,
                text=text,
                tools=tuple(self.tools),
                offset=self.offset,
            )
