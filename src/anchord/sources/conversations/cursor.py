"""Cursor: a SQLite database with all conversations of the editor, and a transcript for each of its agent's (see there).

In the database a conversation ("composer") lists its messages ("bubbles"), which are rows of their own. A bubble that is not
in the list was left behind by going back to a checkpoint: it is told as superseded.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from urllib.parse import unquote

from anchord.conversation import Carrier, Event, Head, Role, Turn, Unknown
from anchord.sources.conversations import cursor_transcripts
from anchord.sources.conversations.records import Record, items, parsed, table, text, time_of, tool_line

SOURCE = "cursor"

_ROLES = {1: Role.QUESTION, 2: Role.ANSWER, "user": Role.QUESTION, "ai": Role.ANSWER}
_ID = "composerData:"
_IDS = f"SELECT key FROM cursorDiskKV WHERE key >= '{_ID}' AND key < 'composerData;' ORDER BY rowid"
_VALUE = "SELECT value FROM cursorDiskKV WHERE key = ? AND value IS NOT NULL"
_BUBBLES = "SELECT key, rowid, value FROM cursorDiskKV WHERE key >= ? AND key < ?"
"""Not in the order of the rows: SQLite would sort the values along, which are large."""
_OLDER = "SELECT value FROM ItemTable WHERE key IN ('composer.composerData', 'workbench.panel.aichat.view.aichat.chatdata')"
"""Until 2025 the conversations of a folder lay in its own database, as a whole."""


def recognises(head: bytes, path: str) -> bool:
    """Whether a file is Cursor's database, by its table, or a transcript."""
    if head.startswith(b"SQLite format 3\0"):
        return b"cursorDiskKV" in head or re.search(r"(?:^|/)Cursor/.*state\.vscdb$", path) is not None
    return cursor_transcripts.recognises(head, path)


def read(carrier: Carrier) -> Iterator[Event]:
    """Tell of a transcript, or of every conversation of the database."""
    is_transcript = carrier.path.endswith((".jsonl", ".txt"))
    return cursor_transcripts.read(carrier) if is_transcript else _database(carrier)


def _database(carrier: Carrier) -> Iterator[Event]:
    names = dict.fromkeys(text(row[0]).removeprefix(_ID) for row in carrier.query(_IDS))
    for name in names:
        for (value,) in carrier.query(_VALUE, f"{_ID}{name}"):
            bubbles = carrier.query(_BUBBLES, f"bubbleId:{name}:", f"bubbleId:{name};")
            yield from _composer(name, _object(value), bubbles)
    for (value,) in carrier.query(_OLDER):
        data = table(_object(value))
        for each in map(table, [*items(data.get("allComposers")), *items(data.get("tabs"))]):
            name = text(each.get("composerId")) or text(each.get("tabId"))
            if name and name not in names and (each.get("conversation") or each.get("bubbles")):
                names[name] = None
                yield from _composer(name, each, ())


def _object(value: object) -> Record | None:
    return parsed(value if isinstance(value, bytes) else text(value).encode("utf-8", "surrogatepass"))


def _composer(session: str, data: Record | None, rows: Iterable[Sequence[object]]) -> Iterator[Event]:
    if data is None:
        yield Unknown("broken conversation")
        return
    headers = {text(each.get("bubbleId")): each for each in map(table, items(data.get("fullConversationHeadersOnly")))}
    inline = map(table, items(data.get("conversation")) or items(data.get("bubbles")))
    whole = {text(each.get("bubbleId")) or f"bubble-{number}": each for number, each in enumerate(inline)}
    bubbles = _Bubbles(text(table(data.get("modelConfig")).get("modelName")))
    for name, bubble in whole.items():
        yield from bubbles.take(name, bubble, headers.get(name, {}))
    for key, row, value in rows:
        name = text(key).removeprefix(f"bubbleId:{session}:")
        bubbles.rows[name] = row if isinstance(row, int) else 0
        yield from bubbles.take(name, _object(value), headers.get(name, {}))
    uri = table(table(data.get("workspaceIdentifier")).get("uri"))
    title = text(data.get("name")) or text(data.get("chatTitle"))
    project = text(uri.get("fsPath")) or text(uri.get("path")) or bubbles.project
    parent = text(table(data.get("subagentInfo")).get("parentComposerId"))
    yield Head(session, title, project, parent, time_of(data.get("lastUpdatedAt")))
    yield from bubbles.told(list(headers or whole), time_of(data.get("createdAt")))


