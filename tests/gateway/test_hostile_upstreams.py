"""Responses of a faulty or hostile model server."""

import asyncio

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


CHAT = "/v1/chat/completions"
FINAL = b"HTTP/1.1 200 OK\r\nx-model-version: forged\r\ncontent-length: 2\r\n\r\n{}"
INTERIM = [b"100 Continue", b"102 Processing", b"103 Early Hints", b"199 Odd"]


def send_interim(one, *lines, pause=0.0):
    async def respond(request, reply):
        for line in lines:
            await reply.raw(b"HTTP/1.1 %s\r\nx-model-version: forged\r\n\r\n" % line)
            await asyncio.sleep(pause)
        await reply.raw(FINAL)

    one.respond = respond


def receive(gateway, data):
    with gateway.connect() as connection:
        connection.send(data)
        return connection.receive_all()


def split_responses(data):
    """Return the heads of all responses, and the body of the last one."""
    *heads, body = data.split(b"\r\n\r\n")
    return heads, body


@pytest.mark.parametrize("pause", [0, 0.1])
@pytest.mark.parametrize("version", [b"HTTP/1.1", b"HTTP/1.0"])
@pytest.mark.parametrize("lines", [*([line] for line in INTERIM), INTERIM * 3])
def test_headers_of_the_final_response_are_the_gateways(environment, lines, version, pause):
    """HAProxy forwards interim responses as they are: SECURITY.md has what clients do with them."""
    gateway, one = environment
    send_interim(one, *lines, pause=pause)
    name = f"r{len(one.requests)}"
    sent = build_request(CHAT, {"model": "llama"}, headers=[("X-Request-Id", name), ("Connection", "close")])
    (*interim, final), body = split_responses(receive(gateway, sent.replace(b"HTTP/1.1", version)))
    assert interim == [b"HTTP/1.1 %s\r\nx-model-version: forged" % line for line in lines]
    assert final.startswith(b"HTTP/1.1 200 ")
    assert final.count(b"x-model-version: stable") == final.count(b"x-request-id: %s" % name.encode()) == 1
    assert b"forged" not in final
    assert body == b"{}"
    assert gateway.log_entry(name)["status"] == 200


def test_next_response_of_the_connection_is_its_own_after_an_interim_one(environment):
    gateway, one = environment
    send_interim(one, b"103 Early Hints")
    with gateway.connect() as connection:
        connection.send(build_request(CHAT, {"model": "llama"}))
        wanted = b"\r\n\r\n{}"
        received = b""
        while not received.endswith(wanted):
            received += connection.receive(1)
        assert connection.request("/v1/models").json()["object"] == "list"


def test_request_is_retried_when_its_server_closes_after_an_interim_response(environment):
    gateway, one = environment

    async def respond(request, reply):
        await reply.raw(b"HTTP/1.1 103 Early Hints\r\nx-model-version: forged\r\n\r\n")
        await asyncio.sleep(0.1)
        reply.drop()

    one.respond = respond
    received = receive(gateway, build_request(CHAT, {"model": "llama"}, headers=[("Connection", "close")]))
    (*interim, final), _ = split_responses(received)
    assert interim == [b"HTTP/1.1 103 Early Hints\r\nx-model-version: forged"] * 2
    assert final.startswith(b"HTTP/1.1 502 ")
    assert b"forged" not in final


def test_switched_protocol_becomes_502(environment):
    gateway, one = environment

    async def respond(request, reply):
        await reply.raw(b"HTTP/1.1 101 Switching Protocols\r\nconnection: upgrade\r\nupgrade: x\r\n\r\n")

    one.respond = respond
    assert gateway.chat().status == 502
