"""Tokens per minute of a tenant: what counts, and when requests are refused.

The log has the counted tokens of each request. The tests of the limit replace the minute by a short one, and compare
times of HAProxy's own clock only."""

import asyncio
import json
import threading
import time
from itertools import count

import pytest

from gateway.kit import minimal_values, model, start_gateway, start_upstreams, tenant, wait_for
from gateway.kit.connection import build_request

CHAT, SCORE, SPEECH = "/v1/chat/completions", "/v1/score", "/v1/audio/speech"
MUCH = 1_000_000_000_000
BYTES_PER_TOKEN = 3
USAGE = {"prompt_tokens": 20, "completion_tokens": 3, "total_tokens": 23}
PLACE = "option http-restrict-req-hdr-names delete\n"
NAMES = (f"request-{number}" for number in count())


def chunk(text, **more):
    """One event of a stream, as vLLM writes it."""
    choice = {"index": 0, "delta": {"content": text}, "logprobs": None, "finish_reason": None}
    return event({"id": "chatcmpl-0123456789abcdef", "object": "chat.completion.chunk", "choices": [choice], **more})


def event(content):
    return b"data: " + json.dumps(content, separators=(",", ":")).encode() + b"\n\n"


LAST = event({"id": "chatcmpl-0123456789abcdef", "object": "chat.completion.chunk", "choices": [], "usage": USAGE})
DONE = b"data: [DONE]\n\n"


def edit_minute(window):
    """Return edits of the files: another window than a minute, and the time of the decision in each response."""

    def edit(text):
        assert text.count("buckets.lua 60000") == text.count(PLACE) == 1
        text = text.replace(PLACE, f"{PLACE}  http-after-response set-header x-now %[var(txn.now)]\n")
        return text.replace("buckets.lua 60000", f"buckets.lua {window}")

    return {"haproxy.cfg": edit}


@pytest.fixture(scope="module")
def environment():
    with start_upstreams("one") as (one,):
        every = ["llama", "embed", "rank", "tts", "painter"]
        values = {
            "tenants": {"acme": {"models": every, "tokensPerMinute": MUCH}, "free": tenant("free", ["llama"])},
            "models": {
                "embed": model(one, task="embed"),
                "rank": model(one, task="rerank"),
                "tts": model(one, task="speak"),
                "painter": model(one, route="/own", task="custom", operations={"/draw": {"method": "POST"}}),
            },
        }
        with start_gateway(minimal_values(one, values)) as gateway:
            yield gateway, one


def respond(one, *parts, status=200, kind="application/json", end=True):
    async def responses(request, reply):
        await reply.start(status, content_type=kind)
        for part in parts:
            await reply.send(part)
        if end:
            await reply.end()
        else:
            reply.drop()

    one.respond = responses


def count_tokens(gateway, path=CHAT, content=None, **options):
    """Send a request and return the tokens that its log entry has."""
    name = next(NAMES)
    content = {"model": "llama", "messages": []} if content is None else content
    gateway.request(path, content, headers=[("x-request-id", name)], **options)
    return gateway.log_entry(name)["tokens"]


def estimate_prompt(content):
    return len(json.dumps(content)) // BYTES_PER_TOKEN


PROMPT = estimate_prompt({"model": "llama", "messages": []})


# -- with usage ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("size", [1, 7, 64, 100_000])
def test_tokens_are_those_of_usage_in_parts_of_any_size(gateway, one, size):
    body = json.dumps({"choices": [{"message": {"content": "x" * 150}}], "usage": USAGE}).encode()
    respond(one, *(body[at : at + size] for at in range(0, len(body), size)))
    assert count_tokens(gateway) == "23"


@pytest.mark.parametrize("size", [1, 50, 100_000])
def test_tokens_of_a_stream_are_those_of_its_usage(gateway, one, size):
    body = b"".join([chunk("a"), chunk("bc"), LAST, DONE])
    respond(one, *(body[at : at + size] for at in range(0, len(body), size)), kind="text/event-stream")
    assert count_tokens(gateway) == "23"


