"""The folders in which assistants keep their conversations, by platform."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

_EDITORS = ("Code", "Code - Insiders", "VSCodium")
_FOLDERS = (
    ("Codex", "{codex}/sessions"),
    ("Codex", "{codex}/archived_sessions"),
    ("Gemini CLI", "{home}/.gemini/tmp"),
    ("Qwen Code", "{home}/.qwen/tmp"),
    ("Copilot CLI", "{home}/.copilot/session-state"),
    ("Copilot CLI", "{home}/.copilot/history-session-state"),
    ("opencode", "{data}/opencode"),
    ("Continue", "{home}/.continue/sessions"),
    ("pi", "{home}/.pi/agent/sessions"),
    ("pi", "{home}/.config/pi/agent/sessions"),
    ("LM Studio", "{home}/.lmstudio/conversations"),
    ("LM Studio", "{home}/.cache/lm-studio/conversations"),
    ("Cursor", "{apps}/Cursor/User/globalStorage"),
    ("Cursor", "{home}/.cursor/projects"),
)
_EDITOR_FOLDERS = (
    ("VS Code Copilot Chat", "workspaceStorage"),
    ("VS Code Copilot Chat", "globalStorage/emptyWindowChatSessions"),
    ("Cline", "globalStorage/saoudrizwan.claude-dev/tasks"),
    ("Roo Code", "globalStorage/rooveterinaryinc.roo-cline/tasks"),
)
"""Program -> folder below the user folder of an editor of the VS Code family."""


@dataclass(frozen=True, slots=True)
class ProgramFolder:
    """A folder in which a program keeps conversations, if the program is installed."""

    program: str
    path: str
    """Absolute path. The folder need not exist."""


def known_program_folders(
    home: str, env: Mapping[str, str], platform: str
) -> Iterator[ProgramFolder]:
    """Yield the folders in which known programs keep conversations. No file is looked at.

    Args:
        home: Absolute path of the user's home folder.
        env: Environment variables: programs read their folders from some.
        platform: As in `sys.platform`.
    """
    for folder in claude_folders(home, env):
        yield ProgramFolder("Claude Code", f"{folder}/projects")
    apps = _application_data(home, env, platform)
    codex = env.get("CODEX_HOME") or f"{home}/.codex"
    data = env.get("XDG_DATA_HOME") or f"{home}/.local/share"
    for program, path in _FOLDERS:
        yield ProgramFolder(
            program,
            path.format(
                home=home,
                apps=apps,
                codex=codex,
                data=data,
            ),
        )
    for editor in _EDITORS:
        for program, path in _EDITOR_FOLDERS:
            yield ProgramFolder(program, f"{apps}/{editor}/User/{path}")
    yield ProgramFolder("VS Code Copilot Chat", f"{home}/.vscode-server/data/User/workspaceStorage")


def claude_folders(home: str, env: Mapping[str, str]) -> list[str]:
    """Return the folders in which Claude Code may keep its settings and projects."""
    configured = env.get("CLAUDE_CONFIG_DIR")
    return [configured] if configured else [f"{home}/.claude", f"{home}/.config/claude"]


def _application_data(home: str, env: Mapping[str, str], platform: str) -> str:
    """Return the folder in which desktop programs keep their data."""
    if platform == "darwin":
        return f"{home}/Library/Application Support"
    if platform == "win32":
        return env.get("APPDATA") or f"{home}/AppData/Roaming"
    return env.get("XDG_CONFIG_HOME") or f"{home}/.config"
