r"""The programs themselves, from npm: what they see after `anchord connect`, and what is left after `--remove`.

    npm install --prefix FOLDER @anthropic-ai/claude-code @openai/codex @google/gemini-cli \
      @modelcontextprotocol/inspector opencode-ai
    ANCHORD_CLIENTS=FOLDER/node_modules/.bin .venv/bin/pytest -m slow tests/agents

No account is needed. Each test has a home of its own, and no settings of this user are read.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from anchord.agents.json_edit import find_value
from anchord.agents.skill import PLUGIN_FOLDER

pytestmark = pytest.mark.slow

_PATIENCE_S = 120
CLIENTS = Path(os.environ.get("ANCHORD_CLIENTS", ""))
ANCHORD = Path(sys.executable).with_name("anchord")
TOOLS = {
    "search",
    "show",
    "files",
    "changes",
    "sessions",
    "session",
    "explain",
    "roots",
    "status",
    "sync",
}


class Machine:
    """A home folder with the clients on PATH."""

    def __init__(self, base: Path) -> None:
        """Make the folders."""
        self.home = base / "me"
        self.project = base / "project"
        self.home.mkdir()
        self.project.mkdir()
        self.environment = {
            "HOME": str(self.home),
            "PATH": f"{CLIENTS}:/usr/local/bin:/usr/bin:/bin",
            "ANCHORD_HOME": str(base / "anchord"),
            "GEMINI_CLI_TRUST_WORKSPACE": "true",
        }

    def __call__(self, *command: str) -> str:
        """Run a command that must succeed; return what it printed."""
        code, said = self.run(*command)
        assert code == 0, said
        return said

    def run(self, *command: str) -> tuple[int, str]:
        """Run a command; return its exit code and what it printed."""
        ran = subprocess.run(
            command, env=self.environment, cwd=self.project, stdin=subprocess.DEVNULL,
            capture_output=True, text=True, check=False, timeout=_PATIENCE_S,
        )  # fmt: skip
        return ran.returncode, ran.stdout + ran.stderr

    def anchord(self, *arguments: str) -> str:
        """Run anchord."""
        return self(str(ANCHORD), *arguments)

    def write(self, name: str, text: str) -> Path:
        """Write a file of the home."""
        file = self.home / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text)
        return file


@pytest.fixture
def machine(tmp_path: Path) -> Machine:
    return Machine(tmp_path)


def needs(program: str) -> pytest.MarkDecorator:
    """Skip where a program is not in the folder of clients."""
    there = os.access(CLIENTS / program, os.X_OK) and Path() != CLIENTS
    return pytest.mark.skipif(not there, reason=f"no {program} in $ANCHORD_CLIENTS")


@needs("claude")
def test_claude_code_connects_to_the_server(machine: Machine) -> None:
    machine("claude", "mcp", "list")  # Claude Code writes its own settings first.
    file = machine.home / ".claude.json"
    before = json.loads(file.read_text()) if file.exists() else {}
    assert "added with `claude mcp add`" in machine.anchord("connect", "claude", "--hooks", "--yes")
    assert "nothing changes" in machine.anchord("connect", "claude", "--hooks", "--yes")
    listed = machine("claude", "mcp", "list")
    assert f"anchord: {ANCHORD} mcp" in listed
    assert "Connected" in listed
    assert machine.environment["ANCHORD_HOME"] in machine("claude", "mcp", "get", "anchord")
    machine.anchord("connect", "claude", "--remove", "--yes")
    after = json.loads(file.read_text())
    assert after.pop("mcpServers", {}) == {}
    assert before.items() <= after.items()
    assert not (machine.home / ".claude" / "settings.json").exists()
    assert not (machine.home / ".claude" / "skills" / "anchord").exists()


@needs("claude")
def test_claude_code_reads_the_entry_of_a_project(machine: Machine) -> None:
    machine.anchord("connect", "claude", "--scope", "project", "--yes")
    assert str(ANCHORD) in machine("claude", "mcp", "get", "anchord")


@needs("claude")
def test_the_plugin_is_valid(machine: Machine) -> None:
    assert "Validation passed" in machine(
        "claude", "plugin", "validate", "--strict", str(PLUGIN_FOLDER)
    )


@needs("claude")
def test_claude_code_loads_the_plugin(machine: Machine) -> None:
    machine.environment["ANCHORD_COMMAND"] = str(ANCHORD)
    listed = machine("claude", "--plugin-dir", str(PLUGIN_FOLDER), "mcp", "list")
    assert f"plugin:anchord:anchord: {ANCHORD} mcp - ✔ Connected" in listed


@needs("claude")
def test_claude_code_resumes_a_session_whose_transcript_was_restored(machine: Machine) -> None:
    """Without an account it says that nobody is logged in once it has found the session."""
    projects = machine.home / ".claude" / "projects"
    assert "Not logged in" in machine.run("claude", "-p", "where did I put the red onions")[1]
    (transcript,) = projects.rglob("*.jsonl")
    resume = ("claude", "-p", "--resume", transcript.stem, "and where are they now")
    home = Path(machine.environment["ANCHORD_HOME"])
    home.mkdir(mode=0o700)
    home.joinpath("config.toml").write_text('[embedding]\nprovider = "hash"\n')
    machine.anchord("add", str(projects), "--kind", "conversations")
    machine.anchord("index")
    text = transcript.read_bytes()
    shutil.rmtree(transcript.parent)
    assert "No conversation found with session ID" in machine.run(*resume)[1]
    machine.anchord("session", transcript.stem, "--restore")
    assert transcript.read_bytes() == text
    code, said = machine.run(*resume)
    assert (code, "Not logged in" in said, "No conversation" in said) == (1, True, False)


@needs("codex")
def test_codex_lists_the_server_and_keeps_the_comments(machine: Machine) -> None:
    text = '# mine\nmodel = "x"   # one\n\n[profiles.a] # two\nmodel = "y"\n# the end\n'
    file = machine.write(".codex/config.toml", text)
    assert "added with `codex mcp add`" in machine.anchord("connect", "codex", "--yes")
    assert str(ANCHORD) in machine("codex", "mcp", "get", "anchord")
    assert "nothing changes" in machine.anchord("connect", "codex", "--yes")
    machine.anchord("connect", "codex", "--remove", "--yes")
    assert file.read_text() == text


@needs("codex")
def test_codex_reads_an_entry_that_was_written_without_it(machine: Machine) -> None:
    machine.write(".codex/config.toml", 'model = "x"\n')
    path = machine.environment["PATH"]
    machine.environment["PATH"] = "/usr/bin:/bin"
    machine.anchord("connect", "codex", "--yes")
    machine.environment["PATH"] = path
    assert str(ANCHORD) in machine("codex", "mcp", "get", "anchord")


@needs("gemini")
def test_gemini_reads_the_entry_and_the_file_is_the_same_after_the_removal(
    machine: Machine,
) -> None:
    text = '{\n  // mine\n  "ui": {"theme": "Default"} /* two */\n}\n'
    file = machine.write(".gemini/settings.json", text)
    machine.anchord("connect", "gemini", "--yes")
    assert f"anchord: {ANCHORD} mcp (stdio)" in machine("gemini", "mcp", "list")
    assert "anchord [Enabled]" in machine("gemini", "skills", "list")
    assert find_value(file.read_text(), ("mcpServers", "anchord", "command")) == str(ANCHORD)
    machine.anchord("connect", "gemini", "--remove", "--yes")
    assert file.read_text() == text


@needs("opencode")
def test_opencode_connects_to_the_server(machine: Machine) -> None:
    text = '{\n  "$schema": "https://opencode.ai/config.json",\n  "autoupdate": false, // mine\n}\n'
    file = machine.write(".config/opencode/opencode.jsonc", text)
    machine.anchord("connect", "opencode", "--yes")
    listed = machine("opencode", "mcp", "list")
    assert "anchord" in listed
    assert "connected" in listed
    machine.anchord("connect", "opencode", "--remove", "--yes")
    assert file.read_text() == text


@needs("mcp-inspector")
def test_the_inspector_lists_the_tools_of_an_entry(machine: Machine) -> None:
    machine.anchord("connect", "cursor", "--yes")
    listed = machine(
        "mcp-inspector", "--cli", "--config", str(machine.home / ".cursor/mcp.json"), "--server", "anchord", "--method", "tools/list",
    )  # fmt: skip
    answer = json.loads(listed[listed.index("{") : listed.rindex("}") + 1])
    assert {tool["name"] for tool in answer["tools"]} >= TOOLS
