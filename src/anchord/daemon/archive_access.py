"""Asks for sessions from outside the daemon: it answers if it runs, else the archive is read."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar, cast

from anchord.config.paths import Paths
from anchord.daemon.access import ask, try_connect
from anchord.daemon.session_reading import decisions, session, sessions
from anchord.errors import UsageError
from anchord.ipc import methods
from anchord.ipc.protocol import check_params
from anchord.ipc.requests import Call

A = TypeVar("A")


def ask_daemon_or_archive(paths: Paths, call: Call[A]) -> A:
    """Ask the daemon; where none runs, or an older one, read the archive in this process.

    Args:
        paths: Where this anchord keeps its files.
        call: "sessions", "session" or "decisions".

    Raises:
        AnchordError: As the method says.
    """
    if client := try_connect(paths):
        with client:
            try:
                return ask(client, call)
            except UsageError as error:
                if not error.message.startswith(("no method", "unknown parameter")):
                    raise
    check_params(call.params)
    return cast("A", _ANSWERS[call.method.name](paths, call.params))


_ANSWERS: dict[str, Callable[[Paths, Any], object]] = {
    methods.SESSIONS.name: sessions,
    methods.SESSION.name: session,
    methods.DECISIONS.name: decisions,
}
