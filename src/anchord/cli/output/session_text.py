"""A session as a chat: for a terminal, as Markdown, and as a page of HTML."""

from __future__ import annotations

import html
import io
import re
from collections import Counter
from collections.abc import Iterator
from datetime import datetime, tzinfo
from typing import TYPE_CHECKING

from anchord.cli.output.contained_markdown import code_span, contain, escape_inline
from anchord.cli.output.wrapping import wrap
from anchord.core.counted import counted
from anchord.core.quoting import escape_text, sanitize_line
from anchord.ipc.messages.sessions import SessionDetail, SessionExchange
from anchord.sources.conversations.programs import program_name

if TYPE_CHECKING:
    from rich.console import Console

_TOOL_NAME = re.compile(r"\[([^\]]{1,60})\]")
_FENCE = re.compile(r"^```.*?$\n(.*?)^```\s*?$", re.MULTILINE | re.DOTALL)
_CODE_OR_TAG = re.compile(
    r"(^```.*?^```|^(?: {4}|\t).*?$|(?<!`)(`++)[^`]++\2)|<", re.MULTILINE | re.DOTALL
)
_MOST_TOOLS = 6
_INDENT = "  "
_MOST_MARKDOWN_CHARS = 100_000
"""A longer answer is shown as it is: rich takes quadratic time for a paragraph."""
_NAMES = {"attachment": "Attachment", "summary": "Summary"}
"""Kind of an exchange that is said by neither -> its name."""
_STYLE = """
body{max-width:48rem;margin:2rem auto;padding:0 1rem;color:#222;
font:16px/1.5 system-ui,sans-serif}
h1{font-size:1.4rem} .facts,.who,.tools{color:#666;font-size:.85rem}
.you{border-left:3px solid #07c;
padding-left:.8rem} .said{white-space:pre-wrap;overflow-wrap:anywhere;margin:.2rem 0 1rem}
pre{background:#f4f4f4;padding:.6rem;overflow-x:auto;white-space:pre}
@media(prefers-color-scheme:dark){body{background:#181818;color:#ddd}pre{background:#262626}}
"""


def facts_of(session: SessionDetail, zone: tzinfo | None) -> list[str]:
    """Return what is known of a session: program, project, time, turns, and its transcript."""
    began, ended = long_time(session.started_at, zone), long_time(session.last_at, zone)
    times = (
        began if began[:11] == ended[:11] and ended[-5:] == began[-5:] else f"{began} to {ended}"
    )
    states = {
        "here": "transcript is here",
        "shorter": "transcript is here, shorter than what anchord keeps",
        "damaged": "transcript is here, damaged (NUL bytes)",
        "deleted": "transcript was deleted",
        "detached": "not indexed any more",
        "prompts-only": "only the prompts are known",
    }
    state = states[session.state]
    if session.state != "here" and session.kept:
        state += ", and can be restored"
    project = f"project {session.project}" if session.project else ""
    facts = [
        program_name(session.agent),
        project,
        times.strip(" to"),
        counted(session.turns, "turn"),
    ]
    return [*filter(None, facts), state]


def sentence_of(session: SessionDetail) -> str:
    """Return why a transcript has no exchange of its own."""
    return f"{session.note[:1].upper()}{session.note[1:]}."


def long_time(at: str, zone: tzinfo | None) -> str:
    """Return a time of a zone, such as `26 Nov 2026 14:30`; "" for an unknown one."""
    try:
        return f"{datetime.fromisoformat(at).astimezone(zone):%d %b %Y %H:%M}"
    except (ValueError, OverflowError):
        return ""


def tools_line(tools: tuple[str, ...]) -> str:
    """Return tool calls in one line: `Bash 5x, Edit 2x`; a few are shown whole."""
    if not tools:
        return ""
    if len(tools) == 1:
        return tools[0]
    names = Counter(found[1] if (found := _TOOL_NAME.match(each)) else "tool" for each in tools)
    shown = [f"{name} {times}x" if times > 1 else name for name, times in names.most_common()]
    more = f", {len(shown) - _MOST_TOOLS} more" if len(shown) > _MOST_TOOLS else ""
    return ", ".join(shown[:_MOST_TOOLS]) + more


# For a terminal


def as_terminal_text(
    session: SessionDetail, width: int, zone: tzinfo | None, *, with_colors: bool
) -> str:
    """Return a session as lines for a terminal, with code in colour. Unsafe characters are escaped.

    Args:
        session: The session.
        width: Columns.
        zone: The time zone; None for that of this machine.
        with_colors: Whether to write a terminal's codes.
    """
    from rich.console import Console

    console = Console(
        file=io.StringIO(),
        force_terminal=with_colors,
        color_system="standard" if with_colors else None,
        width=min(width, 100),
        highlight=False,
        emoji=False,
    )
    _say(console, session.title or session.id, "bold")
    _say(console, ", ".join(facts_of(session, zone)), "dim")
    if session.note:
        _say(console, sentence_of(session))
    program = program_name(session.agent)
    for exchange in session.exchanges:
        console.print()
        _say_exchange(console, exchange, program, zone)
    if len(session.exchanges) < session.exchange_count:
        console.print()
        exchanges = counted(session.exchange_count, "exchange")
        _say(console, f"{len(session.exchanges)} of {exchanges}", "dim")
    lines = console.file.getvalue().split("\n")  # type: ignore[attr-defined]  # a StringIO
    return "\n".join(line.rstrip() for line in lines)


