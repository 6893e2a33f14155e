"""A daemon that obeys file modes: root ignores them."""

from __future__ import annotations

import ctypes
import os
import shutil
import struct
import subprocess
from functools import cache

import pytest
from live.conftest import Home, until
from preloaded import PreloadedDaemon

_POWERS = "-dac_override,-dac_read_search"
_DAC_OVERRIDE, _DAC_READ_SEARCH = 1, 2
_CAPABILITIES_VERSION = 0x20080522


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
    home.process = PreloadedDaemon(
        [str(home.folder)],
        home.environment,
        home.path / "run.log",
        drop_powers if os.geteuid() == 0 else None,
    )
    until(home.answers)


def drop_powers() -> None:
    """Take from this process, which has one thread, what `weak_command` takes from a program."""
    libc = ctypes.CDLL(None, use_errno=True)
    header, sets = struct.pack("Ii", _CAPABILITIES_VERSION, 0), ctypes.create_string_buffer(24)
    assert libc.capget(header, sets) == 0, os.strerror(ctypes.get_errno())
    effective, permitted, inheritable, *high = struct.unpack("6I", sets.raw)
    kept = ~(1 << _DAC_OVERRIDE | 1 << _DAC_READ_SEARCH)
    low = (effective & kept, permitted & kept, inheritable & kept)
    assert libc.capset(header, struct.pack("6I", *low, *high)) == 0, os.strerror(ctypes.get_errno())
