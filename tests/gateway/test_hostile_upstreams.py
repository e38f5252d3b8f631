"""Responses of a faulty or hostile model server."""

import pytest

from gateway.kit import minimal_values, start_gateway, start_upstreams


@pytest.fixture(scope="module")
def environment():
    with start_upstreams("one") as (one,), start_gateway(minimal_values(one)) as gateway:
        yield gateway, one


@pytest.mark.parametrize("status", ["000", "099", "600", "999"])
def test_status_outside_of_http_becomes_502(environment, status):
    gateway, one = environment

    async def respond(request, reply):
        await reply.raw(f"HTTP/1.1 {status} Odd\r\ncontent-length: 0\r\n\r\n".encode())

    one.respond = respond
    assert gateway.chat().status == 502


def test_request_of_http_1_1_without_host_gets_400(environment):
    gateway, one = environment
    one.respond = one.echo
    head = b"GET /v1/models HTTP/1.%d\r\nAuthorization: Bearer acme-key\r\n\r\n"
    assert gateway.send(head % 1).error["code"] == "host_missing"
    assert gateway.send(head % 0).status == 200, "HTTP/1.0 has no such header"
