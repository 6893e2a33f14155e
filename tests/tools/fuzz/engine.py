"""One target under libFuzzer, in a process of its own: `fuzz.py` starts it and reads what it prints. The only user of atheris.

A violated law does not end the run: the input is stored, the defect is named once, and the search continues. Only what cannot be
caught (a hang, too much memory, a crash) ends the process; libFuzzer then writes the input itself.
"""

from __future__ import annotations

import argparse
import sys
import traceback
import zlib
from collections.abc import Callable
from pathlib import Path
from random import Random

if __name__ == "__main__":
    sys.path[0] = str(Path(__file__).resolve().parents[2])

import atheris
from tools.fuzz.mutations import mutate

with atheris.instrument_imports(include=["anchord"]):
    from tools.fuzz.laws import signature
    from tools.fuzz.registry import TARGETS, found

DEFECT = "DEFECT "
_LIBFUZZERS_SHARE = 0.4


def main() -> None:
    """Fuzz until the time is over; libFuzzer ends the process."""
    asked = argparse.ArgumentParser()
    asked.add_argument("target", choices=TARGETS)
    asked.add_argument("defects", type=Path, help="folder for inputs that break a law")
    given, options = asked.parse_known_args()
    target = TARGETS[given.target]
    watched = _Watched(target.tried, given.defects)
    for file in found(given.target):
        watched.learn(file.read_bytes())
    others = target.seeds

    def changed(data: bytes, longest: int, seed: int) -> bytes:
        choose = Random(seed)  # noqa: S311 - reproducible on purpose
        if choose.random() < _LIBFUZZERS_SHARE:
            return bytes(atheris.Mutate(data, longest))
        return mutate(data, choose, others)[:longest]

    atheris.Setup([sys.argv[0], *options], watched, custom_mutator=changed)
    atheris.Fuzz()


class _Watched:
    """A target that keeps the first input of each defect and raises nothing."""

    def __init__(self, run: Callable[[bytes], None], folder: Path) -> None:
        self._run, self._folder = run, folder
        self._seen: set[str] = set()

    def learn(self, data: bytes) -> None:
        """Add a known defect."""
        try:
            self._run(data)
        except Exception as error:  # noqa: BLE001 - whatever a target raises is its defect
            self._seen.add(signature(error))

    def __call__(self, data: bytes) -> None:
        try:
            self._run(data)
        except Exception as error:  # noqa: BLE001 - likewise
            name = signature(error)
            if name not in self._seen:
                self._seen.add(name)
                self._keep(name, data, error)

    def _keep(self, name: str, data: bytes, error: Exception) -> None:
        slug = "-".join("".join(letter if letter.isalnum() else " " for letter in name).split())[
            :80
        ]
        file = self._folder / f"{slug}-{zlib.crc32(data):08x}"
        file.write_bytes(data)
        sys.stderr.write("".join(traceback.format_exception(error)))
        sys.stderr.write(f"{DEFECT}{name}\t{file}\n")
        sys.stderr.flush()


if __name__ == "__main__":
    main()
