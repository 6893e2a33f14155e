"""Secrets planted in project files, names and transcripts, and a search for them in every byte of a folder."""

from __future__ import annotations

import base64
import json
import re
import sqlite3
import zlib
from collections.abc import Iterable, Iterator
from contextlib import closing, suppress
from functools import cache
from itertools import chain
from pathlib import Path
from urllib.parse import quote

from cli.conftest import Shell
from sources.secrets.examples import filled

from anchord.sources.secrets.rule_pack import load_rule_pack

_DAY = "2026-01-02T10:00:00Z"
_MIN_RANDOM_CHARS = 16
_OF_THE_USER = ("config.toml", "transcripts.sqlite")
_ZLIB_START = re.compile(rb"\x78[\x01\x5e\x9c\xda]")
_LONGEST_RUN = re.compile(r"[A-Za-z0-9]{8,}")


class Planted:
    """Makes secrets, each of another kind, and remembers them."""

    def __init__(self) -> None:
        """Make none yet."""
        kinds = {
            rule.kind: rule.example
            for rule in load_rule_pack().rules
            if rule.prefixes and re.fullmatch(r"[\w-]*\{[\w{}.-]+", rule.example)
        }
        self._examples = iter(sorted(kinds.items()))
        self.values: list[str] = []
        self.kinds: list[str] = []

    def token(self) -> str:
        """Return a token of a provider that had none yet."""
        while True:
            kind, example = next(self._examples)
            value = filled(example, "planted")
            # A short value would also be found where nobody planted it.
            if max(map(len, _LONGEST_RUN.findall(value)), default=0) >= _MIN_RANDOM_CHARS:
                self.kinds.append(kind)
                return self.remember(value)

    def password(self) -> str:
        """Return another password."""
        self.kinds.append("password")
        return self.remember(filled("{7}9{7}", str(len(self.values))))

    def remember(self, value: str) -> str:
        """Add a value to those that must not be found."""
        self.values.append(value)
        return value

    def found_in(self, data: bytes) -> list[str]:
        """Return the values that bytes hold, as they are, encoded, or in lower case."""
        lower = data.lower()
        return [
            value
            for value in self.values
            if any(form in data for form in _encoded(value)) or _core(value) in lower
        ]


@cache
def _core(value: str) -> bytes:
    """Return the longest run of letters and digits in lower case: what a full-text index keeps."""
    runs: list[str] = _LONGEST_RUN.findall(value)
    return max(runs, key=len).lower().encode()


@cache
def _encoded(value: str) -> frozenset[bytes]:
    """Return the forms of a value, each once: most are the value itself."""
    raw = value.encode()
    # The three ways a value can lie in base64.
    inside = (base64.b64encode(b"\0" * shift + raw)[4 if shift else 0 : -4] for shift in range(3))
    return frozenset(
        {
            raw,
            value.encode("utf-16-le"),
            raw.hex().encode(),
            quote(value, safe="").encode(),
            json.dumps(value)[1:-1].replace("/", "\\/").encode(),
            *inside,
        }
    )


def plant_files(shell: Shell, secrets: Planted) -> None:
    """Write project files with secrets in text, headings, names and folders."""
    token, password = secrets.token, secrets.password
    shell.write(
        "guide.md",
        f"# Deploy with {token()}\n\nThe key is {token()}.\n\n## Then {token()}\n\nMore.\n",
    )
    shell.write(
        "app.py",
        f'def connect() -> None:\n    """Use {token()}."""\n    open_db(password="{password()}")\n',
    )
    shell.write(
        "data.json", json.dumps({"a": {"apiKey": token(), "list": [token(), 2]}, "note": "walnut"})
    )
    shell.write(
        "values.yaml",
        f"# {token()}\ndb:\n  host: db\n  port: 1\n  password: {password()}\n  size: 3\n",
    )
    shell.write(
        "pyproject.toml", f'[tool.a]\nname = "a"\nsize = 1\nlevel = 2\ntoken = "{token()}"\n'
    )
    cell = {"cell_type": "code", "source": f"client('{token()}')", "outputs": [], "metadata": {}}
    shell.write("book.ipynb", json.dumps({"cells": [cell], "nbformat": 4, "metadata": {}}))
    shell.write("run.sh", f"curl -u me:{password()} https://example.org\nexport A={token()}\n")
    shell.write("page.html", f"<h1>{token()}</h1><p>Walrus &amp; {token()}</p>")
    escaped = "".join(f"%{ord(char):02x}" for char in token())
    shell.write(
        "hidden.md",
        f"# Hidden\n\n{base64.b64encode(f'key {token()}'.encode()).decode()} and {escaped}\n",
    )
    name, folder = token(), token()
    shell.write(f"backup-{name}.md", "# Otter\n\nIts name holds a secret.\n")
    shell.write(
        f"{folder}/deep-{token()}/inside.md", f"# Badger {token()}\n\nInside such a folder.\n"
    )
    key = secrets.remember(filled("{64b}", "planted"))
    shell.write("server.txt", f"-----BEGIN PRIVATE KEY-----\n{key}\n-----END PRIVATE KEY-----\n")
    shell.write("broken.ipynb", f'{{"cells": [{{"source": "{token()}"')
    shell.write(f"latin-{token()}.md", b"# Caf\xe9 " + token().encode() * 3)


