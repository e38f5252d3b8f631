"""Selection of endpoints, health checks, retries, and forwarded headers."""

import asyncio
import json
import random
import threading
import time
from contextlib import ExitStack
from hashlib import sha256
from http.client import IncompleteRead

import pytest

from gateway.kit import model, start_gateway, start_upstreams, tenant, wait_for
from gateway.kit.connection import build_request
from gateway.kit.dns import NO_SUCH_NAME, REFUSED, SERVER_FAILURE, dns

CHAT = "/v1/chat/completions"
TRANSCRIPTIONS = "/llama/v1/audio/transcriptions"
SELDOM = {"intervalSeconds": 3600}


def values(*found, **more):
    return {
        "tenants": {"acme": tenant("acme", ["llama"])},
        "models": {"llama": model(*found, **more.pop("model", {}))},
        **more,
    }


@pytest.fixture
def three():
    with start_upstreams("one", "two", "three") as found:
        yield found


def is_down(gateway, upstream):
    return gateway.sum_metric("haproxy_server_status", proxy="llama:stable", server=upstream, state="DOWN") == 1


def find_endpoints(gateway, texts):
    """Return the endpoint that responds to each text, one after the other.

    A session that HAProxy still counts can move the next request to another endpoint.
    """
    gateway.wait_until_idle()
    with gateway.connect() as connection:
        return {text: connection.request(CHAT, chat_body(text)).endpoint for text in texts}


def chat_body(text):
    return {"model": "llama", "messages": [{"role": "user", "content": text}]}


TEXTS = [f"{number}: you are a helpful assistant" for number in range(60)]

# -- choice ----------------------------------------------------------------------------------------------------------


def test_chats_with_the_same_prefix_go_to_the_same_endpoint(three):
    with start_gateway(values(*three)) as gateway:
        first = find_endpoints(gateway, TEXTS)
        assert set(first.values()) == {"one", "two", "three"}
        assert find_endpoints(gateway, TEXTS) == first
        assert len({*find_endpoints(gateway, ["x" * 256 + str(number) for number in range(20)]).values()}) == 1
        later = [{"role": "user", "content": TEXTS[0]}, {"role": "assistant", "content": "what else?"}]
        gateway.wait_until_idle()
        assert gateway.request(CHAT, {"messages": later, "model": "llama"}).endpoint == first[TEXTS[0]]
        gateway.wait_until_idle()
        request = {"model": "llama", "prompt": TEXTS[1]}
        with gateway.connect() as connection:
            assert {connection.request("/v1/completions", request).endpoint for _ in range(10)} == {first[TEXTS[1]]}


def test_failed_endpoint_does_not_move_chats_of_others(three):
    with start_gateway(values(*three, health=SELDOM)) as gateway:
        first = find_endpoints(gateway, TEXTS)
        three[2].close()
        second = find_endpoints(gateway, TEXTS)
        three[2].open()
    stayed = {text for text, upstream in first.items() if upstream != "three"}
    assert len(stayed) < len(TEXTS)
    assert {second[text] for text in TEXTS} == {"one", "two"}
    assert all(second[text] == first[text] for text in stayed)


def send_concurrently(gateway, found, size):
    """Send `size` requests with the same prefix, all in flight, and return how many each upstream got."""
    gates = [upstream.gate() for upstream in found]
    for upstream, gate in zip(found, gates, strict=True):

        async def wait(request, reply, upstream=upstream, gate=gate):
            await gate.wait()
            await upstream.echo(request, reply)

        upstream.respond = wait
    threads = [threading.Thread(target=gateway.chat) for _ in range(size)]
    for number, thread in enumerate(threads, 1):
        thread.start()
        wait_for(
            lambda so_far=number: sum(len(upstream.requests) for upstream in found) == so_far, "the request arrived"
        )
    counts = [len(upstream.requests) for upstream in found]
    for gate in gates:
        gate.open()
    for thread in threads:
        thread.join(300)
    return counts


def test_endpoint_above_the_load_limit_is_skipped(three):
    with start_gateway(values(*three[:2])) as gateway:
        counts = sorted(send_concurrently(gateway, three[:2], 20))
    assert sum(counts) == 20
    assert 3 <= counts[0] <= 7, "the limit is 1.5 times the average, plus one request"


def test_least_connections_selects_the_least_loaded_endpoint(three):
    with start_gateway(values(*three, model={"loadBalancing": {"kind": "LeastConnections"}})) as gateway:
        assert send_concurrently(gateway, three, 18) == [6, 6, 6]


# -- health ----------------------------------------------------------------------------------------------------------


