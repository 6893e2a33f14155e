"""`doctor`: find what on this machine keeps anchord from working, and say what to do."""

from __future__ import annotations

import os
from itertools import chain

from anchord.cli.app import JsonOption, app, print_json, print_line
from anchord.cli.output.markup import escape_markup
from anchord.cli.registry import Exit
from anchord.config.paths import find_paths
from anchord.core.quoting import escape_non_utf8

_MARKS = {"good": "[green]good[/]", "doubtful": "[yellow]look[/]", "bad": "[bold red]BAD [/]"}


@app.command()
def doctor(json: JsonOption = False) -> None:
    """Check limits, permissions, disk, index, model, service and clock, and say what to do.

    Exits with 1 if something is bad.
    """
    from anchord.agents.connections import check_connections
    from anchord.daemon.doctor import Health, run_checks

    findings = []
    checks = run_checks(find_paths(os.environ), os.environ), check_connections(os.environ)
    for finding in chain(*checks):
        findings.append(finding)
        if json:
            continue
        mark = _MARKS[finding.health]
        observation = escape_markup(finding.observation)
        print_line(f"{mark}  [bold]{finding.name:<13}[/]  {observation}", markup=True)
        if finding.remedy:
            print_line(f"{'':21}-> {finding.remedy}")
    if json:
        print_json(
            [
                {
                    "name": finding.name,
                    "health": finding.health,
                    "what": escape_non_utf8(finding.observation),
                    "do": escape_non_utf8(finding.remedy),
                }
                for finding in findings
            ]
        )
    if any(finding.health is Health.BAD for finding in findings):
        raise Exit(1)
