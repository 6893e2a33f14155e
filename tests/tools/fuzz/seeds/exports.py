"""Invented exports, databases and folders of sessions: values that are rewritten as a whole."""

from __future__ import annotations

import json

from tools.fuzz.inputs import folder
from tools.fuzz.seeds.sessions import CODEX
from tools.fuzz.seeds.written import DAY, SECOND, Json, lines, value


def _node(key: str, parent: str | None, role: str, said: object, **more: object) -> Json:
    message = {
        "id": key,
        "author": {"role": role},
        "create_time": SECOND,
        "content": {"content_type": "text", "parts": said},
    }
    return {"id": key, "parent": parent, "children": [], "message": {**message, **more}}


CHATGPT = [{
    "title": "Bread", "conversation_id": "c1", "create_time": SECOND, "update_time": SECOND, "current_node": "n4",
    "mapping": {
        "n0": {"id": "n0", "parent": None, "children": ["n1"], "message": None},
        "n1": _node("n1", "n0", "user", ["How long does rye rise?", {"content_type": "image_asset_pointer"}]),
        "n2": _node("n2", "n1", "assistant", ["Two hours. \ue200cite\ue201"], metadata={"model_slug": "gpt"}),
        "n3": _node("n3", "n1", "assistant", ["Three hours."]),
        "n4": _node("n4", "n3", "user", [""], metadata={"attachments": [{"name": "rye.pdf"}]}),
        "n5": _node("n5", "n2", "tool", ["x"], recipient="python"),
    },
}]  # fmt: skip
CLAUDE_AI = [{
    "uuid": "c1", "name": "Bread", "summary": "On rye.", "created_at": DAY, "updated_at": DAY, "project": {"name": "bakery"},
    "current_leaf_message_uuid": "m3", "chat_messages": [
        {"uuid": "m1", "sender": "human", "text": "How long does rye rise?", "created_at": DAY, "parent_message_uuid": "root",
         "attachments": [{"file_name": "rye.txt", "extracted_content": "flour\nwater"}], "files": [{"file_name": "a.png"}]},
        {"uuid": "m2", "sender": "assistant", "parent_message_uuid": "m1", "created_at": DAY, "content": [
            {"type": "text", "text": "Two hours."}, {"type": "tool_use", "name": "search", "input": {"query": "rye"}}]},
        {"uuid": "m3", "sender": "assistant", "parent_message_uuid": "m1", "created_at": DAY,
         "text": "```\nThis block is not supported on your current device yet.\n```\nThree hours."},
    ],
}]  # fmt: skip
_CLINE = [
    {"ts": SECOND * 1000, "type": "say", "say": "task", "text": "Bake rye.", "images": ["x"]},
    {"ts": SECOND * 1000 + 1, "type": "say", "say": "api_req_started",
     "text": json.dumps({"request": "# Current Working Directory (/home/ann) Files"})},
    {"ts": SECOND * 1000 + 2, "type": "say", "say": "tool",
     "text": json.dumps({"tool": "editedExistingFile", "path": "rye.md"})},
    {"ts": SECOND * 1000 + 3, "type": "ask", "ask": "followup",
     "text": json.dumps({"question": "Light or dark?", "options": ["light"], "selected": "light"})},
    {"ts": SECOND * 1000 + 4, "type": "say", "say": "completion_result", "text": "Baked.HAS_CHANGES"},
    {"ts": SECOND * 1000 + 5, "type": "ask", "ask": "completion_result", "text": "Baked."},
]  # fmt: skip
_OPEN_WEBUI = [{
    "id": "o1", "title": "Bread", "updated_at": SECOND, "chat": {"history": {"currentId": "b", "messages": {
        "a": {"id": "a", "parentId": None, "childrenIds": ["b", "c"], "role": "user", "content": "How long?",
              "timestamp": SECOND,
              "files": [{"type": "file", "name": "rye.txt", "file": {"data": {"content": "flour"}}}, {"type": "image"}]},
        "b": {"id": "b", "parentId": "a", "childrenIds": [], "role": "assistant", "model": "llama", "timestamp": SECOND,
              "content": '<details type="reasoning" done="true">\n> hm\n</details>\nTwo hours.\n<details type="tool_calls" '
                         'name="search" arguments="&quot;{}&quot;">\nx\n</details>\nDone.'},
        "c": {"id": "c", "parentId": "a", "childrenIds": [], "role": "assistant", "content": [{"type": "text", "text": "No."}]},
    }}},
}]  # fmt: skip
_LM_STUDIO = {
    "name": "Bread", "createdAt": SECOND * 1000, "messages": [
        {"currentlySelected": 0, "versions": [
            {"type": "singleStep", "role": "user", "content": [{"type": "text", "text": "How long?"}]}]},
        {"currentlySelected": 1, "versions": [
            {"type": "multiStep", "role": "assistant", "steps": [
                {"type": "contentBlock", "content": [{"type": "text", "text": "Two"}, {"type": "text", "text": " hours."}]}]},
            {"type": "multiStep", "role": "assistant", "senderInfo": {"senderName": "llama"}, "steps": [
                {"type": "contentBlock", "style": {"type": "thinking"}, "content": [{"type": "text", "text": "hm"}]},
                {"type": "contentBlock", "content": [
                    {"type": "text", "text": "Three."},
                    {"type": "toolCallRequest", "name": "look", "parameters": {"query": "rye"}}]},
                {"type": "debugInfoBlock"}]}]}],
}  # fmt: skip
_CONTINUE = {
    "sessionId": "k1", "title": "Bread", "workspaceDirectory": "file:///home/ann", "history": [
        {"message": {"role": "user", "id": "u1", "content": [{"type": "text", "text": "How long?"}, {"type": "imageUrl"}]},
         "contextItems": [{"name": "rye.md", "content": "flour"}]},
        {"message": {"role": "assistant", "content": "Two hours.", "toolCalls": [
            {"function": {"name": "edit_existing_file", "arguments": '{"filepath": "rye.md"}'}}]},
         "contextItems": [], "promptLogs": [{"modelTitle": "opus"}]}],
}  # fmt: skip
_AI_STUDIO = {
    "runSettings": {"model": "models/pro"}, "systemInstruction": {}, "displayName": "Bread", "chunkedPrompt": {"chunks": [
        {"role": "user", "text": "How long?", "id": "k1", "createTime": DAY}, {"role": "user", "driveImage": {"id": "x"}},
        {"role": "model", "text": "hm", "isThought": True},
        {"role": "model", "text": "Two hours.", "id": "k2", "branchParent": {"id": "k1"}},
        {"role": "model", "parts": [{"text": "Three."}], "executableCode": {"code": "print()"}, "branchParent": {"id": "k1"}},
    ], "pendingInputs": [{"text": "And wheat?"}]},
}  # fmt: skip
_GEMINI = {
    "sessionId": "g1", "projectHash": "b" * 64, "lastUpdated": DAY, "summary": "Bread", "messages": [
        {"id": "m1", "type": "user", "timestamp": DAY, "content": "/memory show"},
        {"id": "m2", "type": "user", "timestamp": DAY, "content": [{"text": "How long? @rye.md"},
            {"text": "\n--- Content from referenced files ---"}, {"text": "flour"}, {"text": "\n--- End of content ---"}]},
        {"id": "m3", "type": "gemini", "timestamp": DAY, "content": "Two hours.", "thoughts": [], "model": "pro"}],
}  # fmt: skip
_VSCODE = {
    "version": 3, "requesterUsername": "ann", "sessionId": "v1", "lastMessageDate": SECOND * 1000, "requests": [
        {"requestId": "r1", "message": {"text": "How long?"}, "timestamp": SECOND * 1000, "modelId": "gpt", "isHidden": False,
         "response": [{"kind": "markdownContent", "content": {"value": "Two"}}, {"value": " hours."},
                      {"kind": "textEditGroup", "uri": {"path": "/a/rye.md"}}],
         "variableData": {"variables": [{"kind": "image"}, {"kind": "paste", "code": "flour"}]}}],
}  # fmt: skip
_SLACK = folder({
    "users.json": json.dumps([
        {"id": "U1", "name": "ann", "profile": {"display_name": "Ann"}}, {"id": "U2", "name": "bo"}]).encode(),
    "channels.json": json.dumps([{"id": "C1", "name": "general", "members": ["U1", "U2"]}]).encode(),
    "dms.json": json.dumps([{"id": "D1", "members": ["U1", "U2"]}]).encode(),
    "general/2026-01-02.json": json.dumps([
        {"type": "message", "user": "U1", "text": "How long does <https://rye.example|rye> rise, <@U2>?",
         "ts": "1767348000.000100",
         "thread_ts": "1767348000.000100", "reply_count": 1},
        {"type": "message", "user": "U2", "text": "Two hours &amp; more", "ts": "1767348060.000100",
         "thread_ts": "1767348000.000100"},
        {"type": "message", "subtype": "channel_join", "user": "U2", "text": "joined", "ts": "1767348061.000100"},
        {"type": "message", "bot_id": "B1", "text": "beep", "ts": "1767358061.000100"}]).encode(),
    "D1/2026-01-03.json": json.dumps([{"type": "message", "user": "U1", "text": "psst", "ts": "1767434400.0"}]).encode(),
})  # fmt: skip
_OPENCODE = folder({
    "session/p1/ses_1.json": json.dumps(
        {"id": "ses_1", "title": "Bread", "directory": "/home/ann", "time": {"updated": SECOND}}).encode(),
    "message/ses_1/msg_1.json": json.dumps({"role": "user", "time": {"created": SECOND}}).encode(),
    "message/ses_1/msg_2.json": json.dumps({"role": "assistant", "modelID": "opus", "time": {"created": SECOND + 1}}).encode(),
    "part/msg_1/prt_1.json": json.dumps({"type": "text", "text": "How long?"}).encode(),
    "part/msg_2/prt_2.json": json.dumps({"type": "text", "text": "Two hours."}).encode(),
    "part/msg_2/prt_3.json": json.dumps({"type": "tool", "tool": "edit", "state": {"input": {"filePath": "rye.md"}}}).encode(),
})  # fmt: skip
_OPENCODE_ROWS = lines(
    "opencode .local/share/opencode/opencode.db",
    ["project", "p1", "/home/ann"],
    ["session", "s1", "p1", None, "", "Bread", {"messageID": "m3"}, SECOND * 1000],
    ["message", "m1", "s1", SECOND, {"role": "user"}],
    ["message", "m2", "s1", SECOND + 1, {"role": "assistant", "modelID": "opus"}],
    ["message", "m3", "s1", SECOND + 2, {"role": "user"}],
    ["part", "p1", "m1", "s1", {"type": "text", "text": "How long?"}],
    ["part", "p2", "m2", "s1", {"type": "text", "text": "Two hours."}],
    ["part", "p3", "m3", "s1", {"type": "subtask", "prompt": "Look"}],
)
_CURSOR_ROWS = lines(
    "cursor Cursor/User/globalStorage/state.vscdb",
    ["cursorDiskKV", "composerData:c1", {
        "name": "Bread", "createdAt": SECOND * 1000,
        "fullConversationHeadersOnly": [{"bubbleId": "u1", "type": 1}, {"bubbleId": "a1", "type": 2}]}],
    ["cursorDiskKV", "bubbleId:c1:u1", {"type": 1, "text": "How long?", "images": [1], "workspaceUris": ["file:///c%3A/work"]}],
    ["cursorDiskKV", "bubbleId:c1:a1", {
        "type": 2, "text": "Two hours.", "toolFormerData": {"name": "edit_file", "params": '{"path": "a"}'}}],
    ["cursorDiskKV", "bubbleId:c1:a2", {
        "type": 2, "richText": '{"root": {"children": [{"type": "paragraph", "children": [{"text": "Left."}]}]}}'}],
    ["ItemTable", "composer.composerData", {
        "allComposers": [{"composerId": "c0", "conversation": [{"type": 1, "text": "Old?"}]}]}],
    ["ItemTable", "workbench.panel.aichat.view.aichat.chatdata", {
        "tabs": [{"tabId": "t", "bubbles": [{"type": "user", "text": "Older?"}]}]}],
)  # fmt: skip

