"""Cursor: a SQLite database of the editor's conversations, and transcripts of its agent.

`cursor_transcripts` reads the transcripts. In the database a conversation ("composer") lists its
messages ("bubbles"), which are rows of their own. Going back to a checkpoint takes bubbles off the
list and leaves their rows: those are superseded.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from operator import attrgetter
from urllib.parse import unquote

from anchord.core.lazy_re import lazy_re
from anchord.sources.conversations.events import (
    Event,
    Role,
    SessionInfo,
    TranscriptFile,
    Turn,
    UnknownRecord,
)
from anchord.sources.conversations.formats import cursor_transcripts
from anchord.sources.conversations.formats.json_fields import (
    first_str,
    get_dict,
    get_dicts,
    get_list,
    get_str,
    get_time,
)
from anchord.sources.conversations.formats.json_records import (
    Record,
    dict_or_empty,
    format_tool_call,
    parse_object,
    str_or_empty,
)

SOURCE = "cursor"

_ROLES = {1: Role.QUESTION, 2: Role.ANSWER, "user": Role.QUESTION, "ai": Role.ANSWER}
_DATABASE_PATH = lazy_re(r"(?:^|/)Cursor/.*state\.vscdb$")
_KEY_PREFIX = "composerData:"
# In ranges of keys, ";" is the character after ":".
_CONVERSATION_KEYS_SQL = (
    f"SELECT key FROM cursorDiskKV WHERE key >= '{_KEY_PREFIX}' AND key < 'composerData;' "
    "ORDER BY rowid"
)
_VALUE_SQL = "SELECT value FROM cursorDiskKV WHERE key = ? AND value IS NOT NULL"
_BUBBLES_SQL = "SELECT key, rowid, value FROM cursorDiskKV WHERE key >= ? AND key < ?"
"""Without ORDER BY: SQLite would sort the large values along."""
_OLDER_CONVERSATIONS_SQL = (
    "SELECT value FROM ItemTable WHERE key IN "
    "('composer.composerData', 'workbench.panel.aichat.view.aichat.chatdata')"
)
"""Until 2025 each workspace had a database of its own, with its conversations as one value."""


def matches(head: bytes, path: str) -> bool:
    """Return whether a file is Cursor's database, judged by its table or its path, or a transcript.

    Args:
        head: The first bytes of the file, at most `registry.HEAD_BYTES`.
        path: The path relative to its root, with "/".
    """
    if head.startswith(b"SQLite format 3\0"):
        if b"cursorDiskKV" in head:
            return True
        return _DATABASE_PATH.search(path) is not None
    return cursor_transcripts.matches(head, path)


def read_events(transcript_file: TranscriptFile) -> Iterator[Event]:
    """Yield the events of a transcript, or of every conversation of a database."""
    if transcript_file.path.endswith((".jsonl", ".txt")):
        return cursor_transcripts.read_events(transcript_file)
    return _read_database(transcript_file)


def _read_database(transcript_file: TranscriptFile) -> Iterator[Event]:
    seen_sessions: dict[str, None] = {}
    for (key,) in transcript_file.query(_CONVERSATION_KEYS_SQL):
        stored_key = str_or_empty(key)
        session = stored_key.removeprefix(_KEY_PREFIX)
        seen_sessions[session] = None
    for session in list(seen_sessions):
        yield from _read_stored_conversation(transcript_file, session)
    for session, conversation in _older_conversations(transcript_file):
        if session in seen_sessions:
            continue
        seen_sessions[session] = None
        yield from _read_conversation(session, conversation, ())


def _read_stored_conversation(transcript_file: TranscriptFile, session: str) -> Iterator[Event]:
    """Yield the conversation of a row, with its bubbles' rows; nothing for a row without value."""
    conversation_key = f"{_KEY_PREFIX}{session}"
    first_bubble_key = f"bubbleId:{session}:"
    end_key = f"bubbleId:{session};"
    for (value,) in transcript_file.query(_VALUE_SQL, conversation_key):
        bubble_rows = transcript_file.query(_BUBBLES_SQL, first_bubble_key, end_key)
        conversation = _parse_value(value)
        yield from _read_conversation(session, conversation, bubble_rows)


def _older_conversations(transcript_file: TranscriptFile) -> Iterator[tuple[str, Record]]:
    """Yield the conversations of a workspace's database that hold their messages."""
    for (value,) in transcript_file.query(_OLDER_CONVERSATIONS_SQL):
        data = dict_or_empty(_parse_value(value))
        composers = get_dicts(data, "allComposers")
        tabs = get_dicts(data, "tabs")
        for conversation in composers + tabs:
            session = first_str(conversation, "composerId", "tabId")
            if not session:
                continue
            messages = conversation.get("conversation")
            bubbles = conversation.get("bubbles")
            if messages or bubbles:
                yield session, conversation


