"""What a check of `anchord doctor` is given, and what it returns."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum

from anchord.config.paths import Paths
from anchord.config.schema import Config
from anchord.core.types import Root
from anchord.ipc.messages.status import StatusAnswer


class Health(StrEnum):
    """How serious a finding is."""

    GOOD = "good"
    DOUBTFUL = "doubtful"
    """Works, but worse than it could, or not for long."""
    BAD = "bad"
    """Something does not work."""


@dataclass(frozen=True, slots=True)
class Finding:
    """The result of one check."""

    name: str
    """What was checked; `doctor --json` prints it."""
    health: Health
    observation: str
    remedy: str = ""
    """What to do; "" when nothing needs to be done."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CheckContext:
    """What the checks look at."""

    paths: Paths
    config: Config
    roots: tuple[Root, ...]
    is_running: bool
    """Whether a daemon runs."""
    daemon_status: StatusAnswer | None
    """The status of the running daemon; None if it did not answer, or does not run."""
    environment: Mapping[str, str]
