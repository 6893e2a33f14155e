"""Lines with markup are printed as rich prints them, and rich is not loaded for it."""

from __future__ import annotations

import io
import re
import sys
from unittest import mock

import pytest
import rich.markup
from hypothesis import given
from hypothesis import strategies as st
from rich.console import Console

from anchord.cli.output.console import stdout_console
from anchord.cli.output.markup import escape_markup, is_terminal, print_markup
from anchord.core.quoting import sanitize_line

TEXTS = st.text(st.sampled_from("ab[]\\/ =#@é…:") | st.characters(codec="utf-8"), max_size=8)
STYLES = st.sampled_from(
    ["bold", "dim", "red", "green", "yellow", "cyan", "bold red", "bold cyan", "link=file:///a%20b"]
)
PARTS = st.recursive(
    TEXTS.map(escape_markup),
    lambda inner: (
        st.builds("[{}]{}[/]".format, STYLES, inner) | st.builds("{}{}".format, inner, inner)
    ),
    max_leaves=6,
)
LINK_ID = re.compile(r"8;id=[0-9-]+;")


class Terminal(io.StringIO):
    """A stream that is a terminal, or none."""

    def __init__(self, *, is_tty: bool) -> None:
        """Create it, empty."""
        super().__init__()
        self._is_tty = is_tty

    def isatty(self) -> bool:
        """Say whether it is a terminal."""
        return self._is_tty


def printed(line: str, *, is_tty: bool, by_rich: bool, **environment: str) -> str:
    stream = Terminal(is_tty=is_tty)
    stdout_console.cache_clear()
    with (
        mock.patch.dict("os.environ", environment, clear=True),
        mock.patch.object(sys, "stdout", stream),
    ):
        if by_rich:
            stdout_console().print(line)
        else:
            print_markup(line)
    stdout_console.cache_clear()
    return LINK_ID.sub("8;id=1;", stream.getvalue())


@given(line=PARTS.map(sanitize_line), is_tty=st.booleans())
def test_a_line_is_printed_as_rich_prints_it(line: str, is_tty: bool) -> None:  # noqa: FBT001 - drawn
    ours = printed(line, is_tty=is_tty, by_rich=False, TERM="xterm-256color")
    assert ours == printed(line, is_tty=is_tty, by_rich=True, TERM="xterm-256color")


@pytest.mark.parametrize(
    "line", ["[bold]a\tb[/]", "[blink]a[/]", "[on red]a[/] [not bold]b[/]", "[magenta]a[/magenta]"]
)
def test_what_only_rich_can_print_is_printed_by_rich(line: str) -> None:
    assert printed(line, is_tty=True, by_rich=False) == printed(line, is_tty=True, by_rich=True)


ENVIRONMENTS: list[dict[str, str]] = [
    {}, {"TERM": "dumb"}, {"TERM": "Unknown"}, {"TERM": "linux"}, {"NO_COLOR": "1"}, {"NO_COLOR": ""}, {"FORCE_COLOR": "1"},
    {"FORCE_COLOR": ""}, {"TTY_COMPATIBLE": "0"}, {"TTY_COMPATIBLE": "1"}, {"TTY_COMPATIBLE": "x"}, {"COLORTERM": "truecolor"},
    {"FORCE_COLOR": "1", "TTY_COMPATIBLE": "0"}, {"FORCE_COLOR": "1", "NO_COLOR": "1"},
]  # fmt: skip


@pytest.mark.parametrize("environment", ENVIRONMENTS, ids=str)
@pytest.mark.parametrize("is_tty", [False, True])
def test_colours_depend_on_the_terminal_and_the_environment_as_in_rich(
    environment: dict[str, str], *, is_tty: bool
) -> None:
    line = "[bold red]a[/] [dim]b[/]"
    ours = printed(line, is_tty=is_tty, by_rich=False, **environment)
    assert ours == printed(line, is_tty=is_tty, by_rich=True, **environment)
    with (
        mock.patch.dict("os.environ", environment, clear=True),
        mock.patch.object(sys, "stdout", Terminal(is_tty=is_tty)),
    ):
        assert is_terminal() == Console().is_terminal


@given(text=TEXTS.map(sanitize_line))
def test_an_escaped_text_is_that_text_again(text: str) -> None:
    markup = f"[bold]{escape_markup(text)}[/]|"
    assert rich.markup.render(markup, emoji=False).plain == f"{text}|"