EXPORTS = (
    value("chatgpt conversations.json", CHATGPT),
    value("claude-ai conversations.json", CLAUDE_AI),
    value("cline tasks/1767348000000/ui_messages.json", _CLINE),
    value("open-webui chat-export.json", _OPEN_WEBUI),
    value("lm-studio conversations/1767348000000.conversation.json", _LM_STUDIO),
    value("continue sessions/k1.json", _CONTINUE),
    value("ai-studio Bread", _AI_STUDIO),
    value("gemini-cli tmp/bakery/chats/session-1.json", _GEMINI),
    value("vscode-copilot chatSessions/v1.json", _VSCODE),
    b"slack export/\n" + _SLACK,
    b"opencode opencode/storage/\n" + _OPENCODE,
    _OPENCODE_ROWS,
    _CURSOR_ROWS,
)
ARCHIVES = (
    b"zip kept/export.zip\n=== conversations.json\n" + json.dumps(CHATGPT).encode(),
    b"zip kept/export.zip\n=== ../conversations.json\n"
    + json.dumps(CLAUDE_AI).encode()
    + b"\n=== users.json\n[]",
    b"zip kept/slack.zip\n" + _SLACK,
    b"zip kept/opencode.zip\n" + _OPENCODE,
    b"zip,9:0 kept/export.zip\n=== conversations.json\n" + json.dumps(CLAUDE_AI).encode(),
    b"zip,-20:255 kept/export.zip\n=== conversations.json\n" + json.dumps(CLAUDE_AI).encode(),
    b"raw kept/export.zip\nPK\x03\x04 and then nothing",
    b"raw kept/state.vscdb\nSQLite format 3\0 and then nothing",
    b"raw kept/conversations.json\n" + json.dumps(CHATGPT).encode(),
    b"rows Cursor/User/globalStorage/state.vscdb\n" + _CURSOR_ROWS.partition(b"\n")[2],
    b"rows,4200:255 opencode/opencode.db\n" + _OPENCODE_ROWS.partition(b"\n")[2],
    *(
        b"zst%s sessions/rollout-1.jsonl.zst\n" % change + CODEX.partition(b"\n")[2]
        for change in (b"", b",9:0", b",-3:7")
    ),
)
"""For `carriers`: how it is packed and which bytes of that are changed, the path, the members or the file."""
