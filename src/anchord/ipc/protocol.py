"""Requests and answers. Names are fixed by the interface; an unknown parameter is refused by name.

An error's `data.code` is stable (`errors.py`) and `data.hint` says what to do. `hello` gives protocol and version.
"""

from __future__ import annotations

from typing import Annotated, Any, Literal

import msgspec
from msgspec import UNSET, Meta, UnsetType

from anchord import errors
from anchord.errors import AnchordError, UsageError
from anchord.model import printable

PROTOCOL = 1
MAX_LINE = 1 << 20
"""Longest request, in bytes; answers may be longer."""

MOST_HITS = 1_000
MOST_NEIGHBOURS = 10_000
MOST_EXPANDED = 100_000
LONGEST_WAIT_S = 31_536_000

PARSE_ERROR, INVALID_REQUEST, UNKNOWN_METHOD, INVALID_PARAMS, FAILED = -32700, -32600, -32601, -32602, -32000


class Request(msgspec.Struct, frozen=True):
    """A call. Without an id it is a notification and gets no answer."""

    method: str
    params: dict[str, Any] = {}
    id: int | str | UnsetType | None = UNSET
    jsonrpc: Literal["2.0"] = "2.0"


class Params(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """Base of the parameters of a method; also those of a method that takes none."""


class SearchParams(Params, frozen=True, kw_only=True):
    """`search`."""

    query: str
    k: Annotated[int, Meta(ge=1, le=MOST_HITS)] = 10
    mode: str = "hybrid"
    root: str = ""
    path: str = ""
    kind: str = ""
    section: str = ""
    room: str = ""
    session: str = ""
    since: str = ""
    until: str = ""
    show_chunks: bool = False
    expand: Annotated[int, Meta(ge=0, le=MOST_EXPANDED)] = 0
    fresh: bool = False


class ShowParams(Params, frozen=True, kw_only=True):
    """`show`: a chunk by its id, or by `root` and `path` all chunks of a file."""

    id: str = ""
    root: str = ""
    path: str = ""
    whole: bool = False
    context: Annotated[int, Meta(ge=0, le=MOST_NEIGHBOURS)] = 0


class PathParams(Params, frozen=True, kw_only=True):
    """`explain`."""

    path: str


class ForgetParams(Params, frozen=True, kw_only=True):
    """`forget`; `undo` lets a forgotten path in again."""

    path: str
    undo: bool = False


class ReindexParams(Params, frozen=True, kw_only=True):
    """`reindex`."""

    force_rechunk: bool = False


class IndexParams(Params, frozen=True, kw_only=True):
    """`index`: folders to take in besides the roots."""

    paths: tuple[str, ...] = ()


class SyncParams(Params, frozen=True, kw_only=True):
    """`sync`; no timeout waits as long as it takes."""

    timeout: Annotated[float, Meta(ge=0, le=LONGEST_WAIT_S)] | None = None


class VerifyParams(Params, frozen=True, kw_only=True):
    """`verify`; `vectors` is how many to embed again, None for all."""

    repair: bool = False
    vectors: Annotated[int, Meta(ge=0)] | None = 16


class RootParams(Params, frozen=True, kw_only=True):
    """`roots.add`."""

    path: str
    kind: str = "project"
    name: str = ""


class NameParams(Params, frozen=True, kw_only=True):
    """`roots.remove`, `confirm-delete`, and `rescan` ("" for every root)."""

    name: str = ""


def read_params(kind: type[Params], params: dict[str, Any]) -> Any:  # noqa: ANN401 - an instance of `kind`
    """Return the parameters of a request.

    Raises:
        UsageError: one is unknown, missing, or of the wrong kind.
    """
    hint = f"known: {', '.join(kind.__struct_fields__) or 'none'}"
    if unknown := sorted(params.keys() - set(kind.__struct_fields__)):
        raise UsageError(f"unknown parameter '{unknown[0]}'", hint)
    try:
        return msgspec.convert(params, kind)
    except msgspec.ValidationError as error:
        raise UsageError(str(error).replace("`", "'").replace("Object", "params"), hint) from None


def encode(value: object) -> bytes:
    """Return a value as one line."""
    return msgspec.json.encode(value) + b"\n"


def answer(request: Request, result: object) -> bytes:
    """Return the line of an answer; none for a notification."""
    return b"" if request.id is UNSET else encode({"jsonrpc": "2.0", "id": request.id, "result": result})


def failure(request: Request | None, error: AnchordError, code: int = FAILED) -> bytes:
    """Return the line of an error; none for a notification. Without a request nobody knows the id."""
    if request and request.id is UNSET:
        return b""
    data = {"code": error.code, "hint": printable(error.hint)}
    what = {"code": code, "message": printable(error.message), "data": data}
    return encode({"jsonrpc": "2.0", "id": request.id if request else None, "error": what})


def raised(error: dict[str, Any]) -> AnchordError:
    """Return the exception that an error object stands for."""
    data = error.get("data") or {}
    kinds = {kind.code: kind for kind in vars(errors).values() if isinstance(kind, type) and issubclass(kind, AnchordError)}
    kind = kinds.get(str(data.get("code")), AnchordError)
    return kind(str(error.get("message", "failed")), str(data.get("hint", "")))
