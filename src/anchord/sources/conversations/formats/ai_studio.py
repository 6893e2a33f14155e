"""Google AI Studio: one JSON file per prompt, in Drive without an ending; its chunks are in order.

A chunk can name the chunk that it branched from. It is then one of several answers or questions, of
which the last is active. Drive also names chunks of other prompts there: the whole file is a branch
of such a prompt, and this reader takes it as a conversation of its own. Old files have no times.
"""

from __future__ import annotations

from codecs import BOM_UTF8
from collections.abc import Iterator
from dataclasses import dataclass, field, replace

from anchord.core.lazy_re import lazy_re
from anchord.sources.conversations.events import (
    Event,
    Role,
    SessionInfo,
    TranscriptFile,
    Turn,
    UnknownRecord,
)
from anchord.sources.conversations.formats import branches
from anchord.sources.conversations.formats.json_fields import (
    first_str,
    get_dict,
    get_dicts,
    get_str,
    get_time,
)
from anchord.sources.conversations.formats.json_records import Record, format_tool_call
from anchord.sources.conversations.formats.json_stream import stream_conversations

SOURCE = "ai-studio"

_CHUNKED_PROMPT = lazy_re(rb'"chunkedPrompt"\s*:\s*[{\[]')
_PRECEDING_KEYS = (
    lazy_re(rb'"runSettings"\s*:\s*\{'),
    lazy_re(rb'"systemInstruction"\s*:\s*\{'),
)
"""Keys before the chunks: long instructions can push the chunks out of the head."""
_ROLES = {"user": Role.QUESTION, "model": Role.ANSWER}
_ATTACHMENT_KINDS = {
    "driveDocument": "document",
    "driveImage": "image",
    "driveVideo": "video",
    "driveAudio": "audio",
    "inlineFile": "file",
    "inlineImage": "image",
    "inlineData": "file",
    "inlineAudio": "audio",
    "inlineVideo": "video",
    "youtubeVideo": "video",
}
"""Key of what a chunk can hold in place of a text -> what that is."""


def matches(head: bytes, path: str) -> bool:
    """Return whether a file is a prompt. Its name is the prompt's title, so it is not examined.

    Args:
        head: The first bytes of the file, at most `registry.HEAD_BYTES`.
        path: The path relative to its root, with "/".
    """
    if path.endswith(".jsonl") or not head.removeprefix(BOM_UTF8).lstrip().startswith(b"{"):
        return False
    if _CHUNKED_PROMPT.search(head):
        return True
    return all(key.search(head) for key in _PRECEDING_KEYS)


@dataclass(slots=True)
class _State:
    """The tree of a prompt's chunks, as far as it was read."""

    model: str
    parents: dict[str, str] = field(default_factory=dict)
    turns: dict[str, list[Turn]] = field(default_factory=dict)
    last_key: str = ""
    question_key: str = ""
    """The open question: attachments without a text belong to it. "" for none."""
    pending_attachments: list[str] = field(default_factory=list)
    """Attachments before their question."""


def read_events(transcript_file: TranscriptFile) -> Iterator[Event]:
    """Yield the events of a prompt; its session is its id, else the name of its file."""
    name = transcript_file.path.rpartition("/")[2].removesuffix(".json")
    for prompt in stream_conversations(transcript_file):
        if isinstance(prompt, UnknownRecord):
            yield prompt
        else:
            yield from _read_prompt(name, prompt)


def _read_prompt(name: str, prompt: Record) -> Iterator[Event]:
    yield SessionInfo(
        session=get_str(prompt, "id") or name,
        title=first_str(prompt, "displayName", "title") or name,
        updated=get_time(prompt, "updateTime"),
    )
    model = get_str(get_dict(prompt, "runSettings"), "model").removeprefix("models/")
    state = _State(model)
    chunked = get_dict(prompt, "chunkedPrompt")
    for number, chunk in enumerate(get_dicts(chunked, "chunks")):
        yield from _read_chunk(state, f"chunk-{number}", chunk)
    for number, chunk in enumerate(get_dicts(chunked, "pendingInputs")):
        # The person typed it and did not send it yet; it has no role.
        yield from _read_chunk(state, f"pending-{number}", {**chunk, "role": "user"})
    _add_attachment_question(state)
    yield from branches.flatten_tree(state.parents, state.turns, state.last_key)


