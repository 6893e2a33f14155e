"""What the programs are called whose transcripts are read, and how they resume a session."""

from __future__ import annotations

import re

PROGRAM_NAMES = {
    "claude-code": "Claude Code",
    "codex": "Codex",
    "gemini-cli": "Gemini CLI",
    "copilot-cli": "Copilot CLI",
    "vscode-copilot": "VS Code Copilot Chat",
    "cursor": "Cursor",
    "opencode": "opencode",
    "pi": "pi",
    "cline": "Cline",
    "continue": "Continue",
    "lm-studio": "LM Studio",
    "aider": "Aider",
    "chatgpt": "ChatGPT",
    "claude-ai": "Claude.ai",
}
"""Format of a transcript -> name of the program."""
_RESUME = {
    "claude-code": ("claude", "--resume", "{id}"),
    "codex": ("codex", "resume", "{id}"),
    "gemini-cli": ("gemini", "--resume", "{id}"),
    "copilot-cli": ("copilot", "--resume", "{id}"),
    "opencode": ("opencode", "--session", "{id}"),
    "pi": ("pi", "--session", "{path}"),
}
"""As the documentation of each program has it."""
_SAFE_ID = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.-]{0,200}")


def program_name(source: str) -> str:
    """Return the name of the program that writes a format."""
    return PROGRAM_NAMES.get(source, source)


def resume_command(source: str, session: str, path: str) -> tuple[str, ...]:
    """Return the words of the command with which a program resumes a session.

    Args:
        source: The format of its transcript.
        session: The session's id.
        path: Absolute path of its transcript.

    Returns:
        () if the program has no such command, or the id could be taken for an option.
    """
    words = _RESUME.get(source, ())
    if not words or not _SAFE_ID.fullmatch(session):
        return ()
    return tuple(word.format(id=session, path=path) for word in words)
