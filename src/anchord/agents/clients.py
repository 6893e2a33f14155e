"""The programs that anchord can be connected to, as values: their settings, and how an entry looks.

Every place is documented by its program; `{...}` is a folder of `Places.folders`.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Literal

SERVER_NAME = "anchord"
HOME_VARIABLE = "ANCHORD_HOME"

Scope = Literal["user", "project"]


@dataclass(frozen=True, kw_only=True)
class Server:
    """The command that serves agents."""

    command: tuple[str, ...]
    """The program, by its full path, and its arguments."""
    home: str = ""
    """ANCHORD_HOME for it; "" for the default one."""

    @property
    def variables(self) -> dict[str, str]:
        """The environment variables that it needs."""
        return {HOME_VARIABLE: self.home} if self.home else {}


@dataclass(frozen=True, kw_only=True)
class Form:
    """How an entry of a program looks."""

    group: str
    """The key of the object or table that has the entries."""
    language: Literal["json", "toml"] = "json"
    marks: tuple[tuple[str, str], ...] = ()
    """Keys that have the same value in every entry, such as `type`."""
    variables: str = "env"
    """The key of the environment variables."""
    is_one_list: bool = False
    """Whether program and arguments are one list."""

    def entry(self, server: Server) -> dict[str, Any]:
        """Return the entry for a server."""
        entry: dict[str, Any] = dict(self.marks)
        if self.is_one_list:
            entry |= {"command": list(server.command), "enabled": True}
        else:
            entry |= {"command": server.command[0], "args": list(server.command[1:])}
        return entry | ({self.variables: server.variables} if server.home else {})

    def server(self, entry: Any) -> Server:  # noqa: ANN401 - whatever is in the file
        """Return the server that an entry starts; without a command if it starts none."""
        values = entry if isinstance(entry, Mapping) else {}
        command, arguments = values.get("command"), values.get("args")
        words = command if isinstance(command, list) else [command]
        words = [*words, *(arguments if isinstance(arguments, list) else [])]
        variables = values.get(self.variables)
        home = variables.get(HOME_VARIABLE, "") if isinstance(variables, Mapping) else ""
        return Server(command=tuple(map(str, filter(None, words))), home=str(home))


@dataclass(frozen=True, kw_only=True)
class Client:
    """A program that starts MCP servers."""

    name: str
    """What `anchord connect` calls it."""
    title: str
    form: Form
    user_files: tuple[str, ...]
    """Its settings for this user: the first one that exists, else the first one."""
    signs: tuple[str, ...]
    """Folders that it makes."""
    program: str = ""
    """Its command; "" without one."""
    project_file: str = ""
    """Its settings for a project, in the project's folder; "" without such."""
    skills: str = ""
    """The folder of its skills; "" without such, or where another program's is read."""
    hooks_file: str = ""
    """The file of its hooks; "" where anchord has none for it."""
    project_hooks_file: str = ""
    add: tuple[str, ...] = ()
    """Its own command that adds a server for this user, with `{name}`, `{variables}` and
    `{command}`, which can be several words, or `{json}`; () where its file is edited."""
    remove: tuple[str, ...] = ()


_STANDARD = Form(group="mcpServers")
_STDIO = (("type", "stdio"),)

