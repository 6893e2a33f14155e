r"""What strings from files may contain wherever they are shown.

A file name, a heading, a title or a text can contain characters that steer a terminal, begin
another line, reorder what is read or hide it. This module has the one table of them, and all
output uses it: answers for agents, the terminal, JSON, the log and the status sent to systemd.

- `escape_line` and `escape_text` write such a character as `\u{202e}`: fields of answers and logs.
- `unescape_line` reads back what `escape_line` wrote.
- `sanitize_line` replaces it by U+FFFD, one column wide: lines on a terminal.
- `escape_json` writes it as `\u202e` in a JSON text, which decodes to the same string.
- `quote_name` and `quote_command` put a name into a sentence or a command of anchord's.
- `escape_non_utf8` writes bytes that are not UTF-8 as `\xNN`.
- `escape_gaps` and `escape_path` keep a name on a terminal from looking like two fields of a line.

Characters that the spelling of a language needs stay: the joiners U+200C and U+200D between two
letters of a script that uses them, or between two emoji, and the selectors of an emoji's form.
"""

from __future__ import annotations

import functools
import re
import unicodedata
from collections.abc import Iterable, Mapping
from typing import Any

_MAX_SHOWN = 4
"""Characters of a run that are written one by one; of a longer run the rest is counted."""
_MAX_MARKS = 8
"""Combining marks on one letter. No script needs more; hundreds cover the lines around them."""

ESCAPED_CHARACTER = r"\\u\{(?!d[89a-f]..\})((?:10|[0-9a-f])?[0-9a-f]{1,4})\}"
"""Pattern of a character as `escape_line` writes it; the group is its code point. No surrogates."""
_CONTROLS = "\x00-\x1f\x7f-\x9f\u2028\u2029"
_INVISIBLE = (
    "\u00ad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180e\u200b\u200e\u200f\u202a-\u202e\u2060-\u206f"
    "\u2800\u3164\ufe00-\ufe0d\ufeff\uffa0\ufff0-\ufffc\U00013430-\U0001343f\U0001bca0-\U0001bca3"
    "\U0001d159\U0001d173-\U0001d17a"
)
"""Characters without a glyph of their own.

Of the Unicode Character Database, version 16: general category Cf but signs with a glyph
(DerivedGeneralCategory.txt), and Default_Ignorable_Code_Point (DerivedCoreProperties.txt). Beyond
these: U+2800 BRAILLE PATTERN BLANK and U+1D159 MUSICAL SYMBOL NULL NOTEHEAD, which the code charts
show as blank, and U+FFFC OBJECT REPLACEMENT CHARACTER, which stands for what a text does not have.
"""
_UNASSIGNABLE = (
    "\ud800-\uf8ff\ufdd0-\ufdef\ufffe\uffff"
    + "".join(
        f"{chr(plane + 0xFFFE)}{chr(plane + 0xFFFF)}" for plane in range(1 << 16, 14 << 16, 1 << 16)
    )
    + "\U000e0000-\U0010ffff"
)
"""Surrogates, private use, noncharacters, and all of plane 14: tags and variation selectors."""
_JOINED_LETTERS = (
    "\u0620-\u08ff\u0900-\u109f\u1700-\u17b3\u17b6-\u180a\u1810-\u18af\u1900-\u1cff\ua800-\uabff"
    "\ufb50-\ufdcf\ufdf0-\ufdff\ufe70-\ufefc\U00010a00-\U00011fff\U0001e900-\U0001e95f"
)
"""Blocks of the scripts that join letters: Arabic, Syriac, Indic, Khmer, Mongolian and others."""
_EMOJI = (
    "\u00a9\u00ae\u203c\u2049\u2122\u2139\u2190-\u21ff\u2300-\u27bf\u2900-\u297f\u2b00-\u2bff"
    "\u3030\u303d\u3297\u3299\U0001f000-\U0001faff"
)
_JOINED = _JOINED_LETTERS + _EMOJI
_OUT_OF_PLACE = "|".join(
    (
        rf"[\u200c\u200d](?![{_JOINED}])",
        rf"(?<![{_JOINED}])(?<![{_EMOJI}][\ufe0e\ufe0f])[\u200c\u200d]",
        rf"(?<![0-9#*{_EMOJI}])[\ufe0e\ufe0f]",
        r"(?<=[0-9#*])[\ufe0e\ufe0f](?!\u20e3)",
        r"(?<![\u1820-\u18aa])[\u180b-\u180d\u180f]",
    )
)
"""Joiners and variation selectors where no spelling has them."""
_JOINERS = "\u200c\u200d\ufe0e\ufe0f\u180b-\u180d\u180f"
_CONTROLS_BUT_TAB = _CONTROLS.replace("\x00-\x1f", "\x00-\x08\x0a-\x1f")
_CONTROLS_BUT_LINE_END = _CONTROLS.replace("\x00-\x1f", "\x00-\x08\x0b-\x1f")
"""Without the tab, too."""
_FIRST_MARK = "\u0300"
"""Below it are ASCII, Latin letters and their signs; what is unsafe there is not printable."""
_PLAIN_PUNCTUATION = frozenset(map(chr, range(0x2010, 0x2028)))
"""Dashes, quotation marks, bullets and the ellipsis."""
_MAX_NAME_CHARS = 60
_MAX_PATH_CHARS = 200
"""Of a name or a path in a sentence."""
_MAX_NAMES = 10
"""Names that a sentence lists."""
_GAP = r"(?<= ) +|[^\S ]+"
"""What can look like the two spaces between fields: each space after one, and wider white space."""
_NOT_ASCII = r"[^\x00-\x7e]+"
_MAYBE_MARKS = rf"[^\w\s\x21-\x7e]{{{_MAX_MARKS + 1},}}"
"""Runs that are long enough to contain too many marks: marks are no letters to `re`."""


