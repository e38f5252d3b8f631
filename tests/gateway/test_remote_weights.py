"""Shares among several remote gateways: four gateways on this computer, one of which forwards to the three others."""

import os
import signal
import threading
from collections import Counter
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from math import sqrt

import pytest

from gateway.kit.certificates import create_client_context, issue, write_ca
from gateway.kit.pair import Side, remote, start_side, tls_files, tls_values
from gateway.kit.process import hash_key, start_gateway
from gateway.kit.upstream import ReceivedRequest, Reply, start_upstreams
from gateway.kit.values import Values, tenant
from gateway.kit.wait import wait_for
from shared.ports import reserve_port

REMOTES = ("us", "asia", "africa")
WEIGHTS = {"us": 60, "asia": 30, "africa": 10}
REQUESTS = 300


@contextmanager
def start_four(
    remotes: Mapping[str, Values], overlays: Mapping[str, Values] | None = None
) -> Iterator[dict[str, Side]]:
    """Start `eu`, which forwards above one request in flight, and the gateways that it forwards to. `remotes` are
    further values of each, and `overlays` values of their own gateways."""
    quick = {"haproxy.cfg": lambda text: text.replace("retries 5", "retries 0")}
    with ExitStack() as stack:
        own, *others = stack.enter_context(start_upstreams("eu", *REMOTES))
        ports = {name: stack.enter_context(reserve_port()) for name in ("eu", *REMOTES)}
        sides = {
            upstream.name: stack.enter_context(
                start_side(
                    upstream.name,
                    "eu",
                    upstream,
                    ports[upstream.name],
                    ports["eu"],
                    overlay=(overlays or {}).get(upstream.name, {}),
                )
            )
            for upstream in others
        }
        values = tls_values(
            own,
            {
                "models": {"llama": {"spillAbove": 1}},
                "remoteGateways": {name: remote(ports[name], **remotes[name]) for name in REMOTES},
            },
        )
        mounted = tls_files(issue("gateway.example"))
        for name in REMOTES:
            mounted |= {
                f"remote/{name}/ca.crt": write_ca(),
                f"remote/{name}/key": f"eu-to-{name}",
                f"keys/@{name}/keys": f"{hash_key(f'{name}-to-eu')} first\n",
            }
        gateway = stack.enter_context(
            start_gateway(values, port=ports["eu"], mounted=mounted, tls=create_client_context(), edit=quick)
        )
        sides["eu"] = Side(gateway, own)
        for name in REMOTES:
            sides["eu"].wait_until(f"remote.{name}", up=True)
        yield sides


@pytest.fixture(scope="module")
def weighted() -> Iterator[dict[str, Side]]:
    with start_four(
        {"us": {"weight": 1, "modelWeights": {"llama": WEIGHTS["us"]}}}
        | {name: {"weight": WEIGHTS[name]} for name in ("asia", "africa")}
    ) as sides:
        yield sides


@pytest.fixture
def sides(weighted: dict[str, Side]) -> Iterator[dict[str, Side]]:
    yield weighted
    for name, side in weighted.items():
        side.upstream.restore()
        weighted["eu"].wait_until("eu" if name == "eu" else f"remote.{name}", up=True)


@contextmanager
def one_in_flight(side: Side) -> Iterator[None]:
    """Hold one request at the upstream of a cluster, so that the next ones are above its bound."""
    gate = side.upstream.gate()

    async def hold(request: ReceivedRequest, reply: Reply) -> None:
        await gate.wait()
        await side.upstream.echo(request, reply)

    side.upstream.respond = hold
    before = len(side.upstream.requests)
    thread = threading.Thread(target=side.gateway.chat)
    thread.start()
    try:
        wait_for(lambda: len(side.upstream.requests) > before, "the request is at the upstream")
        yield
    finally:
        gate.open()
        thread.join()


def send(side: Side, count: int = REQUESTS) -> Counter[str]:
    """Send requests one after another, and count the clusters that answer."""
    answers = [side.gateway.chat() for _ in range(count)]
    # These gateways do not retry, and on a busy computer a health check can be late.
    assert sum(answer.status != 200 for answer in answers) <= count // 50
    return Counter(answer.endpoint for answer in answers if answer.status == 200)


