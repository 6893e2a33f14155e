"""`hello`, `pause`, `resume`, `shutdown`: the daemon itself."""

from __future__ import annotations

from anchord.ipc.messages.base import Message


class HelloAnswer(Message, frozen=True, kw_only=True):
    """Answer of "hello"."""

    protocol: int
    version: str
    pid: int


class PauseAnswer(Message, frozen=True, kw_only=True):
    """Answer of "pause" and "resume"."""

    paused: bool


class ShutdownAnswer(Message, frozen=True, kw_only=True):
    """Answer of "shutdown"."""

    stopping: bool
    pid: int
