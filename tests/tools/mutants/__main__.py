"""Mutation testing of the modules that carry anchord's promises: docs/testing.md has the commands.

Draws mutants at random, with a seed, from `MODULES`; runs, for each, the tests that execute the
mutated line, fastest first, in a copy of `src/`; lists the mutants that no test noticed.

Why no tool of others: by their documentation, mutmut 3 and cosmic-ray run all mutants of a module,
in order, and draw no seeded sample across modules. Neither was tried here. There are about 4,090
mutants, of which two cores run some 60 in half an hour.
"""

from __future__ import annotations

import argparse
import json
import random
import shutil
import sys
import tempfile
from collections import Counter
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from queue import SimpleQueue
from typing import Any

if __name__ == "__main__":
    sys.path[0] = str(Path(__file__).resolve().parents[2])

from tools.mutants import running
from tools.mutants.changes import Mutant, mutants_of
from tools.mutants.line_tests import LineTests

REPOSITORY = Path(__file__).resolve().parents[3]
CACHE_FILE = Path.home() / ".cache" / "anchord-mutants.json"
MODULES = [
    "chunking/engine/anchored_cut",
    "chunking/engine/cheapest_cuts",
    "core/change_detection",
    "core/debounce",
    "core/deletion_guard",
    "core/diff",
    "core/ids",
    "core/sqlite_errors",
    "daemon/readiness",
    "daemon/writer/backoff",
    "daemon/writer/deletions",
    "daemon/writer/generation_builds",
    "daemon/writer/index_check",
    "daemon/writer/jobs",
    "daemon/writer/loop",
    "daemon/writer/maintenance",
    "daemon/writer/page_check",
    "daemon/writer/sync_barrier",
    "daemon/writer/work_queue",
    "index/archive_recovery",
    "index/clean_shutdown",
    "index/commit",
    "index/file_planner",
    "index/generation",
    "index/indexer",
    "index/lost_exchanges",
    "index/integrity/purge",
    "index/integrity/repair",
    "index/integrity/table_repair",
    "index/integrity/verify",
    "index/reconcile",
    "index/recovery",
    "search/copies",
    "search/packing",
    "search/passages",
    "sources/conversations/archive/detached",
    "sources/conversations/archive/path_lookup",
    "sources/conversations/archive/reader",
    "sources/conversations/archive/salvage",
    "sources/conversations/archive/writer",
    "sources/files/wildmatch",
    "sources/files/ignore_patterns",
    "sources/files/ignore_rules",
    "store/backup/check",
    "store/backup/copying",
    "store/backup/restore",
    "store/backup/snapshot",
    "store/catalog/catalog",
    "store/crash_journal",
    "store/writer_lock",
]
"""The modules that carry promises, below `src/anchord`."""
TESTS = [
    "tests/chunking/engine",
    "tests/chunking/test_edge_cases.py",
    "tests/chunking/test_laws.py",
    "tests/chunking/test_seeds.py",
    "tests/cli/test_backup.py",
    "tests/cli/test_detached.py",
    "tests/cli/test_offline.py",
    "tests/contracts",
    "tests/conversations",
    "tests/core",
    "tests/daemon",
    "tests/faults/test_damaged_archive.py",
    "tests/faults/test_editors.py",
    "tests/faults/test_generations.py",
    "tests/faults/test_hostile.py",
    "tests/faults/test_lanes.py",
    "tests/faults/test_readiness.py",
    "tests/faults/test_roots.py",
    "tests/faults/test_store_life.py",
    "tests/faults/test_watching.py",
    "tests/faults/test_worded.py",
    "tests/index",
    "tests/scenarios",
    "tests/search/test_copies.py",
    "tests/search/test_groups.py",
    "tests/search/test_match_line.py",
    "tests/search/test_packing.py",
    "tests/search/test_ranking.py",
    "tests/sources/conversations/archive",
    "tests/sources/files",
    "tests/store",
    "tests/upgrades",
]
"""The tests that run these modules in their own process."""
_DONE = {"killed", "timed out", "survived"}


def main(arguments: Sequence[str], line_tests: LineTests | None = None) -> int:
    """Draw mutants and run them; return 1 if one survived."""
    parser = argparse.ArgumentParser(prog="mutants", description=(__doc__ or "").split("\n")[0])
    parser.add_argument("--seed", type=int, default=1, help="what the sample is drawn with")
    parser.add_argument("--count", type=int, default=120, help="how many mutants are drawn")
    parser.add_argument("--module", action="append", help="draw from these, not from all")
    parser.add_argument("--jobs", type=int, default=2, help="how many run at once")
    parser.add_argument("--budget", type=float, default=30, help="seconds of tests for a mutant")
    parser.add_argument("--json", type=Path, help="where the results are written, one a line")
    parser.add_argument("--resume", action="store_true", help="keep the results in --json")
    parser.add_argument("--measure", nargs="*", metavar="TESTS", help="first measure these tests")
    options = parser.parse_args(arguments)
    line_tests = line_tests or LineTests(REPOSITORY, MODULES, CACHE_FILE)
    if options.measure is not None:
        failed = line_tests.measure(options.measure or TESTS)
        _say(f"{len(line_tests.seconds)} tests are known; left out, because they fail: {failed}")
    results = _run(options, line_tests)
    for module in sorted({each["module"] for each in results}):
        counts = Counter(each["result"] for each in results if each["module"] == module)
        _say(f"{module:50} " + ", ".join(f"{name} {n}" for name, n in sorted(counts.items())))
    living = [each for each in results if each["result"] not in {"killed", "timed out"}]
    for each in living:
        _say(f"\n{each['result']} ({each['tests']} tests), {each['operator']}\n{each['diff']}")
    _say(f"\nseed {options.seed}: {len(results)} mutants, {len(results) - len(living)} killed")
    return bool(living)


def _run(options: argparse.Namespace, line_tests: LineTests) -> list[dict[str, Any]]:
    """Run the drawn mutants, each worker in its own copy of `src`."""
    everything = [
        mutant
        for module in options.module or MODULES
        for mutant in mutants_of(module, line_tests.file_of(module).read_text("utf-8"))
    ]
    dice = random.Random(options.seed)  # noqa: S311 - a sample
    drawn = dice.sample(everything, min(options.count, len(everything)))
    results: dict[str, dict[str, Any]] = {}
    if options.resume and options.json.exists():
        earlier = map(json.loads, options.json.read_text().splitlines())
        results = {each["name"]: each for each in earlier if each["result"] in _DONE}
    copies = SimpleQueue[Path]()
    running.prepare()
    with tempfile.TemporaryDirectory() as folder, ThreadPoolExecutor(options.jobs) as pool:
        for number in range(options.jobs):
            target = Path(folder) / str(number)
            copies.put(Path(shutil.copytree(line_tests.repository / "src", target)))

        def run(mutant: Mutant) -> None:
            folders = (line_tests.repository, copies.get())
            tests = line_tests.tests_for(mutant, options.budget)
            record = running.run_mutant(mutant, tests, folders, line_tests.seconds)
            copies.put(folders[1])
            results[mutant.name] = record
            if options.json:
                with options.json.open("a") as file:
                    file.write(json.dumps(record) + "\n")

        list(pool.map(run, [each for each in drawn if each.name not in results]))
    return [results[each.name] for each in drawn]


def _say(text: str) -> None:
    sys.stdout.write(f"{text}\n")
    sys.stdout.flush()


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
