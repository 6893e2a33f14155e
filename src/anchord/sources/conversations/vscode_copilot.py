"""Copilot Chat in VS Code: one file a session, JSON before 2026 and since then a log of changes to that JSON, replayed here.

A request is an exchange. What a change of `requests` throws out (a question that was edited, an answer that was asked for
again) stays in the log until VS Code writes all of it anew as one line: it is told as superseded.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from anchord.conversation import Carrier, Event, Head, Role, Turn, Unknown
from anchord.sources.conversations.exported import conversations
from anchord.sources.conversations.records import Record, items, records, table, text, time_of, tool_line, words

SOURCE = "vscode-copilot"

_LOG = re.compile(rb'\s*\{\s*"kind"\s*:\s*0\s*,\s*"v"\s*:\s*\{')
"""The first line, which holds all of the session and may be longer than a head."""
_KEYS = (b'"responderUsername"', b'"requesterUsername"', b'"initialLocation"', b'"creationDate"')
_FOLDERS = re.compile(r"(?:^|/)(?:chatSessions|emptyWindowChatSessions)/")
_PROSE = frozenset({"", "markdownContent", "markdownVuln"})
_CALLS = frozenset({"toolInvocation", "toolInvocationSerialized"})
_EDITS = frozenset({"textEditGroup", "notebookEditGroup"})
_QUIET = words(
    "agentDetection autoModeResolution clearToPreviousToolInvocation codeCitation codeblockUri command confirmation "
    "disabledClaudeHooks elicitation elicitation2 elicitationSerialized extensions externalEdit externalEdits hook "
    "mcpServersStarting move multiDiffData planReview prepareToolInvocation progressMessage progressTask "
    "progressTaskResult progressTaskSerialized pullRequest reference references thinking treeData undoStop usedContext "
    "warning workspaceEdit"
)
_MOST_ATTACHED = 200_000
"""Characters of a pasted text."""


def recognises(head: bytes, path: str) -> bool:
    """Whether a file is a session; its folder's name helps where a first request hides the keys behind it."""
    named = any(key in head for key in _KEYS) or bool(_FOLDERS.search(path))
    if path.endswith(".jsonl"):
        return bool(_LOG.match(head)) and named
    return path.endswith(".json") and b'"requests"' in head and named


@dataclass(slots=True)
class _Log:
    session: dict[str, Any] = field(default_factory=dict)
    left: dict[str, Record] = field(default_factory=dict)
    """Requests that were thrown out."""


def read(carrier: Carrier) -> Iterator[Event]:
    """Tell of a session."""
    name = carrier.path.rpartition("/")[2].rpartition(".")[0]
    log = _Log()
    if carrier.path.endswith(".jsonl"):
        for line in records(carrier.lines()):
            if isinstance(line, Unknown):
                yield line
            elif not _apply(log, line[1]):
                yield Unknown("change that does not fit")
    else:
        for found in conversations(carrier):
            if isinstance(found, Unknown):
                yield found
            else:
                log.session = dict(found)
    if log.session:
        yield from _told(log, name)


def _apply(log: _Log, entry: Record) -> bool:
    """Make a change; say whether it could be made. 0 gives all, 1 sets, 2 appends (from `i` on, if it is there), 3 deletes."""
    kind, keys, value = entry.get("kind"), items(entry.get("k")), entry.get("v")
    before = list(items(log.session.get("requests")))
    if kind == 0 and isinstance(value, dict):
        log.session = value
    elif kind not in (1, 2, 3) or not keys or not _change(log.session, keys, entry):
        return False
    if kind == 0 or keys == ["requests"]:
        kept = {id(request) for request in items(log.session.get("requests"))}
        gone = [table(request) for request in before if id(request) not in kept]
        log.left.update({text(request.get("requestId")): request for request in gone})
    return True


def _change(session: dict[str, Any], keys: list[Any], entry: Record) -> bool:
    place: Any = session
    last, value = keys[-1], entry.get("v")
    try:
        for key in keys[:-1]:
            place = place[key]
        if entry["kind"] == 2:
            old = place.get(last) if isinstance(place, dict) else place[last]
            value = [*(old or [])[: entry.get("i")], *items(value)]
        if isinstance(place, list) and last == len(place):
            place.append(value)
        else:
            place[last] = value if entry["kind"] != 3 else None
    except (KeyError, IndexError, TypeError):
        return False
    return True


