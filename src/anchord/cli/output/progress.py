"""Progress of long work on the terminal: bars, rates, the daemon's progress during a call."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import Future
from typing import TYPE_CHECKING, Generic, TypeVar

from anchord.cli.output.console import stderr_console
from anchord.config.paths import Paths
from anchord.daemon.access import connect
from anchord.ipc.client import Client
from anchord.ipc.messages.status import Progress as ProgressReport
from anchord.ipc.requests import Call

if TYPE_CHECKING:
    from rich.progress import Progress, TaskID

A = TypeVar("A")

_POLL_S = 0.1


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

    def ask() -> A:
        with client:
            return client.ask(call)

    with connect(paths) as progress_client:
        return BackgroundCall(ask).wait(progress_client.progress())


class BackgroundCall(Generic[A]):
    """Something that is done in a thread of its own while its progress is shown."""

    def __init__(self, work: Callable[[], A]) -> None:
        """Begin to do it."""
        self._result: Future[A] = Future()
        self._work = work
        # A daemon thread: where a call to another process is interrupted, nobody waits for it.
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()

    def _run(self) -> None:
        try:
            self._result.set_result(self._work())
        except BaseException as error:  # noqa: BLE001 - `wait` raises it
            self._result.set_exception(error)

    def wait(self, reports: Iterator[ProgressReport | None]) -> A:
        """Show progress on the terminal until it is done.

        Args:
            reports: How far it is, several times a second; None while that is not known.

        Returns:
            What the function returned.

        Raises:
            AnchordError: As the function and `reports`.
        """
        with progress_bar() as bar:
            task = bar.add_task("starting", total=None, rate="")
            most_missing = 0
            for report in reports:
                if report is not None:
                    most_missing = max(most_missing, report.without_vector)
                    _show(bar, task, report, most_missing)
                if self._result.done():
                    break
        return self._result.result()

    def join(self) -> None:
        """Wait for the thread: Python aborts if native code still runs in one when it ends."""
        self._thread.join()


def poll(read: Callable[[], ProgressReport | None]) -> Iterator[ProgressReport | None]:
    """Yield what a function returns, several times a second; the first time at once."""
    while True:
        yield read()
        time.sleep(_POLL_S)


def _show(bar: Progress, task: TaskID, report: ProgressReport, most_missing: int) -> None:
    """Show a report; `most_missing` is the largest count of missing vectors so far."""
    rate = f"{report.rate:.0f} texts/s" if report.rate else ""
    if report.backup:
        shown = ("MB copied", report.backup.done, report.backup.total)
    elif report.verify:
        shown = ("transcripts read", report.verify.done, report.verify.total)
    elif report.model == "preparing":
        # Files are read meanwhile, unless they may not lack their vectors.
        doing = "preparing the model for this machine, once"
        total = report.done + report.pending if report.pending else 0
        shown = (doing, report.done, total)
    elif report.pending or not report.without_vector:
        shown = (report.state, report.done, report.done + report.pending)
    else:
        made = most_missing - report.without_vector
        shown = ("making vectors; words find everything already", made, most_missing)
    description, done, total = shown
    bar.update(
        task,
        description=description,
        completed=done,
        total=total or None,
        rate=rate,
    )


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
