"""Runs the tests of a mutant on a copy of `src/`, in a process that has most imports already."""

from __future__ import annotations

import multiprocessing
import os
import re
import signal
import sys
import tempfile
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict
from pathlib import Path
from typing import Any

import pytest
from tools.mutants.changes import Mutant
from tools.mutants.line_tests import PYTEST

_PRELOADED = ["pytest", "hypothesis", "pydantic", "numpy", "pyarrow", "xdist", "structlog"]
_TEST_TIMEOUT_S = 45
_RUN_TIMEOUT_S = 180
_SLOW_TEST_S = 3.0
"""A test that takes longer may fail for its load: it kills only if it passes without the mutant."""


def prepare() -> None:
    """Have later runs start from a process with the imports that take longest."""
    multiprocessing.get_context("forkserver").set_forkserver_preload(_PRELOADED)


def run_mutant(
    mutant: Mutant, tests: Sequence[str], folders: tuple[Path, Path], seconds: Mapping[str, float]
) -> dict[str, Any]:
    """Run the tests of a mutant.

    Args:
        mutant: What to change.
        tests: Ids of tests, in the order in which they run.
        folders: The repository; and a copy of its `src` that no other run uses. The copy is
            unchanged afterwards.
        seconds: Test -> how long it takes.

    Returns:
        The mutant, its `result` (survived, killed, timed out, undecided or untested), and `by`, the
        test that noticed it.
    """
    repository, sources = folders
    file = sources / "anchord" / f"{mutant.module}.py"
    original = file.read_text("utf-8")
    record = {**asdict(mutant), "name": mutant.name, "tests": len(tests), "by": ""}
    record["diff"] = mutant.diff(original)
    if not tests:
        return {**record, "result": "untested"}
    changed = mutant.apply(original)
    try:
        compile(changed, file.name, "exec")
        file.write_text(changed, "utf-8")
        _forget_bytecode(file)
        result, by = run_tests(tests, repository, sources)
    except SyntaxError:
        return {**record, "result": "killed", "by": "the compiler"}
    finally:
        file.write_text(original, "utf-8")
        _forget_bytecode(file)
    # A test that is slow may have failed for the machine's load.
    is_slow = seconds.get(by.split("[")[0], 0.0) > _SLOW_TEST_S
    if by and is_slow and run_tests([by], repository, sources)[0] != "survived":
        result = "undecided"
    return {**record, "result": result, "by": by}


def run_tests(tests: Sequence[str], repository: Path, sources: Path) -> tuple[str, str]:
    """Run tests until one fails.

    Returns:
        The result, and the id of the test that failed.

    Raises:
        RuntimeError: The tests could not be run.
    """
    context = multiprocessing.get_context("forkserver")
    with tempfile.NamedTemporaryFile("r", suffix=".out") as output:
        arguments = (list(tests), str(repository), str(sources), output.name)
        child = context.Process(target=_pytest, args=arguments)
        child.start()
        child.join(_RUN_TIMEOUT_S)
        with suppress(ProcessLookupError):
            os.killpg(child.pid or 0, signal.SIGKILL)
        child.join()
        said = output.read()
    if child.exitcode == -signal.SIGKILL:
        return "timed out", ""
    failed = re.findall(r"^(?:FAILED|ERROR) (\S+)", said, re.MULTILINE)
    if "Error while loading conftest" in said:
        failed = ["an import"]
    if child.exitcode not in {0, pytest.ExitCode.INTERRUPTED} and not failed:
        raise RuntimeError(said[-2000:])
    return ("killed" if child.exitcode else "survived"), (failed or [""])[0]


def _pytest(tests: list[str], repository: str, sources: str, output: str) -> None:
    """Run tests in this process, and end it."""
    os.setsid()
    with Path(output).open("w") as file:
        os.dup2(file.fileno(), 1)
        os.dup2(file.fileno(), 2)
    os.chdir(repository)
    os.environ["PYTHONPATH"] = sources
    os.environ["HYPOTHESIS_STORAGE_DIRECTORY"] = f"{sources}/hypothesis"
    sys.path.insert(0, sources)
    options = ["-x", "--hypothesis-seed=0", f"--timeout={_TEST_TIMEOUT_S}"]
    options.append(f"--basetemp={sources}-tmp")
    options += ["-W", "ignore::pytest.PytestAssertRewriteWarning"]  # Preloaded plugins.
    os._exit(pytest.main([*PYTEST, *options, *tests], plugins=[_InOrder(tests)]))


class _InOrder:
    """Has pytest run tests as they were given: `conftest.py` sorts the slow ones to the front."""

    def __init__(self, tests: Sequence[str]) -> None:
        self._ranks = {test: rank for rank, test in enumerate(tests)}

    @pytest.hookimpl(trylast=True)
    def pytest_collection_modifyitems(self, items: list[pytest.Item]) -> None:
        items.sort(key=lambda item: self._ranks.get(item.nodeid.split("[")[0], 0))


def _forget_bytecode(file: Path) -> None:
    """Delete the bytecode of a module: its time and size may be the same after a change."""
    for compiled in (file.parent / "__pycache__").glob(f"{file.stem}.*"):
        compiled.unlink()
