"""The supervisor of this machine: where its files lie, and the commands that make it read, start and stop them.

systemd's user manager on Linux (`systemctl --user`), launchd's agents on macOS (`launchctl`). Nothing is asked of root.
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
from anchord.errors import AnchordError
from anchord.service import AGENT, LABEL, SANDBOX, SOCKET, UNIT

_COMMAND_S = 90.0
_TEMPLATES = {"systemd": (UNIT, SOCKET, SANDBOX), "launchd": (AGENT,)}
_MODE = 0o644
"""Whatever the umask: launchd refuses an agent that others can write, systemd one that it cannot read."""


@dataclass(frozen=True, slots=True)
class Said:
    """What a command printed, and its exit code; 127 when there is no such command."""

    code: int
    text: str


def templates(kind: str) -> dict[str, bytes]:
    """Return the files of `systemd/` or `launchd/`: beside the modules in a wheel, at the top of a source tree else."""
    package = Path(anchord.__file__).parent
    folders = (package / kind, package.parents[1] / kind)
    folder = next((each for each in folders if (each / _TEMPLATES[kind][0]).is_file()), None)
    if folder is None:
        raise AnchordError(f"the templates of {kind} are not in this installation", "install anchord again")
    return {name: (folder / name).read_bytes() for name in _TEMPLATES[kind]}


def program() -> tuple[str, ...]:
    """Return the command that runs this installation: by the path of its own environment, which an update keeps."""
    script = Path(sys.executable).with_name("anchord")
    return (str(script),) if os.access(script, os.X_OK) else (sys.executable, "-m", "anchord")


def unit_folder(environment: Mapping[str, str]) -> Path:
    """Return where units of this user lie."""
    base = environment.get("XDG_CONFIG_HOME") or str(Path.home() / ".config")
    return Path(base) / "systemd" / "user"


def agent_folder() -> Path:
    """Return where agents of this user lie."""
    return Path.home() / "Library" / "LaunchAgents"


def write(file: Path, text: bytes) -> None:
    """Write a service file whole or not at all."""
    file.parent.mkdir(parents=True, exist_ok=True)
    beside = file.with_name(f".{file.name}.{os.getpid()}")
    beside.write_bytes(text)
    beside.chmod(_MODE)
    beside.replace(file)


def remove(file: Path) -> bool:
    """Delete a service file, and the folder of drop-ins it leaves empty; return whether it was there."""
    there = file.exists()
    file.unlink(missing_ok=True)
    if file.parent.suffix == ".d":
        with suppress(OSError):
            file.parent.rmdir()
    return there


def systemctl(*arguments: str) -> Said:
    """Run `systemctl --user`."""
    return _run(["systemctl", "--user", "--no-pager", *arguments])


def launchctl(*arguments: str) -> Said:
    """Run `launchctl`."""
    return _run(["launchctl", *arguments])


def agent_target() -> str:
    """Return launchd's name for this user's session."""
    return f"gui/{os.getuid()}"


def agent_name() -> str:
    """Return launchd's name for the agent."""
    return f"{agent_target()}/{LABEL}"


def _run(command: Sequence[str]) -> Said:
    if shutil.which(command[0]) is None:
        return Said(127, f"{command[0]} is not on this machine")
    try:
        ran = subprocess.run(
            command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False, timeout=_COMMAND_S,
            errors="replace", stdin=subprocess.DEVNULL,
        )  # fmt: skip
    except subprocess.TimeoutExpired:
        return Said(124, f"{' '.join(command)} did not end within {_COMMAND_S:.0f} s")
    return Said(ran.returncode, ran.stdout.strip())
