"""Invented sessions of programs that write a line for each event, and of people who keep transcripts."""

from __future__ import annotations

from tools.fuzz.seeds.written import DAY, SECOND, Json, lines, text


def _claude(kind: str, uuid: str, parent: str | None, content: object, **more: object) -> Json:
    role = "user" if kind == "user" else "assistant"
    about = {
        "type": kind,
        "uuid": uuid,
        "parentUuid": parent,
        "sessionId": "s1",
        "cwd": "/home/ann/bakery",
        "timestamp": DAY,
    }
    return {
        **about,
        "message": {"id": f"m-{uuid}", "role": role, "model": "opus", "content": content},
        **more,
    }


_CLAUDE = lines(
    "claude-code projects/bakery/s1.jsonl",
    {"type": "summary", "leafUuid": "a1", "summary": "On rye"},
    _claude("user", "q1", None, "How long does **rye** rise?"),
    _claude("assistant", "a1", "q1", [
        {"type": "thinking", "thinking": "hm"}, {"type": "text", "text": "Two hours.\n\n```sh\nsleep 7200\n```"},
        {"type": "tool_use", "id": "t1", "name": "Edit", "input": {"file_path": "rye.md", "old": "1", "new": "2"}},
    ]),
    _claude("user", "r1", "a1", [{"type": "tool_result", "tool_use_id": "t1", "content": "done"}]),
    _claude("user", "q2", "a1", "<system-reminder>x</system-reminder>And wheat?"),
    _claude("assistant", "a2", "q2", "One hour."),
    _claude("user", "q3", "a1", [{"type": "text", "text": "And oats?"}, {"type": "image", "source": {}}]),
    _claude("assistant", "a3", "q3", [{"type": "text", "text": "Not at all."}], isSidechain=False),
    _claude("user", "c1", "a3", "What was said so far", isCompactSummary=True),
    {"type": "ai-title", "aiTitle": "Bread", "sessionId": "s1"},
    {"type": "queue-operation"},
)  # fmt: skip


def _codex(kind: str, **payload: object) -> Json:
    return {"timestamp": DAY, "type": kind, "payload": payload}


CODEX = lines(
    "codex sessions/2026/01/02/rollout-2026-01-02T10-00-00-0199aaaa-bbbb-7ccc-8ddd-eeeeeeeeeeee.jsonl",
    _codex("session_meta", id="0199aaaa-bbbb-7ccc-8ddd-eeeeeeeeeeee", cwd="/home/ann/bakery", source={"subagent": {}}),
    _codex("turn_context", turn_id="t1", model="gpt-5"),
    _codex("event_msg", type="user_message", message="# Context from my IDE setup:\nx\n## My request for Codex:\nBake rye."),
    _codex("response_item", type="message", role="user", content=[{"type": "input_text", "text": "Bake rye."}]),
    _codex("response_item", type="function_call", name="shell", arguments='{"command": ["ls", "-l"]}', call_id="c1"),
    _codex("response_item", type="custom_tool_call", name="apply_patch", input="*** Begin Patch\n*** Update File: rye.md\n"),
    _codex("event_msg", type="agent_message", message="Baked."),
    _codex("event_msg", type="task_started", turn_id="t2"),
    _codex("event_msg", type="user_message", message="And wheat?", images=["x"]),
    _codex("event_msg", type="agent_message", message="Baked as well."),
    _codex("event_msg", type="thread_rolled_back", num_turns=1),
    _codex("compacted", message="Rye was baked."),
)  # fmt: skip
_OLD_CODEX = lines(
    "codex sessions/rollout-old.jsonl",
    {"id": "s9", "timestamp": DAY},
    {
        "type": "message",
        "role": "user",
        "content": [{"type": "input_text", "text": "<environment_context>x</environment_context>"}],
    },
    {
        "type": "message",
        "role": "user",
        "content": [{"type": "input_text", "text": "Bake."}, {"type": "input_image"}],
    },
    {"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": "Done."}]},
)


def _gemini(name: str, kind: str, said: object, **more: object) -> Json:
    return {"id": name, "timestamp": DAY, "type": kind, "content": said, **more}


