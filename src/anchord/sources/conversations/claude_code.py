"""Claude Code: one JSONL file a session, a line for each content block; sub-agents have files of their own and are left out.

A branch exists only where two questions of a person share the nearest message before them: other forks are parallel tools. The
active branch is the one that the last line is on.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field

from anchord.conversation import Carrier, Earlier, Event, Head, Role, Superseded, Turn, Unknown
from anchord.sources.conversations.noise import Noise
from anchord.sources.conversations.records import (
    Record,
    block_texts,
    first_records,
    items,
    records,
    table,
    text,
    time_of,
    words,
)  # fmt: skip
from anchord.sources.conversations.records import tool_line as line_of

SOURCE = "claude-code"

_QUIET = words(
    "progress system file-history-snapshot queue-operation pr-link attachment last-prompt permission-mode mode agent-name "
    "agent-setting agent-color tag task-summary worktree-state content-replacement"
)
_TITLES = {"custom-title": "customTitle", "ai-title": "aiTitle"}
_CHANGING = frozenset({"Edit", "MultiEdit", "Write", "NotebookEdit"})
_NOISE = Noise(
    ["command-name", "command-message", "command-args", "local-command-caveat", "local-command-stdout", "local-command-stderr",
     "bash-input", "bash-stdout", "bash-stderr", "system-reminder", "user-prompt-submit-hook", "task-notification",
     "ide_opened_file", "ide_selection", "ide_diagnostics", "user-memory-input"],
    [("[Request interrupted by user", "]"), ("[Image: ", "]"), "Caveat: The messages below", "Base directory for this skill:",
     "This session is being continued from a previous conversation"],
)  # fmt: skip
_ARGUMENTS = re.compile(r"<command-name>([^<]*)</command-name>.{0,2000}?<command-args>([^<]*)</command-args>(.*)", re.DOTALL)


def recognises(head: bytes, path: str) -> bool:
    """Whether a file is a session: by its records, as the ending is that of many."""
    if not path.endswith(".jsonl"):
        return False
    return any(_is_one(record) for record in first_records(head)) or _begins_as_one(head)


def _begins_as_one(head: bytes) -> bool:
    """Whether a first line that does not fit in the head is a message."""
    is_message = b'"type":"user"' in head or b'"type": "user"' in head
    return head.lstrip(b"\xef\xbb\xbf").startswith(b"{") and b"\n" not in head and is_message and b'"sessionId"' in head


def _is_one(record: Record) -> bool:
    kind = record.get("type")
    if kind in ("user", "assistant"):
        return "message" in record and ("uuid" in record or "sessionId" in record)
    return (kind == "summary" and "leafUuid" in record) or kind == "file-history-snapshot"


@dataclass(slots=True)
class _State:
    session: str
    project: str = ""
    seen: set[str] = field(default_factory=set)
    """Uuids of lines: resumed and streamed sessions repeat older ones."""
    blocks: set[tuple[str, str]] = field(default_factory=set)
    """(message id, block): streaming emits them again."""
    origin: dict[str, str] = field(default_factory=dict)
    """Uuid -> the nearest message at or above it."""
    after: dict[str, str] = field(default_factory=dict)
    """Question -> the nearest message above it."""
    asked_by: dict[str, str] = field(default_factory=dict)
    """Message -> the question that it belongs to."""
    last: str = ""
    titles: dict[str, str] = field(default_factory=dict)
    """The last line of a session -> what it is called, until that line comes."""
    asked: set[tuple[str, str]] = field(default_factory=set)
    """(time, text) of questions: a history can be told again under other names."""
    message: str = ""
    """The last message of the assistant, and the turn that told its last text."""
    told_in: str = ""
    told: str = ""
    resumed: bool = False
    begun: bool = False
    """Whether a record was read: the first one after a start follows what was before it."""


def read(carrier: Carrier, start: int = 0) -> Iterator[Event]:
    """Tell of a session, from a byte on."""
    name = carrier.path.rpartition("/")[2].partition(".")[0]
    state = _State(name, resumed=start > 0)
    yield Head(name)
    for found in records(carrier.lines(start)):
        if isinstance(found, Unknown):
            yield found
        else:
            yield from _told(state, *found)
    left = _left(state)
    if left:
        yield Superseded(left)


def _told(state: _State, offset: int, record: Record) -> Iterator[Event]:
    kind, uuid = text(record.get("type")), text(record.get("uuid"))
    parent = text(record.get("parentUuid")) or text(record.get("logicalParentUuid"))
    again = uuid in state.seen
    message = text(table(record.get("message")).get("id"))
    if again and not (kind == "assistant" and message and message == state.message):
        return
    if state.resumed and state.begun and uuid and parent not in state.seen and not record.get("isSidechain"):
        yield Earlier()  # It follows what was before the start, or nothing at all, as a history that is told again.
    state.begun = True
    if uuid:
        state.seen.add(uuid)
        state.origin[uuid] = state.origin.get(parent, "")
    if uuid in state.titles:
        yield Head(state.session, title=state.titles.pop(uuid))
    if kind in ("user", "assistant") and not record.get("isSidechain"):
        turn = (_question if kind == "user" else _answer)(state, offset, record)
        if turn is not None and (turn.role is Role.QUESTION or not state.after):
            yield from _heading(state, record)
        if turn is not None:
            yield turn
    elif kind == "summary" and text(record.get("leafUuid")) not in state.seen | {""}:
        state.titles[text(record.get("leafUuid"))] = text(record.get("summary"))  # It may be of another session.
    elif kind == "summary":
        yield Head(state.session, title=text(record.get("summary")))
    elif kind in _TITLES:
        yield Head(state.session, title=text(record.get(_TITLES[kind])))
    elif kind not in _QUIET and not record.get("isSidechain"):
        yield Unknown("", kind) if kind else Unknown("record without a type")


def _heading(state: _State, record: Record) -> Iterator[Head]:
    """Tell of the session that a record names: a resumed one begins with copies of the one before."""
    session, project = text(record.get("sessionId")) or state.session, text(record.get("cwd"))
    if session != state.session or (project and not state.project):
        state.session, state.project = session, project
        yield Head(session, project=project)


def _question(state: _State, offset: int, record: Record) -> Turn | None:
    uuid = text(record.get("uuid"))
    content = table(record.get("message")).get("content")
    if record.get("isCompactSummary"):
        at = time_of(record.get("timestamp"))
        return Turn(uuid or f"at-{offset}", Role.SUMMARY, block_texts(content, "text"), at=at, offset=offset)
    derived = any(record.get(flag) for flag in ("isMeta", "isCompactSummary", "isVisibleInTranscriptOnly"))
    said = "" if derived else _typed(content)
    if not said:
        return None
    at = time_of(record.get("timestamp"))
    if at and (at, said) in state.asked:
        return None
    state.asked.add((at, said))
    above = state.origin.get(uuid, "")
    if uuid:
        state.after[uuid] = above
        state.origin[uuid] = state.asked_by[uuid] = state.last = uuid
    return Turn(uuid or f"at-{offset}", Role.QUESTION, said, at=at, offset=offset)


def _typed(content: object) -> str:
    if isinstance(content, str):
        return _unwrapped(content)
    blocks = [table(block) for block in items(content)]
    parts = [_unwrapped(text(block.get("text"))) for block in blocks if block.get("type") == "text"]
    images = ["[image]" for block in blocks if block.get("type") == "image"]
    said = "\n\n".join(part for part in parts if part)
    return "\n\n".join([said, *images]) if said else ""


def _unwrapped(said: str) -> str:
    """Return what was typed; of a slash command its arguments, if they are prose."""
    found = _ARGUMENTS.search(said) if said.lstrip().startswith("<command-") else None
    if found and len(found[2].split()) > 1:
        command = f"{found[1].strip()} {found[2].strip()}"
        behind = _NOISE.removed(found[3])
        return f"{command}\n\n{behind}" if behind else command
    return _NOISE.removed(said)


def _answer(state: _State, offset: int, record: Record) -> Turn | None:
    uuid, message = text(record.get("uuid")), table(record.get("message"))
    if uuid:
        above = state.origin.get(uuid, "")
        state.asked_by[uuid] = state.asked_by.get(above, state.last)
        state.origin[uuid] = uuid
        state.last = state.asked_by[uuid]
    if record.get("isApiErrorMessage"):
        return None
    content = message.get("content")
    blocks = [table(block) for block in items(content)] if not isinstance(content, str) else [{"type": "text", "text": content}]
    message_id = text(message.get("id")) or uuid
    fresh = [block for block in blocks if _is_new(state, message_id, block)]
    calls = [block for block in fresh if block.get("type") == "tool_use"]
    said = block_texts(fresh, "text")
    if not said and not calls:
        return None
    grows = bool(said) and message_id == state.message and bool(state.told) and said.startswith(state.told)
    name = state.told_in if grows else uuid or f"at-{offset}"  # Streaming writes a text again as far as it has come.
    if said:
        state.message, state.told_in, state.told = message_id, name, said
    model = text(message.get("model"))
    return Turn(
        name, Role.ANSWER, said,
        at=time_of(record.get("timestamp")), model="" if model.startswith("<") else model,
        tools=tuple(line_of(text(call.get("name")), call.get("input")) for call in calls),
        files=tuple(file for call in calls if (file := _changed(call))), offset=offset,
    )  # fmt: skip


def _is_new(state: _State, message: str, block: Record) -> bool:
    key = (message, text(block.get("id")) or f"{block.get('type')} {text(block.get('text'))}")
    if key in state.blocks:
        return False
    state.blocks.add(key)
    return True


def _changed(call: Record) -> str:
    given = table(call.get("input"))
    return text(given.get("file_path")) or text(given.get("notebook_path")) if text(call.get("name")) in _CHANGING else ""


def _left(state: _State) -> frozenset[str]:
    """Return the questions on branches that were left. Questions after nothing known are one line, in the file's order."""
    branches: dict[str, list[str]] = {}
    for question, above in state.after.items():
        if above:
            branches.setdefault(above, []).append(question)
    forks = {question for questions in branches.values() if len(questions) > 1 for question in questions}
    if not forks:
        return frozenset()
    active, at = set[str](), state.last
    while at and at not in active:
        active.add(at)
        at = state.asked_by.get(state.after.get(at, ""), "")
    left = forks - active
    for question, above in state.after.items():  # In the file's order: a question comes after what it follows.
        if state.asked_by.get(above, "") in left:
            left.add(question)
    return frozenset(left)
