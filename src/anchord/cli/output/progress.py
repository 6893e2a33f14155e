"""Progress of long work on the terminal: bars, rates, the daemon's progress during a call."""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, TypeVar

from anchord.cli.output.console import stderr_console
from anchord.config.paths import Paths
from anchord.daemon.access import connect
from anchord.errors import AnchordError
from anchord.ipc.client import Client
from anchord.ipc.requests import Call

if TYPE_CHECKING:
    from rich.progress import Progress, TaskID

A = TypeVar("A")

_MODEL_POLL_S = 0.5


def ask_with_progress(paths: Paths, client: Client, call: Call[A]) -> A:
    """Call the daemon, and show its progress meanwhile. Blocks until it answers.

    Args:
        paths: Where anchord keeps its files; the progress comes over a second connection.
        client: The connection of the call; it is closed afterwards.
        call: What to ask.

    Returns:
        The daemon's answer.

    Raises:
        AnchordError: The daemon answered with an error, or a connection broke.
    """
    answers: list[A] = []
    errors: list[AnchordError] = []

    def wait_for_answer() -> None:
        try:
            with client:
                answers.append(client.ask(call))
        except AnchordError as error:
            errors.append(error)

    waiter = threading.Thread(target=wait_for_answer, daemon=True)
    waiter.start()
    with progress_bar() as bar, connect(paths) as progress_client:
        task = bar.add_task("indexing", total=None, rate="")
        for progress in progress_client.progress():
            if backup := progress.backup:
                bar.update(
                    task,
                    completed=backup.done,
                    total=backup.total,
                    description="MB copied",
                )
                continue
            if verified := progress.verify:
                bar.update(
                    task,
                    completed=verified.done,
                    total=verified.total,
                    description="transcripts read",
                )
                continue
            done = progress.done
            total = done + progress.pending
            bar.update(
                task,
                completed=done,
                total=total,
                description=progress.state,
                rate=format_rate(progress.rate),
            )
            if not waiter.is_alive():
                break
    waiter.join()
    if errors:
        raise errors[0]
    return answers[0]


@contextlib.contextmanager
def show_model_preparation(
    bar: Progress, task: TaskID, model_state: Callable[[], str]
) -> Iterator[None]:
    """Show while the model is prepared, which takes about ten seconds without other progress.

    A thread polls the state every 0.5 s until the block ends.
    """
    ended = threading.Event()

    def poll_state() -> None:
        while not ended.wait(_MODEL_POLL_S):
            if model_state() == "preparing":
                bar.update(task, description="preparing the model for this machine, once")

    thread = threading.Thread(target=poll_state, daemon=True)
    thread.start()
    try:
        yield
    finally:
        ended.set()
        thread.join()


def format_rate(texts_per_second: float) -> str:
    """Return the rate for the bar's last column; "" while nothing is embedded."""
    return f"{texts_per_second:.0f} texts/s" if texts_per_second else ""


def progress_bar() -> Progress:
    """Return a progress bar; on anything but a terminal with colours it prints nothing."""
    from rich.progress import (
        BarColumn,
        MofNCompleteColumn,
        Progress,
        TextColumn,
        TimeElapsedColumn,
        TimeRemainingColumn,
    )

    console = stderr_console()
    return Progress(
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        TextColumn("{task.fields[rate]}"),
        TimeElapsedColumn(),
        TimeRemainingColumn(),
        console=console,
        transient=True,
        disable=not console.is_terminal or console.color_system is None,
    )
