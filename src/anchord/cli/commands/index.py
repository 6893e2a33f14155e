"""`index`, `verify`, `dump`: bring the index up to date, check it, print it."""

from __future__ import annotations

import sys
from contextlib import suppress
from typing import TYPE_CHECKING, Annotated

import msgspec

from anchord.cli.app import (
    JsonOption,
    app,
    ask_engine,
    ensure_paths,
    load_user_config,
    print_json,
    print_line,
    warn,
)
from anchord.cli.output.progress import (
    ask_with_progress,
    progress_bar,
)
from anchord.cli.parameters import Argument, Option
from anchord.cli.registry import Exit
from anchord.config.cli_state import load_cli_state
from anchord.config.paths import Paths
from anchord.config.roots import resolve_root_folder
from anchord.core.counted import counted
from anchord.core.quoting import escape_gaps, escape_json, escape_path, quote_name
from anchord.daemon.access import ask_index, query_index, require_index, try_connect
from anchord.errors import AnchordError, UsageError
from anchord.ipc import requests
from anchord.ipc.messages.upkeep import (
    DifferenceAnswer,
    IndexAnswer,
    VerifyAnswer,
)

if TYPE_CHECKING:
    from anchord.config.schema import Config

_MAX_NUMBER_DIGITS = 9


@app.command()
def index(
    paths: Annotated[
        list[str] | None,
        Argument(metavar="[PATH]...", help="Folders to index; default: all that were added."),
    ] = None,
    json: JsonOption = False,
) -> None:
    """Bring the index up to date once and exit, with or without a daemon."""
    own_paths = ensure_paths()
    folders = [resolve_root_folder(path, own_paths.own_folders) for path in paths or ()]
    config = load_user_config(own_paths)  # If it is broken, the command ends before it connects.
    is_first = not own_paths.catalog_file.exists()
    client = try_connect(own_paths)
    if client is not None:
        result = ask_with_progress(own_paths, client, requests.index(folders))
    else:
        result = ask_engine(own_paths, requests.index(folders))
    print_index_summary(result, as_json=json)
    if is_first and not json:
        _warn_of_unknown_languages(own_paths, config)


def _warn_of_unknown_languages(paths: Paths, config: Config) -> None:
    """Say once, after the first run, that the model does not know the languages of the text."""
    from anchord.daemon.language_check import find_unknown_languages

    with suppress(AnchordError):  # `doctor` says what is wrong.
        finding = find_unknown_languages(paths, config)
        if finding:
            warn(f"{finding.observation}; {finding.remedy}")


def print_index_summary(result: IndexAnswer, *, as_json: bool) -> None:
    """Print the result of an indexing run.

    Args:
        result: The answer of the daemon's `index`, `reindex` and `rebuild`.
        as_json: Print it as JSON.
    """
    if as_json:
        print_json(result)
        return
    for missing in result.away:
        warn(f"skipped: {missing}")
    for problem in result.problems:
        warn(f"{escape_path(problem.path)}: {problem.reason}")
    size = f"{result.files} files, {result.chunks} chunks"
    work = f"{result.embedded} texts embedded now, {result.reused} vectors reused"
    print_line(f"up to date: {size}; {work}")


@app.command()
def verify(
    repair: Annotated[bool, Option("--repair", help="Repair what differs, and only that.")] = False,
    vectors: Annotated[
        str, Option("--vectors", metavar="N|all", help="How many vectors to embed again.")
    ] = "16",
    json: JsonOption = False,
) -> None:
    """Compare the whole index with what a clean rebuild would hold.

    Exit code 0: they are equal; 1: they differ, and the differences are listed.
    """
    sample = _parse_vector_count(vectors)
    paths = ensure_paths()
    client = try_connect(paths)
    if client is not None:
        call = requests.verify(repair=repair, vectors=sample)
        result = ask_with_progress(paths, client, call)
    else:
        result = _verify_in_process(paths, sample, repair=repair)
    if load_cli_state(paths.cli_state_file).unfinished_forget:
        warn("a `forget` was interrupted: text may be on the disk; `anchord index` completes it")
        result = msgspec.structs.replace(result, ok=False)
    if json:
        print_json(result)
    else:
        _print_verify_result(result, repair=repair)
    raise Exit(0 if result.ok else 1)


