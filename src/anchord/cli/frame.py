"""What the commands share: the application, its options, the way to the daemon or to the index itself, and output."""

from __future__ import annotations

import os
import sys
from typing import Annotated, Any, Literal

import msgspec
import typer
from rich.console import Console

from anchord import __version__
from anchord.adapters.config_file import load_config
from anchord.asking import connect, not_running
from anchord.cli.render import printable
from anchord.config import Config
from anchord.ipc.client import Client
from anchord.places import Places, find_places

app = typer.Typer(
    name="anchord",
    help="Keeps a semantic index of your folders true, at the cost of what changed.",
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)

_COLOURS: Literal["auto"] | None = None if os.environ.get("NO_COLOR") else "auto"
_WIDTH = 80 if os.environ.get("COLUMNS") == "0" else None
"""COLUMNS=0 is what some environments set for "unknown"; rich would print nothing."""
out = Console(highlight=False, soft_wrap=True, color_system=_COLOURS, width=_WIDTH)
err = Console(highlight=False, soft_wrap=True, color_system=_COLOURS, width=_WIDTH, stderr=True)

AsJson = Annotated[bool, typer.Option("--json", help="Print JSON.")]


@app.callback(invoke_without_command=True)
def frame(
    context: typer.Context,
    version: Annotated[bool, typer.Option("--version", help="Print the version and exit.")] = False,
) -> None:
    """Keep a semantic index of your folders true, at the cost of what changed."""
    if version:
        out.print(f"anchord {__version__}", markup=False)
        raise typer.Exit
    help_without_command(context)


def help_without_command(context: typer.Context) -> None:
    """Print the help and end with exit code 2 where no command was given."""
    if context.invoked_subcommand is None:
        err.print(context.get_help(), markup=False)
        raise typer.Exit(2)


def say(line: str, *, markup: bool = False) -> None:
    """Print one line. Whatever a name or a text holds, it stays one line and steers no terminal."""
    out.print(printable(line), markup=markup)


def warn(line: str) -> None:
    """Print one line on standard error."""
    err.print(printable(line), markup=False)


def places() -> Places:
    """Return the user's places, made and checked."""
    found = find_places(os.environ)
    found.make()
    return found


def configuration(of: Places) -> Config:
    """Return the configuration."""
    return load_config(of.config)


def needed_daemon(of: Places) -> Client:
    """Return a connection to the daemon.

    Raises:
        NotRunningError: there is none, or another process holds the index without answering.
    """
    client = connect(of)
    if client is None:
        raise not_running(of)
    return client


def print_json(value: object) -> None:
    """Print a value as JSON, readable on a terminal and on one line elsewhere."""
    text = msgspec.json.encode(value)
    if sys.stdout.isatty():
        text = msgspec.json.format(text, indent=2)
    sys.stdout.flush()
    sys.stdout.buffer.write(text + b"\n")  # JSON is UTF-8, whatever the terminal's encoding.


def ask(of: Places, method: str, **params: Any) -> Any:  # noqa: ANN401 - any JSON value
    """Call a method of the daemon.

    Raises:
        NotRunningError: there is none. AnchordError: what it answered.
    """
    with needed_daemon(of) as client:
        return client.call(method, **params)
