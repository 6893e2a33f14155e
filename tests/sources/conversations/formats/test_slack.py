"""Slack's export: threads and runs of a channel as exchanges, under the names of those who spoke."""

from __future__ import annotations

import json
import zipfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from sources.conversations.formats.carriers import (
    MemoryTranscript,
    ParsedTranscript,
    parse_transcript,
    recognised,
)

from anchord.sources.conversations.events import Turn
from anchord.sources.conversations.formats import slack
from anchord.sources.conversations.formats.slack_text import SlackNames, strip_markup

SAMPLE = Path("/work/shared/samples/slack/testarchive.zip")
START = 1_700_000_000
PEOPLE = [
    {"id": "U1", "name": "ann", "profile": {"display_name": "Ann", "real_name": "Ann B."}},
    {"id": "U2", "name": "bo", "real_name": "Bo C.", "profile": {"display_name": ""}},
]
CHANNELS = [
    {"id": "C1", "name": "general", "members": ["U1", "U2"]},
    {"id": "C2", "name": "random"},
]


def message(minute: float, text: str, user: str = "U1", **more: object) -> dict[str, object]:
    return {"type": "message", "user": user, "text": text, "ts": stamp(minute), **more}


def stamp(minute: float) -> str:
    return f"{START + minute * 60:.6f}"


def carrier(members: Mapping[str, object]) -> MemoryTranscript:
    whole = {"users.json": PEOPLE, "channels.json": CHANNELS, **members}
    return MemoryTranscript(
        "kept/export.zip",
        members={name: json.dumps(value).encode() for name, value in whole.items()},
    )


def export(*messages: object, **members: object) -> ParsedTranscript:
    return parse_transcript(slack, carrier({"general/2023-11-14.json": list(messages), **members}))


def test_an_export_is_known_by_the_names_in_it() -> None:
    assert slack.matches_folder(
        ["users.json", "channels.json", "general/", "general/2023-11-14.json"]
    )
    assert slack.matches_folder(["Our export/dms.json", "Our export/D024/2023-11-14.json"])
    assert not slack.matches_folder(["users.json", "log/2023-11-14.json"])
    assert not slack.matches_folder(["channels.json", "a/b/2023-11-14.json", "general/notes.json"])
    assert not recognised(
        slack, MemoryTranscript("general/2023-11-14.json", json.dumps([message(0, "hi")]).encode())
    )


@pytest.mark.parametrize(("path", "folder"), [
    ("kept/export/general/2023-11-14.json", "kept/export"), ("kept/export/users.json", "kept/export"),
    ("kept/export/dms.json", "kept/export"), ("kept/export/general/notes.json", ""), ("2023-11-14.json", ""),
])  # fmt: skip
def test_a_file_of_an_export_names_its_folder(path: str, folder: str) -> None:
    assert slack.transcript_folder(path) == folder


def test_a_run_of_messages_is_one_exchange_and_names_who_speaks() -> None:
    parsed = export(
        message(0, "Is the till broken?"), message(5, "Yes.\nSince noon.", "U2"), message(24, "Oh.")
    )
    assert parsed.said == [("Ann: Is the till broken?", "Bo C.: Yes.\nSince noon.\n\nAnn: Oh.")]
    (exchange,) = parsed.exchanges
    assert (exchange.id, exchange.at, exchange.until) == (
        "1700000000.000000", "2023-11-14T22:13:20.000Z", "2023-11-14T22:37:20.000Z"
    )  # fmt: skip


def test_a_pause_of_more_than_twenty_minutes_ends_a_run() -> None:
    assert len(export(message(0, "a"), message(20, "b"), message(40.1, "c")).exchanges) == 2


def test_a_run_without_a_pause_is_cut_by_its_length() -> None:
    parsed = export(*(message(number, "x") for number in range(120)))
    assert [len(each.answer.split("\n\n")) + 1 for each in parsed.exchanges] == [50, 50, 20]
    assert len(export(*(message(number, "x" * 3000) for number in range(4))).exchanges) == 2


def test_a_thread_over_several_days_is_one_exchange_of_the_day_it_began_on() -> None:
    late = message(1500, "Still?", "U2", thread_ts=stamp(1))
    first = [message(0, "a"), message(1, "Is it broken?", thread_ts=stamp(1)), message(2, "b"),
             message(3, "Yes.", "U2", thread_ts=stamp(1))]  # fmt: skip
    parsed = export(*first, **{"general/2023-11-15.json": [late, message(1501, "c")]})
    assert [(each.session, each.question, each.answer) for each in parsed.exchanges] == [
        ("C1/2023-11-14", "Ann: a", "Ann: b"),
        ("C1/2023-11-14", "Ann: Is it broken?", "Bo C.: Yes.\n\nBo C.: Still?"),
        ("C1/2023-11-15", "Ann: c", ""),
    ]


