"""Parameters and answer of the daemon's method "recall"."""

from __future__ import annotations

from anchord.ipc.messages.base import Message, Params


class RecallParams(Params, frozen=True, kw_only=True):
    """Parameters of "recall": an event of Claude Code."""

    event: str
    """`hook_event_name`."""
    session: str = ""
    source: str = ""
    """Why a session begins, for example "compact"."""
    cwd: str = ""
    prompt: str = ""
    began: float
    """When the hook began: monotonic time in seconds."""

    @property
    def is_prompt(self) -> bool:
        """Whether the user has sent a prompt."""
        return self.event == "UserPromptSubmit"

    @property
    def is_session_start(self) -> bool:
        """Whether a session begins, goes on, or was compacted."""
        return self.event == "SessionStart"

    @property
    def is_after_compaction(self) -> bool:
        """Whether passages may be gone from the session's context."""
        return self.is_session_start and self.source == "compact"


class RecallAnswer(Message, frozen=True, kw_only=True):
    """Answer of "recall"."""

    context: str
    """What the model gets; "" for nothing."""