async def never_respond(request, reply):
    await asyncio.Event().wait()


async def respond_503(request, reply):
    await reply.json("draining", status=503)


QUICK = {"intervalSeconds": 2, "failures": 2}
"""The interval is also the timeout of a health check: a shorter one marks an endpoint of a busy computer as down."""


def test_unhealthy_endpoint_gets_no_requests(three):
    one, two, _ = three
    two.respond_to_probe = respond_503
    with start_gateway(values(one, two, health=QUICK)) as gateway:
        wait_for(lambda: is_down(gateway, "two"), "endpoint two is down")
        assert set(find_endpoints(gateway, TEXTS).values()) == {"one"}
        two.respond_to_probe = two.respond_healthy
        wait_for(lambda: not is_down(gateway, "two"), "endpoint two is up")
        assert set(find_endpoints(gateway, TEXTS).values()) == {"one", "two"}


def test_all_endpoints_are_used_when_all_health_checks_fail(three):
    """A busy service answers its health check late."""
    one, two, _ = three
    with start_gateway(values(one, two, health=QUICK)) as gateway:
        before = find_endpoints(gateway, TEXTS)
        one.respond_to_probe = two.respond_to_probe = never_respond
        wait_for(lambda: is_down(gateway, "one") and is_down(gateway, "two"), "both health checks have failed")
        assert set(before.values()) == {"one", "two"}
        assert find_endpoints(gateway, TEXTS) == before, "each chat stays at the endpoint that has its prefix"


def test_gateway_starts_before_its_services_exist(three):
    ends = {"one": {"host": None, "service": "chat", "cidrs": None}}
    with dns() as names:
        overlay = {"versions": {"stable": {"endpoints": ends}}}
        resolvers = {"nameservers": [names.address], "validSeconds": 1}
        with start_gateway(values(three[0], model=overlay, resolvers=resolvers)) as gateway:
            response = gateway.chat()
            assert response.status == 503
            assert response.error["code"] == "service_unavailable"
            names.names["chat-serve-svc.models.svc.cluster.local"] = "127.0.0.1"
            assert wait_for(lambda: gateway.chat().status == 200, "the service is found")


@pytest.mark.slow
def test_gateway_keeps_addresses_when_dns_fails(three):
    """By default HAProxy drops an address 30 s after the last valid response."""
    ends = {"one": {"host": None, "service": "chat", "cidrs": None, "port": three[0].port}}
    overlay = {"versions": {"stable": {"endpoints": ends}}}
    with ExitStack() as stack:
        servers = [stack.enter_context(dns()) for _ in range(4)]
        gateways = []
        for server in servers:
            server.names["chat-serve-svc.models.svc.cluster.local"] = "127.0.0.1"
            resolvers = {"nameservers": [server.address], "validSeconds": 1}
            gateways.append(stack.enter_context(start_gateway(values(three[0], model=overlay, resolvers=resolvers))))
        for gateway in gateways:
            assert wait_for(lambda gateway=gateway: gateway.chat().status == 200, "the service is found")
        servers[0].silent = True
        servers[1].failure = REFUSED
        servers[2].failure = SERVER_FAILURE
        servers[3].failure = NO_SUCH_NAME
        time.sleep(45)
        assert [gateway.chat().status for gateway in gateways] == [200] * 4


# -- failures --------------------------------------------------------------------------------------------------------


def test_refused_connection_is_retried_on_another_endpoint(three):
    three[0].close()
    with start_gateway(values(*three[:2], health=SELDOM)) as gateway:
        assert set(find_endpoints(gateway, TEXTS).values()) == {"two"}
    three[0].open()


async def drop_connection(request, reply):
    reply.drop()


async def respond_500(request, reply):
    await reply.json({"error": {"message": "Internal Server Error"}}, status=500)


@pytest.mark.parametrize("lost", [drop_connection, respond_500])
@pytest.mark.parametrize("stream", [False, True])
def test_lost_request_is_retried_on_another_endpoint(three, lost, stream):
    three[0].respond = lost
    with start_gateway(values(*three, health=SELDOM)) as gateway:
        for text in TEXTS:
            assert gateway.request(CHAT, chat_body(text) | {"stream": stream}).endpoint in ("two", "three")
    assert three[0].requests, "some of them were lost"


