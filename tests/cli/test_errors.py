"""Wrong calls, configurations and environments give one line and an exit code, never a traceback."""

from __future__ import annotations

import errno
import os
import pty
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any, NoReturn, cast

import pytest
from cli.conftest import CATS, PATIENCE_S, Printed, Shell
from typer.core import TyperGroup
from typer.main import get_command

from anchord.cli.app import app
from anchord.cli.commands import chunk as chunk_commands
from anchord.cli.help_groups import HELP_GROUPS
from anchord.cli.loading import MODULE_OF_COMMAND, load_commands
from anchord.cli.typer_app import build

_COMMANDS = [
    "run", "start", "stop", "restart", "add", "remove", "roots", "index", "status", "sync", "search", "show", "chunk", "diff",
    "explain", "errors", "pause", "resume", "dump", "verify", "config", "config show", "config path", "config check",
]  # fmt: skip
_OPTIONS = {
    "run": ["--kind"],
    "add": ["--kind", "--name"],
    "status": ["--json", "--watch"],
    "sync": ["--timeout"],
    "search": [
        "-k",
        "--mode",
        "--root",
        "--path",
        "--kind",
        "--section",
        "--show-chunks",
        "--fresh",
        "--json",
    ],
    "show": ["--whole", "--context"],
    "chunk": ["--strategy", "--path", "--json", "--check"],
    "diff": ["--against"],
    "verify": ["--repair"],
}
"""Of the interface's table, without those that only conversations have."""
_PRINTING = [
    "add", "remove", "roots", "index", "status", "sync", "search", "show", "chunk", "diff", "explain", "errors", "verify",
    "config show", "config path", "config check",
]  # fmt: skip


@pytest.fixture(scope="module")
def bare(tmp_path_factory: pytest.TempPathFactory) -> Shell:
    """Return one shell for the module, without a daemon, over one file; its tests change nothing."""
    made = Shell(tmp_path_factory.mktemp("c"))
    made.write("cats.md", CATS)
    made.configure("[[root]]", f'path = "{made.notes}"')
    assert made("index").code == 0
    return made


def test_every_command_has_help(bare: Shell) -> None:
    for command in _COMMANDS:
        printed = bare(*command.split(), "--help")
        assert (printed.code, printed.err) == (0, ""), command
        assert "Usage: " in printed.out
        assert "\x1b" not in printed.out
        assert bare(*command.split(), "-h").out == printed.out


def test_the_commands_have_the_options_of_the_interface(bare: Shell) -> None:
    helps = {command: bare(command, "--help").out.replace(",", " ").split() for command in _OPTIONS}
    missing = [
        f"{name} {option}"
        for name, options in _OPTIONS.items()
        for option in options
        if option not in helps[name]
    ]
    assert missing == []


def test_the_commands_that_print_a_result_have_json(bare: Shell) -> None:
    assert [
        command for command in _PRINTING if "--json" not in bare(*command.split(), "--help").out
    ] == []


def test_the_version_is_printed(bare: Shell) -> None:
    printed = bare("--version")
    assert (printed.code, printed.err) == (0, "")
    assert printed.out.startswith("anchord ")


@pytest.mark.parametrize(("arguments", "heading"), [((), "Search:"), (("config",), "Commands:")])
def test_no_command_gives_a_help_that_can_be_read(
    bare: Shell, arguments: tuple[str, ...], heading: str
) -> None:
    printed = bare(*arguments)
    assert printed.code in {0, 2}
    assert heading in [line.strip() for line in (printed.out + printed.err).splitlines()]


_WRONG: list[tuple[tuple[str, ...], str]] = [
    (("frobnicate",), "frobnicate"),
    (("stats",), "stats"),
    (("config", "edit"), "edit"),
    (("--frobnicate",), "--frobnicate"),
    (("status", "--frobnicate"), "--frobnicate"),
    (("search",), "QUERY"),
    (("search", "two", "words"), "words"),
    (("show",), "ID"),
    (("chunk",), "FILE"),
    (("diff",), "FILE"),
    (("add",), "PATH"),
    (("remove",), "NAME"),
    (("explain",), "PATH"),
    (("search", "x", "-k"), "-k"),
    (("show", "x", "--context", "-1"), "--context"),
    (("show", "x", "--context", "½"), "--context"),
    (("sync", "--timeout", "soon"), "--timeout"),
    (("verify", "--vectors", "-1"), "--vectors"),
    (("verify", "--vectors", "²"), "--vectors"),
    (("verify", "--vectors", ""), "--vectors"),
    (("chunk", "notes/cats.md", "--strategy", "psychic"), "psychic"),
    (("add", "notes", "--kind", "psychic"), "psychic"),
    (("run", "notes", "--kind", "psychic"), "psychic"),
    (("start", "notes", "--kind", "psychic"), "psychic"),
    (("\udcff",), ""),
    (("new\nline",), "new"),
]


