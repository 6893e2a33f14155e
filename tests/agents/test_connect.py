"""`anchord connect`: what it writes into the settings of each program, and that it takes it out to the byte."""

from __future__ import annotations

import json
import os
import re
import subprocess
import tomllib
from pathlib import Path
from typing import Any

import pytest
from agents.conftest import User

from anchord.agents.clients import CLIENT_NAMES, CLIENTS, Client, Server
from anchord.agents.entries import find_hooks, hook_command
from anchord.agents.json_edit import find_value
from anchord.agents.json_text import parse
from anchord.agents.skill import SKILL_FILE, with_digest
from anchord.daemon.service.supervisor import anchord_command

COMMAND = [*anchord_command(), "mcp"]
JSON_TEXTS = {
    "plain": '{\n  "theme": "x",\n  "keep": [1, 2]\n}\n',
    "empty object": "{}",
    "an object in two lines": "{\n}\n",
    "an empty file": "",
    "comments and commas": '// mine\n{\n\t"a": 1, // one\n\t/* two */ "b": {"c": [],},\n\t// the end\n}\n',
    "comment after the last entry": '{\r\n    "a": 1 // one\r\n    // more\r\n}\r\n',
    "byte order mark": '\ufeff{"a": "ü"}',
    "servers of others": '{"GROUP": {"other": {"command": "x"}}, "z": null}',
    "no servers": '{"GROUP": {}, "z": null}',
}
TOML_TEXTS = {
    "plain": '# mine\nmodel = "x" # one\n\n[profiles.a]\nb = 1\n# the end\n',
    "an empty file": "",
    "no line end": "a = 1",
    "Windows": 'a = 1\r\n[GROUP.other]\r\ncommand = "x"\r\n',
}
SAMPLES = [
    pytest.param(client, text.replace("GROUP", client.form.group), id=f"{client.name}: {name}")
    for client in CLIENTS
    for name, text in (TOML_TEXTS if client.form.language == "toml" else JSON_TEXTS).items()
]


def settings_of(client: Client, user: User, number: int = 0) -> Path:
    """Return the file of a client's settings in the default places."""
    folders = {
        "home": "", "config": "/.config", "claude": "/.claude", "claude_state": "", "codex": "/.codex",
        "code": "/.config/Code/User", "cline": "/.config/Code/User/globalStorage/saoudrizwan.claude-dev",
    }  # fmt: skip
    return Path(
        client.user_files[number].format_map(
            {name: f"{user.home}{path}" for name, path in folders.items()}
        )
    )


def values_of(file: Path) -> Any:  # noqa: ANN401 - any values
    text = file.read_bytes().decode()
    if file.suffix == ".toml":
        return tomllib.loads(text.replace("\r\n", "\n"))
    root = parse(text)
    return root.value() if root else {}


@pytest.mark.parametrize(("client", "text"), SAMPLES)
def test_an_entry_is_added_and_taken_out_to_the_byte(client: Client, text: str, user: User) -> None:
    file = user.write(str(settings_of(client, user).relative_to(user.home)), text)
    file.chmod(0o640)
    before, values = user.files(), values_of(file)
    added = user("connect", client.name, "--yes")
    assert (added.code, added.err) == (0, ""), added
    values.setdefault(client.form.group, {})["anchord"] = client.form.entry(
        Server(command=tuple(COMMAND))
    )
    assert values_of(file) == values
    assert file.stat().st_mode & 0o777 == 0o640
    assert (user.home / f"{file}.before-anchord.bak").read_bytes() == text.encode()
    again = user.files()
    assert "nothing changes" in user("connect", client.name, "--yes").out
    assert user.files() == again
    assert user("connect", client.name, "--remove", "--yes").code == 0
    assert user.files() == before


@pytest.mark.parametrize("client", CLIENTS, ids=CLIENT_NAMES)
def test_a_file_that_was_not_there_is_gone_after_the_removal(client: Client, user: User) -> None:
    assert user("connect", client.name, "--yes").code == 0
    assert find_value(
        json.dumps(values_of(settings_of(client, user))), (client.form.group, "anchord")
    )
    assert user("connect", client.name, "--remove", "--yes").code == 0
    assert user.files() == {}
    assert [*user.home.rglob("*")] in ([], [user.home / ".config"])