@functools.cache
def escape_non_utf8(path: str) -> str:
    r"""Replace what UTF-8 cannot encode, so that a path can be printed or put into JSON or Arrow.

    Args:
        path: Any text, possibly with surrogates.

    Returns:
        The path with each undecodable byte written as the four characters \xNN. A path that is
        valid UTF-8 is returned unchanged.
    """
    try:
        return path.encode("utf-8", "surrogateescape").decode("utf-8", "backslashreplace")
    except UnicodeEncodeError:
        # The path holds a surrogate that stands for no byte (outside U+DC80..U+DCFF). No file
        # system produces one; a command-line argument or JSON can.
        return path.encode("utf-8", "backslashreplace").decode()


def _runs_of_unsafe(controls: str) -> re.Pattern[str]:
    """Compile the pattern of unsafe characters, which takes some milliseconds, on first use."""
    unsafe = controls + _INVISIBLE + _UNASSIGNABLE
    # The look ahead is not needed for the result: it makes the search five times as fast.
    return re.compile(f"(?=[{unsafe}{_JOINERS}])(?:[{unsafe}]|{_OUT_OF_PLACE})+")


def escape_line(text: str) -> str:
    r"""Escape a string that is one line: a path, a heading, a title, a name, a reason.

    Args:
        text: Any string, also with surrogates of `os.fsdecode`.

    Returns:
        The string with each unsafe character written as `\u{hex}`; line ends and tabs are unsafe,
        too. Of more than four in a row the rest is counted: `\u{+996 more}`. A string without
        unsafe characters is returned unchanged.
    """
    return _escape(_CONTROLS, text)


def unescape_line(line: str) -> str:
    r"""Return what `escape_line` was given. Characters that it only counted stay counted.

    Args:
        line: Any string. A text that had `\u{hex}` itself loses that.
    """
    return re.sub(ESCAPED_CHARACTER, lambda escape: chr(int(escape[1], 16)), line)


def escape_text(text: str) -> str:
    r"""Escape a text of several lines, as `escape_line` does, but keep line ends and tabs.

    Args:
        text: Any string. Line ends of `\r\n` become `\n`.
    """
    return _escape(_CONTROLS_BUT_LINE_END, text.replace("\r\n", "\n"))


def escape_fields(value: Any, key: str = "") -> Any:  # noqa: ANN401 - any JSON value
    """Escape every string of a JSON value: of the key "text" as a text, all others as lines.

    Args:
        value: The value. The keys of objects in it are anchord's own, and stay.
        key: The key that the value has; "" if it is in no object.
    """
    if isinstance(value, str):
        return escape_text(value) if key == "text" else escape_line(value)
    if isinstance(value, Mapping):
        return {name: escape_fields(member, name) for name, member in value.items()}
    if isinstance(value, list | tuple):
        return [escape_fields(member, key) for member in value]
    return value


def quote_name(name: str) -> str:
    r"""Return a name as it stands in a sentence: a JSON string, escaped.

    Of a name over 60 characters and of a path over 200 the beginning and the end are left.

    anchord's own words have no `"`, so it is clear where the name begins and ends. Its backticks
    are written as `\u0060`, so that it contains no command.

    Args:
        name: The name or path of a root, a file, a folder, a kind or a session, from outside.
    """
    shown = escape_line(name)
    limit = _max_chars(name)
    if len(shown) > limit:
        half = limit // 2
        start, end = shown[: half - 1], shown[-half:]
        shown = escape_line(f"{start}…{end}")
    import json  # noqa: PLC0415 - most processes quote no name

    return json.dumps(shown, ensure_ascii=False).replace("`", "\\u0060")


def quote_names(names: Iterable[str], if_none: str = "none") -> str:
    """Return names as a sentence lists them; of more than ten the rest is counted.

    Args:
        names: The names.
        if_none: Returned if there are no names.
    """
    quoted = list(map(quote_name, names))
    omitted = len(quoted) - _MAX_NAMES
    more = f" and {omitted} more" if omitted > 0 else ""
    return ", ".join(quoted[:_MAX_NAMES]) + more or if_none


