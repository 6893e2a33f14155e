"""The server over streamable HTTP, for clients on this machine that cannot start a process.

It listens on 127.0.0.1 only, in a process of its own: the daemon stays without a network. Each
request needs the token of this home. A web page cannot send one: the token is not in its reach, and
requests whose Host or Origin is another than this address are refused, which ends DNS rebinding.
"""

from __future__ import annotations

import hmac
import os
import secrets
import socket
from collections.abc import Awaitable, Callable, MutableMapping
from typing import Any

import uvicorn
from mcp.server.mcpserver import MCPServer
from mcp.server.transport_security import TransportSecuritySettings

from anchord.config.paths import Paths
from anchord.errors import AnchordError

_ADDRESS = "127.0.0.1"
_PATH = "/mcp"
_MAX_BODY_BYTES = 1_000_000
"""A query has at most 100,000 characters."""
_MAX_CONNECTIONS = 64
_SHUTDOWN_S = 5
_TOKEN_BYTES = 32

Message = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]
App = Callable[[Message, Receive, Send], Awaitable[None]]


class HttpServer:
    """Serves one home. The socket is bound when it is made, so that its port is known."""

    def __init__(self, server: MCPServer, paths: Paths, port: int) -> None:
        """Bind the socket, and read or create the token.

        Args:
            server: Answers the requests.
            paths: Files and folders of the anchord home.
            port: The port; 0 for any free one.

        Raises:
            AnchordError: The port is in use, or the token cannot be stored.
        """
        self._token = read_or_create_token(paths)
        self._socket = _bound_socket(port)
        self._port = self._socket.getsockname()[1]
        self._app = with_token(_make_app(server, self._port), self._token)

    @property
    def url(self) -> str:
        """The address for clients."""
        return f"http://{_ADDRESS}:{self._port}{_PATH}"

    @property
    def header(self) -> str:
        """The header that each request needs."""
        return f"Authorization: Bearer {self._token}"

    def run(self) -> None:
        """Serve until SIGINT or SIGTERM; requests that run then have 5 s."""
        config = uvicorn.Config(
            self._app,
            access_log=False,
            date_header=False,
            limit_concurrency=_MAX_CONNECTIONS,
            log_config=None,
            server_header=False,
            timeout_graceful_shutdown=_SHUTDOWN_S,
            ws="none",
        )
        uvicorn.Server(config).run(sockets=[self._socket])


def read_or_create_token(paths: Paths) -> str:
    """Return the token of a home; a new one is stored in a file that only its owner can read.

    Raises:
        AnchordError: The file cannot be read or created, or others can read it.
    """
    file = paths.http_token_file
    try:
        descriptor = os.open(file, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW, 0o600)
    except FileExistsError:
        return _read_token(paths)
    except OSError as error:
        raise AnchordError(f"{file} cannot be created: {error.strerror}") from error
    token = secrets.token_urlsafe(_TOKEN_BYTES)
    with os.fdopen(descriptor, "w") as stream:
        stream.write(token)
    return token


def _read_token(paths: Paths) -> str:
    file = paths.http_token_file
    hint = "delete the file: a new token is made at the next start"
    try:
        descriptor = os.open(file, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK)
        with os.fdopen(descriptor, "rb") as stream:
            status = os.fstat(stream.fileno())
            token = stream.read(1_000).decode("ascii", "replace").strip()
    except OSError as error:
        raise AnchordError(f"{file} cannot be read: {error.strerror}", hint) from error
    if status.st_mode & 0o077 or status.st_uid != os.geteuid():
        raise AnchordError(f"{file} can be read by other users", hint)
    if len(token) < _TOKEN_BYTES or not token.isascii() or not token.isprintable():
        raise AnchordError(f"{file} contains no token", hint)
    return token


def with_token(app: App, token: str) -> App:
    """Return an application that answers 401 to requests without the token.

    Args:
        app: An ASGI application.
        token: What the header `Authorization: Bearer` must have, in this case.
    """
    wanted = token.encode()

    async def guarded(scope: Message, receive: Receive, send: Send) -> None:
        if scope["type"] == "http" and not _has_token(scope["headers"], wanted):
            await _refuse(send)
            return
        await app(scope, receive, send)

    return guarded


def _has_token(headers: list[tuple[bytes, bytes]], wanted: bytes) -> bool:
    given = [value for name, value in headers if name == b"authorization"]
    scheme, _, token = given[0].partition(b" ") if len(given) == 1 else (b"", b"", b"")
    return scheme.lower() == b"bearer" and hmac.compare_digest(token.strip(), wanted)


async def _refuse(send: Send) -> None:
    headers = [
        (b"www-authenticate", b"Bearer"),
        (b"content-length", b"0"),
        (b"connection", b"close"),
    ]
    await send({"type": "http.response.start", "status": 401, "headers": headers})
    await send({"type": "http.response.body", "body": b""})


def _make_app(server: MCPServer, port: int) -> App:
    hosts = [f"{name}:{port}" for name in (_ADDRESS, "localhost")]
    security = TransportSecuritySettings(
        enable_dns_rebinding_protection=True,
        allowed_hosts=hosts,
        allowed_origins=[f"http://{host}" for host in hosts],
    )
    return server.streamable_http_app(
        streamable_http_path=_PATH,
        json_response=True,
        stateless_http=True,  # A client goes on when this process was restarted.
        max_request_body_size=_MAX_BODY_BYTES,
        transport_security=security,
    )


def _bound_socket(port: int) -> socket.socket:
    bound = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
    # The port of a server that just ended is free at once.
    bound.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        bound.bind((_ADDRESS, port))
        bound.listen(_MAX_CONNECTIONS)
    except OSError as error:
        bound.close()
        raise AnchordError(
            f"port {port} of {_ADDRESS} cannot be used: {error.strerror}", "choose another --port"
        ) from error
    return bound
