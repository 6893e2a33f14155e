"""The client against a real server and against other peers: one error with a hint, no other exception."""

from __future__ import annotations

import contextlib
import inspect
import json
import signal
import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import msgspec
import pytest
from ipc.conftest import PATIENCE_S, Running, frozen, wait_for_hang_up
from sample_messages import message

from anchord.errors import (
    AnchordError,
    NotRunningError,
    StoreError,
    TimeoutExpiredError,
    UsageError,
)
from anchord.ipc import patience, requests
from anchord.ipc.client import Client
from anchord.ipc.messages.status import Progress
from anchord.ipc.messages.upkeep import SyncAnswer
from anchord.ipc.protocol import MAX_REQUEST_BYTES

FIGURES = msgspec.json.encode(message(Progress, {"pending": 3}))


@pytest.fixture
def client(server: Running) -> Iterator[Client]:
    """Give a client of a running server."""
    with Client(server.path) as made:
        yield made


@contextmanager
def peer(
    path: Path, *says: bytes, hears: bool = True, heard: list[bytes] | None = None
) -> Iterator[None]:
    """Answer one connection with foreign bytes, then close it."""

    def answer() -> None:
        connection, _ = listener.accept()
        with connection:
            connection.settimeout(PATIENCE_S)
            if hears:
                request = connection.recv(65536)
                if heard is not None:
                    heard.append(request)
            else:
                connection.recv(1, socket.MSG_PEEK)
            for said in says:
                connection.sendall(said)

    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(str(path))
        listener.listen()
        thread = threading.Thread(target=answer)
        thread.start()
        yield
        thread.join(PATIENCE_S)


# Calls


def test_a_call_returns_the_result(client: Client) -> None:
    assert client.call("echo", a=1, b=["ü", None]) == {"a": 1, "b": ["ü", None]}


def test_a_method_can_be_called_by_its_name(client: Client) -> None:
    assert client.ping() == "pong"
    assert client.call("echo", query="words") == {"query": "words"}


def test_what_has_its_default_is_not_sent(path: Path) -> None:
    heard: list[bytes] = []
    answer = b'{"jsonrpc":"2.0","id":1,"result":{"synced":true,"waited_s":0,"away":[],"held":{}}}\n'
    with peer(path, answer, heard=heard), Client(path) as client:
        assert client.sync() == SyncAnswer(synced=True, waited_s=0, away=(), held={})
    assert json.loads(heard[0])["params"] == {}


def test_an_answer_of_another_version_says_what_to_do(path: Path) -> None:
    answer = b'{"jsonrpc":"2.0","id":1,"result":{"synced":"yes"}}\n'
    with peer(path, answer), Client(path) as client:
        with pytest.raises(AnchordError, match="not of this version") as failed:
            client.sync()
        assert failed.value.hint == "`anchord restart` starts the daemon of this version"


def test_a_method_that_the_server_lacks_is_named(client: Client) -> None:
    with pytest.raises(UsageError, match=r"`roots\.add`"):
        client.roots_add("x")


def test_a_method_has_the_docstring_and_the_parameters_of_its_request() -> None:
    assert Client.search.__doc__ == requests.search.__doc__
    assert inspect.signature(Client.search) == inspect.signature(requests.search)


def test_a_misspelt_method_or_parameter_is_an_error(client: Client) -> None:
    with pytest.raises(AttributeError):
        client.serach("words")  # type: ignore[attr-defined]
    with pytest.raises(TypeError):
        client.search("words", limit=3)  # type: ignore[call-arg]


def test_an_answer_of_many_megabytes_arrives(client: Client) -> None:
    assert client.call("big", size=5 * MAX_REQUEST_BYTES) == "x" * (5 * MAX_REQUEST_BYTES)


def test_an_error_is_raised_as_what_it_was_and_the_client_goes_on(client: Client) -> None:
    with pytest.raises(StoreError, match="no room") as failed:
        client.call("full")
    assert failed.value.hint == "make some"
    with pytest.raises(UsageError, match="nmae"):
        client.call("misused", nmae=1)
    with pytest.raises(AnchordError, match="internal error: ValueError"):
        client.call("broken")
    assert client.ping() == "pong"


@pytest.mark.parametrize("text", ["caf\udce9", "\ud800"])
def test_a_parameter_that_json_cannot_hold_is_one_error_and_the_client_goes_on(
    client: Client, text: str
) -> None:
    assert client.ping() == "pong"
    with pytest.raises(AnchordError) as refused:
        client.call("echo", path=text)
    assert refused.value.hint
    assert client.ping() == "pong"


def test_a_call_too_long_gets_an_error(client: Client) -> None:
    with pytest.raises(UsageError, match=str(MAX_REQUEST_BYTES)):
        client.call("echo", text="x" * (8 * MAX_REQUEST_BYTES))


def test_a_client_over_the_limit_gets_an_error(server: Running) -> None:
    talks = [server.talk() for _ in range(32)]
    try:
        for talk in talks:
            assert talk.ask("ping")["result"] == "pong"
        with Client(server.path) as surplus:
            wait_for_hang_up(surplus._socket)
            with pytest.raises(AnchordError, match="32 clients"):
                surplus.ping()
    finally:
        for talk in talks:
            talk.close()