def quote_command(command: str, name: str, placeholder: str = "NAME") -> str:
    """Return a command with a name in backticks, for a person to copy into a shell.

    Args:
        command: The command without the name, such as "anchord remove".
        name: Its argument, from outside.
        placeholder: Stands for a name that a line cannot show as it is, or that is too long.
    """
    if len(name) > _max_chars(name) or "`" in name or escape_line(name) != name:
        return f"`{command} {placeholder}`"
    import shlex  # noqa: PLC0415 - likewise

    end_of_options = "-- " if name.startswith("-") else ""
    return f"`{command} {end_of_options}{shlex.quote(name)}`"


def _max_chars(name: str) -> int:
    return _MAX_PATH_CHARS if "/" in name else _MAX_NAME_CHARS


def escape_gaps(line: str) -> str:
    r"""Escape white space in a name that could pass for the gap between two fields of a line.

    Args:
        line: A name, a path or a heading that a line of the terminal shows beside other fields.

    Returns:
        The line with each space after a space, and each tab or other white space, as `\u{20}`.
    """
    return line if _is_plain(line) and "  " not in line else re.sub(_GAP, _escape_run, line)


def escape_path(path: str) -> str:
    r"""Escape white space in a path as `escape_gaps`, and a space after a colon: `a:\u{20}b`.

    So a line `path: reason` has its first `: ` where the path ends.
    """
    return escape_gaps(path).replace(": ", ":\\u{20}")


def sanitize_line(line: str) -> str:
    """Replace the unsafe characters of a line by U+FFFD, for a terminal. Tabs stay.

    Args:
        line: Any string, also with markup.
    """
    if _is_plain(line):
        return line
    printable = _limit_marks(escape_non_utf8(line), "\N{REPLACEMENT CHARACTER}")
    return _runs_of_unsafe(_CONTROLS_BUT_TAB).sub(_replace_each, printable)


def escape_json(encoded: str) -> str:
    r"""Escape unsafe characters in a JSON text as `\uXXXX`; it decodes to the same value.

    Args:
        encoded: A valid JSON text, whose strings therefore have no control characters below U+0020.
    """
    return re.sub(_NOT_ASCII, _escape_part_for_json, encoded)


def _is_plain(line: str) -> bool:
    """Return whether a line has nothing to escape, at a glance: False says nothing.

    Most lines are plain, and the patterns of unsafe characters take some milliseconds to compile.
    """
    if not line.isprintable():
        return False
    return line.isascii() or all(
        char < _FIRST_MARK or char in _PLAIN_PUNCTUATION for char in set(line)
    )


def _escape(controls: str, text: str) -> str:
    if _is_plain(text):
        return text
    limited = _limit_marks(escape_non_utf8(text), "")
    return _runs_of_unsafe(controls).sub(_escape_run, limited)


def _escape_run(run: re.Match[str]) -> str:
    chars = run[0]
    escapes = [f"\\u{{{ord(char):x}}}" for char in chars[:_MAX_SHOWN]]
    shown = "".join(escapes)
    omitted = len(chars) - _MAX_SHOWN
    return shown + _count_omitted(omitted) if omitted > 0 else shown


def _count_omitted(count: int) -> str:
    return f"\\u{{+{count} more}}"


def _replace_each(run: re.Match[str]) -> str:
    return "\N{REPLACEMENT CHARACTER}" * len(run[0])


def _escape_part_for_json(part: re.Match[str]) -> str:
    return _runs_of_unsafe(_CONTROLS).sub(_escape_for_json, part[0])


def _escape_for_json(run: re.Match[str]) -> str:
    units = run[0].encode("utf-16-be", "surrogatepass")
    pairs = [units[start : start + 2] for start in range(0, len(units), 2)]
    return "".join(f"\\u{pair.hex()}" for pair in pairs)


def _limit_marks(text: str, replacement: str) -> str:
    """Cut runs of combining marks; write how many are left out, or a replacement.

    Args:
        text: Any string.
        replacement: Written once for all marks of a run over the limit; "" writes their number.
    """

    def limit(match: re.Match[str]) -> str:
        return _without_excess_marks(match[0], replacement)

    return re.sub(_MAYBE_MARKS, limit, text)


def _without_excess_marks(run: str, replacement: str) -> str:
    kept: list[str] = []
    marks = 0
    for char in f"{run}\0":
        if unicodedata.category(char) in {"Mn", "Me"}:
            marks += 1
            if marks <= _MAX_MARKS:
                kept.append(char)
            continue
        if char in "\u200c\u200d":  # They do not end a run of marks.
            kept.append(char)
            continue
        if marks > _MAX_MARKS:
            kept.append(replacement or _count_omitted(marks - _MAX_MARKS))
        marks = 0
        kept.append(char)
    return "".join(kept[:-1])
