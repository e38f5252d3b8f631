"""Headers with the limits of a tenant, compared with a calculation of its own.

The tests replace the minute by a short one, and compare times of HAProxy's own clock only."""

import json
import os
import random
import re
import signal
import time
from collections import Counter
from itertools import count

import pytest

from gateway.kit import minimal_values, start_gateway, start_upstreams, tenant, wait_for

MINUTE, WINDOW, RATE, TOKENS = 60_000, 2_000, 7, 1000
PLACE = "option http-restrict-req-hdr-names delete\n"
COUNTED = ',"tokens":"'
CHAT = "/v1/chat/completions"
NAMES = (f"tokens-{number}" for number in count())


def shorten(text):
    """Replace the minute in the rules. Add the time of the decision to each response, that of the count to the log."""
    assert text.count(PLACE) == text.count(f"buckets.lua {MINUTE}") == text.count(COUNTED) == 1
    text = text.replace(COUNTED, f',"counted_at":%[date(0,ms)]{COUNTED}')
    text = text.replace(PLACE, f"{PLACE}  http-after-response set-header x-now %[var(txn.now)]\n")
    text = text.replace(f"buckets.lua {MINUTE}", f"buckets.lua {WINDOW}")
    return text.replace(f"({MINUTE})", f"({WINDOW})")


async def respond(request, reply):
    await reply.json({"usage": {"total_tokens": json.loads(request.body)["tokens"]}})


@pytest.fixture(scope="module")
def environment():
    tenants = {
        "burst": {"requestsPerMinute": RATE},
        "slow": {"requestsPerMinute": 2},
        "counted": {"tokensPerMinute": TOKENS},
    }
    values = {
        "tenants": {name: tenant(name, ["llama"], **more) for name, more in tenants.items()},
        "rateLimitHeaders": {"enabled": True},
    }
    with (
        start_upstreams("one") as (one,),
        start_gateway(minimal_values(one, values), edit={"haproxy.cfg": shorten}) as gateway,
    ):
        yield gateway, one


def limits_of(response, kind="requests"):
    """Return limit, remaining and seconds of the headers."""
    limit, remaining, reset = (
        response.headers[f"x-ratelimit-{part}-{kind}"] for part in ("limit", "remaining", "reset")
    )
    return int(limit), int(remaining), parse_duration(reset)


def parse_duration(text):
    found = re.fullmatch(r"(?:([1-9]\d*)m)?(\d|[1-5]\d)s", text)
    assert found, text
    return int(found[1] or 0) * 60 + int(found[2])


