"""The folder of the daemon's socket.

The hook of recall looks it up at every prompt, so this module imports only what it needs.
"""

from __future__ import annotations

import os
import pwd
import zlib
from collections.abc import Mapping

SOCKET_NAME = "anchord.sock"


def run_folder(environment: Mapping[str, str]) -> str:
    """Return the folder of the socket; "" on macOS without ANCHORD_HOME: below the data folder.

    It is in ANCHORD_HOME, or else in the folder of the login session, or else in the folder for
    temporary files: there is no session in a cron job or a container. Both kinds of folder exist
    once per user, whatever HOME says. So the name depends on HOME too: a command with another HOME
    must not reach this home's daemon.

    Args:
        environment: Environment variables; ANCHORD_HOME and XDG_RUNTIME_DIR are used.
    """
    home = environment.get("ANCHORD_HOME")
    if home:
        return os.path.join(os.path.abspath(os.path.expanduser(home)), "run")
    session_folder = environment.get("XDG_RUNTIME_DIR")
    if session_folder:
        return f"{session_folder}/anchord{_home_suffix()}"
    if os.uname().sysname == "Darwin":
        return ""
    import tempfile  # noqa: PLC0415 - only without a session

    return f"{tempfile.gettempdir()}/anchord-{os.geteuid()}{_home_suffix()}"


def _home_suffix() -> str:
    """Return "" for the account's own home, and a suffix that depends on the path for any other."""
    home = os.path.realpath(os.path.expanduser("~"))
    try:
        account_home = os.path.realpath(pwd.getpwuid(os.geteuid()).pw_dir)
    except KeyError:
        account_home = home  # A container's user need not have an account.
    if home == account_home:
        return ""
    return f"-{zlib.crc32(os.fsencode(home)):08x}"
