"""A command line means what typer makes of it; one that is correct needs neither typer nor another heavy library."""

from __future__ import annotations

import functools
import socketserver
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from typer.exceptions import TyperException
from typer.main import get_command

from anchord.cli.app import app
from anchord.cli.completion import complete
from anchord.cli.loading import load_commands
from anchord.cli.parameters import parameters_of
from anchord.cli.registry import Command
from anchord.cli.typer_app import build

load_commands([])
COMMANDS = [
    *([name] for name in app.functions),
    *([group, name] for group, inner in app.groups.items() for name in inner.functions),
]
VALUES = [
    "", "0", "5", "-0", "-1", "007", "1_000", "+3", " 4", "1e3", "3.5", ".5", "nan", "inf", "99999999999999999999", "x",
    "two words", "é", "hybrid", "a=b", "-", "--", "-h", "--help", "--no", "-x", "-k5", "-k=5", "-yk5", "--json=1", "status",
]  # fmt: skip


def full(command: Command, values: dict[str, Any]) -> tuple[Command, dict[str, str]]:
    """Return the command and every value; by `repr`, which tells 1 from True and 1.0."""
    defaults = {each.name: each.default for each in parameters_of(command)}
    return command, {name: repr(value) for name, value in (defaults | values).items()}


RAN: list[object] = []


@functools.cache
def typer_group(name: str) -> Any:  # noqa: ANN401 - typer ships no name for its own group
    return get_command(build([name], lambda *call: RAN.append(full(*call))))


def by_typer(words: list[str]) -> object:
    """Return the command and the values that typer runs; None if it prints something instead."""
    RAN.clear()
    with suppress(TyperException):
        typer_group(words[0])(words, prog_name="anchord", standalone_mode=False)
    return RAN[0] if RAN else None


def by_anchord(words: list[str]) -> object:
    try:
        return full(*app.understand(words))
    except ValueError:
        return None


@st.composite
def command_lines(draw: st.DrawFn) -> list[str]:
    """Return a command with options and values of its own, and with wrong ones."""
    names = draw(st.sampled_from(COMMANDS))
    parameters = parameters_of(app.find(names)[0])
    options = [
        spelling for each in parameters if not each.is_argument for spelling, _ in each.spellings()
    ]
    option = st.sampled_from([*options, "--json"])
    value = st.sampled_from(VALUES)
    joined = st.builds("{}={}".format, option, value) | st.builds("{}{}".format, option, value)
    return names + draw(st.lists(option | value | joined, max_size=6))


@given(words=command_lines())
@example(words=["search", "--mode", "text", "-k5", "--", "--json"])
@example(words=["search", "a", "--root", "--json", "--path="])
@example(words=["start", "a", "--kind", "project", "b"])
@example(words=["discover", "--add", "-y"])
@example(words=["config", "show", "--json"])
@example(words=["dump", "--no-vectors", "--vectors"])
def test_a_command_line_means_what_typer_makes_of_it(words: list[str]) -> None:
    assert by_anchord(words) == by_typer(words)


def test_an_argument_that_is_not_utf8_reaches_the_command() -> None:
    command, values = app.understand(["search", "\udcff", "--path=\udcff"])
    assert values == {"query": "\udcff", "path": "\udcff"}
    assert command is app.functions["search"]


@pytest.mark.parametrize(
    "words",
    [
        [],
        ["--help"],
        ["statsu"],
        ["--version", "x"],
        ["config"],
        ["config", "shwo"],
        ["--json", "status"],
    ],
)
def test_what_names_no_command_is_left_to_typer(words: list[str]) -> None:
    assert by_anchord(words) is None


LINES = [
    "anchord ", "anchord s", "anchord se", "anchord zz", "anchord search ", "anchord search --mode ", "anchord search --mode t",
    "anchord search --mode=t", "anchord search words --kind m", "anchord search --kind zz", "anchord search -k ",
    "anchord search --json ", "anchord search --m", "anchord search 'two wor", "anchord remove ", "anchord remove w",
    "anchord remove work ", "anchord start ", "anchord start a --kind c", "anchord start --kind conversations a b", "anchord config ",
    "anchord config show ", "anchord config sh", "anchord nothing ", "anchord search --nothing ", "anchord show --context ",
    "anchord search -- ", "anchord chunk --strategy h", "anchord -", "anchord rescan ", "anchord search --root n",
]  # fmt: skip


