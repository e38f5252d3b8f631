"""Endpoints that refuse connections, or vanish; and requests that kill the servers that receive them."""

import socket
import struct
from contextlib import ExitStack, contextmanager
from pathlib import Path
from types import SimpleNamespace

import pytest

from gateway.kit import model, start_gateway, start_upstreams, tenant, wait_for
from gateway.kit.connection import build_request

CHAT = "/v1/chat/completions"
RARELY = {"intervalSeconds": 60}
"""Health checks do not time out on a busy computer. After lost requests they run within a second."""


def values(*found, **more):
    return {"tenants": {"acme": tenant("acme", ["llama"])}, "models": {"llama": model(*found)}, **more}


@pytest.fixture
def three():
    with start_upstreams("one", "two", "three") as found:
        yield found


async def drop_connection(request, reply):
    reply.drop()


def is_down(gateway, name):
    return gateway.sum_metric("haproxy_server_status", proxy="llama:stable", server=name, state="DOWN") == 1


def send_chats(gateway, count):
    """Return the status of each chat. Their prefixes differ, so they belong to different endpoints."""
    return [gateway.chat(text=f"{number}: hello").status for number in range(count)]


def test_no_request_is_lost_soon_after_two_of_three_endpoints_died(three):
    """With prefix hashing, the requests of a dead endpoint were retried on the other dead one."""
    with start_gateway(values(*three, health=RARELY)) as gateway:
        for upstream in three[:2]:
            upstream.close()

        def are_down():
            send_chats(gateway, 5)
            return is_down(gateway, "one") and is_down(gateway, "two")

        wait_for(are_down, "the dead endpoints get no requests")
        assert send_chats(gateway, 30) == [200] * 30
        for upstream in three[:2]:
            upstream.open()


def test_request_that_kills_its_servers_does_not_take_endpoints_down(three):
    """Health checks still succeed."""
    probes = {upstream.name: 0 for upstream in three}
    for upstream in three:

        async def count(request, reply, name=upstream.name):
            probes[name] += 1
            await reply.json("success")

        async def crash(request, reply, upstream=upstream):
            if b"poison" in request.body:
                reply.drop()
            else:
                await upstream.echo(request, reply)

        upstream.respond, upstream.respond_to_probe = crash, count
    with start_gateway(values(*three, health=RARELY)) as gateway:
        wait_for(lambda: all(probes.values()), "each endpoint was probed")
        for number in range(30):
            assert gateway.chat(text=f"{number}: poison").status == 502
        assert not [name for name in probes if is_down(gateway, name)]
        assert send_chats(gateway, 30) == [200] * 30


def test_service_is_retried_until_it_accepts_a_connection(three):
    """The Service of a single endpoint can have a dead pod among its pods: each connection may go to that one."""
    one = three[0]
    one.close()
    with start_gateway(values(one, health=RARELY)) as gateway:
        assert gateway.chat().status == 503
        retries = "haproxy_backend_retry_warnings_total"
        wait_for(lambda: gateway.sum_metric(retries, proxy="llama.stable.again") == 5, "five more attempts")
        one.open()
        assert gateway.chat().status == 200


def test_request_to_a_single_endpoint_is_sent_twice_at_most(three):
    one = three[0]
    one.respond = drop_connection
    with start_gateway(values(one, health=RARELY)) as gateway:
        assert gateway.chat().status == 502
        assert len(one.requests) == 2
        one.close()
        assert gateway.chat().status == 503
        one.open()
        assert gateway.chat().status == 502
        assert len(one.requests) == 3, "connections are retried, and the request is not"


def read_timers(port):
    """Return kind (2: keepalive) and seconds left of the timer of each connection to a port, from proc(5)."""
    rows = [line.split() for line in Path("/proc/net/tcp").read_text().splitlines()[1:]]
    return {
        (int(row[5].split(":")[0]), int(row[5].split(":")[1], 16) / 100)
        for row in rows
        if row[2].endswith(f":{port:04X}")
    }


def test_waiting_request_has_a_keepalive_timer(three):
    """A test cannot remove a server without a packet; after its node failed, the timer ends the connection."""
    one = three[0]
    gate = one.gate()

    async def wait(request, reply):
        await gate.wait()
        await one.echo(request, reply)

    one.respond = wait
    with start_gateway(values(one, health=RARELY)) as gateway, gateway.connect() as connection:
        connection.send(build_request(CHAT, {"model": "llama"}))
        wait_for(lambda: len(one.requests) == 1, "the request arrived upstream")
        keepalive = wait_for(lambda: {left for kind, left in read_timers(one.port) if kind == 2}, "a keepalive timer")
        assert max(keepalive) <= 10
        gate.open()
        assert connection.read_response().status == 200


@contextmanager
def unresponsive_server():
    """A server that does not answer packets, like a removed pod: its accept queue is full."""
    with socket.socket() as one, ExitStack() as queue:
        one.bind(("127.0.0.1", 0))
        one.listen(0)
        for _ in range(3):
            waits = queue.enter_context(socket.socket())
            waits.setblocking(False)
            waits.connect_ex(one.getsockname())
        wait_for(lambda: count_queued(one) > 0, "the accept queue is full")
        yield SimpleNamespace(name="deaf", port=one.getsockname()[1])


def count_queued(server):
    """Return the number of connections in the accept queue: the field `tcpi_unacked` of Linux's struct tcp_info."""
    return struct.unpack_from("=8xIIIII", server.getsockopt(socket.IPPROTO_TCP, socket.TCP_INFO, 32))[4]


def test_connect_timeouts_end_with_503_on_a_used_connection():
    with (
        unresponsive_server() as one,
        start_gateway(values(one, health=RARELY, timeouts={"connectSeconds": 1})) as gateway,
    ):
        assert gateway.chat().status == 503
        with gateway.connect() as connection:
            assert connection.request("/v1/models").status == 200
            connection.send(build_request(CHAT, {"model": "llama"}))
            assert connection.read_response().status == 503
