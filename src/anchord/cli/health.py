"""`doctor`: what on this machine keeps anchord from its work, and what to do."""

from __future__ import annotations

import os

import typer
from rich.markup import escape

from anchord.cli.frame import AsJson, app, print_json, say
from anchord.model import printable
from anchord.places import find_places

_MARKS = {"good": "[green]good[/]", "doubtful": "[yellow]look[/]", "bad": "[bold red]BAD [/]"}


@app.command()
def doctor(json: AsJson = False) -> None:
    """Check limits, permissions, disk, index, model, service and clock; say what to do. Exit 1 where something is bad."""
    from anchord.doctor import Health, examine

    found = []
    for finding in examine(find_places(os.environ), os.environ):
        found.append(finding)
        if json:
            continue
        say(f"{_MARKS[finding.health]}  [bold]{finding.name:<13}[/]  {escape(finding.what)}", markup=True)
        if finding.do:
            say(f"{'':21}-> {finding.do}")
    if json:
        print_json(
            [
                {"name": each.name, "health": each.health, "what": printable(each.what), "do": printable(each.do)}
                for each in found
            ]
        )
    if any(each.health is Health.BAD for each in found):
        raise typer.Exit(1)
