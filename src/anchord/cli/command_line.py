"""Runs the command of a command line, prints its error if it fails, and returns the exit code."""

from __future__ import annotations

import errno
import io
import os
import sys
from contextlib import suppress

from anchord._version import __version__
from anchord.cli.light_imports import without
from anchord.cli.output.console import print_text
from anchord.cli.registry import Exit
from anchord.core.quoting import sanitize_line
from anchord.errors import AnchordError, StoreUnavailableError

_EXIT_FAILURE = 1
_EXIT_INTERRUPTED = 130
_EXIT_BROKEN_PIPE = 141
_DISK_FULL = (errno.ENOSPC, errno.EDQUOT)
_NO_MEMORY = ("can't start new thread", "failed to map segment from shared object")
"""Messages of Python and of the dynamic linker."""
_OUT_OF_MEMORY = (
    "there is no memory, or the system allows no more threads; close other programs or raise the "
    "limits (`ulimit -v`, `ulimit -u`); then try again"
)


def run_command_line() -> int:
    """Run the command of the process's arguments; return its exit code.

    An error is printed as one line on standard error, which says what to do.
    """
    # Arrow's own allocator keeps 30 MB of freed memory.
    os.environ.setdefault("ARROW_DEFAULT_MEMORY_POOL", "system")
    _open_missing_streams()
    _escape_unencodable_output()
    try:
        try:
            code = _run_words(sys.argv[1:])
        except Exit as ending:
            code = ending.code
        sys.stdout.flush()
    except AnchordError as error:
        _print_error(f"{error.message}; {error.hint}" if error.hint else error.message)
        return error.exit_code
    except (KeyboardInterrupt, EOFError):
        code = _EXIT_INTERRUPTED
    except BrokenPipeError:
        # The reader of the output ended first, as in `anchord ... | head`: that is no error.
        _discard_output()
        return _EXIT_BROKEN_PIPE
    except OSError as error:
        _print_error(_describe_os_error(error))
        _discard_output()
        return StoreUnavailableError.exit_code if error.errno in _DISK_FULL else _EXIT_FAILURE
    except (MemoryError, RuntimeError, ImportError) as error:
        if not isinstance(error, MemoryError) and not str(error).endswith(_NO_MEMORY):
            raise
        _print_error(_OUT_OF_MEMORY)
        _discard_output()
        return StoreUnavailableError.exit_code
    if code == _EXIT_INTERRUPTED:
        _print_error("interrupted; finished work is saved, run the command again to continue")
    return code


def _run_words(words: list[str]) -> int:
    """Run the command that a command line means, and return the exit code."""
    if os.environ.get("_ANCHORD_COMPLETE"):
        _import_msgspec()
        from anchord.cli.completion import complete

        code = complete()
        return _run_with_typer(words) if code is None else code
    if words == ["--version"]:
        print_text(f"anchord {__version__}")
        return 0
    _import_msgspec()
    from anchord.cli.app import app
    from anchord.cli.loading import load_commands

    load_commands(words)
    try:
        command, values = app.understand(words)
    except ValueError:
        return _run_with_typer(words)
    command(**values)
    return 0


def _run_with_typer(words: list[str]) -> int:
    """Have typer print help or a completion, or say what is wrong; return the exit code."""
    from anchord.cli.completion import select_shell
    from anchord.cli.loading import load_commands
    from anchord.cli.typer_app import run_with_typer

    select_shell(words)
    return run_with_typer(load_commands(words), words)


def _import_msgspec() -> None:
    """Import msgspec without typing_extensions, whose imports take a sixth of a command's CPU.

    msgspec takes one function from it if it can, and else the one in `typing`, which does the same
    for the types of this program.
    """
    with without("typing_extensions"):
        import msgspec  # noqa: F401


def _print_error(text: str) -> None:
    with suppress(OSError):
        print_text(sanitize_line(f"anchord: {' '.join(text.split())}"), is_stderr=True)


def _describe_os_error(error: OSError) -> str:
    if isinstance(error, FileNotFoundError) and error.filename is None:
        return "the current folder was deleted; change to another folder"
    cause = os.strerror(error.errno).lower() if error.errno else str(error)
    if not error.filename and error.errno in _DISK_FULL:
        return f"the output cannot be written: {cause}; free some space, then try again"
    if not error.filename:
        return f"the output cannot be written: {cause}; check where it is redirected to"
    from anchord.core.os_errors import from_os_error

    known = from_os_error(error)
    if known is not None:
        return f"{known.message}; {known.hint}"
    return f"{os.fsdecode(error.filename)}: {cause}; check the path and its permissions"


def _open_missing_streams() -> None:
    """Open the null device for standard streams that the caller closed (`>&-`)."""
    for name, mode in (("stdin", "r"), ("stdout", "w"), ("stderr", "w")):
        if getattr(sys, name) is None:
            setattr(sys, name, open(os.devnull, mode, encoding="utf-8"))  # noqa: SIM115 - open until the process ends


def _escape_unencodable_output() -> None:
    r"""Print characters that the terminal's encoding lacks as \xNN, and do not fail on them."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")


def _discard_output() -> None:
    """Redirect standard output to the null device.

    Else Python writes the buffered rest when it exits, fails again, and prints a traceback.
    """
    with suppress(OSError, ValueError):
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