def test_a_call_broken_off_leaves_its_answer_to_no_other(server: Running, client: Client) -> None:
    def interrupt() -> None:
        server.holding.acquire()
        signal.pthread_kill(threading.main_thread().ident or 0, signal.SIGINT)

    thread = threading.Thread(target=interrupt)
    before = signal.signal(
        signal.SIGINT, signal.default_int_handler
    )  # A shell ignores SIGINT in its background jobs.
    thread.start()
    try:
        with pytest.raises(KeyboardInterrupt):
            client.call("hold")
    finally:
        signal.signal(signal.SIGINT, before)
    thread.join()
    server.release()
    with contextlib.suppress(AnchordError):
        assert client.call("echo", a="mine") == {"a": "mine"}


# No server


def assert_not_running(path: Path) -> None:
    with pytest.raises(NotRunningError) as refused:
        Client(path)
    assert "not running" in refused.value.message
    assert "anchord start" in refused.value.hint
    assert refused.value.exit_code == 3


def test_no_socket_is_one_error_with_what_to_do(path: Path) -> None:
    assert_not_running(path)


def test_a_socket_of_one_that_died_is_one_error_with_what_to_do(path: Path) -> None:
    with socket.socket(socket.AF_UNIX) as dead:
        dead.bind(str(path))
    assert_not_running(path)


def test_a_file_or_a_folder_in_the_sockets_place_is_one_error(path: Path) -> None:
    path.write_text("words", "utf-8")
    assert_not_running(path)
    assert_not_running(path.parent)


@pytest.mark.parametrize("name", ["x" * 120, "missing/s", "caf\udce9", "a\0b"])
def test_a_path_that_no_socket_can_have_is_one_error(path: Path, name: str) -> None:
    assert_not_running(path.parent / name)


