"""A service over an empty home."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from pathlib import Path

import pytest
import structlog
from faults.service import Service


@pytest.fixture(autouse=True)
def _quiet() -> Iterator[None]:
    """Keep thousands of indexed files out of a failing test's report."""
    structlog.configure(wrapper_class=structlog.make_filtering_bound_logger(logging.CRITICAL))
    yield
    structlog.reset_defaults()


@pytest.fixture
def service(tmp_path: Path) -> Iterator[Service]:
    """Give a service that is not started yet."""
    made = Service(tmp_path)
    yield made
    made.stop()
