"""The server on a real socket: any bytes get an answer or a closed connection; no client blocks others."""

from __future__ import annotations

import asyncio
import gc
import json
import os
import socket
import stat
import subprocess
import sys
import threading
import warnings
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from ipc.conftest import Running, Talk, in_loop, turns, until, wait_for_hang_up
from sample_messages import json_of

from anchord.errors import AlreadyRunningError
from anchord.ipc import server as under_test
from anchord.ipc.protocol import (
    INVALID_PARAMS,
    INVALID_REQUEST,
    MAX_REQUEST_BYTES,
    METHOD_NOT_FOUND,
    PARSE_ERROR,
    SERVER_ERROR,
)
from anchord.ipc.server import Server

PING = b'{"jsonrpc":"2.0","id":"last","method":"ping"}'
PONG = {"jsonrpc": "2.0", "id": "last", "result": "pong"}
CLIENTS = 32

json_values = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(2**63), 2**64 - 1)
    | st.text(st.characters(codec="utf-8")),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(st.characters(codec="utf-8")), inner),
    max_leaves=10,
)


async def pong(_: dict[str, Any]) -> object:
    return "pong"


def serves(running: Running) -> bool:
    """Whether a new client is answered."""
    with running.talk() as talk:
        try:
            return bool(talk.ask("ping").get("result") == "pong")
        except (OSError, AttributeError):
            return False


def padded(size: int) -> bytes:
    """Return a request of exactly this many bytes, without its line end."""
    head, tail = b'{"id":1,"method":"ping","jsonrpc":"2.0","more":"', b'"}'
    return head + b"x" * (size - len(head) - len(tail)) + tail


# Requests and answers


@pytest.mark.parametrize("request_id", [0, -1, 10**40, "", "ü\n\0"])
def test_an_answer_has_the_id_of_its_request(server: Running, request_id: int | str) -> None:
    with server.talk() as talk:
        assert talk.ask("ping", id=request_id) == {
            "jsonrpc": "2.0",
            "id": request_id,
            "result": "pong",
        }


def test_requests_sent_at_once_are_answered_in_their_order(server: Running) -> None:
    with server.talk() as talk:
        talk.say(*(json.dumps({"id": n, "method": "ping"}).encode() for n in range(500)))
        assert [talk.hear()["id"] for _ in range(500)] == list(range(500))


def test_a_request_may_come_byte_by_byte(server: Running) -> None:
    with server.talk() as talk:
        for byte in PING + b"\n":
            talk.socket.sendall(bytes([byte]))
        assert talk.hear() == PONG


def test_blank_lines_and_other_line_ends_are_nothing(server: Running) -> None:
    with server.talk() as talk:
        talk.say(b"", b"", b"   ", b"\t\r", b"\r", PING + b"\r")
        talk.end()
        assert talk.rest() == [PONG]


def test_a_client_that_ends_its_side_still_gets_its_answer(server: Running) -> None:
    with server.talk() as talk:
        talk.say(PING)
        talk.end()
        assert talk.rest() == [PONG]


@pytest.mark.parametrize("method", ["echo", "broken", "odd", "there is none"])
def test_a_notification_gets_no_answer_whatever_becomes_of_it(server: Running, method: str) -> None:
    with server.talk() as talk:
        talk.request(method, params={"a": 1})
        talk.say(PING)
        assert talk.hear() == PONG
    assert server.seen == ([{"a": 1}] if method == "echo" else [])


def test_a_subscription_by_notification_gets_progress_but_no_answer(server: Running) -> None:
    with server.talk() as talk:
        talk.request("subscribe")
        assert talk.hear().get("method") == "progress"


def test_an_unknown_method_is_refused_with_those_there_are(server: Running) -> None:
    with server.talk() as talk:
        error = talk.ask("pign")["error"]
    assert error["code"] == METHOD_NOT_FOUND
    assert error["data"]["code"] == "usage"
    assert "ping" in error["data"]["hint"]


def test_a_wrong_parameter_is_refused_by_name(server: Running) -> None:
    with server.talk() as talk:
        error = talk.ask("misused", params={"nmae": 1})["error"]
    assert error["code"] == INVALID_PARAMS
    assert "'nmae'" in error["message"]


def test_a_wrong_parameter_of_a_subscription_is_refused_by_name(server: Running) -> None:
    with server.talk() as talk:
        assert "evry" in talk.ask("subscribe", params={"evry": 1}).get("error", {}).get(
            "message", ""
        )