def test_without_a_path_the_users_own_socket_is_meant(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("ANCHORD_HOME", str(path.parent))
    (path.parent / "run").mkdir()
    running = Running(path.parent / "run" / "anchord.sock")
    with Client() as client:
        assert client.ping() == "pong"
    running.stop()


def test_a_daemon_whose_queue_is_full_for_a_moment_is_waited_for(path: Path) -> None:
    with socket.socket(socket.AF_UNIX) as listener, contextlib.ExitStack() as waiting:
        listener.bind(str(path))
        listener.listen(0)
        with contextlib.suppress(BlockingIOError):
            for _ in range(1000):
                one = waiting.enter_context(socket.socket(socket.AF_UNIX))
                one.setblocking(False)
                one.connect(str(path))
        later = threading.Timer(0.1, lambda: waiting.callback(listener.accept()[0].close))
        later.start()
        try:
            Client(path).close()
        finally:
            later.join()


# The server ends


def test_a_server_that_closes_under_a_call_is_one_error_with_what_to_do(
    server: Running, client: Client
) -> None:
    def end() -> None:
        server.holding.acquire()
        server.stop()

    thread = threading.Thread(target=end)
    thread.start()
    with pytest.raises(NotRunningError, match="ended before it answered") as failed:
        client.call("hold")
    thread.join()
    assert "anchord start" in failed.value.hint


def test_a_call_after_the_servers_end_is_one_error_each_time(
    server: Running, client: Client
) -> None:
    assert client.ping() == "pong"
    server.stop()
    for _ in range(3):
        with pytest.raises(NotRunningError):
            client.ping()


@pytest.mark.parametrize(
    "said",
    [
        b"",
        b'{"jsonrpc":"2.0","id":1,"resu',
        b"HTTP/1.1 400 Bad Request\r\n\r\n",
        b"{}\n",
        b"null\n",
        b'{"jsonrpc":"2.0","id":1,"error":"no"}\n',
    ],
)
def test_half_an_answer_or_none_of_ours_is_one_error_with_a_hint(path: Path, said: bytes) -> None:
    with peer(path, said), Client(path) as client, pytest.raises(AnchordError) as failed:
        client.ping()
    assert failed.value.hint


def test_an_answer_to_another_question_is_not_taken_for_ours(path: Path) -> None:
    stale, mine = (
        b'{"jsonrpc":"2.0","id":99,"result":"stale"}\n',
        b'{"jsonrpc":"2.0","id":1,"result":"mine"}\n',
    )
    with peer(path, stale, mine), Client(path) as client, contextlib.suppress(AnchordError):
        assert client.ping() == "mine"


def test_a_peer_that_answers_and_hangs_up_at_once_is_still_understood(path: Path) -> None:
    refusal = b'{"jsonrpc":"2.0","id":null,"error":{"code":-32000,"message":"full","data":{"code":"store","hint":"wait"}}}\n'
    with (
        peer(path, refusal, hears=False),
        Client(path) as client,
        pytest.raises(StoreError, match="full"),
    ):
        client.ping()


def test_a_closed_client_is_one_error_and_closes_again(server: Running) -> None:
    client = Client(server.path)
    assert client.ping() == "pong"
    client.close()
    client.close()
    with pytest.raises(AnchordError):
        client.ping()


# Progress


def test_progress_is_the_servers_figures_until_it_ends(server: Running, client: Client) -> None:
    heard = []
    for figures in client.progress():
        heard.append(figures)
        if len(heard) == 2:
            server.stop()
    assert [figures.pending for figures in heard] == [3, 3]


def test_progress_ends_where_its_client_is_closed(client: Client) -> None:
    heard = []
    for figures in client.progress():
        heard.append(figures)
        client.close()
    assert [figures.pending for figures in heard] == [3]


def test_a_call_in_the_middle_of_progress_is_answered_or_one_error(client: Client) -> None:
    next(iter(client.progress()))
    with contextlib.suppress(AnchordError):
        assert client.ping() == "pong"


@pytest.mark.parametrize("hears", [True, False], ids=["closed", "reset"])
@pytest.mark.parametrize(
    "half", [b"", b'{"jsonrpc":"2.0","method":"progress","par'], ids=["after a line", "in a line"]
)
def test_progress_ends_where_the_daemon_does(path: Path, half: bytes, hears: bool) -> None:  # noqa: FBT001
    subscribed, line = (
        b'{"jsonrpc":"2.0","id":1,"result":{}}\n',
        b'{"jsonrpc":"2.0","method":"progress","params":' + FIGURES + b"}\n",
    )
    with peer(path, subscribed, line, half, hears=hears), Client(path) as client:
        assert [figures.pending for figures in client.progress()] == [3]


def test_the_time_to_connect_does_not_limit_a_call(
    server: Running, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(patience, "_CONNECT_TIMEOUT_S", 0.05)
    with Client(server.path) as client:
        threading.Timer(0.15, server.release).start()
        assert client.call("hold") == "held"


# The daemon says nothing


@pytest.mark.usefixtures("impatient")
@pytest.mark.parametrize(
    "call",
    [
        requests.status(),
        requests.search("x"),
        requests.sync(),
        requests.sync(0.1),
        requests.index(),
    ],
    ids=lambda call: call.method.name,
)
def test_a_daemon_that_is_frozen_is_one_error_with_what_to_do(
    path: Path, call: requests.Call[object]
) -> None:
    with (
        frozen(path),
        Client(path, find_pid=lambda: 4711) as client,
        pytest.raises(TimeoutExpiredError) as failed,
    ):
        client.ask(call)
    assert failed.value.message == "the daemon (process 4711) does not answer"
    assert "`anchord restart`" in failed.value.hint
    assert "`kill -CONT 4711`" in failed.value.hint
    assert failed.value.exit_code == 1


@pytest.mark.usefixtures("impatient")
def test_a_frozen_daemon_whose_process_is_unknown_is_one_error(path: Path) -> None:
    with frozen(path), Client(path) as client:
        with pytest.raises(TimeoutExpiredError, match=r"^the daemon does not answer$") as failed:
            client.call("echo")
        assert "kill" not in failed.value.hint


@pytest.mark.usefixtures("impatient")
def test_a_request_that_a_frozen_daemon_does_not_read_is_one_error(path: Path) -> None:
    with frozen(path), Client(path) as client, pytest.raises(TimeoutExpiredError):
        client.call("echo", text="x" * (8 * MAX_REQUEST_BYTES))


@pytest.mark.usefixtures("impatient")
def test_progress_of_a_daemon_that_freezes_is_one_error(path: Path) -> None:
    with frozen(path), Client(path) as client, pytest.raises(TimeoutExpiredError):
        next(client.progress())


@pytest.mark.usefixtures("impatient")
def test_a_call_that_takes_long_is_waited_for_while_the_daemon_says_hello(path: Path) -> None:
    with frozen(path, saying_hello=True), Client(path) as client:
        assert client.ping() == "pong"


@pytest.mark.parametrize(
    ("method", "params", "longest_s"),
    [
        ("status", {}, 10),
        ("search", {"query": "x"}, 30),
        ("index", {}, 30),
        ("sync", {}, 30),
        ("sync", {"timeout": 3}, 13),
        ("sync", {"timeout": 0}, 10),
        ("sync", {"timeout": 900}, 30),
        ("sync", {"timeout": "soon"}, 30),
    ],
)
def test_how_long_a_silent_daemon_is_waited_for(
    method: str, params: dict[str, object], longest_s: float
) -> None:
    assert sum(patience.Patience(method, params).next_steps_s()) == pytest.approx(longest_s, abs=1)


def test_a_frozen_daemon_with_a_full_queue_is_one_error(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(patience, "_CONNECT_TIMEOUT_S", 0.05)
    with socket.socket(socket.AF_UNIX) as listener, contextlib.ExitStack() as waiting:
        listener.bind(str(path))
        listener.listen(0)
        with contextlib.suppress(BlockingIOError):
            for _ in range(1000):
                one = waiting.enter_context(socket.socket(socket.AF_UNIX))
                one.setblocking(False)
                one.connect(str(path))
        with pytest.raises(NotRunningError):
            Client(path)
