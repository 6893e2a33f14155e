"""The time for long texts: twice the length may take about twice as long.

An input's first line says what reads the text: `redaction`, `rooms`, `queries`, `notebooks`, or a family of conversations; the
rest is repeated. What takes the time here are regular expressions, which run in C and have no steps to be counted: it is the
processor's clock that is asked, twice, and only a time that no busy machine explains is held against a text.
"""

from __future__ import annotations

import io
import json
import time
from collections.abc import Callable, Mapping
from functools import partial

from tools.fuzz.inputs import headed, pick
from tools.fuzz.laws import hold

from anchord.core.query_syntax import find_match_spans, parse_query, phrase_regex
from anchord.index.topics import memory_type_of, topic_of
from anchord.sources.conversations.containers import SingleTranscriptFile
from anchord.sources.conversations.exchanges import build_exchanges
from anchord.sources.conversations.formats.registry import FORMATS, read_events
from anchord.sources.documents.normalize import normalize_text
from anchord.sources.documents.parse import parse_document
from anchord.sources.secrets.redactor import redact

_SHORT = 60_000
_NOTABLE_S, _MOST_TIMES = 0.15, 2.9
_FAMILIES = {family.source: family for family in FORMATS}

Reading = Callable[[str], object]


def lengths(data: bytes) -> None:
    """Read a repeated text of two lengths."""
    head, body = headed(data)
    text = normalize_text(body.decode("utf-8", "replace"))
    if not text:
        return
    name = pick(tuple(_READINGS), head)
    text *= _SHORT // len(text) + 1
    read = _READINGS[name]
    once = _seconds(read, text)
    if once < _NOTABLE_S:
        return
    twice = _seconds(read, text * 2)
    if twice > _MOST_TIMES * once:
        once, twice = (
            min(before, _seconds(read, again))
            for before, again in ((once, text), (twice, text * 2))
        )
    hold(
        twice <= _MOST_TIMES * once,
        "twice the text is about twice the time",
        once,
        twice,
        where=name,
    )


def _seconds(read: Reading, text: str) -> float:
    began = time.process_time()
    read(text)
    return time.process_time() - began


def _redacted(text: str) -> None:
    redact(f"key {text}")


def _roomed(text: str) -> None:
    topic_of(text)
    memory_type_of(text[:4_000])


def _asked(text: str) -> None:
    asked = parse_query(text)
    for phrase in (*asked.required_phrases, *asked.excluded_phrases)[:20]:
        phrase_regex(phrase)
    find_match_spans(parse_query(text[:200]), text)


def _notebook(text: str) -> None:
    parse_document(
        json.dumps(
            {
                "cells": [
                    {"cell_type": "markdown", "source": text},
                    {"cell_type": "code", "source": [text]},
                ]
            }
        ).encode(),
        "a.ipynb",
    )


def _talk(source: str, path: str, written: Callable[[str], object], text: str) -> None:
    value = written(text)
    data = value.encode() if isinstance(value, str) else json.dumps(value).encode() + b"\n"
    for _ in build_exchanges(
        read_events(_FAMILIES[source], SingleTranscriptFile(path, lambda: io.BytesIO(data)))
    ):
        pass


def _message(role: str, kind: str, text: str) -> object:
    return {
        "type": role,
        "uuid": "a",
        "message": {"role": role, "content": [{"type": kind, "text": text}]},
    }


_TALKS: Mapping[str, tuple[str, Callable[[str], object]]] = {
    "claude-code": ("s1.jsonl", partial(_message, "user", "text")),
    "codex": ("rollout-1.jsonl", lambda text: {"type": "event_msg", "payload": {"type": "user_message", "message": text}}),
    "cursor": ("c1.jsonl", lambda text: {"role": "user", "message": {"content": text}}),
    "gemini-cli": ("session-1.jsonl", lambda text: {"type": "user", "id": "a", "content": text}),
    "pi": ("p1.jsonl", lambda text: {"type": "message", "id": "a", "message": {"role": "user", "content": text}}),
    "copilot-cli": ("events.jsonl", lambda text: {"type": "user.message", "data": {"content": text}}),
    "cline": ("t/ui_messages.json", lambda text: [{"ts": 1, "type": "say", "say": "api_req_started", "text": text}]),
    "chatgpt": ("a.json", lambda text: {"current_node": "a", "mapping": {"a": {"message": {
        "author": {"role": "user"}, "content": {"parts": [text]}}}}}),
    "claude-ai": ("a.json", lambda text: {"chat_messages": [{"sender": "assistant", "text": text}]}),
    "open-webui": ("a.json", lambda text: {"messages": [{"role": "assistant", "content": text}]}),
    "lm-studio": ("a.json", lambda text: {"messages": [{"role": "assistant", "content": text}]}),
    "aider": (".aider.chat.history.md", lambda text: f"#### x  \n\n{text}"),
    "specstory": ("a.md", lambda text: f"_**User**_\n\n{text}\n\n_**Agent**_\n\n{text}"),
    "transcript": ("a.md", lambda text: text),
}  # fmt: skip
_READINGS: Mapping[str, Reading] = {
    "redaction": _redacted,
    "rooms": _roomed,
    "queries": _asked,
    "notebooks": _notebook,
    **{source: partial(_talk, source, *given) for source, given in _TALKS.items()},
}
