"""Requests, their parameters, and answers of the socket.

Names of methods, parameters and JSON keys are a fixed interface. An unknown parameter is refused by
name. In an error, `data.code` identifies the class (`errors.py`) and `data.hint` says what to do.
"""

from __future__ import annotations

import os
from typing import Annotated, Any, Literal

import msgspec
from msgspec import UNSET, Meta, UnsetType

from anchord import errors
from anchord.core.types import escape_non_utf8
from anchord.errors import AnchordError, UsageError

PROTOCOL_VERSION = 1
MAX_REQUEST_BYTES = 1 << 20
"""Maximum length of a request line. Answers may be longer."""

MAX_HITS = 1_000
MAX_CONTEXT_CHUNKS = 10_000
MAX_EXPAND_CHARS = 100_000
MAX_WAIT_S = 31_536_000
MAX_QUERY_CHARS = 100_000
MAX_FILTER_CHARS = 10_000

# Error codes of JSON-RPC 2.0; SERVER_ERROR is the first of those left to servers.
PARSE_ERROR = -32700
INVALID_REQUEST = -32600
METHOD_NOT_FOUND = -32601
INVALID_PARAMS = -32602
SERVER_ERROR = -32000


class Request(msgspec.Struct, frozen=True):
    """A call. Without an id it is a notification and gets no answer."""

    method: str
    params: dict[str, Any] = {}
    id: int | str | UnsetType | None = UNSET
    jsonrpc: Literal["2.0"] = "2.0"