CLIENTS: tuple[Client, ...] = (
    Client(
        name="claude",
        title="Claude Code",
        form=Form(group="mcpServers", marks=_STDIO),
        user_files=("{claude_state}/.claude.json",),
        signs=("{claude}",),
        program="claude",
        project_file=".mcp.json",
        skills="{claude}/skills",
        hooks_file="{claude}/settings.json",
        project_hooks_file=".claude/settings.local.json",
        add=(
            "claude",
            "mcp",
            "add",
            "--scope",
            "user",
            "{name}",
            "{variables:-e}",
            "--",
            "{command}",
        ),
        remove=("claude", "mcp", "remove", "--scope", "user", "{name}"),
    ),
    Client(
        name="codex",
        title="Codex",
        form=Form(group="mcp_servers", language="toml"),
        user_files=("{codex}/config.toml",),
        signs=("{codex}",),
        program="codex",
        project_file=".codex/config.toml",
        skills="{codex}/skills",
        add=("codex", "mcp", "add", "{variables:--env}", "{name}", "--", "{command}"),
        remove=("codex", "mcp", "remove", "{name}"),
    ),
    Client(
        name="cursor",
        title="Cursor",
        form=_STANDARD,
        user_files=("{home}/.cursor/mcp.json",),
        signs=("{home}/.cursor",),
        program="cursor",
        project_file=".cursor/mcp.json",
    ),
    Client(
        name="vscode",
        title="VS Code",
        form=Form(group="servers", marks=_STDIO),
        user_files=("{code}/mcp.json",),
        signs=("{code}",),
        program="code",
        project_file=".vscode/mcp.json",
        add=("code", "--add-mcp", "{json}"),
    ),
    Client(
        name="gemini",
        title="Gemini CLI",
        form=_STANDARD,
        user_files=("{home}/.gemini/settings.json",),
        signs=("{home}/.gemini",),
        program="gemini",
        project_file=".gemini/settings.json",
        skills="{home}/.gemini/skills",
    ),
    Client(
        name="opencode",
        title="opencode",
        form=Form(
            group="mcp", marks=(("type", "local"),), variables="environment", is_one_list=True
        ),
        user_files=("{config}/opencode/opencode.json", "{config}/opencode/opencode.jsonc"),
        signs=("{config}/opencode",),
        program="opencode",
        project_file="opencode.json",
    ),
    Client(
        name="zed",
        title="Zed",
        # Versions of 2025 require `source`, later ones ignore it; all require `args`.
        form=Form(group="context_servers", marks=(("source", "custom"),)),
        user_files=("{config}/zed/settings.json",),
        signs=("{config}/zed",),
        program="zed",
        project_file=".zed/settings.json",
    ),
    Client(
        name="windsurf",
        title="Windsurf",
        form=_STANDARD,
        user_files=("{home}/.codeium/windsurf/mcp_config.json",),
        signs=("{home}/.codeium/windsurf",),
        program="windsurf",
    ),
    Client(
        name="cline",
        title="Cline",
        form=_STANDARD,
        user_files=(
            "{cline}/settings/cline_mcp_settings.json",
            "{home}/.cline/data/settings/cline_mcp_settings.json",  # Its command line program's.
        ),
        signs=("{cline}",),
    ),
)
"""The clients in the order in which they are listed. `gemini mcp add` is not used: it formats the
whole file anew."""

CLIENT_NAMES = tuple(client.name for client in CLIENTS)


@dataclass(frozen=True, kw_only=True)
class Places:
    """Where this user's programs keep their settings."""

    home: str
    environment: Mapping[str, str]
    project: str
    """The folder of the project."""
    is_mac: bool = False

    @cached_property
    def folders(self) -> Mapping[str, str]:
        """The folders by the names that `Client` uses."""
        config = self.environment.get("XDG_CONFIG_HOME") or f"{self.home}/.config"
        claude = self.environment.get("CLAUDE_CONFIG_DIR")
        library = f"{self.home}/Library/Application Support" if self.is_mac else config
        code = f"{library}/Code/User"
        return {
            "home": self.home,
            "config": config,
            "claude": claude or f"{self.home}/.claude",
            "claude_state": claude or self.home,
            "codex": self.environment.get("CODEX_HOME") or f"{self.home}/.codex",
            "code": code,
            "cline": f"{code}/globalStorage/saoudrizwan.claude-dev",
        }

    @property
    def kept_folders(self) -> frozenset[str]:
        """The folders that stay when they are empty."""
        return frozenset([self.home, self.project, self.folders["config"]])

    def path(self, place: str) -> str:
        """Return the path of a place: of this user with `{...}`, else of the project."""
        if place.startswith("{"):
            return place.format_map(self.folders)
        return f"{self.project}/{place}"


def own_command(template: tuple[str, ...], form: Form, server: Server) -> tuple[str, ...]:
    """Return a program's own command for a server.

    Args:
        template: `Client.add` or `Client.remove`.
        form: The client's.
        server: The server to add, or that was added.
    """
    words: list[str] = []
    for word in template:
        if word == "{command}":
            words += server.command
        elif word.startswith("{variables:"):
            option = word.removeprefix("{variables:").removesuffix("}")
            words += [each for n, v in server.variables.items() for each in (option, f"{n}={v}")]
        elif word == "{json}":
            words.append(json.dumps({"name": SERVER_NAME, **form.entry(server)}))
        else:
            words.append(word.replace("{name}", SERVER_NAME))
    return tuple(words)