def test_a_wrong_call_is_one_line_and_2(bare: Shell) -> None:
    for arguments, said in _WRONG:
        bare(*arguments).is_refused(2, said)


@pytest.mark.parametrize(
    "arguments",
    [
        ("remove", "\x1b[31m"),
        ("index", "\x1b[31m"),
        ("chunk", "\x1b[31m.md"),
        ("search", "x", "--mode", "\x1b[31m"),
        ("\x1b[31m",),
    ],
)
def test_an_argument_named_in_a_complaint_cannot_steer_the_terminal(
    bare: Shell, arguments: tuple[str, ...]
) -> None:
    printed = bare(*arguments)
    printed.is_refused(2)
    assert "\x1b" not in printed.err


def test_an_unknown_key_is_named_with_the_nearest_one_by_every_command(shell: Shell) -> None:
    shell.write("cats.md", CATS)
    shell("config", "path")
    assert shell("index", "notes").code == 0
    shell.config.write_text("[embedding]\nprovidr = 'hash'\n")
    for command in (
        "config check", "config show", "roots", "index", "dump", "verify", "search x", "show x", "explain x", "run", "start",
        "add notes", "remove notes", "chunk notes/cats.md", "diff notes/cats.md --against notes/cats.md",
    ):  # fmt: skip
        shell(*command.split()).is_refused(
            2, "unknown key `embedding.providr`", "did you mean `provider`?"
        )


_WRONG_CONFIGURATIONS = [
    (b"[embedding\n", "config.toml"),
    (b"\xff\xfe", "config.toml"),
    (b"watch = 3\n", "watch"),
    (b"root = 'x'\n", "root"),
    (b"[[root]]\n", "path"),
    (b"[[root]]\npath = 'relative'\n", "relative"),
    (b"[[root]]\npath = '/a\x00b'\n", "config.toml"),
    (b"[watch]\nsettle_ms = 'soon'\n", "watch.settle_ms"),
    (b"[watch]\nsettle_ms = nan\n", "watch.settle_ms"),
    (b"[embedding]\nprovider = 'psychic'\n", "embedding.provider"),
    (b"\x1b[31m = 1\n", "config.toml"),
    (b'"a\\nb" = 1\n', "unknown key"),
]


def test_a_wrong_configuration_is_one_line_that_says_where(shell: Shell) -> None:
    for text, said in _WRONG_CONFIGURATIONS:
        shell.config.write_bytes(text)
        printed = shell("config", "check")
        printed.is_refused(2, said)
        assert "\x1b" not in printed.err
    shell("config", "path").is_calm(0)


def test_a_key_of_the_configuration_cannot_steer_the_terminal(shell: Shell) -> None:
    shell.config.write_bytes(b'"\\u001b[31m" = 1\n')
    printed = shell("config", "check")
    printed.is_refused(2, "unknown key")
    assert "\x1b" not in printed.err


def test_a_configuration_that_is_a_folder_is_refused(shell: Shell) -> None:
    shell.config.unlink()
    shell.config.mkdir()
    shell("config", "check").is_refused(2, "config.toml")


def test_a_configuration_that_links_to_nowhere_cannot_take_a_root_and_says_so(shell: Shell) -> None:
    shell.config.unlink()
    shell.config.symlink_to(shell.base / "nowhere" / "config.toml")
    printed = shell("add", "notes")
    printed.has_no_traceback()
    assert printed.code in {0, 1, 2}


def test_a_model_that_is_not_here_is_named(shell: Shell) -> None:
    shell.configure('embedding.model = "nonesuch"')
    shell.write("cats.md", CATS)
    shell("index", "notes").is_refused(2, "nonesuch")
    shell("chunk", "notes/cats.md").is_refused(2, "nonesuch")


