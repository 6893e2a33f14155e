"""The settings of the processes that run a local model."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkerOptions:
    """How the worker processes run."""

    exports_folder: Path
    """Where exported models are kept."""
    older_exports_folder: Path | None = None
    """Where the home kept them before; what is there is used too."""
    precision: str = "fp32"
    """"fp32", "int8", or "auto": see `precision.choose_precision`."""
    indexed_model: str = ""
    """The `model_id` that an index was made with; "" if there is none."""
    is_default_model: bool = False
    """Whether the model is the one of the default configuration."""
    threads: int = 0
    """Threads of a process. 0 means all processors but one while somebody waits, else half."""
    idle_s: float = 300.0
    """Seconds without work after which `stop_idle_workers` stops a process."""
    max_growth_bytes: int = 1_000_000_000
    """A process that grew by more since its model was loaded is replaced; 0 means never."""
