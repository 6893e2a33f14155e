"""The mutation tool finds the tests of a line, kills detected mutants and lists survivors."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path

import pytest
from tools.mutants.__main__ import main
from tools.mutants.changes import mutants_of
from tools.mutants.line_tests import LineTests

TOY = '''"""A toy."""
LIMIT = 3


def is_over(number: int) -> bool:
    """Say whether a number is over the limit."""
    return number > LIMIT


def unused(number: int) -> int:
    """Nothing calls this."""
    return number + 1
'''
TESTS = """from anchord.toy import is_over


def test_it_is_over():
    assert is_over(5)
    assert not is_over(1)
"""


@pytest.fixture
def toy(tmp_path: Path) -> LineTests:
    """Give a repository of one module with one test."""
    (tmp_path / "src" / "anchord").mkdir(parents=True)
    (tmp_path / "src" / "anchord" / "__init__.py").touch()
    (tmp_path / "src" / "anchord" / "toy.py").write_text(TOY)
    (tmp_path / "tests").mkdir()
    (tmp_path / "tests" / "test_toy.py").write_text(TESTS)
    (tmp_path / "pytest.ini").write_text("[pytest]\n")
    return LineTests(tmp_path, ["toy"], tmp_path / "cache.json")


def test_each_operator_changes_what_it_names_and_neither_texts_nor_types() -> None:
    found = {(each.operator, each.replacement) for each in mutants_of("toy", TOY)}
    assert found == {
        ("constant", "4"),
        ("constant", "(2)"),
        ("comparison", "(number >= LIMIT)"),
        ("comparison", "(number <= LIMIT)"),
        ("returned None", "return None"),
        ("negated result", "return not (number > LIMIT)"),
        ("arithmetic", "(number - 1)"),
        ("constant", "2"),
        ("constant", "(0)"),
    }
    for mutant in mutants_of("toy", TOY):
        compile(mutant.apply(TOY), "toy.py", "exec")


def test_the_same_seed_draws_the_same_mutants_from_a_text_with_any_letters() -> None:
    source = 'A = 1  # "é€"\nB = not A\n'
    (negation,) = (each for each in mutants_of("toy", source) if each.operator == "removed not")
    assert negation.apply(source) == 'A = 1  # "é€"\nB = (A)\n'


@pytest.mark.usefixtures("toy")
def test_a_constant_is_run_with_the_tests_of_the_lines_that_use_it(tmp_path: Path) -> None:
    """Whichever test imported the module first says nothing about its constants."""
    limit, *_, returned = mutants_of("toy", TOY)
    assert (limit.line, limit.users, returned.users) == (2, (2, 7), None)
    lines = {"2": ["test_a.py::imports"], "7": ["test_b.py::uses"], "12": ["test_a.py::other"]}
    digest = hashlib.sha256(TOY.encode()).hexdigest()
    seconds = {"test_a.py::imports": 1.0, "test_a.py::other": 2.0, "test_b.py::uses": 3.0}
    measured = {"lines": {"toy": {"digest": digest, "tests": lines}}, "seconds": seconds}
    (tmp_path / "cache.json").write_text(json.dumps(measured))
    known = LineTests(tmp_path, ["toy"], tmp_path / "cache.json")
    rest = ["test_a.py::imports", "test_a.py::other"]
    assert known.tests_for(limit, 99.0) == ["test_b.py::uses", *rest]
    assert known.tests_for(limit, 4.5) == ["test_b.py::uses", *rest[:1]]
    assert known.tests_for(returned, 99.0) == ["test_a.py::other"]


@pytest.mark.parametrize(
    ("source", "users"),
    [
        ("A = 1\n\n\ndef f():\n    return A\n", (1, 5)),
        ("class C:\n    a: int = 1\n\n\ndef f(c):\n    return c.a\n", (2, 6)),
        ("def f(\n    a=1,\n):\n    return a\n", (4,)),
        ("def f():\n    a = 1\n    return a\n", None),
    ],
)
def test_what_an_import_runs_is_told_from_what_a_function_runs(
    source: str, users: tuple[int, ...] | None
) -> None:
    (mutant,) = (each for each in mutants_of("toy", source) if each.replacement == "2")
    assert mutant.users == users


@pytest.mark.slow
def test_mutants_are_killed_survive_or_are_not_tested(
    toy: LineTests, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """3 -> 4, 3 -> 2 and > -> >= do not change the results for 1 and 5; all other mutants do."""
    results = tmp_path / "results.jsonl"
    arguments = ["--module", "toy", "--json", str(results), "--measure", "tests"]
    assert main(arguments, toy) == 1
    recorded = [json.loads(line) for line in results.read_text().splitlines()]
    by_result: dict[str, set[str]] = {}
    for each in recorded:
        by_result.setdefault(each["result"], set()).add(each["replacement"])
    assert by_result == {
        "survived": {"4", "(2)", "(number >= LIMIT)"},
        "killed": {"(number <= LIMIT)", "return None", "return not (number > LIMIT)"},
        "untested": {"(number - 1)", "return None", "2", "(0)"},
    }
    assert {each["by"] for each in recorded} == {"", "tests/test_toy.py::test_it_is_over"}
    printed = capsys.readouterr().out
    assert "+    return (number >= LIMIT)" in printed
    assert "10 mutants, 3 killed" in printed
    assert (toy.repository / "src" / "anchord" / "toy.py").read_text() == TOY
