"""What the index depends on besides the files. A changed recipe re-reads every file by itself; nobody is asked to reindex."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Protocol

from anchord.chunkers import VERSION
from anchord.chunkers.layout import Limits
from anchord.chunkers.plan import Plan
from anchord.chunkers.symbols import Define, definitions
from anchord.core.identity import fields_digest
from anchord.settings import Value

ROW_VERSION = "2"
"""Raise it with any change to what `Row` holds for the same chunk."""

_AROUND = 32
"""Tokens of a window that are not the chunk's own: a repeated fence or table opening, or the heading above."""
_LARGEST_BODY = 430


@dataclass(frozen=True, slots=True)
class Plans:
    """How each kind of document is cut, and in the roots that have a strategy of their own."""

    general: Mapping[str, Plan]
    """Kind -> plan."""
    roots: Mapping[str, Mapping[str, Plan]] = field(default_factory=dict)
    """Name of a root -> kind -> plan."""

    def of(self, root: str, kind: str) -> Plan:
        """Return the plan for a document of a root."""
        return self.roots.get(root, self.general)[kind]


class Poison(Protocol):
    """Who remembers which contents ended the process while they were parsed."""

    def enter(self, content: str) -> bool:
        """Begin to parse a content, by its digest; False when that must not be."""

    def leave(self) -> None:
        """End it."""


class NoPoison:
    """Whatever is parsed is harmless."""

    def enter(self, content: str) -> bool:  # noqa: ARG002 - the answer is the same for all
        """Say yes."""
        return True

    def leave(self) -> None:
        """Do nothing."""


_HARMLESS = NoPoison()


@dataclass(frozen=True)
class Recipe:
    """Plans of the chunker and identity of the model; `digest` names what the rows of a root depend on."""

    plans: Plans
    model: Callable[[], str]
    """Asked when the digest is needed: hashing the weights takes a moment that a mere search can spare."""
    tokenizer: str
    """Identity of the tokenizer, of the grammars that code is cut by, and of the library that ends sentences."""
    of_roots: dict[str, str] = field(default_factory=dict)
    """Name of a root -> what its rows depend on besides: who reads its conversations."""
    poison: Poison = field(default=_HARMLESS, compare=False)
    define: Define = field(default=definitions, compare=False)
    """Finds the definitions of code: here, or in a process of its own."""
    _digests: dict[str, str] = field(default_factory=dict, compare=False)

    def digest(self, root: str = "") -> str:
        """Return what a root's rows depend on as one short text; without a root, for those with nothing of their own."""
        root = root if root in self.plans.roots or root in self.of_roots else ""
        if root not in self._digests:
            plans = [f"{kind} {self.plans.of(root, kind)!r}" for kind in sorted(self.plans.general)]
            self._digests[root] = fields_digest(
                VERSION, ROW_VERSION, self.model(), self.tokenizer, *plans, *self._besides(root)
            )
        return self._digests[root]

    def _besides(self, root: str) -> tuple[str, ...]:
        return (self.of_roots[root],) if root in self.of_roots else ()


def plan_of(window: int, chosen: Mapping[str, Value]) -> Plan:
    """Return the plan for a model's window and a strategy's values, as `settings.effective` gives them."""

    def size(name: str) -> int:
        return int(chosen.get(name) or 0)

    limits = limits_of(window, size("max_chunk_tokens"), size("max_heading_level_for_path"))
    limits = replace(limits, whole_fences=chosen.get("keep_code_blocks_intact") is not False)
    strategy = str(chosen["strategy"])
    if strategy == "anchored":
        limits = replace(limits, max_chars=size("max_chars"), min_chars=size("min_chars"))
        return Plan("anchored", limits, extract=str(chosen.get("extract") or "exchange"))
    return Plan(
        strategy,
        limits,
        max_chars=size("max_chars"),
        min_chars=size("min_chars"),
        overlap_chars=min(size("overlap_chars"), size("max_chars") // 2),
        min_tokens=size("min_chunk_tokens"),
        overlap_tokens=min(size("overlap_tokens"), limits.body // 2),
        rule_ends_exchange=chosen.get("rule_ends_exchange") is not False,
        extract=str(chosen.get("extract") or "exchange"),
    )


def plans_of(window: int, by_root: Mapping[str, Mapping[str, Mapping[str, Value]]]) -> Plans:
    """Return the plans for values by root and kind; the root "" stands for all that have none of their own."""
    plans = {root: {kind: plan_of(window, chosen) for kind, chosen in kinds.items()} for root, kinds in by_root.items()}
    return Plans(plans.pop(""), plans)


def limits_of(window: int, tokens: int | None, heading_depth: int | None) -> Limits:
    """Return chunk limits for a model's window, made smaller by a setting that counts the two special tokens."""
    return limits_for(min(window, tokens - 2) if tokens else window, heading_depth)


def limits_for(window: int, heading_depth: int | None) -> Limits:
    """Return chunk limits for a model that takes `window` tokens besides the special ones."""
    body = min(max(window - _AROUND, 16), _LARGEST_BODY)
    return Limits(body=body, window=window, heading_depth=heading_depth or 6)
