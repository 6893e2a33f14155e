"""Where assistants keep their conversations, on each platform: the places of every format that is read."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

_EDITORS = ("Code", "Code - Insiders", "VSCodium")


@dataclass(frozen=True, slots=True)
class Place:
    """A folder that may be there."""

    program: str
    path: str


def places(home: str, env: Mapping[str, str], platform: str) -> Iterator[Place]:
    """Yield the places of a home folder; `platform` as `sys.platform` names it."""
    apps = _applications(home, env, platform)
    data = env.get("XDG_DATA_HOME") or f"{home}/.local/share"
    claude = [env[name] for name in ("CLAUDE_CONFIG_DIR",) if env.get(name)] or [f"{home}/.claude", f"{home}/.config/claude"]
    codex = env.get("CODEX_HOME") or f"{home}/.codex"
    yield from (Place("Claude Code", f"{folder}/projects") for folder in claude)
    yield Place("Codex", f"{codex}/sessions")
    yield Place("Codex", f"{codex}/archived_sessions")
    yield Place("Gemini CLI", f"{home}/.gemini/tmp")
    yield Place("Qwen Code", f"{home}/.qwen/tmp")
    yield Place("Copilot CLI", f"{home}/.copilot/session-state")
    yield Place("Copilot CLI", f"{home}/.copilot/history-session-state")
    yield Place("opencode", f"{data}/opencode")
    yield Place("Continue", f"{home}/.continue/sessions")
    yield Place("pi", f"{home}/.pi/agent/sessions")
    yield Place("pi", f"{home}/.config/pi/agent/sessions")
    yield Place("LM Studio", f"{home}/.lmstudio/conversations")
    yield Place("LM Studio", f"{home}/.cache/lm-studio/conversations")
    yield Place("Cursor", f"{apps}/Cursor/User/globalStorage")
    yield Place("Cursor", f"{home}/.cursor/projects")
    for editor in _EDITORS:
        user = f"{apps}/{editor}/User"
        yield Place("VS Code Copilot Chat", f"{user}/workspaceStorage")
        yield Place("VS Code Copilot Chat", f"{user}/globalStorage/emptyWindowChatSessions")
        yield Place("Cline", f"{user}/globalStorage/saoudrizwan.claude-dev/tasks")
        yield Place("Roo Code", f"{user}/globalStorage/rooveterinaryinc.roo-cline/tasks")
    yield Place("VS Code Copilot Chat", f"{home}/.vscode-server/data/User/workspaceStorage")


def _applications(home: str, env: Mapping[str, str], platform: str) -> str:
    if platform == "darwin":
        return f"{home}/Library/Application Support"
    if platform == "win32":
        return env.get("APPDATA") or f"{home}/AppData/Roaming"
    return env.get("XDG_CONFIG_HOME") or f"{home}/.config"
