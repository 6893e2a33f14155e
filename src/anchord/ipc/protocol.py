"""Requests, answers and errors of the socket as lines of JSON.

`methods` lists the methods, and `messages` what they take and give. An unknown parameter is refused
by name. In an error, `data.code` identifies the class (`errors.py`), and `data.hint` says what to
do.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal, TypeVar

import msgspec
from msgspec import UNSET, UnsetType

from anchord import errors
from anchord.core.quoting import escape_non_utf8
from anchord.errors import AnchordError, UsageError
from anchord.ipc.messages.base import Params
from anchord.ipc.messages.status import Progress

PROTOCOL_VERSION = 2
MAX_REQUEST_BYTES = 1 << 20
"""Maximum length of a request line. Answers may be longer."""

# Error codes of JSON-RPC 2.0; SERVER_ERROR is the first of those left to servers.
PARSE_ERROR = -32700
INVALID_REQUEST = -32600
METHOD_NOT_FOUND = -32601
INVALID_PARAMS = -32602
SERVER_ERROR = -32000


P = TypeVar("P", bound=Params)
A = TypeVar("A")
START_HINT = "`anchord start` starts it; `anchord run` shows what it does"


class Request(msgspec.Struct, frozen=True):
    """A call. Without an id it is a notification and gets no answer."""

    method: str
    params: dict[str, Any] = {}
    id: int | str | UnsetType | None = UNSET
    jsonrpc: Literal["2.0"] = "2.0"


class Response(msgspec.Struct, frozen=True):
    """The answer to a call, or a message of a stream of progress."""

    id: int | str | None = None
    result: msgspec.Raw = msgspec.Raw(b"")
    error: dict[str, Any] | None = None
    params: msgspec.Raw = msgspec.Raw(b"")
    """Of a message of a stream."""


def parse_params(params_type: type[P], params: Mapping[str, object]) -> P:
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


def check_params(params: Params) -> None:
    """Check parameters that were made in this process, as `parse_params` checks those of a request.

    Raises:
        UsageError: A parameter is of the wrong type or out of range.
    """
    parse_params(type(params), msgspec.to_builtins(params))


def encode_line(value: object) -> bytes:
    """Encode a value as JSON in one line, with a line end.

    Raises:
        UnicodeEncodeError: A text contains surrogates.
    """
    return msgspec.json.encode(value) + b"\n"


def encode_request(call_id: int, method: str, params: object) -> bytes:
    """Encode a call as one line.

    Args:
        call_id: What the answer will have as its id.
        method: Name of the method.
        params: Its parameters; anything that is a JSON object.

    Raises:
        UsageError: A parameter contains surrogates.
    """
    try:
        return encode_line({"jsonrpc": "2.0", "id": call_id, "method": method, "params": params})
    except UnicodeEncodeError as error:
        raise UsageError(
            f"a parameter of `{method}` is not UTF-8", "pass text that UTF-8 can encode"
        ) from error


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


def decode_answer(line: bytes) -> Response:
    """Decode a line that the daemon sent.

    Raises:
        AnchordError: It is no line of the protocol: another program answers on the socket.
    """
    try:
        return msgspec.json.decode(line, type=Response)
    except (msgspec.DecodeError, UnicodeDecodeError):
        raise AnchordError("the program that answers is not anchord", START_HINT) from None


def result_of(response: Response, answer_type: type[A]) -> A:
    """Return the result of a response.

    Args:
        response: The response.
        answer_type: What the method answers.

    Raises:
        AnchordError: The response is an error, or the daemon is of a version with other answers.
    """
    if response.error is not None:
        raise exception_from_error(response.error)
    if not response.result:
        raise AnchordError("the program that answered is not anchord", START_HINT)
    return _decode(response.result, answer_type)


def progress_of(response: Response) -> Progress:
    """Return what a message of the stream of progress says.

    Raises:
        AnchordError: As for `result_of`.
    """
    return _decode(response.params, Progress)


def _decode(encoded: msgspec.Raw, answer_type: type[A]) -> A:
    try:
        return msgspec.json.decode(encoded, type=answer_type)
    except msgspec.ValidationError as error:
        raise AnchordError(
            f"the daemon's answer is not of this version of anchord ({error})",
            "`anchord restart` starts the daemon of this version",
        ) from None


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
