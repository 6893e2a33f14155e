"""Claude Code: one JSONL file per session, one line per content block.

Sub-agents write files and records of their own ("sidechains"); this reader skips them.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field

from anchord.core.lazy_re import lazy_re
from anchord.sources.conversations.events import (
    Event,
    NeedsFullRead,
    Role,
    SessionInfo,
    SupersededQuestions,
    TranscriptFile,
    Turn,
    UnknownRecord,
)
from anchord.sources.conversations.formats.boilerplate import BoilerplateFilter
from anchord.sources.conversations.formats.claude_code_tree import MessageTree
from anchord.sources.conversations.formats.json_fields import get_dict, get_str, get_time
from anchord.sources.conversations.formats.json_records import (
    Record,
    dict_or_empty,
    format_tool_call,
    join_text_blocks,
    list_or_empty,
    parse_head_lines,
    parse_lines,
    str_or_empty,
    word_set,
)

SOURCE = "claude-code"

_IGNORED_TYPES = word_set(
    "progress system file-history-snapshot queue-operation pr-link attachment last-prompt "
    "permission-mode mode agent-name agent-setting agent-color tag task-summary worktree-state "
    "content-replacement"
)
_TITLE_KEYS = {"custom-title": "customTitle", "ai-title": "aiTitle"}
"""Type of a record that names its session -> the key of the name."""
_FILE_EDIT_TOOLS = frozenset({"Edit", "MultiEdit", "Write", "NotebookEdit"})
_BOILERPLATE = BoilerplateFilter(
    tags=sorted(
        word_set(
            "command-name command-message command-args local-command-caveat "
            "local-command-stdout local-command-stderr bash-input bash-stdout bash-stderr "
            "system-reminder user-prompt-submit-hook task-notification ide_opened_file "
            "ide_selection ide_diagnostics user-memory-input"
        )
    ),
    prefixes=[
        ("[Request interrupted by user", "]"),
        ("[Image: ", "]"),
        "Caveat: The messages below",
        "Base directory for this skill:",
        "This session is being continued from a previous conversation",
    ],
)
_SLASH_COMMAND = lazy_re(
    r"<command-name>([^<]*)</command-name>.{0,2000}?<command-args>([^<]*)</command-args>(.*)",
    re.DOTALL,
)
_BOM = b"\xef\xbb\xbf"
_TITLES_BYTES = 65_536
"""How much of a file's beginning can hold titles of later records: a session starts with them."""


def matches(head: bytes, path: str) -> bool:
    """Return whether a file is a Claude Code session, judged by the records in its head.

    Args:
        head: The first bytes of the file, at most `registry.HEAD_BYTES`.
        path: The path relative to its root, with "/".
    """
    if not path.endswith(".jsonl"):
        return False
    if any(_is_own_record(record) for record in parse_head_lines(head)):
        return True
    return _head_is_cut_message(head)


def _head_is_cut_message(head: bytes) -> bool:
    """Return whether the head is the beginning of one message that is longer than the head."""
    if b"\n" in head or not head.lstrip(_BOM).startswith(b"{"):
        return False
    is_user = b'"type":"user"' in head or b'"type": "user"' in head
    return is_user and b'"sessionId"' in head


def _is_own_record(record: Record) -> bool:
    kind = record.get("type")
    if kind in ("user", "assistant"):
        return "message" in record and ("uuid" in record or "sessionId" in record)
    if kind == "summary":
        return "leafUuid" in record
    return kind == "file-history-snapshot"


@dataclass(slots=True)
class _State:
    """What the records read so far say about the next one."""

    session: str
    project: str = ""
    resumed: bool = False
    """Reading began in the middle of the file."""
    has_read_record: bool = False
    """The first record after a resume follows one that was not read; that is no surprise."""
    seen_uuids: set[str] = field(default_factory=set)
    """Uuids of records: resumed and streamed sessions repeat older ones."""
    seen_blocks: set[tuple[str, str]] = field(default_factory=set)
    """(message id, block): streaming writes them again."""
    seen_questions: set[tuple[str, str]] = field(default_factory=set)
    """(time, text): a resumed session can repeat its history under new uuids."""
    tree: MessageTree = field(default_factory=MessageTree)
    pending_titles: dict[str, str] = field(default_factory=dict)
    """Uuid of the last record of a session -> the session's title, until that record is read."""
    last_message_id: str = ""
    """The message that the assistant's last text belongs to, with the id and text of its turn."""
    last_turn_id: str = ""
    last_text: str = ""


