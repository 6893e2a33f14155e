"""What docs/agents.md says of each client is what the code does; the plugin and the skill are of this version."""

from __future__ import annotations

import asyncio
import json
import re
from pathlib import Path

import pytest

from anchord._version import __version__
from anchord.agents.clients import CLIENTS, Client, Places
from anchord.agents.skill import PLUGIN_FOLDER, SKILL_FILE, is_shipped, with_digest
from anchord.config.paths import find_paths
from anchord.mcp.server import make_server

DOCS = Path(__file__).parents[2] / "docs"
_HOME = Places(home="~", environment={}, project=".")


def row(client: Client) -> str:
    """Return the row of a client in the table of docs/agents.md."""
    files = " or ".join(f"`{_HOME.path(file)}`" for file in client.user_files)
    project = f"`{client.project_file}`" if client.project_file else ""
    skill = f"`{_HOME.path(client.skills)}/anchord`" if client.skills else ""
    own = (
        f"`{' '.join(client.add[:3] if client.name != 'vscode' else client.add[:2])}`"
        if client.add
        else ""
    )
    return f"| `{client.name}` | {client.title} | {files} | `{client.form.group}` | {project} | {skill} | {own} |"


@pytest.mark.parametrize("client", CLIENTS, ids=lambda client: client.name)
def test_the_documentation_has_the_row_of_each_client(client: Client) -> None:
    assert row(client) in (DOCS / "agents.md").read_text("utf-8").splitlines()


def test_the_plugin_has_the_version_of_the_program_and_starts_it() -> None:
    manifest = json.loads((PLUGIN_FOLDER / ".claude-plugin" / "plugin.json").read_text())
    assert (manifest["name"], manifest["version"]) == ("anchord", __version__)
    server = json.loads((PLUGIN_FOLDER / ".mcp.json").read_text())["mcpServers"]["anchord"]
    assert server == {"command": "${ANCHORD_COMMAND:-anchord}", "args": ["mcp"]}
    hooks = json.loads((PLUGIN_FOLDER / "hooks" / "hooks.json").read_text())["hooks"]
    assert sorted(hooks) == ["SessionStart", "UserPromptSubmit"]
    for (group,) in hooks.values():
        command = group["hooks"][0]["command"]
        assert command == '"${ANCHORD_COMMAND:-anchord}" recall hook || true'


def test_the_skill_is_short_and_says_what_to_do() -> None:
    text = SKILL_FILE.read_text("utf-8")
    head, body = text.removeprefix("---\n").split("\n---\n", 1)
    fields = dict(line.split(": ", 1) for line in head.splitlines())
    assert fields["name"] == SKILL_FILE.parent.name == "anchord"
    assert len(fields["description"]) < 1_024
    assert len(text.splitlines()) <= 60
    for word in (
        "path:start_line-end_line",
        "`show`",
        "`id`",
        '`"about": false`',
        "`note`",
        "conversation",
    ):
        assert word in body


def test_the_skill_names_the_tools_of_the_server(tmp_path: Path) -> None:
    server = make_server(find_paths({"ANCHORD_HOME": str(tmp_path)}))
    tools = {tool.name for tool in asyncio.run(server.list_tools())}
    body = SKILL_FILE.read_text("utf-8")
    listed = body.partition("`anchord`: ")[2].partition(".\n")[0]
    assert set(re.findall(r"`(\w+)`", listed)) == tools


def test_the_skill_ends_with_its_digest() -> None:
    text = SKILL_FILE.read_text("utf-8")
    assert is_shipped(text), f"write to {SKILL_FILE}:\n{with_digest(text)[-80:]}"
    assert is_shipped(text.replace("\n", "\r\n"))
    assert not is_shipped(text.replace("anchord", "Anchord", 1))


if __name__ == "__main__":  # Prints the table for the page.
    print(*map(row, CLIENTS), sep="\n")  # noqa: T201
