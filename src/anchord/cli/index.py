"""`index`, `sync`, `verify`, `dump`: bring the index up to date, prove it, print it."""

from __future__ import annotations

import contextlib
import logging
import sys
import threading
import time
from collections.abc import Callable, Iterator
from typing import Annotated, Any

import msgspec
import typer
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TaskID, TextColumn, TimeElapsedColumn, TimeRemainingColumn

from anchord.asking import connect, read, require_index
from anchord.cli.frame import AsJson, app, ask, configuration, err, places, print_json, say, warn
from anchord.cli.lifecycle import log_to_stderr
from anchord.errors import AnchordError, UsageError
from anchord.ipc.client import Client
from anchord.ipc.protocol import LONGEST_WAIT_S
from anchord.places import Places
from anchord.roots import existing_folder

_DIGITS = 10
_LOOK_S = 0.5


@app.command()
def index(
    paths: Annotated[list[str] | None, typer.Argument(metavar="[PATH]...", help="Folders; default: every root.")] = None,
    json: AsJson = False,
) -> None:
    """Bring the index up to date once and exit, with or without a daemon."""
    of = places()
    folders = [existing_folder(path, of.own) for path in paths or ()]
    configuration(of)
    client = connect(of)
    result = here(of, folders) if client is None else there(of, client, "index", {"paths": folders})
    say_summary(result, as_json=json)


def say_summary(result: dict[str, Any], *, as_json: bool) -> None:
    """Print what bringing the index up to date did."""
    if as_json:
        print_json(result)
        return
    for away in result.get("away", ()):
        warn(f"left alone: {away}")
    for problem in result.get("problems", ()):
        warn(f"{problem['path']}: {problem['reason']}")
    figures = f"{result['files']} files, {result['chunks']} chunks; {result['embedded']} texts embedded now"
    say(f"up to date: {figures}, {result['reused']} vectors reused")


@app.command()
def sync(
    timeout: Annotated[
        float | None, typer.Option("--timeout", metavar="S", min=0, max=LONGEST_WAIT_S, help="Give up after so long.")
    ] = None,
    json: AsJson = False,
) -> None:
    """Return when everything written to a root before the call is searchable."""
    result = ask(places(), "sync", timeout=timeout)
    if json:
        print_json(result)
        return
    say(f"in sync: what was written before is searchable ({result['waited_s']:.2f} s)")
    for name in result["away"]:
        warn(f"root {name} is away: its rows are kept as they were")
    for name, files in result["held"].items():
        warn(f"{files} files left root {name} at once, their rows are kept; `anchord confirm-delete {name}` lets them go")


@app.command()
def verify(
    repair: Annotated[bool, typer.Option("--repair", help="Mend what differs, and only that.")] = False,
    vectors: Annotated[str, typer.Option("--vectors", metavar="N|all", help="How many vectors to embed again.")] = "16",
    json: AsJson = False,
) -> None:
    """Compare the whole index with what a clean rebuild would hold; exit 1 and a list where they differ."""
    if vectors != "all" and not (vectors.isdecimal() and len(vectors) < _DIGITS):
        raise UsageError(f"--vectors {vectors} is no number that fits", "give a number, or all")
    sample = None if vectors == "all" else int(vectors)
    of = places()
    client = connect(of)
    if client is not None:
        with client:
            result = client.call("verify", repair=repair, vectors=sample)
    else:
        result = _verify_here(of, sample, repair=repair)
    if json:
        print_json(result)
    else:
        for difference in result["differences"]:
            where = f"{difference['root']}:{difference['path']}"
            say(f"{difference['kind']:<9} {where}  {difference['chunk_id'][:12]}")
        figures = f"{result['files']} files, {result['chunks']} chunks, {result['vectors_checked']} vectors embedded again"
        verdict = "the index is what a clean rebuild gives" if result["ok"] else f"{result['differences_total']} differences"
        say(f"{verdict} ({figures})")
        if not result["ok"]:
            warn("`anchord index` brings it up to date, `anchord verify --repair` mends it")
    raise typer.Exit(0 if result["ok"] else 1)