def test_a_home_that_cannot_be_is_named(shell: Shell) -> None:
    (shell.base / "file").write_text("")
    shell("status", ANCHORD_HOME=str(shell.base / "file")).is_refused(2, "ANCHORD_HOME")
    shell("status", ANCHORD_HOME=str(shell.base / "file" / "below")).is_refused(2, "ANCHORD_HOME")
    shell("status", ANCHORD_HOME=str(shell.base / ("long" * 40))).is_refused(2, "ANCHORD_HOME")
    shell("config", "path", ANCHORD_HOME=str(shell.base / "ünï ☃")).is_calm(0)


def test_a_home_whose_name_is_no_utf8_is_used_or_refused(shell: Shell) -> None:
    for command in (
        ("config", "path"),
        ("config", "show"),
        ("config", "show", "--json"),
        ("roots",),
    ):
        shell(*command, ANCHORD_HOME=str(shell.base / "bad\udcff")).is_calm(0, 2)


def test_a_home_that_others_may_write_to_is_refused_with_the_command_that_mends_it(
    shell: Shell,
) -> None:
    shell("config", "path")
    (shell.home / "data").chmod(0o777)
    shell("status").is_refused(2, "is writable by other users", "chmod 700")


@pytest.mark.parametrize("file", ["log/anchord.log", "data/anchord.lock"])
def test_a_folder_where_a_file_of_ours_belongs_is_one_line(shell: Shell, file: str) -> None:
    shell("config", "path")
    (shell.home / file).mkdir()
    printed = shell("start", "notes") if file.startswith("log") else shell("index", "notes")
    try:
        printed.has_no_traceback()
    finally:
        shell("stop")
    if printed.code:
        printed.is_refused(printed.code)


@pytest.mark.parametrize("command", [("index", "notes"), ("backup", "backups")])
def test_a_quota_that_is_used_up_is_named_and_no_retry_is_promised_without_a_daemon(
    shell: Shell, monkeypatch: pytest.MonkeyPatch, command: tuple[str, ...]
) -> None:
    shell("config", "path")
    real_open = os.open

    def over_quota(path: str | bytes | os.PathLike[str], *rest: Any, **more: Any) -> int:  # noqa: ANN401 - any arguments of its own
        if os.fsdecode(path).endswith("anchord.lock"):
            raise OSError(errno.EDQUOT, os.strerror(errno.EDQUOT), str(path))
        return real_open(path, *rest, **more)

    with monkeypatch.context() as patch:
        patch.setattr(os, "open", over_quota)
        refused = shell(*command)
    refused.is_refused(75, "your disk quota for", "anchord.lock", "larger quota; then try again")
    assert "by itself" not in refused.err


def test_undo_of_a_file_in_a_folder_that_is_forgotten_too_says_so(shell: Shell) -> None:
    file = shell.write("sub/a.md", CATS)
    folder = str(shell.notes / "sub")
    assert shell("index", "notes").code == 0
    assert shell("forget", str(file), "--yes").code == 0
    shell("forget", folder, "--yes")
    undone = shell("forget", "--undo", str(file))
    assert (undone.code, undone.out) == (0, "")
    assert f'"{folder}" and everything in it is still forgotten' in undone.err
    assert f"`anchord forget --undo {folder}`" in undone.err
    assert "may be indexed again" in shell("forget", "--undo", folder).out
    assert shell("index").code == 0
    assert shell("search", "kitten", "--mode", "text", "--json").json["groups"]


def test_undo_of_a_forgotten_file_outside_the_indexed_folders_says_so(shell: Shell) -> None:
    file = shell.write("a.md", CATS)
    assert shell("index", "notes").code == 0
    assert shell("forget", str(file), "--yes").code == 0
    shell("remove", "notes")
    undone = shell("forget", "--undo", str(file))
    undone.is_refused(2, "was forgotten, but it is in no indexed folder", "`anchord add`")


@pytest.mark.parametrize(
    "arguments",
    [
        ("search", "kitten"),
        ("status",),
        ("explain", "x.md"),
        ("index", "."),
        ("chunk", "x"),
        ("add", "."),
    ],
)
def test_standing_in_a_folder_that_is_gone_ends_in_no_traceback(
    bare: Shell, arguments: tuple[str, ...]
) -> None:
    here = bare.base / "away"
    here.mkdir()
    printed = bare(*arguments, cwd=here, gone=True)
    printed.has_no_traceback()
    if printed.code:
        assert [line.startswith("anchord: ") for line in printed.err.splitlines()].count(True) == 1


