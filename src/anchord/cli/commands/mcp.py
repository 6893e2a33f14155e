"""`mcp`: the server that agents start."""

from __future__ import annotations

from anchord.cli.app import app, ensure_paths


@app.command()
def mcp() -> None:
    """Serve agents over the Model Context Protocol, on standard input and output."""
    paths = ensure_paths()
    from anchord.mcp.server import make_server

    make_server(paths).run("stdio")
