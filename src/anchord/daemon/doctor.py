"""`anchord doctor`: what keeps anchord from working on this machine, or soon will.

Nothing is changed, except that missing folders of anchord are created and a temporary file is
written to compare clocks. A check that fails is a finding itself.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from pathlib import Path

from anchord._version import __version__
from anchord.config.cli_state import load_cli_state
from anchord.config.file import load_config
from anchord.config.paths import Paths
from anchord.config.roots import gather_roots
from anchord.core.os_errors import from_os_error
from anchord.core.quoting import quote_command, quote_name
from anchord.core.types import Root
from anchord.daemon.access import try_connect
from anchord.daemon.backup_check import check_backup
from anchord.daemon.findings import CheckContext, Finding, Health
from anchord.daemon.index_checks import check_archive, check_index, check_model, check_reranker
from anchord.daemon.language_check import check_languages
from anchord.daemon.machine_checks import (
    check_clock,
    check_confinement,
    check_disk,
    check_open_files,
    check_watches,
)
from anchord.daemon.service.install import query_service_status
from anchord.daemon.transcript_check import check_transcripts
from anchord.errors import AnchordError
from anchord.ipc.messages.status import StatusAnswer
from anchord.sources.conversations.discovery import find_conversation_folders
from anchord.sources.files.mounts import Mount, list_mounts, remote_fs_type

__all__ = ["Finding", "Health", "run_checks"]

Check = Callable[[CheckContext], Iterator[Finding]]


def run_checks(paths: Paths, environment: Mapping[str, str]) -> Iterator[Finding]:
    """Run all checks one after another, and yield what each finds. Never raises AnchordError.

    Nothing more is checked when the folders or the configuration cannot be used.

    Args:
        paths: Where this anchord keeps its files; missing folders are created.
        environment: Environment variables, to find services and conversations.
    """
    try:
        paths.create_folders()
        yield Finding(
            "places",
            Health.GOOD,
            f"configuration {paths.config_file}, index {paths.data_folder}, "
            f"socket {paths.socket_file}",
        )
        config = load_config(paths.config_file)
        given_roots = load_cli_state(paths.cli_state_file).given_roots
        roots = gather_roots(config, given_roots, (), paths.own_folders)
    except AnchordError as error:
        yield Finding("configuration", Health.BAD, error.message, error.hint)
        return
    missing = "" if paths.config_file.exists() else " does not exist: all settings are defaults"
    yield Finding("configuration", Health.GOOD, f"{paths.config_file}{missing}")
    is_running, daemon_status = _query_status(paths)
    context = CheckContext(
        paths=paths,
        config=config,
        roots=tuple(roots),
        is_running=is_running,
        daemon_status=daemon_status,
        environment=environment,
    )
    for name, check in _CHECKS.items():
        yield from _run_check(name, check, context)


def _run_check(name: str, check: Check, context: CheckContext) -> Iterator[Finding]:
    """Yield what a check finds, and its error as a finding called `name`."""
    try:
        yield from check(context)
    except AnchordError as error:
        yield Finding(name, Health.BAD, error.message, error.hint)
    except OSError as error:
        if known := from_os_error(error, str(context.paths.data_folder)):
            yield Finding(name, Health.BAD, known.message, known.hint)
            return
        reason = os.strerror(error.errno or 0).lower()
        observation = f"{error.filename or 'a file'}: {reason}"
        yield Finding(
            name,
            Health.BAD,
            observation,
            "check that it exists, and its permissions",
        )


def _query_status(paths: Paths) -> tuple[bool, StatusAnswer | None]:
    """Return whether a daemon runs, and its status; None for it if it does not answer."""
    client = try_connect(paths)
    if client is None:
        return False, None
    with client, suppress(AnchordError):
        return True, client.status()
    return True, None


def _check_daemon(context: CheckContext) -> Iterator[Finding]:
    status = context.daemon_status
    if not context.is_running:
        yield Finding(
            "daemon",
            Health.DOUBTFUL,
            "not running: changes are not indexed",
            "`anchord start` starts it",
        )
        return
    if status is None:
        yield Finding(
            "daemon",
            Health.BAD,
            "runs, but does not answer `status`",
            "`anchord restart` starts it anew",
        )
        return
    if status.version != __version__:
        yield Finding(
            "daemon",
            Health.DOUBTFUL,
            f"runs version {status.version}, but {__version__} is installed",
            "`anchord restart` starts the installed version",
        )
    for problem in status.degraded:
        yield Finding(
            "daemon",
            Health.BAD,
            problem,
            "`anchord status` shows more",
        )
    if failed := status.failed:
        yield Finding(
            "files",
            Health.DOUBTFUL,
            f"{len(failed)} files or folders are not, or not fully, indexed",
            "`anchord errors` lists them",
        )
    if status.version == __version__ and not status.degraded:
        yield Finding("daemon", Health.GOOD, f"running, {status.state} (process {status.pid})")


def _check_service(context: CheckContext) -> Iterator[Finding]:
    service = query_service_status(context.paths, context.config, context.environment)
    if not service.installed:
        yield Finding(
            "service",
            Health.GOOD,
            "not installed: `anchord service install` starts anchord with your session",
        )
    elif not service.up_to_date:
        yield Finding(
            "service",
            Health.DOUBTFUL,
            "its files are from another version or configuration",
            "`anchord service install` updates them",
        )
    elif not service.active:
        yield Finding(
            "service",
            Health.BAD,
            f"installed, but not running ({service.detail})",
            "`journalctl --user -u anchord -n 20` shows why",
        )
    else:
        yield Finding("service", Health.GOOD, f"running under {service.supervisor}")


def _check_roots(context: CheckContext) -> Iterator[Finding]:
    if not context.roots:
        yield Finding(
            "roots", Health.DOUBTFUL, "none: nothing is indexed", "`anchord add FOLDER` adds one"
        )
    mounts = list_mounts()
    for root in context.roots:
        yield _check_root(root, mounts)


def _check_root(root: Root, mounts: tuple[Mount, ...]) -> Finding:
    if not Path(root.path).is_dir():
        return Finding(
            "roots",
            Health.BAD,
            f"{quote_name(root.name)}: the folder {quote_name(root.path)} is missing",
            "restore or mount it, or remove the root: "
            + quote_command("anchord remove", root.name),
        )
    if not os.access(root.path, os.R_OK | os.X_OK):
        return Finding(
            "roots",
            Health.BAD,
            f"{quote_name(root.name)}: the folder {quote_name(root.path)} cannot be read",
            f"check its permissions: {quote_command('ls -ld', root.path, 'FOLDER')}",
        )
    if fs_type := remote_fs_type(root.path, mounts):
        return Finding(
            "roots",
            Health.DOUBTFUL,
            f"{quote_name(root.name)}: {fs_type} does not report changes made on other machines; "
            "the folder is polled",
            "if you can, run anchord on the machine that has the disk",
        )
    name, path = quote_name(root.name), quote_name(root.path)
    return Finding("roots", Health.GOOD, f"{name}: {path}")


def _check_conversations(context: CheckContext) -> Iterator[Finding]:
    folders = find_conversation_folders(str(Path.home()), context.environment, context.roots)
    programs = sorted({folder.program for folder in folders if not folder.root})
    if programs:
        yield Finding(
            "conversations",
            Health.GOOD,
            f"{', '.join(programs)}: found, but not indexed; "
            "`anchord discover --add` offers to add them",
        )


_CHECKS: Mapping[str, Check] = {
    "daemon": _check_daemon,
    "service": _check_service,
    "roots": _check_roots,
    "watches": check_watches,
    "files": check_open_files,
    "confinement": check_confinement,
    "disk": check_disk,
    "store": check_index,
    "archive": check_archive,
    "model": check_model,
    "reranker": check_reranker,
    "language": check_languages,
    "clock": check_clock,
    "conversations": _check_conversations,
    "transcripts": check_transcripts,
    "backup": check_backup,
}
"""The checks in their order, by the name of the finding when the check itself fails."""
