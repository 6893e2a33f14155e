"""`mcp`: the server that agents start."""

from __future__ import annotations

import logging

from anchord.cli.app import app, ensure_paths
from anchord.core.quoting import escape_line


@app.command()
def mcp() -> None:
    """Serve agents over the Model Context Protocol, on standard input and output."""
    paths = ensure_paths()
    _configure_sdk_logging()
    from anchord.mcp.server import make_server

    make_server(paths).run("stdio")


class _LineFormatter(logging.Formatter):
    """Formats an event as one line: escaped, and of an exception only the class."""

    def format(self, record: logging.LogRecord) -> str:
        error = record.exc_info[0] if record.exc_info else None
        cause = f": {error.__name__}" if error else ""
        source = f"{record.levelname} {record.name}"
        return escape_line(f"{source}: {record.getMessage()}{cause}")


def _configure_sdk_logging() -> None:
    """Log what the SDK reports to standard error; it would print tracebacks with arguments."""
    handler = logging.StreamHandler()
    handler.setFormatter(_LineFormatter())
    logging.basicConfig(level=logging.WARNING, handlers=[handler])