_GEMINI = lines(
    "gemini-cli tmp/bakery/chats/session-2026-01-02.jsonl",
    {"sessionId": "g1", "projectHash": "a" * 64, "startTime": DAY, "lastUpdated": DAY},
    _gemini("m1", "user", [{"text": "How long does rye rise?"}, {"inlineData": {}}]),
    _gemini(
        "m2",
        "gemini",
        "Two hours.",
        model="pro",
        toolCalls=[{"name": "write_file", "args": {"file_path": "rye.md"}}],
    ),
    _gemini("m3", "user", "And wheat?"),
    {"$rewindTo": "m3"},
    _gemini("m4", "user", "And oats?"),
    {"$set": {"summary": "On rye", "messages": [_gemini("m9", "gemini", "Shown.")]}},
    _gemini("m5", "info", "quiet"),
)
_COPILOT = lines(
    "copilot-cli session-state/c1/events.jsonl",
    {"type": "session.start", "id": "e0", "timestamp": DAY, "data": {"sessionId": "c1", "context": {"cwd": "/home/ann"}}},
    {"type": "user.message", "id": "e1", "timestamp": DAY, "data": {"content": "Bake rye.", "source": "user"}},
    {"type": "assistant.message", "id": "e2", "timestamp": DAY, "data": {
        "content": "Baked.", "toolRequests": [{"name": "edit", "arguments": {"path": "rye.md"}}], "model": "gpt"}},
    {"type": "session.title_changed", "id": "e3", "data": {"title": "Bread"}},
    {"type": "user.message", "id": "e4", "timestamp": DAY, "data": {"content": "And wheat?"}},
    {"type": "session.snapshot_rewind", "id": "e5", "data": {"upToEventId": "e4"}},
    {"type": "session.task_complete", "id": "e6", "data": {"summary": "All baked."}},
)  # fmt: skip
_PI = lines(
    "pi sessions/2026_p1.jsonl",
    {"type": "session", "version": 3, "id": "p1", "timestamp": DAY, "cwd": "/home/ann"},
    {"type": "model_change", "id": "x0", "parentId": None, "modelId": "opus"},
    {"type": "message", "id": "x1", "parentId": "x0", "timestamp": DAY, "message": {
        "role": "user", "content": [{"type": "text", "text": '<file name="a.md">\nflour\n</file>\nHow long does rye rise?'}]}},
    {"type": "message", "id": "x2", "parentId": "x1", "timestamp": DAY, "message": {
        "role": "assistant", "content": [{"type": "text", "text": "Two hours."},
                                         {"type": "toolCall", "name": "edit", "arguments": {"path": "rye.md"}}]}},
    {"type": "message", "id": "x3", "parentId": "x1", "message": {"role": "bashExecution", "command": "ls"}},
    {"type": "message", "id": "x4", "parentId": "x3", "message": {"role": "user", "content": "And wheat?"}},
    {"type": "session_info", "id": "x5", "parentId": "x4", "name": "Bread"},
)  # fmt: skip
_CURSOR = lines(
    "cursor .cursor/projects/bakery/agent-transcripts/c1/c1.jsonl",
    {"role": "user", "message": {"content": [
        {"type": "text", "text": "<timestamp>Friday, Jan 2, 2026, 10:00 AM (UTC+1)</timestamp>\n"
                                 "<user_query>\nRye?\n</user_query>"}]}},
    {"role": "assistant", "message": {"content": [
        {"type": "text", "text": "Two hours."},
        {"type": "tool_use", "name": "edit_file", "input": {"target_file": "rye.md"}}]}},
    {"type": "turn_ended"},
)  # fmt: skip
_CURSOR_TEXT = text(
    "cursor .cursor/projects/bakery/agent-transcripts/c1.txt",
    "user:\n<user_query>\nRye?\n```\nuser:\n```\n</user_query>\nassistant:\n[Thinking] hm\n  more\nTwo hours.\n"
    "[Tool call] Edit rye.md\n  new: 2\n[Tool result] ok\n  done\ntool:\nx\n",
)
_COPILOT_CHAT = lines(
    "vscode-copilot workspaceStorage/a/chatSessions/v1.jsonl",
    {"kind": 0, "v": {"version": 3, "responderUsername": "Copilot", "sessionId": "v1", "creationDate": SECOND, "requests": []}},
    {"kind": 2, "k": ["requests"], "v": [
        {"requestId": "r1", "message": {"text": "Bake rye."}, "timestamp": SECOND * 1000, "response": []}]},
    {"kind": 2, "k": ["requests", 0, "response"], "v": [
        {"value": "Baked "}, {"kind": "inlineReference", "inlineReference": {"path": "/a/rye.md"}}, {"value": "."},
        {"kind": "toolInvocationSerialized", "toolId": "run", "invocationMessage": "Ran ls"}]},
    {"kind": 1, "k": ["customTitle"], "v": "Bread"},
    {"kind": 2, "k": ["requests"], "i": 0, "v": [{"requestId": "r2", "message": {"text": "Bake wheat."}, "response": [{
        "kind": "questionCarousel", "resolveId": "k", "data": {"a": {"freeformValue": "the soft one"}}}, {"value": "Done."}],
        "variableData": {"variables": [{"kind": "paste", "name": "note", "code": "flour\nwater"}]}}]},
)  # fmt: skip
_AIDER = text(
    "aider .aider.chat.history.md",
    "\n# aider chat started at 2026-01-02 10:00:00\n\n> Main model: opus with diff edit format  \n\n"
    "#### How long does rye rise?  \n"
    "\nTwo hours.\n\n```\n#### not asked\n```\n> Tokens: 1k sent  \n> Applied edit to rye.md  \n> Running make  \n\n"
    "#### /ask And wheat?  \n"
    "\n#### And wheat?  \n\nOne hour.\n\n> Add the output to the chat? (y)es/(n)o/instructions: only the last line  \n"
    "\n# aider chat started at 2026-01-02 10:00:00\n\n#### <blank>  \n\n#### Oats?  \n#### Really?  \n\nNo.\n",
)
_SPECSTORY = text(
    "specstory bakery/.specstory/history/2026-01-02_10-00Z-bread.md",
    "<!-- Generated by SpecStory, Markdown v2.1.0 -->\n\n# Bread (2026-01-02 10:00:00Z)\n\n"
    "<!-- Claude Code Session s1 (2026) -->\n\n"
    "_**User (2026-01-02 10:00:00Z)**_\n\nHow long does rye rise?\n\n---\n\n"
    "_**Agent (model opus, mode agent 2026-01-02 10:01Z)**_\n\n"
    "<think><details><summary>Thought Process</summary>\nhm\n</details></think>\n\nTwo hours.\n\n"
    '<tool-use data-tool-type="write" data-tool-name="Edit"><details>\n<summary>Tool use: **Edit** `rye.md`</summary>\n\n'
    "```\nx\n```\n"
    "\n</details></tool-use>\n\nDone.\n\n---\n\n_**User**_\n\n<!-- message-id: u-2 -->\n<command-name>/bake</command-name>"
    "<command-args>it all</command-args>\n\n_**Agent (sidechain)**_\n\nHidden.\n",
)
_QUOTED = text(
    "transcript talks/rye.md",
    "---\ntype: transcript\ntitle: Bread\n---\n# On bread\n\nAbove.\n\n"
    "> How long does rye rise?\n> Really?\n\nTwo hours.\n\n---\n\n"
    "> And wheat?\n\n```\n> none\n```\nOne hour.\n\n> Oats?\n\nNo.\n",
)
_SPOKEN = text(
    "transcript talks/wheat.txt",
    "## User (2026-01-02 10:00)\nHow long?\n## Assistant\nOne hour.\n\n"
    "### Really\n## You said:\nSure?\n## ChatGPT said:\nYes.\n",
)
_NAMED = text(
    "transcript talks/oats.md",
    "**You:** How long?\n**Claude:** No time.\n**You:** Sure?\n\n**Claude**: Yes.\n",
)
_PLAIN = text(
    "transcript talks/spelt.md",
    "User: How long?\nAssistant: Long.\nUser: Sure?\nAI: Yes.\n> [!user] x\n> [!answer]\n> y\n",
)

SESSIONS = (
    _CLAUDE, CODEX, _OLD_CODEX, _GEMINI, _COPILOT, _PI, _CURSOR, _CURSOR_TEXT, _COPILOT_CHAT, _AIDER, _SPECSTORY, _QUOTED,
    _SPOKEN, _NAMED, _PLAIN,
)  # fmt: skip
GROWING = tuple(
    head.replace(b" ", b" %d " % cut, 1) + b"\n" + body
    for seed in (_CLAUDE, CODEX, _OLD_CODEX, _COPILOT, _AIDER, _GEMINI, _QUOTED)
    for head, _, body in [seed.partition(b"\n")]
    for cut in (len(body) // 3, len(body) * 3 // 4)
)
"""For `growing`: the family, how many bytes were there first, the path."""