def assert_shares(found: Counter[str], weights: Mapping[str, int]) -> None:
    """Within five standard deviations of the binomial distribution: by chance, one run in a million differs more."""
    assert set(found) == set(weights)
    for name, weight in weights.items():
        share = weight / sum(weights.values())
        expected, deviation = share * found.total(), sqrt(found.total() * share * (1 - share))
        print(f"{name}: {found[name]} of {found.total()}, expected {expected:.0f}")
        assert abs(found[name] - expected) <= 5 * deviation, (name, found)


def test_spilled_requests_follow_the_weights(sides: dict[str, Side]) -> None:
    with one_in_flight(sides["eu"]):
        assert_shares(send(sides["eu"]), WEIGHTS)


def test_requests_follow_the_weights_when_the_cluster_is_down(sides: dict[str, Side]) -> None:
    sides["eu"].upstream.close()
    sides["eu"].wait_until("eu", up=False)
    assert_shares(send(sides["eu"]), WEIGHTS)


@pytest.mark.parametrize("spills", [True, False], ids=["spilled", "down"])
def test_share_of_a_dead_remote_goes_to_the_others_by_weight(sides: dict[str, Side], spills: bool) -> None:
    eu = sides["eu"]
    sides["us"].upstream.close()
    eu.wait_until("remote.us", up=False)
    rest = {name: WEIGHTS[name] for name in ("asia", "africa")}
    if spills:
        with one_in_flight(eu):
            assert_shares(send(eu), rest)
        return
    eu.upstream.close()
    eu.wait_until("eu", up=False)
    assert_shares(send(eu), rest)


def test_no_request_leaves_a_cluster_below_its_bound(sides: dict[str, Side]) -> None:
    eu, found = sides["eu"], Counter[str]()
    for _ in range(20):
        # A client has its answer a moment before the gateway stops counting the request.
        eu.gateway.wait_until_idle()
        found += send(eu, 1)
    assert found == {"eu": 20}


def test_weights_count_only_among_remotes_of_the_same_priority() -> None:
    remotes = {"us": {"weight": 1}, "asia": {"weight": 2}, "africa": {"weight": 256, "priority": 2}}
    with start_four(remotes) as sides:
        eu = sides["eu"]
        with one_in_flight(eu):
            assert set(send(eu, 60)) == {"us", "asia"}
            for name in ("us", "asia"):
                sides[name].upstream.close()
                eu.wait_until(f"remote.{name}", up=False)
            assert send(eu, 20) == {"africa": 20}


@pytest.mark.parametrize(("wrong", "statuses"), [("us", {200, 503}), ("africa", {200})], ids=["first", "last"])
def test_failed_forward_is_retried_at_the_first_remote(wrong: str, statuses: set[int]) -> None:
    """A gateway that does not know the tenant passes its health checks and refuses each request."""
    remotes = {name: {"weight": weight} for name, weight in WEIGHTS.items()}
    unknown = {wrong: {"tenants": {"acme": None, "other": tenant("other", ["llama"])}}}
    with start_four(remotes, unknown) as sides:
        eu = sides["eu"]
        eu.upstream.close()
        eu.wait_until("eu", up=False)
        answers = [eu.gateway.chat() for _ in range(100)]
    assert {answer.status for answer in answers} == statuses
    assert wrong not in {answer.endpoint for answer in answers if answer.status == 200}


def test_requests_go_to_the_others_at_once_when_a_remote_gateway_is_killed() -> None:
    """A failed connection marks it down before a health check does."""
    with start_four({name: {"weight": weight} for name, weight in WEIGHTS.items()}) as sides:
        eu = sides["eu"]
        eu.upstream.close()
        eu.wait_until("eu", up=False)
        os.kill(sides["us"].gateway.process.pid, signal.SIGKILL)
        assert set(send(eu, 40)) <= {"asia", "africa"}
