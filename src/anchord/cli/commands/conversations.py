"""`discover`: find the conversations that assistants keep on this machine."""

from __future__ import annotations

import os
from collections.abc import Collection, Sequence
from dataclasses import asdict
from datetime import UTC, datetime
from itertools import chain
from itertools import count as numbers_from
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from anchord.cli.app import (
    JsonOption,
    app,
    ensure_paths,
    load_user_config,
    print_json,
    print_line,
    warn,
)
from anchord.cli.output.markup import escape_markup
from anchord.cli.output.prompt import confirm
from anchord.cli.output.sizes import format_bytes
from anchord.cli.parameters import Option
from anchord.config.paths import Paths
from anchord.config.roots import add_root_to_config, gather_roots
from anchord.config.schema import make_root_config
from anchord.core.counted import counted
from anchord.core.quoting import escape_gaps, escape_non_utf8, quote_name
from anchord.core.types import Root
from anchord.daemon.access import try_connect
from anchord.search.project_names import ProjectNames

if TYPE_CHECKING:
    from anchord.sources.conversations.discovery import ConversationFolder

_SHOWN_PROJECTS = 3


@app.command()
def discover(
    add: Annotated[bool, Option("--add", help="Ask for each folder whether to index it.")] = False,
    yes: Annotated[
        bool, Option("--yes", "-y", help="With --add: index all of them, without asking.")
    ] = False,
    json: JsonOption = False,
) -> None:
    """List the folders in which assistants keep conversations on this machine."""
    from anchord.sources.conversations.discovery import find_conversation_folders

    paths = ensure_paths()
    roots = _configured_roots(paths)
    folders = list(find_conversation_folders(str(Path.home()), os.environ, roots))
    if json:
        print_json([{**asdict(each), "path": escape_non_utf8(each.path)} for each in folders])
        return
    if not folders:
        warn(
            "Found no conversations in the usual folders; "
            "`anchord add FOLDER --kind conversations` indexes another folder."
        )
    _print_folders(folders)
    if add:
        _offer_to_index(paths, folders, ask=not yes)
    elif any(not folder.root for folder in folders):
        print_line("`anchord discover --add` indexes them")


def _configured_roots(paths: Paths) -> list[Root]:
    return gather_roots(load_user_config(paths), (), (), paths.own_folders)


def _print_folders(folders: Sequence[ConversationFolder]) -> None:
    width = max((len(folder.program) for folder in folders), default=0)
    for folder in folders:
        newest_s = folder.newest_ns / 1e9
        newest = datetime.fromtimestamp(newest_s, UTC).astimezone()
        transcripts = counted(folder.files, "transcript")
        size = format_bytes(folder.bytes)
        figures = f"{transcripts}, {size}, newest {newest:%Y-%m-%d}{_projects_in(folder.path)}"
        state = "[yellow]not indexed[/]"
        if folder.root:
            name = escape_markup(quote_name(folder.root))
            state = f"[green]indexed as {name}[/]"
        shown_path = escape_gaps(escape_non_utf8(folder.path))
        path = escape_markup(shown_path)
        program = f"{folder.program:<{width}}"
        print_line(f"{program}  {state}  {figures}  [dim]{path}[/]", markup=True)


def _projects_in(folder: str) -> str:
    """Return the names of projects that have a folder of their own, as far as they are known."""
    encoded = [name for name in sorted(os.listdir(folder)) if name.startswith("-")]
    name_of = ProjectNames().name_of
    names = sorted({name for each in encoded if (name := name_of("-" + each.strip("-")))})
    shown = escape_markup(", ".join(map(escape_gaps, names[:_SHOWN_PROJECTS])))
    more = f" and {len(names) - _SHOWN_PROJECTS} more" if len(names) > _SHOWN_PROJECTS else ""
    return f", of {shown}{more}" if names else ""


def _offer_to_index(paths: Paths, folders: Sequence[ConversationFolder], *, ask: bool) -> None:
    """Add each folder that is not indexed, if the user agrees."""
    taken_names = {root.name for root in _configured_roots(paths)}
    new = [folder for folder in folders if not folder.root]
    takes_all = not ask or (len(new) > 1 and confirm(f"Index all {len(new)}?", default=True))
    for folder in new:
        if takes_all or confirm(f"Index {quote_name(folder.path)}?", default=True):
            taken_names.add(_add(paths, folder, taken_names))


def _add(paths: Paths, folder: ConversationFolder, taken_names: Collection[str]) -> str:
    """Add a folder, through the daemon or to the configuration file; return its name."""
    folder_name = Path(folder.path).name
    wanted_name = f"{folder.program} {folder_name}".lower().replace(" ", "-")
    numbered_names = (f"{wanted_name}-{number}" for number in numbers_from(2))
    candidates = chain([wanted_name], numbered_names)
    name = next(candidate for candidate in candidates if candidate not in taken_names)
    client = try_connect(paths)
    if client is None:
        root_config = make_root_config(folder.path, "conversations", name)
        added = add_root_to_config(paths.config_file, (), root_config, paths.own_folders).name
    else:
        with client:
            added = client.roots_add(folder.path, kind="conversations", name=name).name
    print_line(f"added {added}")
    return added