def _say_exchange(
    console: Console, exchange: SessionExchange, program: str, zone: tzinfo | None
) -> None:
    for who, text in _parts(exchange, program):
        is_answer = who == program
        at = "" if is_answer else long_time(exchange.at, zone)
        _say(console, f"{who}, {at}" if at else who, "bold green" if is_answer else "bold cyan")
        is_markdown = is_answer and len(text) <= _MOST_MARKDOWN_CHARS
        lines_of = _markdown_lines if is_markdown else _plain_lines
        for line in lines_of(console, escape_text(text.strip("\n"))):
            console.file.write(f"{_INDENT}{line}\n")
    if exchange.tools:
        _say(console, f"  [tools] {tools_line(exchange.tools)}", "dim")


def _say(console: Console, text: str, style: str = "") -> None:
    from rich.text import Text

    console.print(Text(sanitize_line(text), style=style))


def _markdown_lines(console: Console, text: str) -> list[str]:
    from rich.markdown import Markdown

    with console.capture() as captured:
        shown = Markdown(_show_tags(text), hyperlinks=False)
        console.print(shown, width=console.width - len(_INDENT))
    return captured.get().rstrip("\n").split("\n")


def _plain_lines(console: Console, text: str) -> Iterator[str]:
    for line in text.split("\n"):
        yield from wrap(line, console.width - len(_INDENT))


def _show_tags(text: str) -> str:
    """Escape each "<" outside of code, so that Markdown shows a tag and does not leave it out."""
    return _CODE_OR_TAG.sub(lambda found: found[1] or r"\<", text)


def _parts(exchange: SessionExchange, program: str) -> Iterator[tuple[str, str]]:
    """Yield who said what."""
    if exchange.kind in _NAMES:
        yield _NAMES[exchange.kind], "\n\n".join(filter(None, (exchange.question, exchange.answer)))
        return
    if exchange.question.strip():
        yield "You", exchange.question
    if exchange.answer.strip() or exchange.tools:
        yield program, exchange.answer


# As files


def as_markdown(session: SessionDetail, zone: tzinfo | None) -> str:
    """Return a session as Markdown: the texts as they were said, and each tool call in a line.

    A line of a text that looks like the heading of a speaker is escaped with a backslash. So are
    tags and images. A fence that a text leaves open is closed.
    """
    program = program_name(session.agent)
    speakers = tuple(name.casefold() for name in ("You", program, *_NAMES.values()))

    def is_speaker(heading: str) -> bool:
        return heading.startswith(speakers)

    title = escape_inline(session.title or session.id)
    lines = [f"# {title}", "", escape_inline(", ".join(facts_of(session, zone))), ""]
    lines += [escape_inline(sentence_of(session)), ""] if session.note else []
    lines += [f"Session {code_span(session.id)}", ""]
    for exchange in session.exchanges:
        for who, text in _parts(exchange, program):
            at = long_time(exchange.at, zone) if who != program else ""
            said = contain(_said_by_nobody(text, program), is_speaker)
            lines += [f"## {who}{f', {at}' if at else ''}", "", said, ""]
            if who == program:
                lines += [f"- {code_span(each)}" for each in exchange.tools]
                lines += [""] if exchange.tools else []
    return "\n".join(lines)


def _said_by_nobody(text: str, program: str) -> str:
    """Return a text in which no line is the heading of a speaker, with "#" or underlined."""
    who = f"(?:{'|'.join(map(re.escape, ('You', program, *_NAMES.values())))})"
    heading = rf"^([ \t>]*)(?=#+[ \t]*{who}\b)"
    underlined = rf"^([ \t>]*)(?={who}\b[^\n]*\n[ \t>]*(?:=+|-+)[ \t]*$)"
    text = re.sub(heading, r"\1\\", text.strip("\n"), flags=re.MULTILINE | re.IGNORECASE)
    return re.sub(underlined, r"\1\\# ", text, flags=re.MULTILINE | re.IGNORECASE)


def as_html(session: SessionDetail, zone: tzinfo | None) -> str:
    """Return a session as one page: no script, no link, nothing that a browser would load."""
    program = program_name(session.agent)
    title = html.escape(session.title or session.id)
    body = [
        f"<h1>{title}</h1>",
        f'<p class="facts">{html.escape(", ".join(facts_of(session, zone)))}</p>',
    ]
    if session.note:
        body.append(f"<p>{html.escape(sentence_of(session))}</p>")
    for exchange in session.exchanges:
        for who, text in _parts(exchange, program):
            at = long_time(exchange.at, zone) if who != program else ""
            kind = "you" if who == "You" else "program"
            body.append(f'<section class="{kind}"><p class="who">{html.escape(f"{who} {at}")}</p>')
            body += _html_of(text)
            if who == program and exchange.tools:
                tools = "\n".join(exchange.tools)
                body.append(
                    f'<details class="tools"><summary>{html.escape(tools_line(exchange.tools))}'
                    f"</summary><pre>{html.escape(tools)}</pre></details>"
                )
            body.append("</section>")
    policy = "default-src 'none'; style-src 'unsafe-inline'"
    head = (
        f'<meta charset="utf-8"><meta http-equiv="Content-Security-Policy" content="{policy}">'
        f"<title>{title}</title><style>{_STYLE}</style>"
    )
    page = "\n".join(body)
    return f"<!doctype html>\n<html><head>{head}</head>\n<body>\n{page}\n</body></html>\n"


def _html_of(text: str) -> Iterator[str]:
    end = 0
    for block in _FENCE.finditer(text):
        yield from _said(text[end : block.start()])
        yield f"<pre><code>{html.escape(block[1])}</code></pre>"
        end = block.end()
    yield from _said(text[end:])


def _said(text: str) -> Iterator[str]:
    if text.strip():
        yield f'<div class="said">{html.escape(text.strip(chr(10)))}</div>'
