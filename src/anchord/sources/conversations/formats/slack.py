"""Reads Slack's export, zipped or not: a folder for each channel with a file for each day.

Beside the folders are lists of people and channels. A thread is one exchange, also where its
replies are in later days' files. Messages outside threads are grouped until there is a pause.
Nobody is the user or the assistant: each turn names its speaker. A session is what began in a
channel on one day.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from operator import attrgetter
from typing import Any, NamedTuple

from anchord.core.lazy_re import lazy_re
from anchord.sources.conversations.events import (
    Event,
    Role,
    SessionInfo,
    TranscriptFile,
    Turn,
    UnknownRecord,
)
from anchord.sources.conversations.formats.json_fields import get_dict, get_list, get_str
from anchord.sources.conversations.formats.json_records import (
    Record,
    dict_or_empty,
    normalize_timestamp,
    str_or_empty,
    unknown_record,
    word_set,
)
from anchord.sources.conversations.formats.slack_text import SlackNames, strip_markup

SOURCE = "slack"

_DAY_PATH = lazy_re(
    r"(?:(?P<above>.*)/)?(?P<channel>[^/]+)/(?P<day>[0-9]{4}-[0-9]{2}-[0-9]{2})\.json", re.DOTALL
)
_PEOPLE_FILES = word_set("users.json org_users.json")
_NAMED_CHANNEL_FILES = word_set("channels.json groups.json")
_CHANNEL_FILES = word_set("channels.json groups.json dms.json mpims.json")
_LIST_FILES = _CHANNEL_FILES | _PEOPLE_FILES
_TIMESTAMP = lazy_re(r"[0-9]{1,12}(?:\.[0-9]{1,9})?")
_IGNORED_SUBTYPES = word_set(
    "channel_join channel_leave channel_topic channel_purpose channel_name channel_archive "
    "channel_unarchive channel_convert_to_private channel_convert_to_public "
    "channel_posting_permissions channel_canvas_updated group_join group_leave group_topic "
    "group_purpose group_name group_archive group_unarchive bot_add bot_remove bot_enable "
    "bot_disable app_conversation_join pinned_item unpinned_item reply_broadcast tombstone "
    "reminder_add joiner_notification joiner_notification_for_inviter huddle_thread "
    "sh_room_created sh_room_shared"
)
_MESSAGE_SUBTYPES = word_set(
    "bot_message file_share file_comment file_mention me_message thread_broadcast slackbot_response"
)
_MAX_PAUSE_S = 20 * 60
_MAX_MESSAGES = 50
_MAX_CHARS = 8_000


def matches(head: bytes, path: str) -> bool:  # noqa: ARG001 - every format has this signature
    """Return False: only the names of all members together identify an export."""
    return False


def transcript_folder(path: str) -> str:
    """Return the folder that would be the export of a file with this path, "" for no such file.

    Whether that folder is an export, `matches_folder` decides.
    """
    day = _DAY_PATH.fullmatch(path)
    if day:
        return day["above"] or ""
    folder, _, name = path.rpartition("/")
    return folder if name in _LIST_FILES else ""


def matches_folder(member_names: Sequence[str]) -> bool:
    """Return whether members are an export: a list of channels with folders of days beside it."""
    list_folders = set[str]()
    for member in member_names:
        folder, _, name = member.rpartition("/")
        if name in _CHANNEL_FILES:
            list_folders.add(folder)
    for member in member_names:
        day = _DAY_PATH.fullmatch(member)
        if day is None:
            continue
        folder = day["above"] or ""
        if folder in list_folders:
            return True
    return False


@dataclass(frozen=True, slots=True, kw_only=True)
class _Message:
    id: str
    time_s: float
    """Seconds since 1970; that of the message before it where the export gives none."""
    thread_id: str
    """The id of the thread's first message, which may be this one; "" outside of threads."""
    speaker: str
    text: str
    timestamp: str
    day: str
    """The name of the file that it is in: a day in the time zone of the person who exported."""


