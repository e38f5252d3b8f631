"""Headers with the tokens of a response: for JSON documents only, from their body, and without a change of the body."""

import asyncio
import json
from itertools import count

import pytest

from gateway.kit import minimal_values, model, start_gateway, start_upstreams, tenant, wait_for
from gateway.kit.connection import build_request

CHAT, EMBEDDING, SPEECH = "/v1/chat/completions", "/v1/embeddings", "/v1/audio/speech"
USAGE = {"prompt_tokens": 20, "prompt_tokens_details": None, "completion_tokens": 3, "total_tokens": 23}
BOUND = 65_536
KEYS = ["acme-key", "counted-key"]
"""Of a tenant without, and of one with `tokensPerMinute`: for the second a filter reads the response as well."""
NAMES = (f"usage-{number}" for number in count())


def build_values(one, **more):
    every = ["llama", "embed", "tts"]
    return minimal_values(
        one,
        {
            "tenants": {
                "acme": {"models": every},
                "counted": tenant("counted", every, tokensPerMinute=1_000_000_000_000),
            },
            "models": {"embed": model(one, task="embed"), "tts": model(one, task="speak")},
            "usageHeaders": {"enabled": True},
            **more,
        },
    )


@pytest.fixture(scope="module")
def environment():
    with start_upstreams("one") as (one,), start_gateway(build_values(one)) as gateway:
        yield gateway, one


def build_chat(usage=USAGE, text="hi", size=0):
    """A response like that of vLLM, of `size` bytes if that is given."""
    message = {"index": 0, "message": {"role": "assistant", "content": text}}
    content = {"id": "chatcmpl-1", "choices": [message], "kv_transfer_params": None, "usage": usage}
    if size:
        message["message"]["content"] += "x" * (size - len(json.dumps(content)))
        assert len(json.dumps(content)) == size
    return json.dumps(content).encode()


def respond(one, *parts, status=200, length=None, pauses=0.0, end=True, **headers):
    """Respond with these parts, with their length unless `length` is another one, or 0: in chunks."""
    headers = {"content_type": "application/json"} | headers
    size = sum(map(len, parts)) if length is None else length
    lines = [f"HTTP/1.1 {status} OK", *(f"{name.replace('_', '-')}: {value}" for name, value in headers.items())]
    head = "\r\n".join([*lines, f"content-length: {size}", "", ""]).encode()

    async def responses(request, reply):
        if size:
            await reply.raw(head)
        else:
            await reply.start(status, **headers)
        for part in parts:
            await (reply.raw if size else reply.send)(part)
            await asyncio.sleep(pauses)
        if not end:
            reply.drop()
        elif not size:
            await reply.end()

    one.respond = responses


def usage_of(response):
    return {name: value for name, value in response.headers.items() if name.startswith("x-usage-")}


def expect(prompt, completion, total):
    found = {"prompt": prompt, "completion": completion, "total": total}
    return {f"x-usage-{name}-tokens": str(value) for name, value in found.items() if value is not None}


WHOLE = expect(20, 3, 23)


@pytest.mark.parametrize("key", KEYS)
@pytest.mark.parametrize("size", [0, 1000, BOUND])
def test_headers_have_the_tokens_of_the_body(gateway, one, key, size):
    body = build_chat(size=size)
    respond(one, body)
    response = gateway.chat(key=key)
    assert usage_of(response) == WHOLE
    assert response.body == body


@pytest.mark.parametrize("key", KEYS)
@pytest.mark.parametrize("size", [1, 7, 100])
def test_body_in_parts_has_the_headers(gateway, one, key, size):
    body = build_chat()
    respond(one, *(body[at : at + size] for at in range(0, len(body), size)), pauses=0.001)
    response = gateway.chat(key=key)
    assert usage_of(response) == WHOLE
    assert response.body == body


