"""`sessions`, `session`: conversations, also those whose transcripts are gone."""

from __future__ import annotations

import os
import shlex
import subprocess
import sys
from collections.abc import Sequence
from datetime import UTC, datetime
from functools import partial
from typing import TYPE_CHECKING, Annotated

from anchord.cli.app import JsonOption, app, ensure_paths, print_json, print_line, warn
from anchord.cli.output.console import print_text, terminal_size
from anchord.cli.parameters import Argument, Option
from anchord.cli.registry import Exit
from anchord.cli.values import complete_root
from anchord.config.paths import Paths
from anchord.core.counted import counted
from anchord.core.quoting import escape_text, quote_command, quote_name
from anchord.daemon.archive_access import ask_daemon_or_archive
from anchord.errors import UsageError
from anchord.ipc import requests
from anchord.ipc.messages.sessions import SessionAnswer, SessionDetail

if TYPE_CHECKING:
    from anchord.daemon.session_restore import NamedVersion, RestoredFile

_DEFAULT_WIDTH = 100
_INCOMPLETE = {
    "deleted": "not there",
    "detached": "not there",
    "prompts-only": "not there",
    "shorter": "shorter than what anchord keeps",
    "damaged": "damaged",
}
"""State of a session -> what its program would find."""
_NONE = "Found no conversations; `anchord discover --add` indexes those on this machine."
_NONE_LIKE_THIS = "Found none that match."


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
    kept: Annotated[
        bool,
        Option("--kept", help="List kept transcripts that have no conversation of their own."),
    ] = False,
    json: JsonOption = False,
) -> None:
    """List conversations, newest first, also those whose transcripts were deleted."""
    if project.startswith((".", "~", "/")):
        project = os.path.abspath(os.path.expanduser(project))
    paths = ensure_paths()
    ask_for = partial(
        requests.sessions, project=project, agent=agent, root=root, since=since, until=until
    )
    found = ask_daemon_or_archive(paths, ask_for(limit=n, subagents=subagents, kept=kept))
    if json:
        print_json(found)
        return
    _print_list(found, kept=kept)
    if not found:
        is_filtered = any((project, agent, root, since, until, kept))
        warn(_NONE_LIKE_THIS if is_filtered else _NONE)
    _print_what_to_do(found, is_all=not n or len(found) < n)
    if not kept:
        others = ask_daemon_or_archive(paths, ask_for(limit=0, kept=True))
        _print_other_transcripts(others)


def _print_other_transcripts(others: Sequence[SessionAnswer]) -> None:
    if not others:
        return
    verb = "has" if len(others) == 1 else "have"
    print_line(
        f"{counted(len(others), 'more kept transcript')} {verb} no conversation of "
        f"{'its' if len(others) == 1 else 'their'} own; `anchord sessions --kept` says why."
    )


def _print_list(found: Sequence[SessionAnswer], *, kept: bool) -> None:
    from anchord.cli.output.session_table import session_lines, transcript_lines

    size = terminal_size()
    width = size[0] if size else _DEFAULT_WIDTH
    lines = transcript_lines if kept else session_lines
    for line in lines(found, width, datetime.now(UTC).astimezone()):
        print_line(line, markup=True)


_THERE = frozenset({"here", "shorter", "damaged"})
"""States in which the transcript is where it was: restoring it asks for another place."""


def _print_what_to_do(found: Sequence[SessionAnswer], *, is_all: bool) -> None:
    deleted = [each for each in found if each.state not in _THERE and each.kept]
    if deleted:
        is_path = deleted[0].id.startswith("/")
        shown = deleted[0].id if is_path else deleted[0].id[:8]
        command = quote_command("anchord session --restore", shown, "ID")
        transcripts = counted(len(deleted), "transcript")
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
        str,
        Option("--version", metavar="NAME", help="With --restore: the name of an earlier state."),
    ] = "",
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
    wanted = _as_given_path(id)
    if restore:
        _restore(paths, wanted, to, version)
        return
    found = ask_daemon_or_archive(paths, requests.session(wanted, limit=1 if resume else 0))
    if resume:
        _resume(found, run=run)
    elif json:
        print_json(found)
    else:
        _print_session(found, markdown=markdown, html=html, no_pager=no_pager)


def _as_given_path(wanted: str) -> str:
    """Return a relative path, or one in the home folder, as an absolute one; ids as they are."""
    is_path = wanted.startswith(("./", "../", "~")) or ("/" in wanted and os.path.lexists(wanted))
    return os.path.abspath(os.path.expanduser(wanted)) if is_path else wanted


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


def _restore(paths: Paths, wanted: str, to: str, version: str) -> None:
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
    listed = ", ".join(map(_describe_version, file.versions))
    return (
        f"It has {len(file.versions)} versions: {listed}. This is {file.version}; "
        "`--version NAME` restores another."
    )


def _describe_version(version: NamedVersion) -> str:
    saved = datetime.fromtimestamp(version.state.saved_ns // 10**9, UTC).astimezone()
    damaged = "" if version.state.is_sound else ", damaged"
    return f"{version.name} of {saved:%d %b %Y %H:%M} ({version.state.size:,} bytes{damaged})"


def _resume(found: SessionDetail, *, run: bool) -> None:
    from anchord.sources.conversations.programs import program_name, resume_command

    if found.note:
        raise UsageError(f"{quote_name(found.path)} has no conversation of its own", found.note)
    words = resume_command(found.agent, found.id, found.path)
    if not words:
        raise UsageError(
            f"{program_name(found.agent)} has no command that resumes this session",
            f"{quote_command('anchord session --markdown', found.id)} prints it, for a new one",
        )
    restore = quote_command("anchord session --restore", found.id)
    folder = found.project_path if os.path.isdir(found.project_path) else ""
    if not run:
        change = f"cd {shlex.quote(folder)} && " if folder else ""
        print_line(f"{change}{shlex.join(words)}")
        if found.state in _INCOMPLETE:
            warn(f"Its transcript is {_INCOMPLETE[found.state]}: {restore} first.")
        return
    if found.state in _INCOMPLETE:
        raise UsageError(f"its transcript is {_INCOMPLETE[found.state]}", f"{restore} first")
    sys.stdout.flush()
    try:
        ended = subprocess.run(words, cwd=folder or None, check=False)
    except FileNotFoundError:
        raise UsageError(f"{quote_name(words[0])} is not installed", "install it first") from None
    raise Exit(ended.returncode)
