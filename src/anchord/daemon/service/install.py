"""Install and remove anchord as a service of this user, and query its status.

Only files that anchord wrote are ever deleted. A daemon that was started by hand is shut down when
the service starts.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from anchord.config.paths import Paths
from anchord.config.schema import Config
from anchord.daemon.access import try_connect, wait_for_daemon_exit
from anchord.daemon.service import supervisor
from anchord.daemon.service.unit_files import (
    AGENT_PLIST,
    SANDBOX_DROP_IN,
    SERVICE_UNIT,
    SOCKET_UNIT,
    ServiceSettings,
    render_launchd_agent,
    render_systemd_files,
)
from anchord.errors import AnchordError

_KEPT_VARIABLES = (
    "ANCHORD_HOME",
    "XDG_CONFIG_HOME",
    "XDG_DATA_HOME",
    "XDG_STATE_HOME",
    "XDG_CACHE_HOME",
    "HF_HOME",
    "HF_HUB_CACHE",
)
"""Variables that say where files are; a service does not inherit those of a shell."""
_LINGERING_USERS = Path("/var/lib/systemd/linger")
"""Has a file for each user whose services go on after logout."""
_EXIT_NAMESPACE = "226"
"""systemd's exit status when it could not set up the sandbox, see systemd.exec(5)."""
_NO_SESSION_HINT = (
    "run it again in a session of your own (not under sudo); "
    "`anchord start` works without a service"
)
_JOURNAL_HINT = (
    "`journalctl --user -u anchord -n 20` shows why; `anchord run` shows it in this terminal"
)
SUPERVISOR = "launchd" if sys.platform == "darwin" else "systemd"


@dataclass(frozen=True, slots=True, kw_only=True)
class ServiceStatus:
    """Whether the service is installed, up to date and running."""

    supervisor: str
    """"systemd" or "launchd"."""
    files: tuple[str, ...]
    """The service files that exist."""
    up_to_date: bool
    """Whether they are what this version and configuration would write."""
    active: bool
    """Whether the service runs."""
    enabled: bool
    """Whether it starts with the session."""
    detail: str
    """The first line that the supervisor printed."""

    @property
    def installed(self) -> bool:
        """Whether any service file exists."""
        return bool(self.files)


def build_service_settings(
    paths: Paths,
    config: Config,
    environment: Mapping[str, str],
    *,
    sandbox: bool,
    socket_activated: bool,
) -> ServiceSettings:
    """Return what the service files of this installation depend on.

    Args:
        paths: Where this anchord keeps its files.
        config: Its provider and table decide whether the service needs the network.
        environment: Variables of this process; those that say where files are, are kept.
        sandbox: systemd: hide most of the file system from the service.
        socket_activated: systemd: start the service at the first connection.
    """
    uses_model_server = bool(config.embedding.servers)
    uses_remote_table = "://" in config.store.uri
    kept = {name: environment[name] for name in _KEPT_VARIABLES if environment.get(name)}
    folders = [str(paths.config_file.parent), str(paths.data_folder), str(paths.log_folder)]
    if "ANCHORD_HOME" in kept:
        folders = [kept["ANCHORD_HOME"]]  # All three lie in it.
    folders.append(str(paths.shared_models_folder))
    return ServiceSettings(
        command=supervisor.anchord_command(),
        environment=kept,
        home=str(Path.home()),
        writable_folders=tuple(dict.fromkeys(folders)),
        socket_path=str(paths.socket_file),
        needs_network=uses_model_server or uses_remote_table,
        sandbox=sandbox,
        socket_activated=socket_activated,
    )


def render_service_files(
    settings: ServiceSettings, environment: Mapping[str, str]
) -> dict[Path, bytes]:
    """Return the content of each service file by its absolute path; nothing is written.

    Raises:
        AnchordError: The templates are missing in this installation.
        UsageError: A path cannot be written into a unit.
    """
    templates = supervisor.read_templates(SUPERVISOR)
    if SUPERVISOR == "launchd":
        plist = supervisor.launchd_agent_folder() / AGENT_PLIST
        return {plist: render_launchd_agent(settings, templates[AGENT_PLIST])}
    folder = supervisor.systemd_unit_folder(environment)
    texts = {name: template.decode() for name, template in templates.items()}
    units = render_systemd_files(settings, texts)
    return {folder / name: text.encode() for name, text in units.items()}


def query_service_status(
    paths: Paths, config: Config, environment: Mapping[str, str]
) -> ServiceStatus:
    """Compare the installed service files with what would be written, and ask the supervisor.

    Raises:
        AnchordError: The templates are missing in this installation.
    """
    installed_files = _installed_files(environment)
    names = {file.name for file in installed_files}
    settings = build_service_settings(
        paths,
        config,
        environment,
        sandbox=SANDBOX_DROP_IN in names,
        socket_activated=SOCKET_UNIT in names,
    )
    expected_files = render_service_files(settings, environment)
    up_to_date = all(_read_or_empty(file) == content for file, content in expected_files.items())
    if SUPERVISOR == "launchd":
        agent = supervisor.launchctl("print", supervisor.launchd_service_target())
        active, enabled = "state = running" in agent.output, agent.exit_code == 0
        detail = _first_line(agent.output)
    else:
        enabled_unit = SOCKET_UNIT if SOCKET_UNIT in names else SERVICE_UNIT
        is_active = supervisor.systemctl("is-active", SERVICE_UNIT)
        is_enabled = supervisor.systemctl("is-enabled", enabled_unit)
        active, enabled = is_active.exit_code == 0, is_enabled.exit_code == 0
        detail = _first_line(is_active.output)
    return ServiceStatus(
        supervisor=SUPERVISOR,
        files=tuple(map(str, installed_files)),
        up_to_date=up_to_date,
        active=active,
        enabled=enabled,
        detail=detail,
    )


