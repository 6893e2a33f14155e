"""`sessions`, `session`: conversations, also those whose transcripts are gone."""

from __future__ import annotations

import os
import shlex
import subprocess
import sys
from collections.abc import Sequence
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Annotated

from anchord.cli.app import JsonOption, app, ensure_paths, print_json, print_line, warn
from anchord.cli.output.console import print_text, terminal_size
from anchord.cli.parameters import Argument, Option
from anchord.cli.registry import Exit
from anchord.cli.values import complete_root
from anchord.config.paths import Paths
from anchord.core.quoting import escape_text, quote_command, quote_name
from anchord.daemon.archive_access import ask_daemon_or_archive
from anchord.errors import UsageError
from anchord.ipc import requests
from anchord.ipc.messages.sessions import SessionAnswer, SessionDetail

if TYPE_CHECKING:
    from anchord.daemon.session_restore import RestoredFile

_DEFAULT_WIDTH = 100


@app.command()
def sessions(  # noqa: PLR0917 - options
    project: Annotated[
        str, Option("--project", help="Only of this project: a part of its name, or a folder.")
    ] = "",
    agent: Annotated[
        str, Option("--agent", help="Only of this program, such as claude or codex.")
    ] = "",
    since: Annotated[str, Option("--since", help="Only sessions that ended since a date.")] = "",
    until: Annotated[str, Option("--until", help="Only sessions that ended before a date.")] = "",
    root: Annotated[
        str, Option("--root", help="Only of this root.", autocompletion=complete_root)
    ] = "",
    n: Annotated[int, Option("-n", help="How many; 0 for all.", min=0)] = 20,
    subagents: Annotated[
        bool, Option("--subagents", help="Also sessions that another session started.")
    ] = False,
    json: JsonOption = False,
) -> None:
    """List conversations, newest first, also those whose transcripts were deleted."""
    if project.startswith((".", "~", "/")):
        project = os.path.abspath(os.path.expanduser(project))
    call = requests.sessions(
        project=project,
        agent=agent,
        root=root,
        since=since,
        until=until,
        limit=n,
        subagents=subagents,
    )
    found = ask_daemon_or_archive(ensure_paths(), call)
    if json:
        print_json(found)
        return
    if not found:
        warn("Found no conversations; `anchord discover --add` indexes those on this machine.")
        return
    from anchord.cli.output.session_table import session_lines

    size = terminal_size()
    width = size[0] if size else _DEFAULT_WIDTH
    for line in session_lines(found, width, datetime.now(UTC).astimezone()):
        print_line(line, markup=True)
    _print_what_to_do(found, is_all=not n or len(found) < n)


def _print_what_to_do(found: Sequence[SessionAnswer], *, is_all: bool) -> None:
    deleted = [each for each in found if each.state != "here" and each.kept]
    if deleted:
        command = quote_command("anchord session --restore", deleted[0].id[:8], "ID")
        transcripts = "1 transcript" if len(deleted) == 1 else f"{len(deleted)} transcripts"
        print_line(f"{transcripts} of these can be restored: {command}")
    if not is_all:
        print_line(f"The newest {len(found)}; `-n 0` lists all.")


@app.command()
def session(  # noqa: PLR0917 - one parameter an option
    id: Annotated[
        str,
        Argument(
            metavar="ID",
            help="A session's id, the beginning of one, its transcript, or an exchange's id.",
        ),
    ],
    markdown: Annotated[bool, Option("--markdown", help="Print it as Markdown.")] = False,
    html: Annotated[bool, Option("--html", help="Print it as one page of HTML.")] = False,
    restore: Annotated[
        bool, Option("--restore", help="Write its transcript back where its program finds it.")
    ] = False,
    to: Annotated[
        str, Option("--to", metavar="PATH", help="With --restore: a file or folder to write to.")
    ] = "",
    version: Annotated[
        int, Option("--version", metavar="N", help="With --restore: an earlier state.", min=0)
    ] = 0,
    resume: Annotated[
        bool, Option("--resume", help="Print the command with which its program resumes it.")
    ] = False,
    run: Annotated[bool, Option("--run", help="With --resume: run that command.")] = False,
    no_pager: Annotated[bool, Option("--no-pager", help="Do not use a pager.")] = False,
    json: JsonOption = False,
) -> None:
    """Show a conversation, restore its transcript, or resume it."""
    _require_one(
        {
            "--markdown": markdown,
            "--html": html,
            "--json": json,
            "--restore": restore,
            "--resume": resume,
        }
    )
    if (to or version) and not restore:
        raise UsageError("--to and --version need --restore", "add --restore")
    if run and not resume:
        raise UsageError("--run needs --resume", "add --resume")
    paths = ensure_paths()
    if restore:
        _restore(paths, id, to, version)
        return
    found = ask_daemon_or_archive(paths, requests.session(id, limit=1 if resume else 0))
    if resume:
        _resume(found, run=run)
    elif json:
        print_json(found)
    else:
        _print_session(found, markdown=markdown, html=html, no_pager=no_pager)