def test_an_error_of_ours_arrives_with_its_code_and_hint(server: Running) -> None:
    with server.talk() as talk:
        assert talk.ask("full")["error"] == {
            "code": SERVER_ERROR, "message": "no room", "data": {"code": "store", "hint": "make some"},
        }  # fmt: skip


def test_a_method_that_breaks_is_an_error_without_content_and_the_connection_lives_on(
    server: Running,
) -> None:
    with server.talk() as talk:
        error = talk.ask("broken")["error"]
        assert talk.ask("ping")["result"] == "pong"
    assert error["code"] == SERVER_ERROR
    assert "ValueError" in error["message"]
    assert "words of a document" not in json.dumps(error)
    assert error["data"]["hint"]


@pytest.mark.parametrize("method", ["odd", "undecodable"])
def test_a_result_or_error_that_json_cannot_hold_is_still_answered(
    server: Running, method: str
) -> None:
    with server.talk() as talk:
        answer = talk.ask(method)
        assert answer is not None, "the connection was closed without an answer"
        assert answer["id"] == 1
        assert talk.ask("ping")["result"] == "pong"
    assert server.unhandled == []


@pytest.mark.parametrize(
    ("line", "code"),
    [
        (b"hello?", PARSE_ERROR),
        (b'{"id":1,"method":"ping"', PARSE_ERROR),
        (b'{"id":1,"method":"ping"}{"id":2,"method":"ping"}', PARSE_ERROR),
        (b"\0", PARSE_ERROR),
        (b"\xff\xfe\x00", PARSE_ERROR),
        (b'\xef\xbb\xbf{"id":1,"method":"ping"}', PARSE_ERROR),
        (b'{"id":1,"method":"p\xffing"}', PARSE_ERROR),
        (b'{"id":1,"method":"ping","params":{"a":"\xc3("}}', PARSE_ERROR),
        (b'{"id":1,"method":"ping","params":{"a":"\\ud800"}}', PARSE_ERROR),
        (b'{"id":1,"method":"ping","params":{"a":' + b"[" * 200_000, PARSE_ERROR),
        (b'{"id":1,"method":"ping","more":' + b'{"a":' * 100_000, PARSE_ERROR),
        (b"{}", INVALID_REQUEST),
        (b'[{"id":1,"method":"ping"},{"id":2,"method":"ping"}]', INVALID_REQUEST),
        (b"1e400", INVALID_REQUEST),
        (b'{"id":1}', INVALID_REQUEST),
        (b'{"id":1,"method":["ping"]}', INVALID_REQUEST),
        (b'{"id":1.5,"method":"ping"}', INVALID_REQUEST),
        (b'{"id":1' + b"0" * 5000 + b',"method":"ping"}', INVALID_REQUEST),
        (b'{"id":1,"method":"ping","params":[1]}', INVALID_REQUEST),
        (b'{"id":1,"method":"ping","jsonrpc":"1.0"}', INVALID_REQUEST),
    ],
    ids=lambda value: repr(value[:48]) if isinstance(value, bytes) else str(value),
)
def test_a_line_that_is_no_request_gets_one_error_and_the_next_is_answered(
    server: Running, line: bytes, code: int
) -> None:
    with server.talk() as talk:
        talk.say(line, PING)
        refused = talk.hear()
        assert refused.get("error", {}).get("code") == code
        assert refused["id"] is None
        assert refused["error"]["data"]["code"] == "usage"
        assert refused["error"]["data"]["hint"]
        assert talk.hear() == PONG
    assert server.unhandled == []


@given(
    noise=st.binary(max_size=300)
    | st.lists(st.sampled_from([b"{", b"}", b'"', b"\n", b"id", b":1", b"\xff", b"\0"])).map(
        b"".join
    )
)
def test_any_bytes_get_answers_and_the_line_after_them_its_own(
    shared: Running, noise: bytes
) -> None:
    with shared.talk() as talk:
        talk.say(noise, PING)
        talk.end()
        *others, last = talk.rest()
    assert last == PONG
    assert len(others) <= len(noise.split(b"\n"))
    assert all("error" in each and each["jsonrpc"] == "2.0" for each in others)
    assert shared.unhandled == []


@given(
    value=json_values
    | st.fixed_dictionaries({}, optional=dict.fromkeys(("id", "method", "params"), json_values))
)
def test_any_json_gets_at_most_one_answer(shared: Running, value: object) -> None:
    with shared.talk() as talk:
        talk.say(json.dumps(value).encode(), PING)
        talk.end()
        answers = talk.rest()
    assert len(answers) in (1, 2)
    assert answers[-1] == PONG
    assert shared.unhandled == []


