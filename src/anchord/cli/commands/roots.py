"""`add`, `remove`, `config`: which folders are indexed, and how."""

from __future__ import annotations

from typing import Annotated

from anchord.cli import values
from anchord.cli.app import (
    JsonOption,
    app,
    ask_daemon_or_engine,
    ensure_paths,
    load_user_config,
    print_json,
    print_line,
    warn,
)
from anchord.cli.parameters import Argument, Option
from anchord.config.cli_state import load_cli_state
from anchord.config.effective import find_ignored_keys, iter_effective_values
from anchord.config.file import load_config, read_set_keys
from anchord.config.paths import Paths
from anchord.config.roots import (
    add_root_to_config,
    gather_roots,
    remove_root_from_config,
    resolve_root_folder,
)
from anchord.config.schema import make_root_config
from anchord.config.strategies import KEY_ALIASES
from anchord.core.counted import counted
from anchord.core.quoting import escape_non_utf8, quote_name, quote_names
from anchord.core.types import Root
from anchord.daemon.access import try_connect
from anchord.errors import UsageError
from anchord.ipc import requests
from anchord.ipc.messages.roots import AddedRoot, RemovedRoot, RootAnswer
from anchord.store.catalog.catalog import SqliteCatalog


@app.command()
def add(
    path: Annotated[str, Argument(metavar="PATH")],
    kind: Annotated[
        str,
        Option("--kind", help="project or conversations", autocompletion=values.complete_root_kind),
    ] = "project",
    name: Annotated[str, Option("--name", help="Default: the folder's name.")] = "",
    json: JsonOption = False,
) -> None:
    """Add a folder to the configuration; a running daemon indexes it at once."""
    paths = ensure_paths()
    folder = resolve_root_folder(path, paths.own_folders)
    root_config = make_root_config(folder, kind, name)
    client = try_connect(paths)
    if client is not None:
        with client:
            added = client.roots_add(folder, kind=kind, name=name)
        next_step = "it is being indexed now"
    else:
        root = add_root_to_config(
            paths.config_file, _given_roots(paths), root_config, paths.own_folders
        )
        added = AddedRoot(name=root.name, path=root.path, kind=root.kind)
        next_step = "`anchord start` keeps it indexed"
    if json:
        print_json(added)
    else:
        name, path = quote_name(added.name), quote_name(added.path)
        print_line(f"added {name} ({path}); {next_step}")


@app.command()
def remove(
    name: Annotated[str, Argument(metavar="NAME", autocompletion=values.complete_root)],
    json: JsonOption = False,
) -> None:
    """Stop indexing a folder: delete it from the configuration, and its chunks from the index.

    The folder's own files are not touched, and its conversations are kept.
    """
    paths = ensure_paths()
    if paths.catalog_file.exists():
        result = ask_daemon_or_engine(paths, requests.roots_remove(name))
    else:
        result = _remove_from_config(paths, name)
    if json:
        print_json(result)
        return
    print_line(f"removed {quote_name(name)}: {counted(result.removed_chunks, 'chunk')}")
    if result.detached_exchanges:
        kept = counted(result.detached_exchanges, "exchange")
        print_line(
            f"its conversations are kept ({kept}): they return with the folder, "
            "`anchord search --detached` finds them, `anchord forget` deletes them"
        )


config_commands = app.group(
    "config", "Show the effective configuration, print its path, or check it."
)


@config_commands.command("show")
def config_show(json: JsonOption = False) -> None:
    """Print every key with its value and where the value comes from."""
    paths = ensure_paths()
    config = load_user_config(paths)
    set_keys = read_set_keys(paths.config_file)
    ignored_keys = set(find_ignored_keys(config))
    rows = [
        (key, value, str(paths.config_file) if _is_set(key, set_keys) else "default")
        for key, value in iter_effective_values(config)
    ]
    if json:
        keys = [
            {
                "key": key,
                "value": value,
                "origin": escape_non_utf8(origin),
                "has_effect": key not in ignored_keys,
            }
            for key, value, origin in rows
        ]
        file = escape_non_utf8(str(paths.config_file))
        print_json({"file": file, "keys": keys, "roots": config.root})
        return
    for root in config.root:
        name = root.name or "(by folder)"
        print_line(f"root {name}: {root.path} ({root.kind})  # {paths.config_file}")
    for key, value, origin in rows:
        note = ", has no effect" if key in ignored_keys else ""
        print_line(f"{key} = {_format_value(value)}  # {origin}{note}")


def _format_value(value: object) -> str:
    """Return a value as TOML writes it; "unset" for None, which TOML cannot write."""
    if value is None:
        return "unset"
    return str(value).lower() if isinstance(value, bool) else repr(value)


def _is_set(key: str, set_keys: frozenset[str]) -> bool:
    """Return whether the configuration file sets a key, also under a strategy's name for it."""
    table, _, name = key.partition(".")
    if table in ("kind", "root", "room", "model") or key in set_keys:
        return True
    for key_of_alias in KEY_ALIASES.values():
        for alias, aliased_key in key_of_alias.items():
            if aliased_key == name and f"{table}.{alias}" in set_keys:
                return True
    return False


@config_commands.command("path")
def config_path(json: JsonOption = False) -> None:
    """Print the path of the configuration file."""
    file = ensure_paths().config_file
    if json:
        print_json({"file": escape_non_utf8(str(file)), "exists": file.exists()})
    else:
        print_line(str(file))


@config_commands.command("check")
def config_check(json: JsonOption = False) -> None:
    """Check the configuration: fails for errors, warns of keys that have no effect."""
    paths = ensure_paths()
    file = paths.config_file
    config = load_config(file)
    found_roots = gather_roots(config, (), (), paths.own_folders)
    ignored_keys = find_ignored_keys(config)
    if json:
        listed = [{"name": root.name, "path": root.path} for root in found_roots]
        file_name = escape_non_utf8(str(file))
        print_json({"file": file_name, "roots": listed, "without_effect": ignored_keys})
        return
    for root in found_roots:
        print_line(f"root {root.name}: {root.path}")
    for key in ignored_keys:
        warn(f"{key} has no effect")
    if file.exists():
        print_line(f"{file} is valid")
    else:
        print_line(f"{file} does not exist: every key has its default")


def _given_roots(paths: Paths) -> list[Root]:
    """Return the folders that `anchord index` was given and that are in no configuration."""
    return load_cli_state(paths.cli_state_file).given_roots


def list_without_daemon(paths: Paths) -> tuple[RootAnswer, ...]:
    """Return the indexed folders, with the counts of the catalog if there is one."""
    from anchord.daemon.answers import root_answers

    found_roots = _gather_all_roots(paths)
    if not paths.catalog_file.exists():
        return root_answers(found_roots, {})
    with SqliteCatalog(paths.catalog_file, read_only=True) as catalog:
        return root_answers(found_roots, catalog.counts_by_root())


def _gather_all_roots(paths: Paths) -> list[Root]:
    return gather_roots(
        load_user_config(paths),
        _given_roots(paths),
        (),
        paths.own_folders,
    )


def _remove_from_config(paths: Paths, name: str) -> RemovedRoot:
    """Remove a root of which nothing is indexed yet.

    Raises:
        UsageError: There is no root of that name.
    """
    names = [root.name for root in _gather_all_roots(paths)]
    if name not in names:
        raise UsageError(f"no root {quote_name(name)}", f"there are: {quote_names(names)}")
    remove_root_from_config(paths.config_file, name)
    return RemovedRoot(name=name, removed_chunks=0, detached_exchanges=0)