def read_events(transcript_file: TranscriptFile) -> Iterator[Event]:
    """Yield the sessions of each channel and their turns, one channel after the other."""
    channels: dict[tuple[str, str], list[re.Match[str]]] = {}
    lists: dict[str, list[Record]] = {}
    for member in sorted(transcript_file.member_names()):
        _, _, name = member.rpartition("/")
        if day := _DAY_PATH.fullmatch(member):
            channel_path = (day["above"] or "", day["channel"])
            days = channels.setdefault(channel_path, [])
            days.append(day)
        elif name in _LIST_FILES:
            entries = _read_member(transcript_file, member) or []
            records = lists.setdefault(name, [])
            records.extend(map(dict_or_empty, entries))
    names = _read_names(lists)
    infos = _channel_infos(lists, names)
    for (_, folder), days in channels.items():
        channel = infos.get(folder)
        if channel is None:
            channel = _Channel(id=folder, title=f"#{folder}")
        yield from _read_channel(transcript_file, channel, days, names)


def _read_channel(
    transcript_file: TranscriptFile,
    channel: _Channel,
    days: Sequence[re.Match[str]],
    names: SlackNames,
) -> Iterator[Event]:
    """Yield the sessions of one channel. Of messages with the same id the first one counts."""
    messages: dict[str, _Message] = {}
    for day in days:
        records = _read_member(transcript_file, day[0])
        for message in _read_messages(records, day["day"], names):
            if isinstance(message, UnknownRecord):
                yield message
            else:
                messages.setdefault(message.id, message)
    exchanges = _group_exchanges(list(messages.values()))
    yield from _read_sessions(channel, exchanges)


def _read_member(transcript_file: TranscriptFile, name: str) -> list[Any] | None:
    """Return a member's JSON array, None where it is broken or no array."""
    try:
        with transcript_file.open_member(name) as stream:
            value = json.load(stream)
    except (KeyError, ValueError, RecursionError):
        return None
    return value if isinstance(value, list) else None


# Names of people and channels


class _Channel(NamedTuple):
    id: str
    title: str


def _read_names(lists: Mapping[str, Sequence[Record]]) -> SlackNames:
    users = {
        get_str(person, "id"): _person_name(person)
        for name in sorted(_PEOPLE_FILES)
        for person in lists.get(name, ())
    }
    channels = {
        get_str(channel, "id"): get_str(channel, "name")
        for name in sorted(_NAMED_CHANNEL_FILES)
        for channel in lists.get(name, ())
    }
    return SlackNames(users=users, channels=channels)


def _person_name(person: Record) -> str:
    return _display_name(get_dict(person, "profile")) or _display_name(person)


def _display_name(person: Record) -> str:
    """Return the name that Slack displays for a person, "" for none."""
    for key in ("display_name", "real_name", "name"):
        if name := get_str(person, key).strip():
            return name
    return ""


def _channel_infos(lists: Mapping[str, Sequence[Record]], names: SlackNames) -> dict[str, _Channel]:
    """Return the channel of each folder.

    A folder is named after its channel; that of a conversation of two people, after its id.
    """
    infos: dict[str, _Channel] = {}
    for list_file in sorted(_CHANNEL_FILES):
        for channel in lists.get(list_file, ()):
            channel_id = get_str(channel, "id")
            name = get_str(channel, "name")
            if list_file in _NAMED_CHANNEL_FILES:
                title = f"#{name}"
            else:
                title = _member_names(channel, names) or channel_id
            folder = name or channel_id
            infos[folder] = _Channel(id=channel_id or name, title=title)
    return infos


def _member_names(channel: Record, names: SlackNames) -> str:
    mentions: list[str] = []
    for member in get_list(channel, "members"):
        user_id = str_or_empty(member)
        name = names.users.get(user_id)
        if not name:
            name = user_id
        if name:
            mentions.append(f"@{name}")
    return ", ".join(mentions)


# Messages