@given(params=st.dictionaries(st.text(st.characters(codec="utf-8")), json_values))
def test_parameters_reach_the_method_as_they_were_sent(
    shared: Running, params: dict[str, Any]
) -> None:
    with shared.talk() as talk:
        assert talk.ask("echo", params=params)["result"] == params


# Limits


def test_a_line_of_the_longest_length_is_answered(server: Running) -> None:
    with server.talk() as talk:
        talk.say(padded(MAX_REQUEST_BYTES))
        assert talk.hear()["result"] == "pong"


@pytest.mark.parametrize("ended", [True, False], ids=["with an end", "without an end"])
def test_a_longer_line_is_refused_and_its_sender_dropped_alone(
    server: Running,
    ended: bool,  # noqa: FBT001
) -> None:
    with server.talk() as talk, server.talk() as other:
        talk.socket.sendall(padded(MAX_REQUEST_BYTES + 2) + (b"\n" if ended else b""))
        refused = talk.hear()
        assert refused["error"]["code"] == INVALID_REQUEST
        assert str(MAX_REQUEST_BYTES) in refused["error"]["message"]
        assert talk.hear() is None
        assert other.ask("ping")["result"] == "pong"
    assert server.unhandled == []


def test_an_answer_may_be_longer_than_a_request(server: Running) -> None:
    with server.talk() as talk:
        assert (
            len(talk.ask("big", params={"size": 4 * MAX_REQUEST_BYTES})["result"])
            == 4 * MAX_REQUEST_BYTES
        )


def test_half_a_line_and_then_the_end_is_nothing(server: Running) -> None:
    with server.talk() as talk:
        talk.socket.sendall(PING[:20])
        talk.end()
        assert talk.rest() == []
    assert serves(server)
    assert server.unhandled == []


