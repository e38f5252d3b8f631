"""Failures of models that only remote gateways serve: how often a request is sent, and which response clients get."""

import os
import signal
import time
from collections.abc import Iterator

import pytest

from gateway.kit.pair import Side
from gateway.kit.upstream import ReceivedRequest, Reply, Responder
from gateway.kit.values import Values
from gateway.kit.wait import wait_for
from gateway.test_forwarded_models import start_three, stop


@pytest.fixture(scope="module")
def started() -> Iterator[dict[str, Side]]:
    with start_three({"us": {"priority": 1}, "asia": {"priority": 2}}) as sides:
        yield sides


@pytest.fixture
def sides(started: dict[str, Side]) -> Iterator[dict[str, Side]]:
    yield started
    for name, side in started.items():
        side.upstream.restore()
        side.upstream.requests.clear()
        if name != "eu":
            started["eu"].wait_until(f"remote.{name}", up=True, model="qwen")


def fail_with(status: int) -> Responder:
    async def respond(_: ReceivedRequest, reply: Reply) -> None:
        await reply.json({"from": "the application"}, status)

    return respond


def count_received(sides: dict[str, Side]) -> dict[str, int]:
    return {name: len(side.upstream.requests) for name, side in sides.items()}


def drop_all(sides: dict[str, Side]) -> None:
    async def drop(_: ReceivedRequest, reply: Reply) -> None:
        reply.drop()

    for name in ("us", "asia"):
        sides[name].upstream.respond = drop


@pytest.mark.parametrize("status", [401, 403, 404])
def test_refusal_of_a_remote_server_reaches_the_client(sides: dict[str, Side], status: int) -> None:
    """Custom applications respond so, and their requests are not sent twice."""
    sides["us"].upstream.respond = fail_with(status)
    found = sides["eu"].gateway.request("/images/v1/images", {"prompt": "a"})
    assert (found.status, found.json()) == (status, {"from": "the application"})
    assert count_received(sides) == {"eu": 0, "us": 1, "asia": 0}
    assert not [name for name in found.headers if name.startswith("x-rayhelm")]


def test_server_error_is_retried_by_one_gateway_only(sides: dict[str, Side]) -> None:
    """Serve responds 500 to a request that killed its replica: two gateways that retry would send it four times."""
    sides["us"].upstream.respond = fail_with(500)
    found = sides["eu"].gateway.chat("qwen")
    assert (found.status, found.json()) == (500, {"from": "the application"})
    assert count_received(sides) == {"eu": 0, "us": 2, "asia": 0}
    assert not [name for name in found.headers if name.startswith("x-rayhelm")]


def test_response_502_of_a_remote_server_keeps_its_status(sides: dict[str, Side]) -> None:
    async def respond(_: ReceivedRequest, reply: Reply) -> None:
        await reply.raw(b"HTTP/1.1 502 Bad Gateway\r\nx-rayhelm-final: yes\r\ncontent-length: 0\r\n\r\n")

    sides["us"].upstream.respond = respond
    assert sides["eu"].gateway.chat("qwen").status == 502
    assert sides["us"].gateway.chat("qwen").status == 502
    assert count_received(sides) == {"eu": 0, "us": 2, "asia": 0}


def test_lost_request_is_retried_by_one_gateway_only(sides: dict[str, Side]) -> None:
    drop_all(sides)
    assert sides["eu"].gateway.chat("qwen").status == 502
    assert count_received(sides) == {"eu": 0, "us": 2, "asia": 0}


def test_request_that_another_gateway_stopped_is_sent_to_no_third_one() -> None:
    """The circuit of `us` refuses it with 503, which `eu` would retry at `asia`."""
    circuit: Values = {"circuit": {"enabled": True}}
    with start_three({"us": {"priority": 1}, "asia": {"priority": 2}}, circuit, others=circuit) as sides:
        drop_all(sides)
        assert sides["eu"].gateway.chat("qwen").status == 502
        wait_for(lambda: sides["eu"].gateway.chat("qwen").status == 503, "the request is stopped")
        received = count_received(sides)
        found = sides["eu"].gateway.chat("qwen")
        assert (found.status, found.error["code"]) == (503, "request_stopped")
        assert int(found.headers["retry-after"]) > 0
        assert count_received(sides) == received
        assert received["asia"] == 0


def test_own_version_counts_a_backup_server_while_all_are_down(sides: dict[str, Side]) -> None:
    """Without one, MostRequestsForwarded would ignore it like a version that only other clusters serve."""
    eu = sides["eu"]
    for name in ("us", "asia"):
        stop(name, sides)
    eu.upstream.close()
    eu.wait_until("eu", up=False)
    assert {eu.gateway.chat().status for _ in range(3)} == {503}
    assert eu.gateway.sum_metric("haproxy_backend_active_servers", proxy="llama:stable") == 0
    assert eu.gateway.sum_metric("haproxy_backend_backup_servers", proxy="llama:stable") == 1


def test_gateway_without_models_of_its_own_is_ready_while_all_remotes_are_down() -> None:
    """Otherwise the failure of a cluster would take down the gateways of others."""
    without: Values = {"models": {"llama": {"versions": {"stable": {"routePrefix": "", "endpoints": {"eu": None}}}}}}
    with start_three({"us": {"priority": 1}, "asia": {"priority": 2}}, without) as sides:
        eu = sides["eu"].gateway
        assert eu.chat().endpoint == "us"
        for name in ("us", "asia"):
            stop(name, sides)
            sides["eu"].wait_until(f"remote.{name}", up=False)
        assert eu.request_metrics_port("/readyz")[0] == 200
        found = eu.chat()
        assert (found.status, found.error["code"]) == (503, "remote_gateways_unavailable")


def test_remote_without_a_packet_delays_one_request_by_the_time_to_connect(sides: dict[str, Side]) -> None:
    """`timeouts.connectSeconds` is 1 here."""
    process = sides["us"].gateway.process
    os.kill(process.pid, signal.SIGSTOP)
    try:
        began = time.monotonic()
        assert [sides["eu"].gateway.chat("qwen").endpoint for _ in range(4)] == ["asia"] * 4
        assert time.monotonic() - began < 3
    finally:
        os.kill(process.pid, signal.SIGCONT)


def test_retry_of_a_failed_request_is_sent_to_another_remote_gateway(sides: dict[str, Side]) -> None:
    sides["us"].upstream.respond = fail_with(503)
    assert sides["eu"].gateway.chat("qwen").endpoint == "asia"
    assert count_received(sides) == {"eu": 0, "us": 1, "asia": 1}
    sides["asia"].upstream.respond = fail_with(503)
    found = sides["eu"].gateway.chat("qwen")
    assert (found.status, found.error["code"]) == (503, "remote_failed")
    assert count_received(sides) == {"eu": 0, "us": 2, "asia": 2}
