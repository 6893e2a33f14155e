"""`service`: run anchord as a systemd user service or a launchd agent."""

from __future__ import annotations

import os
from typing import Annotated

from anchord.cli.app import (
    JsonOption,
    app,
    ensure_paths,
    print_json,
    print_line,
    warn,
)
from anchord.cli.parameters import Option
from anchord.cli.registry import Exit
from anchord.config.file import load_config
from anchord.config.schema import Config
from anchord.core.quoting import escape_non_utf8
from anchord.daemon.service import install

_NOT_ACTIVE = 1
_NOT_INSTALLED = 3

SandboxOption = Annotated[
    bool,
    Option(
        "--sandbox",
        help="systemd: add a drop-in that makes the file system read-only and hides devices.",
    ),
]
OnDemandOption = Annotated[
    bool,
    Option("--socket", help="systemd: start the daemon at the first command, by its socket."),
]

service_commands = app.group(
    "service", "Run anchord as a service: it starts with your session and restarts after a failure."
)


@service_commands.command("install")
def service_install(
    sandbox: SandboxOption = False, socket: OnDemandOption = False, json: JsonOption = False
) -> None:
    """Write the service's files, enable it and start it; stops a daemon that already runs."""
    paths = ensure_paths()
    config = load_config(paths.config_file)
    settings = install.build_service_settings(
        paths, config, os.environ, sandbox=sandbox, socket_activated=socket
    )
    content_by_file = install.render_service_files(settings, os.environ)
    install.install_and_start_service(paths, content_by_file, os.environ)
    if json:
        files = [escape_non_utf8(str(file)) for file in content_by_file]
        print_json({"kind": install.SUPERVISOR, "files": files})
        return
    for file in content_by_file:
        print_line(f"wrote {file}")
    if socket:
        print_line("anchord starts at the first command")
    else:
        print_line("anchord runs as a service; `anchord status` shows it")
    _print_install_hints(config)


def _print_install_hints(config: Config) -> None:
    """Print what the user may have to do after the installation."""
    if install.service_stops_at_logout():
        print_line("it stops when you log out; `loginctl enable-linger` keeps it running")
    if not config.root:
        print_line("no roots yet: `anchord add FOLDER` adds one")
    key_variables = [server.api_key_env for server in config.embedding.servers]
    for key_variable in dict.fromkeys(filter(None, key_variables)):
        warn(
            f"the service cannot read ${key_variable} from your shell: "
            "set it with `systemctl --user edit anchord`"
        )


@service_commands.command("uninstall")
def service_uninstall(json: JsonOption = False) -> None:
    """Stop the service and delete its files; keeps the index and the configuration."""
    removed_files = install.uninstall_service(os.environ)
    if json:
        files = [escape_non_utf8(file) for file in removed_files]
        print_json({"kind": install.SUPERVISOR, "removed": files})
        return
    for file in removed_files:
        print_line(f"removed {file}")
    if not removed_files:
        print_line("anchord is not installed as a service")


@service_commands.command("status")
def service_status(json: JsonOption = False) -> None:
    """Show whether the service is installed, up to date and running.

    Exit codes: 0 running, 1 installed but stopped or not up to date, 3 not installed.
    """
    paths = ensure_paths()
    status = install.query_service_status(paths, load_config(paths.config_file), os.environ)
    if json:
        print_json(
            {
                "kind": status.supervisor,
                "installed": status.installed,
                "current": status.up_to_date,
                "active": status.active,
                "enabled": status.enabled,
                "files": [escape_non_utf8(file) for file in status.files],
                "detail": status.detail,
            }
        )
    else:
        _print_status(status)
    if not status.installed:
        raise Exit(_NOT_INSTALLED)
    if not (status.active and status.up_to_date):
        raise Exit(_NOT_ACTIVE)


def _print_status(status: install.ServiceStatus) -> None:
    if not status.installed:
        print_line("anchord is not installed as a service; `anchord service install` installs it")
        return
    for file in status.files:
        print_line(file)
    state = "running" if status.active else f"not running ({status.detail})"
    does = "starts" if status.enabled else "does not start"
    print_line(f"{status.supervisor}: {state}, {does} with the session")
    if not status.up_to_date:
        warn(
            "the service's files differ from this version and configuration; "
            "`anchord service install` rewrites them"
        )


@service_commands.command("print")
def service_print(
    sandbox: SandboxOption = False, socket: OnDemandOption = False, json: JsonOption = False
) -> None:
    """Print the service's files as `install` would write them; changes nothing."""
    paths = ensure_paths()
    config = load_config(paths.config_file)
    settings = install.build_service_settings(
        paths, config, os.environ, sandbox=sandbox, socket_activated=socket
    )
    content_by_file = install.render_service_files(settings, os.environ)
    if json:
        print_json(
            {escape_non_utf8(str(file)): text.decode() for file, text in content_by_file.items()}
        )
        return
    for file, content in content_by_file.items():
        print_line(f"# {file}")
        for line in content.decode().splitlines():
            print_line(line)
