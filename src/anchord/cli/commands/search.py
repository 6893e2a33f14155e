"""`search`, `show`, `explain`: the daemon answers them; where none runs, they read the index."""

from __future__ import annotations

import os
from typing import Annotated

from anchord.cli import values
from anchord.cli.app import (
    JsonOption,
    app,
    ask_daemon,
    ensure_paths,
    print_json,
    print_line,
    warn,
)
from anchord.cli.output import render, search_results
from anchord.cli.output.confidence import NOTHING_ABOUT, is_off_topic
from anchord.cli.output.console import stdout_console, terminal_size
from anchord.cli.output.markup import is_terminal
from anchord.cli.parameters import Argument, Option
from anchord.cli.path_filter import resolve_path_filter
from anchord.config.paths import absolute_path, working_folder
from anchord.core.quoting import escape_non_utf8, quote_name
from anchord.daemon.access import ask_daemon_or_index, ask_index
from anchord.errors import UsageError
from anchord.ipc import requests
from anchord.ipc.messages.searching import (
    MAX_BUDGET,
    MAX_CONTEXT_CHUNKS,
    MAX_EXPAND_CHARS,
    MAX_HITS,
    MIN_BUDGET,
    SearchAnswer,
)

_DEFAULT_K = 10
_PROMPT_ROWS = 2
"""Rows of the window that the command line before and the prompt after the results take."""


@app.command()
def search(  # noqa: PLR0917 - one parameter an option
    query: Annotated[str, Argument(metavar="QUERY")],
    k: Annotated[
        int,
        Option("-k", min=1, max=MAX_HITS, help="How many files (with --show-chunks: chunks)."),
    ] = _DEFAULT_K,
    mode: Annotated[
        str,
        Option("--mode", help="hybrid, vector or text", autocompletion=values.complete_mode),
    ] = "hybrid",
    root: Annotated[
        str,
        Option(
            "--root",
            help="Only this folder, by its name in `anchord roots`.",
            autocompletion=values.complete_root,
        ),
    ] = "",
    path: Annotated[
        str,
        Option("--path", metavar="GLOB", help="Only this folder, or paths that match: '*.md'."),
    ] = "",
    kind: Annotated[
        str,
        Option(
            "--kind",
            help="Only this kind: markdown, text, code, exchange, ...",
            autocompletion=values.complete_kind,
        ),
    ] = "",
    section: Annotated[
        str, Option("--section", metavar='"A > B"', help="Only below these headings.")
    ] = "",
    room: Annotated[str, Option("--room", help="Only this room or topic.")] = "",
    session: Annotated[str, Option("--session", help="Only this conversation.")] = "",
    chunk_type: Annotated[
        str,
        Option(
            "--type",
            help="Only section, text, code_block, table or list.",
            autocompletion=values.complete_chunk_type,
        ),
    ] = "",
    language: Annotated[
        str, Option("--lang", help="Only code of this language: python, go, ...")
    ] = "",
    file: Annotated[
        str,
        Option(
            "--file", metavar="FILE", help="Only conversations that changed or named this file."
        ),
    ] = "",
    branch: Annotated[str, Option("--branch", help="Only conversations on this git branch.")] = "",
    project: Annotated[
        str, Option("--project", help="Only conversations about this project.")
    ] = "",
    tool: Annotated[
        str, Option("--tool", help="Only exchanges that called this tool, such as Bash.")
    ] = "",
    agent: Annotated[
        str, Option("--agent", help="Only conversations of this program, such as claude.")
    ] = "",
    since: Annotated[
        str,
        Option(
            "--since",
            metavar="D",
            help="Only what changed or was said since: 2026-01-31, 7d, 3h, 'last week'.",
        ),
    ] = "",
    until: Annotated[
        str, Option("--until", metavar="D", help="Only what changed or was said until then.")
    ] = "",
    recent: Annotated[
        str,
        Option(
            "--recent", metavar="AGE", help="Weigh older hits down; half the score at AGE: 30d."
        ),
    ] = "",
    show_chunks: Annotated[
        bool, Option("--show-chunks", help="List chunks, not grouped by file.")
    ] = False,
    expand: Annotated[
        int,
        Option(
            "--expand",
            metavar="CHARS",
            min=0,
            max=MAX_EXPAND_CHARS,
            help="Add text around each hit, up to so many characters.",
        ),
    ] = 0,
    budget: Annotated[
        int | None,
        Option(
            "--budget",
            metavar="TOKENS",
            min=MIN_BUDGET,
            max=MAX_BUDGET,
            help="Show whole passages, the best ones that fit in so many tokens.",
        ),
    ] = None,
    fresh: Annotated[
        bool, Option("--fresh", help="Wait first until all changes so far are indexed.")
    ] = False,
    detached: Annotated[
        bool,
        Option("--detached", help="Also search conversations kept but not indexed, by words."),
    ] = False,
    explain: Annotated[bool, Option("--explain", help="Show how each hit was found.")] = False,
    open_it: Annotated[
        bool, Option("--open", help="Open the best hit in $VISUAL or $EDITOR, at its line.")
    ] = False,
    json: JsonOption = False,
) -> None:
    """Find chunks by meaning and by words, grouped by file, best first."""
    paths = ensure_paths()
    path_filter = resolve_path_filter(paths, path)
    touched = absolute_path(file) if file and os.path.lexists(file) else file
    names = (root, path_filter, kind, section, room, session, chunk_type, language)
    conversations = (touched, branch, project, tool, agent)
    _require_utf8(query, mode, *names, *conversations, since, until, recent)
    call = requests.search(
        query,
        k=k,
        mode=mode,
        root=root,
        path=path_filter,
        kind=kind,
        section=section,
        room=room,
        session=session,
        chunk_type=chunk_type,
        language=language,
        file=touched,
        branch=branch,
        project=project,
        tool=tool,
        agent=agent,
        since=since,
        until=until,
        recent=recent,
        show_chunks=show_chunks,
        expand=expand,
        budget=budget or 0,
        cwd=working_folder(),
        fresh=fresh,
        detached=detached,
    )
    # Only a daemon can bring the index up to date first.
    results = ask_daemon(paths, call) if fresh else ask_daemon_or_index(paths, call).value
    if json:
        print_json(results)
    else:
        _print_results(
            results,
            explain=explain,
            is_whole=bool(budget),
            fits_window=k <= _DEFAULT_K and not explain,
        )
    if open_it and results.groups:
        from anchord.cli.output.editor import open_in_editor

        open_in_editor(results.groups[0][0])


