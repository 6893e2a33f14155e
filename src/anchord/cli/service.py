"""`service`: anchord as a user service of systemd or an agent of launchd."""

from __future__ import annotations

import os
from typing import Annotated

import typer

from anchord import supervising
from anchord.adapters.config_file import load_config
from anchord.cli.frame import AsJson, app, help_without_command, places, print_json, say, warn
from anchord.model import printable

_NOT_ACTIVE = 1
_NOT_INSTALLED = 3

Sandbox = Annotated[
    bool, typer.Option("--sandbox", help="systemd: with a drop-in that shows it the file system read-only and hides devices.")
]
OnDemand = Annotated[bool, typer.Option("--socket", help="systemd: listen for it, and start it at the first command.")]

service_app = typer.Typer(help="Run as a service of this user: it starts with the session and is restarted when it fails.")
app.add_typer(service_app, name="service")


@service_app.callback(invoke_without_command=True)
def service_frame(context: typer.Context) -> None:
    """Run as a service of this user: it starts with the session and is restarted when it fails."""
    help_without_command(context)


@service_app.command("install")
def service_install(sandbox: Sandbox = False, socket: OnDemand = False, json: AsJson = False) -> None:
    """Write the service's files, enable it and start it; a daemon that runs already gives way."""
    of = places()
    config = load_config(of.config)
    made = supervising.files(
        supervising.installation(of, config, os.environ, sandbox=sandbox, on_demand=socket), os.environ
    )  # fmt: skip
    supervising.install(of, made, os.environ)
    if json:
        print_json({"kind": supervising.KIND, "files": [printable(str(file)) for file in made]})
        return
    for file in made:
        say(f"wrote {file}")
    say("anchord starts at the first command" if socket else "anchord runs as a service; `anchord status` shows it")
    if supervising.ends_with_session():
        say("it ends when you log out; `loginctl enable-linger` keeps it")
    if not config.root:
        say("no roots yet: `anchord add FOLDER` adds one")
    if config.embedding.provider == "openai" and config.embedding.api_key_env:
        warn(
            f"a service does not see ${config.embedding.api_key_env} of your shell: set it with `systemctl --user edit anchord`"
        )


@service_app.command("uninstall")
def service_uninstall(json: AsJson = False) -> None:
    """Stop the service and delete its files; the index and the configuration stay."""
    gone = supervising.uninstall(os.environ)
    if json:
        print_json({"kind": supervising.KIND, "removed": [printable(file) for file in gone]})
        return
    for file in gone:
        say(f"removed {file}")
    if not gone:
        say("anchord is not installed as a service")


@service_app.command("status")
def service_status(json: AsJson = False) -> None:
    """Say how the service stands: exit 0 running, 1 installed and not running, or of an older version, 3 not installed."""
    of = places()
    stands = supervising.standing(of, load_config(of.config), os.environ)
    if json:
        told = {"installed": stands.installed, "current": stands.current, "active": stands.active, "enabled": stands.enabled}
        print_json({"kind": stands.kind, **told, "files": [printable(file) for file in stands.files], "detail": stands.detail})
    elif not stands.installed:
        say("anchord is not installed as a service; `anchord service install` does it")
    else:
        for file in stands.files:
            say(file)
        say(f"{stands.kind}: {'running' if stands.active else f'not running ({stands.detail})'}, {_enabled(stands)}")
        if not stands.current:
            warn("the files are not those of this version and configuration; `anchord service install` writes them anew")
    if not stands.installed:
        raise typer.Exit(_NOT_INSTALLED)
    if not (stands.active and stands.current):
        raise typer.Exit(_NOT_ACTIVE)


@service_app.command("print")
def service_print(sandbox: Sandbox = False, socket: OnDemand = False, json: AsJson = False) -> None:
    """Print the service's files as `install` would write them, and change nothing."""
    of = places()
    of_here = supervising.installation(of, load_config(of.config), os.environ, sandbox=sandbox, on_demand=socket)
    made = supervising.files(of_here, os.environ)
    if json:
        print_json({printable(str(file)): text.decode() for file, text in made.items()})
        return
    for file, text in made.items():
        say(f"# {file}")
        for line in text.decode().splitlines():
            say(line)


def _enabled(stands: supervising.Standing) -> str:
    return "starts with the session" if stands.enabled else "does not start with the session"
