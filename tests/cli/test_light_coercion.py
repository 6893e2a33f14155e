"""Arguments are converted as typer converts them; plain types need no pydantic."""

from __future__ import annotations

import json
import subprocess
import sys
from typing import Any

import pytest
import typer
from hypothesis import given
from hypothesis import strategies as st
from typer import core
from typer._coercion import build_runtime_param, resolve_type_descriptor
from typer.models import OptionInfo

from anchord.cli import light_coercion

TEXTS = st.text() | st.integers().map(str) | st.floats().map(str) | st.sampled_from(
    ["", "0", "-0", "007", "1_000", "+3", " 4", "1e3", "3.5", ".5", "5.", "nan", "inf", "true", "off"]
)  # fmt: skip
PLAIN = st.integers() | st.floats(allow_nan=False) | st.booleans()


def outcome(convert: Any, annotation: Any, rules: OptionInfo, value: Any) -> object:  # noqa: ANN401 - of both converters
    descriptor = resolve_type_descriptor(annotation, rules)
    try:
        result = convert(descriptor)._coerce_value(value, None, None)
    except typer.BadParameter as error:
        return "refused", error.message
    return type(result).__name__, repr(result)


@given(
    annotation=st.sampled_from([str, int, float, bool]),
    limits=st.sampled_from([(None, None), (1, 100), (0, None), (None, 5)]),
    value=TEXTS | PLAIN,
)
def test_a_value_becomes_what_typer_makes_of_it(
    annotation: type[object], limits: tuple[int | None, int | None], value: object
) -> None:
    rules = OptionInfo(min=limits[0], max=limits[1])
    own = outcome(light_coercion._build_runtime_param, annotation, rules, value)
    assert own == outcome(build_runtime_param, annotation, rules, value)


@given(values=st.lists(TEXTS).map(tuple), annotation=st.sampled_from([list[str], list[int]]))
def test_so_does_a_list(annotation: type[object], values: tuple[str, ...]) -> None:
    own = outcome(light_coercion._build_runtime_param, annotation, OptionInfo(), values)
    assert own == outcome(build_runtime_param, annotation, OptionInfo(), values)


def test_typer_has_the_place_where_it_is_installed() -> None:
    """If it is missing, commands are only slower: check the new version of typer."""
    light_coercion.install()
    assert vars(core)["build_runtime_param"] is light_coercion._build_runtime_param


@pytest.mark.parametrize("arguments", [["status"], ["sync"], ["--version"]])
def test_a_command_that_only_talks_to_the_socket_loads_no_heavy_library(
    tmp_path_factory: pytest.TempPathFactory, arguments: list[str]
) -> None:
    program = """
import json, runpy, sys
from contextlib import suppress
with suppress(SystemExit):
    runpy.run_module("anchord", run_name="__main__")
heavy = [name for name in ("lancedb", "pydantic", "numpy", "tomlkit", "rich") if name in sys.modules]
print(json.dumps(heavy))
"""
    home = tmp_path_factory.mktemp("h")
    home.chmod(0o700)
    answer = subprocess.run(
        [sys.executable, "-c", program, *arguments],
        env={"ANCHORD_HOME": str(home), "PATH": ""}, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert json.loads(answer.stdout.splitlines()[-1]) == []