def _read_messages(
    records: list[Any] | None, day: str, names: SlackNames
) -> Iterator[_Message | UnknownRecord]:
    """Yield the messages of a day's file that hold text, in the file's order."""
    if records is None:
        yield UnknownRecord("broken JSON")
        return
    time_s = 0.0
    for number, record in enumerate(map(dict_or_empty, records)):
        kind = get_str(record, "type")
        if kind != "message":
            yield unknown_record("type", kind, unnamed="no message")
            continue
        subtype = get_str(record, "subtype")
        if subtype in _IGNORED_SUBTYPES:
            continue
        if subtype and subtype not in _MESSAGE_SUBTYPES:
            # It is reported, and its text is indexed all the same.
            yield UnknownRecord("subtype", subtype)
        text = strip_markup(get_str(record, "text"), names)
        if not text.strip():
            continue
        stamp = get_str(record, "ts")
        has_time = bool(_TIMESTAMP.fullmatch(stamp))
        if has_time:
            time_s = float(stamp)
        # A message without a time keeps its place behind the one above it.
        yield _Message(
            id=stamp if has_time else f"{day}#{number}",
            time_s=time_s,
            thread_id=_thread_id(record),
            speaker=_speaker_name(record, names),
            text=text,
            timestamp=normalize_timestamp(stamp),
            day=day,
        )


def _thread_id(record: Record) -> str:
    """Return the id of the thread that a message answers or, having replies, began; "" for none."""
    thread = get_str(record, "thread_ts")
    if thread:
        return thread
    has_replies = record.get("reply_count") or record.get("replies")
    if not has_replies:
        return ""
    return get_str(record, "ts")


def _speaker_name(record: Record, names: SlackNames) -> str:
    comment = get_dict(record, "comment")
    user_id = get_str(record, "user") or get_str(comment, "user")
    candidates = (
        names.users.get(user_id, ""),
        _display_name(get_dict(record, "user_profile")),
        get_str(record, "username"),
        get_str(get_dict(record, "bot_profile"), "name"),
        user_id,
        get_str(record, "bot_id"),
    )
    return next(filter(None, candidates), "")


# Exchanges and sessions


def _group_exchanges(messages: Sequence[_Message]) -> list[list[_Message]]:
    """Return threads, and runs of the other messages, by the time of their first message.

    A run ends at a pause of more than 20 minutes, at 50 messages, and before it reaches 8,000
    characters, those of threads in between included.
    """
    thread_ids = {message.thread_id for message in messages}
    threads: dict[str, list[_Message]] = {}
    runs: list[list[_Message]] = []
    run: list[_Message] = []
    run_chars = 0
    for message in sorted(messages, key=attrgetter("time_s")):
        message_chars = len(message.text)
        run_chars += message_chars
        if message.thread_id or message.id in thread_ids:
            thread_id = message.thread_id or message.id
            thread = threads.setdefault(thread_id, [])
            thread.append(message)
        elif run_chars < _MAX_CHARS and _continues_run(message, run):
            run.append(message)
        else:
            run = [message]
            runs.append(run)
            run_chars = message_chars
    exchanges = [*threads.values(), *runs]
    exchanges.sort(key=lambda exchange: exchange[0].time_s)
    return exchanges


def _continues_run(message: _Message, run: Sequence[_Message]) -> bool:
    if not run or len(run) >= _MAX_MESSAGES:
        return False
    last = run[-1]
    pause_s = message.time_s - last.time_s
    return pause_s <= _MAX_PAUSE_S


def _read_sessions(channel: _Channel, exchanges: Sequence[Sequence[_Message]]) -> Iterator[Event]:
    """Yield a session for each day on which exchanges of a channel began."""
    exchanges_by_day: dict[str, list[Sequence[_Message]]] = {}
    for exchange in exchanges:
        first = exchange[0]
        begun = exchanges_by_day.setdefault(first.day, [])
        begun.append(exchange)
    for day, begun in sorted(exchanges_by_day.items()):
        session = f"{channel.id}/{day}"
        title = f"{channel.title} > {day}"
        yield SessionInfo(session=session, title=title)
        for exchange in begun:
            yield from _make_turns(exchange)


def _make_turns(exchange: Sequence[_Message]) -> Iterator[Turn]:
    for number, message in enumerate(exchange):
        yield Turn(
            id=message.id,
            role=Role.QUESTION if number == 0 else Role.ANSWER,
            text=message.text,
            at=message.timestamp,
            speaker=message.speaker,
        )
