"""Quoting: an input is what a stranger wrote, and every answer and line that quotes it keeps its frame."""

from __future__ import annotations

import json
import shlex
from functools import cache

from hostile import is_unsafe, unsafe_in
from quoted_answers import answers_quoting, without_fields
from tools.fuzz.laws import hold

from anchord.core.quoting import (
    escape_json,
    escape_line,
    escape_path,
    escape_text,
    quote_command,
    quote_name,
    sanitize_line,
)
from anchord.mcp.render import render_answer


def quoting(data: bytes) -> None:
    """Quote a text everywhere: without its fields an answer is the same for any text, and no output has raw characters."""
    text = data.decode("utf-8", "surrogateescape") or "x"
    for name, answer in answers_quoting(text).items():
        rendered = render_answer(answer)
        hold(
            without_fields(rendered) == _frames()[name],
            "an answer without its fields is the same for any text",
            name,
            rendered,
        )
        hold(not unsafe_in(rendered, allowed="\n"), "no answer has a raw character", name, rendered)
        hold(json.loads(rendered) == answer, "the text of an answer is the answer", name)
        own_words = {key: answer.get(key) for key in ("note", "degraded", "error", "hint")}
        hold(
            own_words == _sentences()[name],
            "anchord's sentences are the same for any text",
            own_words,
        )
    _is_shown(text)
    _is_named(text)
    _is_json(data.decode("utf-8", "replace"))


@cache
def _frames() -> dict[str, str]:
    return {
        name: without_fields(render_answer(answer))
        for name, answer in answers_quoting("plain").items()
    }


@cache
def _sentences() -> dict[str, dict[str, object]]:
    return {
        name: {key: answer.get(key) for key in ("note", "degraded", "error", "hint")}
        for name, answer in answers_quoting("plain").items()
    }


def _is_named(text: str) -> None:
    quoted, command = quote_name(text), quote_command("anchord remove", text)
    hold(not unsafe_in(quoted + command), "no sentence has a raw character", quoted, command)
    hold("`" not in quoted, "a name in a sentence is no command", quoted)
    end = json.JSONDecoder().raw_decode(f'{quoted}; "x"')[1]
    hold(end == len(quoted), "a name ends where its string does", quoted)
    words = shlex.split(command.strip("`"))
    given = ["--", text] if text.startswith("-") else [text]
    hold(words[2:] in (["NAME"], given), "a name in a command is one argument", command)
    path = escape_path(escape_line(text))
    hold(": " not in path and "  " not in path, "a path is one field of a line", path)


def _is_shown(text: str) -> None:
    line = escape_line(text)
    hold(not unsafe_in(line), "no line has a raw character", line)
    hold(escape_line(line) == line, "what is escaped stays", line)
    hold(not unsafe_in(escape_text(text), "\n\t"), "no text has a raw character", text)
    hold(not unsafe_in(sanitize_line(text), "\t"), "no terminal gets a raw character", text)


def _is_json(text: str) -> None:
    encoded = escape_json(json.dumps(text, ensure_ascii=False))
    hold(json.loads(encoded) == text, "JSON is the same value", encoded)
    hold(not any(map(is_unsafe, encoded)), "no JSON has a raw character", encoded)