def test_a_late_reply_changes_its_own_exchange_alone() -> None:
    day = [message(0, "a"), message(1, "b?", thread_ts=stamp(1), reply_count=1), message(3, "c")]
    before = export(*day).exchanges
    after = export(
        *day, **{"general/2024-01-01.json": [message(70_000, "Yes.", "U2", thread_ts=stamp(1))]}
    ).exchanges
    assert [(each.id, each.number) for each in after] == [(each.id, each.number) for each in before]
    assert [each for each in after if each not in before] == [
        each for each in after if each.question == "Ann: b?"
    ]


@pytest.mark.parametrize(
    "parent", [{}, {"reply_count": 1}, {"replies": [{"user": "U2", "ts": stamp(3)}]}]
)
def test_an_old_parent_that_names_no_thread_begins_it(parent: dict[str, object]) -> None:
    parsed = export(
        message(0, "a?") | parent, message(1, "b"), message(2, "c", "U2", thread_ts=stamp(0))
    )
    assert parsed.said == [("Ann: a?", "Bo C.: c"), ("Ann: b", "")]


def test_a_reply_to_what_was_deleted_begins_its_exchange() -> None:
    gone = message(
        0, "This message was deleted.", "USLACKBOT", subtype="tombstone", thread_ts=stamp(0)
    )
    assert export(gone, message(1, "Why?", thread_ts=stamp(0))).said == [("Ann: Why?", "")]


def test_each_channel_and_day_is_a_session_with_a_title() -> None:
    parsed = export(message(0, "a"), **{
        "random/2023-11-14.json": [message(0, "b")], "D9/2023-11-14.json": [message(1, "c")],
        "lost/2023-11-14.json": [message(1, "d")], "dms.json": [{"id": "D9", "members": ["U1", "U2"]}],
    })  # fmt: skip
    assert {head.session: head.title for head in parsed.heads} == {
        "C1/2023-11-14": "#general > 2023-11-14", "C2/2023-11-14": "#random > 2023-11-14",
        "D9/2023-11-14": "@Ann, @Bo C. > 2023-11-14", "lost/2023-11-14": "#lost > 2023-11-14",
    }  # fmt: skip
    assert len(parsed.exchanges) == 4


def test_an_export_in_a_folder_of_its_archive_is_read() -> None:
    members = {
        f"Ours/{name}": data
        for name, data in carrier({"general/2023-11-14.json": [message(0, "a")]}).members.items()
    }
    assert parse_transcript(slack, MemoryTranscript("x.zip", members=members)).said == [
        ("Ann: a", "")
    ]


@pytest.mark.parametrize(("written", "meant"), [
    ("<@U2> and <@U9|old> and <@U8>", "@Bo C. and @old and @U8"), ("in <#C2|chance> or <#C2>", "in #chance or #random"),
    ("<!here> <!subteam^S1|@ops> <!date^1^{date}|noon>", "@here @ops noon"), ("<https://a.b/c|the page>", "the page (https://a.b/c)"),
    ("<https://a.b/c> <http://a.b|a.b> <mailto:x@y.z|x@y.z>", "https://a.b/c a.b x@y.z"),
    ("a &lt; b &amp;&amp; c &gt; d, &amp;lt; &quot;", "a < b && c > d, &lt; &quot;"),
    ("<|x|> and <|endoftext|> <||> <@> <#|>", "<|x|> and <|endoftext|> <||> @ #"),
    ("```\nif a &lt; b:\n  c\n```", "```\nif a < b:\n  c\n```"), ("a <b", "a <b"),
])  # fmt: skip
def test_markup_is_read_as_it_was_meant(written: str, meant: str) -> None:
    assert export(message(0, written)).said == [(f"Ann: {meant}", "")]


@given(
    st.lists(st.sampled_from([*"<>|@#!^&;\n a", "U1", "C1", "&lt;", "https://a.b"])).map("".join)
)
def test_any_markup_is_read(written: str) -> None:
    names = SlackNames({"U1": "Ann"}, {"C1": "general"})
    assert strip_markup(f"{written}\nlast", names).endswith("last")


@pytest.mark.parametrize(
    "subtype",
    ["channel_join", "channel_leave", "channel_topic", "channel_purpose", "bot_add", "tombstone"],
)
def test_what_slack_itself_says_is_left_out(subtype: str) -> None:
    parsed = export(message(0, "<@U1> did it", subtype=subtype))
    assert (parsed.said, parsed.unknown) == ([], {})


