"""Every fuzz target on its seeds, on all earlier findings and on some hundred mutations, reproducibly.

`tests/tools/fuzz/fuzz.py` searches for more, with atheris; nothing here needs it.
"""

from __future__ import annotations

from functools import cache
from pathlib import Path
from random import Random

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tools.fuzz.laws import hold, signature
from tools.fuzz.mutations import mutate
from tools.fuzz.registry import TARGETS, found, known
from tools.fuzz.shrinking import defect, shrink

_PATIENCE_S = 30
"""Timeout per input; no input takes more than 2 s on a busy machine."""

UNTIMED = {name: target for name, target in TARGETS.items() if name != "lengths"}
"""All targets but `lengths`, which measures time: `fuzz.py lengths` runs it."""
SEEDS = [
    pytest.param(name, seed, id=f"{name}-{place}")
    for name, target in UNTIMED.items()
    for place, seed in enumerate(target.seeds)
]
FOUND = [
    pytest.param(
        name,
        file,
        id=f"{name}-{file.name}",
        marks=[pytest.mark.xfail(strict=True, reason=known()[key])]
        if (key := f"{name}/{file.name}") in known()
        else [],
    )
    for name in UNTIMED
    for file in found(name)
]


@pytest.mark.parametrize(("name", "seed"), SEEDS)
def test_a_seed_keeps_the_laws(name: str, seed: bytes) -> None:
    _keep(name, seed)


@pytest.mark.timeout(_PATIENCE_S)
@pytest.mark.parametrize(("name", "file"), FOUND)
def test_what_was_found_keeps_the_laws(name: str, file: Path) -> None:
    TARGETS[name].run(file.read_bytes())


@pytest.mark.parametrize("name", UNTIMED)
def test_changed_seeds_keep_the_laws(name: str) -> None:
    target = TARGETS[name]

    @settings(
        max_examples=target.examples,
        derandomize=True,
        database=None,
        deadline=None,
        suppress_health_check=list(HealthCheck),
    )
    @given(seed=st.sampled_from(target.seeds), choose=st.randoms(use_true_random=True))
    def law(seed: bytes, choose: Random) -> None:
        _keep(name, mutate(seed, choose, target.seeds)[: target.longest])

    law()


def _keep(name: str, data: bytes) -> None:
    """Run an input; a known open defect has its own test."""
    try:
        TARGETS[name].tried(data)
    except Exception as error:
        if signature(error) not in _unmended(name):
            raise


@cache
def _unmended(name: str) -> frozenset[str]:
    """Return the names of a target's known open defects."""
    files = [file for file in found(name) if f"{name}/{file.name}" in known()]
    return frozenset(defect(TARGETS[name].tried, file.read_bytes()) for file in files)


def test_every_reason_belongs_to_an_input() -> None:
    assert known().keys() <= {f"{name}/{file.name}" for name in TARGETS for file in found(name)}


def test_a_broken_law_is_named_and_its_input_made_smaller() -> None:
    def run(data: bytes) -> None:
        hold(data.count(b"x") < 2, "no two of them", data)

    assert defect(run, b"a") == ""
    assert defect(run, b"axbxc" * 9) == "no two of them"
    assert shrink(run, b"axbxc" * 9) == b"xx"
