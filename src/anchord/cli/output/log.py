"""The log of a process that serves or writes the index, on standard error."""

from __future__ import annotations

import logging
import sys
import traceback
from collections.abc import MutableMapping
from types import TracebackType
from typing import Any, TextIO, cast

from anchord.cli.light_imports import without
from anchord.core.quoting import escape_fields

_MAX_CAUSES = 5


def configure_stderr_logging(level: int = logging.INFO) -> None:
    """Log events to standard error: for people on a terminal, else as JSON lines.

    Exceptions are logged without their messages, which can quote the content of files.

    Args:
        level: The lowest level to log.
    """
    # structlog would format exceptions with rich, which takes long to load. Here they are formatted
    # without it.
    with without("rich"):
        import structlog

    from anchord.daemon.host.log_stream import DroppingStream

    if sys.stderr.isatty():
        renderer: structlog.typing.Processor = structlog.dev.ConsoleRenderer()
    else:
        renderer = structlog.processors.JSONRenderer()
    structlog.configure(
        processors=[
            structlog.processors.add_log_level,
            structlog.processors.TimeStamper(fmt="iso", utc=True),
            _escape_event_fields,
            structlog.processors.ExceptionRenderer(_format_exception_without_message),
            renderer,
        ],
        wrapper_class=structlog.make_filtering_bound_logger(level),
        logger_factory=structlog.PrintLoggerFactory(cast("TextIO", DroppingStream(sys.stderr))),
    )


def _escape_event_fields(
    _logger: object, _method: str, event: MutableMapping[str, Any]
) -> MutableMapping[str, Any]:
    """Escape what an event quotes, such as the names of files: an event is one line."""
    return {
        name: value if name == "exc_info" else escape_fields(value) for name, value in event.items()
    }


def _format_exception_without_message(
    exc_info: tuple[type[BaseException], BaseException, TracebackType | None],
) -> str:
    """Return an exception's class, those of its causes, and the lines it passed through."""
    kind, error, trace = exc_info
    causes = ""
    for _ in range(_MAX_CAUSES):
        cause = error.__cause__ or error.__context__
        if cause is None:
            break
        causes += f" from {type(cause).__name__}"
        error = cause
    frames = [
        f"{frame.filename}:{frame.lineno} in {frame.name}" for frame in traceback.extract_tb(trace)
    ]
    return "\n".join([f"{kind.__name__}{causes}", *frames])
