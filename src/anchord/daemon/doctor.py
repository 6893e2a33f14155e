"""`anchord doctor`: what keeps anchord from working on this machine, or soon will.

Nothing is changed, except that missing folders of anchord are created and a temporary file is
written to compare clocks. A check that fails is a finding itself.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import closing, suppress
from pathlib import Path

from anchord._version import __version__
from anchord.config.cli_state import load_cli_state
from anchord.config.file import load_config
from anchord.config.paths import Paths
from anchord.config.roots import gather_roots
from anchord.core.quoting import quote_command, quote_name
from anchord.core.sqlite_errors import damaged_error
from anchord.core.types import Root
from anchord.daemon.access import try_connect
from anchord.daemon.backup_check import check_backup
from anchord.daemon.findings import CheckContext, Finding, Health
from anchord.daemon.machine_checks import (
    check_clock,
    check_confinement,
    check_disk,
    check_open_files,
    check_watches,
)
from anchord.daemon.service.install import query_service_status
from anchord.daemon.table_check import check_table_files
from anchord.embedding.workers.export_cache import find_export
from anchord.errors import AnchordError
from anchord.index.archive_recovery import LOST_EXCHANGES_FILE
from anchord.index.profile import IndexProfile, ProfileInputs, build_configured_profile
from anchord.index.table_location import is_local, store_uri
from anchord.ipc.messages.status import StatusAnswer
from anchord.sources.conversations.archive.reader import Archive
from anchord.sources.conversations.discovery import find_conversation_folders
from anchord.sources.files.mounts import Mount, list_mounts, remote_fs_type
from anchord.store.catalog.catalog import SqliteCatalog
from anchord.store.table.table import TABLE_FOLDER, LanceStore

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
        reason = os.strerror(error.errno or 0).lower()
        observation = f"{error.filename or 'a file'}: {reason}"
        yield Finding(name, Health.BAD, observation, "check that it exists, and its permissions")


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
    version = status.version if status else ""
    if version != __version__:
        yield Finding(
            "daemon",
            Health.DOUBTFUL,
            f"runs version {version}, but {__version__} is installed",
            "`anchord restart` starts the installed version",
        )
    if status is None:
        return
    for problem in status.degraded:
        yield Finding("daemon", Health.BAD, problem, "`anchord status` shows more")
    if failed := status.failed:
        yield Finding(
            "files",
            Health.DOUBTFUL,
            f"{len(failed)} files or folders are not, or not fully, indexed",
            "`anchord errors` lists them",
        )
    if version == __version__ and not status.degraded:
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


def _check_index(context: CheckContext) -> Iterator[Finding]:
    catalog_file = context.paths.catalog_file
    if not catalog_file.exists():
        yield Finding("index", Health.GOOD, "none yet: `anchord index` builds it")
        return
    with SqliteCatalog(catalog_file, read_only=True) as catalog:
        if not catalog.is_intact():
            yield Finding(
                "index",
                Health.BAD,
                f"{catalog_file} is damaged",
                "`anchord restart` rebuilds it from your files",
            )
            return
        expected_rows = sum(chunks for _, chunks in catalog.counts_by_root().values())
    yield _check_row_count(context, expected_rows)
    uri = store_uri(context.paths, context.config)
    if is_local(uri):
        yield from check_table_files(Path(uri) / TABLE_FOLDER)
    if finding := _check_damaged_folder(context.paths.damaged_folder):
        yield finding


def _check_archive(context: CheckContext) -> Iterator[Finding]:
    """Check the pages of the archive, which can be the only copy of conversations."""
    file = context.paths.archive_file
    if not file.exists():
        return
    with closing(Archive(file, read_only=True)) as archive:
        if not archive.is_intact():
            raise damaged_error(str(file), "its pages do not fit together")
        counts = archive.counts_by_root().values()
    exchanges = sum(root["exchanges"] for root in counts)
    if exchanges:
        yield Finding("archive", Health.GOOD, f"{exchanges:,} exchanges, its pages are sound")


def _check_row_count(context: CheckContext, expected_rows: int) -> Finding:
    """Compare the table's rows with the catalog's. While files wait, they may differ."""
    uri = store_uri(context.paths, context.config)
    dimension = _configured_profile(context).dimension
    rows = LanceStore(uri, dimension, "", read_only=True).count_rows()
    observation = f"{rows:,} rows"
    if not is_local(uri):
        observation += f" in {uri}"
    is_pending = bool(context.daemon_status and context.daemon_status.pending)
    if rows == expected_rows or is_pending:
        return Finding("index", Health.GOOD, observation)
    return Finding(
        "index",
        Health.DOUBTFUL,
        f"{observation}, but {expected_rows:,} are expected",
        "`anchord verify --repair` finds and repairs the difference",
    )


def _check_damaged_folder(folder: Path) -> Finding | None:
    """Return a finding if damaged files were set aside, None otherwise."""
    count = len(list(folder.iterdir())) if folder.is_dir() else 0
    if not count:
        return None
    lost = sum(
        len(file.read_bytes().splitlines()) for file in folder.glob(f"*/{LOST_EXCHANGES_FILE}")
    )
    if lost:
        return Finding(
            "index",
            Health.DOUBTFUL,
            f"damaged data was set aside {count} times; {lost:,} exchanges could not be saved",
            f"check the health of the disk; {folder}/*/{LOST_EXCHANGES_FILE} names the exchanges",
        )
    return Finding(
        "index",
        Health.DOUBTFUL,
        f"anchord has rebuilt damaged files {count} times; the damaged copies are in {folder}",
        "check the disk for errors; delete the copies when you no longer need them",
    )


def _check_model(context: CheckContext) -> Iterator[Finding]:
    """Check the configured model; a model server is asked for one vector."""
    profile = _configured_profile(context)
    name = profile.model_files.name
    with closing(profile.embedder) as embedder:
        if profile.provider == "hash":
            yield Finding(
                "model",
                Health.DOUBTFUL,
                "none: the provider `hash` is for tests and cannot search by meaning",
                "set `provider` under [embedding]",
            )
            return
        if profile.provider == "openai":
            began = time.monotonic()
            embedder.embed(["anchord"], is_query=True)
            observation = f"{name} answered in {time.monotonic() - began:.2f} s"
        else:
            observation = f"{name}, {_export_state(context, profile)}"
        reason = embedder.fallback_reason
    health = Health.DOUBTFUL if reason else Health.GOOD
    yield Finding("model", health, observation, reason)


def _export_state(context: CheckContext, profile: IndexProfile) -> str:
    """Return whether a local model was exported already, in words."""
    export = find_export(
        context.paths.models_folder,
        profile.model_files.compute_digest(),
        context.config.embedding.precision,
    )
    if export is None:
        return "not prepared yet: the first use takes about 15 s"
    info, _ = export
    return f"on {info.runtime}"


def _configured_profile(context: CheckContext) -> IndexProfile:
    inputs = ProfileInputs(
        config=context.config, roots=context.roots, models_folder=context.paths.models_folder
    )
    return build_configured_profile(inputs)


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
    "store": _check_index,
    "archive": _check_archive,
    "model": _check_model,
    "clock": check_clock,
    "conversations": _check_conversations,
    "backup": check_backup,
}
"""The checks in their order, by the name of the finding when the check itself fails."""