def install_and_start_service(
    paths: Paths, service_files: Mapping[Path, bytes], environment: Mapping[str, str]
) -> None:
    """Write the service files, enable the service and start it; restart it if it runs.

    Service files of an earlier installation that are not among these are deleted. A daemon that
    was started by hand is shut down first. Blocks until the service has started.

    Args:
        paths: Where this anchord keeps its files.
        service_files: Content by absolute path, from `render_service_files`.
        environment: Variables of this process.

    Raises:
        AnchordError: The supervisor refused; the files stay in place.
    """
    for file in _installed_files(environment):
        if file in service_files:
            continue
        if file.name == SOCKET_UNIT:
            supervisor.systemctl("disable", "--now", SOCKET_UNIT)
        supervisor.delete_service_file(file)
    for file, content in service_files.items():
        supervisor.write_service_file(file, content)
    if SUPERVISOR == "launchd":
        (plist,) = service_files
        _start_with_launchd(paths, plist)
    else:
        names = {file.name for file in service_files}
        _start_with_systemd(paths, socket_activated=SOCKET_UNIT in names)


def uninstall_service(environment: Mapping[str, str]) -> Sequence[str]:
    """Stop the service and delete its files; the index and the configuration stay.

    Returns:
        The files that were deleted, empty if the service was not installed.
    """
    installed_files = _installed_files(environment)
    if not installed_files:
        return ()
    if SUPERVISOR == "launchd":
        supervisor.launchctl("bootout", supervisor.launchd_service_target())
    else:
        units = [file.name for file in installed_files if file.name != SANDBOX_DROP_IN]
        supervisor.systemctl("disable", "--now", *units)
    deleted = [str(file) for file in installed_files if supervisor.delete_service_file(file)]
    if SUPERVISOR == "systemd":
        supervisor.systemctl("daemon-reload")
        supervisor.systemctl("reset-failed", SERVICE_UNIT)
    return deleted


def service_stops_at_logout() -> bool:
    """Return whether systemd ends this user's services at logout."""
    return SUPERVISOR == "systemd" and not (_LINGERING_USERS / _user_name()).exists()


def _start_with_launchd(paths: Paths, plist: Path) -> None:
    # launchd does not create the folder of the log files.
    log_folder = Path.home() / "Library" / "Logs" / "anchord"
    log_folder.mkdir(parents=True, exist_ok=True)
    supervisor.launchctl("bootout", supervisor.launchd_service_target())
    _shut_down_daemon(paths)
    started = supervisor.launchctl("bootstrap", supervisor.launchd_domain_target(), str(plist))
    _require_success(started)


def _start_with_systemd(paths: Paths, *, socket_activated: bool) -> None:
    """Enable and start the service, or with socket activation the socket alone."""
    _require_success(supervisor.systemctl("daemon-reload"))
    supervisor.systemctl("stop", SERVICE_UNIT)
    _shut_down_daemon(paths)
    unit = SERVICE_UNIT
    if socket_activated:
        # The service must not start with the session: the socket starts it.
        supervisor.systemctl("disable", SERVICE_UNIT)
        unit = SOCKET_UNIT
    _require_success(supervisor.systemctl("enable", unit))
    started = supervisor.systemctl("restart", unit)
    if started.exit_code and _service_exit_status() == _EXIT_NAMESPACE:
        raise AnchordError(
            "systemd on this machine cannot set up the sandbox (status 226/NAMESPACE)",
            "`anchord service install` without --sandbox",
        )
    _require_success(started, _JOURNAL_HINT)


def _service_exit_status() -> str:
    shown = supervisor.systemctl(
        "show",
        SERVICE_UNIT,
        "--property=ExecMainStatus",
        "--value",
    )
    return shown.output


def _installed_files(environment: Mapping[str, str]) -> list[Path]:
    """Return the service files that exist, of all that any version may have written."""
    if SUPERVISOR == "launchd":
        files = [supervisor.launchd_agent_folder() / AGENT_PLIST]
    else:
        folder = supervisor.systemd_unit_folder(environment)
        drop_in = folder / f"{SERVICE_UNIT}.d" / SANDBOX_DROP_IN
        files = [folder / SERVICE_UNIT, folder / SOCKET_UNIT, drop_in]
    return [file for file in files if file.exists()]


def _shut_down_daemon(paths: Paths) -> None:
    """Shut down a daemon that was started by hand, and wait until it has released the index."""
    client = try_connect(paths)
    if client is None:
        return
    with client:
        pid = client.shutdown().pid
    wait_for_daemon_exit(paths, pid)


def _require_success(result: supervisor.CommandResult, hint: str = _NO_SESSION_HINT) -> None:
    """Raise AnchordError if a command of the supervisor failed."""
    if result.exit_code:
        reason = _first_line(result.output)
        raise AnchordError(
            f"the service files are written, but {SUPERVISOR} refused them: {reason}", hint
        )


def _read_or_empty(file: Path) -> bytes:
    try:
        return file.read_bytes()
    except OSError:
        return b""


def _first_line(text: str) -> str:
    return text.splitlines()[0] if text else ""


def _user_name() -> str:
    import pwd  # noqa: PLC0415 - only on Unix

    try:
        return pwd.getpwuid(os.getuid()).pw_name
    except KeyError:
        return str(os.getuid())
