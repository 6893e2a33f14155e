"""The command `anchord`: arguments -> questions -> rendering, and no logic. The only user of typer.

Exit codes: 0 done (or healthy), 1 failed (or degraded), 2 a wrong call or configuration, 3 not running, 130 Ctrl-C.
What goes wrong is one line on standard error that says what to do.
"""

from __future__ import annotations

import io
import os
import resource
import sys
from contextlib import suppress

from typer.exceptions import Abort, TyperException

from anchord.cli import (
    agents,
    chunks,
    evaluate,
    export,
    health,
    index,
    lifecycle,
    manual,
    mending,
    questions,
    roots,
    service,
    talks,
)
from anchord.cli.frame import app, warn
from anchord.errors import AnchordError

__all__ = ["app", "main"]

COMMANDS = (lifecycle, roots, index, mending, questions, chunks, talks, agents, evaluate, export, service, health, manual)
"""The modules that hold the commands; importing them registers these."""

_INTERRUPTED = 130
_BROKEN_PIPE = 141


def main() -> None:
    """Run the command and end the process with its exit code."""
    os.environ.setdefault("ARROW_DEFAULT_MEMORY_POOL", "system")  # The library's own keeps thirty megabytes of what was freed.
    os.umask(0o077)
    resource.setrlimit(resource.RLIMIT_CORE, (0, resource.getrlimit(resource.RLIMIT_CORE)[1]))  # A dump would hold content.
    _open_missing_streams()
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")  # A terminal that is not UTF-8 shows what it can.
    try:
        code = app(standalone_mode=False)
        sys.stdout.flush()
    except AnchordError as error:
        code = error.exit_code
        _complain(f"{error.message}; {error.hint}" if error.hint else error.message)
    except TyperException as error:
        code = 2
        _complain(f"{error.format_message().rstrip('.')}; `anchord --help` lists the commands and options")
    except (KeyboardInterrupt, Abort):
        code = _INTERRUPTED
    except BrokenPipeError:  # Whoever read went away (`| head`): no news for anybody.
        code = _BROKEN_PIPE
        _drop_output()
    except OSError as error:
        code = 1
        _complain(_told(error))
        _drop_output()
    if code == _INTERRUPTED:
        _complain("stopped; what was committed stays, the next run goes on from there")
    sys.exit(code if isinstance(code, int) else 0)


def _complain(text: str) -> None:
    with suppress(OSError):
        warn(f"anchord: {' '.join(text.split())}")


def _told(error: OSError) -> str:
    if isinstance(error, FileNotFoundError) and error.filename is None:
        return "the folder you stand in is gone; go to one that is there"
    what = os.strerror(error.errno).lower() if error.errno else str(error)
    if not error.filename:
        return f"the output cannot be written: {what}; see where it goes"
    return f"{os.fsdecode(error.filename)}: {what}; see what stands there, and its permissions"


def _open_missing_streams() -> None:
    """Give a process that was started without standard streams (`>&-`) ones that lead nowhere."""
    for name, mode in (("stdin", "r"), ("stdout", "w"), ("stderr", "w")):
        if getattr(sys, name) is None:
            setattr(sys, name, open(os.devnull, mode, encoding="utf-8"))  # noqa: SIM115 - open until the process ends


def _drop_output() -> None:
    """Let what could not be written go: Python would try again at its end, and complain in lines of its own."""
    with suppress(OSError, ValueError):
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