class Params(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """Base of all parameters, and the parameters of a method that takes none."""


class SearchParams(Params, frozen=True, kw_only=True):
    """Parameters of "search"."""

    query: Annotated[str, Meta(max_length=MAX_QUERY_CHARS)]
    k: Annotated[int, Meta(ge=1, le=MAX_HITS)] = 10
    """Maximum number of hits."""
    mode: str = "hybrid"
    """"hybrid", "vector" or "text"."""
    root: str = ""
    path: Annotated[str, Meta(max_length=MAX_FILTER_CHARS)] = ""
    """A folder, or a pattern in .gitignore syntax."""
    kind: str = ""
    section: Annotated[str, Meta(max_length=MAX_FILTER_CHARS)] = ""
    """Headings joined with " > "."""
    room: str = ""
    session: str = ""
    since: str = ""
    """A date or an age, such as 2026-01-31, 7d or 3h."""
    until: str = ""
    """Like `since`."""
    show_chunks: bool = False
    expand: Annotated[int, Meta(ge=0, le=MAX_EXPAND_CHARS)] = 0
    """Characters of context to add from the same section."""
    fresh: bool = False
    """True waits until everything written before the call is searchable."""
    detached: bool = False
    """True also searches conversations that are kept and not indexed, by words."""


class ShowParams(Params, frozen=True, kw_only=True):
    """Parameters of "show": a chunk by its id, or all chunks of a file by `root` and `path`."""

    id: str = ""
    root: str = ""
    path: str = ""
    whole: bool = False
    """True shows all of the chunk's file or exchange."""
    context: Annotated[int, Meta(ge=0, le=MAX_CONTEXT_CHUNKS)] = 0
    """Number of chunks to add before the chunk, and after it."""


class ExplainParams(Params, frozen=True, kw_only=True):
    """Parameters of "explain"."""

    path: str
    """Absolute path."""


class ForgetParams(Params, frozen=True, kw_only=True):
    """Parameters of "forget"."""

    path: str
    """Absolute path."""
    path_bytes: bytes = b""
    """The path as the system has it, where it is not UTF-8; base64 in JSON. `path` is ignored."""
    undo: bool = False
    """True lets a forgotten path be indexed again."""
    preview: bool = False
    """True only counts what would be deleted."""

    @property
    def exact_path(self) -> str:
        """The absolute path; bytes that are not UTF-8 are surrogates."""
        return os.fsdecode(self.path_bytes) if self.path_bytes else self.path


class ReindexParams(Params, frozen=True, kw_only=True):
    """Parameters of "reindex"."""

    force_rechunk: bool = False


class BackupParams(Params, frozen=True, kw_only=True):
    """Parameters of "backup"."""

    target: str
    """Absolute path of the backup folder."""
    keep: Annotated[int, Meta(ge=1)] | None = None
    """How many snapshots to keep; None keeps all."""
    staged: bool = False
    """Ignore `target`: make one snapshot in anchord's own folder for temporary files, which the
    client copies to where only it may write, and then deletes."""


class IndexParams(Params, frozen=True, kw_only=True):
    """Parameters of "index"."""

    paths: tuple[str, ...] = ()
    """Folders to index besides the roots."""


class SyncParams(Params, frozen=True, kw_only=True):
    """Parameters of "sync"."""

    timeout: Annotated[float, Meta(ge=0, le=MAX_WAIT_S)] | None = None
    """Seconds to wait at most; None waits without limit."""
    words: bool = False
    """Do not wait for vectors: a search by words finds everything, one by meaning may not."""


SYNC_ALL = SyncParams()
"""Wait for everything, without limit."""


class VerifyParams(Params, frozen=True, kw_only=True):
    """Parameters of "verify"."""

    repair: bool = False
    vectors: Annotated[int, Meta(ge=0)] | None = 16
    """Number of rows to embed again for comparison; None for all."""


class AddRootParams(Params, frozen=True, kw_only=True):
    """Parameters of "roots.add"."""

    path: str
    kind: str = "project"
    name: str = ""


class RootNameParams(Params, frozen=True, kw_only=True):
    """Parameters of "roots.remove", "confirm-delete" and "rescan"."""

    name: str = ""
    """Name of a root; for "rescan" "" means all of them."""


def parse_params(params_type: type[Params], params: dict[str, Any]) -> Any:  # noqa: ANN401 - an instance of `params_type`
    """Convert the parameters of a request.

    Args:
        params_type: The method's parameters.
        params: What the request contains.

    Returns:
        An instance of `params_type`.

    Raises:
        UsageError: A parameter is unknown, missing, of the wrong type, or out of range.
    """
    known_names = params_type.__struct_fields__
    hint = f"known: {', '.join(known_names) or 'none'}"
    if unknown := sorted(params.keys() - set(known_names)):
        raise UsageError(f"unknown parameter '{unknown[0]}'", hint)
    try:
        return msgspec.convert(params, params_type)
    except msgspec.ValidationError as error:
        message = str(error).replace("`", "'").replace("Object", "params")
        raise UsageError(message, hint) from None


def encode_line(value: object) -> bytes:
    """Encode a value as JSON in one line, with a line end.

    Raises:
        UnicodeEncodeError: A text contains surrogates.
    """
    return msgspec.json.encode(value) + b"\n"


def encode_result(request: Request, result: object) -> bytes:
    """Encode an answer as one line; b"" for a notification."""
    if request.id is UNSET:
        return b""
    return encode_line({"jsonrpc": "2.0", "id": request.id, "result": result})


def encode_error(request: Request | None, error: AnchordError, code: int = SERVER_ERROR) -> bytes:
    """Encode an error as one line; b"" for a notification.

    Args:
        request: The failed request; None when it could not be read, so that its id is unknown.
        error: What went wrong. Surrogates in its texts are escaped.
        code: Error code of JSON-RPC.
    """
    if request and request.id is UNSET:
        return b""
    body = {
        "code": code,
        "message": escape_non_utf8(error.message),
        "data": {"code": error.code, "hint": escape_non_utf8(error.hint)},
    }
    return encode_line({"jsonrpc": "2.0", "id": request.id if request else None, "error": body})


def exception_from_error(error: dict[str, Any]) -> AnchordError:
    """Return the exception that an error object of an answer stands for; does not raise it.

    An unknown code gives an `AnchordError`.
    """
    data = error.get("data") or {}
    error_types = {
        error_type.code: error_type
        for error_type in vars(errors).values()
        if isinstance(error_type, type) and issubclass(error_type, AnchordError)
    }
    error_type = error_types.get(str(data.get("code")), AnchordError)
    return error_type(str(error.get("message", "failed")), str(data.get("hint", "")))
