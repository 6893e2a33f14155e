"""The command `anchord`: arguments -> questions -> rendering, and no logic. The only user of typer.

Exit codes: 0 done (or healthy), 1 failed (or degraded), 2 a wrong call or configuration, 3 not running, 130 Ctrl-C.
What goes wrong is one line on standard error that says what to do.
"""

from __future__ import annotations

import os
import sys

from typer.exceptions import Abort, TyperException

from anchord.cli import chunks, index, lifecycle, questions, roots
from anchord.cli.frame import app
from anchord.errors import AnchordError

__all__ = ["app", "main"]

COMMANDS = (lifecycle, roots, index, questions, chunks)
"""The modules that hold the commands; importing them registers these."""


def main() -> None:
    """Run the command and end the process with its exit code."""
    os.umask(0o077)
    try:
        code = app(standalone_mode=False)
    except AnchordError as error:
        hint = f"; {error.hint}" if error.hint else ""
        _complain(f"{error.message}{hint}")
        code = error.exit_code
    except TyperException as error:
        _complain(f"{error.format_message().rstrip('.')}; `anchord --help` lists the commands and options")
        code = 2
    except (KeyboardInterrupt, Abort):
        _complain("stopped; what was committed stays, the next run goes on from there")
        code = 130
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        code = 141
    sys.exit(code if isinstance(code, int) else 0)


def _complain(text: str) -> None:
    print(f"anchord: {' '.join(text.split())}", file=sys.stderr)  # noqa: T201 - the one line that the interface promises
