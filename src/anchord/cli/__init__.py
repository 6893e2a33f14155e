"""The command `anchord`: reads arguments, calls the daemon or the index, prints the answer.

Exit codes: 0 success (or healthy), 1 failure (or degraded), 2 usage or configuration error, 3 not
running, 75 try again later, 130 Ctrl-C. An error is one line on standard error, which says what to
do.
"""

from __future__ import annotations

import os
import resource
import sys

__all__ = ["main"]


def main() -> None:
    """Run the command of the process's arguments, and end the process with its exit code."""
    os.umask(0o077)
    _disable_core_dumps()
    if sys.argv[1:] == ["recall", "hook"]:  # At every prompt: the rest takes longer to import.
        from anchord.agents.recall.hook import run_hook

        run_hook()
        return
    from anchord.cli.command_line import run_command_line

    sys.exit(run_command_line())


def _disable_core_dumps() -> None:
    """Keep crashes from writing memory, and so the content of files, to the disk."""
    _, hard_limit = resource.getrlimit(resource.RLIMIT_CORE)
    resource.setrlimit(resource.RLIMIT_CORE, (0, hard_limit))
