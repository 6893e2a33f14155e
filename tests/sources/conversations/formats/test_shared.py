"""What all readers share: noise at the start of a text, odd values, long exports, exchanges of events."""

from __future__ import annotations

import json
import random
from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st
from sources.conversations.formats.carriers import MemoryTranscript
from sources.conversations.formats.mutations import ANYTHING

from anchord.sources.conversations.events import (
    Event,
    Exchange,
    Line,
    NeedsFullRead,
    Role,
    SessionInfo,
    SupersededQuestions,
    Turn,
    UnknownRecord,
)
from anchord.sources.conversations.exchanges import build_exchanges
from anchord.sources.conversations.formats.boilerplate import BoilerplateFilter
from anchord.sources.conversations.formats.json_records import (
    dict_or_empty,
    format_tool_call,
    join_text_blocks,
    list_or_empty,
    normalize_timestamp,
    parse_head_lines,
    parse_lines,
    parse_object,
    str_or_empty,
)
from anchord.sources.conversations.formats.json_stream import stream_conversations

NOISE = BoilerplateFilter(["note", "note-2", "a.b"], ["[Stopped", "Caveat:"])


@pytest.mark.parametrize(
    ("said", "typed"),
    [
        ("Go", "Go"),
        ("", ""),
        (" \n ", ""),
        ("<note>x</note>", ""),
        (" \n<note>x</note> \n", ""),
        ("<note>x</note>\n\nGo", "Go"),
        ("<note a='b'>x</note>Go", "Go"),
        ("<note>\n<b>x</b>\n</note>\n  Go", "  Go"),
        ("<note>x</note><note-2>y</note-2><note>z</note>Go", "Go"),
        ("<note>x</note> See <note>y</note>", " See <note>y</note>"),
        ("<note>never closed\n\nGo", ""),
        ("<notes>x</notes>", "<notes>x</notes>"),
        ("<a-b>x</a-b>", "<a-b>x</a-b>"),
        ("<a.b>x</a.b>Go", "Go"),
        ("<note-2>x</note>y</note-2>Go", "Go"),
        ("[Stopped by Ann]", ""),
        ("\n Caveat: x", ""),
        ("<note>x</note>\nCaveat: y", ""),
        ("See [Stopped", "See [Stopped"),
        ("```\n<note>x</note>\n```", "```\n<note>x</note>\n```"),
        ("<note/>", "<note/>"),
        ("< note>x</note>", "< note>x</note>"),
        ("<NOTE>x</NOTE>", "<NOTE>x</NOTE>"),
    ],
)
def test_noise_is_recognised_at_the_start_alone(said: str, typed: str) -> None:
    assert NOISE.remove_from(said) == typed


def test_without_tags_or_beginnings_all_is_typed() -> None:
    assert BoilerplateFilter([], []).remove_from("<note>x</note>") == "<note>x</note>"


def test_a_wrapper_that_mentions_its_own_tag_ends_at_the_first_closing_tag() -> None:
    assert NOISE.remove_from("<note>a <note> b</note>\nGo\n<note>c</note>") == "Go\n<note>c</note>"


def test_a_wrapper_within_one_of_its_name_is_part_of_it() -> None:
    assert NOISE.remove_from("<note>a <note>b</note> c</note>\nGo") == "Go"


@given(st.text(st.characters(), max_size=60))
def test_a_text_without_a_wrapper_loses_only_line_ends_around_it(said: str) -> None:
    assert NOISE.remove_from("x" + said).rstrip("\n") == ("x" + said).rstrip("\n")


@pytest.mark.parametrize(
    ("value", "time"),
    [
        ("2026-01-02T10:00:00Z", "2026-01-02T10:00:00.000Z"), ("2026-01-02T10:00:00.123456789Z", "2026-01-02T10:00:00.123Z"),
        ("2026-01-02 10:00:00", "2026-01-02T10:00:00.000Z"), ("2026-01-02T10:00:00.5+01:30", "2026-01-02T08:30:00.500Z"),
        ("2026-01-02T10:00:00-0500", "2026-01-02T15:00:00.000Z"), (" 2026-01-02T10:00:00Z ", "2026-01-02T10:00:00.000Z"),
        (1_767_348_000, "2026-01-02T10:00:00.000Z"), (1_767_348_000.25, "2026-01-02T10:00:00.250Z"),
        (1_767_348_000_250, "2026-01-02T10:00:00.250Z"), ("1767348000250", "2026-01-02T10:00:00.250Z"),
        ("1767348000.25", "2026-01-02T10:00:00.250Z"), (0, "1970-01-01T00:00:00.000Z"),
    ],
)  # fmt: skip
def test_times_of_all_forms_have_one(value: object, time: str) -> None:
    assert normalize_timestamp(value) == time


