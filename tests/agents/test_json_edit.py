"""An edit of a JSON text keeps everything else, and its removal gives back the same bytes."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from anchord.agents.json_edit import append, find_value, insert, remove
from anchord.agents.json_text import JsonTextError, parse

PATH = ("mcpServers", "anchord")
ENTRY = {"command": "/opt/anchord", "args": ["mcp"], "env": {"ANCHORD_HOME": '/ü "x'}}
KEYS = st.sampled_from(["mcpServers", "a", "b", "c d", "é", "other"])
SCALARS = st.sampled_from([None, True, 0, -1.5, "", "//", "/* x */", "a,}", '"', "\\", "\n"])
VALUES = st.recursive(
    SCALARS,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(KEYS, inner, max_size=3),
    max_leaves=8,
)
DOCUMENTS = st.dictionaries(KEYS.filter(lambda key: key != "mcpServers"), VALUES, max_size=4)
SERVERS = st.none() | st.dictionaries(st.sampled_from(["x", "y"]), VALUES, max_size=2)


@st.composite
def texts(draw: st.DrawFn) -> str:
    """Return a document in any style: comments, trailing commas, line ends, tabs, a mark."""
    value: dict[str, Any] = draw(DOCUMENTS)
    servers = draw(SERVERS)
    if servers is not None:
        value["mcpServers"] = servers
    newline = draw(st.sampled_from(["\n", "\r\n"]))
    blanks = st.sampled_from(
        [
            "",
            "",
            " ",
            "\t",
            newline,
            f"{newline}  ",
            f" // c,}}{newline}",
            " /* { */ ",
            f"/*{newline}*/",
            f"//  {newline}\t",
        ]
    )

    def write(value: Any) -> str:  # noqa: ANN401 - any JSON value
        if not isinstance(value, dict | list):
            return json.dumps(value, ensure_ascii=False)
        labels = (
            [f"{json.dumps(key, ensure_ascii=False)}{draw(blanks)}:{draw(blanks)}" for key in value]
            if isinstance(value, dict)
            else [""] * len(value)
        )
        inner = value.values() if isinstance(value, dict) else value
        items = [
            draw(blanks) + label + write(each) + draw(blanks)
            for label, each in zip(labels, inner, strict=True)
        ]
        has_comma: bool = draw(st.booleans())
        comma = "," + draw(blanks) if items and has_comma else ""
        body = ",".join(items) + comma or draw(blanks)
        return "{" + body + "}" if isinstance(value, dict) else "[" + body + "]"

    return draw(st.sampled_from(["", "\ufeff"])) + draw(blanks) + write(value) + draw(blanks)


def value_of(text: str) -> Any:  # noqa: ANN401 - any JSON value
    root = parse(text)
    return root.value() if root else None


@settings(max_examples=60)
@given(text=texts())
@example(text="{}")
@example(text="{\n}")
@example(text='{"mcpServers": {}}')
@example(text='{"a": 1 // c  \n}')
@example(text="// only\n")
@example(text="")
@example(text="\ufeff")
def test_what_was_inserted_is_removed_to_the_byte(text: str) -> None:
    longer = insert(text, PATH, ENTRY)
    assert remove(longer, PATH, text) == text


@settings(max_examples=60)
@given(text=texts())
def test_an_insertion_changes_the_value_in_one_place_and_keeps_every_comment(text: str) -> None:
    longer = insert(text, PATH, ENTRY)
    wanted = value_of(text)
    wanted.setdefault("mcpServers", {})["anchord"] = ENTRY
    assert value_of(longer) == wanted
    assert find_value(longer, PATH) == ENTRY
    left = iter(longer)
    assert all(char in left for char in text), "something of the text is gone"
    assert insert(longer, PATH, ENTRY) == longer or value_of(insert(longer, PATH, ENTRY)) == wanted


@settings(max_examples=60)
@given(text=texts())
def test_without_the_earlier_text_the_value_is_the_same_but_for_empty_objects(text: str) -> None:
    shorter = value_of(remove(insert(text, PATH, ENTRY), PATH))
    wanted = value_of(text)
    if not wanted.get("mcpServers", True):
        del wanted["mcpServers"]
    assert shorter == wanted


@settings(max_examples=60)
@given(text=texts())
def test_an_item_is_appended_and_removed_to_the_byte(text: str) -> None:
    path = ("hooks", "SessionStart")
    once = append(text, path, {"n": 1})
    twice = append(once, path, {"n": 2})
    assert find_value(twice, path) == [{"n": 1}, {"n": 2}]
    assert remove(twice, (*path, 1), once) == once
    assert remove(once, (*path, 0), text) == text


@settings(max_examples=60)
@given(text=texts(), later=KEYS)
def test_what_others_add_meanwhile_stays(text: str, later: str) -> None:
    changed = insert(insert(text, PATH, ENTRY), ("later", later), 7)
    shorter = value_of(remove(changed, PATH, text))
    assert shorter == value_of(text) | {"later": {later: 7}}


def test_the_style_of_the_text_is_followed() -> None:
    text = '{\r\n\t"mcpServers": {\r\n\t\t"x": {} // mine\r\n\t\t// end\r\n\t},\r\n}\r\n'
    assert insert(text, PATH, {"args": ["mcp"]}) == (
        '{\r\n\t"mcpServers": {\r\n\t\t"x": {}, // mine\r\n\t\t"anchord": {\r\n\t\t\t"args": [\r\n\t\t\t\t"mcp"\r\n\t\t\t]\r\n\t\t}'
        "\r\n\t\t// end\r\n\t},\r\n}\r\n"
    )
    assert insert('{"a": 1}', ("b",), {"c": 2}) == '{"a": 1, "b": {"c": 2}}'
    assert insert("{}\n", ("b",), 1) == '{\n  "b": 1\n}\n'


def test_a_value_is_replaced_in_its_place() -> None:
    text = '{"mcpServers": {"anchord": {"command": "/old", /* mine */ "timeout": 5}}, "z": 1}'
    assert insert(text, (*PATH, "command"), "/new") == text.replace("/old", "/new")


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ('{"a": 1\n "b": 2}', "line 2, column 2: a comma or } is expected"),
        ('{\n"a": }', "line 2, column 6: a value is expected"),
        ('{"a": 1} x', "line 1, column 10: something follows the value"),
        ("{'a': 1}", "line 1, column 2: a key in double quotes is expected"),
        ('{"a": 1', "line 1, column 8: a comma or } is expected"),
        ("{ /* x", "line 1, column 3: a comment does not end"),
        (
            '{"mcpServers": {},\n"mcpServers": {}}',
            'line 2, column 1: the key "mcpServers" occurs twice',
        ),
        ('{"mcpServers": null}', 'line 1, column 16: an object is expected, for "anchord"'),
        ("[1]", 'line 1, column 1: an object is expected, for "mcpServers"'),
        ("[" * 100_000, "nested deeper than 200 levels"),
        ('{"a": "\n"}', "line 1, column 7: a value is expected"),
    ],
)
def test_what_is_not_understood_is_refused_with_its_place(text: str, said: str) -> None:
    with pytest.raises(JsonTextError, match=said.replace("{", r"\{").replace("}", r"\}")):
        insert(text, PATH, ENTRY)


def test_the_value_at_a_path_may_be_missing_on_the_way() -> None:
    assert find_value("", PATH) is None
    assert find_value("[1]", PATH) is None
    assert find_value('{"mcpServers": 1}', PATH) is None
    assert remove('{"a": 1}', PATH) == '{"a": 1}'