@pytest.mark.parametrize(
    "client", [each for each in CLIENTS if each.project_file], ids=lambda client: client.name
)
def test_the_settings_of_a_project_are_in_its_folder(client: Client, user: User) -> None:
    assert user("connect", client.name, "--scope", "project", "--yes").code == 0
    assert list(user.files()) == [f"{user.project}/{client.project_file}"]
    (of_project,) = [
        each for each in user("connect", "--status", "--json").json if each["scope"] == "project"
    ]
    assert (of_project["client"], of_project["state"]) == (client.name, "connected")
    assert user("connect", client.name, "--scope", "project", "--remove", "--yes").code == 0
    assert user.files() == {}


def test_an_entry_for_zed_is_one_for_old_and_new_versions(user: User) -> None:
    assert user("connect", "zed", "--yes").code == 0
    entry = values_of(user.home / ".config/zed/settings.json")["context_servers"]["anchord"]
    assert entry == {"source": "custom", "command": COMMAND[0], "args": COMMAND[1:]}


def test_the_clients_that_are_here_are_found(user: User) -> None:
    user("connect", "--yes").is_refused(2, "found no client")
    user.program("gemini")
    (user.home / ".cursor").mkdir()
    assert user("connect", "--yes").code == 0
    assert {Path(name).name for name in user.files()} == {"mcp.json", "settings.json"}
    states = {each["client"]: each["state"] for each in user("connect", "--status", "--json").json}
    assert states == dict.fromkeys(CLIENT_NAMES, "not installed") | {
        "cursor": "connected",
        "gemini": "connected",
    }
    assert re.search(r"^Cursor +connected$", user("connect", "--status").out, re.MULTILINE)


def test_the_places_follow_the_variables_of_the_programs(user: User, tmp_path: Path) -> None:
    moved = {"CLAUDE_CONFIG_DIR": "c", "CODEX_HOME": "x", "XDG_CONFIG_HOME": "g"}
    environment = {name: str(tmp_path / folder) for name, folder in moved.items()}
    assert user("connect", "claude", "codex", "zed", "--yes", "--hooks", **environment).code == 0
    for name in (
        "c/.claude.json",
        "c/settings.json",
        "c/skills/anchord/SKILL.md",
        "x/config.toml",
        "g/zed/settings.json",
    ):
        assert (tmp_path / name).is_file(), name
    assert user.files() == {}


def test_a_home_of_its_own_is_a_variable_of_the_entry(user: User, tmp_path: Path) -> None:
    home = str(tmp_path / "a b")
    assert (
        user("connect", "claude", "codex", "opencode", "--hooks", "--yes", ANCHORD_HOME=home).code
        == 0
    )
    for name, path in (("claude", "env"), ("codex", "env"), ("opencode", "environment")):
        client = CLIENTS[CLIENT_NAMES.index(name)]
        entry = values_of(settings_of(client, user))[client.form.group]["anchord"]
        assert entry[path] == {"ANCHORD_HOME": home}
    hooks = json.loads((user.home / ".claude/settings.json").read_text())["hooks"]
    command = hooks["SessionStart"][0]["hooks"][0]["command"]
    assert command == f"ANCHORD_HOME='{home}' {' '.join(anchord_command())} recall hook || true"
    assert user("connect", "claude", "codex", "opencode", "--yes", "--hooks").code == 0
    assert home not in "".join(
        text.decode() for name, (text, _) in user.files().items() if not name.endswith(".bak")
    )