def plant_talks(folder: Path, secrets: Planted) -> None:
    """Write sessions of five programs with secrets in all that they say and that names them."""
    token = secrets.token
    folder.mkdir()
    _write_lines(folder / f"claude-{token()}.jsonl", _claude_code(secrets))
    codex = folder / "sessions" / "2026" / "rollout-2026-01-02T10-00-00-0199aaaa.jsonl"
    _write_lines(codex, [
        {"timestamp": _DAY, "type": kind, "payload": payload}
        for kind, payload in (
            ("session_meta", {"id": f"x-{token()}", "cwd": f"/home/me/{token()}"}),
            ("turn_context", {"turn_id": "t1", "model": f"gpt-{token()}"}),
            ("event_msg", {"type": "user_message", "message": f"Why does {token()} fail for the heron?"}),
            ("response_item", {"type": "function_call", "name": "shell", "call_id": "c1",
                               "arguments": json.dumps({"command": ["login", token()]})}),
            ("event_msg", {"type": "agent_message", "message": f"Use {token()}."}),
        )
    ])  # fmt: skip
    (folder / "export.json").write_text(json.dumps([{
        "uuid": f"c-{token()}", "name": f"On {token()}", "created_at": _DAY, "updated_at": _DAY,
        "project": {"name": token()}, "chat_messages": [
            {"uuid": "m1", "sender": "human", "text": f"Is {token()} the stork?", "created_at": _DAY,
             "attachments": [{"file_name": f"{token()}.txt", "extracted_content": f"flour {token()}"}]},
            {"uuid": f"m-{token()}", "sender": "assistant", "parent_message_uuid": "m1", "created_at": _DAY,
             "content": [{"type": "text", "text": f"It is {token()}."}]},
        ],
    }]))  # fmt: skip
    pi = folder / "pi" / "2026_p1.jsonl"
    _write_lines(pi, [
        {"type": "session", "version": 3, "id": token(), "timestamp": _DAY, "cwd": f"/home/{token()}"},
        {"type": "message", "id": "x1", "parentId": None, "timestamp": _DAY,
         "message": {"role": "user", "content": f"And the crane with {token()}?"}},
        {"type": "message", "id": "x2", "parentId": "x1", "timestamp": _DAY, "message": {
            "role": "assistant", "content": [{"type": "text", "text": f"No, {token()}."}]}},
        {"type": "session_info", "id": "x5", "parentId": "x2", "name": f"Cranes {token()}"},
    ])  # fmt: skip
    (folder / "note.md").write_text(f"# Note {token()}\n\nAn ordinary note with {token()}.\n")


def _claude_code(secrets: Planted) -> list[dict[str, object]]:
    token, password = secrets.token, secrets.password
    common = {"sessionId": f"s-{token()}", "cwd": f"/home/me/{token()}/app", "timestamp": _DAY}
    tool = {"type": "tool_use", "id": "t1", "name": "Bash", "input": {
        "command": f"mysql --password={password()} -e '{token()}'", "file_path": f"/home/me/{token()}.md"}}  # fmt: skip
    question = f"q-{token()}"
    return [
        {"type": "summary", "summary": f"Fix {token()}", "leafUuid": "a1"},
        {"type": "user", "uuid": question, "parentUuid": None, **common,
         "message": {"role": "user", "content": f"Why does {token()} fail for the flamingo?"}},
        {"type": "assistant", "uuid": "a1", "parentUuid": question, **common,
         "message": {"id": "m1", "role": "assistant", "model": f"opus-{token()}", "content": [
             {"type": "text", "text": f"Because of {token()} and {json.dumps({'password': password()})}."}, tool]}},
    ]  # fmt: skip


def _write_lines(file: Path, records: Iterable[object]) -> None:
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text("".join(json.dumps(record) + "\n" for record in records))


def holding(folder: Path, secrets: Planted) -> list[str]:
    """Return each file below a folder that holds a planted value in its bytes or its name.

    Compressed parts of any file are read too, and each value of each SQLite database.
    The configuration is the user's own: it may name a root by its real path. The kept transcripts
    are the transcripts themselves, unless `keep_raw = false`.
    """
    found = []
    for file in sorted(folder.rglob("*")):
        name = str(file.relative_to(folder))
        found += [f"name {name}: {value}" for value in secrets.found_in(name.encode())]
        if file.is_file() and not file.name.startswith(_OF_THE_USER):
            held = {value for data in _readings(file) for value in secrets.found_in(data)}
            found += [f"{name}: {value}" for value in sorted(held)]
    return found


def _readings(file: Path) -> Iterator[bytes]:
    data = file.read_bytes()
    yield data
    for start in _ZLIB_START.finditer(data):
        try:
            yield zlib.decompressobj().decompress(data[start.start() :], 1 << 20)
        except zlib.error:
            continue
    if data.startswith(b"SQLite format 3\0"):
        yield from _sqlite_values(file)


def _sqlite_values(file: Path) -> Iterator[bytes]:
    with closing(sqlite3.connect(f"file:{file}?mode=ro", uri=True)) as db:
        tables = [
            name for (name,) in db.execute("SELECT name FROM sqlite_schema WHERE type='table'")
        ]
        for table in tables:
            with suppress(sqlite3.DatabaseError):  # A damaged copy that was set aside.
                for value in chain.from_iterable(db.execute(f'SELECT * FROM "{table}"')):
                    data = value if isinstance(value, bytes) else str(value).encode()
                    yield data
                    with suppress(zlib.error):
                        yield zlib.decompress(data)
