"""`run`, `start`, `stop`, `restart`: control the daemon."""

from __future__ import annotations

import gc
import os
import shutil
import signal
import subprocess
import sys
import time
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Annotated

from anchord.cli import values
from anchord.cli.app import app, ensure_paths, load_user_config, print_line, warn
from anchord.cli.output.log import configure_stderr_logging
from anchord.cli.parameters import Argument, Option
from anchord.config.paths import Paths
from anchord.config.roots import resolve_root_folder
from anchord.config.schema import make_root_config
from anchord.core.garbage import garbage_collection_paused
from anchord.core.quoting import escape_non_utf8, quote_name
from anchord.daemon.access import try_connect, wait_for_daemon_exit
from anchord.errors import AlreadyRunningError, AnchordError, NotRunningError
from anchord.ipc.client import Client
from anchord.ipc.patience import NotAnsweringError
from anchord.store.writer_lock import lock_holder_pid

_LOW_SPACE_BYTES = 1 << 20
_START_TIMEOUT_S = 90.0
_ANSWER_TIMEOUT_S = 10.0
_POLL_S = 0.05
_STOP_ATTEMPTS = 3
_MAX_LOG_BYTES = 10_000_000
_ERROR_PREFIX = "anchord: "
_NO_FOLDERS = "no folders yet: `anchord add FOLDER` adds one"
_FIRST_STEPS = "you can search already; `anchord status` shows how far indexing is"

FoldersArgument = Annotated[
    list[str] | None,
    Argument(metavar="[PATH]...", help="Folders besides the configured roots."),
]
KindOption = Annotated[
    str,
    Option(
        "--kind",
        help="Kind of these folders: project or conversations.",
        autocompletion=values.complete_root_kind,
    ),
]


@app.command()
def run(paths: FoldersArgument = None, kind: KindOption = "project") -> None:
    """Run the daemon in the foreground; it indexes the configured roots and PATHs."""
    home = ensure_paths()
    folders = _resolve_folders(home, paths, kind)
    config = load_user_config(home)
    configure_stderr_logging()
    with garbage_collection_paused():
        from anchord.agents.recall.service import recall_handlers
        from anchord.daemon.main import run_daemon

        # No collection looks at what stays as long as the process.
        gc.freeze()
    run_daemon(home, config, folders, kind, partial(recall_handlers, home.data_folder))


@app.command()
def start(paths: FoldersArgument = None, kind: KindOption = "project") -> None:
    """Start the daemon in the background, and wait until it answers.

    A daemon that runs already gets the folders that it does not index yet.
    """
    home = ensure_paths()
    folders = _resolve_folders(home, paths, kind)
    load_user_config(home)
    running_pid = lock_holder_pid(home.lock_file)
    if running_pid is not None:
        _add_to_running(home, running_pid, folders, kind)
        return
    log_file = home.log_file
    if log_file.exists() and log_file.stat().st_size > _MAX_LOG_BYTES:
        log_file.replace(log_file.with_suffix(".log.1"))
    log_start = log_file.stat().st_size if log_file.exists() else 0
    process = _spawn_daemon(log_file, folders, kind)
    deadline = time.monotonic() + _START_TIMEOUT_S
    while time.monotonic() < deadline and process.poll() is None:
        client = try_connect(home)
        if client is not None:
            with client:
                has_roots = bool(client.roots())
            running_pid = lock_holder_pid(home.lock_file)
            if running_pid not in {process.pid, None}:  # Another `start` was quicker.
                _add_to_running(home, running_pid, folders, kind)
            else:
                print_line(f"anchord is running (process {process.pid}); its log is {log_file}")
                print_line(_FIRST_STEPS if has_roots else _NO_FOLDERS)
            return
        time.sleep(_POLL_S)
    raise _start_error(log_file, log_start, process)


@app.command()
def stop() -> None:
    """Stop the daemon, and wait until it has ended."""
    _stop(ensure_paths())


@app.command()
def restart() -> None:
    """Stop the daemon, if it runs, and start it again."""
    _stop(ensure_paths())
    start()


def _resolve_folders(home: Paths, folder_arguments: list[str] | None, kind: str) -> list[str]:
    """Return the folders as absolute paths.

    Refuses a folder that cannot be a root here, before the slow imports of the daemon.
    """
    folders = [resolve_root_folder(path, home.own_folders) for path in folder_arguments or ()]
    for folder in folders:
        make_root_config(folder, kind, "")
    return folders


