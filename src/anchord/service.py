"""The service files of this machine: the templates of `systemd/` and `launchd/` with this installation's paths in them. Pure.

A path may hold anything: what systemd would read as syntax is quoted, and the plist is written by plistlib.
"""

from __future__ import annotations

import plistlib
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import PurePath

from anchord.errors import UsageError

UNIT = "anchord.service"
SOCKET = "anchord.socket"
SANDBOX = "50-sandbox.conf"
AGENT = "io.anchord.plist"
LABEL = "io.anchord"
_ENV = "/usr/bin/env"
_REFUSED = frozenset("'\"\\")
"""What systemd takes in an argument and not in the path of the program."""
_FAMILIES = "RestrictAddressFamilies=AF_UNIX\n"


@dataclass(frozen=True, slots=True)
class Installation:
    """What a service file must know of this installation."""

    program: tuple[str, ...]
    """The command `anchord`, with absolute paths."""
    environment: Mapping[str, str]
    """What says where its files are, besides the home: only what is set."""
    home: str
    writable: tuple[str, ...]
    """The folders that anchord writes to."""
    socket: str
    network: bool = False
    """Whether the configuration names a server."""
    sandbox: bool = False
    on_demand: bool = False
    """Whether systemd listens, and starts anchord at the first command."""


def systemd_files(of: Installation, templates: Mapping[str, str]) -> dict[str, str]:
    """Return the text of each file, by its path below the folder of user units.

    Raises:
        UsageError: a path has a line break, which no unit can hold.
    """
    files = {UNIT: _unit(of, templates[UNIT])}
    if of.sandbox:
        files[f"{UNIT}.d/{SANDBOX}"] = _sandbox(of, templates[SANDBOX])
    if of.on_demand:
        files[SOCKET] = templates[SOCKET].replace("@SOCKET@", _escaped(of.socket))
    return files


def launchd_agent(of: Installation, template: bytes) -> bytes:
    """Return the agent's file. launchd expands neither a tilde nor a variable, so every path is written out."""
    agent = plistlib.loads(template)
    agent["ProgramArguments"] = [*of.program, *agent["ProgramArguments"][1:]]
    agent["EnvironmentVariables"].update(of.environment)
    for key in ("StandardOutPath", "StandardErrorPath"):
        agent[key] = agent[key].replace("@HOME@", of.home)
    return plistlib.dumps(agent, sort_keys=False)


def _unit(of: Installation, template: str) -> str:
    program, *arguments = of.program
    if _REFUSED.intersection(program):
        program, arguments = _ENV, list(of.program)
    # systemd takes the program's own path as it is, and looks for variables in what follows.
    command = " ".join([_quoted(program), *(_quoted(argument).replace("$", "$$") for argument in arguments)])
    told = "".join(f"Environment={_quoted(f'{name}={value}')}\n" for name, value in sorted(of.environment.items()))
    text = template.replace("@ANCHORD@", command).replace(
        "Environment=HF_HUB_OFFLINE=1\n", f"Environment=HF_HUB_OFFLINE=1\n{told}"
    )
    folder = PurePath(of.socket).parent.name
    if folder.startswith("anchord-"):  # Of a home that is not the account's own.
        text = text.replace("RuntimeDirectory=anchord\n", f"RuntimeDirectory={folder}\n")
    return text.replace(_FAMILIES, f"{_FAMILIES.rstrip()} AF_INET AF_INET6\n") if of.network else text


def _sandbox(of: Installation, template: str) -> str:
    # A folder that is not there yet must not keep the service from starting: hence the minus.
    text = template.replace("@WRITABLE@", " ".join(_quoted(f"-{folder}") for folder in of.writable))
    return text.replace("PrivateNetwork=yes\n", "").replace("IPAddressDeny=any\n", "") if of.network else text


def _quoted(text: str) -> str:
    return '"' + _escaped(text).replace("\\", "\\\\").replace('"', '\\"') + '"'


def _escaped(text: str) -> str:
    """Double what would be read as a specifier."""
    if "\n" in text or "\r" in text:
        raise UsageError(f"{text!r} has a line break, which no unit of systemd can hold", "move it to a path without one")
    return text.replace("%", "%%")
