"""A daemon that obeys file modes: root ignores them."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from functools import cache

import pytest
from live.conftest import Home, until

_POWERS = "-dac_override,-dac_read_search"


@cache
def _before() -> tuple[str, ...] | None:
    """Return the prefix that runs a command without root's capabilities; None if there is none."""
    if os.geteuid() != 0:
        return ()
    found = shutil.which("setpriv")
    if found is None:
        return None
    words = (found, f"--bounding-set={_POWERS}", f"--inh-caps={_POWERS}")
    return (
        words
        if subprocess.run([*words, "true"], check=False, capture_output=True).returncode == 0
        else None
    )


needs_weakness = pytest.mark.skipif(
    _before() is None, reason="root's power over file modes cannot be taken from a program here"
)


def weak_command() -> tuple[str, ...]:
    """Return the prefix that runs a command without root's power over file modes."""
    words = _before()
    assert words is not None
    return words


def run_weak(home: Home) -> None:
    """Start the daemon without root's power over file modes, and wait until it answers."""
    words = weak_command()
    with (home.path / "run.log").open("ab") as log:
        home.process = subprocess.Popen(
            [*words, sys.executable, "-m", "anchord", "run", str(home.folder)],
            env=home.environment, stdout=log, stderr=log, stdin=subprocess.DEVNULL,
        )  # fmt: skip
    until(home.answers)
