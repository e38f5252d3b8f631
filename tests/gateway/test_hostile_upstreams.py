"""Responses of a faulty or hostile model server."""

import pytest

from gateway.kit import minimal_values, start_gateway, start_upstreams
from gateway.kit.connection import build_request


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


def test_forged_version_of_an_interim_response_is_not_in_the_final_one(environment):
    """HAProxy forwards interim responses as they are."""
    gateway, one = environment

    async def respond(request, reply):
        await reply.raw(b"HTTP/1.1 103 Early Hints\r\nx-model-version: forged\r\n\r\n")
        await reply.raw(b"HTTP/1.1 200 OK\r\nx-model-version: forged\r\ncontent-length: 2\r\n\r\n{}")

    one.respond = respond
    with gateway.connect() as connection:
        connection.send(build_request("/v1/chat/completions", {"model": "llama"}, headers=[("Connection", "close")]))
        interim, final = connection.receive_all().split(b"\r\n\r\n", 1)
    assert interim.startswith(b"HTTP/1.1 103 ")
    assert final.startswith(b"HTTP/1.1 200 ")
    assert b"x-model-version: stable\r\n" in final
    assert b"forged" not in final
