"""Shared settings: the number of hypothesis examples, and which files run first.

`quick` is the default; `HYPOTHESIS_PROFILE=full` (or `--hypothesis-profile=full`) tries five times as many. Tests that set
their own number of examples keep it under both. There is no deadline: no test asserts a duration.
"""

from __future__ import annotations

import gc
import os
import sys
from pathlib import Path

import pytest
from _pytest.pathlib import import_path
from hypothesis import settings
from temp_folder import use_memory, use_own_cache

pytest_plugins = ("pylance_here",)

_LONGEST_FIRST = (
    "live/test_process.py",
    "faults/test_sequences.py",
    "cli/test_backup.py",
    "embedding/workers/test_export_model.py",
    "live/test_daemon.py",
    "embedding/test_local.py",
    "faults/test_store_life.py",
    "live/test_backup.py",
    "faults/test_readiness.py",
    "embedding/test_reranker.py",
    "simulator/",
    "cli/test_detached.py",
    "test_packaging.py",
    "live/",
    "faults/",
    "cli/",
)
"""A file is run by one process (`--dist loadfile`): the long ones begin first, so that no process
is left alone with one at the end."""

# Hundreds of tests start processes: compiling 200 modules in each takes half of a start.
os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
sys.dont_write_bytecode = False

settings.register_profile("quick", max_examples=20, deadline=None)
settings.register_profile("full", max_examples=100, deadline=None)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "quick"))


def pytest_xdist_auto_num_workers() -> int:
    """Return how many processes run the tests: one more than there are cores.

    Tests wait for a quarter of their time for processes that they start.
    """
    return (os.cpu_count() or 1) + 1


# Now, so that it is deleted last: after multiprocessing, not imported yet, has deleted its own files in it.
_temp_folder = use_memory()
use_own_cache()


@pytest.hookimpl(tryfirst=True)
def pytest_configure(config: pytest.Config) -> None:
    """Write temporary files to memory; `tmp_path` has short paths there, without pytest's long names."""
    if _temp_folder:
        config.option.basetemp = config.option.basetemp or str(_temp_folder / "p")


def pytest_sessionstart(session: pytest.Session) -> None:
    """Import the test modules in another order in each process, before they are collected.

    In a fresh clone each module is rewritten and compiled by the process that comes to it first, 20 s
    of CPU in all. In the order of collection all processes would do the same at the same time.
    """
    number = os.environ.get("PYTEST_XDIST_WORKER", "").removeprefix("gw")
    if not number or session.config.args_source is not pytest.Config.ArgsSource.TESTPATHS:
        return
    files = sorted(Path(__file__).parent.rglob("test_*.py"))
    first = len(files) * int(number) // int(os.environ["PYTEST_XDIST_WORKER_COUNT"])
    for file in (*files[first:], *files[:first]):
        import_path(
            file,
            mode="importlib",
            root=session.config.rootpath,
            consider_namespace_packages=False,
        )


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Sort the tests by how long their files take; tests of a file keep their order."""
    items.sort(key=_start_rank)


def pytest_collection_finish() -> None:
    """Have the garbage collector pass over the 12,000 tests: each of its full runs took 0.5 s."""
    gc.collect()
    gc.freeze()


def _start_rank(item: pytest.Item) -> int:
    path = item.nodeid.removeprefix("tests/")
    ranks = (rank for rank, start in enumerate(_LONGEST_FIRST) if path.startswith(start))
    return next(ranks, len(_LONGEST_FIRST))
