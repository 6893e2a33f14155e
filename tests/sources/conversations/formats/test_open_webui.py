"""Open WebUI: the branch of the current message is active; thinking and tool calls are removed."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given, settings
from sources.conversations.formats.carriers import (
    MemoryTranscript,
    ParsedTranscript,
    parse_transcript,
    recognised,
)
from sources.conversations.formats.mutations import broken, survives

from anchord.sources.conversations.formats import open_webui

PATH = "chat-export-1767323045.json"


def message(
    key: str, parent: str | None, role: str, content: object, **more: object
) -> dict[str, Any]:
    return {
        "id": key,
        "parentId": parent,
        "childrenIds": [],
        "role": role,
        "content": content,
        "timestamp": 1_767_323_045,
        **more,
    }


def chat(*messages: dict[str, Any], current: str | None = None, **more: object) -> dict[str, Any]:
    history = {
        "messages": {each["id"]: each for each in messages},
        "currentId": current or (messages[-1]["id"] if messages else None),
    }
    return {"id": "c-1", "user_id": "u", "title": "Shop", "chat": {"title": "Shop", "history": history, "messages": []},
            "created_at": 1_767_323_000, "updated_at": 1_767_323_100, **more}  # fmt: skip


def export(*chats: object) -> ParsedTranscript:
    return parse_transcript(open_webui, MemoryTranscript(PATH, json.dumps(chats).encode()))


TALK = [message("a", None, "user", "Where is the till?"), message("b", "a", "assistant", "At the door.", model="llama"),
        message("c", "b", "user", "And why?"), message("d", "c", "assistant", "It was cheap.", model="llama")]  # fmt: skip


def answer(content: str) -> tuple[str, tuple[str, ...]]:
    """Return the answer that is read of this content."""
    exchange = export(chat(TALK[0], message("b", "a", "assistant", content))).exchanges[0]
    return exchange.answer, exchange.tools


def test_an_export_and_a_single_chat_are_recognised() -> None:
    assert recognised(open_webui, MemoryTranscript(PATH, json.dumps([chat(*TALK)]).encode()))
    assert recognised(open_webui, MemoryTranscript(PATH, json.dumps(chat(*TALK)["chat"]).encode()))


def test_an_export_of_another_program_is_not() -> None:
    chatgpt: dict[str, Any] = {
        "mapping": {
            "a": {
                "id": "a",
                "message": {"author": {"role": "user"}},
                "parent": None,
                "children": [],
            }
        }
    }
    assert not recognised(open_webui, MemoryTranscript(PATH, json.dumps([chatgpt]).encode()))
    assert not recognised(
        open_webui, MemoryTranscript("a.jsonl", json.dumps([chat(*TALK)]).encode())
    )


def test_each_chat_is_a_session() -> None:
    parsed = export(chat(*TALK), chat(*TALK[:2], id="c-2", title="Second"))
    assert parsed.said == [
        ("Where is the till?", "At the door."),
        ("And why?", "It was cheap."),
        ("Where is the till?", "At the door."),
    ]
    assert [(head.session, head.title, head.updated) for head in parsed.heads] == [
        ("c-1", "Shop", "2026-01-02T03:05:00.000Z"),
        ("c-2", "Second", "2026-01-02T03:05:00.000Z"),
    ]
    assert (parsed.exchanges[0].id, parsed.exchanges[0].at, parsed.exchanges[0].model) == (
        "a",
        "2026-01-02T03:04:05.000Z",
        "llama",
    )
    assert not parsed.unknown


def test_a_single_chat_is_a_session() -> None:
    parsed = parse_transcript(
        open_webui,
        MemoryTranscript(PATH, json.dumps({**chat(*TALK)["chat"], "id": "c-9"}).encode()),
    )
    assert parsed.said == export(chat(*TALK)).said
    assert parsed.heads[0].session == "c-9"


def test_a_chat_without_a_tree_is_its_list() -> None:
    parsed = export({"id": "c", "chat": {"messages": TALK}})
    assert parsed.said == export(chat(*TALK)).said


def test_an_answer_that_was_asked_for_again_is_superseded() -> None:
    again = message("e", "c", "assistant", "For the view.")
    parsed = export(chat(*TALK, again))
    assert parsed.said == [("Where is the till?", "At the door."), ("And why?", "For the view.")]
    left = [exchange for exchange in parsed.exchanges if exchange.superseded]
    assert [(exchange.id, exchange.question, exchange.answer) for exchange in left] == [
        ("c~d", "And why?", "It was cheap.")
    ]
    assert export(chat(*TALK, again, current="d")).said == export(chat(*TALK)).said


def test_an_edited_question_is_superseded_with_its_answer() -> None:
    parsed = export(chat(*TALK, message("e", "b", "user", "And when?")))
    assert parsed.said == [("Where is the till?", "At the door."), ("And when?", "")]
    assert [(each.question, each.answer) for each in parsed.exchanges if each.superseded] == [
        ("And why?", "It was cheap.")
    ]


@pytest.mark.parametrize("current", ["gone", ""])
def test_without_a_current_message_the_newest_is_on_the_active_branch(current: str) -> None:
    newer = message("e", "c", "assistant", "For the view.", timestamp=1_767_323_999)
    exported = chat(TALK[0], TALK[1], TALK[2], newer, TALK[3])
    exported["chat"]["history"]["currentId"] = current
    assert export(exported).said[1] == ("And why?", "For the view.")


def test_of_messages_without_times_the_last_is_the_newest() -> None:
    timeless = [{key: value for key, value in each.items() if key != "timestamp"} for each in TALK]
    exported = chat(*timeless)
    del exported["chat"]["history"]["currentId"]
    assert export(exported).said == export(chat(*TALK)).said


def test_system_messages_are_no_prose() -> None:
    assert export(
        chat(message("s", None, "system", "Be brief"), message("a", "s", "user", "Hi"))
    ).said == [("Hi", "")]


def test_reasoning_is_taken_out() -> None:
    reasoning = '<details type="reasoning" done="true" duration="3">\n<summary>Thought</summary>\n> ```\n> hm\n</details>\n'
    assert answer(f"Before\n{reasoning}After") == ("Before\nAfter", ())
    assert answer(f"{reasoning}\nFirst\n\nSecond") == ("First\n\nSecond", ())


def test_reasoning_without_an_end_is_taken_out() -> None:
    assert answer('Before\n<details type="reasoning" done="false">\n> hm') == ("Before", ())


def test_a_leading_think_tag_is_taken_out() -> None:
    assert answer("<think>\nhm\n</think>\n\nDone.") == ("Done.", ())


def test_calls_of_tools_are_lines() -> None:
    arguments = "&quot;{\\&quot;query\\&quot;: \\&quot;till\\&quot;}&quot;"
    call = f'<details type="tool_calls" done="true" id="1" name="search" arguments="{arguments}" result="&quot;&lt;b&gt;&quot;">'
    call += "\n<summary>Tool Executed</summary>\n</details>"
    code = '<details id="x" type="code_interpreter" done="true">\n<summary>Analyzed</summary>\n```python\n1\n```\n</details>'
    assert answer(f"{call}\n{code}\nDone.") == ("Done.", ("[search] till", "[code_interpreter]"))


def test_broken_arguments_of_a_tool_are_kept_as_they_are() -> None:
    assert answer(
        '<details type="tool_calls" name="search" arguments="{a">\n</details>\nDone.'
    ) == ("Done.", ("[search] {a",))


def test_details_in_a_fence_and_of_the_answer_itself_stay() -> None:
    quoted = '```html\n<details type="reasoning">\nhm\n</details>\n```\n<details>\n<summary>More</summary>\nProse\n</details>'
    assert answer(quoted) == (quoted, ())


def test_what_a_person_quotes_stays() -> None:
    quoted = '<details type="reasoning">\nhm\n</details>\nWhat is this?'
    assert export(chat(message("a", None, "user", quoted))).said == [(quoted, "")]


def test_documents_are_attachments_and_images_are_marked() -> None:
    files = [
        {
            "type": "file",
            "name": "list.pdf",
            "file": {"filename": "l", "data": {"content": "Apples"}},
        },
        {"type": "image", "url": "data:image/png;base64,AAAA"},
    ]
    parsed = export(chat(message("a", None, "user", "See", files=files)))
    assert parsed.said == [("See\n\n[image]", "")]
    assert [
        (each.question, each.answer) for each in parsed.exchanges if each.kind == "attachment"
    ] == [("list.pdf", "Apples")]
    assert export(chat(message("a", None, "user", "", files=files[:1]))).said == [
        ("[list.pdf]", "")
    ]


def test_content_can_be_a_list_of_parts() -> None:
    parts = [
        {"type": "text", "text": "One"},
        {"type": "image_url", "image_url": {"url": "data:"}},
        {"type": "text", "text": "Two"},
    ]
    assert export(chat(message("a", None, "user", parts))).said == [("One\n\nTwo", "")]


def test_documents_without_a_name_of_their_own() -> None:
    files = [
        {"type": "file", "file": {"filename": "list.pdf", "data": {"content": "a"}}},
        {"type": "file"},
    ]
    assert export(chat(message("a", None, "user", "", files=files))).said == [
        ("[list.pdf]\n\n[attachment]", "")
    ]


def test_an_answer_of_calls_alone_has_its_calls() -> None:
    called = message("b", "a", "assistant", '<details type="tool_calls" name="run">\n</details>')
    assert export(chat(TALK[0], called)).exchanges[0].tools == ("[run]",)


def test_a_fence_that_ended_quotes_no_more() -> None:
    fences = "````\n```\n````\n```py a``` b\n~~~\n```\n~~~\n"
    reasoning = '<details type="reasoning">\nhm\n</details>\n'
    assert answer(f"{fences}{reasoning}After") == (f"{fences}After", ())


def test_a_fence_within_reasoning_is_taken_out_with_it() -> None:
    reasoning = '<details type="reasoning">\n```\n<details type="reasoning">\nhm\n</details>\n'
    assert answer(f"{reasoning}After\n```\ncode\n```") == ("After\n```\ncode\n```", ())


def test_a_chat_is_named_by_whatever_names_it() -> None:
    inner = {**chat(*TALK)["chat"], "id": "inner"}
    assert export({"title": "", "chat": inner}).heads[0].session == "inner"
    assert export({"title": "", "chat": inner}).title == "Shop"
    nameless = {"created_at": 1_767_323_045, "chat": {"title": "Shop", "messages": TALK}}
    assert export(nameless).heads[0].session == "untitled Shop 2026-01-02T03:04:05.000Z"


def test_a_chat_can_have_a_tree_alone_and_another_spelling() -> None:
    history = chat(*TALK, message("e", "c", "assistant", "For the view."))["chat"]["history"]
    history["current_id"] = "d"
    del history["currentId"]
    assert export({"id": "c-1", "chat": {"history": history}}).said == export(chat(*TALK)).said


@pytest.mark.parametrize("key", ["childrenIds", "parentId", "role"])
def test_a_file_whose_messages_lack_a_key_is_no_export(key: str) -> None:
    data = json.dumps([chat(*TALK)]).replace(key, "other").encode()
    assert not recognised(open_webui, MemoryTranscript(PATH, data))


def test_what_is_unknown_is_counted_and_a_broken_end_loses_nothing_before_it() -> None:
    parsed = export(chat(*TALK, message("n", "d", "narrator", "Once")), {"hello": 1}, 7)
    assert parsed.unknown == {"role narrator": 1, "no conversation": 2}
    assert parsed.said == export(chat(*TALK)).said
    data = json.dumps([chat(*TALK), chat(*TALK)]).encode()[:-40]
    parsed = parse_transcript(open_webui, MemoryTranscript(PATH, data))
    assert parsed.said == export(chat(*TALK)).said
    assert parsed.unknown == {"broken JSON": 1}


CHATS = [
    chat(
        *TALK,
        message(
            "e",
            "c",
            "assistant",
            '<details type="tool_calls" name="a" arguments="&quot;1">\nb\n</details>c',
        ),
        message(
            "f",
            "b",
            "user",
            [{"type": "text", "text": "a"}],
            files=[{"name": "a", "file": {"data": {"content": "b"}}}],
        ),
    )
]


@settings(deadline=None)
@given(broken(CHATS))
def test_nothing_that_is_broken_raises(data: bytes) -> None:
    survives(open_webui, PATH, data)
