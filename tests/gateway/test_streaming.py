"""Streams, disconnecting clients, and shutdown."""

import asyncio
import threading

import pytest

from gateway.kit import minimal_values, start_gateway, start_upstreams, wait_for
from gateway.kit.connection import build_request

CHAT = "/v1/chat/completions"
STREAM = {"model": "llama", "stream": True}


@pytest.fixture(scope="module")
def environment():
    with (
        start_upstreams("one") as (one,),
        start_gateway(minimal_values(one)) as gateway,
    ):
        yield gateway, one


def stream_events(one, events=3):
    """Respond with events. Each waits for its own gate; the headers and the first event are sent at once."""
    gates = [one.gate() for _ in range(events)]
    gates[0].open()

    async def responses(request, reply):
        await reply.start(content_type="text/event-stream")
        for number, gate in enumerate(gates):
            await gate.wait()
            await reply.send(f"data: {number}\n\n".encode())
        await reply.end()

    one.respond = responses
    return gates


def send_stream_request(connection, **options):
    connection.send(build_request(CHAT, STREAM, **options))


def read_event(response):
    return response.readline() + response.readline()


def test_stream_events_are_forwarded_at_once(gateway, one):
    gates = stream_events(one)
    with gateway.connect() as connection:
        send_stream_request(connection)
        response = connection.begin_response()
        assert read_event(response) == b"data: 0\n\n"
        gates[1].open()
        assert read_event(response) == b"data: 1\n\n"
        gates[2].open()
        assert read_event(response) == b"data: 2\n\n"
        assert response.read() == b""


@pytest.mark.parametrize("begun", [False, True])
def test_client_timeout_does_not_apply_to_waiting_clients(one, begun):
    async def late(request, reply):
        if begun:
            await reply.start(content_type="text/event-stream")
            await reply.send(b"data: 0\n\n")
        await asyncio.sleep(4.5)
        if not begun:
            await reply.start(content_type="text/event-stream")
        await reply.send(b"data: 1\n\n")
        await reply.end()

    one.respond = late
    # No other test has this timeout: on a busy computer, a second can pass before a client has sent its request.
    with start_gateway(minimal_values(one, {"timeouts": {"clientSeconds": 3}})) as gateway:
        assert gateway.request(CHAT, STREAM).body.endswith(b"data: 1\n\n")


@pytest.mark.parametrize("begun", [False, True])
def test_request_is_aborted_upstream_when_client_disconnects(gateway, one, begun):
    gate = one.gate()

    async def work(request, reply):
        if begun:
            await reply.start(content_type="text/event-stream")
            await reply.send(b"data: 0\n\n")
        await gate.wait()

    one.respond = work
    before = len(one.requests)
    with gateway.connect() as connection:
        send_stream_request(connection, headers=[("X-Request-Id", f"left-{begun}")])
        wait_for(lambda: len(one.requests) > before, "the request is upstream")
        if begun:
            assert read_event(connection.begin_response()) == b"data: 0\n\n"
    assert one.requests[before].disconnected.wait(300)
    gate.open()
    assert gateway.log_entry(f"left-{begun}")["termination_state"][0] == "C"


def test_stopping_gateway_finishes_streams_and_refuses_new():
    with start_upstreams("one") as (one,), start_gateway(minimal_values(one)) as gateway:
        gates = stream_events(one)
        with gateway.connect() as connection, gateway.connect() as idle:
            assert idle.request("/v1/models").status == 200
            send_stream_request(connection)
            response = connection.begin_response()
            assert read_event(response) == b"data: 0\n\n"
            gateway.stop_gracefully()
            wait_for(lambda: is_refused(gateway), "new connections are refused")
            last = idle.request("/v1/models")
            assert (last.status, last.headers["connection"]) == (200, "close")
            assert gateway.process.is_alive
            for gate in gates[1:]:
                gate.open()
            assert response.read() == b"data: 1\n\ndata: 2\n\n"
        wait_for(lambda: not gateway.process.is_alive, "the process has ended")


def is_refused(gateway):
    try:
        gateway.connect().close()
    except ConnectionRefusedError:
        return True
    return False


def test_stopping_gateway_loses_no_request_under_load():
    with start_upstreams("one") as (one,), start_gateway(minimal_values(one)) as gateway:
        statuses, started = [], threading.Barrier(9)

        def client():
            with gateway.connect() as connection:
                response = connection.request(CHAT, STREAM)
                started.wait(300)
                while response.headers.get("connection") != "close":
                    response = connection.request(CHAT, STREAM)
                    statuses.append(response.status)

        clients = [threading.Thread(target=client) for _ in range(8)]
        for thread in clients:
            thread.start()
        started.wait(300)
        gateway.stop_gracefully()
        for thread in clients:
            thread.join(300)
        assert set(statuses) == {200}
        assert len(statuses) >= 8
        wait_for(lambda: not gateway.process.is_alive, "the process has ended")


def test_stream_is_aborted_after_the_drain_time():
    overlay = {"timeouts": {"serverSeconds": 5}, "drain": {"seconds": 5}}
    with (
        start_upstreams("one") as (one,),
        start_gateway(minimal_values(one, overlay)) as gateway,
        gateway.connect() as connection,
    ):
        ended = one.gate()

        async def for_ever(request, reply):
            await reply.start(content_type="text/event-stream")
            while not request.disconnected.is_set():
                await reply.send(b"data: more\n\n")
                await asyncio.sleep(0.05)
            ended.open()

        one.respond = for_ever
        send_stream_request(connection)
        assert read_event(connection.begin_response()) == b"data: more\n\n"
        gateway.stop_gracefully()
        wait_for(lambda: not gateway.process.is_alive, "the process has ended")
        assert one.requests[0].disconnected.wait(300)