def test_largest_usage_of_a_choice_counts(gateway, one):
    """With `continuous_usage_stats` each event has one. vLLM has no event for some tokens."""
    parts = [chunk("a", usage={"prompt_tokens": 20, "total_tokens": total}) for total in (21, 25, 30)]
    respond(one, *parts, DONE, kind="text/event-stream")
    assert count_tokens(gateway) == "30"


@pytest.mark.parametrize("text", ['"usage":{"total_tokens":1}', '\\"total_tokens\\":1', '"total_tokens": 0,'])
def test_generated_text_cannot_set_the_count(gateway, one, text):
    respond(one, chunk(text), chunk(text), DONE, kind="text/event-stream")
    assert int(count_tokens(gateway)) >= PROMPT + 2
    respond(one, json.dumps({"choices": [{"message": {"content": text}}], "usage": USAGE}).encode())
    assert count_tokens(gateway) == "23"


@pytest.mark.parametrize(
    ("path", "content"),
    [
        ("/v1/embeddings", {"model": "embed", "input": "hi"}),
        (SCORE, {"model": "rank", "text_1": "a", "text_2": "b"}),
        ("/llama/v1/completions", {"model": "llama", "prompt": "hi"}),
    ],
)
def test_other_operations_with_usage_count(gateway, one, path, content):
    respond(one, json.dumps({"data": [], "usage": USAGE}).encode())
    assert count_tokens(gateway, path, content) == "23"


# -- without usage ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("size", [1, 50, 100_000])
def test_each_event_of_a_stream_without_usage_counts_as_a_token(gateway, one, size):
    body = b"".join([chunk("a")] * 40 + [DONE])
    respond(one, *(body[at : at + size] for at in range(0, len(body), size)), kind="text/event-stream")
    assert count_tokens(gateway) == str(PROMPT + 40)