def test_messages_without_a_text_are_left_out() -> None:
    empty = message(
        0, "", subtype="bot_message", bot_id="B1", attachments=[{"text": "1 new commit"}]
    )
    assert export(empty, message(1, " \n")).said == []


@pytest.mark.parametrize(("more", "speaker"), [
    ({"user": None, "subtype": "bot_message", "username": "deploys", "bot_id": "B1"}, "deploys: "),
    ({"user": "U7", "user_profile": {"display_name": "", "real_name": "Cy"}}, "Cy: "), ({"user": "U7"}, "U7: "),
    ({"user": None, "bot_id": "B1", "bot_profile": {"name": "ci"}}, "ci: "), ({"user": None}, ""),
    ({"user": None, "subtype": "file_comment", "comment": {"user": "U2"}}, "Bo C.: "),
    ({"subtype": "thread_broadcast"}, "Ann: "),
])  # fmt: skip
def test_the_speaker_is_named_as_well_as_can_be(more: dict[str, object], speaker: str) -> None:
    assert export(message(0, "hi") | more).said == [(f"{speaker}hi", "")]


def test_what_is_unknown_is_counted_and_what_was_typed_in_it_is_kept() -> None:
    parsed = export(
        message(0, "a", subtype="new_thing"), {"type": "poll", "text": "b"}, "c", message(1, "d")
    )
    assert parsed.unknown == {"subtype new_thing": 1, "type poll": 1, "no message": 1}
    assert parsed.said == [("Ann: a", "Ann: d")]


def test_a_message_twice_is_read_once_and_one_without_a_time_stays_in_its_place() -> None:
    parsed = export(
        message(0, "a"),
        message(0, "a"),
        {"type": "message", "text": "b", "user": "U2"},
        message(1, "c"),
    )
    assert parsed.said == [("Ann: a", "Bo C.: b\n\nAnn: c")]


def test_a_broken_file_is_reported_and_the_others_are_read() -> None:
    members = dict(carrier({"general/2023-11-14.json": [message(0, "a")]}).members)
    members |= {
        "general/2023-11-15.json": b'[{"type": "message", "te',
        "users.json": b"\xff",
        "random/2023-11-14.json": b"{}",
    }
    parsed = parse_transcript(slack, MemoryTranscript("x.zip", members=members))
    assert (parsed.said, parsed.unknown) == ([("U1: a", "")], {"broken JSON": 2})


ANYTHING = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(st.characters(), max_size=8),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(st.sampled_from(["id", "name", "profile", "user"]), inner)
    ),
    max_leaves=5,
)
KEYS = [
    "type",
    "subtype",
    "user",
    "text",
    "ts",
    "thread_ts",
    "user_profile",
    "bot_profile",
    "comment",
    "replies",
]
MUTATED = st.lists(
    st.builds(
        lambda changed: message(0, "<@U1|x> hi") | changed,
        st.dictionaries(st.sampled_from(KEYS), ANYTHING),
    )
)


@given(MUTATED | ANYTHING, ANYTHING, ANYTHING, st.integers(0, 300))
def test_nothing_is_raised_whatever_stands_in_it(
    messages: Any,  # noqa: ANN401
    people: Any,  # noqa: ANN401
    channels: Any,  # noqa: ANN401
    end: int,
) -> None:
    whole = carrier(
        {
            "users.json": people,
            "channels.json": channels,
            "dms.json": channels,
            "general/2023-11-14.json": messages,
        }
    )
    members = {
        **whole.members,
        "random/2023-11-15.json": whole.members["general/2023-11-14.json"][:end],
    }
    parsed = parse_transcript(slack, MemoryTranscript("x.zip", members=members))
    for exchange in parsed.exchanges:
        f"{exchange.question}{exchange.answer}".encode()


@pytest.mark.skipif(not SAMPLE.exists(), reason="the samples are not here")
def test_of_the_sample_every_message_that_says_something_is_read() -> None:
    """Of its 158 messages 94 are a bot's without a text, and 11 are of people who joined and bots that were added."""
    with zipfile.ZipFile(SAMPLE) as archive:
        members = {name: archive.read(name) for name in archive.namelist()}
    assert slack.matches_folder(list(members))
    parsed = parse_transcript(slack, MemoryTranscript("slack/testarchive.zip", members=members))
    turns = [
        event
        for event in slack.read_events(MemoryTranscript("x.zip", members=members))
        if isinstance(event, Turn)
    ]
    assert len(turns) == 158 - 94 - 11 == 53
    assert {turn.speaker for turn in turns} == {
        "hamza",
        "abilinski",
        "doubledeez",
        "heroeshannibal",
    }
    assert (len(parsed.exchanges), len(parsed.heads), parsed.unknown) == (26, 10, {})
    assert "<" not in parsed.said[0][0]