@pytest.mark.parametrize(
    "script",
    [
        "$anchord config show --json | true",
        "$anchord --help | true",
        "$anchord frobnicate 2>&1 | true",
        "$anchord chunk long.md --json | head -c 1",
    ],
)
def test_a_reader_that_goes_away_is_no_news(bare: Shell, script: str) -> None:
    (bare.base / "long.md").write_text("Words of a long text.\n\n" * 5_000)
    assert bare.script(script).err == ""


@pytest.mark.parametrize("command", ["--help", "config show"])
def test_a_reader_that_goes_away_ends_every_command_alike(bare: Shell, command: str) -> None:
    assert bare.script(f"$anchord {command} | true").code == 141


@pytest.mark.parametrize(
    "script",
    [
        "$anchord chunk - <&-",
        "$anchord config path >&-",
        "$anchord config show --json >&-",
        "$anchord frobnicate 2>&-",
    ],
)
def test_a_closed_stream_is_no_traceback(bare: Shell, script: str) -> None:
    bare.script(script).has_no_traceback()


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="this system has no full device")
@pytest.mark.parametrize("command", ["config show", "config show --json"])
def test_a_full_disk_behind_standard_output_is_a_failure_in_one_line(
    bare: Shell, command: str
) -> None:
    printed = bare.script(f"$anchord {command} > /dev/full")
    printed.has_no_traceback()
    assert printed.code != 0
    assert printed.err.count("\n") == 1


@pytest.mark.parametrize(
    "error",
    [
        MemoryError(),
        RuntimeError("can't start new thread"),
        ImportError("libarrow.so: failed to map segment from shared object"),
    ],
    ids=repr,
)
def test_too_little_memory_is_one_line(
    bare: Shell, monkeypatch: pytest.MonkeyPatch, error: Exception
) -> None:
    def fail(*_: object, **__: object) -> NoReturn:
        raise error

    monkeypatch.setattr("anchord.cli.commands.index.ask_engine", fail)
    bare("index").is_refused(75, "no memory", "ulimit")


@pytest.mark.parametrize(("free", "words"), [(0, "is full"), (1 << 30, "ended with exit code 75")])
def test_a_start_that_could_not_write_its_log_names_the_full_disk(
    shell: Shell, monkeypatch: pytest.MonkeyPatch, free: int, words: str
) -> None:
    def end_at_once(log_file: Path, *_: object) -> subprocess.Popen[bytes]:
        log_file.touch()
        return subprocess.Popen(["sh", "-c", "exit 75"])

    monkeypatch.setattr("anchord.cli.commands.daemon._spawn_daemon", end_at_once)
    usage = SimpleNamespace(free=free)
    monkeypatch.setattr("anchord.cli.commands.daemon.shutil.disk_usage", lambda _: usage)
    shell("start", str(shell.notes)).is_refused(75, words)


def _on_terminal(shell: Shell, *arguments: str, **environment: str) -> str:
    """Return what a command writes to a terminal."""
    ours, theirs = pty.openpty()
    process = subprocess.Popen(
        [sys.executable, "-m", "anchord", *arguments],
        env=shell.environment | {"TERM": "xterm-256color"} | environment, cwd=shell.base,
        stdin=theirs, stdout=theirs, stderr=theirs,
    )  # fmt: skip
    os.close(theirs)
    written = b""
    try:
        while piece := os.read(ours, 65536):
            written += piece
    except OSError:  # On Linux this means that the other side is closed.
        pass
    os.close(ours)
    assert process.wait(PATIENCE_S) == 0
    return written.decode()


def test_a_terminal_gets_colours_and_a_pipe_gets_none(bare: Shell) -> None:
    assert "\x1b[" in _on_terminal(bare, "chunk", "notes/cats.md")
    assert "\x1b" not in bare.process("chunk", "notes/cats.md").out


def test_json_on_a_terminal_has_no_colours(bare: Shell) -> None:
    assert "\x1b" not in _on_terminal(bare, "config", "show", "--json")


