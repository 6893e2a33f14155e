"""`schema`: what programs send to the socket and get from it, as JSON Schema."""

from __future__ import annotations

from anchord.cli.app import app, print_json
from anchord.ipc.json_schema import protocol_schema


@app.command()
def schema() -> None:
    """Print the JSON Schema of the socket's methods: their parameters and their answers."""
    print_json(protocol_schema())