@app.command()
def dump() -> None:
    """Print every row, one JSON object a line, without vectors; sorted."""
    of = places()

    def rows(reader: Any) -> list[dict[str, Any]]:  # noqa: ANN401 - its class loads LanceDB
        from anchord.queries import answer_dump

        return list(answer_dump(reader, reader.catalogue))

    for row in read(of, rows):
        sys.stdout.write(msgspec.json.encode(row).decode() + "\n")


def here(of: Places, folders: list[str], how: str = "") -> dict[str, Any]:
    """Bring the index up to date in this process; `how`: reread, rechunk or rebuild all of it.

    Raises:
        UsageError: there is nothing to index.
    """
    from anchord.oneshot import bring_up_to_date
    from anchord.queries import answer_failures, answer_index, failure_of
    from anchord.workspace import open_writer

    log_to_stderr(logging.WARNING)
    with _bar() as bar:
        writer = open_writer(of, configuration(of), folders)
        try:
            if not writer.roots:
                raise UsageError("there are no roots yet", "`anchord index FOLDER` indexes one, `anchord add FOLDER` keeps it")
            task = bar.add_task("starting", total=None, rate="")

            def show(done: int, total: int, doing: str) -> None:
                rate = _rate(writer.means.embedder.rate)
                bar.update(task, completed=done, total=total or None, description=doing, rate=rate)

            with _telling(bar, task, lambda: writer.means.embedder.state):
                summary = bring_up_to_date(writer, folders, show, how)
            paths = {root.name: root.path for root in writer.roots}
            for repair in writer.repairs:
                warn(repair)
            problems = answer_failures(writer.catalogue, paths)
            problems += [failure_of(paths[o.root], o.path, problem, time.time_ns()) for o, problem in summary.problems]
            return answer_index(summary, writer.catalogue.counts(), writer.store.count(), summary.away, problems)
        finally:
            writer.close()


def there(of: Places, client: Client, method: str, params: dict[str, Any]) -> dict[str, Any]:
    """Ask the daemon to do it, and show its progress meanwhile from a second connection."""
    answers: list[dict[str, Any] | AnchordError] = []

    def wait() -> None:
        try:
            with client:
                answers.append(client.call(method, **params))
        except AnchordError as error:
            answers.append(error)

    waiting = threading.Thread(target=wait, daemon=True)
    waiting.start()
    with _bar() as bar, Client(of.socket) as watching:
        task = bar.add_task("indexing", total=None, rate="")
        for progress in watching.progress():
            done = progress["done"]
            total = done + progress["pending"]
            bar.update(task, completed=done, total=total, description=progress["state"], rate=_rate(progress["rate"]))
            if not waiting.is_alive():
                break
    waiting.join()
    if isinstance(answers[0], AnchordError):
        raise answers[0]
    return answers[0]


def _verify_here(of: Places, sample: int | None, *, repair: bool) -> dict[str, Any]:
    from anchord.verifying import repair as mend
    from anchord.verifying import verification_dict, verify_index
    from anchord.workspace import open_writer

    if not repair:
        return verification_dict(read(of, lambda reader: verify_index(reader, sample)))
    require_index(of)
    writer = open_writer(of, configuration(of), [])
    try:
        writer.catalogue.note("clean", "0")
        found = verify_index(writer, sample)
        if found.differences:
            for _ in writer.indexer.index(mend(writer, found.differences)):
                pass
            found = verify_index(writer, sample)
        return verification_dict(found)
    finally:
        writer.close()


@contextlib.contextmanager
def _telling(bar: Progress, task: TaskID, state: Callable[[], str]) -> Iterator[None]:
    """Tell when the model is made ready, which takes ten seconds in which nothing else is done."""
    ended = threading.Event()

    def look() -> None:
        while not ended.wait(_LOOK_S):
            if state() == "preparing":
                bar.update(task, description="making the model ready for this machine, once")

    thread = threading.Thread(target=look, daemon=True)
    thread.start()
    try:
        yield
    finally:
        ended.set()
        thread.join()


def _rate(texts: float) -> str:
    return f"{texts:.0f} texts/s" if texts else ""


def _bar() -> Progress:
    """Return a progress bar; on anything but a terminal with colours it prints nothing."""
    columns = (
        TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TextColumn("{task.fields[rate]}"),
        TimeElapsedColumn(), TimeRemainingColumn(),
    )  # fmt: skip
    return Progress(*columns, console=err, transient=True, disable=not err.is_terminal or err.color_system is None)