@pytest.mark.parametrize("arguments", [("chunk", "notes/cats.md"), ("index",)])
def test_no_color_gives_plain_text_on_a_terminal(bare: Shell, arguments: tuple[str, ...]) -> None:
    assert "\x1b" not in _on_terminal(bare, *arguments, NO_COLOR="1")


def test_shell_completion_completes_commands(bare: Shell) -> None:
    done = bare.script(
        "_ANCHORD_COMPLETE=complete_bash COMP_WORDS='anchord ver' COMP_CWORD=1 "
        f"{os.path.join(os.path.dirname(sys.executable), 'anchord')}"
    )
    assert done.out.split() == ["verify"]


def test_the_entry_point_and_the_module_are_the_same(bare: Shell) -> None:
    printed: Printed = bare.process("config", "path")
    assert (printed.code, printed.out, printed.err) == (0, f"{bare.config}\n", "")


def test_the_overview_names_every_command_in_80_columns(bare: Shell) -> None:
    command = cast("TyperGroup", get_command(build(load_commands([]))))
    assert set(command.commands) == {name for group in HELP_GROUPS.values() for name in group}
    lines = bare("--help").out.splitlines()
    assert max(len(line) for line in lines) <= 80
    assert not [line for line in lines[1:] if line.endswith("...")]
    assert [line for line in lines if line.removesuffix(":") in HELP_GROUPS] == [
        f"{title}:" for title in HELP_GROUPS
    ]
    assert next(iter(HELP_GROUPS)) == "Search"


LIST_COMMANDS = """
import sys
from typer.main import get_command
from anchord.cli.loading import load_commands
from anchord.cli.typer_app import build
print(*get_command(build(load_commands(sys.argv[1:]))).commands)
"""


def loaded_commands(*arguments: str) -> set[str]:
    """Commands that a new process knows for these arguments."""
    listed = subprocess.run(
        [sys.executable, "-c", LIST_COMMANDS, *arguments],
        capture_output=True,
        text=True,
        check=True,
    )
    return set(listed.stdout.split())


def test_the_table_names_the_module_of_every_command() -> None:
    load_commands([])
    one_of_each = app.functions | {
        name: next(iter(group.functions.values())) for name, group in app.groups.items()
    }
    assert {name: command.__module__ for name, command in one_of_each.items()} == {
        name: f"anchord.cli.commands.{module}" for name, module in MODULE_OF_COMMAND.items()
    }


def test_a_command_loads_itself_and_no_other() -> None:
    assert loaded_commands("status", "--json") == {"status"}
    assert loaded_commands("config", "show") == {"config"}
    assert loaded_commands("confirm-delete", "notes") == {"confirm-delete"}


@pytest.mark.parametrize("arguments", [[], ["--help"], ["statsu"], ["man"], ["--version", "x"]])
def test_help_misspelt_names_and_the_manual_load_every_command(arguments: list[str]) -> None:
    assert loaded_commands(*arguments) == set(MODULE_OF_COMMAND)


@pytest.mark.parametrize("group", ["config", "service"])
def test_the_help_of_a_group_is_not_cut(bare: Shell, group: str) -> None:
    lines = bare(group, "--help").out.splitlines()
    assert max(len(line) for line in lines) <= 80
    assert not [line for line in lines[1:] if line.endswith("...")]


@pytest.mark.parametrize("name", ["HEAD", "packed-refs"])
def test_diff_does_not_wait_for_a_named_pipe_in_the_repository(
    shell: Shell, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    monkeypatch.setattr(chunk_commands, "_GIT_TIMEOUT_S", 0.3)
    file = tmp_path / "a.md"
    file.write_text("Words.\n")
    subprocess.run(["git", "init", "--quiet", tmp_path], check=True)
    (tmp_path / ".git" / name).unlink(missing_ok=True)
    os.mkfifo(tmp_path / ".git" / name)
    shell("diff", str(file)).is_refused(2, "git did not answer", "named pipe")


@pytest.mark.parametrize("arguments", [("diff", "pipe.md"), ("chunk", "pipe.md")])
def test_a_named_pipe_is_not_read(shell: Shell, tmp_path: Path, arguments: tuple[str, str]) -> None:
    os.mkfifo(tmp_path / "pipe.md")
    command, name = arguments
    shell(command, str(tmp_path / name)).is_refused(2, "is not a file")
