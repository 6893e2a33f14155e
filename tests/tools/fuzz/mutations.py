"""Mutations that keep the form of an input: JSON values, lines, tokens. Random bytes seldom pass a parser.

libFuzzer's own changes are mixed with these by the runner; the tests use these alone. All chance comes in as an argument.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from random import Random
from typing import Any

from tools.fuzz.inputs import headed

_ODD: tuple[object, ...] = (
    None, True, False, 0, -1, 1, 1.5, 10**19, 10**400, "", "x", "\ud800", "\0", "a\r\nb", "../..", [], {}, [[1]], {"a": [1]},
    "2026-01-02T10:00:00Z", 1_767_323_045_678,
)  # fmt: skip
_TOKENS = (
    b"\n", b"\n\n", b"\r\n", b"\r", b"\0", b"\xff", b"\xed\xa0\x80", b"\xef\xbb\xbf", "\u2028".encode(), "\u0301".encode(),
    "\u00a0".encode(), "\x1c\x85".encode(), "\u4e2d\u6587\u3002".encode(), "\U0001f469\u200d\U0001f680".encode(),
    b'"', b"'", b"''", b"\\", b"\\ud800", b"\\u0000", b"*", b"**", b"?", b"[", b"]", b"{", b"}", b"(", b")", b"<", b">", b"!",
    b"#", b"-", b"--", b"/", b"//", b":", b";", b",", b".", b"|", b"%", b"~", b"^", b"$", b"_", b" ", b"  ", b"\t", b"    ",
    b"```", b"~~~", b"````", b"> ", b"> > ", b"# ", b"## ", b"#### ", b"- ", b"1. ", b"---\n", b"+++\n", b"***\n", b"===\n",
    b"<!--", b"-->", b"<details>", b"</details>", b"| a | b |\n|---|---|\n", b"| x | y |\n", b"_**User**_", b"**You:** ",
    b"User: ", b"Assistant: ", b"user:\n", b"assistant:\n", b"=== ", b"null", b"true", b"1e999", b"-0", b"9" * 30, b"[" * 40,
    b"def f():\n", b"class A:\n", b"fn f() {\n", b"}\n", b"sk-ant-", b"AKIAIOSFODNN7EXAMPLE", b"[REDACTED:aws]", b"key = ",
    b"://a:bcd@", b"eyJ", b"-----BEGIN PRIVATE KEY-----",
)  # fmt: skip
_MOST_LINES = 4_000

Way = tuple[str | int, ...]


def mutate(data: bytes, choose: Random, others: Sequence[bytes] = ()) -> bytes:
    """Return an input changed a little, in one to four places; `others` are inputs that something may be taken from."""
    head, body = headed(data)
    first = head.encode()
    for _ in range(choose.choice((1, 1, 2, 3, 4))):
        roll = choose.random()
        if roll < 0.08:
            first = _other_head(first, choose, others)
        elif roll < 0.45:
            body = _in_json(body, choose) or _tokens(body, choose)
        elif roll < 0.65:
            body = _lines(body, choose, others)
        else:
            body = _tokens(body, choose)
    return first + b"\n" + body


def _other_head(head: bytes, choose: Random, others: Sequence[bytes]) -> bytes:
    """Take a word of the first line, or all of it, from another input, or a number at random."""
    given = choose.choice(others).partition(b"\n")[0] if others else head
    if choose.random() < 0.3:
        return given
    words, theirs = head.split(b" "), given.split(b" ")
    place = choose.randrange(len(words))
    words[place] = choose.choice((*theirs, b"%d" % choose.randrange(1 << choose.randrange(1, 14))))
    return b" ".join(words)


# Bytes and lines


def _tokens(body: bytes, choose: Random) -> bytes:
    """Put a token in, take bytes out, repeat some, or change one."""
    at = choose.randrange(len(body) + 1)
    size = min(1 << choose.randrange(8), len(body) - at)
    kind = choose.randrange(6)
    if kind < 3:
        return (
            body[:at]
            + choose.choice(_TOKENS) * choose.choice((1, 1, 1, 2, 7))
            + body[at + size * (kind == 2) :]
        )
    if kind == 3:
        return body[:at] + body[at + size :]
    if kind == 4:
        return (
            body[: at + size] + body[at : at + size] * choose.choice((1, 2, 20)) + body[at + size :]
        )
    return body[:at] + bytes([choose.randrange(256)]) + body[at + 1 :]


def _lines(body: bytes, choose: Random, others: Sequence[bytes]) -> bytes:
    """Repeat, drop, move or exchange lines, or take some from another input; now and then tear off the end."""
    lines = body.split(b"\n")[:_MOST_LINES]
    first = choose.randrange(len(lines))
    last = min(len(lines), first + 1 + choose.randrange(4))
    kind = choose.randrange(6)
    if kind == 0:
        lines[last:last] = lines[first:last]
    elif kind == 1:
        del lines[first:last]
    elif kind == 2:
        moved = lines[first:last]
        del lines[first:last]
        to = choose.randrange(len(lines) + 1)
        lines[to:to] = moved
    elif kind == 3 and others:
        theirs = headed(choose.choice(others))[1].split(b"\n")
        begin = choose.randrange(len(theirs))
        lines[first:first] = theirs[begin : begin + 1 + choose.randrange(6)]
    elif kind == 4:
        lines[first] = choose.choice(
            (lines[first].lstrip(), b"  " + lines[first], lines[first] + b"  ", b"")
        )
    else:
        return body[: choose.randrange(len(body) + 1)]
    return b"\n".join(lines)


# JSON


def _in_json(body: bytes, choose: Random) -> bytes:
    """Change a value within the body, or within one of its lines, where that is JSON; else return nothing."""
    whole = _parsed(body)
    if whole is not None:
        return _written(_changed(whole, choose))
    lines = body.split(b"\n")[:_MOST_LINES]
    able = [number for number, line in enumerate(lines) if line[:1] in (b"{", b"[")]
    if not able:
        return b""
    chosen = choose.choice(able)
    value = _parsed(lines[chosen])
    if value is None:
        return b""
    lines[chosen] = _written(_changed(value, choose))
    return b"\n".join(lines)


def _parsed(data: bytes) -> Any:  # noqa: ANN401 - any JSON
    if data[:1] not in (b"{", b"["):
        return None
    try:
        return json.loads(data)
    except (ValueError, RecursionError):
        return None


def _written(value: object) -> bytes:
    try:
        return json.dumps(value).encode()
    except (ValueError, RecursionError):
        return b""


def _ways(value: object, above: Way = ()) -> Iterator[Way]:
    inner: Any = (
        value.items()
        if isinstance(value, dict)
        else enumerate(value)
        if isinstance(value, list)
        else ()
    )
    for key, each in inner:
        yield (*above, key)
        if len(above) < 20:
            yield from _ways(each, (*above, key))


def _at(value: Any, way: Way) -> Any:  # noqa: ANN401 - any JSON
    for key in way:
        value = value[key]
    return value


def _changed(value: Any, choose: Random) -> Any:  # noqa: ANN401 - any JSON
    """Return a value with something in it replaced, left out, repeated, or put where it is not expected."""
    ways = list(_ways(value))
    if not ways:
        return choose.choice(_ODD)
    *way, last = choose.choice(ways)
    holder, kind = _at(value, tuple(way)), choose.randrange(8)
    now = holder[last]
    if kind == 0:
        del holder[last]
    elif kind == 1 and isinstance(holder, list):
        holder.insert(choose.randrange(len(holder) + 1), now)
    elif kind == 2 and isinstance(holder, list):
        choose.shuffle(holder)
    elif kind in (3, 4):
        holder[last] = json.loads(
            json.dumps(_at(value, choose.choice(ways)))
        )  # A value of another place, such as an id.
    elif kind == 5 and isinstance(now, str):
        holder[last] = _tokens(now.encode("utf-8", "replace"), choose).decode("utf-8", "replace")
    elif kind == 6:
        holder[last] = (
            [now] if choose.random() < 0.5 else {"text": now, "type": "text", "value": now}
        )
    else:
        holder[last] = choose.choice(_ODD)
    return value
