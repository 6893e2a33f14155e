"""`mcp`: the server that agents start."""

from __future__ import annotations

import logging
from typing import Annotated

from anchord.cli.app import app, ensure_paths, print_line
from anchord.cli.parameters import Option
from anchord.core.quoting import escape_line, quote_name
from anchord.errors import UsageError


@app.command()
def mcp(
    http: Annotated[
        bool, Option("--http", help="On 127.0.0.1, by HTTP with a token, not on standard input.")
    ] = False,
    port: Annotated[
        int, Option("--port", min=0, max=65_535, help="Port for --http; 0 for any free one.")
    ] = 0,
) -> None:
    """Serve agents over the Model Context Protocol, on standard input and output."""
    if port and not http:
        raise UsageError("--port is for --http", "add --http")
    paths = ensure_paths()
    _configure_sdk_logging()
    from anchord.mcp.server import make_server

    server = make_server(paths)
    if not http:
        server.run("stdio")
        return
    from anchord.cli.output.markup import is_terminal
    from anchord.mcp.http_server import HttpServer

    token_file = str(paths.http_token_file)
    http_server = HttpServer(server, paths, port)
    print_line(f"ready: {http_server.url}")
    if is_terminal():
        print_line(http_server.header)
    else:  # It may go to a log, which others can read.
        print_line(f"The token for `Authorization: Bearer` is in {quote_name(token_file)}.")
    http_server.run()


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
