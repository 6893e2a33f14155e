"""Slack's export, zipped or not: a folder for each channel with a file for each day, and lists of people and channels.

A thread is one exchange wherever its replies stand, also in later days' files; what is in none goes together until there is a
pause. Nobody is the user or the assistant: who speaks is told by name. A session is what began in a channel on one day.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from anchord.conversation import Carrier, Event, Head, Role, Turn, Unknown
from anchord.sources.conversations.records import Record, items, table, text, time_of, words
from anchord.sources.conversations.slack_text import Names, readable

SOURCE = "slack"

_DAY = re.compile(r"(?:(?P<above>.*)/)?(?P<channel>[^/]+)/(?P<day>[0-9]{4}-[0-9]{2}-[0-9]{2})\.json", re.DOTALL)
_PEOPLE = words("users.json org_users.json")
_NAMED = words("channels.json groups.json")
_LISTS = words("channels.json groups.json dms.json mpims.json")
_TIME = re.compile(r"[0-9]{1,12}(?:\.[0-9]{1,9})?")
_EVENTS = words(
    "channel_join channel_leave channel_topic channel_purpose channel_name channel_archive channel_unarchive "
    "channel_convert_to_private channel_convert_to_public channel_posting_permissions channel_canvas_updated group_join "
    "group_leave group_topic group_purpose group_name group_archive group_unarchive bot_add bot_remove bot_enable bot_disable "
    "app_conversation_join pinned_item unpinned_item reply_broadcast tombstone reminder_add joiner_notification "
    "joiner_notification_for_inviter huddle_thread sh_room_created sh_room_shared"
)
_SAID = words("bot_message file_share file_comment file_mention me_message thread_broadcast slackbot_response")
_PAUSE = 20 * 60
_MOST_MESSAGES, _MOST_CHARS = 50, 8_000
"""A run without a pause is cut at these."""


def recognises(head: bytes, path: str) -> bool:  # noqa: ARG001 - all families are asked in the same words
    """Never by one file: an export is known by the names of all that is in it."""
    return False


def folder(path: str) -> str:
    """Return the folder of the export that a file with this name would be of; whether it is one, `claims` says."""
    above, _, name = path.rpartition("/")
    found = _DAY.fullmatch(path)
    return found["above"] or "" if found else above if name in _LISTS | _PEOPLE else ""


def claims(names: Sequence[str]) -> bool:
    """Whether these are an export: a list of channels, and days in folders beside it."""
    beside = {name.rpartition("/")[0] for name in names if name.rpartition("/")[2] in _LISTS}
    return any((found["above"] or "") in beside for name in names if (found := _DAY.fullmatch(name)))


@dataclass(frozen=True, slots=True)
class _Message:
    id: str
    second: float
    thread: str
    """The message that it answers, or that is answered: "" for none."""
    speaker: str
    text: str
    at: str
    day: str
    """As the export has it: in the time zone of whoever made it."""


def read(carrier: Carrier) -> Iterator[Event]:
    """Tell of each channel, one at a time."""
    channels: dict[tuple[str, str], list[re.Match[str]]] = {}
    lists: dict[str, list[Record]] = {}
    for name in sorted(carrier.names()):
        last = name.rpartition("/")[2]
        if found := _DAY.fullmatch(name):
            channels.setdefault((found["above"] or "", found["channel"]), []).append(found)
        elif last in _LISTS | _PEOPLE:
            lists.setdefault(last, []).extend(table(each) for each in _loaded(carrier, name) or [])
    names = _names(lists)
    titles = _titles(lists, names)
    for (_, channel), days in channels.items():
        messages: dict[str, _Message] = {}
        for day in days:
            for told in _told(_loaded(carrier, day[0]), day["day"], names):
                if isinstance(told, Unknown):
                    yield told
                else:
                    messages.setdefault(told.id, told)
        identity, title = titles.get(channel, (channel, f"#{channel}"))
        yield from _sessions(identity, title, _exchanges(list(messages.values())))


def _loaded(carrier: Carrier, name: str) -> list[Any] | None:
    """Return a member's array, None where it is broken."""
    try:
        with carrier.member(name) as stream:
            value = json.load(stream)
    except (KeyError, ValueError, RecursionError):
        return None
    return value if isinstance(value, list) else None


