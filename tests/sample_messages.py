"""Messages of the socket from the fields that a test is about; all others are empty."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from typing import Any, TypeVar

import msgspec
from msgspec import inspect

M = TypeVar("M", bound=msgspec.Struct)

_type_info = cache(inspect.type_info)
"""msgspec reads the annotations of a type and of all its fields at each call: half of the time of the tests that use this."""

_EMPTY: dict[type[inspect.Type], object] = {
    inspect.StrType: "",
    inspect.IntType: 0,
    inspect.FloatType: 0.0,
    inspect.BoolType: False,
    inspect.VarTupleType: (),
    inspect.DictType: {},
}


def message(kind: type[M], fields: Mapping[str, Any]) -> M:
    """Return a message with some JSON fields; what else it must have is "", 0, False, empty or None."""
    return msgspec.convert(_filled(_type_info(kind), fields), kind)


def json_of(value: object) -> Any:  # noqa: ANN401 - any JSON value
    """Return a message, or messages, as a program that reads JSON gets them."""
    return msgspec.json.decode(msgspec.json.encode(value))


def _filled(kind: inspect.Type, value: Any) -> Any:  # noqa: ANN401 - any JSON value
    if isinstance(kind, inspect.UnionType):
        return value if value is None else _filled(_not_none(kind), value)
    if isinstance(kind, inspect.VarTupleType):
        return [_filled(kind.item_type, each) for each in value]
    if not isinstance(kind, inspect.StructType) or not isinstance(value, Mapping):
        return msgspec.to_builtins(value)
    unknown = value.keys() - {field.encode_name for field in kind.fields}
    assert not unknown, unknown
    given = {
        field.encode_name: _filled(field.type, value[field.encode_name])
        for field in kind.fields
        if field.encode_name in value
    }
    missing = {
        field.encode_name: _empty(field.type)
        for field in kind.fields
        if field.required and field.encode_name not in value
    }
    return given | missing


def _not_none(kind: inspect.UnionType) -> inspect.Type:
    return next(each for each in kind.types if not isinstance(each, inspect.NoneType))


def _empty(kind: inspect.Type) -> object:
    if isinstance(kind, inspect.UnionType):
        return None
    if isinstance(kind, inspect.StructType):
        return _filled(kind, {})
    return _EMPTY[type(kind)]