@pytest.mark.parametrize("size", [1_000, 60_000, 64_000, 65_000, 65_536, 70_000, 100_000, 1_048_576])
def test_retried_request_is_complete(three, size):
    """HAProxy keeps a small or a full copy of a request, by its size."""
    one, two, _ = three
    one.respond = drop_connection
    empty = json.dumps(chat_body("")).encode()
    with start_gateway(values(one, two, health=SELDOM)) as gateway, gateway.connect() as connection:
        for letter in "abcdefghijklmnop":
            body = empty.replace(b'""', b'"%s"' % (letter.encode() * (size - len(empty))))
            response = connection.request(CHAT, body)
            assert response.endpoint == "two"
            assert response.json()["length"] == size
            assert response.json()["sha256"] == sha256(body).hexdigest()
    assert one.requests, "some of them were lost"


def test_lost_request_is_retried_once(three):
    """It may have killed the replicas that received it."""
    for upstream in three:
        upstream.respond = drop_connection
    with start_gateway(values(*three, health=SELDOM)) as gateway:
        assert gateway.chat().error["code"] == "bad_gateway"
    assert sum(len(upstream.requests) for upstream in three) == 2


@pytest.mark.parametrize(("lost", "status"), [(drop_connection, 502), (respond_500, 500)])
def test_lost_request_is_not_retried_without_empty_response(three, lost, status):
    for upstream in three:
        upstream.respond = lost
    with start_gateway(values(*three, health=SELDOM, retries={"emptyResponse": False})) as gateway:
        assert gateway.chat().status == status
    assert sum(len(upstream.requests) for upstream in three) == 1


def test_gateway_passes_on_the_500_of_a_retry(three):
    for upstream in three:
        upstream.respond = respond_500
    with start_gateway(values(*three, health=SELDOM)) as gateway:
        response = gateway.chat()
        assert (response.status, response.json()) == (500, {"error": {"message": "Internal Server Error"}})
    assert sum(len(upstream.requests) for upstream in three) == 2


def test_gateway_does_not_retry_after_the_server_timeout(three):
    for upstream in three:
        upstream.respond = never_respond
    with start_gateway(values(*three, health=SELDOM, timeouts={"serverSeconds": 1})) as gateway:
        assert gateway.chat().status == 504
    assert wait_for(lambda: sum(len(upstream.requests) for upstream in three) == 1, "the request arrived")


