"""Memory of requests that wait for their response."""

import asyncio
from contextlib import ExitStack

import psutil

from gateway.kit import minimal_values, start_gateway, start_upstreams, wait_for
from gateway.kit.connection import build_request
from gateway.kit.process import find_haproxy_version

MIB = 2**20
WAITING = 200


def test_large_bodies_at_once_take_less_memory_than_the_chart_requires():
    connections, required = 8, 514
    limits = {"bodyBytes": 16 * MIB, "connections": connections, "sourceIdlePercent": 100}
    resources = {"limits": {"cpu": "2", "memory": f"{required}Mi"}}
    request = build_request(
        "/v1/chat/completions", {"model": "llama", "messages": [{"content": "x" * (16 * MIB - 200)}]}
    )
    with start_upstreams("one") as (one,), ExitStack() as stack:
        gateway = stack.enter_context(start_gateway(minimal_values(one, {"limits": limits, "resources": resources})))
        memory, most = psutil.Process(gateway.process.pid).memory_info, 0
        opened = [stack.enter_context(gateway.connect()) for _ in range(connections)]
        for connection in opened:
            connection.send(request[:-10])
        for connection in opened:
            connection.send(request[-10:])
            most = max(most, memory().rss)
        for connection in opened:
            assert connection.read_response("POST").status == 200
            most = max(most, memory().rss)
        assert most < required * MIB


def test_waiting_small_request_takes_little_memory():
    """HAProxy keeps a copy of each request until its response starts; from 3.4.5 on in a small buffer."""
    limit = 0.1 if find_haproxy_version() >= (3, 4, 5) else 1.5
    request = build_request("/v1/chat/completions", {"model": "llama", "messages": [{"content": "x" * 2000}]})
    with start_upstreams("one") as (one,), ExitStack() as stack:

        async def wait(_request, _reply):
            await asyncio.Event().wait()

        one.respond = wait
        gateway = stack.enter_context(start_gateway(minimal_values(one)))
        memory = psutil.Process(gateway.process.pid).memory_info
        before = memory().rss
        for _ in range(WAITING):
            stack.enter_context(gateway.connect()).send(request)
        wait_for(lambda: len(one.requests) == WAITING, "all requests wait")
        assert (memory().rss - before) / WAITING < limit * MIB