@pytest.mark.parametrize(
    "value",
    [None, True, "", "now", "2026-13-02T10:00:00Z", "2026-01-02T25:00:00Z", "2026-01-02", [], {}, 1e300, float("nan"),
     float("inf"), 10**400, -(10**400), "0001-01-01T00:00:00+14:00", "2026-01-02T10:00:00+99:99"],
)  # fmt: skip
def test_what_is_no_time_is_none(value: object) -> None:
    assert normalize_timestamp(value) == ""


def test_a_year_has_four_digits() -> None:
    assert normalize_timestamp("0001-01-01T00:00:00Z") in ("", "0001-01-01T00:00:00.000Z")


@given(st.datetimes(datetime(1970, 1, 2), datetime(2100, 1, 1), timezones=st.just(UTC)))  # noqa: DTZ001 - the strategy adds it
def test_a_time_that_is_written_is_read_to_the_millisecond(moment: datetime) -> None:
    written = normalize_timestamp(moment.isoformat())
    assert datetime.fromisoformat(written) == moment.replace(
        microsecond=moment.microsecond // 1000 * 1000
    )
    assert normalize_timestamp(written) == written


@pytest.mark.parametrize(
    ("name", "given", "line"),
    [
        ("Bash", {"description": "x", "command": "git\n  status"}, "[Bash] git status"),
        ("shell", {"command": ["ls", 1]}, "[shell] ls 1"),
        ("Read", {"limit": 1, "file_path": "a"}, "[Read] a"),
        ("Own", {"n": 1, "said": "x"}, "[Own] x"),
        ("Own", {"n": 1}, "[Own]"),
        ("Own", "x\ny", "[Own] x y"),
        ("Own", None, "[Own]"),
        ("Own", [1], "[Own]"),
        ("", {}, "[]"),
        ("Bash", {"command": "", "path": "p"}, "[Bash] p"),
        ("Bash", {"command": {"a": 1}}, "[Bash] {'a': 1}"),
    ],
)
def test_a_call_is_one_line(name: str, given: object, line: str) -> None:
    assert format_tool_call(name, given) == line


def test_a_line_of_a_call_is_bounded_and_longer_than_what_is_kept_of_it() -> None:
    assert len(format_tool_call("Bash", {"command": "x" * 99_999})) == 20_000


@given(st.text(), ANYTHING)
def test_any_call_is_one_line(name: str, given: object) -> None:
    assert len(format_tool_call(name, given)) <= 20_000
    normalize_timestamp(given)
    join_text_blocks(given, "text")
    assert isinstance(str_or_empty(given), str)
    assert isinstance(dict_or_empty(given), dict)
    assert isinstance(list_or_empty(given), list)


def test_prose_is_a_text_or_the_texts_of_blocks() -> None:
    blocks = [{"type": "text", "text": "a\n"}, {"type": "text", "text": " "}, {"type": "other", "text": "b"}, "c", None,
              {"type": ["text"], "text": "d"}, {"type": "more", "text": "e"}, {"type": "text", "text": 7}]  # fmt: skip
    assert join_text_blocks(blocks, "text", "more") == "a\n\n\ne"
    assert join_text_blocks("a ", "text") == "a "
    assert join_text_blocks({"text": "a"}, "text") == ""


def test_lines_that_are_no_objects_are_counted() -> None:
    lines = [
        b'{"a": 1}',
        b"",
        b"  \t",
        b"[1]",
        b'{"a"',
        b"null",
        b'\xef\xbb\xbf{"b": 2}',
        b"[" * 9_000,
        b'{"c": ' + b"1" * 9_000 + b"}",
    ]
    parsed = list(parse_lines(Line(place, data) for place, data in enumerate(lines)))
    assert [each for each in parsed if not isinstance(each, UnknownRecord)] == [
        (0, {"a": 1}),
        (6, {"b": 2}),
    ]
    assert parsed.count(UnknownRecord("broken line")) == 5


