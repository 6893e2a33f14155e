"""Which clients are here, and how they are connected."""

from __future__ import annotations

import os
import shutil
import sys
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace

from anchord.agents.clients import CLIENTS, Client, Places, Scope, Server
from anchord.agents.entries import find_hooks, hook_program
from anchord.agents.settings_files import read
from anchord.agents.steps import edited, edited_value, hooks_file, settings_file
from anchord.config.paths import find_paths
from anchord.core.quoting import escape_non_utf8, quote_name
from anchord.daemon.findings import Finding, Health
from anchord.daemon.service.supervisor import anchord_command
from anchord.errors import AnchordError, UsageError


@dataclass(frozen=True, kw_only=True)
class Connection:
    """How a client is connected."""

    client: Client
    scope: Scope
    file: str
    is_installed: bool
    server: Server | None = None
    """What its entry starts; None without an entry."""
    is_current: bool = False
    """Whether this is the anchord that was asked."""
    hooks: tuple[str, ...] = ()
    """The commands of anchord's hooks."""
    problem: str = ""
    """Why its settings cannot be read."""

    @property
    def state(self) -> str:
        """Say the state in words."""
        if self.problem:
            return "settings cannot be read"
        if self.server is None:
            return "not connected" if self.is_installed else "not installed"
        if not self.server.command:
            return "has an entry anchord of another program"
        return "connected" if self.is_current else "connected to another path or home"


def find_places(environment: Mapping[str, str], project: str) -> Places:
    """Return the places of this user's settings.

    Args:
        environment: Environment variables.
        project: The folder of the project.

    Raises:
        UsageError: The user has no home folder.
    """
    home = os.path.expanduser("~")
    if not os.path.isabs(home):
        raise UsageError("this user has no home folder", "set HOME")
    return Places(
        home=home, environment=environment, project=project, is_mac=sys.platform == "darwin"
    )


def this_server(environment: Mapping[str, str]) -> Server:
    """Return the server of this installation and this home.

    Raises:
        UsageError: A path is not UTF-8, and no settings can have it.
    """
    home = environment.get("ANCHORD_HOME", "")
    if home:
        home = str(find_paths(environment).config_file.parent)
    server = Server(command=(*anchord_command(), "mcp"), home=home)
    for path in (*server.command, home):
        if escape_non_utf8(path) != path:
            raise UsageError(f"{quote_name(path)} is not UTF-8", "use a folder with another name")
    return server


def is_installed(client: Client, places: Places) -> bool:
    """Return whether a client is here: its command, or a folder that it makes."""
    path = places.environment.get("PATH")
    if client.program and shutil.which(client.program, path=path):
        return True
    return any(os.path.isdir(places.path(sign)) for sign in client.signs)


def list_connections(places: Places, server: Server) -> Iterator[Connection]:
    """Yield how each client is connected: for this user, and for the project if it has an entry."""
    for client in CLIENTS:
        yield connection(client, places, "user", server)
        if client.project_file and os.path.exists(places.path(client.project_file)):
            of_project = connection(client, places, "project", server)
            if of_project.server or of_project.problem:
                yield of_project


def connection(client: Client, places: Places, scope: Scope, server: Server) -> Connection:
    """Return how a client is connected."""
    found = Connection(
        client=client, scope=scope, file="", is_installed=is_installed(client, places)
    )
    try:
        file = settings_file(client, places, scope, read)
        found = replace(found, file=file)
        entry = edited_value(file, read(file), client)
        hooks: list[str] = []
        if client.hooks_file:
            hooks = _read_hooks(hooks_file(client, places, scope))
    except AnchordError as error:
        return replace(found, problem=error.message)
    return replace(found, server=entry, is_current=entry == server, hooks=tuple(hooks))


def _read_hooks(file: str) -> list[str]:
    found: list[str] = []

    def look(text: str) -> str:
        found.extend(find_hooks(text))
        return text

    edited(file, read(file), look)
    return found


def check_connections(environment: Mapping[str, str]) -> Iterator[Finding]:
    """Yield for `anchord doctor` which clients are connected, and whose command is gone."""
    try:
        places = find_places(environment, os.path.abspath(os.sep))
    except UsageError as error:
        yield Finding("agents", Health.DOUBTFUL, error.message, error.hint)
        return
    connected = []
    server = Server(command=())
    for client in CLIENTS:
        found = connection(client, places, "user", server)
        if found.problem:
            yield Finding(
                "agents", Health.DOUBTFUL, f"{client.title}: {found.problem}", "fix the file"
            )
        entry = found.server.command if found.server else ()
        started = [*entry[:1], *map(hook_program, found.hooks)]
        missing = [program for program in started if not shutil.which(program)]
        if missing:
            yield Finding(
                "agents",
                Health.BAD,
                f"{client.title} starts {quote_name(missing[0])}, which does not exist",
                f"`anchord connect {client.name}` updates it",
            )
        elif started:
            connected.append(client.title)
    if connected:
        yield Finding("agents", Health.GOOD, f"connected: {', '.join(connected)}")