@pytest.mark.parametrize("space", [b"\n", b"\r\n", b" \t\r\n" * 100], ids=["line", "CRLF", "more"])
def test_body_that_ends_in_white_space_has_the_headers(gateway, one, space):
    body = build_chat() + space
    respond(one, body)
    response = gateway.chat()
    assert usage_of(response) == WHOLE
    assert response.body == body


def test_embeddings_have_the_headers(gateway, one):
    respond(one, json.dumps({"data": [], "usage": {"prompt_tokens": 7, "total_tokens": 7}}).encode())
    response = gateway.request(EMBEDDING, {"model": "embed", "input": "hi"})
    assert usage_of(response) == expect(7, None, 7)


@pytest.mark.parametrize("key", KEYS)
@pytest.mark.parametrize("size", [BOUND + 1, 300_000, 1_500_000, 8_000_000])
def test_body_above_the_bound_passes_without_headers(gateway, one, key, size):
    body = build_chat(size=size)
    respond(one, body)
    response = gateway.chat(key=key)
    assert not usage_of(response)
    assert response.body == body


@pytest.mark.parametrize("key", KEYS)
@pytest.mark.parametrize("at", [1, 100, -3])
def test_slow_body_arrives_complete(gateway, one, key, at):
    body = build_chat()
    respond(one, body[:at], body[at:], pauses=1.5)
    response = gateway.chat(key=key)
    assert usage_of(response) == WHOLE
    assert response.body == body


@pytest.mark.parametrize("key", KEYS)
def test_request_ends_when_the_client_leaves_during_a_slow_body(gateway, one, key):
    body, gate, name = build_chat(), one.gate(), next(NAMES)

    async def responses(request, reply):
        await reply.raw(b"HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: 9999\r\n\r\n" + body)
        await gate.wait()

    one.respond = responses
    before = len(one.requests)
    with gateway.connect() as connection:
        connection.send(build_request(CHAT, {"model": "llama"}, key=key, headers=[("x-request-id", name)]))
        wait_for(lambda: len(one.requests) > before, "the request arrived")
        connection.reset()
    gateway.log_entry(name)
    assert one.requests[-1].disconnected.wait(300)
    gate.open()


def test_body_that_stops_gets_504_after_the_server_timeout(one):
    with start_gateway(build_values(one, timeouts={"serverSeconds": 1}, drain={"seconds": 10})) as gateway:
        body = build_chat()
        gate = one.gate()

        async def responses(request, reply):
            await reply.raw(b"HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: 9999\r\n\r\n" + body)
            await gate.wait()

        one.respond = responses
        assert gateway.chat().status == 504
        gate.open()


@pytest.mark.parametrize("key", KEYS)
def test_stream_has_no_headers_and_is_not_delayed(gateway, one, key):
    event, gate = b'data: {"usage": {"total_tokens": 23}}\n\n', one.gate()

    async def responses(request, reply):
        await reply.start(content_type="text/event-stream")
        await reply.send(event)
        await gate.wait()
        await reply.send(event)
        await reply.end()

    one.respond = responses
    with gateway.connect() as connection:
        connection.send(build_request(CHAT, {"model": "llama", "messages": [], "stream": True}, key=key))
        response = connection.begin_response("POST")
        assert response.read(len(event)) == event
        gate.open()
        assert response.read() == event
    assert not [name for name, _ in response.getheaders() if name.startswith("x-usage-")]


OTHERS = {
    "chunks": {"length": 0},
    "another type": {"content_type": "text/plain"},
    "lines of JSON": {"content_type": "application/jsonl"},
    "compressed": {"content_encoding": "gzip"},
    "an error": {"status": 400},
}


@pytest.mark.parametrize("more", OTHERS.values(), ids=OTHERS)
def test_other_responses_have_no_headers(gateway, one, more):
    body = build_chat()
    respond(one, body, **more)
    response = gateway.chat()
    assert not usage_of(response)
    assert response.body == body


