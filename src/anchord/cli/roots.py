"""`add`, `remove`, `roots`, `config`: which folders are indexed, and how."""

from __future__ import annotations

from typing import Annotated

import typer

from anchord.adapters.catalogue import SqliteCatalogue
from anchord.adapters.config_file import load_config
from anchord.cli.frame import AsJson, app, configuration, daemon, err, out, places, print_json
from anchord.config import Config, root_config, values, without_effect
from anchord.errors import UsageError
from anchord.model import Root
from anchord.places import Places
from anchord.roots import add_to_config, gather_roots, real, remove_from_config


@app.command()
def add(
    path: Annotated[str, typer.Argument(metavar="PATH")],
    kind: Annotated[str, typer.Option("--kind", help="project")] = "project",
    name: Annotated[str, typer.Option("--name", help="Default: the folder's name.")] = "",
) -> None:
    """Add a folder to the configuration; a running daemon follows at once."""
    of = places()
    wanted = root_config(path, kind, name)
    client = daemon(of)
    if client is None:
        root = add_to_config(of.config, _remembered(of), wanted)
        out.print(f"added {root.name} ({root.path}); `anchord start` keeps it indexed", markup=False)
        return
    with client:
        added = client.call("roots.add", path=real(path), kind=kind, name=name)
    out.print(f"added {added['name']} ({added['path']}); it is being indexed now", markup=False)


@app.command()
def remove(name: Annotated[str, typer.Argument(metavar="NAME")]) -> None:
    """Take a root out of the configuration and its chunks out of the index; its files are not touched."""
    of = places()
    client = daemon(of)
    if client is not None:
        with client:
            removed = client.call("roots.remove", name=name)["removed_chunks"]
    else:
        removed = _remove_without_daemon(of, name)
    out.print(f"removed {name}: {removed} chunks", markup=False)


@app.command()
def roots(json: AsJson = False) -> None:
    """List the roots."""
    of = places()
    client = daemon(of)
    if client is not None:
        with client:
            listed = client.call("roots")
    else:
        listed = _listed_without_daemon(of)
    if json:
        print_json(listed)
        return
    if not listed:
        err.print("no roots yet: `anchord add FOLDER` adds one", markup=False)
    width = max((len(root["name"]) for root in listed), default=0)
    for root in listed:
        where = f"{root['name']:<{width}}  {root['path']}"
        out.print(f"{where}  ({root['kind']}, {root['files']} files, {root['chunks']} chunks, {root['from']})", markup=False)


config_app = typer.Typer(help="Show the effective configuration, its place, or whether it is right.", no_args_is_help=True)
app.add_typer(config_app, name="config")


@config_app.command("show")
def config_show(json: AsJson = False) -> None:
    """Print every key with its value and where that comes from."""
    of = places()
    config = configuration(of)
    default = dict(values(Config()))
    idle = set(without_effect(config))
    rows = [(key, value, "default" if value == default[key] else str(of.config)) for key, value in values(config)]
    if json:
        listed = [{"key": key, "value": value, "origin": origin, "has_effect": key not in idle} for key, value, origin in rows]
        print_json({"file": str(of.config), "keys": listed, "roots": config.root})
        return
    for root in config.root:
        out.print(f"root {root.name or '(by folder)'}: {root.path} ({root.kind})  # {of.config}", markup=False)
    for key, value, origin in rows:
        note = ", without effect in this version" if key in idle else ""
        shown = "unset" if value is None else str(value).lower() if isinstance(value, bool) else repr(value)
        out.print(f"{key} = {shown}  # {origin}{note}", markup=False)


@config_app.command("path")
def config_path() -> None:
    """Print where the configuration is."""
    out.print(str(places().config), markup=False)


@config_app.command("check")
def config_check() -> None:
    """Read the configuration and say whether it is right."""
    of = places()
    config = load_config(of.config)
    for root in gather_roots(config, (), ()):
        out.print(f"root {root.name}: {root.path}", markup=False)
    for key in without_effect(config):
        err.print(f"{key} has no effect in this version", markup=False)
    out.print(f"{of.config} is right" if of.config.exists() else f"{of.config} does not exist: all defaults", markup=False)


def _remembered(of: Places) -> list[Root]:
    if not of.catalogue.exists():
        return []
    with SqliteCatalogue(of.catalogue, read_only=True) as catalogue:
        return list(catalogue.remembered_roots())


def _listed_without_daemon(of: Places) -> list[dict[str, object]]:
    found = gather_roots(configuration(of), _remembered(of), ())
    counts = {}
    if of.catalogue.exists():
        with SqliteCatalogue(of.catalogue, read_only=True) as catalogue:
            counts = dict(catalogue.counts())
    return [
        {
            "name": root.name,
            "path": root.path,
            "kind": root.kind,
            "from": "configuration" if root.configured else "command line",
            "files": counts.get(root.name, (0, 0))[0],
            "chunks": counts.get(root.name, (0, 0))[1],
        }
        for root in found
    ]


def _remove_without_daemon(of: Places, name: str) -> int:
    known = gather_roots(configuration(of), _remembered(of), ())
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
