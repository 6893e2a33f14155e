"""`discover`: the conversations that assistants have left on this machine."""

from __future__ import annotations

import os
from collections.abc import Collection
from dataclasses import asdict
from datetime import UTC, datetime
from itertools import chain, count
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.markup import escape

from anchord.asking import connect
from anchord.cli.frame import AsJson, app, configuration, places, print_json, say, warn
from anchord.config import root_config
from anchord.model import printable
from anchord.places import Places
from anchord.roots import add_to_config, gather_roots

if TYPE_CHECKING:
    from anchord.discovery import Discovered


@app.command()
def discover(
    add: Annotated[bool, typer.Option("--add", help="Offer each as a root; nothing is added without a yes.")] = False,
    yes: Annotated[bool, typer.Option("--yes", "-y", help="With --add: add all of them.")] = False,
    json: AsJson = False,
) -> None:
    """List the folders in which assistants keep conversations on this machine; adds nothing by itself."""
    from anchord.discovery import discover as look

    of = places()
    found = list(look(str(Path.home()), os.environ, gather_roots(configuration(of), (), (), of.own)))
    if json:
        print_json([{**asdict(each), "path": printable(each.path)} for each in found])
        return
    if not found:
        warn("no conversations are kept in the usual places; `anchord add FOLDER --kind conversations` adds another")
    width = max((len(each.program) for each in found), default=0)
    for each in found:
        say(_line(each, width), markup=True)
    if add:
        names = {root.name for root in gather_roots(configuration(of), (), (), of.own)}
        for each in found:
            if not each.root and (yes or typer.confirm(f"index {printable(each.path)}?")):
                names.add(_add(of, each, names))
    elif any(not each.root for each in found):
        say("`anchord discover --add` offers them as roots")


def _line(each: Discovered, width: int) -> str:
    newest = datetime.fromtimestamp(each.newest_ns / 1e9, UTC).astimezone().strftime("%Y-%m-%d")
    state = f"[green]root {escape(each.root)}[/]" if each.root else "[yellow]not indexed[/]"
    figures = f"{each.files} files, {each.bytes / 1e6:.1f} MB, newest {newest}"
    return f"{each.program:<{width}}  {state}  {figures}  [dim]{escape(printable(each.path))}[/]"


def _add(of: Places, each: Discovered, taken: Collection[str]) -> str:
    """Make a folder a root; return its name."""
    first = f"{each.program} {Path(each.path).name}".lower().replace(" ", "-")
    name = next(name for name in chain([first], (f"{first}-{n}" for n in count(2))) if name not in taken)
    client = connect(of)
    if client is None:
        added = add_to_config(of.config, (), root_config(each.path, "conversations", name), of.own).name
    else:
        with client:
            added = client.call("roots.add", path=each.path, kind="conversations", name=name)["name"]
    say(f"added {added}")
    return str(added)
