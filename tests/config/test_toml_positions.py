"""The line number of a key, for opening an editor there."""

from __future__ import annotations

import tomllib

import pytest
import tomlkit
from hypothesis import given
from hypothesis import strategies as some

from anchord.config.schema import parse_config
from anchord.config.toml_positions import find_key_line
from anchord.errors import ConfigError

TEXT = """\
# settle_ms = 1 in a comment
version = 1

[watch]
mode = "auto"  # a word
"settle_ms"=200

[[root]]
path = "/a"
[[root]]
  path = "/b"
  kind = "project"
[kind . code]
max_chars = 900
"""


@pytest.mark.parametrize(
    ("place", "line"),
    [
        ("version", 2), ("watch", 4), ("watch.mode", 5), ("watch.settle_ms", 6), ("root.path", 9), ("root[0].path", 9),
        ("root[1].path", 11), ("root[1].kind", 12), ("root.kind", 12), ("kind.code", 13), ("kind.code.max_chars", 14),
        ("watch.nothing", 4), ("root[1].nothing", 10), ("nothing", 0), ("nothing.at.all", 0), ("", 0),
    ],
)  # fmt: skip
def test_a_key_is_found_in_its_own_table_and_else_the_table_itself(place: str, line: int) -> None:
    assert find_key_line(TEXT, place) == line


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("[watch]\n\nsettle_msx = 3\n", "c:3: unknown key `watch.settle_msx`"),
        ('[watch]\nsettle_ms = "a"\n', "c:2: watch.settle_ms: expected int, got str"),
        (
            '[[root]]\npath = "/a"\n[[root]]\npath = "/b"\nkind = "odd"\n',
            "c:5: root[1].kind: invalid enum value 'odd'",
        ),
        (
            '[[root]]\npath = "/a"\n[[root]]\nname = "b"\n',
            "c:3: root[1]: object missing required field path",
        ),
        ('[chunking]\nstrategy = "anchord"\n', "c:2: unknown strategy `anchord`"),
        ('[kind.code]\nenabled = true\nstrategy = "x"\n', "c:3: unknown strategy `x`"),
        ('[embedding]\nprovider = "openai"\n', "c:2: provider `openai` needs embedding.url"),
        (
            '[[root]]\npath = "/a"\n[[root]]\npath = ""\n',
            "c:4: root.path is not the path of a folder",
        ),
        ("version = 2\n", "c is written for a newer anchord (version 2)"),
        ("version = 0\n", "c:1: version: expected int >= 1"),
    ],
)
def test_what_is_wrong_with_a_configuration_is_reported_with_its_line(text: str, said: str) -> None:
    with pytest.raises(ConfigError) as refused:
        parse_config(text, "c")
    assert refused.value.message.startswith(said)


NAMES = some.sampled_from(["a", "b", "c-d", "e_f"])


@given(
    some.dictionaries(
        NAMES,
        some.dictionaries(NAMES, some.integers() | some.text(max_size=5), max_size=4),
        max_size=4,
    )
)
def test_in_what_a_writer_of_toml_writes_every_key_is_found_on_its_line(
    tables: dict[str, dict[str, object]],
) -> None:
    text = tomlkit.dumps(tables)
    lines = text.split("\n")
    for table, keys in tables.items():
        for key, value in keys.items():
            if "\n" not in text or not any(
                "\n" in str(each) or '"' in str(each) for each in keys.values()
            ):
                found = lines[find_key_line(text, f"{table}.{key}") - 1]
                assert tomllib.loads(found) == {key: value}