def _require_one(options: dict[str, bool]) -> None:
    given = [name for name, is_given in options.items() if is_given]
    if len(given) > 1:
        raise UsageError(f"{given[0]} cannot be combined with {given[1]}", "leave one of them out")


def _print_session(found: SessionDetail, *, markdown: bool, html: bool, no_pager: bool) -> None:
    from anchord.cli.output.markup import is_terminal
    from anchord.cli.output.session_text import as_html, as_markdown, as_terminal_text

    if html:
        print_text(escape_text(as_html(found, None)))
        return
    if markdown:
        print_text(escape_text(as_markdown(found, None)))
        return
    size = terminal_size()
    with_colors = is_terminal() and not os.environ.get("NO_COLOR")
    text = as_terminal_text(
        found, size[0] if size else _DEFAULT_WIDTH, None, with_colors=with_colors
    )
    if size is None or no_pager or text.count("\n") < size[1] or not _page(text):
        print_text(text.rstrip("\n"))


def _page(text: str) -> bool:
    """Show a text in the user's pager; return whether there is one."""
    pager = shlex.split(os.environ.get("PAGER") or "less")
    try:
        subprocess.run(
            pager,
            input=text.encode(errors="replace"),
            check=False,
            env={"LESS": "FRX", **os.environ},
        )
    except (OSError, IndexError):
        return False
    return True


def _restore(paths: Paths, wanted: str, to: str, version: int) -> None:
    from anchord.daemon.session_restore import restore_session
    from anchord.sources.conversations.kept.restore import Existing

    files = restore_session(paths, wanted, to=to, version=version, env=os.environ)
    others = [file.path for file in files if file.found is Existing.OTHER]
    for file in files:
        if file.found is Existing.OTHER:
            continue
        shown = quote_name(file.path)
        sentences = {
            Existing.NOTHING: f"Restored {shown} ({file.size:,} bytes).",
            Existing.SAME: f"{shown} is there already, with the same {file.size:,} bytes.",
            Existing.LONGER: f"{shown} is there already: all {file.size:,} bytes, and more.",
        }
        print_line(sentences[file.found])
        if len(file.versions) > 1:
            print_line(_describe_versions(file))
    for path in others:
        warn(f"Skipped {quote_name(path)}: another file is there; it was left as it is.")
    if others:
        raise Exit(1)


def _describe_versions(file: RestoredFile) -> str:
    listed = ", ".join(
        f"{number} ({each.size:,} bytes{'' if each.is_sound else ', damaged'})"
        for number, each in enumerate(file.versions, 1)
    )
    return (
        f"It has {len(file.versions)} versions: {listed}. This is {file.version}; `--version N` "
        "restores another."
    )


def _resume(found: SessionDetail, *, run: bool) -> None:
    from anchord.sources.conversations.programs import program_name, resume_command

    words = resume_command(found.agent, found.id, found.path)
    if not words:
        raise UsageError(
            f"{program_name(found.agent)} has no command that resumes this session",
            f"{quote_command('anchord session --markdown', found.id)} prints it, for a new one",
        )
    folder = found.project_path if os.path.isdir(found.project_path) else ""
    if not run:
        change = f"cd {shlex.quote(folder)} && " if folder else ""
        print_line(f"{change}{shlex.join(words)}")
        if found.state != "here":
            command = quote_command("anchord session --restore", found.id)
            warn(f"Its transcript is not there: {command} first.")
        return
    if found.state != "here":
        raise UsageError(
            "its transcript is not there",
            f"{quote_command('anchord session --restore', found.id)} first",
        )
    sys.stdout.flush()
    try:
        ended = subprocess.run(words, cwd=folder or None, check=False)
    except FileNotFoundError:
        raise UsageError(f"{quote_name(words[0])} is not installed", "install it first") from None
    raise Exit(ended.returncode)