def read_events(transcript_file: TranscriptFile, start: int = 0) -> Iterator[Event]:
    """Yield the events of a session.

    Args:
        transcript_file: A session's JSONL file.
        start: Byte offset of the record to begin with; 0 reads the whole file. The titles at the
            file's beginning are read in any case.

    Yields:
        The session and its turns; at the end the questions on branches that were left.
        `NeedsFullRead` where a record refers to something before `start`.
    """
    name = transcript_file.path.rpartition("/")[2].partition(".")[0]
    state = _State(name, resumed=start > 0, pending_titles=_titles_before(transcript_file, start))
    yield SessionInfo(session=name)
    for found in parse_lines(transcript_file.lines(start)):
        if isinstance(found, UnknownRecord):
            yield found
        else:
            yield from _read_record(state, *found)
    superseded = state.tree.superseded_questions()
    if superseded:
        yield SupersededQuestions(superseded)


def _titles_before(transcript_file: TranscriptFile, start: int) -> dict[str, str]:
    """Return the titles at a file's beginning that can belong to records from `start` on."""
    if not start:
        return {}
    with transcript_file.open() as stream:
        head = stream.read(min(start, _TITLES_BYTES))
    return {
        get_str(record, "leafUuid"): get_str(record, "summary")
        for record in parse_head_lines(head)
        if record.get("type") == "summary" and get_str(record, "leafUuid")
    }


def _read_record(state: _State, offset: int, record: Record) -> Iterator[Event]:
    uuid = get_str(record, "uuid")
    if uuid in state.seen_uuids and not _continues_last_message(state, record):
        return
    parent = _parent_uuid(record)
    if uuid and _follows_unread_record(state, record, parent):
        # The parent is before the start, or nowhere, as in a history that is written again.
        yield NeedsFullRead()
    state.has_read_record = True
    if uuid:
        state.seen_uuids.add(uuid)
        state.tree.add_record(uuid, parent)
    if uuid in state.pending_titles:
        yield SessionInfo(session=state.session, title=state.pending_titles.pop(uuid))
    yield from _read_by_type(state, offset, record)


def _continues_last_message(state: _State, record: Record) -> bool:
    """Return whether a record streams more of the assistant's last message."""
    message_id = get_str(get_dict(record, "message"), "id")
    if record.get("type") != "assistant" or not message_id:
        return False
    return message_id == state.last_message_id


def _parent_uuid(record: Record) -> str:
    """Return the uuid of the record above, also across a compaction; "" for none."""
    parent = get_str(record, "parentUuid")
    return parent or get_str(record, "logicalParentUuid")


def _follows_unread_record(state: _State, record: Record, parent: str) -> bool:
    if not state.resumed or not state.has_read_record:
        return False
    return parent not in state.seen_uuids and not record.get("isSidechain")


def _read_by_type(state: _State, offset: int, record: Record) -> Iterator[Event]:
    kind = get_str(record, "type")
    if kind in _TITLE_KEYS:
        title = str_or_empty(record.get(_TITLE_KEYS[kind]))
        yield SessionInfo(session=state.session, title=title)
    elif kind == "summary":
        yield from _read_summary(state, record)
    elif record.get("isSidechain"):
        return  # It belongs to a sub-agent.
    elif kind == "user":
        yield from _with_session(state, record, _question_turn(state, offset, record))
    elif kind == "assistant":
        yield from _with_session(state, record, _answer_turn(state, offset, record))
    elif not kind:
        yield UnknownRecord("record without a type")
    elif kind not in _IGNORED_TYPES:
        yield UnknownRecord("", kind)


def _with_session(state: _State, record: Record, turn: Turn | None) -> Iterator[SessionInfo | Turn]:
    """Yield a turn, after the session that its record names where that is a new one."""
    if turn is None:
        return
    if turn.role is Role.QUESTION or not state.tree.has_questions:
        yield from _read_session_change(state, record)
    yield turn


def _read_session_change(state: _State, record: Record) -> Iterator[SessionInfo]:
    """Yield the session of a record if it is new: a resumed file begins with copies of another."""
    session = get_str(record, "sessionId") or state.session
    project = get_str(record, "cwd")
    has_new_project = bool(project) and not state.project
    if session != state.session or has_new_project:
        state.session = session
        state.project = project
        yield SessionInfo(session=session, project=project)


def _read_summary(state: _State, record: Record) -> Iterator[SessionInfo]:
    """Read a title. It belongs to the session of its leaf, which can be one of another file."""
    title = get_str(record, "summary")
    leaf = get_str(record, "leafUuid")
    if leaf and leaf not in state.seen_uuids:
        state.pending_titles[leaf] = title
    else:
        yield SessionInfo(session=state.session, title=title)


