"""Which tests execute which line, and how long they take: measured once, kept outside the repository."""

from __future__ import annotations

import hashlib
import json
import os
import re
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import coverage
from tools.mutants.changes import Mutant

PYTEST = ["-n", "0", "--dist", "no", "-q", "-p", "no:cacheprovider", "--durations-min=0"]


class LineTests:
    """The tests of each line of some modules of a repository."""

    def __init__(self, repository: Path, modules: Sequence[str], cache_file: Path) -> None:
        """Read what was measured before, if anything was.

        Args:
            repository: The folder with `src/` and `tests/`.
            modules: Modules below `src/anchord`, without suffix.
            cache_file: Where measurements are kept.
        """
        self.repository = repository
        self._modules = modules
        self._cache_file = cache_file
        cache = json.loads(cache_file.read_text()) if cache_file.exists() else {}
        self._lines: dict[str, Any] = cache.get("lines", {})
        """Module -> digest of its source, and line -> the tests that execute it."""
        self.seconds: dict[str, float] = cache.get("seconds", {})
        """Test -> how long it takes; a parametrized test is one."""

    def file_of(self, module: str) -> Path:
        """Return a module's file."""
        return self.repository / "src" / "anchord" / f"{module}.py"

    def measure(self, tests: Sequence[str]) -> list[str]:
        """Run tests with coverage; what is known of them is replaced.

        Args:
            tests: Files or folders, relative to the repository.

        Returns:
            The tests that failed: they are left out.
        """
        with tempfile.TemporaryDirectory() as folder:
            settings, data_file = Path(folder) / "settings", Path(folder) / "data"
            settings.write_text("[run]\nsource_pkgs = anchord\nbranch = False\n")
            options = ["--cov", f"--cov-config={settings}", "--cov-context=test", "--cov-report="]
            done = subprocess.run(
                [sys.executable, "-m", "pytest", *PYTEST, *options, "-vv", "--durations=0", *tests],
                cwd=self.repository,
                env={
                    **os.environ,
                    "COVERAGE_FILE": str(data_file),
                    "PYTHONPATH": str(self.repository / "src"),
                },
                stdout=subprocess.PIPE,
                text=True,
                check=False,
            )
            return self.add(done.stdout, data_file, tests)

    def add(self, output: str, data_file: Path, tests: Sequence[str]) -> list[str]:
        """Store the durations in pytest's output, and the lines in coverage's data.

        Returns:
            The tests that failed.
        """
        starts = tuple(tests)
        seconds = {
            test: taken for test, taken in self.seconds.items() if not test.startswith(starts)
        }
        durations = r"^([\d.]+)s (?:call|setup|teardown) +(\S+?)(?:\[|$)"
        for taken, test in re.findall(durations, output, re.MULTILINE):
            seconds[test] = seconds.get(test, 0.0) + float(taken)
        failed = set(re.findall(r"^(?:FAILED|ERROR) ([^\s\[]+)", output, re.MULTILINE))
        self.seconds = {test: taken for test, taken in seconds.items() if test not in failed}
        data = coverage.CoverageData(str(data_file))
        data.read()
        for module in self._modules:
            self._add_lines(module, data, starts)
        self._cache_file.parent.mkdir(parents=True, exist_ok=True)
        cache = {"lines": self._lines, "seconds": self.seconds}
        self._cache_file.write_text(json.dumps(cache))
        return sorted(failed)

    def _add_lines(self, module: str, data: coverage.CoverageData, starts: tuple[str, ...]) -> None:
        source = self.file_of(module)
        by_line = {
            line: [test for test in known if not test.startswith(starts)]
            for line, known in self._known(module).items()
        }
        for line, contexts in data.contexts_by_lineno(str(source)).items():
            names = {re.split(r"[\[|]", each)[0] for each in contexts if each}
            known = {*by_line.get(str(line), []), *names}
            by_line[str(line)] = sorted(known & self.seconds.keys())
        self._lines[module] = {"digest": _digest(source), "tests": by_line}

    def _known(self, module: str) -> dict[str, list[str]]:
        """Return the tests by line; none if the module changed since it was measured."""
        known: dict[str, Any] = self._lines.get(module, {})
        is_current = known.get("digest") == _digest(self.file_of(module))
        return known["tests"] if is_current else {}

    def tests_for(self, mutant: Mutant, budget_s: float) -> list[str]:
        """Return the tests that execute the mutated statement, fastest first, up to a total time.

        Of a line that an import executes, these are the tests of the lines that use it, and then
        every test in the files that test the module; so also for a module that changed since it was
        measured. A line that nothing executes has no tests.
        """
        by_line = self._known(mutant.module)
        lines = [str(line) for line in range(mutant.lines[0], mutant.lines[1] + 1)]
        if by_line and not by_line.keys() & set(lines):
            return []
        if mutant.users is not None:
            lines = [
                str(line) for line in mutant.users if not mutant.lines[0] <= line <= mutant.lines[1]
            ]
        first = {test for line in lines for test in by_line.get(line, [])}
        tests = first
        if not tests or mutant.users is not None:
            tests = first | self._tests_of_module(mutant.module)
        chosen: list[str] = []
        total = 0.0
        for test in sorted(tests, key=lambda each: (each not in first, self.seconds[each], each)):
            total += self.seconds[test]
            if total > budget_s and chosen:
                break
            chosen.append(test)
        return chosen

    def _tests_of_module(self, module: str) -> set[str]:
        measured: Mapping[str, list[str]] = self._lines.get(module, {}).get("tests", {})
        files = {test.split("::")[0] for tests in measured.values() for test in tests}
        return {test for test in self.seconds if test.split("::")[0] in files}


def _digest(file: Path) -> str:
    return hashlib.sha256(file.read_bytes()).hexdigest()
