"""`add`, `remove`, `roots`, `config`: which folders are indexed, and how."""

from __future__ import annotations

from typing import Annotated

import typer

from anchord.adapters.asked import load_asked
from anchord.adapters.catalogue import SqliteCatalogue
from anchord.adapters.config_file import load_config, written_keys
from anchord.asking import connect
from anchord.cli.frame import AsJson, app, configuration, help_without_command, places, print_json, say, warn
from anchord.config import root_config, values, without_effect
from anchord.errors import UsageError
from anchord.model import Root, printable
from anchord.places import Places
from anchord.roots import add_to_config, existing_folder, gather_roots, list_roots, remove_from_config
from anchord.settings import ALIASES


@app.command()
def add(
    path: Annotated[str, typer.Argument(metavar="PATH")],
    kind: Annotated[str, typer.Option("--kind", help="project or conversations")] = "project",
    name: Annotated[str, typer.Option("--name", help="Default: the folder's name.")] = "",
    json: AsJson = False,
) -> None:
    """Add a folder to the configuration; a running daemon follows at once."""
    of = places()
    folder = existing_folder(path, of.own)
    wanted = root_config(folder, kind, name)
    client = connect(of)
    if client is None:
        root = add_to_config(of.config, _remembered(of), wanted, of.own)
        added, then = {"name": root.name, "path": root.path, "kind": root.kind}, "`anchord start` keeps it indexed"
    else:
        with client:
            added = client.call("roots.add", path=folder, kind=kind, name=name)
        then = "it is being indexed now"
    if json:
        print_json(added)
    else:
        say(f"added {added['name']} ({added['path']}); {then}")


@app.command()
def remove(name: Annotated[str, typer.Argument(metavar="NAME")], json: AsJson = False) -> None:
    """Take a root out of the configuration and its chunks out of the index; its files are not touched."""
    of = places()
    client = connect(of)
    if client is not None:
        with client:
            removed = client.call("roots.remove", name=name)["removed_chunks"]
    else:
        removed = _remove_without_daemon(of, name)
    if json:
        print_json({"name": name, "removed_chunks": removed})
    else:
        say(f"removed {name}: {removed} chunks")


@app.command()
def roots(json: AsJson = False) -> None:
    """List the roots."""
    of = places()
    client = connect(of)
    if client is not None:
        with client:
            listed = client.call("roots")
    else:
        listed = _listed_without_daemon(of)
    if json:
        print_json(listed)
        return
    if not listed:
        warn("no roots yet: `anchord add FOLDER` adds one")
    width = max((len(root["name"]) for root in listed), default=0)
    for root in listed:
        where = f"{root['name']:<{width}}  {root['path']}"
        say(f"{where}  ({root['kind']}, {root['files']} files, {root['chunks']} chunks, {root['from']})")


config_app = typer.Typer(help="Show the effective configuration, its place, or whether it is right.")
app.add_typer(config_app, name="config")


@config_app.callback(invoke_without_command=True)
def config_frame(context: typer.Context) -> None:
    """Show the effective configuration, its place, or whether it is right."""
    help_without_command(context)


@config_app.command("show")
def config_show(json: AsJson = False) -> None:
    """Print every key with its value and where that comes from."""
    of = places()
    config = configuration(of)
    written = written_keys(of.config)
    idle = set(without_effect(config))
    rows = [(key, value, str(of.config) if _is_written(key, written) else "default") for key, value in values(config)]
    if json:
        listed = [
            {"key": key, "value": value, "origin": printable(origin), "has_effect": key not in idle}
            for key, value, origin in rows
        ]
        print_json({"file": printable(str(of.config)), "keys": listed, "roots": config.root})
        return
    for root in config.root:
        say(f"root {root.name or '(by folder)'}: {root.path} ({root.kind})  # {of.config}")
    for key, value, origin in rows:
        note = ", without effect" if key in idle else ""
        shown = "unset" if value is None else str(value).lower() if isinstance(value, bool) else repr(value)
        say(f"{key} = {shown}  # {origin}{note}")


def _is_written(key: str, written: frozenset[str]) -> bool:
    table, _, name = key.partition(".")
    spelled = {f"{table}.{other}" for names in ALIASES.values() for other, ours in names.items() if ours == name}
    return table in ("kind", "root") or key in written or not spelled.isdisjoint(written)


@config_app.command("path")
def config_path(json: AsJson = False) -> None:
    """Print where the configuration is."""
    of = places()
    if json:
        print_json({"file": printable(str(of.config)), "exists": of.config.exists()})
    else:
        say(str(of.config))


@config_app.command("check")
def config_check(json: AsJson = False) -> None:
    """Read the configuration and say whether it is right."""
    of = places()
    config = load_config(of.config)
    found = gather_roots(config, (), (), of.own)
    if json:
        listed = [{"name": root.name, "path": root.path} for root in found]
        print_json({"file": printable(str(of.config)), "roots": listed, "without_effect": without_effect(config)})
        return
    for root in found:
        say(f"root {root.name}: {root.path}")
    for key in without_effect(config):
        warn(f"{key} has no effect")
    say(f"{of.config} is right" if of.config.exists() else f"{of.config} does not exist: all defaults")


def _remembered(of: Places) -> list[Root]:
    return load_asked(of.asked).roots


def _listed_without_daemon(of: Places) -> list[dict[str, object]]:
    found = gather_roots(configuration(of), _remembered(of), (), of.own)
    if not of.catalogue.exists():
        return list_roots(found, {})
    with SqliteCatalogue(of.catalogue, read_only=True) as catalogue:
        return list_roots(found, catalogue.counts())


def _remove_without_daemon(of: Places, name: str) -> int:
    known = gather_roots(configuration(of), _remembered(of), (), of.own)
    if all(root.name != name for root in known):
        raise UsageError(f"no root `{name}`", f"there are: {', '.join(root.name for root in known) or 'none'}")
    from anchord.workspace import open_writer

    if not of.catalogue.exists():
        remove_from_config(of.config, name)
        return 0
    writer = open_writer(of, configuration(of), [])
    try:
        remove_from_config(of.config, name)
        return writer.drop_root(name)
    finally:
        writer.close()