def test_operation_without_usage_has_no_headers(gateway, one):
    respond(one, build_chat())
    assert not usage_of(gateway.request(SPEECH, {"model": "tts", "input": "hi"}))


BODIES = {
    "no usage": b'{"choices": []}',
    "null": b'{"usage": null}',
    "negative": b'{"usage": {"total_tokens": -1, "prompt_tokens": 5}}',
    "in another object": b'{"choices": [{"usage": {"total_tokens": 5}}]}',
    "a list": b'[{"usage": {"total_tokens": 5}}]',
    "in a text": rb'{"choices": [{"text": "\"usage\": {\"total_tokens\": 5}"}]}',
    "no JSON": b'"usage": {"total_tokens": 5}',
    "zero bytes": b"\0" * 100,
    "open": b'{"usage": {"total_tokens": 5',
    "open, and white space": b'{"usage": {"total_tokens": 5 \n',
    "white space": b" \n" * 50,
}


@pytest.mark.parametrize("body", BODIES.values(), ids=BODIES)
def test_body_without_a_count_has_no_headers(gateway, one, body):
    respond(one, body)
    response = gateway.chat()
    assert not usage_of(response)
    assert response.body == body


def test_generated_text_cannot_set_the_headers(gateway, one):
    respond(one, build_chat(text='"usage": {"total_tokens": 5}, \\"usage\\": {"total_tokens": 5}}'))
    assert usage_of(gateway.chat()) == WHOLE


FORGED = {"x_usage_total_tokens": "1", "x_usage_prompt_tokens": "1", "X_Usage_Cached_Tokens": "1"}


@pytest.mark.parametrize("body", [build_chat(), b"{}"], ids=["usage", "none"])
def test_headers_of_the_model_server_are_removed(gateway, one, body):
    respond(one, body, **FORGED)
    assert usage_of(gateway.chat()) == (WHOLE if b"usage" in body else {})


def test_headers_of_the_model_server_are_removed_while_off(one):
    with start_gateway(minimal_values(one)) as gateway:
        assert "wait-for-body" not in (gateway.folder / "haproxy.cfg").read_text().partition("http-response")[2]
        respond(one, build_chat(), **FORGED)
        assert not usage_of(gateway.chat())


@pytest.mark.parametrize("key", KEYS)
def test_incomplete_body_stays_incomplete(gateway, one, key):
    body = build_chat()
    respond(one, body, length=len(body) + 100, end=False)
    with gateway.connect() as connection:
        connection.send(build_request(CHAT, {"model": "llama"}, key=key, headers=[("connection", "close")]))
        received = connection.receive_all()
    head, _, rest = received.partition(b"\r\n\r\n")
    assert b"content-length: %d" % (len(body) + 100) in head
    assert b"x-usage-" not in head
    assert body.startswith(rest)


@pytest.mark.parametrize("key", KEYS)
def test_responses_of_one_connection_have_their_own_headers(gateway, one, key):
    with gateway.connect() as connection:
        for total in (5, 6, None, 7):
            usage = {"prompt_tokens": total, "completion_tokens": 0, "total_tokens": total}
            respond(one, build_chat(usage=usage if total else None))
            found = usage_of(connection.request(CHAT, {"model": "llama"}, key=key))
            assert found == (expect(total, 0, total) if total else {})


def test_counted_tokens_are_those_of_the_headers(gateway, one):
    name = next(NAMES)
    respond(one, build_chat())
    response = gateway.chat(key="counted-key", headers=[("x-request-id", name)])
    assert gateway.log_entry(name)["tokens"] == response.headers["x-usage-total-tokens"]


def test_retried_request_has_the_headers(gateway, one):
    before = len(one.requests)
    respond(one, build_chat())
    answer = one.respond

    async def lose(request, reply):
        if len(one.requests) == before + 1:
            reply.drop()
        else:
            await answer(request, reply)

    one.respond = lose
    assert usage_of(gateway.chat()) == WHOLE
    assert len(one.requests) == before + 2