def _parse_vector_count(vectors: str) -> int | None:
    """Return how many vectors to check, None for all."""
    if vectors == "all":
        return None
    if not vectors.isdecimal() or len(vectors) > _MAX_NUMBER_DIGITS:
        raise UsageError(f"cannot read --vectors {vectors} as a number", "give a number, or all")
    return int(vectors)


def _print_verify_result(result: VerifyAnswer, *, repair: bool) -> None:
    for difference in result.differences:
        print_line(_difference_line(difference))
    for root_name, file_count in result.held.items():
        print_line(
            f"held      {file_count} files of {quote_name(root_name)} are gone, excluded or cannot "
            "be read, and are still in the index"
        )
    for root_name, file_count in result.unread_rules.items():
        print_line(
            f"unread    {file_count} ignore files of {quote_name(root_name)} cannot be read: "
            "nothing in their folders is indexed"
        )
    if result.without_vector:
        print_line(f"no vector {result.without_vector} chunks: their own is not made yet")
    size = f"{result.files} files, {_conversation_counts(result)}{result.chunks} chunks"
    checked = f"{result.vectors_checked} vectors embedded again"
    print_line(f"{_verdict(result)} ({size}, {checked})")
    if result.differences and repair:
        warn("they differ after the repair too: `anchord rebuild` makes a new index")
    elif result.differences:
        warn("`anchord index` indexes what has changed; `anchord verify --repair` repairs the rest")
    elif result.without_vector:
        warn("`anchord sync` waits for the daemon to make them, `anchord index` makes them")
    elif result.held:
        warn("`anchord status` says why; `anchord confirm-delete ROOT` confirms deletions")
    elif result.unread_rules:
        warn("`anchord errors` names them")


def _difference_line(difference: DifferenceAnswer) -> str:
    # A row that only a scan of the table finds has no known file.
    known_place = escape_gaps(f"{difference.root}:{difference.path}")
    place = known_place if difference.root else "unknown file"
    chunk_id = difference.chunk_id
    # What differs in the archive has the path of an exchange in place of a row's id.
    shown_id = chunk_id if chunk_id.startswith("/") else chunk_id[:12]
    return f"{difference.kind:<9} {place}  {shown_id}"


def _verdict(result: VerifyAnswer) -> str:
    if result.differences:
        return f"{result.differences_total} differences"
    if not result.ok or result.held or result.unread_rules or result.without_vector:
        return "all else equals a clean rebuild"
    return "the index equals a clean rebuild"


def _conversation_counts(result: VerifyAnswer) -> str:
    if not result.exchanges:
        return ""
    transcripts = counted(result.transcripts, "transcript")
    return f"{transcripts}, {counted(result.exchanges, 'exchange')}, "


@app.command()
def dump() -> None:
    """Print every row, one JSON object a line, without vectors; sorted."""
    # Not by the daemon: the rows would be one answer of all texts.
    for row in ask_index(ensure_paths(), requests.dump()):
        sys.stdout.write(escape_json(msgspec.json.encode(row).decode()) + "\n")


def _verify_in_process(paths: Paths, sample: int | None, *, repair: bool) -> VerifyAnswer:
    """Verify the index; with `repair`, redo what differs. Without it, nothing is written."""
    from anchord.daemon.answers import verify_answer
    from anchord.index.integrity.repair import verify_index

    require_index(paths)
    if repair:
        return ask_engine(paths, requests.verify(repair=True, vectors=sample))
    with progress_bar() as bar:
        task = bar.add_task("transcripts read", total=None, rate="")

        def show_progress(done: int, total: int) -> None:
            bar.update(task, completed=done, total=total)

        found = query_index(paths, lambda reader: verify_index(reader, sample, show_progress))
    return verify_answer(found)
