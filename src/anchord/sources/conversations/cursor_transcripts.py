"""Cursor's transcripts of its agent: `agent-transcripts/<id>/<id>.jsonl`, a message a line, or the older `<id>.txt`.

A message of the user comes wrapped: contexts, then `<user_query>`. Neither form has ids or times of its own, but for a
`<timestamp>` among the contexts. A file may end without a line end, so it is read to its very end.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field

from anchord.conversation import Carrier, Event, Head, Role, Turn, Unknown
from anchord.sources.conversations.noise import Noise
from anchord.sources.conversations.records import (
    Record,
    block_texts,
    first_records,
    items,
    parsed,
    table,
    text,
    time_of,
    tool_line,
    words,
)  # fmt: skip

_ROLES = {"user": Role.QUESTION, "assistant": Role.ANSWER}
_QUIET_ROLES = words("system tool")
_BLOCKS = words("text tool_use tool_result thinking redacted_thinking image")
_CHANGING = re.compile(
    r"(?i)(?:multi|str|search)?_?(?:edit|write|replace|delete|apply_?patch)(?:_?(?:file|notebook))?(?:_v\d)?"
)
_FILES = ("path", "file_path", "filePath", "target_file", "targetFile", "relativeWorkspacePath", "target_notebook")
_NOISE = Noise(
    ["timestamp", "user_info", "attached_files", "open_and_recently_viewed_files", "additional_data", "project_context",
     "project_layout", "git_status", "system_reminder", "system-reminder", "system_notification", "task_notification",
     "agent_skills", "agent_transcripts", "manually_attached_skills", "user_rules", "always_applied_workspace_rules",
     "hooks_context", "mcp_file_system", "plugin_info", "image_files", "dynamic_tools"],
    [],
)  # fmt: skip
_QUERY = re.compile(r"\s*<user_query>(.*?)(?:</user_query>|\Z)", re.DOTALL)
_STAMP = re.compile(
    r"\s*<timestamp>(?:\w+, )?(\w{3}) (\d{1,2}), (\d{4}), (\d{1,2}):(\d\d) ([AP])M \(UTC(?:([+-])(\d{1,2})(?::(\d\d))?)?\)<"
)
_MONTHS = ("Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec")
_MARK = re.compile(rb"(user|assistant|tool):\s*")
_STEP = re.compile(r"\[(Thinking|Tool call|Tool result)\]\s*(.*)")
_MOST_LINE_BYTES = 64 << 20


def recognises(head: bytes, path: str) -> bool:
    """Whether a file is a transcript; the text form is known by its folder too, for many texts have such lines."""
    if path.endswith(".txt"):
        return "agent-transcripts/" in path and any(map(_MARK.fullmatch, head.split(b"\n")))
    return path.endswith(".jsonl") and any(_is_message(record) for record in first_records(head))


def _is_message(record: Record) -> bool:
    return "type" not in record and text(record.get("role")) in _ROLES and "content" in table(record.get("message"))


def read(carrier: Carrier) -> Iterator[Event]:
    """Tell of a session."""
    *folders, name = carrier.path.split("/")
    at = folders.index("agent-transcripts") if "agent-transcripts" in folders else len(folders)
    is_inner = "subagents" in folders[at:]
    project = folders[at - 1] if 0 < at < len(folders) else ""
    yield Head(name.rpartition(".")[0], project=project, parent=folders[-2] if is_inner and len(folders) > 1 else "")
    yield from (_messages if name.endswith(".jsonl") else _blocks)(carrier)


def _lines(carrier: Carrier) -> Iterator[tuple[int, bytes]]:
    offset = 0
    with carrier.open() as stream:
        while line := stream.readline(_MOST_LINE_BYTES):
            yield offset, line
            offset += len(line)


def _messages(carrier: Carrier) -> Iterator[Turn | Unknown]:
    for offset, line in _lines(carrier):
        record = parsed(line)
        role = text((record or {}).get("role"))
        if record is None:
            yield from [Unknown("broken line")] if line.strip() else []
        elif role in _ROLES:
            try:
                yield from _message(offset, _ROLES[role], table(record.get("message")).get("content"))
            except RecursionError:
                yield Unknown("message beyond measure")
        elif role not in _QUIET_ROLES and record.get("type") != "turn_ended":
            name = role or text(record.get("type"))
            yield Unknown("", name) if name else Unknown("record without a role")


def _message(offset: int, role: Role, content: object) -> Iterator[Turn | Unknown]:
    blocks = [table(block) for block in ([{"type": "text", "text": content}] if isinstance(content, str) else items(content))]
    kinds = [text(block.get("type")) for block in blocks]
    yield from (Unknown("block", str(kind)) for kind in kinds if kind not in _BLOCKS)
    texts = [text(block.get("text")) for block in blocks if block.get("type") == "text"]
    if role is Role.QUESTION:
        said = [part for part in map(typed, texts) if part]
        images = ["[image]"] * kinds.count("image")
        if said or images:
            yield Turn(f"at-{offset}", role, "\n\n".join([*said, *images]), _stamp(texts), offset=offset)
        return
    calls = [(text(block.get("name")), table(block.get("input"))) for block in blocks if block.get("type") == "tool_use"]
    if any(each.strip() for each in texts) or calls:
        tools = tuple(tool_line(name, given) for name, given in calls)
        files = tuple(file for call in calls for file in changed(*call))
        yield Turn(f"at-{offset}", role, block_texts(blocks, "text"), tools=tools, files=files, offset=offset)


def typed(said: str) -> str:
    """Return what a person typed of a text that may be wrapped."""
    queries, rest = list[str](), _NOISE.removed(said)
    while found := _QUERY.match(rest):
        queries.append(found[1].strip("\n"))
        rest = _NOISE.removed(rest[found.end() :])
    return "\n\n".join(part for part in (*queries, rest) if part.strip())


def changed(tool: str, given: Record) -> tuple[str, ...]:
    """Return the file that a call of a tool changed."""
    named = (text(given.get(key)) for key in _FILES)
    return tuple(name for name in named if name)[:1] if _CHANGING.fullmatch(tool) else ()


def _stamp(texts: list[str]) -> str:
    found = next((match for match in map(_STAMP.match, texts) if match), None)
    if found is None or found[1] not in _MONTHS:
        return ""
    _, day, year, hour, minute, half, sign, hours, minutes = found.groups()
    zone = f"{sign}{int(hours):02}:{minutes or '00'}" if sign else "Z"
    clock = f"{int(hour) % 12 + (12 if half == 'P' else 0):02}:{minute}:00"
    return time_of(f"{year}-{_MONTHS.index(found[1]) + 1:02}-{int(day):02}T{clock}{zone}")


def _blocks(carrier: Carrier) -> Iterator[Turn | Unknown]:
    block: _Block | None = None
    for offset, line in _lines(carrier):
        mark = _MARK.fullmatch(line)
        if mark and not (block and block.is_fenced):
            yield from block.told() if block else []
            block = _Block(mark[1].decode(), offset)
        elif block:
            block.take(line.decode("utf-8", "replace"))
        elif line.strip():
            yield Unknown("text before the first message")
    yield from block.told() if block else []


@dataclass(slots=True)
class _Block:
    """The lines of a message. What a step of the agent holds is indented; prose is at the margin."""

    role: str
    offset: int
    lines: list[str] = field(default_factory=list)
    tools: list[str] = field(default_factory=list)
    in_step: bool = False
    is_fenced: bool = False
    """A line like `user:` in a fence is code."""

    def take(self, line: str) -> None:
        """Take a line."""
        step = _STEP.match(line) if self.role == "assistant" and not self.is_fenced else None
        if step:
            self.in_step = True
            name, _, given = step[2].partition(" ")
            self.tools += [tool_line(name, given)] if step[1] == "Tool call" else []
        elif not self.in_step or not line[0].isspace():
            self.in_step = False
            self.lines.append(line)
            self.is_fenced = (self.is_fenced != line.lstrip().startswith("```")) and "</user_query>" not in line

    def told(self) -> Iterator[Turn]:
        """Tell of the message."""
        role, said = _ROLES.get(self.role), "".join(self.lines).strip("\n")
        said = typed(said) if role is Role.QUESTION else said
        if role and (said.strip() or self.tools):
            yield Turn(f"at-{self.offset}", role, said, tools=tuple(self.tools), offset=self.offset)
