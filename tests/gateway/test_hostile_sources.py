"""Clients without a key that hold connections: clients at other addresses are still served, and so are probes."""

from contextlib import ExitStack, suppress

import pytest

from gateway.kit import Connection, minimal_values, start_gateway, start_upstreams, wait_for
from gateway.kit.connection import build_request

CONNECTIONS = 40
HALF_SENT = b"POST /v1/chat/completions HTTP/1.1\r\nHost: x\r\n"


@pytest.fixture
def one():
    with start_upstreams("one") as (one,):
        yield one


def values(one, **limits):
    """Idle connections are not closed during the test."""
    timeouts = {"headerSeconds": 3600, "keepAliveSeconds": 3600}
    return minimal_values(one, {"limits": {"connections": CONNECTIONS, **limits}, "timeouts": timeouts})


def hold(stack, gateway, source, count, data=b""):
    """Hold connections from an address. The gateway may have closed some of them."""
    for _ in range(count):
        with suppress(ConnectionResetError):
            stack.enter_context(Connection(gateway.port, source=source)).send(data)


def count_refused(gateway):
    return gateway.sum_metric("haproxy_frontend_denied_connections_total", proxy="http")


@pytest.mark.parametrize("data", [b"", HALF_SENT], ids=["idle", "half-sent"])
@pytest.mark.parametrize("addresses", [1, 3])
def test_connections_without_a_key_leave_room_for_other_addresses(one, data, addresses):
    with start_gateway(values(one)) as gateway, ExitStack() as stack:
        for number in range(addresses):
            hold(stack, gateway, f"127.0.0.{2 + number}", 2 * CONNECTIONS, data)
        assert [gateway.chat().status for _ in range(5)] == [200] * 5


def test_connections_above_the_share_of_an_address_are_closed(one):
    with start_gateway(values(one)) as gateway, ExitStack() as stack:
        hold(stack, gateway, "127.0.0.2", CONNECTIONS // 2)
        assert count_refused(gateway) == 0
        hold(stack, gateway, "127.0.0.2", CONNECTIONS // 2)
        wait_for(lambda: count_refused(gateway) == CONNECTIONS // 2, "half of them are closed")


def test_probes_are_answered_while_all_connections_are_in_use(one):
    with start_gateway(values(one, sourceIdlePercent=100)) as gateway, ExitStack() as stack:
        hold(stack, gateway, "127.0.0.2", CONNECTIONS + 10)
        assert gateway.request_metrics_port("/livez") == (200, "ok")
        assert gateway.is_ready
        used = "haproxy_frontend_current_sessions"
        wait_for(lambda: gateway.sum_metric(used, proxy="http") == CONNECTIONS, "all connections are in use")
        assert gateway.request_metrics_port("/livez") == (200, "ok")


def test_requests_in_flight_do_not_count_as_idle(one):
    async def wait(request, reply):
        await gate.wait()
        await one.echo(request, reply)

    gate, one.respond = one.gate(), wait
    wanted = CONNECTIONS * 3 // 4
    with start_gateway(values(one)) as gateway, ExitStack() as stack:
        busy = []
        for number in range(wanted):
            busy.append(stack.enter_context(Connection(gateway.port)))
            busy[-1].send(build_request("/v1/chat/completions", {"model": "llama"}))
            wait_for(lambda sent=number + 1: len(one.requests) == sent, "the request arrived upstream")
        assert count_refused(gateway) == 0
        gate.open()
        assert [connection.read_response().status for connection in busy] == [200] * wanted


def test_connection_is_closed_after_401(one):
    with start_gateway(values(one)) as gateway, gateway.connect() as connection:
        response = connection.request("/v1/models", key="wrong")
        assert (response.status, response.headers["connection"]) == (401, "close")
        assert connection.is_closed
