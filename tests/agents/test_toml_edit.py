"""An edit of a TOML text keeps everything else, and its removal gives back the same bytes."""

from __future__ import annotations

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from anchord.agents.toml_edit import (
    TomlTextError,
    add_table,
    parse,
    remove_table,
    remove_value,
    set_values,
)

NAME = ("mcp_servers", "anchord")
ENTRY = {"command": '/opt/"a" b', "args": ["mcp"], "env": {"ANCHORD_HOME": "/ü"}}
PIECES = st.sampled_from(
    [
        "# c\n",
        "\n",
        "x = 1 # y\n",
        "[a]\n",
        "[a.b] # z\n",
        "[[l]]\n",
        's = """\n[mcp_servers.anchord]\n"""\n',
        "[mcp_servers.other]\n",
        'command = "x"\n',
        "\tt = [\n1, # one\n]\n",
    ]
)


@st.composite
def texts(draw: st.DrawFn) -> str:
    """Return a valid text of lines that could mislead an edit by lines."""
    text = ""
    for piece in draw(st.lists(PIECES, max_size=8)):
        try:
            parse(text + piece)
        except TomlTextError:
            continue
        text += piece
    if draw(st.booleans()) and text.rstrip() and not text.endswith("#"):
        text = text.removesuffix("\n")
    return text.replace("\n", draw(st.sampled_from(["\n", "\r\n"])))


@settings(max_examples=60)
@given(text=texts())
@example(text="")
@example(text="\n")
@example(text="# end")
def test_what_was_added_is_removed_to_the_byte(text: str) -> None:
    longer = add_table(text, NAME, ENTRY)
    assert longer.startswith(text.removesuffix("\n").removesuffix("\r"))
    wanted = parse(text)
    wanted.setdefault("mcp_servers", {})["anchord"] = ENTRY
    assert parse(longer) == wanted
    assert remove_table(longer, NAME) == text


@settings(max_examples=60)
@given(text=texts(), after=PIECES.filter(lambda piece: '"""' not in piece))
def test_other_values_change_only_their_lines(text: str, after: str) -> None:
    longer = add_table(text, NAME, ENTRY)
    if not longer.endswith("\n"):
        longer += "\n"
    try:
        parse(longer + "[later]\n" + after)
    except TomlTextError:
        after = ""
    longer += "[later]\n" + after
    changed = set_values(longer, NAME, {"command": "/new", "env": {"ANCHORD_HOME": "/b"}})
    assert parse(changed)["mcp_servers"]["anchord"] == ENTRY | {
        "command": "/new",
        "env": {"ANCHORD_HOME": "/b"},
    }
    assert parse(changed) | {"mcp_servers": 0} == parse(longer) | {"mcp_servers": 0}
    assert len(changed.splitlines()) == len(longer.splitlines())


def test_keys_of_the_user_stay() -> None:
    text = '[mcp_servers.anchord] # mine\ncommand = "/old" # c\nargs = [\n  "mcp", # one\n]\ntool_timeout_sec = 5\n\n# the next\n[a]\n'
    changed = set_values(text, NAME, {"command": "/new", "args": ["-m", "x"], "env": {"H": "/h"}})
    assert changed == (
        '[mcp_servers.anchord] # mine\ncommand = "/new"\nargs = ["-m", "x"]\ntool_timeout_sec = 5\n\n[mcp_servers.anchord.env]\nH = "/h"\n\n# the next\n[a]\n'
    )
    assert set_values(changed, NAME, {"command": "/new", "env": {"H": "/h"}}) == changed
    assert 'H = "/h"' not in remove_value(changed, (*NAME, "env"), "H")
    assert remove_table(changed, NAME) == "\n# the next\n[a]\n"


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("a = \n", "line 1, column 5: invalid value"),
        ("a = 1\nb = [\n", "at its end: invalid value"),
        ("mcp_servers = {}\n", "is not written as a table of its own"),
        ("mcp_servers = 1\n", "`mcp_servers` is no table"),
        ("a = " + "[" * 5000, "nested too deeply|at its end"),
    ],
)
def test_what_cannot_be_edited_is_refused(text: str, said: str) -> None:
    with pytest.raises(TomlTextError, match=said):
        add_table(text, NAME, ENTRY)


@pytest.mark.parametrize(
    "text", ['[mcp_servers]\nanchord = {command = "x"}\n', '[mcp_servers]\nanchord.command = "x"\n']
)
def test_an_entry_in_another_form_is_not_touched(text: str) -> None:
    with pytest.raises(TomlTextError, match=r"`mcp_servers\.anchord` is not written as a table"):
        remove_table(text, NAME)
    with pytest.raises(TomlTextError):
        set_values(text, NAME, {"command": "y"})
