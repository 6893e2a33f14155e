"""Convert the arguments of commands without pydantic.

typer loads pydantic at the first command, 0.12 of 0.3 CPU seconds, and hands every argument to a
pydantic TypeAdapter. For texts, numbers and lists of texts that adapter gives what `int`, `float`
and `list` give, so these are converted here. Everything else, and every value that is wrong, goes
to typer as before: messages and rules stay typer's own.

This replaces a private function of typer 0.29. A typer without it is used as it is and is only
slower; `tests/cli/test_light_coercion.py` notices.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any, get_args, get_origin

from typer import core

try:
    from typer._coercion import RuntimeParam, TypeDescriptor, build_runtime_param
except ImportError:
    RuntimeParam = None  # type: ignore[assignment,misc] # another typer: see `install`

_UNKNOWN = object()
_WHOLE_NUMBER = re.compile(r"-?[0-9]{1,18}", re.ASCII)
_NUMBER = re.compile(r"-?[0-9]{1,15}(?:\.[0-9]{1,15})?", re.ASCII)


def install() -> None:
    """Have typer convert plain arguments here; does nothing if this typer is another one."""
    if RuntimeParam is not None and hasattr(core, "build_runtime_param"):
        core.build_runtime_param = _build_runtime_param


if RuntimeParam is not None:

    @dataclass(frozen=True)
    class _LightParam(RuntimeParam):
        descriptor: TypeDescriptor

        def _coerce_value(self, value: Any, param: Any, ctx: Any) -> Any:  # noqa: ANN401 - typer's own signature
            plain = _convert(value, self.annotation, self.parameter_info)
            if plain is not _UNKNOWN:
                return plain
            original = build_runtime_param(self.descriptor)
            return original._coerce_value(value, param, ctx)  # noqa: SLF001 - as typer calls it


def _build_runtime_param(descriptor: TypeDescriptor) -> RuntimeParam:
    has_rules = descriptor.is_choice or descriptor.is_file or descriptor.is_path
    if has_rules or getattr(descriptor.parameter_info, "parser", None):
        return build_runtime_param(descriptor)
    return _LightParam(descriptor.parameter_info, descriptor.annotation, descriptor)


def _convert(value: Any, annotation: Any, rules: Any) -> Any:  # noqa: ANN401 - any argument of any command
    """Return a value as its annotation has it, or `_UNKNOWN` where typer must decide."""
    if get_origin(annotation) is list and isinstance(value, (list, tuple)):
        (inner,) = get_args(annotation)
        converted = [_convert(each, inner, rules) for each in value]
        return _UNKNOWN if any(each is _UNKNOWN for each in converted) else converted
    if annotation is str and isinstance(value, str):
        return value
    if annotation is bool and isinstance(value, bool):
        return value
    if annotation in (int, float):
        return _convert_number(value, annotation, rules)
    return _UNKNOWN


def _convert_number(value: Any, annotation: type[int | float], rules: Any) -> Any:  # noqa: ANN401 - likewise
    if isinstance(value, str):
        form = _WHOLE_NUMBER if annotation is int else _NUMBER
        if not form.fullmatch(value):
            return _UNKNOWN
        number = annotation(value)
    elif isinstance(value, annotation) and not isinstance(value, bool):
        number = value
    else:
        return _UNKNOWN
    too_small = rules.min is not None and number < rules.min
    too_large = rules.max is not None and number > rules.max
    return _UNKNOWN if too_small or too_large else number