def _question_turn(state: _State, offset: int, record: Record) -> Turn | None:
    if record.get("isCompactSummary"):
        return _compact_summary_turn(offset, record)
    if record.get("isMeta") or record.get("isVisibleInTranscriptOnly"):
        return None
    question = _typed_text(_content_of(record))
    if not question:
        return None
    timestamp = get_time(record, "timestamp")
    if timestamp and (timestamp, question) in state.seen_questions:
        return None
    state.seen_questions.add((timestamp, question))
    uuid = get_str(record, "uuid")
    if uuid:
        state.tree.add_question(uuid)
    return Turn(
        id=uuid or f"at-{offset}",
        role=Role.QUESTION,
        text=question,
        at=timestamp,
        branch=get_str(record, "gitBranch"),
        offset=offset,
    )


def _compact_summary_turn(offset: int, record: Record) -> Turn:
    """Return the summary that replaced the conversation so far in the model's context."""
    return Turn(
        id=get_str(record, "uuid") or f"at-{offset}",
        role=Role.SUMMARY,
        text=join_text_blocks(_content_of(record), "text"),
        at=get_time(record, "timestamp"),
        offset=offset,
    )


def _content_of(record: Record) -> object:
    return get_dict(record, "message").get("content")


def _typed_text(content: object) -> str:
    """Return what the person typed, then "[image]" for each image; "" where nothing was typed."""
    if isinstance(content, str):
        return _strip_wrappers(content)
    texts: list[str] = []
    images: list[str] = []
    for block in map(dict_or_empty, list_or_empty(content)):
        if block.get("type") == "text":
            texts.append(_strip_wrappers(get_str(block, "text")))
        elif block.get("type") == "image":
            images.append("[image]")
    typed = "\n\n".join(filter(None, texts))
    return "\n\n".join([typed, *images]) if typed else ""


def _strip_wrappers(raw_text: str) -> str:
    """Return what was typed. A slash command counts if its arguments are two words or more."""
    if raw_text.lstrip().startswith("<command-"):
        command = _SLASH_COMMAND.search(raw_text)
        if command and len(command[2].split()) > 1:
            typed = f"{command[1].strip()} {command[2].strip()}"
            rest = _BOILERPLATE.remove_from(command[3])
            return f"{typed}\n\n{rest}" if rest else typed
    return _BOILERPLATE.remove_from(raw_text)


def _answer_turn(state: _State, offset: int, record: Record) -> Turn | None:
    uuid = get_str(record, "uuid")
    if uuid:
        state.tree.add_answer(uuid)
    if record.get("isApiErrorMessage"):
        return None
    message = get_dict(record, "message")
    message_id = get_str(message, "id") or uuid
    blocks = _blocks_of(message)
    new_blocks = [block for block in blocks if _mark_block_seen(state, message_id, block)]
    calls = [block for block in new_blocks if block.get("type") == "tool_use"]
    answer = join_text_blocks(new_blocks, "text")
    if not answer and not calls:
        return None
    turn_id = uuid or f"at-{offset}"
    if answer:
        if _grows_last_text(state, message_id, answer):
            turn_id = state.last_turn_id
        state.last_message_id = message_id
        state.last_turn_id = turn_id
        state.last_text = answer
    return Turn(
        id=turn_id,
        role=Role.ANSWER,
        text=answer,
        at=get_time(record, "timestamp"),
        model=_model_of(message),
        tools=tuple(map(_format_call, calls)),
        files=tuple(filter(None, map(_edited_file, calls))),
        offset=offset,
    )


def _blocks_of(message: Record) -> list[Record]:
    content = message.get("content")
    if isinstance(content, str):
        return [{"type": "text", "text": content}]
    return [dict_or_empty(block) for block in list_or_empty(content)]


def _mark_block_seen(state: _State, message_id: str, block: Record) -> bool:
    """Return whether a block of a message is new, and remember it."""
    block_id = get_str(block, "id")
    key = (message_id, block_id or f"{block.get('type')} {str_or_empty(block.get('text'))}")
    if key in state.seen_blocks:
        return False
    state.seen_blocks.add(key)
    return True


def _grows_last_text(state: _State, message_id: str, answer: str) -> bool:
    """Return whether an answer is the last one and more: streaming writes the whole text again."""
    if not state.last_text or message_id != state.last_message_id:
        return False
    return answer.startswith(state.last_text)


def _model_of(message: Record) -> str:
    """Return the model's name, "" for a message that no model wrote (`<synthetic>`)."""
    model = get_str(message, "model")
    return "" if model.startswith("<") else model


def _format_call(call: Record) -> str:
    return format_tool_call(get_str(call, "name"), call.get("input"))


def _edited_file(call: Record) -> str:
    """Return the file that a tool call changed, "" for none."""
    if get_str(call, "name") not in _FILE_EDIT_TOOLS:
        return ""
    arguments = get_dict(call, "input")
    return get_str(arguments, "file_path") or get_str(arguments, "notebook_path")
