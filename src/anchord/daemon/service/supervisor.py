"""The supervisor of this machine: its folders, and its commands.

On Linux that is systemd's user manager (`systemctl --user`), on macOS launchd's agents
(`launchctl`). Nothing here needs root.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

import anchord
from anchord.daemon.service.unit_files import (
    AGENT_LABEL,
    AGENT_PLIST,
    SANDBOX_DROP_IN,
    SERVICE_UNIT,
    SOCKET_UNIT,
)
from anchord.errors import AnchordError

_COMMAND_TIMEOUT_S = 90.0
_TEMPLATES = {"systemd": (SERVICE_UNIT, SOCKET_UNIT, SANDBOX_DROP_IN), "launchd": (AGENT_PLIST,)}
_FILE_MODE = 0o644
"""Whatever the umask: launchd refuses agents that others can write, systemd must read units."""
_NO_SUCH_COMMAND = 127
_TIMED_OUT = 124


@dataclass(frozen=True, slots=True)
class CommandResult:
    """How a command ended."""

    exit_code: int
    """127 when there is no such command, 124 when it ran into the timeout of 90 s."""
    output: str
    """What it printed, both streams together."""


def read_templates(supervisor: str) -> dict[str, bytes]:
    """Return the service files' templates by their name.

    Args:
        supervisor: "systemd" or "launchd".

    Raises:
        AnchordError: They are missing in this installation.
    """
    # In a wheel they lie beside the modules, in a source tree at the top.
    package = Path(anchord.__file__).parent
    names = _TEMPLATES[supervisor]
    for folder in (package / supervisor, package.parents[1] / supervisor):
        if (folder / names[0]).is_file():
            return {name: (folder / name).read_bytes() for name in names}
    raise AnchordError(
        f"the {supervisor} templates are missing in this installation", "install anchord again"
    )


def anchord_command() -> tuple[str, ...]:
    """Return the command that runs this installation, by absolute paths that an update keeps."""
    script = Path(sys.executable).with_name("anchord")
    if os.access(script, os.X_OK):
        return (str(script),)
    return (sys.executable, "-m", "anchord")


def systemd_unit_folder(environment: Mapping[str, str]) -> Path:
    """Return the folder of this user's systemd units; it may not exist yet.

    Args:
        environment: `XDG_CONFIG_HOME` of it is used; without it, `~/.config`.
    """
    config_home = environment.get("XDG_CONFIG_HOME") or str(Path.home() / ".config")
    return Path(config_home) / "systemd" / "user"


def launchd_agent_folder() -> Path:
    """Return the folder of this user's launchd agents."""
    return Path.home() / "Library" / "LaunchAgents"


def write_service_file(path: Path, content: bytes) -> None:
    """Write a service file atomically, replacing an older one; missing folders are created."""
    path.parent.mkdir(parents=True, exist_ok=True)
    temporary = path.with_name(f".{path.name}.{os.getpid()}")
    temporary.write_bytes(content)
    temporary.chmod(_FILE_MODE)
    temporary.replace(path)


def delete_service_file(path: Path) -> bool:
    """Delete a service file, and its folder of drop-ins if that is empty; return if it existed."""
    existed = path.exists()
    path.unlink(missing_ok=True)
    if path.parent.suffix == ".d":
        with suppress(OSError):  # Not empty: it holds drop-ins of the user.
            path.parent.rmdir()
    return existed


def systemctl(*arguments: str) -> CommandResult:
    """Run `systemctl --user` and wait for it, 90 s at most. A failure does not raise."""
    return _run(["systemctl", "--user", "--no-pager", *arguments])


def launchctl(*arguments: str) -> CommandResult:
    """Run `launchctl` and wait for it, 90 s at most. A failure does not raise."""
    return _run(["launchctl", *arguments])


def launchd_domain_target() -> str:
    """Return launchd's name for this user's graphical session."""
    return f"gui/{os.getuid()}"


def launchd_service_target() -> str:
    """Return launchd's name for the agent in this user's session."""
    return f"{launchd_domain_target()}/{AGENT_LABEL}"


def _run(command: Sequence[str]) -> CommandResult:
    if shutil.which(command[0]) is None:
        return CommandResult(_NO_SUCH_COMMAND, f"{command[0]} is not on this machine")
    try:
        completed = subprocess.run(
            command,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            errors="replace",
            check=False,
            timeout=_COMMAND_TIMEOUT_S,
        )
    except subprocess.TimeoutExpired:
        shown = " ".join(command)
        return CommandResult(_TIMED_OUT, f"`{shown}` did not end within {_COMMAND_TIMEOUT_S:.0f} s")
    return CommandResult(completed.returncode, completed.stdout.strip())