def _told(log: _Log, name: str) -> Iterator[Event]:
    session = log.session
    named: dict[str, Record] = {}
    for number, request in enumerate(map(table, items(session.get("requests")))):
        key = text(request.get("requestId"))
        named[key if key and key not in named else f"request-{number}"] = request
    left = {key: request for key, request in log.left.items() if key and key not in named}
    title = text(session.get("customTitle")) or text(session.get("computedTitle"))
    yield Head(text(session.get("sessionId")) or name, title, updated=time_of(session.get("lastMessageDate")))
    for key, request in [*named.items(), *left.items()]:
        undone = request.get("shouldBeRemovedOnSend")
        hidden = bool(request.get("isHidden") or (undone and not table(undone).get("afterUndoStop")))
        try:
            yield from _request(key, request, superseded=hidden or key in left)
        except RecursionError:
            yield Unknown("request beyond measure")


def _request(name: str, request: Record, *, superseded: bool) -> Iterator[Turn | Unknown]:
    """Tell of a request. Those that VS Code made by itself ask nothing: what came of them belongs to the question before."""
    message, at = request.get("message"), time_of(request.get("timestamp"))
    attached = [table(each) for each in items(table(request.get("variableData")).get("variables"))]
    by_itself = any(request.get(flag) for flag in ("isSystemInitiated", "hiddenFromTranscript", "requestHiddenFromTranscript"))
    if superseded or not by_itself:
        said = "" if by_itself else text(message) or text(table(message).get("text"))
        images = ["[image]" for each in attached if each.get("kind") == "image"]
        yield Turn(name, Role.QUESTION, "\n\n".join([*([said] if said else []), *images]), at, superseded=superseded)
    for each in attached:
        pasted = text(each.get("code"))[:_MOST_ATTACHED] if each.get("kind") == "paste" else ""
        if pasted.strip():
            label = text(each.get("name")) or "pasted text"
            yield Turn(f"{name}+", Role.ATTACHMENT, f"{label}\n{pasted}", at, superseded=superseded)
    yield from _response(name, request, superseded=superseded)


def _response(name: str, request: Record, *, superseded: bool) -> Iterator[Turn | Unknown]:
    """Tell of an answer: its texts are one, cut where a file or a tool was shown. What was typed in between is a question."""
    done, model = time_of(table(request.get("modelState")).get("completedAt")), text(request.get("modelId"))
    said, calls, files = list[str](), list[str](), list[str]()
    for part in map(table, items(request.get("response"))):
        kind = text(part.get("kind"))
        if kind in _PROSE and ("value" in part or "content" in part):
            said.append(_markdown(part))
        elif kind == "inlineReference":
            said.append(_reference(part))
        elif kind in _CALLS:
            calls.append(_call(part))
        elif kind in _EDITS:
            files += [path] if (path := _path(table(part.get("uri")))) else []
        elif kind == "questionCarousel" and (typed := _typed(part)):
            yield Turn(f"{name}+", Role.ANSWER, "".join(said), "", model, tuple(calls), tuple(files), superseded=superseded)
            said, calls, files, name = [], [], [], f"{name}~{text(part.get('resolveId'))}"
            yield Turn(name, Role.QUESTION, typed, superseded=superseded)
        elif kind not in _QUIET and kind != "questionCarousel":
            yield Unknown("part", str(kind)) if kind else Unknown("part without a kind")
    yield Turn(f"{name}+", Role.ANSWER, "".join(said), done, model, tuple(calls), tuple(files), superseded=superseded)


def _typed(carousel: Record) -> str:
    """Return what was typed in answer to the assistant's questions; what was chosen was not."""
    answers = [text(table(answer).get("freeformValue")) for answer in table(carousel.get("data")).values()]
    return "\n\n".join(answer for answer in answers if answer.strip())


def _markdown(value: object) -> str:
    known = table(value)
    inner = known.get("value", known.get("content"))
    return text(value) or text(inner) or text(table(inner).get("value"))


def _reference(part: Record) -> str:
    there = table(part.get("inlineReference"))
    place = table(there.get("uri")) or table(table(there.get("location")).get("uri")) or there
    return text(part.get("name")) or text(there.get("name")) or _path(place).rpartition("/")[2]


def _path(uri: Record) -> str:
    return text(uri.get("path")) or text(uri.get("fsPath"))


def _call(part: Record) -> str:
    given = table(part.get("toolSpecificData"))
    line = table(given.get("commandLine"))
    command = text(line.get("userEdited")) or text(line.get("original")) or text(given.get("command"))
    said = command or _markdown(part.get("pastTenseMessage")) or _markdown(part.get("invocationMessage"))
    return tool_line(text(part.get("toolId")) or "tool", said)