@pytest.mark.parametrize("size", [1, 10_000, 200_000, 1_048_576])
def test_upload_up_to_the_body_limit_is_retried(three, size):
    """It arrives in two parts: HAProxy retries only a request that it holds completely."""
    for upstream in three:
        upstream.respond = drop_connection
    audio = {"model": {"task": "transcribe"}}
    with start_gateway(values(*three, health=SELDOM, **audio)) as gateway, gateway.connect() as connection:
        body = random.Random(size).randbytes(size)
        request = build_request(TRANSCRIPTIONS, body)
        connection.send(request[: -size // 2])
        assert not connection.has_data(0.2)
        connection.send(request[-size // 2 :])
        assert connection.read_response().status == 502
    found = [request for upstream in three for request in upstream.requests]
    assert [request.body for request in found] == [body] * 2


def test_upload_that_the_gateway_holds_gets_one_100_continue(three):
    one = three[0]
    audio = {"model": {"task": "transcribe"}}
    with start_gateway(values(one, **audio)) as gateway, gateway.connect() as connection:
        request = build_request(
            TRANSCRIPTIONS, b"x" * 100, headers=[("Expect", "100-continue"), ("Connection", "close")]
        )
        connection.send(request[:-100])
        interim = b"HTTP/1.1 100 Continue\r\n\r\n"
        assert connection.receive(len(interim)).lower() == interim.lower()
        connection.send(request[-100:])
        assert connection.receive_all().startswith(b"HTTP/1.1 200")
    (received,) = one.requests
    assert received.header("expect") is None


def test_larger_upload_is_streamed_and_not_retried(three):
    for upstream in three:
        upstream.respond = drop_connection
    audio = {"model": {"task": "transcribe"}}
    with start_gateway(values(*three, health=SELDOM, **audio)) as gateway, gateway.connect() as connection:
        request = build_request(TRANSCRIPTIONS, b"x" * 1_048_577)
        connection.send(request[:-1])
        wait_for(lambda: sum(len(upstream.requests) for upstream in three) == 1, "the upload has begun")
        connection.send(request[-1:])
        assert connection.read_response().status == 502
    assert sum(len(upstream.requests) for upstream in three) == 1


def test_upload_is_not_held_without_empty_response(three):
    options = {"retries": {"emptyResponse": False}, "model": {"task": "transcribe"}}
    with start_gateway(values(*three, health=SELDOM, **options)) as gateway, gateway.connect() as connection:
        request = build_request(TRANSCRIPTIONS, b"x" * 10_000)
        connection.send(request[:-1])
        wait_for(lambda: sum(len(upstream.requests) for upstream in three) == 1, "the upload has begun")
        connection.send(request[-1:])
        assert connection.read_response().status == 200


def test_request_is_not_retried_after_the_first_byte(three):
    async def break_off(request, reply):
        await reply.start(content_type="text/event-stream")
        await reply.send(b"data: 1\n\n")
        reply.drop()

    for upstream in three:
        upstream.respond = break_off
    with start_gateway(values(*three, health=SELDOM)) as gateway:
        with pytest.raises(IncompleteRead) as caught:
            gateway.chat(headers=[("X-Request-Id", "broken")])
        assert caught.value.partial == b"data: 1\n\n"
        assert sum(len(upstream.requests) for upstream in three) == 1
        assert gateway.log_entry("broken")["termination_state"] == "SD"


def test_status_other_than_500_is_passed_on_without_retry(three):
    async def refuse(request, reply):
        await reply.json({"error": {"message": "too long"}}, status=400)

    three[0].respond = refuse
    with start_gateway(values(three[0], health=SELDOM)) as gateway:
        response = gateway.chat()
        assert (response.status, response.json()) == (400, {"error": {"message": "too long"}})
        three[0].respond = respond_503
        assert gateway.chat().status == 503
        assert len(three[0].requests) == 2, "neither is retried"


def test_upstream_failures_have_openai_error_bodies(three):
    one = three[0]
    with start_gateway(values(one, health=SELDOM)) as gateway:
        one.respond = drop_connection
        found = [gateway.chat()]
        one.respond = never_respond
        with start_gateway(values(one, health=SELDOM, timeouts={"serverSeconds": 1})) as impatient:
            found.append(impatient.chat())
        one.close()
        found.append(gateway.chat())
        one.open()
    assert [response.status for response in found] == [502, 504, 503]
    assert [response.error["code"] for response in found] == ["bad_gateway", "gateway_timeout", "service_unavailable"]


def test_server_and_cors_headers_are_removed(three):
    async def chatter(request, reply):
        await reply.start(content_type="text/plain", server="uvicorn", access_control_allow_origin="*", x_extra="kept")
        await reply.end()

    three[0].respond = chatter
    with start_gateway(values(three[0])) as gateway:
        headers = gateway.chat().headers
        assert headers["x-extra"] == "kept"
        assert "server" not in headers
        assert "access-control-allow-origin" not in headers


def test_gateway_headers_from_clients_are_removed(three):
    spoofed = [
        ("X-Rayhelm-Tenant", "boss"),
        ("X-RAYHELM-ROLE", "admin"),
        ("X-Tenant", "boss"),
        ("Forwarded", "for=1.2.3.4"),
        ("X-Forwarded-For", "1.2.3.4"),
        ("X-Real-IP", "1.2.3.4"),
        ("serve_multiplexed_model_id", "other"),
        ("X_Rayhelm_Tenant", "boss"),
        ("Cookie", "a=b"),
        ("Proxy-Authorization", "Basic x"),
        ("X-Request-Id", "mine-1.2_3"),
        ("Traceparent", "00-1-1-00"),
    ]
    with start_gateway(values(three[0])) as gateway:
        headers = dict(gateway.chat(headers=spoofed).json()["headers"])
    assert headers.pop("x-rayhelm-tenant") == "acme"
    assert headers.pop("x-request-id") == "mine-1.2_3"
    assert set(headers) == {"host", "content-type", "content-length"}


@pytest.mark.parametrize("named", [b"", b"Content-Type: text/plain\r\n"], ids=["untyped", "mistyped"])
def test_json_body_is_forwarded_with_type_json(three, named):
    """Ray answers 500 to JSON of another content type."""
    with start_gateway(values(three[0])) as gateway, gateway.connect() as connection:
        connection.send(build_request(CHAT, chat_body("hi")).replace(b"Content-Type: application/json\r\n", named))
        assert dict(connection.read_response().json()["headers"])["content-type"] == "application/json"


def test_content_encoding_and_expect_are_removed(three):
    """The gateway has read the complete body as it is."""
    with start_gateway(values(three[0])) as gateway, gateway.connect() as connection:
        request = build_request(
            CHAT, chat_body("hi"), headers=[("Content-Encoding", "gzip"), ("Expect", "100-continue")]
        )
        connection.send(
            request.replace(b"HTTP/1.1", b"HTTP/1.0")
        )  # HAProxy itself keeps the second header for HTTP/1.0
        headers = dict(connection.read_response().json()["headers"])
        assert {"content-encoding", "expect"}.isdisjoint(headers)
