"""Every target with its seeds, for the runner and the tests."""

from __future__ import annotations

import tomllib
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from hostile import HOSTILE, KEPT
from tools.fuzz.seeds.calls import FILTERS, IGNORED, LONG, QUERIES, SAID, SECRETS
from tools.fuzz.seeds.exports import ARCHIVES, EXPORTS
from tools.fuzz.seeds.sessions import GROWING, SESSIONS
from tools.fuzz.seeds.texts import CHUNKED, DOCUMENTS, REPEATED
from tools.fuzz.targets.as_git import as_git
from tools.fuzz.targets.carriers import carriers
from tools.fuzz.targets.chunking import chunking
from tools.fuzz.targets.conversations import conversations
from tools.fuzz.targets.documents import documents
from tools.fuzz.targets.filters import filters
from tools.fuzz.targets.growing import growing, repeats
from tools.fuzz.targets.ignoring import ignoring
from tools.fuzz.targets.lengths import lengths
from tools.fuzz.targets.quoting import quoting
from tools.fuzz.targets.redaction import redaction
from tools.fuzz.targets.sockets import sockets
from tools.fuzz.targets.steps import steps
from tools.fuzz.targets.wording import wording

QUOTED = tuple(text.encode("utf-8", "surrogatepass")[:2_048] for text in (*HOSTILE[::6], *KEPT))


@dataclass(frozen=True, slots=True)
class Target:
    """A fuzz target: a function that raises if a law is violated."""

    run: Callable[[bytes], None]
    seeds: Sequence[bytes]
    examples: int
    """Changed seeds that the tests try."""
    longest: int = 8_192
    """Bytes of an input; what is large is made of it by the target."""
    passed_over: Callable[[bytes], bool] = lambda _: False
    """Whether a search skips an input: its defect is known and hides others, or no real file has it."""

    def tried(self, data: bytes) -> None:
        """Run an input of a search."""
        if not self.passed_over(data):
            self.run(data)


TARGETS = {
    "documents": Target(documents, DOCUMENTS, 150),
    "conversations": Target(conversations, (*SESSIONS, *EXPORTS), 300),
    "growing": Target(growing, GROWING, 60, passed_over=repeats),
    "carriers": Target(carriers, ARCHIVES, 40),
    "redaction": Target(redaction, SECRETS, 150),
    "chunking": Target(chunking, CHUNKED, 100),
    "steps": Target(steps, REPEATED, 3, longest=700),
    "lengths": Target(lengths, LONG, 60, longest=400),
    "sockets": Target(sockets, SAID, 100, longest=4_096),
    "quoting": Target(quoting, QUOTED, 60, longest=2_048),
    "wording": Target(wording, QUERIES, 200, longest=1_024),
    "filters": Target(filters, FILTERS, 60, longest=1_024),
    "ignoring": Target(ignoring, IGNORED, 100, longest=1_024),
    "as_git": Target(as_git, IGNORED, 60, longest=512),
}
"""In the order in which they are run."""

_FOUND = Path(__file__).resolve().parent / "found"


def found(name: str) -> list[Path]:
    """Return the inputs that showed a defect of a target once."""
    return sorted(file for file in (_FOUND / name).glob("*") if file.is_file())


def known() -> dict[str, str]:
    """Return the inputs with open defects, as `target/file`, with the reason."""
    return {
        str(name): str(reason)
        for name, reason in tomllib.loads((_FOUND / "known.toml").read_text("utf-8")).items()
    }