@pytest.mark.usefixtures("home")
@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
@pytest.mark.parametrize("line", LINES)
def test_the_shell_is_offered_what_typer_offers(
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    shell: str,
    line: str,
) -> None:
    last = len(line.split()) - (not line.endswith(" "))
    for action in ["get-args", "is-args"] if shell == "fish" else [""]:
        asked = {
            "_ANCHORD_COMPLETE": f"complete_{shell}", "COMP_WORDS": line, "COMP_CWORD": str(last), "_TYPER_COMPLETE_ARGS": line,
            "_TYPER_COMPLETE_FISH_ACTION": action,
        }  # fmt: skip
        for name, value in asked.items():
            monkeypatch.setenv(name, value)
        code = complete()
        offered = capsys.readouterr().out
        if code is None:
            assert "-" in line or shell != "bash" or "config" in line or "nothing" in line
            continue
        with pytest.raises(SystemExit) as ending:
            typer_group_of_all()(prog_name="anchord")
        assert (code, offered) == (ending.value.code or 0, capsys.readouterr().out)


@functools.cache
def typer_group_of_all() -> Any:  # noqa: ANN401 - likewise
    return get_command(build(load_commands([])))


LOADED = """
import runpy, sys
from contextlib import suppress
with suppress(SystemExit):
    runpy.run_module("anchord", run_name="__main__")
print()
print(*sys.modules)
"""
HEAVY = (
    "typer click pydantic rich typing_extensions inspect dataclasses tomllib tomlkit logging asyncio subprocess tempfile "
    "platformdirs lancedb lance pyarrow numpy structlog anchord.config.schema anchord.core.types"
)


def heavy_modules(home: Path, arguments: list[str], **environment: str) -> list[str]:
    answer = subprocess.run(
        [sys.executable, "-S", "-c", f"import sys; sys.path[:] = {sys.path!r}\n{LOADED}", *arguments],
        env={"ANCHORD_HOME": str(home), "PATH": "", **environment}, capture_output=True, text=True, check=False,
    )  # fmt: skip
    loaded = set(answer.stdout.splitlines()[-1].split())
    assert "anchord.cli" in loaded, answer.stderr
    return [name for name in HEAVY.split() if name in loaded]


@contextmanager
def refusing_daemon(home: Path) -> Iterator[None]:
    """Answer each call on the home's socket with an error: after it a command has nothing left to load."""
    (home / "run").mkdir(mode=0o700)
    answer = b'{"jsonrpc":"2.0","id":1,"error":{"code":-32000,"message":"no","data":{"code":"failed","hint":""}}}\n'

    class Refusing(socketserver.StreamRequestHandler):
        def handle(self) -> None:
            self.rfile.readline()
            self.wfile.write(answer)

    with socketserver.UnixStreamServer(str(home / "run" / "anchord.sock"), Refusing) as server:
        thread = threading.Thread(target=server.serve_forever, args=(0.01,))
        thread.start()
        try:
            yield
        finally:
            server.shutdown()
            thread.join()


@pytest.mark.parametrize(
    "words",
    [
        "status",
        "status --json",
        "sync --timeout 3.5",
        "errors",
        "roots",
        "pause",
        "resume",
        "search words -k 3",
        "show 0f",
        "explain x",
    ],
)
def test_a_command_that_only_talks_to_the_socket_loads_no_heavy_library(
    home: Path, words: str
) -> None:
    with refusing_daemon(home):
        assert heavy_modules(home, words.split()) == []


def test_nor_does_one_without_a_daemon_or_the_version(home: Path) -> None:
    assert heavy_modules(home, ["status"]) == []
    assert heavy_modules(home, ["--version"]) == []


@pytest.mark.parametrize("words", ["anchord sta", "anchord search --mode "])
def test_nor_does_completion(home: Path, words: str) -> None:
    asked = {
        "_ANCHORD_COMPLETE": "complete_bash",
        "COMP_WORDS": words,
        "COMP_CWORD": str(words.count(" ")),
    }
    assert heavy_modules(home, [], **asked) == []
