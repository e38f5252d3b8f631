"""Requests per minute of a tenant, and `Retry-After` of the refused ones.

The tests replace the window of a minute by a short one, and compare times of HAProxy's own clock only."""

import time

import pytest

from gateway.kit import minimal_values, start_gateway, start_upstreams, tenant

MINUTE, WINDOW, RATE = 60_000, 3_000, 5
PLACE = "option http-restrict-req-hdr-names delete\n"


def shorten(text):
    """Replace the minute in the rules, and add the time of the decision to each response."""
    assert text.count(f"({MINUTE})") > 5
    assert text.count(PLACE) == 1
    text = text.replace(PLACE, f"{PLACE}  http-after-response set-header x-now %[var(txn.now)]\n")
    return text.replace(f"({MINUTE})", f"({WINDOW})")


@pytest.fixture(scope="module")
def gateway():
    names = "burst", "other"
    values = {"tenants": {name: tenant(name, ["llama"], requestsPerMinute=RATE) for name in names}}
    with (
        start_upstreams("one") as (one,),
        start_gateway(minimal_values(one, values), edit={"haproxy.cfg": shorten}) as gateway,
    ):
        yield gateway


def send_until(gateway, key, status):
    """Send requests until one gets this status. Return all responses."""
    responses = [gateway.chat(key=key)]
    while responses[-1].status != status:
        time.sleep(0.02)
        responses.append(gateway.chat(key=key))
    return responses


def time_of(response):
    return int(response.headers["x-now"])


def seconds_of(response):
    """The announced seconds, which are rounded up."""
    assert response.error["code"] == "rate_limit_exceeded"
    return int(response.headers["retry-after"])


def test_retry_after_is_exact(gateway):
    """After a burst a tenant waits for the next window, and then for shorter times within it."""
    send_until(gateway, "burst-key", 429)
    for _ in range(3):
        *refused, passed = send_until(gateway, "burst-key", 200)
        for response in refused:
            least, most = (seconds_of(response) - 1) * 1000, seconds_of(response) * 1000
            assert time_of(passed) >= time_of(response) + least - 1, "a request passed earlier"
            assert time_of(refused[-1]) <= time_of(response) + most, "a request was refused later"


def test_requests_that_are_refused_do_not_count(gateway):
    send_until(gateway, "other-key", 429)
    for _ in range(3 * RATE):
        refused = gateway.chat(key="other-key")
    time.sleep(seconds_of(refused) if refused.status == 429 else 0)
    assert gateway.chat(key="other-key").status == 200
