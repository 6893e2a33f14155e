"""What clients send, what people ask for, ignore files, and texts with what looks like a secret."""

from __future__ import annotations

import json

from tools.fuzz.seeds.written import Json, text


def _call(method: str, identity: object = 1, **params: object) -> str:
    return json.dumps({"jsonrpc": "2.0", "id": identity, "method": method, "params": params})


_ASKED: tuple[Json, ...] = (
    {"method": "search", "query": "rye", "k": 3, "mode": "text", "root": "notes", "since": "7d", "show_chunks": True},
    {"method": "show", "id": "abcd", "context": 2}, {"method": "path", "path": "/home/ann/rye.md"},
    {"method": "forget", "path": "a", "undo": True}, {"method": "reindex", "force_rechunk": True},
    {"method": "index", "paths": ["/home/ann", "b"]}, {"method": "sync", "timeout": 1.5}, {"method": "verify", "vectors": None},
    {"method": "root", "path": "a", "kind": "project"}, {"method": "name", "name": "notes"}, {"method": "hello"},
)  # fmt: skip
_CALLS = "\n".join(_call(**{**given, "identity": number}) for number, given in enumerate(_ASKED))
SAID = (
    text("7", _CALLS + "\n"),
    text(
        "4096",
        f"{_call('echo', 'x', a=[1, None, {'b': 1.5}])}\n\n   \n{_call('full')}\r\n{_call('nothing')}\n",
    ),
    text(
        "1",
        '{"method": "hello"}\n{"id": null, "method": "hello"}\n[]\n{"id": 1.5, "method": "hello"}\nhello?\n',
    ),
    text("64", f"{_call('subscribe')}\n{_call('hello')}\n"),
    text("64", '{"method": "subscribe"}\n'),
    text("512", "x" * 600 + f"\n{_call('hello')}\n"),
    text("100", "x" * 513 + "\n"),
    text("100", _call("search", query="x" * 480) + "\n"),
    text(
        "3",
        f"{_call('search')}\n{_call('search', query=1)}\n{_call('search', qurey='x')}\nhalf a line",
    ),
    b'9\n{"id": "\\ud800", "method": "echo"}\n{"id": 1, "method": "\xff"}\n\0\n',
    b'9\n{"id": 1, "method": "echo", "params": {"a": "\\u0000"}}\n',
)
_TEXT = "Call parse_config() twice: the quick\nbrown fox's HTTPServer; restoring a backup, \u00fcber alles.\n"
QUERIES = tuple(
    text(query, _TEXT) for query in (
        "how do I restore a backup", 'the "quick brown" fox -dogs -"old server" restor*',
        "parse_config src/app.py HTTPServer std::a",
        "--force-rechunk a-b 2 * 3 *args", 'a lone " quote', '"" -"" -',
        "it's -it's* \u00fcb* (\"x y\")", "a* _a* 1* .* a.b*", 'x"y"z "a"b',
    )
)  # fmt: skip
FILTERS = (
    text(
        '"quick brown" -dogs restor*',
        "root notes\npath docs/**/*.md\nsection Setup > Linux\nsince 2026-01-02",
    ),
    text("", "root it's\nkind ' OR 1=1 --\nroom ''\nsession \\' ; DROP TABLE x\nuntil \"\n"),
    text('"it\'s" -"a\'b"', "path_glob [a-z]*?{'}\nsection a' > b\nsection > > \n"),
    text('"a.b (c) [d] \\ $ ^" pre*', "path_glob **/\u00fc ?\nsection (.*)+\nroot %_\n"),
)
IGNORED = tuple(
    text(path, said) for path, said in (
        ("src/build/out.py", "build/\n!build/out.py\n*.log\n"), ("a/b/c.md", "# no\n\\#a\n\\!b\n/a/*\n!/a/b/\n**/c.md\n"),
        ("docs/x y.txt", "docs/**/x\\ y.txt \na/**\n[!a-c]*.txt\nx[\n"), ("\u00fc/deep/er/note.md", "*/deep\n**\n!*.md\n"),
        ("foo.md", "  foo.md  \nfoo.md\\ \n\\\n//\n/\n!\n[]\n[]a]\n***\n"), ("Foo/bar.md", "foo/\nf?o/\n[[:alpha:]]oo\n"),
    )
)  # fmt: skip
SECRETS = tuple(
    said.encode() for said in (
        "Use AKIAZ7QRDVNN7HOLMWTB and sk-ant-api03-" + "Ab3dEf9hIj" * 5 + " for it.",
        "ghp_" + "a1B2c3D4e5" * 4 + "\nglpat-abcdefghij0123456789 xoxb-12345678901-abcdefghij hf_" + "Ab3dEf9hIj" * 4,
        "postgres://app:hunter2hunter2@db.internal/app and ssh://a@b",
        "-----BEGIN RSA PRIVATE KEY-----\nMIIEowIBAAKCAQEA7\n-----END RSA PRIVATE KEY-----\nafter",
        "PuTTY-User-Key-File-2: ssh-rsa\nPrivate-MAC: 0123456789abcdef\nafter",
        "authorization: Bearer abcdefghijklmnop api_key = 'abcdefgh12345678' MY_SECRET=abcdefghijklmnop0123",
        "eyJhbGciOiJIUzI1.eyJzdWIiOiIxMjM0.SflKxwRJSMeKKF2QT4 AIza" + "a" * 35 + " dapi" + "0" * 32,
        "no secret here: " + "0123456789abcdef" * 4 + " a token, a key, a password",
    )
)  # fmt: skip
LONG = tuple(
    text(reader, said)
    for reader in ("redaction", "rooms", "queries", "notebooks")
    for said in ("plain words and ", "a.b-c_d ", '"a" -b c* ')
) + tuple(
    text(family, said) for family, said in (
        ("claude-code", "<system-reminder>a</system-reminder>"), ("codex", "## My request for Codex:\n"),
        ("cursor", "<user_query>a"), ("gemini-cli", "<session_context>"),
        ("pi", '<file name="a">'), ("copilot-cli", "<reminder>"),
        ("cline", "# Current ("),
        ("chatgpt", "\ue200a\ue201"), ("claude-ai", "```\na\n```\n"), ("open-webui", '<details type="reasoning">\n'),
        ("lm-studio", "<think>"), ("aider", "> a  \n#### b  \n\n"), ("specstory", "<tool-use>\n---\n"),
        ("transcript", "> a\n\nb\n\n"),
    )
)  # fmt: skip
