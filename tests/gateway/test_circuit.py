"""A request that ends its servers is stopped, and other requests pass."""

from itertools import count

import pytest

from gateway.kit import minimal_values, model, start_gateway, start_upstreams, tenant, wait_for
from gateway.kit.connection import build_request

CHAT = "/v1/chat/completions"
POISON = "poison"
NUMBERS = count()


def dies_from_poison(upstream):
    async def respond(request, reply):
        if POISON.encode() in request.body:
            reply.drop()
        else:
            await upstream.echo(request, reply)

    return respond


def fails_with(status):
    async def respond(request, reply):
        await reply.json({"error": "x"}, status)

    return respond


def values(one, two, **more):
    both = ["llama", "qwen"]
    return minimal_values(
        one,
        {
            "tenants": {"acme": {"models": both}, "beta": tenant("beta", both)},
            "models": {name: model(one, two) for name in both},
            **more,
            "circuit": {"enabled": True, **more.get("circuit", {})},
        },
    )


@pytest.fixture(scope="module")
def environment():
    with start_upstreams("one", "two") as (one, two), start_gateway(values(one, two)) as gateway:
        for upstream in (one, two):
            upstream.respond = dies_from_poison(upstream)
        yield gateway, one, two


def poison(text, name="llama"):
    return {"model": name, "messages": [{"role": "user", "content": f"{POISON} {text}"}]}


def count_received(*upstreams):
    return sum(len(upstream.requests) for upstream in upstreams)


def lose(gateway, content, key="acme-key"):
    """Send a request that ends its servers. Return the field of the log: the request is counted when it is logged."""
    name = f"lost-{next(NUMBERS)}"
    assert gateway.request(CHAT, content, key=key, headers=[("X-Request-Id", name)]).status == 502
    return gateway.log_entry(name)["circuit"]


def assert_stopped(gateway, content, seconds, key="acme-key"):
    response = gateway.request(CHAT, content, key=key)
    assert response.status == 503
    assert response.error["code"] == "request_stopped"
    assert 0 < int(response.headers["retry-after"]) <= seconds


def test_request_that_ended_two_servers_is_stopped(environment):
    gateway, one, two = environment
    before = count_received(one, two)
    assert lose(gateway, poison("a")) == "stopped"
    assert count_received(one, two) == before + 2, "one retry"
    assert_stopped(gateway, poison("a"), 60)
    assert count_received(one, two) == before + 2
    assert gateway.chat().status == 200
    assert gateway.chat(text="another").status == 200


def test_request_on_used_connections_is_stopped(environment):
    """The client gets 502, or a closed connection without a response."""
    gateway, one, two = environment
    with gateway.connect() as connection:
        for number in range(4):
            assert connection.request(CHAT, {**poison("b"), "messages": [{"content": f"good {number}"}]}).status == 200
        before = count_received(one, two)
        connection.send(build_request(CHAT, poison("b"), headers=[("X-Request-Id", "used")]))
        connection.receive(1)
    assert count_received(one, two) == before + 2
    assert gateway.log_entry("used")["circuit"] == "stopped"
    assert_stopped(gateway, poison("b"), 60)


def test_large_request_that_ended_two_servers_is_stopped(environment):
    gateway, *_ = environment
    content = poison("c" * 300_000)
    assert lose(gateway, content) == "stopped"
    assert_stopped(gateway, content, 60)


def test_stop_is_for_one_tenant_and_one_model(environment):
    """The same bytes of another tenant reach the servers, and are counted for that tenant."""
    gateway, *_ = environment
    for key, name in (("acme-key", "llama"), ("beta-key", "llama"), ("acme-key", "qwen")):
        assert lose(gateway, poison("d", name), key) == "stopped"
        assert_stopped(gateway, poison("d", name), 60, key)


def test_lost_requests_of_a_tenant_end_no_stop_of_another(environment):
    """The gateway keeps 1000 records."""
    gateway, *_ = environment
    assert lose(gateway, poison("g"), "beta-key") == "stopped"
    for number in range(1001):
        assert gateway.request(CHAT, poison(f"g {number}")).status == 502
    assert lose(gateway, poison("last")) == "stopped"
    assert_stopped(gateway, poison("last"), 60)
    assert_stopped(gateway, poison("g"), 60, "beta-key")


def test_metrics_count_stopped_requests(environment):
    gateway, *_ = environment
    lose(gateway, poison("e"), "beta-key")
    assert_stopped(gateway, poison("e"), 60, "beta-key")
    line = 'rayhelm_gateway_rejections_total{tenant="beta",reason="request_stopped"} '
    wait_for(lambda: line in gateway.request_metrics_port("/metrics/tenants")[1], "the refused request is counted")


def test_stopped_request_passes_after_the_time():
    with (
        start_upstreams("one", "two") as (one, two),
        start_gateway(values(one, two, circuit={"stopSeconds": 1})) as gateway,
    ):
        for upstream in (one, two):
            upstream.respond = dies_from_poison(upstream)
        assert lose(gateway, poison("a")) == "stopped"
        for upstream in (one, two):
            upstream.respond = upstream.echo
        wait_for(lambda: gateway.request(CHAT, poison("a")).status == 200, "the request passes again")


