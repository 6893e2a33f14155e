"""The hook of Claude Code: passes an event to the daemon, and prints what the daemon answers.

A hook never fails and never waits for long: where anything is wrong it prints nothing. It runs at
every prompt, and importing takes most of its time. So it imports little, and `service` does the
work in the daemon.
"""

from __future__ import annotations

import _socket  # As `socket`, which imports more than this module and takes 4 ms of CPU.
import json
import os
import sys
import time

from anchord.config.socket_place import SOCKET_NAME, run_folder

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any

METHOD = "recall"
TIMEOUT_S = 0.3
_RECEIVED_BYTES = 1 << 18
_MAX_EVENT_BYTES = 4 << 20
_MAX_CHARS = 4_000
"""Of each field: more of a prompt is not searched."""


def run_hook() -> None:
    """Answer the event on standard input on standard output."""
    try:
        event = sys.stdin.buffer.read(_MAX_EVENT_BYTES) if sys.stdin else b""
        output = answer_hook(event, os.environ)
        if output and sys.stdout:
            sys.stdout.write(output + "\n")
            sys.stdout.flush()
    except (OSError, ValueError):
        return


def answer_hook(event_text: bytes, environment: Mapping[str, str]) -> str:
    """Return what a hook prints; "" for nothing.

    Args:
        event_text: JSON of Claude Code: `hook_event_name`, `session_id`, `cwd`, `source` and
            `prompt`.
        environment: Environment variables, which say where the daemon is.
    """
    began = time.monotonic()
    try:
        event = json.loads(event_text)
    except (ValueError, RecursionError):
        return ""
    if not isinstance(event, dict) or not event.get("hook_event_name"):
        return ""
    params = {
        "event": _text(event, "hook_event_name"),
        "session": _text(event, "session_id"),
        "source": _text(event, "source"),
        "cwd": _text(event, "cwd"),
        "prompt": _text(event, "prompt"),
        "began": began,
    }
    answer = _ask_daemon(params, environment)
    if answer is None:
        _note_unanswered(params, environment)
        return ""
    if not answer:
        return ""
    output = {"hookEventName": params["event"], "additionalContext": answer}
    return json.dumps({"hookSpecificOutput": output})


def _text(event: dict[str, Any], name: str) -> str:
    """Return a field as a text that UTF-8 can encode."""
    text = str(event.get(name) or "")[:_MAX_CHARS]
    return text.encode("utf-8", "replace").decode()


def _ask_daemon(params: dict[str, Any], environment: Mapping[str, str]) -> str | None:
    """Return the daemon's answer; None without a daemon, after a time, and for an error."""
    request = {"jsonrpc": "2.0", "id": 1, "method": METHOD, "params": params}
    line = json.dumps(request).encode() + b"\n"
    connection = _socket.socket(_socket.AF_UNIX)
    try:
        answer = _exchange(connection, _socket_file(environment), line, params["began"] + TIMEOUT_S)
        return str(json.loads(answer)["result"]["context"])
    except (OSError, ValueError, KeyError, TypeError):
        return None
    finally:
        connection.close()


def _exchange(connection: _socket.socket, file: str, line: bytes, deadline: float) -> bytes:
    """Send a line, and return the one that comes back; what there is of it if the daemon leaves."""
    answer = b""
    connection.settimeout(TIMEOUT_S)
    connection.connect(file)
    connection.sendall(line)
    while not answer.endswith(b"\n"):
        connection.settimeout(max(0.001, deadline - time.monotonic()))
        received = connection.recv(_RECEIVED_BYTES)
        if not received:
            break
        answer += received
    return answer


def _note_unanswered(params: dict[str, Any], environment: Mapping[str, str]) -> None:
    """Have `unanswered` do its work; only here, because it imports more than the rest."""
    # msgspec does without this library, whose import takes as long as all others together.
    sys.modules.setdefault("typing_extensions", None)  # type: ignore[arg-type] # cannot be imported
    try:
        from anchord.agents.recall.unanswered import note_unanswered  # noqa: PLC0415
    finally:
        if sys.modules["typing_extensions"] is None:
            del sys.modules["typing_extensions"]
    note_unanswered(params, environment)


def _socket_file(environment: Mapping[str, str]) -> str:
    folder = run_folder(environment)
    if folder:
        return f"{folder}/{SOCKET_NAME}"
    from anchord.config.paths import find_paths  # noqa: PLC0415 - only on macOS

    return str(find_paths(environment).socket_file)