@dataclass(slots=True)
class _Bubbles:
    """Those of a conversation."""

    model: str
    project: str = ""
    rows: dict[str, int] = field(default_factory=dict)
    turns: dict[str, Turn] = field(default_factory=dict)

    def take(self, name: str, bubble: Record | None, header: Record) -> Iterator[Unknown]:
        """Take a bubble; one of thinking, and one that Cursor wrote in the user's name, is nothing."""
        if bubble is None:
            yield Unknown("broken bubble")
            return
        kind = bubble.get("type", header.get("type"))
        role = _ROLES.get(kind) if isinstance(kind, int | str) else None
        if role is None:
            yield Unknown("bubble", str(kind)) if isinstance(kind, int | str) else Unknown("bubble without a type")
            return
        uris = (_folder(text(uri)) for uri in items(bubble.get("workspaceUris")))
        self.project = self.project or text(bubble.get("workspaceProjectDir")) or next(uris, "")
        simulated = bubble.get("isSimulatedMsg") or table(header.get("grouping")).get("isSimulatedMsg")
        if not bubble.get("isThought") and not (simulated and role is Role.QUESTION):
            try:
                self.turns[name] = self._turn(name, role, bubble)
            except RecursionError:
                yield Unknown("bubble beyond measure")

    def _turn(self, name: str, role: Role, bubble: Record) -> Turn:
        texts = (text(bubble.get(key)) for key in ("text", "rawText", "content"))
        said = next((said for said in texts if said.strip()), "") or _plain(bubble.get("richText"))
        at = time_of(bubble.get("createdAt")) or time_of(bubble.get("timestamp"))
        if role is Role.QUESTION:
            images = ["[image]" for _ in items(bubble.get("images"))]
            return Turn(name, role, "\n\n".join(part for part in (cursor_transcripts.typed(said), *images) if part), at)
        model = text(table(bubble.get("modelInfo")).get("modelName")) or self.model
        call = table(bubble.get("toolFormerData"))
        tool = text(call.get("name"))
        given = _given(call.get("params")) or _given(call.get("rawArgs"))
        tools = (tool_line(tool or "tool", given),) if call else ()
        return Turn(name, role, said, at, model, tools, cursor_transcripts.changed(tool, given))

    def told(self, listed: Sequence[str], created: str) -> Iterator[Turn]:
        """Tell of those that are listed, or of all; then of the others that say something."""
        ordered = sorted(self.turns, key=lambda name: self.rows.get(name, 0))
        for name in listed or ordered:
            turn = self.turns.get(name)
            if turn is not None:
                yield turn if turn.at else replace(turn, at=created)
        active = set(listed or ordered)
        left = [self.turns[name] for name in ordered if name not in active and self.turns[name].text.strip()]
        left.sort(key=lambda turn: turn.at)
        if left and left[0].role is not Role.QUESTION:
            yield Turn(f"~{left[0].id}", Role.QUESTION, "", superseded=True)
        yield from (replace(turn, superseded=True) for turn in left)


def _given(value: object) -> Record:
    """Return what a tool was given: an object, or the text of one."""
    return table(value) or table(_object(value))


def _folder(uri: str) -> str:
    """Return the folder that a URI names, of this machine or another: `file:///c%3A/work` is `c:/work`."""
    path = unquote(uri.partition("://")[2])
    path = path[path.find("/") :] if "/" in path else ""
    return path[1:] if path[2:3] == ":" else path


def _plain(rich: object) -> str:
    """Return the texts of an editor's document: paragraphs are lines."""
    found, left = list[str](), [table(_object(rich)).get("root")]
    while left:
        node = table(left.pop())
        kind = node.get("type")
        found.append("\n" if kind == "linebreak" or (kind == "paragraph" and found[1:]) else "")
        found.append(text(node.get("text")))
        left.extend(reversed(items(node.get("children"))))
    return "".join(found).strip("\n")