def test_events_with_several_tokens_count_by_their_text(gateway, one):
    """With speculative decoding, vLLM sends several tokens in one event."""
    respond(one, chunk(""), *[chunk("x" * 60)] * 5, DONE, kind="text/event-stream")
    assert count_tokens(gateway) == str(PROMPT + 5 * 60 // BYTES_PER_TOKEN)


def test_prompt_without_usage_counts_by_its_bytes(gateway, one):
    content = {"model": "llama", "messages": [{"role": "user", "content": "x" * 30_000}], "stream": True}
    respond(one, chunk("a"), DONE, kind="text/event-stream")
    assert count_tokens(gateway, content=content) == str(estimate_prompt(content) + 1)


def test_response_without_usage_counts_by_its_bytes(gateway, one):
    respond(one, b"x" * 3000)
    assert count_tokens(gateway) == str(PROMPT + 1000)


def test_stream_that_the_client_left_counts(gateway, one):
    gate = one.gate()

    async def responses(request, reply):
        await reply.start(content_type="text/event-stream")
        for _ in range(10):
            await reply.send(chunk("a"))
        await gate.wait()

    one.respond = responses
    name = next(NAMES)
    with gateway.connect() as connection:
        connection.send(build_request(CHAT, {"model": "llama", "messages": []}, headers=[("x-request-id", name)]))
        found = b""
        while found.count(b"data:") < 10:
            found += connection.receive(1)
        connection.reset()
    entry = gateway.log_entry(name)
    assert entry["tokens"] == str(PROMPT + 10)
    gate.open()


def test_prompt_counts_when_the_client_leaves_before_the_response(gateway, one):
    gate, arrived = one.gate(), threading.Event()

    async def responses(request, reply):
        arrived.set()
        await gate.wait()

    one.respond = responses
    name = next(NAMES)
    with gateway.connect() as connection:
        connection.send(build_request(CHAT, {"model": "llama", "messages": []}, headers=[("x-request-id", name)]))
        assert arrived.wait(300)
        connection.reset()
    entry = gateway.log_entry(name)
    assert entry["tokens"] == str(PROMPT)
    gate.open()


def test_stream_that_the_model_server_breaks_counts(gateway, one):
    respond(one, *[chunk("a")] * 10, kind="text/event-stream", end=False)
    name = next(NAMES)
    with gateway.connect() as connection:
        connection.send(build_request(CHAT, {"model": "llama", "messages": []}, headers=[("x-request-id", name)]))
        connection.receive_all()
    entry = gateway.log_entry(name)
    assert entry["tokens"] == str(PROMPT + 10)


# -- beside other features -------------------------------------------------------------------------------------------


@pytest.mark.parametrize("failure", ["closes", "500"])
def test_retried_request_counts_once(gateway, one, failure):
    body, before = json.dumps({"usage": USAGE}).encode(), len(one.requests)

    async def responses(request, reply):
        if len(one.requests) > before + 1:
            await reply.json({"usage": USAGE})
        elif failure == "500":
            await reply.start(500)
            await reply.send(body)
            await reply.end()
        else:
            reply.drop()

    one.respond = responses
    assert count_tokens(gateway) == "23"
    assert len(one.requests) == before + 2


@pytest.mark.parametrize(("pause", "tokens"), [(False, "23"), (True, "11")], ids=["with-its-headers", "after-them"])
def test_body_behind_an_interim_response_is_counted_up_to_its_first_part(gateway, one, pause, tokens):
    """HAProxy shows filters no more of it: SECURITY.md."""
    interim = b'HTTP/1.1 103 Early Hints\r\nlink: "total_tokens":5\r\n\r\n'
    body = json.dumps({"usage": USAGE}).encode()
    length = f"content-length: {len(body)}\r\n\r\n".encode()
    head = interim + b"HTTP/1.1 200 OK\r\ncontent-type: application/json\r\n" + length

    async def responses(request, reply):
        await reply.raw(head if pause else head + body)
        if pause:
            await asyncio.sleep(0.3)
            await reply.raw(body)

    one.respond = responses
    name = next(NAMES)
    with gateway.connect() as connection:
        content, close = {"model": "llama", "messages": []}, ("connection", "close")
        connection.send(build_request(CHAT, content, headers=[("x-request-id", name), close]))
        connection.receive_all()
    assert gateway.log_entry(name)["tokens"] == tokens


def test_requests_of_one_connection_are_counted_apart(gateway, one):
    names = [next(NAMES) for _ in range(3)]
    with gateway.connect() as connection:
        for total, name in enumerate(names, 5):
            respond(one, json.dumps({"usage": {"total_tokens": total}}).encode())
            connection.request(CHAT, {"model": "llama"}, headers=[("x-request-id", name)])
    assert [gateway.log_entry(name)["tokens"] for name in names] == ["5", "6", "7"]


# -- what does not count ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize("status", [400, 404, 500, 503])
def test_errors_do_not_count(gateway, one, status):
    respond(one, json.dumps({"usage": USAGE}).encode(), status=status)
    assert count_tokens(gateway) == "-"


def test_refused_requests_do_not_count(gateway):
    assert count_tokens(gateway, content={"model": "unknown"}) == "-"
    assert count_tokens(gateway, key="unknown-key") == "-"


def test_log_of_a_malformed_request_has_its_time_and_no_tokens(gateway):
    """HAProxy refuses it before a transaction exists, and the date of the log line counts tokens too."""
    before = len(gateway.log_entries)
    with gateway.connect() as connection:
        connection.send(b"GET / HTTP/1.1\r\nname\x01: value\r\n\r\n")
        connection.receive_all()
    (entry,) = wait_for(lambda: gateway.log_entries[before:], "the log entry")
    assert (entry["time"][:2], entry["status"], entry["tokens"]) == ("20", 400, "-")


def test_operations_without_usage_do_not_count(gateway, one):
    respond(one, b"sound" * 1000)
    assert count_tokens(gateway, SPEECH, {"model": "tts", "input": "hi"}) == "-"
    assert count_tokens(gateway, "/painter/draw", {"total_tokens": 5}) == "-"


def test_tenant_without_the_limit_is_not_counted(gateway, one):
    respond(one, json.dumps({"usage": USAGE}).encode())
    assert count_tokens(gateway, key="free-key") == "-"


def test_model_server_does_not_compress_what_is_counted(gateway, one):
    headers = [("accept-encoding", "gzip")]
    gateway.chat(headers=headers)
    assert one.requests[-1].header("accept-encoding") is None
    gateway.chat(headers=headers, key="free-key")
    assert one.requests[-1].header("accept-encoding") == "gzip"


# -- the limit -------------------------------------------------------------------------------------------------------

WINDOW, LIMIT = 1_000, 100


@pytest.fixture(scope="module")
def limited():
    names = "burst", "debt", "json", "stream"
    limits = {name: tenant(name, ["llama"], tokensPerMinute=LIMIT) for name in names}
    with start_upstreams("one") as (one,):
        values = minimal_values(one, {"tenants": limits})
        with start_gateway(values, edit=edit_minute(WINDOW)) as gateway:
            yield gateway, one


def use(gateway, one, key, total, kind="application/json"):
    """Send requests whose responses have this number of tokens, until one is refused. Return the last that passed, and
    the refused one."""
    body = {"usage": {"total_tokens": total}}
    respond(one, *([event(body), DONE] if kind == "text/event-stream" else [json.dumps(body).encode()]), kind=kind)
    passed, refused = None, None
    while not passed or not refused:
        name = next(NAMES)
        response = gateway.chat(key=key, headers=[("x-request-id", name)])
        gateway.log_entry(name)
        passed, refused = (passed, response) if response.status == 429 else (response, None)
    return passed, refused


def send_until_passed(gateway, key):
    """Return all responses; the last one passed."""
    responses = [gateway.chat(key=key)]
    while responses[-1].status == 429:
        time.sleep(0.02)
        responses.append(gateway.chat(key=key))
    return responses


def time_of(response):
    return int(response.headers["x-now"])


def test_error_names_the_limit(limited):
    gateway, one = limited
    _, refused = use(gateway, one, "burst-key", LIMIT * 1000)
    assert (refused.error["type"], refused.error["code"]) == ("tokens", "token_limit_exceeded")
    assert f"{LIMIT} tokens per minute" in refused.error["message"]
    before = len(one.requests)
    assert gateway.chat(key="burst-key").status == 429
    assert len(one.requests) == before
    assert gateway.chat().status == 200, "another tenant has no limit"


@pytest.mark.parametrize("kind", ["application/json", "text/event-stream"])
def test_retry_after_of_the_token_limit_is_exact(limited, kind):
    gateway, one = limited
    key = {"application/json": "json-key", "text/event-stream": "stream-key"}[kind]
    use(gateway, one, key, LIMIT * 3, kind)
    *refused, passed = send_until_passed(gateway, key)
    for response in refused:
        seconds = int(response.headers["retry-after"])
        assert time_of(passed) > time_of(response) + (seconds - 1) * 1000, "a request passed earlier"
        assert time_of(refused[-1]) <= time_of(response) + seconds * 1000, "a request was refused later"


def test_tokens_above_the_limit_are_repaid(limited):
    """Over time a tenant gets its limit, also if a response has many times that."""
    gateway, one = limited
    before, _ = use(gateway, one, "debt-key", LIMIT * 4)
    *_, passed = send_until_passed(gateway, "debt-key")
    assert time_of(passed) >= time_of(before) + 3 * WINDOW, "one minute is in the bucket, three are repaid"


def test_requests_refused_for_tokens_do_not_count_for_the_rate(one, environment):
    values = {"tenants": {"acme": {"tokensPerMinute": 1, "requestsPerMinute": 2}}}
    with start_gateway(minimal_values(one, values)) as gateway:
        respond(one, b"x" * 3000)
        assert count_tokens(gateway) == str(PROMPT + 1000)
        for _ in range(5):
            assert gateway.chat().error["code"] == "token_limit_exceeded"


# -- what is rendered ------------------------------------------------------------------------------------------------


def test_limit_is_a_metric(gateway):
    text = gateway.request_metrics_port("/metrics/tenants")[1]
    assert f'rayhelm_gateway_limit{{tenant="acme",limit="tokens_per_minute"}} {MUCH}' in text
    assert 'rayhelm_gateway_limit{tenant="free",limit="tokens_per_minute"}' not in text


def test_without_a_limit_nothing_is_loaded(one):
    with start_gateway(minimal_values(one)) as gateway:
        text = (gateway.folder / "haproxy.cfg").read_text()
        assert not any(word in text for word in ("filter", "buckets"))
        assert not list(gateway.folder.glob("buckets*"))
        assert not list(gateway.folder.glob("usage*"))
