"""What recall costs: the prompts of real sessions, given to the hook as Claude Code does, over the index of a folder.

    python tests/tools/benchmarks/bench_recall.py FOLDER TRANSCRIPTS [--prompts N] [--sessions N]

FOLDER is indexed with the real model by a daemon of its own. TRANSCRIPTS is a folder of transcripts of Claude Code, pi
or Aider; their first N prompts are asked in turn, in sessions of equal length, each by a process `anchord recall hook`.

repeats   chunks that a session was given twice
tokens    of what a prompt got, by anchord's upper bound; mean over all prompts, and the most
ms        of the clock, from the start of the process to its end; CPU: of the process alone
silent    prompts that got nothing; unanswered: those of them for which the daemon was too slow
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

from daemons import Daemon, cpu_s
from figures import quantile, table

from anchord.agents.recall.journal import Journal, LogEntry
from anchord.agents.recall.settings import RecallSettings, save_settings
from anchord.ipc.client import Client

_SETTINGS = "[embedding]\nidle_unload_s = 3600\n[[root]]\npath = {}\n"
_WARM = 10


class Asked(NamedTuple):
    """One prompt."""

    ms: float
    cpu_ms: float
    output: str


def main() -> int:
    """Print the table; return 1 if a chunk was given twice in a session."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("folder", type=Path)
    parser.add_argument("transcripts", type=Path)
    parser.add_argument("--prompts", type=int, default=200)
    parser.add_argument("--sessions", type=int, default=10)
    given = parser.parse_args()
    prompts = list(_prompts(given.transcripts))[: given.prompts]
    if not prompts:
        parser.error(f"{given.transcripts} has no prompts: it needs transcripts (*.jsonl, *.md)")
    with tempfile.TemporaryDirectory(prefix="anchord-bench-") as folder:
        daemon = Daemon(Path(folder), _SETTINGS.format(json.dumps(str(given.folder.resolve()))))
        data = daemon.home / "data"
        with daemon.running() as process:
            daemon.sync()
            save_settings(data, RecallSettings(is_on=True))
            with Client(daemon.home / "run" / "anchord.sock") as client:
                for prompt in prompts[:_WARM]:
                    client.search(prompt[:1_000].replace('"', " "), k=8)
                chunks = client.status().chunks
            before_s = cpu_s(process)
            length = -(-len(prompts) // given.sessions)
            asked = [
                _ask(daemon, prompt, f"session-{number // length}")
                for number, prompt in enumerate(prompts)
            ]
            daemon_ms = (cpu_s(process) - before_s) * 1_000 / len(prompts)
        entries = Journal(data).entries()
        repeats = sum(
            count - 1
            for file in (data / "recall" / "sessions").glob("*")
            for count in Counter(file.read_text().split()).values()
        )
    print(
        f"{len(prompts)} prompts in {given.sessions} sessions, {chunks:,} chunks; load {os.getloadavg()[0]:.1f} on {os.cpu_count()} CPUs"
    )
    cpu = ("ms of CPU of the daemon and its workers, mean of all prompts", f"{daemon_ms:.0f}")
    print(table(("", ""), [*_rows(asked, entries, repeats), cpu]))
    return 1 if repeats else 0


def _rows(asked: list[Asked], entries: list[LogEntry], repeats: int) -> Iterator[tuple[str, str]]:
    said = [entry.tokens for entry in entries if entry.tokens]
    outcomes = Counter(entry.outcome for entry in entries)
    yield "repeats", str(repeats)
    yield "tokens, mean over all prompts", f"{sum(said) / len(asked):.0f}"
    yield "tokens, mean where something was said", f"{sum(said) / max(1, len(said)):.0f}"
    yield "tokens, most", str(max(said, default=0))
    yield "silent", f"{1 - len(said) / len(asked):.0%}"
    yield "outcomes", ", ".join(f"{name} {count}" for name, count in outcomes.most_common())
    answered = [entry.ms for entry in entries if entry.outcome in {"added", "no strong match"}]
    for share in (0.5, 0.95):
        yield (
            f"ms of the process, p{share * 100:.0f}",
            f"{quantile([each.ms for each in asked], share):.0f}",
        )
        yield (
            f"ms of CPU of the process, p{share * 100:.0f}",
            f"{quantile([each.cpu_ms for each in asked], share):.0f}",
        )
        yield (
            f"ms of the search and its rendering, p{share * 100:.0f}",
            f"{quantile(answered or [0], share):.0f}",
        )


def _ask(daemon: Daemon, prompt: str, session: str) -> Asked:
    event = {
        "hook_event_name": "UserPromptSubmit",
        "session_id": session,
        "cwd": str(daemon.folder),
        "prompt": prompt,
    }
    program = Path(sys.executable).with_name("anchord")
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    began = time.perf_counter()
    ran = subprocess.run(
        [program, "recall", "hook"],
        input=json.dumps(event).encode(),
        env=daemon.environment(),
        capture_output=True,
        check=True,
    )
    ms = (time.perf_counter() - began) * 1_000
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    cpu_s = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    return Asked(ms, cpu_s * 1_000, ran.stdout.decode())


def _prompts(folder: Path) -> Iterator[str]:
    """Yield what people typed in transcripts, each once."""
    seen: set[str] = set()
    files = [*sorted(folder.rglob("*.jsonl")), *sorted(folder.rglob("*.md"))]
    for file in files:
        for line in file.read_text("utf-8", "replace").splitlines():
            prompt = line[5:].strip() if line.startswith("#### ") else _prompt(line)
            if prompt and prompt not in seen:
                seen.add(prompt)
                yield prompt


def _prompt(line: str) -> str:
    try:
        event: Any = json.loads(line)
    except ValueError:
        return ""
    if (
        not isinstance(event, dict)
        or event.get("type") not in {"user", "message"}
        or event.get("isMeta")
    ):
        return ""
    message = event.get("message")
    if not isinstance(message, dict) or message.get("role") != "user":
        return ""
    content = message.get("content")
    parts = [{"type": "text", "text": content}] if isinstance(content, str) else content
    texts = [
        str(part.get("text", ""))
        for part in parts or ()
        if isinstance(part, dict) and part.get("type") == "text"
    ]
    return "\n".join(texts).strip()


if __name__ == "__main__":
    sys.exit(main())
