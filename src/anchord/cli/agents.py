"""`mcp`: the server that agents start."""

from __future__ import annotations

from anchord.cli.frame import app, places


@app.command()
def mcp() -> None:
    """Serve agents over the Model Context Protocol, on standard input and output."""
    of = places()
    from anchord.agents.server import make_server

    make_server(of).run("stdio")
