"""What a model is told of the tools. Every conversation pays for each token of their list."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from anchord.mcp.parameters import OPTIONS

_NOT_FOR_MODELS = frozenset({"title", "default", "additionalProperties"})
_LIMITS = frozenset({"minimum", "maximum", "minLength", "maxLength"})
"""Of a parameter. An error says which values it accepts."""


def shorten_schema(schema: Mapping[str, Any]) -> dict[str, Any]:
    """Return the JSON schema of a tool's parameters without what a model can do without.

    Args:
        schema: An object's schema, as pydantic makes it.
    """
    properties = {
        name: {key: value for key, value in member.items() if key not in _NOT_FOR_MODELS | _LIMITS}
        for name, member in schema.get("properties", {}).items()
    }
    kept = {key: value for key, value in schema.items() if key not in _NOT_FOR_MODELS}
    return {**kept, "properties": properties} if properties else {"type": "object"}


def gather_options(arguments: Mapping[str, Any]) -> dict[str, Any]:
    """Return the arguments of `search` with the options among them in `options`.

    A model often gives an option as a parameter of its own.
    """
    options = {name: value for name, value in arguments.items() if name in OPTIONS}
    if not options:
        return dict(arguments)
    others = {name: value for name, value in arguments.items() if name not in OPTIONS}
    given = others.get("options", {})
    return {**others, "options": {**given, **options} if isinstance(given, dict) else options}
