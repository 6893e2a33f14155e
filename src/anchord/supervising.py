"""anchord as a service of this user: put it in place, take it away, say how it stands.

What is put in place is what `files` gives, and nothing else is ever deleted. A daemon that was started by hand gives way.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from anchord.adapters import supervisor
from anchord.asking import await_end, connect
from anchord.config import Config
from anchord.errors import AnchordError
from anchord.places import Places
from anchord.service import AGENT, SANDBOX, SOCKET, UNIT, Installation, launchd_agent, systemd_files

_KEPT = ("ANCHORD_HOME", "XDG_CONFIG_HOME", "XDG_DATA_HOME", "XDG_STATE_HOME", "HF_HOME", "HF_HUB_CACHE")
"""Variables that say where files are. A service has none of those of a shell."""
_LINGERING = Path("/var/lib/systemd/linger")
_NO_NAMESPACE = "226"
_NO_SESSION = "run it again in a session of your own (not under sudo); `anchord start` works without a service"
KIND = "launchd" if sys.platform == "darwin" else "systemd"


@dataclass(frozen=True, slots=True)
class Standing:
    """How the service stands."""

    kind: str
    files: tuple[str, ...]
    """Those that are in place."""
    current: bool
    """Whether they are what this version and configuration would write."""
    active: bool
    enabled: bool
    detail: str
    """What the supervisor said."""

    @property
    def installed(self) -> bool:
        """Whether there is any."""
        return bool(self.files)


def installation(of: Places, config: Config, environment: Mapping[str, str], *, sandbox: bool, on_demand: bool) -> Installation:
    """Return what the service files of this installation say."""
    network = config.embedding.provider == "openai" or "://" in config.store.uri
    kept = {name: environment[name] for name in _KEPT if environment.get(name)}
    folders = tuple(dict.fromkeys(map(str, (of.config.parent, of.data, of.log))))
    if "ANCHORD_HOME" in kept:
        folders = (kept["ANCHORD_HOME"],)
    return Installation(
        supervisor.program(), kept, str(Path.home()), folders, str(of.socket), network, sandbox=sandbox, on_demand=on_demand
    )  # fmt: skip


def files(of: Installation, environment: Mapping[str, str]) -> dict[Path, bytes]:
    """Return the service files with where they belong."""
    texts = supervisor.templates(KIND)
    if KIND == "launchd":
        return {supervisor.agent_folder() / AGENT: launchd_agent(of, texts[AGENT])}
    folder = supervisor.unit_folder(environment)
    made = systemd_files(of, {name: text.decode() for name, text in texts.items()})
    return {folder / name: text.encode() for name, text in made.items()}


def standing(of: Places, config: Config, environment: Mapping[str, str]) -> Standing:
    """Look how the service stands."""
    there = _there(environment)
    names = {file.name for file in there}
    wanted = files(
        installation(of, config, environment, sandbox=SANDBOX in names, on_demand=SOCKET in names), environment
    )  # fmt: skip
    current = all(_bytes(file) == text for file, text in wanted.items())
    if KIND == "launchd":
        told = supervisor.launchctl("print", supervisor.agent_name())
        return Standing(
            KIND, tuple(map(str, there)), current, "state = running" in told.text, told.code == 0, _first(told.text)
        )
    unit = SOCKET if SOCKET in names else UNIT
    active = supervisor.systemctl("is-active", UNIT)
    enabled = supervisor.systemctl("is-enabled", unit)
    return Standing(KIND, tuple(map(str, there)), current, active.code == 0, enabled.code == 0, _first(active.text))


def install(of: Places, made: Mapping[Path, bytes], environment: Mapping[str, str]) -> None:
    """Write the files, let the supervisor read them, and start the service; one that is there already begins anew.

    Raises:
        AnchordError: the supervisor refused; the files are in place.
    """
    for file in _there(environment):
        if file not in made:
            if file.name == SOCKET:
                supervisor.systemctl("disable", "--now", SOCKET)
            supervisor.remove(file)
    for file, text in made.items():
        supervisor.write(file, text)
    if KIND == "launchd":
        (Path.home() / "Library" / "Logs" / "anchord").mkdir(parents=True, exist_ok=True)  # launchd makes no folder.
        supervisor.launchctl("bootout", supervisor.agent_name())
        _give_way(of)
        _done(supervisor.launchctl("bootstrap", supervisor.agent_target(), str(next(iter(made)))))
        return
    on_demand = any(file.name == SOCKET for file in made)
    _done(supervisor.systemctl("daemon-reload"))
    supervisor.systemctl("stop", UNIT)
    _give_way(of)
    if on_demand:
        supervisor.systemctl("disable", UNIT)
    _done(supervisor.systemctl("enable", SOCKET if on_demand else UNIT))
    started = supervisor.systemctl("restart", SOCKET if on_demand else UNIT)
    if started.code and supervisor.systemctl("show", UNIT, "--property=ExecMainStatus", "--value").text == _NO_NAMESPACE:
        raise AnchordError(
            "this machine's systemd cannot make the sandbox (status 226/NAMESPACE)",
            "`anchord service install` without --sandbox",
        )
    _done(started, "`journalctl --user -u anchord -n 20` says why; `anchord run` shows it here")


def uninstall(environment: Mapping[str, str]) -> Sequence[str]:
    """Stop the service and delete its files; return which they were. The index and the configuration stay."""
    there = _there(environment)
    if not there:
        return ()
    if KIND == "launchd":
        supervisor.launchctl("bootout", supervisor.agent_name())
    else:
        units = [file.name for file in there if file.name != SANDBOX]
        supervisor.systemctl("disable", "--now", *units)
    gone = [str(file) for file in there if supervisor.remove(file)]
    if KIND == "systemd":
        supervisor.systemctl("daemon-reload")
        supervisor.systemctl("reset-failed", UNIT)
    return gone


def ends_with_session() -> bool:
    """Whether systemd ends this user's services when they log out."""
    return KIND == "systemd" and not (_LINGERING / _user()).exists()


def _there(environment: Mapping[str, str]) -> list[Path]:
    if KIND == "launchd":
        known = [supervisor.agent_folder() / AGENT]
    else:
        folder = supervisor.unit_folder(environment)
        known = [folder / UNIT, folder / SOCKET, folder / f"{UNIT}.d" / SANDBOX]
    return [file for file in known if file.exists()]


def _give_way(of: Places) -> None:
    """End a daemon that was started by hand, and wait until the index is free."""
    client = connect(of)
    if client is None:
        return
    with client:
        pid = client.call("shutdown")["pid"]
    await_end(of, pid)


def _done(said: supervisor.Said, hint: str = _NO_SESSION) -> None:
    if said.code:
        raise AnchordError(f"the files are written, but {KIND} did not take them: {_first(said.text)}", hint)


def _bytes(file: Path) -> bytes:
    try:
        return file.read_bytes()
    except OSError:
        return b""


def _first(text: str) -> str:
    return text.splitlines()[0] if text else ""


def _user() -> str:
    import pwd  # noqa: PLC0415 - Unix alone has it

    try:
        return pwd.getpwuid(os.getuid()).pw_name
    except KeyError:
        return str(os.getuid())
