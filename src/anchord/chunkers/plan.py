"""How documents are cut: a strategy with its sizes, within the limits of the model."""

from __future__ import annotations

from dataclasses import dataclass, field

from anchord.chunkers.layout import Limits


@dataclass(frozen=True, slots=True)
class Plan:
    """A strategy and its sizes; 0 where a size has no bearing. `anchord.settings` has the names and defaults."""

    strategy: str = "anchored"
    limits: Limits = field(default_factory=Limits)
    max_chars: int = 0
    min_chars: int = 0
    overlap_chars: int = 0
    min_tokens: int = 0
    overlap_tokens: int = 0
    rule_ends_exchange: bool = True
    """Whether `---` ends an exchange; what follows it is a chunk of its own."""

    extract: str = "exchange"
    """"general": a chunk of a conversation that is a memory of some type is in the room of that type."""

    @property
    def overlaps(self) -> bool:
        """Whether a chunk may repeat the end of the one before."""
        return self.overlap_chars > 0 or self.overlap_tokens > 0

    @property
    def keeps_fences(self) -> bool:
        """Whether a fence that fits in a chunk is never in two."""
        return self.limits.whole_fences and self.strategy not in ("window", "recursive", "whole")
