"""Limits of tenants and clients: requests, sizes, timeouts."""

import threading
from contextlib import ExitStack

import pytest

from gateway.kit import Connection, endpoint, minimal_values, model, start_gateway, start_upstreams, tenant, wait_for
from gateway.kit.connection import build_request
from gateway.kit.hostile import collect_responses, malformed

BODY, HEADERS, UPLOAD = 65_536, 4096, 100_000


@pytest.fixture(scope="module")
def environment():
    with start_upstreams("one") as (one,):
        whisper = {
            "task": "transcribe",
            "versions": {"stable": {"routePrefix": "/", "endpoints": {"one": endpoint(one)}}},
        }
        both = ["llama", "whisper"]
        values = {
            "tenants": {
                "acme": tenant("acme", both),
                "slow": tenant("slow", both, requestsPerMinute=5),
                "narrow": tenant("narrow", both, concurrency=2),
            },
            "models": {"llama": model(one, prefixCache=UNCHANGED), "whisper": whisper},
            "limits": {"bodyBytes": BODY, "headerBytes": HEADERS, "uploadBytes": UPLOAD, "connections": 200},
        }
        with start_gateway(values) as gateway:
            yield gateway, one


@pytest.fixture(scope="module")
def impatient_environment():
    """Timeouts that a busy computer reaches also with a fast client: only for tests whose client is too slow."""
    with start_upstreams("one") as (one,):
        timeouts = {"headerSeconds": 1, "bodySeconds": 1}
        with start_gateway(minimal_values(one, {"timeouts": timeouts})) as gateway:
            yield gateway, one


UNCHANGED = {"sharedReason": "the upstream gets each body as the client sent it"}


def chat(size):
    """Return a body of exactly `size` bytes."""
    frame = b'{"messages":[{"role":"user","content":"%s"}],"model":"llama"}'
    return frame % (b"x" * (size - len(frame % b"")))


def chunked(body, size):
    pieces = [body[at : at + size] for at in range(0, len(body), size)]
    return b"".join(b"%x\r\n%s\r\n" % (len(piece), piece) for piece in pieces) + b"0\r\n\r\n"


def head(path, *headers):
    return "\r\n".join(
        [f"POST {path} HTTP/1.1", "Host: x", "Authorization: Bearer acme-key", *headers, "", ""]
    ).encode()


CHUNKED = head("/v1/chat/completions", "Transfer-Encoding: chunked")

# -- a tenant's requests ---------------------------------------------------------------------------------------------


def refused(response):
    return response if response.status == 429 else None


def test_requests_above_the_rate_get_429(gateway):
    """A minute can end between two requests, so more than five may pass."""
    statuses = [gateway.chat(key="slow-key").status for _ in range(5)]
    assert statuses == [200] * 5
    response = wait_for(lambda: refused(gateway.chat(key="slow-key")), "a request is refused")
    assert response.status == 429
    assert response.error["code"] == "rate_limit_exceeded"
    assert 1 <= int(response.headers["retry-after"]) <= 60
    assert gateway.chat().status == 200, "another tenant has its own limits"


def hold_requests(one):
    """Keep requests in flight until the gate is opened."""
    gate = one.gate()

    async def wait(request, reply):
        await gate.wait()
        await one.echo(request, reply)

    one.respond = wait
    return gate


def test_requests_above_the_concurrency_get_429(gateway, one):
    gate, before, statuses = hold_requests(one), len(one.requests), []
    running = [
        threading.Thread(target=lambda: statuses.append(gateway.chat(key="narrow-key").status)) for _ in range(2)
    ]
    for thread in running:
        thread.start()
    wait_for(lambda: len(one.requests) == before + 2, "two requests are in flight")
    response = gateway.chat(key="narrow-key")
    assert response.status == 429
    assert response.error["code"] == "concurrency_limit_exceeded"
    assert response.headers["retry-after"] == "1"
    assert gateway.request("/v1/models").status == 200, "another tenant is not limited"
    gate.open()
    for thread in running:
        thread.join(300)
    assert statuses == [200, 200]
    assert wait_for(lambda: gateway.chat(key="narrow-key").status == 200, "a request is accepted again")


def test_open_connection_does_not_count_as_request(gateway):
    """The limit is 2. HAProxy ends a request a moment after its response, so the next one may have to wait."""
    with ExitStack() as stack:
        for number in range(5):
            connection = stack.enter_context(gateway.connect())
            wait_for(
                lambda used=connection: used.request("/v1/models", key="narrow-key").status == 200,
                f"the request on connection {number} is accepted",
            )


# -- sizes -----------------------------------------------------------------------------------------------------------


def test_largest_body_is_forwarded(gateway):
    assert gateway.request("/v1/chat/completions", chat(BODY)).json()["length"] == BODY


@pytest.mark.parametrize("size", [1, 100, 16_384, BODY])
def test_largest_body_is_forwarded_in_chunks_of_any_size(gateway, size):
    assert gateway.send(CHUNKED + chunked(chat(BODY), size)).json()["length"] == BODY