def _add_to_running(home: Paths, pid: int, folders: list[str], kind: str) -> None:
    """Let a running daemon index folders that lie in none of its roots.

    Args:
        home: This anchord.
        pid: The process that holds the writer lock.
        folders: Absolute paths.
        kind: The kind of these folders.

    Raises:
        AlreadyRunningError: The process is another command, or does not answer within ten seconds.
        UsageError: A folder cannot be a root.
    """
    from anchord.daemon.host.processes import is_daemon

    if not is_daemon(pid):
        raise AlreadyRunningError(
            f"another command of anchord (process {pid}) has the index open",
            "try again when it has ended",
        )
    client = _wait_for_client(home, _ANSWER_TIMEOUT_S)
    if client is None:
        raise AlreadyRunningError(
            f"anchord runs (process {pid}), but does not answer at {home.socket_file}",
            "it is still starting, or its socket was lost: `anchord restart` starts it again",
        )
    with client:
        indexed = [root.path for root in client.roots()]
        for folder in folders:
            path = Path(escape_non_utf8(folder))
            if not any(path.is_relative_to(root) for root in indexed):
                added = client.roots_add(folder, kind=kind)
                name = quote_name(added.name)
                print_line(f"added {name} ({quote_name(added.path)}); it is being indexed now")
    print_line(f"anchord is running (process {pid})")


def _wait_for_client(home: Paths, timeout_s: float) -> Client | None:
    """Connect to the daemon; return None if it does not answer in time."""
    deadline = time.monotonic() + timeout_s
    while (client := try_connect(home)) is None and time.monotonic() < deadline:
        time.sleep(_POLL_S)
    return client


def _spawn_daemon(log_file: Path, folders: list[str], kind: str) -> subprocess.Popen[bytes]:
    """Start `anchord run` in a session of its own; its output goes to the log file."""
    with log_file.open("ab") as log:
        return subprocess.Popen(
            [sys.executable, "-P", "-m", "anchord", "run", "--kind", kind, *folders],
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=log,
            start_new_session=True,
        )


def _stop(home: Paths, attempts: int = _STOP_ATTEMPTS) -> None:
    client = try_connect(home)
    if client is None:
        _stop_unreachable(home)
        return
    try:
        with client:
            pid = client.shutdown().pid
    except NotAnsweringError as error:
        pid = _kill(home, error)
    except NotRunningError:
        if attempts == 1:
            raise
        # It ended, or restarted itself: then a new process answers on the same socket.
        _stop(home, attempts - 1)
        return
    wait_for_daemon_exit(home, pid)
    print_line("anchord has stopped")


def _stop_unreachable(home: Paths) -> None:
    """End the daemon whose socket was lost; say that none runs if that is so."""
    from anchord.daemon.host.processes import is_daemon

    pid = lock_holder_pid(home.lock_file)
    if not pid or not is_daemon(pid):
        print_line("anchord is not running")
        return
    warn(f"the socket of the daemon (process {pid}) was lost: ending it by a signal")
    with suppress(ProcessLookupError):
        os.kill(pid, signal.SIGTERM)
    wait_for_daemon_exit(home, pid)
    print_line("anchord has stopped")


def _kill(home: Paths, error: NotAnsweringError) -> int:
    """Kill the daemon, which does not answer, and return its process id. No data is lost.

    Raises:
        NotAnsweringError: Nobody knows which process it is, or the lock file names another one.
    """
    from anchord.daemon.host.processes import is_daemon, listens_at

    pid = lock_holder_pid(home.lock_file)
    # The file can be of another machine, or of a time before this process began.
    if not pid or not (is_daemon(pid) or listens_at(pid, home.socket_file)):
        raise error
    warn(f"{error.message}: ending it by force; no data is lost")
    with suppress(ProcessLookupError):
        os.kill(pid, signal.SIGKILL)
    return pid


def _start_error(log_file: Path, log_start: int, process: subprocess.Popen[bytes]) -> AnchordError:
    """Return the daemon's own error, with its exit code; kill the daemon if it still runs.

    Args:
        log_file: Where the daemon's output went.
        log_start: The size of the log file in bytes before the daemon was started.
        process: The daemon.
    """
    exit_code = process.poll()
    if exit_code is None:
        process.kill()
        return AnchordError(
            f"the daemon did not answer within {_START_TIMEOUT_S:.0f} s", f"see {log_file}"
        )
    with log_file.open("rb") as stream:
        stream.seek(log_start)
        lines = stream.read().decode("utf-8", "replace").splitlines()
    errors = [line for line in lines if line.startswith(_ERROR_PREFIX)]
    if errors:
        error = AnchordError(errors[-1].removeprefix(_ERROR_PREFIX), "")
    elif shutil.disk_usage(log_file.parent).free < _LOW_SPACE_BYTES:
        # Nothing could be written to the log either.
        error = AnchordError(f"the disk of {log_file.parent} is full", "free some space")
    else:
        error = AnchordError(f"the daemon ended with exit code {exit_code}", f"see {log_file}")
    error.exit_code = exit_code if exit_code > 0 else 1
    return error