class Model:
    """Counts as the documentation says: a request passes while those of the last minute are fewer than the rate."""

    def __init__(self, rate):
        self.rate, self.counts = rate, Counter()

    def passes(self, now, more=0):
        window, left = now // WINDOW, WINDOW - now % WINDOW
        return (self.counts[window] + more) * WINDOW + self.counts[window - 1] * left < self.rate * WINDOW

    def remaining(self, now):
        return next(more for more in count() if not self.passes(now, more))

    def reset_ms(self, now):
        return next(later for later in count() if self.remaining(now + later) == self.rate)

    def add(self, now):
        self.counts[now // WINDOW] += 1


@pytest.mark.parametrize(("key", "rate"), [("burst", RATE), ("slow", 2)])
def test_request_headers_are_exact(environment, key, rate):
    gateway, _ = environment
    chance, model, statuses = random.Random(7), Model(rate), []
    for _ in range(50):
        response = gateway.request("/v1/models", key=f"{key}-key")
        now = int(response.headers["x-now"])
        assert (response.status == 200) == model.passes(now)
        if response.status == 200:
            model.add(now)
        assert limits_of(response) == (rate, model.remaining(now), -(-model.reset_ms(now) // 1000))
        assert "x-ratelimit-limit-tokens" not in response.headers
        statuses.append(response.status)
        time.sleep(chance.choice([0, 0, 0.05, 0.2, 0.5]))
    assert {200, 429} == set(statuses)


@pytest.mark.parametrize("pause", [0, 0.3], ids=["running", "paused"])
def test_token_headers_are_exact(environment, pause):
    """The gateway takes the tokens of a response at its end. A pause makes the clock of HAProxy 2.8 late."""
    gateway, one = environment
    one.respond = respond
    wait_for(lambda: find_tokens(gateway)[0] == TOKENS, "the bucket is full")
    full_at, statuses = 0, []
    for tokens in [1, 100, 300, 250, 500, 700, 40, 1000, 3000, *[60] * 30]:
        name = next(NAMES)
        body = {"model": "llama", "messages": [], "tokens": tokens}
        response = gateway.request(CHAT, body, key="counted-key", headers=[("X-Request-Id", name)])
        wait = full_at - WINDOW - int(response.headers["x-now"])
        filled = min(WINDOW, max(0, -wait))
        assert limits_of(response, "tokens") == (
            TOKENS,
            filled * TOKENS // WINDOW,
            -(-max(WINDOW - filled, wait + WINDOW) // 1000),
        )
        assert response.status == (429 if wait > 0 else 200)
        if response.status == 200:
            full_at = max(full_at, gateway.log_entry(name)["counted_at"]) + tokens * WINDOW // TOKENS
        statuses.append(response.status)
        pause_process(gateway, pause)
        time.sleep(0.1)
    assert {200, 429} == set(statuses)


def find_tokens(gateway):
    """Return the remaining tokens and the seconds until the bucket is full."""
    return limits_of(gateway.request("/v1/models", key="counted-key"), "tokens")[1:]


def pause_process(gateway, seconds):
    os.kill(gateway.process.pid, signal.SIGSTOP)
    time.sleep(seconds)
    os.kill(gateway.process.pid, signal.SIGCONT)


@pytest.mark.parametrize("tokens", [50_000, 150_000], ids=["partly-used", "overdrawn"])
def test_metric_of_used_tokens_agrees_with_the_headers(environment, tokens):
    """With a token per millisecond nothing is rounded. core.now() does not see a pause that is longer than a timer."""
    _, one = environment
    one.respond = respond
    values = {"tenants": {"acme": {"tokensPerMinute": MINUTE}}, "rateLimitHeaders": {"enabled": True}}
    with start_gateway(minimal_values(one, values)) as gateway:
        name = next(NAMES)
        body = {"model": "llama", "messages": [], "tokens": tokens, "max_tokens": tokens}
        assert gateway.request(CHAT, body, headers=[("X-Request-Id", name)]).status == 200
        assert gateway.log_entry(name)["tokens"] == str(tokens)
        pause_process(gateway, 1.5)
        _, fewest, longest = limits_of(gateway.request("/v1/models"), "tokens")
        used = find_used_tokens(gateway)
        _, most, shortest = limits_of(gateway.request("/v1/models"), "tokens")
    assert fewest <= max(0, MINUTE - used) <= most
    assert shortest <= -(-used // 1000) <= longest


def find_used_tokens(gateway):
    _, text = gateway.request_metrics_port("/metrics/tenants")
    (used,) = re.findall(r'^rayhelm_gateway_tokens_used\{tenant="acme"\} (\d+)$', text, re.MULTILINE)
    return int(used)


def test_refused_tokens_do_not_use_requests(environment):
    gateway, one = environment
    one.respond = respond
    body = {"model": "llama", "messages": [], "tokens": 2500}
    wait_for(lambda: gateway.request(CHAT, body, key="counted-key").status == 200, "the bucket is filled")
    wait_for(lambda: gateway.request(CHAT, body, key="counted-key").status == 429, "the bucket is overdrawn")
    first, second = (gateway.request(CHAT, body, key="counted-key") for _ in range(2))
    assert (first.status, second.status) == (429, 429)
    assert limits_of(second)[1] >= limits_of(first)[1]
    assert limits_of(first, "tokens")[1] == 0
    assert limits_of(first, "tokens")[2] > int(first.headers["retry-after"]), "it is full later than it passes again"


@pytest.mark.parametrize(
    ("body", "status"), [(b"{", 400), ({"model": "unknown"}, 404), ({"model": "llama", "tokens": 1}, 200)]
)
def test_refused_requests_have_the_headers(environment, body, status):
    gateway, one = environment
    one.respond = respond
    wait_for(lambda: gateway.request("/v1/models", key="counted-key").status == 200, "the bucket is filled")
    response = gateway.request(CHAT, body, key="counted-key")
    assert response.status == status
    assert limits_of(response)[0] == 1_000_000


def test_request_without_a_key_has_no_limits(environment):
    response = environment[0].request("/v1/models", key="wrong")
    assert response.status == 401
    assert not [name for name in response.headers if name.startswith("x-ratelimit-")]


def test_headers_of_the_model_server_are_replaced(environment):
    gateway, one = environment

    async def forge(request, reply):
        await reply.start(
            x_ratelimit_limit_requests="9", x_ratelimit_remaining_requests="9", x_ratelimit_reset_requests="9s"
        )
        await reply.end()

    one.respond = forge
    wait_for(lambda: gateway.request("/v1/models", key="counted-key").status == 200, "the bucket is filled")
    assert limits_of(gateway.chat(key="counted-key"))[0] == 1_000_000


def test_gateway_sends_no_limits_when_they_are_off():
    with start_upstreams("one") as (one,), start_gateway(minimal_values(one)) as gateway:
        response = gateway.request("/v1/models")
    assert response.status == 200
    assert not [name for name in response.headers if name.startswith("x-ratelimit-")]