def test_a_byte_that_is_no_letter_is_replaced() -> None:
    assert parse_object(b'{"a": "caf\xe9"}') == {"a": "caf\ufffd"}


def test_the_first_records_are_the_whole_lines_of_a_beginning() -> None:
    assert parse_head_lines(b'{"a": 1}\r\n\n7\n{"b": 2}\n{"c":') == [{"a": 1}, {"b": 2}]


def exported(data: bytes) -> list[object]:
    return list(stream_conversations(MemoryTranscript("a.json", data)))


BROKEN, NONE = UnknownRecord("broken JSON"), UnknownRecord("no conversation")


@pytest.mark.parametrize(
    ("data", "parsed"),
    [
        (b'[{"a": 1}, {"b": 2}]', [{"a": 1}, {"b": 2}]), (b'\xef\xbb\xbf \n[{"a": 1}]', [{"a": 1}]), (b'{"a": 1}', [{"a": 1}]),
        (b"[]", []), (b'[7, {"a": 1}, null]', [NONE, {"a": 1}, NONE]), (b'[{"a": 1}, {"b"', [{"a": 1}, BROKEN]),
        (b'[{"a": 1}', [{"a": 1}, BROKEN]), (b"", [BROKEN]), (b'"x"', [NONE]), (b"x", [BROKEN]), (b'{"a"', [BROKEN]),
        (b'[{"a": "\xff\\ud800"}]', [{"a": "\ufffd\ud800"}]), (b"[" * 9_000, [BROKEN]),
    ],
)  # fmt: skip
def test_each_object_of_an_export_is_yielded(data: bytes, parsed: list[object]) -> None:
    assert exported(data) == parsed


def test_an_export_over_many_blocks_is_what_was_written() -> None:
    chance = random.Random(7)  # noqa: S311 - no secret
    written = [{"said": "ä\u20ac\U0001f600" * chance.randrange(200_000)} for _ in range(8)]
    assert exported(json.dumps(written, ensure_ascii=False).encode()) == written


@pytest.mark.parametrize(
    "odd", ["1" * 5_000, "[" * 5_000 + "]" * 5_000], ids=["a huge number", "deep nesting"]
)
def test_an_odd_element_of_an_export_does_not_lose_the_others(odd: str) -> None:
    assert exported(f'[{{"x": {odd}}}, {{"a": 1}}]'.encode())[-1] == {"a": 1}


def asked(key: str, said: str, **more: object) -> Turn:
    return Turn(id=key, role=Role.QUESTION, text=said, **more)  # type: ignore[arg-type]


def answered(key: str, said: str, **more: object) -> Turn:
    return Turn(id=key, role=Role.ANSWER, text=said, **more)  # type: ignore[arg-type]


def made(*events: Event, first: int = 0) -> list[Exchange]:
    return [
        each
        for each in build_exchanges([SessionInfo(session="s"), *events], first)
        if isinstance(each, Exchange)
    ]


def test_an_exchange_ends_before_the_next_question() -> None:
    parsed = made(
        answered("z", "Hello."),
        asked("a", "One"),
        answered("b", "1"),
        answered("c", "2"),
        asked("d", "Two"),
        asked("e", "Three"),
    )
    assert [(each.id, each.number, each.question, each.answer) for each in parsed] == [
        ("preamble", 0, "", "Hello."), ("a", 1, "One", "1\n\n2"), ("d", 2, "Two", ""), ("e", 3, "Three", ""),
    ]  # fmt: skip


def test_a_preamble_without_prose_is_none_and_keeps_its_number() -> None:
    parsed = made(answered("z", " \n", tools=("[Bash] ls",)), asked("a", "One"))
    assert [(each.id, each.number) for each in parsed] == [("a", 1)]


def test_an_exchange_gathers_what_its_turns_contain() -> None:
    (parsed,) = made(
        asked("a", "One", at="1", offset=7), answered("b", "", tools=("x", "y"), files=("f",), model="old", at="2"),
        answered("c", "1", tools=("x",), files=("g", "f"), model="new"),
    )  # fmt: skip
    assert (parsed.tools, parsed.files, parsed.model, parsed.at, parsed.until, parsed.offset) == (
        ("x", "y"),
        ("f", "g"),
        "new",
        "1",
        "2",
        7,
    )