def test_half_a_line_and_then_silence_is_dropped(
    server: Running, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(under_test, "_HALF_LINE_S", 0.05)
    with server.talk() as talk:
        talk.socket.sendall(PING[:20])
        assert talk.rest() == []
    assert server.unhandled == []


def test_half_a_line_blocks_no_other(server: Running) -> None:
    with server.talk() as slow, server.talk() as other:
        slow.socket.sendall(PING[:20])
        assert other.ask("ping")["result"] == "pong"
        slow.socket.sendall(PING[20:] + b"\n")
        assert slow.hear() == PONG


def test_a_client_that_reads_nothing_blocks_no_other(server: Running) -> None:
    with server.talk() as deaf, server.talk() as other:
        deaf.request("big", id=1, params={"size": 8 * MAX_REQUEST_BYTES})
        deaf.say(*[PING] * 1000)
        assert other.ask("ping")["result"] == "pong"


def test_a_subscriber_that_reads_nothing_blocks_no_other(
    server: Running, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(under_test, "_PROGRESS_S", 0.001)
    server.figures = {"much": "x" * MAX_REQUEST_BYTES}
    with server.talk() as deaf, server.talk() as other:
        deaf.request("subscribe", id=1)
        assert all(other.ask("ping")["result"] == "pong" for _ in range(50))


def test_a_slow_method_blocks_no_other(server: Running) -> None:
    with server.talk() as slow, server.talk() as other:
        slow.request("hold", id=1)
        server.holding.acquire()
        assert other.ask("ping")["result"] == "pong"
        server.release()
        assert slow.hear()["result"] == "held"


def test_a_client_over_the_limit_gets_an_error_and_the_others_go_on(server: Running) -> None:
    talks = [server.talk() for _ in range(CLIENTS)]
    try:
        assert all(talk.ask("ping")["result"] == "pong" for talk in talks)
        with server.talk() as surplus:
            refused = surplus.hear()
            assert "32 clients" in refused["error"]["message"]
            assert refused["error"]["data"]["hint"]
            assert surplus.hear() is None
        assert all(talk.ask("ping")["result"] == "pong" for talk in talks)
        talks.pop().close()
        assert until(lambda: serves(server))
    finally:
        for talk in talks:
            talk.close()


def test_clients_that_are_gone_take_no_places(server: Running) -> None:
    for _ in range(3 * CLIENTS):
        assert until(lambda: serves(server))


def test_clients_that_left_in_the_middle_of_a_call_take_no_places(server: Running) -> None:
    talks = [server.talk() for _ in range(CLIENTS)]
    for talk in talks:
        talk.request("hold", id=1)
        server.holding.acquire()
    for talk in talks:
        talk.close()
    assert until(lambda: serves(server)), (
        "32 calls whose clients are gone lock everybody out until they end"
    )


def test_a_client_that_leaves_before_its_answer_disturbs_nobody(server: Running) -> None:
    with server.talk() as talk:
        talk.request("hold", id=1)
        talk.request("big", id=2, params={"size": MAX_REQUEST_BYTES})
        server.holding.acquire()
    server.release()
    assert serves(server)
    assert server.unhandled == []


def test_a_call_whose_client_has_given_up_is_not_begun(server: Running) -> None:
    """As after SIGSTOP: the client was told that the daemon does not answer."""
    is_given_up = threading.Event()
    server.run_in_loop(is_given_up.wait)
    with server.talk() as talk:
        talk.request("echo", id=1, params={"forget": "all"})
    is_given_up.set()
    assert serves(server)
    assert server.seen == []


def test_many_clients_at_once_get_each_their_own_answers(server: Running) -> None:
    def one(number: int) -> bool:
        with server.talk() as talk:
            return all(
                talk.ask("echo", id=n, params={"me": number})["result"] == {"me": number}
                for n in range(30)
            )

    with ThreadPoolExecutor(CLIENTS) as pool:
        assert all(pool.map(one, range(CLIENTS)))
    assert server.unhandled == []


# Progress


def test_progress_comes_until_the_client_leaves(
    server: Running, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(under_test, "_PROGRESS_S", 0.001)
    with server.talk() as talk:
        assert "result" in talk.ask("subscribe", id="s")
        assert [talk.hear() for _ in range(3)] == [
            {"jsonrpc": "2.0", "method": "progress", "params": json_of(server.figures)}
        ] * 3
        server.figures = {"pending": 0}
        assert until(lambda: bool(talk.hear()["params"] == {"pending": 0}))
    assert serves(server)
    assert server.unhandled == []


def test_progress_that_breaks_is_an_error_as_for_any_method_and_disturbs_nobody(
    server: Running,
) -> None:
    server.figures_fail = True
    with server.talk() as talk, server.talk() as other:
        talk.request("subscribe", id=1)
        talk.end()
        heard = talk.rest()
        assert other.ask("ping")["result"] == "pong"
        assert any("error" in line for line in heard), (
            "the stream ends without a word, as if the daemon had"
        )
    assert server.unhandled == []


# Allowed peers


def test_the_socket_is_for_its_owner_alone(server: Running) -> None:
    seen = server.path.lstat()
    assert stat.S_ISSOCK(seen.st_mode)
    assert seen.st_mode & 0o777 == 0o600


def test_a_peer_of_another_uid_is_dropped_before_it_is_read(
    server: Running, monkeypatch: pytest.MonkeyPatch
) -> None:
    me = os.geteuid()
    monkeypatch.setattr(os, "geteuid", lambda: me + 1)
    with server.talk() as talk:
        wait_for_hang_up(talk.socket)
        assert talk.rest() == []
    monkeypatch.undo()
    assert serves(server)
    assert server.unhandled == []


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can be somebody else")
def test_another_user_is_dropped_even_where_the_file_modes_let_him_in(server: Running) -> None:
    server.path.parent.chmod(0o711)
    server.path.chmod(0o666)
    stranger = (
        "import os, socket, sys\n"
        "os.setgroups([]); os.setgid(65534); os.setuid(65534)\n"
        "s = socket.socket(socket.AF_UNIX); s.settimeout(20); s.connect(sys.argv[1])\n"
        "try: s.sendall(sys.argv[2].encode() + b'\\n')\n"
        "except OSError: pass\n"
        "try: print(s.recv(1000))\n"
        "except ConnectionResetError: print(b'')"
    )
    ran = subprocess.run(
        [sys.executable, "-I", "-S", "-c", stranger, str(server.path), PING.decode()],
        capture_output=True, text=True, check=True,
    )  # fmt: skip
    assert ran.stdout.strip() == "b''"


# Start and end


def test_a_socket_of_one_that_died_is_replaced(path: Path) -> None:
    with socket.socket(socket.AF_UNIX) as dead:
        dead.bind(str(path))
    running = Running(path)
    assert serves(running)
    running.stop()


def test_a_link_in_the_sockets_place_is_replaced_and_not_followed(path: Path) -> None:
    precious = path.parent / "precious"
    precious.write_text("words", "utf-8")
    path.symlink_to(precious)
    running = Running(path)
    assert serves(running)
    running.stop()
    assert precious.read_text("utf-8") == "words"


def test_a_path_too_long_for_a_socket_fails_at_the_start_and_leaves_nothing_open(
    path: Path,
) -> None:
    long = path.parent / ("x" * 120)

    async def story() -> None:
        with pytest.raises(OSError, match="too long"):
            await Server(long, {}, dict).start()

    mask = os.umask(0o077)
    with warnings.catch_warnings(record=True) as warned:
        warnings.simplefilter("always")
        in_loop(story)
        gc.collect()
    assert os.umask(mask) == 0o077
    assert not long.exists()
    assert [str(each.message) for each in warned if each.category is ResourceWarning] == []


def test_starting_leaves_folders_of_other_threads_usable(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The umask is the process's: the writer's thread makes folders of the table at any moment, also at this one."""
    made = path.parent / "made meanwhile"
    bind = socket.socket.bind

    def bind_meanwhile(self: socket.socket, address: str) -> None:
        writer = threading.Thread(target=made.mkdir)
        writer.start()
        writer.join()
        bind(self, address)

    monkeypatch.setattr(socket.socket, "bind", bind_meanwhile)
    Running(path).stop()
    assert made.stat().st_mode & stat.S_IRWXU == stat.S_IRWXU


def test_closing_removes_the_socket_and_drops_the_clients(server: Running) -> None:
    with (
        server.talk() as quiet,
        server.talk() as half,
        server.talk() as busy,
        server.talk() as listening,
    ):
        assert quiet.ask("ping")["result"] == "pong"
        half.socket.sendall(PING[:10])
        listening.ask("subscribe")
        busy.request("hold", id=1)
        server.holding.acquire()
        server.stop()
        assert not server.path.exists()
        assert quiet.hear() is None
        assert half.hear() is None
        assert busy.hear() is None
    assert server.unhandled == []


def test_closing_drops_a_client_that_does_not_read(server: Running) -> None:
    with server.talk() as deaf:
        deaf.request("big", id=1, params={"size": 8 * MAX_REQUEST_BYTES})
        assert len(deaf.socket.recv(10)) == 10
        server.stop()
        deaf.socket.settimeout(0.1)
        while deaf.socket.recv(MAX_REQUEST_BYTES):
            pass
    assert server.unhandled == []


async def closes_at_once(server: Server) -> bool:
    """Close, and return whether a few loop iterations were enough: closing must not wait for a client."""
    closing = asyncio.ensure_future(server.close())
    await turns(100)
    closed = closing.done()
    closing.cancel()
    await asyncio.gather(closing, return_exceptions=True)
    return closed


def test_closing_drops_a_client_whose_request_arrives_just_then(path: Path) -> None:
    """The turn of the loop at which the server closes must not matter: a client's task takes its end at any."""
    outlived = []

    async def story() -> None:
        for waited in range(10):
            server = Server(path, {"ping": pong}, dict)
            await server.start()
            reader, writer = await asyncio.open_unix_connection(path)
            writer.write(PING + b"\n")
            assert json.loads(await reader.readline()) == PONG
            writer.write(PING + b"\n")
            await turns(waited)
            if not await closes_at_once(server):
                outlived.append(waited)
            writer.close()

    in_loop(story)
    assert outlived == [], (
        "the client's task outlived its end: closing waits for the client's next word, up to an hour"
    )


def test_closing_drops_a_client_that_connected_just_then(path: Path) -> None:
    kept = []

    async def story() -> None:
        for waited in range(10):
            server = Server(path, {"ping": pong}, dict)
            await server.start()
            with Talk(path) as talk:
                await turns(waited)
                assert await closes_at_once(server)
                talk.socket.setblocking(False)
                try:
                    talk.socket.recv(1)
                except BlockingIOError:
                    kept.append(waited)
                except ConnectionResetError:
                    pass

    in_loop(story)
    assert kept == [], (
        "the client was neither served nor dropped: it waits for as long as the process lives"
    )


def test_a_server_that_never_started_closes_and_touches_nothing(path: Path) -> None:
    path.write_text("words", "utf-8")
    in_loop(Server(path, {}, dict).close)
    assert path.read_text("utf-8") == "words"


def test_a_socket_that_another_daemon_answers_on_is_left_to_it(path: Path) -> None:
    running = Running(path)
    with pytest.raises(AlreadyRunningError, match="another index answers"):
        in_loop(Server(path, {}, dict).start)
    with Talk(path) as talk:
        assert talk.ask("ping")["result"] == "pong"
    running.stop()


def test_a_path_serves_again_after_a_close(path: Path) -> None:
    for _ in range(3):
        running = Running(path)
        with Talk(path) as talk:
            assert talk.ask("ping")["result"] == "pong"
        running.stop()
        assert not path.exists()
