"""What the commands share: the application, options, the daemon connection and output."""

from __future__ import annotations

import os
import sys
import time
from typing import TYPE_CHECKING, Annotated, TypeVar

import msgspec

from anchord.cli.output.console import print_text
from anchord.cli.output.markup import print_markup
from anchord.cli.parameters import Option
from anchord.cli.registry import Commands
from anchord.config.paths import Paths, find_paths
from anchord.core.quoting import escape_json, sanitize_line
from anchord.daemon.access import ask, not_running_error, try_connect
from anchord.errors import NotRunningError, StoreDamagedError
from anchord.ipc.client import Client
from anchord.ipc.methods import REPEATABLE
from anchord.ipc.requests import Call

if TYPE_CHECKING:
    from anchord.config.schema import Config

app = Commands("Keeps a search index of your folders current; a one-line edit re-embeds one chunk.")

A = TypeVar("A")

_REPEAT_S = 30.0
"""How long after a call began it is repeated if the daemon restarts."""

JsonOption = Annotated[bool, Option("--json", help="Print JSON.")]


def print_line(line: str, *, markup: bool = False) -> None:
    """Print one line on standard output. Line breaks and control characters are escaped.

    Args:
        line: The text.
        markup: Whether the text has rich's markup; then escape names in it.
    """
    safe_line = sanitize_line(line)
    if markup:
        print_markup(safe_line)
    else:
        print_text(safe_line)


def warn(line: str) -> None:
    """Print one line on standard error. Line breaks and control characters are escaped."""
    print_text(sanitize_line(line), is_stderr=True)


def ensure_paths() -> Paths:
    """Create the user's anchord folders if they are missing, check them, and return their paths.

    Raises:
        AnchordError: A folder cannot be created, or other users can write to it.
    """
    paths = find_paths(os.environ)
    paths.create_folders()
    return paths


def load_user_config(paths: Paths) -> Config:
    """Read the user's configuration.

    Raises:
        ConfigError: The configuration is not valid.
    """
    from anchord.config.file import load_config

    return load_config(paths.config_file)


def connect_or_raise(paths: Paths) -> Client:
    """Connect to the daemon.

    Raises:
        NotRunningError: The daemon does not run, or does not answer.
    """
    client = try_connect(paths)
    if client is None:
        raise not_running_error(paths)
    return client


def print_json(value: object) -> None:
    """Print a value as JSON: indented on a terminal, else on one line.

    Characters that could steer a terminal or hide text are written as JSON escapes.
    """
    text = msgspec.json.encode(value)
    if sys.stdout.isatty():
        text = msgspec.json.format(text, indent=2)
    line = escape_json(text.decode()) + "\n"
    sys.stdout.flush()
    sys.stdout.buffer.write(line.encode())  # JSON is UTF-8, whatever the terminal's encoding.


def ask_daemon(paths: Paths, call: Call[A]) -> A:
    """Ask the daemon, and wait for its answer; ask again if it restarted meanwhile.

    A call that changes something is not repeated: it may have been done.

    Raises:
        NotRunningError: The daemon does not run.
        AnchordError: The daemon answered with an error.
    """
    deadline = time.monotonic() + _REPEAT_S
    while True:
        with connect_or_raise(paths) as client:
            try:
                return ask(client, call)
            except NotRunningError:
                if call.method.name not in REPEATABLE or time.monotonic() > deadline:
                    raise


def ask_daemon_or_engine(paths: Paths, call: Call[A]) -> A:
    """Ask the daemon; where none runs, do it in this process, which takes the writer lock.

    Raises:
        AlreadyRunningError: Another process holds the writer lock, and no daemon answers.
        AnchordError: As the method says.
    """
    client = try_connect(paths)
    if client is None:
        return ask_engine(paths, call)
    with client:
        return client.ask(call)


def ask_engine(paths: Paths, call: Call[A]) -> A:
    """Do what a call asks in this process, which takes the writer lock.

    If the archive of conversations or the catalog turns out damaged on the way, it is mended and
    asked again.

    Raises:
        AlreadyRunningError: Another process holds the writer lock.
        AnchordError: As the method says.
    """
    from anchord.index.archive_recovery import record_damage

    try:
        return _ask_engine_once(paths, call)
    except StoreDamagedError as error:
        if not record_damage(paths, error):
            raise
    return _ask_engine_once(paths, call)


def _ask_engine_once(paths: Paths, call: Call[A]) -> A:
    import logging

    from anchord.cli.output.log import configure_stderr_logging
    from anchord.cli.output.progress import BackgroundCall, poll
    from anchord.daemon.engine import Engine  # Loads LanceDB.

    configure_stderr_logging(logging.ERROR)  # What the writer expects is in the answer.
    engine = Engine(paths)
    background_call = BackgroundCall(lambda: engine.ask(call))
    try:
        with engine:
            try:
                return background_call.wait(poll(lambda: engine.progress))
            finally:  # Also if the method failed: what was repaired stays repaired.
                for repair in engine.repairs:
                    warn(repair)
    finally:
        background_call.join()