def test_attachments_are_exchanges_of_their_own() -> None:
    parsed = made(
        asked("a", "One"),
        Turn(id="x", role=Role.ATTACHMENT, text="n.txt\nApples\nPears"),
        answered("b", "1"),
        Turn(id="y", role=Role.ATTACHMENT, text="m"),
    )
    assert [(each.id, each.kind, each.question, each.answer) for each in parsed] == [
        ("a", "exchange", "One", "1"), ("a+1", "attachment", "n.txt", "Apples\nPears"),
    ]  # fmt: skip


def test_another_session_restarts_the_numbering_and_the_same_does_not() -> None:
    parsed = made(
        asked("a", "One"),
        SessionInfo(session="s", title="T"),
        answered("b", "1"),
        SessionInfo(session="t"),
        answered("c", "2"),
        first=5,
    )
    assert [(each.session, each.id, each.number, each.answer) for each in parsed] == [
        ("s", "a", 5, "1"),
        ("t", "preamble", 0, "2"),
    ]


def test_what_is_read_beside_turns_passes_through() -> None:
    events: list[Event] = [
        SessionInfo(session="s"),
        SupersededQuestions(frozenset({"a"})),
        UnknownRecord("x"),
        NeedsFullRead(),
    ]
    assert list(build_exchanges(events)) == events


def test_speakers_stand_before_what_they_said() -> None:
    (parsed,) = made(
        asked("a", "One", speaker="Ann"), answered("b", "1", speaker="Bob"), answered("c", "2")
    )
    assert (parsed.question, parsed.answer) == ("Ann: One", "Bob: 1\n\n2")


def test_texts_are_as_chunkers_take_them() -> None:
    (parsed,) = made(
        asked("\ud800", "\ufeffa\r\nb\rc\0\ud800"),
        answered("b", "\n\n  x\n", model="\ud800", tools=("\0",), files=("\udfff",)),
    )
    assert (parsed.id, parsed.question, parsed.answer) == ("\ufffd", "a\nb\nc\ufffd\ufffd", "  x")
    assert (parsed.model, parsed.tools, parsed.files) == ("\ufffd", ("\ufffd",), ("\ufffd",))


def test_speakers_names_can_be_written() -> None:
    (parsed,) = made(asked("a", "One", speaker="\ud800nn"))
    parsed.question.encode()


def test_kinds_of_what_is_unknown_can_be_written() -> None:
    (parsed,) = build_exchanges([UnknownRecord("\ud800")])
    assert isinstance(parsed, UnknownRecord)
    parsed.kind.encode()


def test_a_superseded_question_takes_its_answers_along() -> None:
    parsed = made(
        asked("a", "One", superseded=True), answered("b", "1", superseded=True), asked("c", "Two")
    )
    assert [(each.id, each.superseded) for each in parsed] == [("a", True), ("c", False)]


def test_superseded_answers_of_an_active_question_are_apart() -> None:
    parsed = made(asked("a", "One"), answered("b", "old", superseded=True), answered("c", "new"))
    assert [each.answer for each in parsed if not each.superseded] == ["new"]
    assert [each.answer for each in parsed if each.superseded] == ["old"]
    assert len({each.id for each in parsed}) == 2


def test_a_superseded_preamble_is_superseded() -> None:
    assert [each.superseded for each in made(answered("z", "old", superseded=True))] == [True]


TURNS = st.lists(
    st.builds(
        Turn,
        id=st.text(max_size=3),
        role=st.sampled_from(list(Role)),
        text=st.text(max_size=9),
        superseded=st.booleans(),
    ),
    max_size=12,
)


@given(TURNS)
def test_nothing_that_was_said_is_left_out(turns: list[Turn]) -> None:
    parsed = "\n".join(each.question + "\n" + each.answer for each in made(*turns))
    for turn in turns:
        lines = (
            turn.text.replace("\0", "\ufffd")
            .removeprefix("\ufeff")
            .replace("\r\n", "\n")
            .replace("\r", "\n")
            .strip("\n")
            .split("\n")
        )
        wanted = lines if turn.role is not Role.ATTACHMENT else []
        assert all(line in parsed for line in wanted if line.strip())