def _read_chunk(state: _State, position_key: str, chunk: Record) -> Iterator[UnknownRecord]:
    """Add a chunk to the tree: below the chunk that it branched from, else below the last one."""
    kind = get_str(chunk, "role")
    role = _ROLES.get(kind)
    if role is not Role.QUESTION:
        _add_attachment_question(state)
    chunk_id = get_str(chunk, "id")
    key = chunk_id if chunk_id and chunk_id not in state.parents else position_key
    parent = get_str(get_dict(chunk, "branchParent"), "id")
    state.parents[key] = parent if parent in state.parents else state.last_key
    state.last_key = key
    if role is Role.ANSWER:
        state.question_key = ""
    if chunk.get("isThought"):
        return
    if role is Role.QUESTION:
        _add_question(state, key, chunk)
    elif role is Role.ANSWER:
        _add_answer(state, key, chunk)
    elif kind:
        yield UnknownRecord("role", kind)
    else:
        yield UnknownRecord("chunk without a role")


def _add_question(state: _State, key: str, chunk: Record) -> None:
    """Add a question, or attachments, which have chunks of their own before or after its text."""
    attachments = list(_attachment_names(chunk))
    text = _message_text(chunk)
    if text.strip():
        parts = [text, *state.pending_attachments, *attachments]
        question = Turn(
            id=key,
            role=Role.QUESTION,
            text="\n\n".join(parts),
            at=get_time(chunk, "createTime"),
        )
        state.turns[key] = [question]
        state.question_key = key
        state.pending_attachments = []
    elif state.question_key:
        question = state.turns[state.question_key][0]
        longer = "\n\n".join([question.text, *attachments])
        state.turns[state.question_key] = [replace(question, text=longer)]
    else:
        state.pending_attachments += attachments


def _attachment_names(chunk: Record) -> Iterator[str]:
    """Yield what a chunk holds in place of a text, as `[name]`."""
    for key, kind in _ATTACHMENT_KINDS.items():
        if chunk.get(key):
            yield f"[{get_str(get_dict(chunk, key), 'name') or kind}]"


def _add_attachment_question(state: _State) -> None:
    """Make a question at the last chunk of the attachments that no text followed, if any."""
    if not state.pending_attachments:
        return
    text = "\n\n".join(state.pending_attachments)
    question = Turn(id=state.last_key, role=Role.QUESTION, text=text)
    state.turns[state.last_key] = [question]
    state.pending_attachments = []


def _add_answer(state: _State, key: str, chunk: Record) -> None:
    text = _message_text(chunk)
    tools = tuple(_code_runs(chunk))
    if text.strip() or tools:
        answer = Turn(
            id=key,
            role=Role.ANSWER,
            text=text,
            at=get_time(chunk, "createTime"),
            model=state.model,
            tools=tools,
        )
        state.turns[key] = [answer]


def _code_runs(chunk: Record) -> Iterator[str]:
    """Yield the code that the model ran in a chunk, as a tool call in one line."""
    code = get_dict(chunk, "executableCode")
    if code:
        yield format_tool_call("code", {"command": get_str(code, "code")})


def _message_text(chunk: Record) -> str:
    """Return a chunk's text, else the pieces in which it was streamed, without thoughts."""
    text = get_str(chunk, "text")
    if text:
        return text
    pieces = get_dicts(chunk, "parts")
    return "".join(get_str(piece, "text") for piece in pieces if not piece.get("thought"))
