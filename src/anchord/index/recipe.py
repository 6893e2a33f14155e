"""What rows depend on besides the file. Files of another recipe digest are indexed again."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Protocol

from anchord.chunking.chunker import CHUNKER_VERSION
from anchord.chunking.formats.code_symbols import DefinitionFinder, find_definitions
from anchord.chunking.plan import ChunkingPlans
from anchord.core.ids import hash_fields
from anchord.index.model_choice import MAIN_MODEL_ONLY, ModelChoice
from anchord.index.topics import NO_OWN_ROOMS, OwnRooms
from anchord.sources.conversations.exchange_document import EXCHANGE_VERSION

ROW_VERSION = "5"
"""Increase it with any change to what `Row` holds for the same chunk."""


class ParseQuarantine(Protocol):
    """Remembers which file contents crashed the process while they were parsed."""

    def begin_parse_unless_quarantined(self, content_digest: str) -> bool:
        """Record that a content is being parsed; if it must not be, return False instead.

        Args:
            content_digest: The hash of the file's bytes.
        """

    def end_parse(self) -> None:
        """Record that parsing ended without a crash."""


class NoQuarantine:
    """A quarantine that lets every content be parsed."""

    def begin_parse_unless_quarantined(self, content_digest: str) -> bool:  # noqa: ARG002 - the answer is the same for all
        """Return True."""
        return True

    def end_parse(self) -> None:
        """Do nothing."""


_NO_QUARANTINE = NoQuarantine()


@dataclass(frozen=True, kw_only=True)
class Recipe:
    """The chunking plans, the model and the tools that rows are made with."""

    plans: ChunkingPlans
    model_identity: Callable[[], str]
    """Returns the model's identity. Called by `digest` only: hashing the weights takes a moment
    that a search need not spend."""
    chunking_tools_identity: str
    """Identity of the tokenizer, the code grammars, the sentence splitter and the stemmer."""
    ingest_identity_by_root: dict[str, str] = field(default_factory=dict)
    """Root name -> the version that reads its conversations; only roots of conversations."""
    quarantine: ParseQuarantine = field(default=_NO_QUARANTINE, compare=False)
    find_definitions: DefinitionFinder = field(default=find_definitions, compare=False)
    """Finds the definitions in source code, in this process or in a child process."""
    redaction_identity: str = ""
    """The rules that replace secrets in project files; "" replaces none."""
    own_rooms: OwnRooms = NO_OWN_ROOMS
    model_choice: ModelChoice = MAIN_MODEL_ONLY
    """Which documents have another model than that of `model_identity`."""
    _digests: dict[str, str] = field(default_factory=dict, compare=False)

    def digest(self, root_name: str = "") -> str:
        """Return a hash of everything that a root's rows depend on; cached per root.

        Args:
            root_name: A root; "" is any root without settings of its own.
        """
        names = (
            self.plans.by_root_and_kind,
            self.ingest_identity_by_root,
            self.model_choice.by_root,
        )
        if not any(root_name in of_roots for of_roots in names):
            root_name = ""
        if root_name not in self._digests:
            self._digests[root_name] = self._compute_digest(root_name)
        return self._digests[root_name]

    def _compute_digest(self, root_name: str) -> str:
        plans = [
            f"{kind} {self.plans.plan_for(root_name, kind)!r}"
            for kind in sorted(self.plans.default_by_kind)
        ]
        ingest_identity = self.ingest_identity_by_root.get(root_name)
        return hash_fields(
            CHUNKER_VERSION,
            ROW_VERSION,
            self.model_identity(),
            self.chunking_tools_identity,
            *plans,
            *([] if ingest_identity is None else [ingest_identity + EXCHANGE_VERSION]),
            *([self.redaction_identity] if self.redaction_identity else []),
            *([self.own_rooms.identity] if self.own_rooms.rooms else []),
            *self.model_choice.identities(root_name),
        )
