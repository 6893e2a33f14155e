"""How documents are cut: a strategy with its sizes, within the limits of the model."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from anchord.chunking.engine.layout import Limits
from anchord.config.strategies import OptionValue

_RESERVED_TOKENS = 32
"""Tokens of a window for a repeated fence or table opening, or the heading above."""
_MIN_BODY = 16
_MAX_BODY = 430
_SPECIAL_TOKENS = 2
_MAX_HEADING_LEVEL = 6


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """A strategy and its sizes; 0 for a size that the strategy does not use.

    `anchord.config.strategies` has the names and defaults.
    """

    strategy: str = "anchored"
    limits: Limits = field(default_factory=Limits)
    max_chars: int = 0
    min_chars: int = 0
    overlap_chars: int = 0
    """Characters that a chunk repeats of the one before."""
    min_tokens: int = 0
    overlap_tokens: int = 0
    """Tokens that a chunk repeats of the one before."""
    rule_ends_exchange: bool = True
    """Whether `---` ends an exchange of a transcript; what follows it is a chunk of its own."""

    extract: str = "exchange"
    """"general": a chunk of a conversation that is a memory of a type is in that type's room."""

    @property
    def has_overlap(self) -> bool:
        """Whether a chunk may repeat the end of the one before."""
        return self.overlap_chars > 0 or self.overlap_tokens > 0

    @property
    def keeps_fences_whole(self) -> bool:
        """Whether a fence that fits in a chunk is never in two chunks."""
        cuts_by_size = self.strategy in {"window", "recursive", "whole"}
        return self.limits.whole_fences and not cuts_by_size


@dataclass(frozen=True, slots=True)
class ChunkingPlans:
    """The plan for each kind of document, in each root."""

    default_by_kind: Mapping[str, Plan]
    """Kind -> plan."""
    by_root_and_kind: Mapping[str, Mapping[str, Plan]] = field(default_factory=dict)
    """Name of a root -> kind -> plan, for roots with a strategy of their own."""

    def plan_for(self, root_name: str, kind: str) -> Plan:
        """Return the plan for a kind of document in a root.

        Raises:
            KeyError: There is no plan for the kind.
        """
        return self.by_root_and_kind.get(root_name, self.default_by_kind)[kind]


def build_plan(window_tokens: int, settings: Mapping[str, OptionValue]) -> Plan:
    """Return the plan for a model and a strategy.

    Args:
        window_tokens: Tokens that the model accepts besides its special ones.
        settings: The strategy's name (`strategy`) and values, as
            `config.strategies.with_strategy_defaults` returns them.
    """

    def size(name: str) -> int:
        return int(settings.get(name) or 0)

    limits = limits_for_max_tokens(
        window_tokens, size("max_chunk_tokens"), size("max_heading_level_for_path")
    )
    limits = replace(limits, whole_fences=settings.get("keep_code_blocks_intact") is not False)
    strategy = str(settings["strategy"])
    extract = str(settings.get("extract") or "exchange")
    max_chars, min_chars = size("max_chars"), size("min_chars")
    if strategy == "anchored":
        # The engine reads its sizes from the limits alone.
        limits = replace(limits, max_chars=max_chars, min_chars=min_chars)
        return Plan(strategy=strategy, limits=limits, extract=extract)
    return Plan(
        strategy=strategy,
        limits=limits,
        max_chars=max_chars,
        min_chars=min_chars,
        overlap_chars=min(size("overlap_chars"), max_chars // 2),
        min_tokens=size("min_chunk_tokens"),
        overlap_tokens=min(size("overlap_tokens"), limits.body // 2),
        rule_ends_exchange=settings.get("rule_ends_exchange") is not False,
        extract=extract,
    )


def build_plans(
    window_tokens: int, settings_by_root: Mapping[str, Mapping[str, Mapping[str, OptionValue]]]
) -> ChunkingPlans:
    """Return the plans for a model and the settings of all roots.

    Args:
        window_tokens: Tokens that the model accepts besides its special ones.
        settings_by_root: Name of a root -> kind -> settings. The name "" is for all roots without
            settings of their own, and required.
    """
    plans: dict[str, dict[str, Plan]] = {}
    for root_name, settings_by_kind in settings_by_root.items():
        plans[root_name] = {
            kind: build_plan(window_tokens, settings) for kind, settings in settings_by_kind.items()
        }
    return ChunkingPlans(plans.pop(""), plans)


def limits_for_max_tokens(
    window_tokens: int, max_chunk_tokens: int | None, max_heading_level: int | None
) -> Limits:
    """Return the limits for a model and a maximum size of chunks.

    Args:
        window_tokens: Tokens that the model accepts besides its special ones.
        max_chunk_tokens: Maximum tokens of a chunk, the two special ones included; None or 0 means
            the model's window.
        max_heading_level: Deepest heading level in header paths; None or 0 means 6.
    """
    if max_chunk_tokens:
        window_tokens = min(window_tokens, max_chunk_tokens - _SPECIAL_TOKENS)
    return limits_for_window(window_tokens, max_heading_level)


def limits_for_window(window_tokens: int, max_heading_level: int | None) -> Limits:
    """Return the limits for a model.

    Args:
        window_tokens: Tokens that the model accepts besides its special ones. The text of a chunk
            gets 32 fewer, at least 16 and at most 430.
        max_heading_level: Deepest heading level in header paths; None or 0 means 6.
    """
    body = max(window_tokens - _RESERVED_TOKENS, _MIN_BODY)
    return Limits(
        body=min(body, _MAX_BODY),
        window=window_tokens,
        heading_depth=max_heading_level or _MAX_HEADING_LEVEL,
    )
