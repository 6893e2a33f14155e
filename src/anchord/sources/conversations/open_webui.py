"""Open WebUI's export: an array of chats, each a tree of messages; the branch up from `currentId` is the one seen last.

Answers that were asked for again, and those of several models side by side, are siblings: one is active, the others are told
as superseded. Thinking and calls of tools stand in the answers themselves, as `<details>` at the start of a line.
"""

from __future__ import annotations

import html
import json
import re
from collections.abc import Iterator

from anchord.conversation import Carrier, Event, Head, Role, Turn, Unknown
from anchord.sources.conversations import branches
from anchord.sources.conversations.exported import conversations
from anchord.sources.conversations.fences import closes, fence_mark, opens
from anchord.sources.conversations.noise import Noise
from anchord.sources.conversations.records import Record, block_texts, items, table, text, time_of, tool_line

SOURCE = "open-webui"

_ROLES = {"user": Role.QUESTION, "assistant": Role.ANSWER}
_SILENT = frozenset({"system", "tool"})
_DETAILS = re.compile(r'<details\s(?=[^>]*\btype="(?P<type>reasoning|tool_calls|code_interpreter)")(?P<given>[^>]*)>')
_GIVEN = re.compile(r'(\w+)="([^"]*)"')
_NOISE = Noise(["think", "thinking"], [])
_MOST_ATTACHED = 200_000
"""Characters of a document."""


def recognises(head: bytes, path: str) -> bool:
    """Whether a file is an export, or a single chat."""
    return path.endswith(".json") and b'"childrenIds"' in head and b'"parentId"' in head and b'"role"' in head


def read(carrier: Carrier) -> Iterator[Event]:
    """Tell of each chat."""
    for exported in conversations(carrier):
        if isinstance(exported, Unknown):
            yield exported
            continue
        chat = exported["chat"] if isinstance(exported.get("chat"), dict) else exported
        if isinstance(chat.get("history"), dict) or isinstance(chat.get("messages"), list):
            yield from told(exported, chat)
        else:
            yield Unknown("no conversation")


def told(exported: Record, chat: Record) -> Iterator[Event]:
    """Tell of one chat."""
    title = text(exported.get("title")) or text(chat.get("title"))
    session = text(exported.get("id")) or text(chat.get("id")) or f"untitled {title} {time_of(exported.get('created_at'))}"
    yield Head(session, title=title, updated=time_of(exported.get("updated_at")))
    history = table(chat.get("history"))
    messages = {key: table(message) for key, message in table(history.get("messages")).items()}
    above = {key: text(message.get("parentId")) for key, message in messages.items()}
    if not messages:  # The list beside the tree is the active branch alone.
        listed = [table(message) for message in items(chat.get("messages"))]
        messages = {f"message-{number}": message for number, message in enumerate(listed)}
        above = {f"message-{number}": f"message-{number - 1}" for number in range(len(listed))}
    leaf = text(history.get("currentId")) or text(history.get("current_id"))
    if leaf not in messages:
        newest = [(time_of(message.get("timestamp")), place, key) for place, (key, message) in enumerate(messages.items())]
        leaf = max(newest)[2] if newest else ""
    turns: dict[str, list[Turn]] = {}
    for key, message in messages.items():
        role = text(message.get("role"))
        if role in _ROLES:
            turns[key] = list(_turns(key, _ROLES[role], message))
        elif role not in _SILENT:
            yield Unknown("role", str(role)) if role else Unknown("message without a role")
    yield from branches.told(above, turns, leaf)


def _turns(key: str, role: Role, message: Record) -> Iterator[Turn]:
    at, model = time_of(message.get("timestamp")), text(message.get("model"))
    said = block_texts(message.get("content"), "text")
    tools: tuple[str, ...] = ()
    if role is Role.ANSWER:
        said, tools = _spoken(said)
        said = _NOISE.removed(said)
    files = [table(each) for each in items(message.get("files"))]
    images = ["[image]" for each in files if each.get("type") == "image"]
    documents = [each for each in files if each.get("type") != "image"] if role is Role.QUESTION else []
    parts = [part for part in (said, *images) if part.strip()] or [f"[{_name(each)}]" for each in documents]
    if parts or tools:
        yield Turn(key, role, "\n\n".join(parts), at=at, model=model, tools=tools)
    for place, each in enumerate(documents, 1):
        content = text(table(table(each.get("file")).get("data")).get("content"))[:_MOST_ATTACHED]
        yield Turn(f"{key}+{place}", Role.ATTACHMENT, f"{_name(each)}\n{content}", at=at)


def _name(file: Record) -> str:
    return text(file.get("name")) or text(table(file.get("file")).get("filename")) or "attachment"


def _spoken(content: str) -> tuple[str, tuple[str, ...]]:
    """Return an answer without its details, and the calls of tools among these. What is quoted in a fence stays."""
    kept: list[str] = []
    tools: list[str] = []
    fence, inside = "", False
    for line in content.split("\n"):
        rest, found = line, None if fence or inside else _DETAILS.match(line)
        if found:
            rest, inside = line[found.end() :], True
            tools += _called(found)
        if inside:
            _, end, rest = rest.partition("</details>")
            inside = not end
            if not rest.strip():
                continue
        mark = fence_mark(rest)
        if mark and not fence and opens(mark):
            fence = mark[0]
        elif mark and fence and closes(mark, fence):
            fence = ""
        kept.append(rest)
    return "\n".join(kept), tuple(tools)


def _called(found: re.Match[str]) -> list[str]:
    if found["type"] == "reasoning":
        return []
    given = dict(_GIVEN.findall(found["given"]))
    arguments: object = html.unescape(given.get("arguments", ""))
    for _ in range(2):  # It is JSON in JSON.
        try:
            arguments = json.loads(arguments) if isinstance(arguments, str) else arguments
        except (ValueError, RecursionError):
            break
    return [tool_line(html.unescape(given.get("name", "")) or found["type"], arguments)]