def _print_results(
    results: SearchAnswer, *, explain: bool, is_whole: bool, fits_window: bool
) -> None:
    if results.note:
        warn(results.note)
    if results.omitted and not results.groups:
        warn("nothing fits in this budget")
    elif not results.groups and not results.detached:
        warn("nothing found" if results.complete else "nothing found so far")
    off_topic = is_off_topic(results)
    if off_topic:
        warn(NOTHING_ABOUT)
    window = search_results.Window()
    if size := terminal_size():
        columns, rows = size
        rows_left = max(rows - _PROMPT_ROWS - bool(results.note) - off_topic, 1)
        window = search_results.Window(columns, rows_left if fits_window else None)
    lines = search_results.answer_lines(
        results, working_folder(), window, with_explanations=explain, is_whole=is_whole
    )
    for line in lines:
        print_line(line, markup=True)


@app.command()
def show(
    chunk_id: Annotated[str, Argument(metavar="ID", help="A chunk's id, or its first digits.")],
    whole: Annotated[bool, Option("--whole", help="All chunks of its file.")] = False,
    context: Annotated[
        int,
        Option(
            "--context",
            metavar="N",
            min=0,
            max=MAX_CONTEXT_CHUNKS,
            help="N neighbours on each side.",
        ),
    ] = 0,
    json: JsonOption = False,
) -> None:
    """Print a chunk, its neighbours, or all chunks of its file."""
    _require_utf8(chunk_id)
    call = requests.show(chunk_id, whole=whole, context=context)
    answer = ask_daemon_or_index(ensure_paths(), call).value
    if json:
        print_json(answer)
        return
    if answer.replaced:
        warn(f"{answer.replaced} was edited: {answer.id} took its place")
    width = stdout_console().width if is_terminal() else None
    for chunk in answer.chunks:
        for line in render.chunk_lines(chunk, width):
            print_line(line, markup=True)
    if whole and answer.conversation:
        for line in render.conversation_lines(answer.conversation):
            print_line(line, markup=True)


@app.command()
def explain(path: Annotated[str, Argument(metavar="PATH")], json: JsonOption = False) -> None:
    """Explain whether a file is indexed, which rule decided, and what happens to it next."""
    absolute = absolute_path(path)
    paths = ensure_paths()
    call = requests.explain(absolute)
    if _is_utf8(absolute):
        answer = ask_daemon_or_index(paths, call).value
    else:
        answer = ask_index(paths, call)  # JSON cannot send the name to the daemon.
    if json:
        print_json(answer)
        return
    for line in render.explain_lines(answer):
        print_line(line, markup=True)


def _is_utf8(argument: str) -> bool:
    return escape_non_utf8(argument) == argument


def _require_utf8(*arguments: str) -> None:
    for argument in arguments:
        if not _is_utf8(argument):
            raise UsageError(f"{quote_name(argument)} is not UTF-8", "write it in UTF-8")