def test_too_large_body_is_refused_before_it_is_read(gateway):
    response = gateway.send(head("/v1/chat/completions", f"Content-Length: {BODY + 1}"))
    assert response.status == 413
    assert response.error["code"] == "body_too_large"


@pytest.mark.parametrize("size", [1, 100, BODY])
@pytest.mark.parametrize("more", [1, 10_000, 1_000_000])
def test_too_large_chunked_body_is_refused(gateway, size, more):
    assert gateway.send(CHUNKED + chunked(chat(BODY + more), size)).status == 413


def test_upload_is_streamed_and_has_its_own_limit(gateway):
    sound = bytes(range(256)) * (UPLOAD // 256)
    assert gateway.request("/whisper/v1/audio/transcriptions", sound).json()["length"] == len(sound)
    assert gateway.request("/whisper/v1/audio/transcriptions", b"x" * (UPLOAD + 1)).error["code"] == "body_too_large"


def test_upload_requires_content_length(gateway):
    upload = head("/whisper/v1/audio/transcriptions", "Transfer-Encoding: chunked")
    response = gateway.send(upload + chunked(b"x" * 100, 10))
    assert response.status == 411
    assert response.error["code"] == "length_required"


def test_two_equal_lengths_leave_no_second_request(gateway, one):
    before = len(one.requests)
    both = head("/v1/chat/completions", "Content-Length: 5", "Transfer-Encoding: chunked")
    with gateway.connect() as connection:
        connection.send(both + chunked(chat(100), 100) + both)
        assert connection.read_response().json()["length"] == 100
        assert connection.is_closed
    (request,) = one.requests[before:]
    assert (request.header("content-length"), request.header("transfer-encoding")) in (("100", None), (None, "chunked"))


@pytest.mark.parametrize("path", ["/v1/chat/completions", "/whisper/v1/audio/transcriptions"])
def test_expect_100_continue_is_answered(gateway, path):
    with gateway.connect() as connection:
        connection.send(head(path, "Content-Length: 100", "Expect: 100-continue"))
        assert connection.receive(25) == b"HTTP/1.1 100 Continue\r\n\r\n"
        connection.send(chat(100))
        assert connection.read_response().json()["length"] == 100


def test_headers_above_the_limit_get_431(gateway):
    assert gateway.chat(headers=[("X-Filler", "x" * (HEADERS // 2))]).status == 200
    response = gateway.chat(headers=[("X-Filler", "x" * HEADERS)])
    assert response.status == 431
    assert response.error["code"] == "headers_too_large"
    response = gateway.request(f"/v1/models?{'x' * HEADERS}")
    assert response.status == 414
    assert response.error["code"] == "url_too_long"


def test_headers_larger_than_a_buffer_end_the_connection(gateway):
    headers = [(f"X-Filler-{number}", "x" * 4000) for number in range(60)]
    responses = collect_responses(gateway, build_request("/v1/chat/completions", {"model": "llama"}, headers=headers))
    assert [response.status for response in responses] in malformed(400, 414, 431)
    assert gateway.chat().status == 200


# -- times -----------------------------------------------------------------------------------------------------------


def test_client_with_slow_headers_gets_408(impatient_environment):
    """HAProxy generates this error: no rule runs before the headers are complete."""
    gateway, _ = impatient_environment
    assert gateway.send(b"POST /v1/chat/completions HTTP/1.1\r\nHost: x\r\n").status == 408


@pytest.mark.parametrize(
    "begun",
    [
        head("/v1/chat/completions", "Content-Length: 100") + b'{"model": "llama", ',
        CHUNKED + b'13\r\n{"model": "llama", \r\n',
        CHUNKED + b"ff\r\n",
    ],
)
def test_client_with_slow_body_gets_408(impatient_environment, begun):
    gateway, one = impatient_environment
    before = len(one.requests)
    assert gateway.send(begun).error["code"] == "request_timeout"
    assert len(one.requests) == before


def test_unused_connection_is_closed_without_response(impatient_environment):
    gateway, _ = impatient_environment
    with Connection(gateway.port) as connection:
        assert connection.is_closed


def test_client_that_disconnects_while_sending_leaves_nothing(gateway, one):
    before = len(one.requests)
    with Connection(gateway.port) as connection:
        connection.send(
            head("/v1/chat/completions", "Content-Length: 100", "X-Request-Id: left") + b'{"model": "llama"}'
        )
    assert gateway.log_entry("left")["status"] in (400, 408)
    assert len(one.requests) == before


def test_header_limit_may_be_larger_than_the_body_limit():
    """The buffer holds both, so headers up to the limit fit into it."""
    limits = {"bodyBytes": 1024, "headerBytes": 65_536}
    with start_upstreams("one") as (one,), start_gateway(minimal_values(one, {"limits": limits})) as gateway:
        assert gateway.chat(headers=[("X-Large", "x" * 60_000)]).status == 200
        assert len(one.requests[-1].header("x-large")) == 60_000
        refused = gateway.chat(headers=[("X-Large", "x" * 65_536)])
        assert (refused.status, refused.error["code"]) == (431, "headers_too_large")