def test_another_command_is_updated_and_what_the_user_added_stays(user: User) -> None:
    old = '{"mcpServers": {"anchord": {"command": "/gone/anchord", "args": ["mcp"], "timeout": 9 /* mine */}}}'
    file = user.write(".cursor/mcp.json", old)
    codex = user.write(
        ".codex/config.toml",
        '[mcp_servers.anchord]\ncommand = "/gone/anchord" # c\nargs = ["mcp"]\ntool_timeout_sec = 9\n',
    )
    states = {each["client"]: each["state"] for each in user("connect", "--status", "--json").json}
    assert '""' not in user("connect", "--status").out
    assert states["cursor"] == states["codex"] == "connected to another path or home"
    printed = user("connect", "cursor", "codex", "--yes")
    assert "Cursor: updated" in printed.out
    assert file.read_text() == old.replace("/gone/anchord", COMMAND[0])
    assert values_of(codex)["mcp_servers"]["anchord"] == {
        "command": COMMAND[0],
        "args": COMMAND[1:],
        "tool_timeout_sec": 9,
    }
    assert file.with_name("mcp.json.before-anchord.bak").read_text() == old


def test_what_others_wrote_meanwhile_stays(user: User) -> None:
    file = user.write(".gemini/settings.json", '{"a": 1}')
    assert user("connect", "gemini", "--yes").code == 0
    file.write_text(file.read_text().replace('"a": 1', '"a": 2'))
    assert user("connect", "gemini", "--remove", "--yes").code == 0
    assert file.read_text() == '{"a": 2}'


BROKEN = [
    (
        "gemini",
        ".gemini/settings.json",
        '{\n  "a": 1\n  "b": 2\n}\n',
        "line 3, column 3: a comma or } is expected",
    ),
    (
        "gemini",
        ".gemini/settings.json",
        '{"mcpServers": {},\n"mcpServers": {}}',
        "line 2, column 1: the key",
    ),
    (
        "cursor",
        ".cursor/mcp.json",
        '{"mcpServers": []}',
        "line 1, column 16: an object is expected",
    ),
    ("codex", ".codex/config.toml", "a = 1\nb = = 2\n", "line 2, column 5: invalid value"),
    ("codex", ".codex/config.toml", "mcp_servers = {}\n", "is not written as a table of its own"),
    ("cursor", ".cursor/mcp.json", b"\xff{}", "is not UTF-8"),
]


@pytest.mark.parametrize(("name", "file", "text", "said"), BROKEN)
def test_a_broken_file_is_refused_with_its_place_and_the_others_are_connected(
    user: User, name: str, file: str, text: str | bytes, said: str
) -> None:
    path = user.write(file, "")
    path.write_bytes(text.encode() if isinstance(text, str) else text)
    printed = user("connect", name, "zed", "--yes")
    assert printed.code == 1
    assert said in printed.err
    assert path.read_bytes() == (text.encode() if isinstance(text, str) else text)
    assert (user.home / ".config/zed/settings.json").is_file()


def test_a_read_only_file_is_refused_and_a_link_stays_a_link(user: User) -> None:
    file = user.write(".cursor/mcp.json", "{}")
    file.chmod(0o400)
    printed = user("connect", "cursor", "--yes")
    assert (printed.code, file.read_text()) == (1, "{}")
    assert "is read-only" in printed.err
    target = user.write("dotfiles/gemini.json", "{}")
    link = user.home / ".gemini" / "settings.json"
    link.parent.mkdir()
    link.symlink_to("../dotfiles/gemini.json")
    assert user("connect", "gemini", "--yes").code == 0
    assert os.readlink(link) == "../dotfiles/gemini.json"
    assert "anchord" in target.read_text()
    assert user("connect", "gemini", "--remove", "--yes").code == 0
    assert (os.readlink(link), target.read_text()) == ("../dotfiles/gemini.json", "{}")
    link.unlink()
    link.symlink_to("nowhere")
    assert "does not exist" in user("connect", "gemini", "--yes").err