def _parse_value(value: object) -> Record | None:
    """Return the object in a database's value, None for anything else."""
    if isinstance(value, bytes):
        return parse_object(value)
    json_text = str_or_empty(value)
    return parse_object(json_text.encode("utf-8", "surrogatepass"))


def _read_conversation(
    session: str, conversation: Record | None, rows: Iterable[Sequence[object]]
) -> Iterator[Event]:
    """Yield a conversation.

    Args:
        session: The conversation's id.
        conversation: Its value, None for one that is broken.
        rows: (key, row id, value) of its bubbles; none for an older one, which holds its bubbles.
    """
    if conversation is None:
        yield UnknownRecord("broken conversation")
        return
    headers = _headers_by_id(conversation)
    inline_bubbles = _inline_bubbles(conversation)
    model_config = get_dict(conversation, "modelConfig")
    model = get_str(model_config, "modelName")
    bubbles = _Bubbles(model)
    for bubble_id, bubble in inline_bubbles.items():
        header = headers.get(bubble_id, {})
        yield from bubbles.add_bubble(bubble_id, bubble, header)
    key_prefix = f"bubbleId:{session}:"
    for key, row_id, value in rows:
        bubble_id = str_or_empty(key).removeprefix(key_prefix)
        header = headers.get(bubble_id, {})
        bubble_or_none = _parse_value(value)
        if isinstance(row_id, int):
            bubbles.row_ids[bubble_id] = row_id
        yield from bubbles.add_bubble(bubble_id, bubble_or_none, header)
    yield _session_info(session, conversation, bubbles.project)
    listed_ids = list(headers or inline_bubbles)
    created_at = get_time(conversation, "createdAt")
    yield from bubbles.make_turns(listed_ids, created_at)


def _headers_by_id(conversation: Record) -> dict[str, Record]:
    """Return the listed bubbles' headers by the bubbles' ids, in the list's order."""
    headers: dict[str, Record] = {}
    for header in get_dicts(conversation, "fullConversationHeadersOnly"):
        bubble_id = get_str(header, "bubbleId")
        headers[bubble_id] = header
    return headers


def _inline_bubbles(conversation: Record) -> dict[str, Record]:
    """Return the bubbles that an older conversation holds, by their ids, in order."""
    listed = get_dicts(conversation, "conversation")
    if not listed:
        listed = get_dicts(conversation, "bubbles")
    bubbles: dict[str, Record] = {}
    for number, bubble in enumerate(listed):
        bubble_id = get_str(bubble, "bubbleId")
        if not bubble_id:
            bubble_id = f"bubble-{number}"
        bubbles[bubble_id] = bubble
    return bubbles


def _session_info(session: str, conversation: Record, bubbles_project: str) -> SessionInfo:
    workspace = get_dict(conversation, "workspaceIdentifier")
    uri = get_dict(workspace, "uri")
    project = first_str(uri, "fsPath", "path")
    sub_agent = get_dict(conversation, "subagentInfo")
    return SessionInfo(
        session=session,
        title=first_str(conversation, "name", "chatTitle"),
        project=project or bubbles_project,
        parent=get_str(sub_agent, "parentComposerId"),
        updated=get_time(conversation, "lastUpdatedAt"),
    )


