"""Trace ids and sampling: what the model server gets, and what clients cannot change."""

import re
from collections import Counter

import pytest

from gateway.kit import minimal_values, start_gateway, start_upstreams

TRACE, SPAN = "1" * 32, "2" * 16
VALID = f"00-{TRACE}-{SPAN}-01"
FORM = re.compile(r"00-([0-9a-f]{32})-([0-9a-f]{16})-(0[01])")
HEADERS = [("traceparent", VALID), ("tracestate", "vendor=x"), ("baggage", "user=y"), ("x-rayhelm-new-trace", "0")]


def start(one, **tracing):
    return start_gateway(minimal_values(one, {"tracing": {"enabled": True, "samplingRatio": 1, **tracing}}))


def send(gateway, one, headers=(), request_id="id"):
    """Send a request and return the headers that the upstream received."""
    assert gateway.chat(headers=[("x-request-id", request_id), *headers]).status == 200
    return dict(one.requests[-1].headers)


@pytest.fixture
def one():
    with start_upstreams("one") as (one,):
        yield one


def test_trace_headers_of_clients_are_removed_without_tracing(one):
    with start_gateway(minimal_values(one)) as gateway:
        found = send(gateway, one, HEADERS)
        assert not {"traceparent", "tracestate", "baggage", "x-rayhelm-new-trace"} & set(found)
        assert "trace_id" not in gateway.log_entry("id")


def test_each_request_gets_its_own_trace(one):
    with start(one) as gateway:
        found = [FORM.fullmatch(send(gateway, one, HEADERS, f"id-{number}")["traceparent"]) for number in range(20)]
        assert len({match[1] for match in found}) == 20
        assert not {TRACE, "0" * 32} & {match[1] for match in found}
        assert len({match[2] for match in found}) == 20
        assert gateway.log_entry("id-7")["trace_id"] == found[7][1]
        last = dict(one.requests[-1].headers)
        assert last["x-rayhelm-new-trace"] == "1"
        assert not {"tracestate", "baggage"} & set(last)


@pytest.mark.parametrize(("ratio", "flags"), [(0, "00"), (1, "01")])
def test_gateway_alone_decides_about_sampling(one, ratio, flags):
    with start(one, samplingRatio=ratio, clientTraces="Continue") as gateway:
        for asked in ("00", "01", "ff"):
            found = send(gateway, one, [("traceparent", f"00-{TRACE}-{SPAN}-{asked}")], f"asked-{asked}")
            assert found["traceparent"] == f"00-{TRACE}-{SPAN}-{flags}"
            assert gateway.log_entry(f"asked-{asked}")["sampled"] == flags


def test_sampling_ratio_is_a_share_of_the_requests(one):
    """With 400 requests and a ratio of one half, a count outside of 100 to 300 has a probability below 1e-20."""
    with start(one, samplingRatio=0.5) as gateway, gateway.connect() as connection:
        for number in range(400):
            body = {"model": "llama", "messages": []}
            assert (
                connection.request("/v1/chat/completions", body, headers=[("x-request-id", str(number))]).status == 200
            )
        counts = Counter(FORM.fullmatch(request.header("traceparent"))[3] for request in one.requests)
        assert counts.total() == 400
        assert 100 < counts["01"] < 300


def test_valid_trace_of_a_client_continues(one):
    with start(one, clientTraces="Continue") as gateway:
        found = send(gateway, one, HEADERS)
        assert found["traceparent"] == VALID
        assert not {"x-rayhelm-new-trace", "tracestate", "baggage"} & set(found)
        assert gateway.log_entry("id")["trace_id"] == TRACE


@pytest.mark.parametrize(
    "headers",
    [
        [],
        [("traceparent", VALID), ("traceparent", VALID)],
        [("traceparent", VALID.upper().replace("1" * 32, "A" * 32))],
        [("traceparent", f"01-{TRACE}-{SPAN}-01")],
        [("traceparent", f"00-{'0' * 32}-{SPAN}-01")],
        [("traceparent", f"00-{TRACE}-{'0' * 16}-01")],
        [("traceparent", f"00-{TRACE}-{SPAN}-01-more")],
        [("traceparent", f"00-{TRACE}-{SPAN}")],
        [("traceparent", "00-" + "x" * 5000)],
    ],
)
def test_invalid_trace_of_a_client_is_replaced(one, headers):
    with start(one, clientTraces="Continue") as gateway:
        found = send(gateway, one, headers)
        match = FORM.fullmatch(found["traceparent"])
        assert match[1] != TRACE
        assert found["x-rayhelm-new-trace"] == "1"