def _names(lists: Mapping[str, Sequence[Record]]) -> Names:
    people = [person for name in sorted(_PEOPLE) for person in lists.get(name, ())]
    channels = [channel for name in sorted(_NAMED) for channel in lists.get(name, ())]
    return Names(
        {text(person.get("id")): _called(table(person.get("profile"))) or _called(person) for person in people},
        {text(channel.get("id")): text(channel.get("name")) for channel in channels},
    )


def _called(person: Record) -> str:
    """Return the name that Slack shows of somebody."""
    return next((found for key in ("display_name", "real_name", "name") if (found := text(person.get(key)).strip())), "")


def _titles(lists: Mapping[str, Sequence[Record]], names: Names) -> dict[str, tuple[str, str]]:
    """Return the id and the title of each folder's channel. Folders have the names of channels; of two people's, the id."""
    found = {}
    for name in sorted(_LISTS):
        for channel in lists.get(name, ()):
            key = text(channel.get("id"))
            members = (names.users.get(text(member)) or text(member) for member in items(channel.get("members")))
            of_people = ", ".join(f"@{member}" for member in members if member)
            title = f"#{text(channel.get('name'))}" if name in _NAMED else of_people or key
            found[text(channel.get("name")) or key] = (key or text(channel.get("name")), title)
    return found


def _told(records: list[Any] | None, day: str, names: Names) -> Iterator[_Message | Unknown]:
    if records is None:
        yield Unknown("broken JSON")
        return
    second = 0.0
    for place, value in enumerate(records):
        record = table(value)
        kind, subtype = text(record.get("type")), text(record.get("subtype"))
        if kind != "message":
            yield Unknown("type", str(kind)) if kind else Unknown("no message")
            continue
        if subtype not in _SAID and subtype not in _EVENTS and subtype:
            yield Unknown("subtype", str(subtype))  # What was typed in it is kept.
        said = readable(text(record.get("text")), names)
        if subtype in _EVENTS or not said.strip():
            continue
        stamp = text(record.get("ts"))
        known = bool(_TIME.fullmatch(stamp))
        second = float(stamp) if known else second  # Without a time it stays where it stands.
        answered = stamp if record.get("reply_count") or record.get("replies") else ""
        yield _Message(
            stamp if known else f"{day}#{place}", second, text(record.get("thread_ts")) or answered,
            _speaker(record, names), said, time_of(stamp), day,
        )  # fmt: skip


def _speaker(record: Record, names: Names) -> str:
    user = text(record.get("user")) or text(table(record.get("comment")).get("user"))
    return (
        names.users.get(user) or _called(table(record.get("user_profile"))) or text(record.get("username"))
        or text(table(record.get("bot_profile")).get("name")) or user or text(record.get("bot_id"))
    )  # fmt: skip


def _exchanges(messages: Sequence[_Message]) -> list[list[_Message]]:
    """Return threads and runs, by their first messages' times."""
    answered = {message.thread for message in messages}
    threads, runs, size = dict[str, list[_Message]](), list[list[_Message]](), 0
    for message in sorted(messages, key=lambda message: message.second):
        size += len(message.text)
        if message.thread or message.id in answered:
            threads.setdefault(message.thread or message.id, []).append(message)
        elif runs and message.second - runs[-1][-1].second <= _PAUSE and len(runs[-1]) < _MOST_MESSAGES and size < _MOST_CHARS:
            runs[-1].append(message)
        else:
            runs.append([message])
            size = len(message.text)
    return sorted([*threads.values(), *runs], key=lambda exchange: exchange[0].second)


def _sessions(channel: str, title: str, exchanges: Sequence[Sequence[_Message]]) -> Iterator[Event]:
    days: dict[str, list[Sequence[_Message]]] = {}
    for exchange in exchanges:
        days.setdefault(exchange[0].day, []).append(exchange)
    for day, begun in sorted(days.items()):
        yield Head(f"{channel}/{day}", f"{title} > {day}")
        for exchange in begun:
            for place, message in enumerate(exchange):
                role = Role.ANSWER if place else Role.QUESTION
                yield Turn(message.id, role, message.text, message.at, speaker=message.speaker)
