"""The methods of the socket as JSON Schema, for programs in other languages."""

from __future__ import annotations

from typing import Any

import msgspec

from anchord.ipc.messages.status import Progress
from anchord.ipc.methods import METHODS
from anchord.ipc.protocol import PROTOCOL_VERSION

_DIALECT = "https://json-schema.org/draft/2020-12/schema"
_REF_TEMPLATE = "#/$defs/{name}"


def protocol_schema() -> dict[str, Any]:
    """Return the JSON Schema of all parameters and answers.

    Returns:
        `protocol`, the version; `methods`, by name, each with the schema of its `params` and its
        `result`; `progress`, the schema of what "subscribe" streams; and the `$defs` that these
        refer to.
    """
    types = [*(each for method in METHODS for each in (method.params, method.answer)), Progress]
    schemas, definitions = msgspec.json.schema_components(types, ref_template=_REF_TEMPLATE)
    params, results = schemas[:-1:2], schemas[1:-1:2]
    params_and_results = zip(params, results, strict=True)
    return {
        "$schema": _DIALECT,
        "title": "The methods of anchord's socket (JSON-RPC 2.0, one object a line)",
        "protocol": PROTOCOL_VERSION,
        "methods": {
            method.name: {"params": params, "result": result}
            for method, (params, result) in zip(METHODS, params_and_results, strict=True)
        },
        "progress": schemas[-1],
        "$defs": definitions,
    }