def test_a_file_that_changes_in_the_moment_of_writing_is_left_alone(
    user: User, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = user.write(".cursor/mcp.json", "{}")
    sync = os.fsync
    changes: list[int] = []

    def change(descriptor: int) -> None:
        sync(descriptor)
        if "before-anchord" not in os.readlink(f"/proc/self/fd/{descriptor}"):
            changes.append(descriptor)
            file.write_text(json.dumps({"a": len(changes)}))

    monkeypatch.setattr(os, "fsync", change)
    printed = user("connect", "cursor", "--yes")
    assert printed.code == 1
    assert "another program changed" in printed.err
    assert json.loads(file.read_text()) == {"a": 4}, "it was tried four times"
    assert not list(file.parent.glob("*.tmp"))
    monkeypatch.setattr(
        os, "fsync", lambda descriptor: change(descriptor) if len(changes) < 5 else None
    )
    assert user("connect", "cursor", "--yes").code == 0
    assert file.read_text().startswith('{"a": 5, "mcpServers"')


def test_nothing_is_written_unasked(user: User) -> None:
    user.write(".cursor/mcp.json", "{}")
    before = user.files()
    shown = user("connect", "cursor", "--dry-run")
    assert f'  +       "command": "{COMMAND[0]}",' in shown.out
    assert user("connect", "cursor", "--dry-run", "--json").json["planned"][0]["action"] == "add"
    assert user("connect", "cursor").code == 2
    assert "--yes" in user("connect", "cursor").err
    assert user.files() == before


def test_a_client_s_own_command_adds_and_removes_where_it_has_one(user: User) -> None:
    text = json.dumps(
        {
            "mcpServers": {
                "anchord": {"type": "stdio", "command": COMMAND[0], "args": COMMAND[1:], "env": {}}
            }
        }
    )
    user.program(
        "claude",
        f"case $2 in add) echo '{text}' > ~/.claude.json;; *) echo '{{}}' > ~/.claude.json;; esac",
    )
    added = user("connect", "claude", "--yes")
    assert "Claude Code: added with `claude mcp add`" in added.out
    assert json.loads((user.home / ".claude.json").read_text()) == json.loads(text)
    assert (
        "Claude Code: removed with `claude mcp remove`"
        in user("connect", "claude", "--remove", "--yes").out
    )
    assert user.called.read_text().splitlines() == [
        f"mcp add --scope user anchord -- {' '.join(COMMAND)}",
        "mcp remove --scope user anchord",
    ]


def test_where_its_own_command_fails_the_file_is_edited(user: User) -> None:
    user.program("claude")
    user.program("codex", "exit 0")
    printed = user("connect", "claude", "codex", "--yes", ANCHORD_HOME=str(user.home / "h"))
    assert "`claude mcp add` failed (exit code 1); edited the file" in printed.out
    assert (
        json.loads((user.home / ".claude.json").read_text())["mcpServers"]["anchord"]["command"]
        == COMMAND[0]
    )
    assert "anchord" in values_of(user.home / ".codex/config.toml")["mcp_servers"]
    assert (
        f"mcp add --env ANCHORD_HOME={user.home}/h anchord -- {' '.join(COMMAND)}"
        in user.called.read_text()
    )


def test_what_a_failing_command_wrote_stays(user: User) -> None:
    file = user.write(".claude.json", '{"state": 1}')
    user.program("claude", """echo '{"state": 2}' > ~/.claude.json; exit 1""")
    assert user("connect", "claude", "--yes").code == 0
    written = json.loads(file.read_text())
    assert (written["state"], written["mcpServers"]["anchord"]["command"]) == (2, COMMAND[0])
    copy = file.with_name(".claude.json.before-anchord.bak")
    assert json.loads(copy.read_text()) == {"state": 2}
    copy.unlink()
    user.program(
        "claude",
        f"""sed 's/"state": 2/"state": 3/' {file} > {file}.2; cp {file}.2 {file}; rm {file}.2""",
    )
    environment = {"PATH": f"{user.bin}:/usr/bin:/bin"}
    assert user("connect", "claude", "--remove", "--yes", **environment).code == 0
    assert json.loads(file.read_text()) == {"state": 3}


def test_the_hooks_are_added_beside_those_of_others(user: User) -> None:
    mine = '{\n  "hooks": {\n    "SessionStart": [\n      {"hooks": [{"type": "command", "command": "mine"}]}\n    ]\n  } // end\n}\n'
    file = user.write(".claude/settings.json", mine)
    assert user("connect", "claude", "--hooks", "--yes").code == 0
    hooks = values_of(file)["hooks"]
    assert [group["hooks"][0]["command"] for group in hooks["SessionStart"]] == [
        "mine",
        hook_command(Server(command=tuple(COMMAND))),
    ]
    assert len(hooks["UserPromptSubmit"]) == 1
    assert "hooks on, recall off" in user("connect", "--status").out
    assert "nothing changes" in user("connect", "claude", "--hooks", "--yes").out
    assert user("connect", "claude", "--remove", "--yes").code == 0
    assert file.read_text() == mine
    user("connect", "cursor", "--hooks", "--yes").is_refused(2, "--hooks are for Claude Code")


def test_hooks_of_an_earlier_version_are_updated_and_removed(user: User) -> None:
    assert (
        hook_command(Server(command=("/a b/anchord", "mcp")))
        == "'/a b/anchord' recall hook || true"
    )
    old = {"hooks": [{"type": "command", "command": "/old/anchord recall hook", "timeout": 5}]}
    text = json.dumps({"hooks": {"SessionStart": [old], "UserPromptSubmit": [old]}})
    file = user.write(".claude/settings.json", text)
    assert "Claude Code (hooks): updated" in user("connect", "claude", "--yes").out
    for (group,) in values_of(file)["hooks"].values():
        assert group["hooks"][0]["command"] == hook_command(Server(command=tuple(COMMAND)))
    file.write_text(text)
    assert user("connect", "claude", "--remove", "--yes").code == 0
    assert find_hooks(file.read_text()) == []


def test_a_skill_of_the_user_s_own_is_kept(user: User) -> None:
    mine = user.write(".gemini/skills/anchord/SKILL.md", "mine")
    copy = mine.with_name("SKILL.md.before-anchord.bak")
    before = user.files()
    removed = user("connect", "gemini", "--remove", "--yes")
    assert "Gemini CLI (skill): unchanged: anchord did not write this skill" in removed.out
    assert user.files() == before
    added = user("connect", "gemini", "--yes")
    assert "writes the skill; copies your file first" in added.out
    assert f'Gemini CLI (skill): added; the earlier file is kept as "{copy}"' in added.out
    assert (mine.read_text(), copy.read_text()) == (SKILL_FILE.read_text(), "mine")
    mine.write_text(mine.read_text() + "of mine\n")
    printed = user("connect", "gemini", "--yes")
    assert printed.code == 1
    assert 'SKILL.md" was changed, and an earlier copy is kept beside it' in printed.err
    mine.write_text(SKILL_FILE.read_text())
    assert "restores the earlier file" in user("connect", "gemini", "--remove", "--yes").out
    assert user.files() == before


FOREIGN = {
    "another program": {"command": "/other/tool", "args": ["serve"]},
    "a program that runs anchord": {"command": "/bin/uvx", "args": ["anchord", "mcp"]},
    "a program with a similar name": {"command": "npx", "args": ["anchord-proxy", "mcp"]},
    "HTTP": {"url": "http://127.0.0.1:1/mcp", "headers": {"Authorization": "Bearer 1"}},
    "HTTP and a command": {"httpUrl": "http://a/", "command": "/a/anchord", "args": ["mcp"]},
    "nothing": {},
}


@pytest.mark.parametrize(
    ("client", "kind"),
    [
        *((client, "HTTP") for client in CLIENTS),
        *((client, kind) for client in CLIENTS[1:3] for kind in [*FOREIGN, "a text"]),
        (CLIENTS[2], "null"),
    ],
)
def test_an_entry_of_somebody_else_is_neither_changed_nor_removed(
    client: Client, kind: str, user: User
) -> None:
    entry: object = FOREIGN.get(kind, "x" if kind == "a text" else None)
    group = client.form.group
    if client.form.language == "toml":
        fields = entry if isinstance(entry, dict) else {}
        lines = [
            f"{key} = {json.dumps(value)}" for key, value in fields.items() if key != "headers"
        ]
        text = "\n".join([f"[{group}.anchord]", *lines, ""])
        if not isinstance(entry, dict):
            text = f'[{group}]\nanchord = "x"\n'
    else:
        text = json.dumps({group: {"anchord": entry}, "z": 1}, indent=1)
    file = user.write(str(settings_of(client, user).relative_to(user.home)), text)
    for arguments, code in (((), 1), (("--remove",), 0)):
        printed = user("connect", client.name, *arguments, "--yes")
        assert printed.code == code
        assert f"{client.title}: unchanged: the entry anchord starts another" in printed.out
        assert file.read_text() == text
        assert not Path(f"{file}.before-anchord.bak").exists()
    states = {each["client"]: each["state"] for each in user("connect", "--status", "--json").json}
    assert states[client.name] == "has an entry anchord of another program"


def test_hooks_of_another_program_that_end_alike_stay(user: User) -> None:
    other = {"hooks": [{"type": "command", "command": "/bin/total recall hook"}]}
    text = json.dumps({"hooks": {"SessionStart": [other]}})
    file = user.write(".claude/settings.json", text)
    assert user("connect", "claude", "--hooks", "--yes").code == 0
    assert user("connect", "claude", "--remove", "--yes").code == 0
    assert file.read_text() == text


@pytest.mark.parametrize("link", [".mcp.json", ".claude", ".claude/settings.local.json"])
def test_a_link_out_of_a_project_is_refused_with_its_target(link: str, user: User) -> None:
    outside = user.write("outside/settings.local.json", "{}")
    is_folder = link == ".claude"
    place = user.project / link
    place.parent.mkdir(exist_ok=True)
    place.symlink_to(outside.parent if is_folder else outside)
    before = user.files()
    for arguments in ((), ("--remove",)):
        printed = user("connect", "claude", "--scope", "project", "--hooks", *arguments, "--yes")
        assert printed.code == 1
        assert f'is a link out of the project, to "{outside}"' in printed.err
        assert user.files() == before
    project = [each for each in user("connect", "--status", "--json").json if each["problem"]]
    assert [each["scope"] for each in project] == (["project"] if link == ".mcp.json" else [])


def test_a_link_within_a_project_is_followed(user: User) -> None:
    target = user.project / "config" / "mcp.json"
    target.parent.mkdir()
    target.write_text("{}")
    (user.project / ".mcp.json").symlink_to("config/mcp.json")
    assert user("connect", "claude", "--scope", "project", "--yes").code == 0
    assert "anchord" in target.read_text()


def test_what_a_killed_connect_left_is_deleted_by_the_next_one(user: User) -> None:
    gone = subprocess.Popen(["true"])
    gone.wait()
    user.write(".cursor/mcp.json", "{}")
    left = [
        user.write(f".cursor/mcp.json{copy}.anchord-{gone.pid}.tmp", "half")
        for copy in ("", ".before-anchord.bak")
    ]
    others = [
        user.write(f".cursor/mcp.json.anchord-{os.getpid()}.tmp.x", ""),
        user.write(f".cursor/mcp.json.anchord-{os.getppid()}.tmp", ""),
        user.write(".cursor/other.json.anchord-1.tmp", ""),
    ]
    assert user("connect", "cursor", "--dry-run").code == 0
    assert all(file.exists() for file in left)
    assert user("connect", "cursor", "--remove", "--yes").code == 0
    assert [file for file in left if file.exists()] == []
    assert all(file.exists() for file in others)


def test_a_file_is_not_written_through_a_link_that_somebody_planted(user: User) -> None:
    victim = user.write("victim", "mine")
    file = user.write(".cursor/mcp.json", "{}")
    Path(f"{file}.anchord-{os.getpid()}.tmp").symlink_to(victim)
    user("connect", "cursor", "--yes")
    assert victim.read_text() == "mine"


def test_the_removal_empties_the_target_of_a_link(user: User) -> None:
    target = user.write("dotfiles/mcp.json", "")
    link = user.home / ".cursor" / "mcp.json"
    link.parent.mkdir()
    link.symlink_to(target)
    assert user("connect", "cursor", "--yes").code == 0
    link.with_name("mcp.json.before-anchord.bak").unlink(missing_ok=True)
    target.with_name("mcp.json.before-anchord.bak").unlink()
    assert user("connect", "cursor", "--remove", "--yes").code == 0
    assert link.is_symlink()
    assert "anchord" not in target.read_text()


def test_a_client_with_a_broken_file_gets_none_of_its_changes(user: User) -> None:
    user.write(".claude/settings.json", "{")
    printed = user("connect", "claude", "--hooks", "--yes")
    assert (printed.code, printed.out) == (1, "")
    assert not (user.home / ".claude.json").exists()
    user.write(".claude/settings.json", "{}")
    assert user("connect", "claude", "--yes").code == 0
    user.write(".claude/settings.json", "{")
    before = user.files()
    assert user("connect", "claude", "--remove", "--yes").code == 1
    assert user.files() == before


def test_hooks_without_claude_code_are_said(user: User) -> None:
    user.program("gemini")
    printed = user("connect", "--hooks", "--yes")
    assert printed.code == 0
    assert "--hooks: Claude Code was not found" in printed.err


def test_json_asks_nothing(user: User, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sys.stdin.isatty", lambda: True, raising=False)
    user("connect", "cursor", "--json").is_refused(2, "--json does not ask")
    assert user.files() == {}


def test_the_removal_names_the_copy_that_stays(user: User) -> None:
    file = user.write(".gemini/settings.json", '{"token": 1}')
    assert user("connect", "gemini", "--yes").code == 0
    file.write_text(file.read_text().replace("1", "2"))
    copy = f"{file}.before-anchord.bak"
    printed = user("connect", "gemini", "--remove", "--yes")
    assert f'the copy of the earlier file stays: "{copy}"' in printed.out


def test_the_skill_is_written_and_removed(user: User) -> None:
    assert user("connect", "gemini", "--yes").code == 0
    skill = user.home / ".gemini/skills/anchord/SKILL.md"
    assert skill.read_text() == SKILL_FILE.read_text()
    head, _, body = SKILL_FILE.read_text().partition("\n# ")
    skill.write_text(with_digest(f"{head}\n# Of an older version\n{body}"))
    assert "Gemini CLI (skill): updated" in user("connect", "gemini", "--yes").out
    assert user("connect", "gemini", "--remove", "--yes").code == 0
    assert not skill.parent.exists()


def test_doctor_names_clients_whose_command_is_gone(user: User) -> None:
    user.write(
        ".cursor/mcp.json",
        '{"mcpServers": {"anchord": {"command": "/gone/anchord", "args": ["mcp"]}}}',
    )
    user.write(".gemini/settings.json", "{")
    assert user("connect", "zed", "--yes").code == 0
    printed = user("doctor", "--json")
    said = {each["what"]: each["do"] for each in printed.json if each["name"] == "agents"}
    assert (
        said['Cursor starts "/gone/anchord", which does not exist']
        == "`anchord connect cursor` updates it"
    )
    assert "connected: Zed" in said
    assert any(what.startswith("Gemini CLI: ") and "line 1" in what for what in said)
    assert printed.code == 1


def test_doctor_needs_no_home_folder(user: User) -> None:
    printed = user("doctor", "--json", HOME="rel", ANCHORD_HOME=str(user.home / "h"))
    assert "this user has no home folder" in [each["what"] for each in printed.json]


def test_an_unknown_client_is_refused_with_the_known_ones(user: User) -> None:
    user("connect", "nope").is_refused(2, 'unknown client "nope"; known: claude, codex, cursor, ')
    user("connect", "claud").is_refused(2, "did you mean claude? known: claude, ")


@pytest.mark.parametrize(
    "arguments", [["nano"], ["--scope", "world"], ["windsurf", "--scope", "project", "--yes"]]
)
def test_wrong_calls_are_refused(user: User, arguments: list[str]) -> None:
    printed = user("connect", *arguments)
    assert printed.code in {1, 2}
    assert printed.err.count("\n") == 1