@dataclass(slots=True)
class _Bubbles:
    """The bubbles of a conversation, as turns."""

    model: str
    """The model of answers that name none."""
    project: str = ""
    """The first folder that a bubble names, "" for none."""
    row_ids: dict[str, int] = field(default_factory=dict)
    turns: dict[str, Turn] = field(default_factory=dict)

    def add_bubble(
        self, bubble_id: str, bubble: Record | None, header: Record
    ) -> Iterator[UnknownRecord]:
        """Add a bubble; skip one of thoughts, and one that Cursor wrote in the user's name.

        Args:
            bubble_id: The bubble's id in its conversation.
            bubble: The bubble, None for one that is broken.
            header: Its entry in the conversation's list, empty for one that is not listed.
        """
        if bubble is None:
            yield UnknownRecord("broken bubble")
            return
        kind = bubble.get("type", header.get("type"))
        if not isinstance(kind, int | str):
            yield UnknownRecord("bubble without a type")
            return
        role = _ROLES.get(kind)
        if role is None:
            yield UnknownRecord("bubble", str(kind))
            return
        self.project = self.project or _project_of_bubble(bubble)
        is_simulated = bubble.get("isSimulatedMsg") or _is_simulated(header)
        if bubble.get("isThought") or (is_simulated and role is Role.QUESTION):
            return
        try:
            self.turns[bubble_id] = self._make_turn(bubble_id, role, bubble)
        except RecursionError:
            yield UnknownRecord("bubble beyond measure")

    def _make_turn(self, bubble_id: str, role: Role, bubble: Record) -> Turn:
        text = _bubble_text(bubble)
        timestamp = get_time(bubble, "createdAt")
        if not timestamp:
            timestamp = get_time(bubble, "timestamp")
        if role is Role.QUESTION:
            question = _question_text(text, bubble)
            return Turn(id=bubble_id, role=role, text=question, at=timestamp)
        model_info = get_dict(bubble, "modelInfo")
        model = get_str(model_info, "modelName")
        call = get_dict(bubble, "toolFormerData")
        tool = get_str(call, "name")
        arguments = _parse_arguments(call.get("params"))
        if not arguments:
            arguments = _parse_arguments(call.get("rawArgs"))
        tools: tuple[str, ...] = ()
        if call:
            tools = (format_tool_call(tool or "tool", arguments),)
        return Turn(
            id=bubble_id,
            role=role,
            text=text,
            at=timestamp,
            model=model or self.model,
            tools=tools,
            files=cursor_transcripts.edited_files(tool, arguments),
        )

    def make_turns(self, listed_ids: Sequence[str], created_at: str) -> Iterator[Turn]:
        """Yield the turns of the listed bubbles, then those of the others, as superseded.

        Args:
            listed_ids: The ids on the conversation's list; empty for all, in the rows' order.
            created_at: The time of listed turns that have none.
        """
        ordered_ids = sorted(self.turns, key=self._row_id)
        active_ids = listed_ids or ordered_ids
        for bubble_id in active_ids:
            turn = self.turns.get(bubble_id)
            if turn is None:
                continue
            if not turn.at:
                turn = replace(turn, at=created_at)
            yield turn
        listed = set(active_ids)
        unlisted = [self.turns[bubble_id] for bubble_id in ordered_ids if bubble_id not in listed]
        yield from _superseded_turns(unlisted)

    def _row_id(self, bubble_id: str) -> int:
        return self.row_ids.get(bubble_id, 0)


def _project_of_bubble(bubble: Record) -> str:
    """Return the folder that a bubble names, "" for none."""
    folder = get_str(bubble, "workspaceProjectDir")
    uris = get_list(bubble, "workspaceUris")
    if folder or not uris:
        return folder
    first_uri = str_or_empty(uris[0])
    return _folder_of_uri(first_uri)


def _superseded_turns(turns: Iterable[Turn]) -> Iterator[Turn]:
    """Yield the turns that say something, by time; an answer that comes first needs a question.

    Turns of one time stay in their order.
    """
    spoken = [turn for turn in turns if turn.text.strip()]
    if not spoken:
        return
    spoken.sort(key=attrgetter("at"))
    first = spoken[0]
    if first.role is not Role.QUESTION:
        question_id = f"~{first.id}"
        yield Turn(id=question_id, role=Role.QUESTION, text="", superseded=True)
    for turn in spoken:
        yield replace(turn, superseded=True)


def _question_text(text: str, bubble: Record) -> str:
    """Return what a person typed, and a mark for each image that came with it."""
    typed = cursor_transcripts.typed_text(text)
    image_count = len(get_list(bubble, "images"))
    parts = ["[image]"] * image_count
    if typed:
        parts.insert(0, typed)
    return "\n\n".join(parts)


def _is_simulated(header: Record) -> bool:
    grouping = get_dict(header, "grouping")
    return bool(grouping.get("isSimulatedMsg"))


def _bubble_text(bubble: Record) -> str:
    """Return a bubble's text; the one in the editor's form where no other is there."""
    for key in ("text", "rawText", "content"):
        text = get_str(bubble, key)
        if text.strip():
            return text
    return _rich_text_to_plain(bubble.get("richText"))


def _parse_arguments(value: object) -> Record:
    """Return a tool's arguments: an object, or the JSON text of one."""
    arguments = dict_or_empty(value)
    if arguments:
        return arguments
    decoded = _parse_value(value)
    return dict_or_empty(decoded)


def _folder_of_uri(uri: str) -> str:
    """Return the folder of a URI on this machine or another: `file:///c%3A/work` is `c:/work`."""
    _, _, encoded_path = uri.partition("://")
    path = unquote(encoded_path)
    _, slash, below_host = path.partition("/")
    drive_mark = below_host[1:2]
    if drive_mark == ":":
        return below_host
    return slash + below_host


def _rich_text_to_plain(rich_text: object) -> str:
    """Return the texts of an editor's document, one line per paragraph."""
    value = _parse_value(rich_text)
    document = dict_or_empty(value)
    pieces: list[str] = []
    # A stack, not recursion: documents can be nested deeper than Python's calls.
    nodes: list[object] = [document.get("root")]
    while nodes:
        node = dict_or_empty(nodes.pop())
        kind = node.get("type")
        if kind in ("linebreak", "paragraph"):
            pieces.append("\n")
        text = get_str(node, "text")
        pieces.append(text)
        children = get_list(node, "children")
        nodes.extend(reversed(children))
    plain = "".join(pieces)
    return plain.strip("\n")
