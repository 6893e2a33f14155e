"""The service files of this machine: templates for systemd or launchd, with local paths filled in.

Pure: values in, values out. A path may contain any character: what systemd would read as syntax is
quoted, and plistlib writes the plist.
"""

from __future__ import annotations

import plistlib
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import PurePath

from anchord.errors import UsageError

SERVICE_UNIT = "anchord.service"
SOCKET_UNIT = "anchord.socket"
SANDBOX_DROP_IN = "50-sandbox.conf"
AGENT_PLIST = "io.anchord.plist"
AGENT_LABEL = "io.anchord"
_ENV = "/usr/bin/env"
_NOT_IN_PROGRAM_PATH = frozenset("'\"\\")
"""Characters that systemd accepts in an argument, but not in the path of the program."""
_OFFLINE_LINE = "Environment=HF_HUB_OFFLINE=1\n"
_RUNTIME_FOLDER_LINE = "RuntimeDirectory=anchord\n"
_UNIX_SOCKETS_ONLY = "RestrictAddressFamilies=AF_UNIX\n"
_WITH_NETWORK = "RestrictAddressFamilies=AF_UNIX AF_INET AF_INET6\n"


@dataclass(frozen=True, slots=True, kw_only=True)
class ServiceSettings:
    """What the service files depend on."""

    command: tuple[str, ...]
    """The command `anchord`, with absolute paths."""
    environment: Mapping[str, str]
    """Variables that the service needs to find the same files as this process."""
    home: str
    """The user's home folder."""
    writable_folders: tuple[str, ...]
    """The folders that anchord writes to, for the sandbox."""
    socket_path: str
    needs_network: bool = False
    """Whether the configuration names a model server or a remote table."""
    sandbox: bool = False
    """systemd: whether to add the drop-in that hides most of the file system."""
    socket_activated: bool = False
    """systemd: whether systemd opens the socket and starts anchord at the first connection."""


def render_systemd_files(settings: ServiceSettings, templates: Mapping[str, str]) -> dict[str, str]:
    """Return the text of each file by its path relative to the folder of user units.

    Args:
        settings: What to fill in.
        templates: The templates' texts by file name, all three of them.

    Raises:
        UsageError: A path has a line break, which no unit can hold.
    """
    files = {SERVICE_UNIT: _render_service(settings, templates[SERVICE_UNIT])}
    if settings.sandbox:
        drop_in = _render_sandbox(settings, templates[SANDBOX_DROP_IN])
        files[f"{SERVICE_UNIT}.d/{SANDBOX_DROP_IN}"] = drop_in
    if settings.socket_activated:
        socket_path = _escape(settings.socket_path)
        files[SOCKET_UNIT] = templates[SOCKET_UNIT].replace("@SOCKET@", socket_path)
    return files


def render_launchd_agent(settings: ServiceSettings, template: bytes) -> bytes:
    """Return the plist of the agent. launchd expands no `~` and no variables: paths are absolute.

    Args:
        settings: What to fill in; launchd has no sandbox and no socket activation here.
        template: The plist with placeholders.
    """
    agent = plistlib.loads(template)
    agent["ProgramArguments"] = [*settings.command, *agent["ProgramArguments"][1:]]
    agent["EnvironmentVariables"].update(settings.environment)
    for key in ("StandardOutPath", "StandardErrorPath"):
        agent[key] = agent[key].replace("@HOME@", settings.home)
    return plistlib.dumps(agent, sort_keys=False)


def _render_service(settings: ServiceSettings, template: str) -> str:
    text = template.replace("@ANCHORD@", _render_command(settings.command))
    environment = sorted(settings.environment.items())
    assignments = [f"{name}={value}" for name, value in environment]
    lines = [f"Environment={_quote(assignment)}\n" for assignment in assignments]
    text = text.replace(_OFFLINE_LINE, "".join([_OFFLINE_LINE, *lines]))
    runtime_folder = PurePath(settings.socket_path).parent.name
    if runtime_folder.startswith("anchord-"):  # With ANCHORD_HOME the socket's folder has a suffix.
        text = text.replace(_RUNTIME_FOLDER_LINE, f"RuntimeDirectory={runtime_folder}\n")
    if settings.needs_network:
        text = text.replace(_UNIX_SOCKETS_ONLY, _WITH_NETWORK)
    return text


def _render_command(command: tuple[str, ...]) -> str:
    """Return a command line for ExecStart=."""
    program, *arguments = command
    if _NOT_IN_PROGRAM_PATH.intersection(program):
        program, arguments = _ENV, list(command)
    # systemd takes the program's path literally, but expands variables in the arguments.
    quoted_arguments = [_quote(argument).replace("$", "$$") for argument in arguments]
    return " ".join([_quote(program), *quoted_arguments])


def _render_sandbox(settings: ServiceSettings, template: str) -> str:
    # The minus sign: a folder that does not exist must not keep the service from starting.
    folders = [_quote(f"-{folder}") for folder in settings.writable_folders]
    text = template.replace("@WRITABLE@", " ".join(folders))
    if settings.needs_network:
        text = text.replace("PrivateNetwork=yes\n", "").replace("IPAddressDeny=any\n", "")
    return text


def _quote(text: str) -> str:
    """Quote a word for a unit file, specifiers escaped."""
    escaped = _escape(text).replace("\\", "\\\\").replace('"', '\\"')
    return f'"{escaped}"'


def _escape(text: str) -> str:
    """Escape systemd's specifiers, which begin with a percent sign."""
    if "\n" in text or "\r" in text:
        raise UsageError(
            f"{text!r} has a line break, and systemd units cannot contain one",
            "move it to a path without a line break",
        )
    return text.replace("%", "%%")
