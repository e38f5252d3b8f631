"""Bodies that two parsers could read differently. The gateway refuses them, or Python finds the same model in them.

If Python's parser found another model than the gateway, a tenant could use a model that it must not use.
"""

import json
import random

import pytest

from gateway.kit import minimal_values, model, start_gateway, start_upstreams, tenant
from gateway.kit.bodies import REFUSED, SERVED, as_bytes, find_model_in_python, mutate
from gateway.kit.connection import build_request
from gateway.kit.hostile import LAST, assert_unaffected, collect_responses

CHAT = "/v1/chat/completions"
ROUNDS, BATCH = 50, 80


@pytest.fixture(scope="module")
def environment():
    """Each model has its own upstream path, which shows the model that the gateway found. `secret` is not allowed."""
    with start_upstreams("one") as (one,):

        async def shortly(request, reply):
            await reply.raw(b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\n{}")

        one.respond = shortly
        values = {
            "tenants": {"acme": {"models": ["llama", "qwen"]}, "boss": tenant("boss", ["secret"])},
            "models": {
                "llama": {"versions": {"stable": {"routePrefix": "/llama"}}},
                "qwen": model(one, route="/qwen"),
                "secret": model(one, route="/secret"),
            },
        }
        with start_gateway(minimal_values(one, values)) as gateway, assert_unaffected(gateway, megabytes=400):
            yield gateway, one


def selected_model(request):
    """The model that the gateway found."""
    return request.path.split("/")[1]


def assert_consistent(environment, bodies, way):
    """Send all bodies and assert that Python finds the same model in each forwarded one. Return the responses.

    The gateway reads small, large and chunked bodies in different ways."""
    gateway, one = environment
    before = len(one.requests)
    if way == "large":
        bodies = [body + b" " * 4098 for body in bodies]
    *responses, last = collect_responses(
        gateway, b"".join((chunked if way == "chunks" else with_length)(body) for body in bodies) + LAST
    )
    assert last.headers["x-request-id"] == "last"
    passed = [body for body, response in zip(bodies, responses, strict=True) if response.status == 200]
    assert [request.body for request in one.requests[before:]] == passed
    for request in one.requests[before:]:
        assert find_model_in_python(request.body) in (selected_model(request), None), request.body[:2000]
        assert selected_model(request) in ("llama", "qwen")
    for response in responses:
        assert response.status == 200 or 400 <= response.status < 500, response.body
        assert response.status == 200 or response.error["message"]
    return responses


def with_length(body):
    return build_request(CHAT, body)


def chunked(body):
    start = build_request(CHAT, headers=[("Transfer-Encoding", "chunked")], method="POST")
    at = len(body) // 2
    parts = [part for part in (body[:at], body[at:]) if part]
    return start + b"".join(b"%x\r\n%s\r\n" % (len(part), part) for part in parts) + b"0\r\n\r\n"


@pytest.mark.parametrize("body", REFUSED.values(), ids=REFUSED)
@pytest.mark.parametrize("way", ["small", "large", "chunks"])
def test_invalid_body_is_refused(environment, body, way):
    (response,) = assert_consistent(environment, [as_bytes(body)], way)
    assert 400 <= response.status < 500


@pytest.mark.parametrize("body", SERVED.values(), ids=SERVED)
@pytest.mark.parametrize("way", ["small", "large", "chunks"])
def test_gateway_and_python_find_the_same_model(environment, body, way):
    assert find_model_in_python(body) == "llama"
    (response,) = assert_consistent(environment, [as_bytes(body)], way)
    assert response.status == 200


def in_two_widths(encoding):
    """The raw bytes contain the name llama; Python detects the encoding and finds another string."""
    hidden = b'","model":"llama","yy":"'.decode(encoding)
    return ('{"x":"' + hidden + '","model":"secret"}').encode(encoding)


@pytest.mark.parametrize("mark", [b"", b"\xff\xfe", b"\xfe\xff", b"\xef\xbb\xbf", b" ", b" \x00", b"\x00 "])
@pytest.mark.parametrize("encoding", ["utf-16-le", "utf-16-be"])
@pytest.mark.parametrize("way", ["small", "large", "chunks"])
def test_body_is_refused_when_it_is_utf_16_or_utf_32(environment, encoding, mark, way):
    assert json.loads(in_two_widths(encoding))["model"] == "secret"
    (response,) = assert_consistent(environment, [mark + in_two_widths(encoding)], way)
    assert response.error["code"] == "invalid_json"


# -- by chance -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("way", ["small", "large", "chunks"])
def test_random_bodies_are_never_read_in_two_ways(environment, way):
    chance, statuses = random.Random(20), []
    for _ in range(ROUNDS):
        responses = assert_consistent(environment, [mutate(chance) for _ in range(BATCH)], way)
        statuses += [response.status for response in responses]
    assert set(statuses) == {200, 400, 404}
    assert statuses.count(200) > len(statuses) / 10, "enough random bodies must be valid"