def test_each_further_loss_doubles_the_time(environment):
    """Both requests are sent before one of them is lost."""
    gateway, one, two = environment
    gate, before = one.gate(), count_received(one, two)

    async def respond(request, reply):
        await gate.wait()
        reply.drop()

    for upstream in (one, two):
        upstream.respond = respond
    with gateway.connect() as first, gateway.connect() as second:
        for name, connection in (("first", first), ("second", second)):
            connection.send(build_request(CHAT, poison("f"), headers=[("X-Request-Id", name)]))
        wait_for(lambda: count_received(one, two) == before + 2, "the servers have both requests")
        gate.open()
        assert [gateway.log_entry(name)["circuit"] for name in ("first", "second")] == ["stopped", "stopped"]
    for upstream in (one, two):
        upstream.respond = dies_from_poison(upstream)
    response = gateway.request(CHAT, poison("f"))
    assert 60 < int(response.headers["retry-after"]) <= 120


@pytest.fixture(scope="module")
def counted_environment():
    """Without retries of lost requests, each closes one connection."""
    settings = {"retries": {"emptyResponse": False}, "circuit": {"lostConnections": 2}}
    with start_upstreams("one", "two") as (one, two), start_gateway(values(one, two, **settings)) as gateway:
        yield gateway, one, two


def test_two_lost_requests_stop_a_request_that_is_not_retried(counted_environment):
    gateway, one, two = counted_environment
    for upstream in (one, two):
        upstream.respond = dies_from_poison(upstream)
    before = count_received(one, two)
    assert [lose(gateway, poison("a")) for _ in range(2)] == ["lost", "stopped"]
    assert_stopped(gateway, poison("a"), 60)
    assert count_received(one, two) == before + 2
    assert gateway.chat().status == 200


@pytest.mark.parametrize("status", [200, 400, 500, 502, 503, 504])
def test_responses_of_a_server_do_not_count(counted_environment, status):
    gateway, one, two = counted_environment
    for upstream in (one, two):
        upstream.respond = fails_with(status)
    content = {"model": "llama", "messages": [{"role": "user", "content": f"status {status}"}]}
    for _ in range(4):
        assert gateway.request(CHAT, content).status == status
    assert_not_stopped(counted_environment, content)


def test_response_500_counts_when_the_values_say_so():
    settings = {"circuit": {"serverErrors": True}}
    with start_upstreams("one", "two") as (one, two), start_gateway(values(one, two, **settings)) as gateway:
        for upstream in (one, two):
            upstream.respond = fails_with(500)
        content = {"model": "llama", "messages": [{"role": "user", "content": "error"}]}
        response = gateway.request(CHAT, content, headers=[("X-Request-Id", "error")])
        assert (response.status, response.json()) == (500, {"error": "x"}), "the response of the server"
        assert gateway.log_entry("error")["circuit"] == "stopped"
        assert_stopped(gateway, content, 60)
        for upstream in (one, two):
            upstream.respond = fails_with(503)
        for _ in range(3):
            assert gateway.chat().json() == {"error": "x"}


def test_client_that_disconnects_does_not_count(counted_environment):
    gateway, one, two = counted_environment
    content = {"model": "llama", "messages": [{"role": "user", "content": "wait"}]}
    gate = one.gate()

    async def respond(request, reply):
        await gate.wait()
        reply.drop()

    for upstream in (one, two):
        upstream.respond = respond
    for number in range(3):
        for used in (False, True):
            before = count_received(one, two)
            name = f"left-{number}-{used}"
            with gateway.connect() as connection:
                if used:
                    assert connection.request("/v1/models").status == 200
                connection.send(build_request(CHAT, content, headers=[("X-Request-Id", name)]))
                wait_for(lambda before=before: count_received(one, two) == before + 1, "a server has the request")
            assert gateway.log_entry(name)["circuit"] == "-"
    gate.open()
    assert_not_stopped(counted_environment, content)


def test_failed_connections_do_not_count(counted_environment):
    gateway, one, two = counted_environment
    content = {"model": "llama", "messages": [{"role": "user", "content": "refused"}]}
    for upstream in (one, two):
        upstream.close()
    try:
        for _ in range(4):
            assert gateway.request(CHAT, content).status == 503
    finally:
        for upstream in (one, two):
            upstream.open()
    assert_not_stopped(counted_environment, content)


def assert_not_stopped(environment, content):
    gateway, one, two = environment
    for upstream in (one, two):
        upstream.respond = upstream.echo
    response = wait_for(lambda: answered(gateway.request(CHAT, content)), "a response of a server or of the circuit")
    assert response.status == 200, response.body


def answered(response):
    """The response, unless the endpoints are still down after a failed connection."""
    is_down = response.status == 503 and response.error["code"] == "service_unavailable"
    return None if is_down else response


def test_disabled_circuit_stops_nothing():
    settings = {"circuit": {"enabled": False}}
    with start_upstreams("one", "two") as (one, two), start_gateway(values(one, two, **settings)) as gateway:
        for upstream in (one, two):
            upstream.respond = dies_from_poison(upstream)
        for _ in range(4):
            assert gateway.request(CHAT, poison("a")).status == 502
        assert "circuit" not in gateway.output


def test_memory_of_the_circuit_is_bounded():
    """With room for 20 records, 60 different lost requests leave 20, and the last ones are stopped."""

    def shrink(text):
        assert text.count("MOST_RECORDS, MOST_SECONDS, CLEAN_SECONDS = 1000,") == 1
        return text.replace("CLEAN_SECONDS = 1000,", "CLEAN_SECONDS = 20,")

    with (
        start_upstreams("one", "two") as (one, two),
        start_gateway(values(one, two), edit={"circuit.lua": shrink}) as gateway,
    ):
        for upstream in (one, two):
            upstream.respond = dies_from_poison(upstream)
        for number in range(60):
            assert lose(gateway, poison(number)) == "stopped"
        assert_stopped(gateway, poison(59), 60)
        assert gateway.request(CHAT, poison(0)).status == 502, "the first one is forgotten"
