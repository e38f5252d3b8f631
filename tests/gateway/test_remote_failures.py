"""Failures between two clusters: what is lost under load, which is printed, and what a gateway refuses."""

import socket
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

import pytest

from gateway.kit.certificates import Certificate, issue
from gateway.kit.pair import Side, start_pair
from gateway.kit.upstream import ReceivedRequest, Reply
from gateway.kit.wait import wait_for

SPILL_ABOVE = 3


@dataclass
class Load:
    """What clients that repeat a request get."""

    answers: list[tuple[float, int, str]] = field(default_factory=list)
    """Time, status, and name of the upstream; status 0 without a response."""

    def served_by(self, name: str) -> int:
        return sum(by == name for _, _, by in list(self.answers))

    def report(self, title: str, began: float, by: str) -> Counter[int]:
        """Print and return the lost requests by status; print the seconds from `began` to the first answer of `by`."""
        answers = list(self.answers)
        lost = Counter(status for _, status, _ in answers if status != 200)
        first = min(at for at, _, name in answers if name == by and at > began) - began
        print(f"\n{title}: {len(answers)} requests, lost {dict(lost)}, first answer of {by} after {first:.3f} s")
        return lost


@contextmanager
def load(side: Side, clients: int = 2) -> Iterator[Load]:
    """Send requests from `clients` threads, each after the response to its last one."""
    found, stopped = Load(), threading.Event()

    def repeat() -> None:
        while not stopped.is_set():
            try:
                answer = side.gateway.chat()
                name = str(answer.json().get("endpoint", "")) if answer.status == 200 else ""
                found.answers.append((time.monotonic(), answer.status, name))
            except (OSError, ValueError):
                found.answers.append((time.monotonic(), 0, ""))

    threads = [threading.Thread(target=repeat) for _ in range(clients)]
    for thread in threads:
        thread.start()
    try:
        yield found
    finally:
        stopped.set()
        for thread in threads:
            thread.join()


def wait_for_answers(found: Load, name: str, count: int = 5) -> None:
    before = found.served_by(name)
    wait_for(lambda: found.served_by(name) >= before + count, f"answers of {name}")


@contextmanager
def black_hole(port: int) -> Iterator[None]:
    """Accept no connection on the port: the kernel drops connections to a full queue, as a network that is cut does."""
    with socket.socket() as listener:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listener.bind(("127.0.0.1", port))
        listener.listen(0)
        held = [socket.socket() for _ in range(4)]
        for client in held:
            client.setblocking(False)
            client.connect_ex(("127.0.0.1", port))
        try:
            yield
        finally:
            for client in held:
                client.close()


@pytest.fixture(scope="module")
def pair() -> Iterator[tuple[Side, Side]]:
    overlay = {"models": {"llama": {"spillAbove": SPILL_ABOVE}}}
    with start_pair(eu={"overlay": overlay}) as (eu, us):
        eu.wait_until("remote.us", up=True)
        us.wait_until("remote.eu", up=True)
        yield eu, us


def test_killed_cluster_loses_only_requests_in_flight(pair: tuple[Side, Side]) -> None:
    eu, _ = pair
    with load(eu) as found:
        wait_for_answers(found, "eu")
        began = time.monotonic()
        eu.upstream.close()
        wait_for_answers(found, "us")
        eu.upstream.open()
        wait_for_answers(found, "eu")
    lost = found.report("killed", began, "us")
    assert sum(lost.values()) <= 2, lost


def test_cut_cluster_loses_only_requests_in_flight(pair: tuple[Side, Side]) -> None:
    eu, _ = pair
    with load(eu) as found:
        wait_for_answers(found, "eu")
        eu.upstream.close()
        began = time.monotonic()
        with black_hole(eu.upstream.port):
            wait_for_answers(found, "us")
        eu.upstream.open()
        wait_for_answers(found, "eu")
    lost = found.report("cut", began, "us")
    assert sum(lost.values()) <= 2, lost


def test_slow_cluster_spills_over_above_the_bound(pair: tuple[Side, Side]) -> None:
    eu, _ = pair
    eu.wait_until("eu", up=True)
    gate = eu.upstream.gate()

    async def slow(request: ReceivedRequest, reply: Reply) -> None:
        await gate.wait()
        await eu.upstream.echo(request, reply)

    eu.upstream.respond = slow
    before = len(eu.upstream.requests)
    began = time.monotonic()
    with load(eu, clients=SPILL_ABOVE + 3) as found:
        try:
            wait_for_answers(found, "us")
            # Its two threads count at the same time, so one request more can pass.
            assert SPILL_ABOVE <= len(eu.upstream.requests) - before <= SPILL_ABOVE + 1
            assert eu.is_up("eu")
        finally:
            gate.open()
            eu.upstream.respond = eu.upstream.echo
        wait_for_answers(found, "eu")
    assert not found.report("slowed", began, "us")


@pytest.mark.parametrize(
    "certificate",
    [lambda: issue("us.example", ca="unknown"), lambda: issue("us.example", names=("us.example",))],
    ids=["other-ca", "other-name"],
)
def test_gateway_sends_nothing_to_a_wrong_certificate(certificate: Callable[[], Certificate]) -> None:
    with start_pair(us={"certificate": certificate()}) as (eu, us):
        eu.gateway.wait_for_output("Server llama.stable.remote.us/us is DOWN, reason: Layer6 invalid response")
        assert not eu.is_up("remote.us")
        eu.upstream.close()
        assert eu.gateway.chat().status == 503
        assert (us.upstream.requests, us.gateway.log_entries) == ([], [])


def test_gateway_that_names_itself_serves_no_request_twice() -> None:
    """The remote gateway of `eu` has its own address, and its own key is accepted."""
    with start_pair(eu={"to_itself": True}) as (eu, _):
        eu.wait_until("remote.us", up=True)
        assert eu.gateway.chat().endpoint == "eu"
        eu.upstream.close()
        assert eu.gateway.chat().status == 503
        assert len(eu.upstream.requests) == 1
