"""What a response counts for `tokensPerMinute`: never more than its request may cost, and hidden tokens too."""

import json
from itertools import count

import pytest

from gateway.kit import minimal_values, model, start_gateway, start_upstreams, tenant
from gateway.kit.connection import build_request

CHAT, COMPLETION, EMBEDDING, SCORE = "/v1/chat/completions", "/v1/completions", "/v1/embeddings", "/v1/score"
MUCH = 1_000_000_000_000
TEMPLATE = 4096
CONTEXT = 8192
OPTIONS = {"include_usage": True}
NAMES = (f"accounting-{number}" for number in count())
DONE = b"data: [DONE]\n\n"
PROMPT = 20


def event(content):
    return b"data: " + json.dumps(content, separators=(",", ":")).encode() + b"\n\n"


def chunk(text, index=0, **more):
    """One event of a stream, as vLLM writes it."""
    choice = {"index": index, "delta": {"content": text}, "logprobs": None, "finish_reason": None}
    return event({"id": "chatcmpl-0123456789abcdef", "object": "chat.completion.chunk", "choices": [choice], **more})


def usage(generated, prompt=PROMPT):
    return {"prompt_tokens": prompt, "total_tokens": prompt + generated, "completion_tokens": generated}


def last(generated):
    return event(
        {"id": "chatcmpl-0123456789abcdef", "object": "chat.completion.chunk", "choices": [], "usage": usage(generated)}
    )


@pytest.fixture(scope="module")
def environment():
    with start_upstreams("one") as (one,):
        names = ["llama", "known", "embed", "rank"]
        values = {
            "tenants": {
                "acme": {"models": names, "tokensPerMinute": MUCH},
                "free": tenant("free", ["llama"]),
                "shared": tenant("shared", ["known"], tokensPerMinute=MUCH),
            },
            "models": {
                "llama": {"prefixCache": {"sharedReason": "bodies without a salt"}, "dataPath": "Direct"},
                "known": model(one, contextTokens=CONTEXT),
                "embed": model(one, task="embed"),
                "rank": model(one, task="rerank", contextTokens=CONTEXT),
            },
        }
        with start_gateway(minimal_values(one, values)) as gateway:
            yield gateway, one


def respond(one, *parts, status=200, kind="application/json"):
    async def responses(request, reply):
        await reply.start(status, content_type=kind)
        for part in parts:
            await reply.send(part)
        await reply.end()

    one.respond = responses


def report(one, total):
    """Respond with this text as the number of tokens."""
    respond(one, b'{"usage":{"total_tokens":%s}}' % str(total).encode())


def send(gateway, path=CHAT, content=None, *, headers=(), **options):
    """Send a request, and return its log entry and its response."""
    name = next(NAMES)
    content = {"model": "llama", "messages": []} if content is None else content
    response = gateway.request(path, content, headers=[("x-request-id", name), *headers], **options)
    return gateway.log_entry(name), response


def count_tokens(gateway, *args, **options):
    return int(send(gateway, *args, **options)[0]["tokens"])


def size_of(content):
    return len(json.dumps(content))


def chat(model="llama", **more):
    return {"model": model, "messages": [], **more}


# -- the most that a response counts ---------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("more", "output"),
    [
        ({"max_tokens": 7}, 7),
        ({"max_tokens": 7, "n": 3}, 21),
        ({"max_completion_tokens": 9, "max_tokens": 7}, 9),
        ({"max_tokens": 7, "n": "3"}, 7 * 128),
        ({"max_tokens": 7, "metadata": {"max_tokens": 900}}, 7),
    ],
)
def test_response_counts_at_most_the_tokens_that_its_request_asks_for(gateway, one, more, output):
    report(one, 10**13)
    content = chat(**more)
    assert count_tokens(gateway, content=content) == 2 * size_of(content) + TEMPLATE + output


def test_each_prompt_of_a_completion_raises_the_most(gateway, one):
    report(one, 10**13)
    content = {"model": "llama", "prompt": ["a", "b", "c"], "max_tokens": 5, "n": 2}
    assert count_tokens(gateway, COMPLETION, content) == 2 * size_of(content) + TEMPLATE + 3 * 2 * 5


def test_context_of_the_model_bounds_prompt_and_output(gateway, one):
    report(one, 10**13)
    content = chat("known", n=2)
    assert count_tokens(gateway, content=content) == 2 * size_of(content) + TEMPLATE + 2 * CONTEXT
    content = chat("known", max_tokens=10**8, text="x" * CONTEXT)
    assert count_tokens(gateway, content=content) == 2 * CONTEXT


def test_bytes_of_the_response_bound_its_output_without_another_bound(gateway, one):
    body = b'{"usage":{"total_tokens":%d}}' % 10**13
    respond(one, body)
    content = chat()
    assert count_tokens(gateway, content=content) == 2 * size_of(content) + TEMPLATE + len(body)


def test_media_raise_the_most(gateway, one):
    """A URL of few bytes has many tokens."""
    report(one, 6000)
    image = [{"role": "user", "content": [{"type": "image_url", "image_url": {"url": "https://x/y"}}]}]
    assert count_tokens(gateway, content=chat("known", messages=image, max_tokens=5)) == 6000


def test_texts_of_a_score_raise_the_most(gateway, one):
    """Each pair is a prompt: a long query counts for each document."""
    report(one, 10**13)
    content = {"model": "rank", "text_1": "q" * 900, "text_2": ["a", "b", "c"]}
    assert count_tokens(gateway, SCORE, content) == 3 * 2 * size_of(content) + TEMPLATE
    report(one, 10**13)
    content = {"model": "embed", "input": ["a", "b"]}
    assert count_tokens(gateway, EMBEDDING, content) == 2 * size_of(content) + TEMPLATE


def test_last_event_of_a_stream_counts_at_most_what_its_request_may_cost(gateway, one):
    respond(one, chunk("a"), last(10**13), DONE, kind="text/event-stream")
    content = chat(max_tokens=7, stream=True)
    assert count_tokens(gateway, content=content) == 2 * size_of(content) + TEMPLATE + 7


@pytest.mark.parametrize("number", [-1, 1e30, '"23"', "NaN", "null", 12.5, "23e9", "", [23]], ids=str)
def test_report_that_is_no_number_of_tokens_is_estimated(gateway, one, number):
    body = b'{"usage":{"total_tokens":%s}}' % str(number).encode()
    respond(one, body)
    assert count_tokens(gateway) == int(size_of(chat()) // 3 + len(body) / 3)


@pytest.mark.parametrize("number", [2**53, 2**63, 2**64 + 23, 10**40])
def test_report_beyond_the_numbers_of_lua_counts_the_most(gateway, one, number):
    report(one, number)
    content = chat(max_tokens=7)
    assert count_tokens(gateway, content=content) == 2 * size_of(content) + TEMPLATE + 7


def find_excess(gateway, **labels):
    text = gateway.request_metrics_port("/metrics/tenants")[1]
    lines = [line for line in text.splitlines() if line.startswith("rayhelm_gateway_excess_reports_total{")]
    wanted = [f'{name}="{value}"' for name, value in labels.items()]
    return [line for line in lines if all(part in line for part in wanted)]


def test_metric_names_the_model_that_reported_too_much_and_its_owner(gateway, one):
    report(one, CONTEXT)
    count_tokens(gateway, content=chat("known"), key="shared-key")
    assert find_excess(gateway, tenant="shared") == []
    for number in (1, 2):
        report(one, 10**13)
        count_tokens(gateway, content=chat("known", max_tokens=7), key="shared-key")
        labels = 'tenant="shared",model="known",version="stable",owner="127.0.0.1"'
        assert find_excess(gateway, tenant="shared") == [f"rayhelm_gateway_excess_reports_total{{{labels}}} {number}"]


# -- streams ---------------------------------------------------------------------------------------------------------


@pytest.fixture
def engine(one):
    """Streams as vLLM does: with usage if the body asks for it."""

    def stream(*events, generated, size=100_000, kind="text/event-stream"):
        async def responses(request, reply):
            options = json.loads(request.body).get("stream_options") or {}
            body = b"".join([*events, *([last(generated)] if options.get("include_usage") else []), DONE])
            await reply.start(200, content_type=kind)
            for at in range(0, len(body), size):
                await reply.send(body[at : at + size])
            await reply.end()

        one.respond = responses

    return stream


@pytest.mark.parametrize("size", [1, 50, 100_000])
@pytest.mark.parametrize("more", [{}, {"stream_options": None}, {"stream_options": {"include_usage": False}}], ids=str)
def test_stream_counts_hidden_tokens_and_looks_the_same(gateway, engine, more, size):
    """With `include_reasoning: false` vLLM has no event for the tokens of the reasoning."""
    engine(chunk(""), chunk("Paris"), generated=20_000, size=size)
    content = chat(stream=True, include_reasoning=False, max_tokens=30_000, **more)
    entry, response = send(gateway, content=content)
    assert entry["tokens"] == str(PROMPT + 20_000)
    assert response.body == chunk("") + chunk("Paris") + DONE


def test_client_that_asks_for_usage_gets_it(gateway, engine):
    engine(chunk("a"), generated=1)
    for options in ({"include_usage": True}, {"include_usage": True, "continuous_usage_stats": True}):
        entry, response = send(gateway, content=chat(stream=True, stream_options=options))
        assert entry["tokens"] == str(PROMPT + 1)
        assert response.body == chunk("a") + last(1) + DONE


def test_stream_with_a_length_keeps_its_usage(gateway, one):
    """The length was announced: nothing can be removed."""
    body = chunk("a") + last(1) + DONE

    async def responses(request, reply):
        await reply.raw(b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ncontent-length: %d\r\n\r\n" % len(body))
        await reply.raw(body)

    one.respond = responses
    name = next(NAMES)
    with gateway.connect() as connection:
        close = ("connection", "close")
        connection.send(build_request(CHAT, chat(stream=True), headers=[("x-request-id", name), close]))
        assert connection.receive_all().endswith(body)
    assert gateway.log_entry(name)["tokens"] == str(PROMPT + 1)


@pytest.mark.parametrize(
    ("parts", "passed"),
    [
        ([chunk("a"), last(5)], chunk("a")),
        ([last(5)], b""),
        ([chunk("a"), chunk("b")[:-30]], chunk("a") + chunk("b")[:-30]),
        ([b"data: " + b"x" * 9000], b"data: " + b"x" * 9000),
        ([b"data: " + b"x" * 9000, b"x\n\n", last(5), DONE], b"data: " + b"x" * 9001 + b"\n\n" + DONE),
        ([], b""),
    ],
    ids=["ends-with-usage", "only-usage", "incomplete", "long", "long-and-usage", "empty"],
)
def test_stream_ends_wherever_its_last_event_is(gateway, one, parts, passed):
    """An event waits for its end; the end of the response ends the wait."""
    respond(one, *parts, kind="text/event-stream")
    assert send(gateway, content=chat(stream=True))[1].body == passed


def test_lines_that_end_with_two_bytes_are_read_too(gateway, one):
    parts = [part.replace(b"\n", b"\r\n") for part in (chunk("a"), last(900), DONE)]
    respond(one, *parts, kind="text/event-stream")
    entry, response = send(gateway, content=chat(stream=True))
    assert (entry["tokens"], response.body) == (str(PROMPT + 900), parts[0] + parts[2])


def receive(gateway, one, content, build=None, **options):
    """Return what the model server received."""
    respond(one, DONE, kind="text/event-stream")
    data = content if isinstance(content, bytes) else json.dumps(content).encode()
    if build:
        with gateway.connect() as connection:
            connection.send(build(CHAT, data))
            connection.read_response()
    else:
        assert gateway.request(CHAT, data, **options).status == 200
    return one.requests[-1].body


def build_chunked(path, data):
    head = f"POST {path} HTTP/1.1\r\nhost: x\r\nauthorization: Bearer acme-key\r\ncontent-type: application/json\r\n"
    parts = b"".join(b"%x\r\n%s\r\n" % (len(part), part) for part in (data[:9], data[9:]))
    return f"{head}transfer-encoding: chunked\r\n\r\n".encode() + parts + b"0\r\n\r\n"


@pytest.mark.parametrize("build", [None, build_chunked], ids=["length", "chunks"])
def test_model_server_is_asked_for_the_usage_of_a_stream(gateway, one, build):
    for end in (b"", b" \n"):
        data = json.dumps(chat(stream=True)).encode()
        expected = data[:-1] + b',"stream_options":{"include_usage":true}}' + end
        assert receive(gateway, one, data + end, build) == expected


@pytest.mark.parametrize(
    "more",
    [
        {},
        {"stream": False},
        {"stream": None},
        {"metadata": {"stream": True}},
        {"messages": [{"role": "user", "content": 'say "stream":true'}]},
    ],
    ids=str,
)
def test_body_of_another_request_is_not_changed(gateway, one, more):
    data = json.dumps(chat(**more)).encode()
    assert receive(gateway, one, data) == data


@pytest.mark.parametrize("value", ["true", '"true"', "1", "1.0", '"yes"'])
def test_every_spelling_of_a_stream_is_found(gateway, one, value):
    """Python's parser finds the field; pydantic converts the value."""
    for key in ("stream", "stre\\u0061m"):
        data = b'{"model":"llama","messages":[],"%s":%s}' % (key.encode(), value.encode())
        assert json.loads(receive(gateway, one, data))["stream_options"] == OPTIONS


def test_last_field_of_the_client_decides_about_a_stream(gateway, one):
    data = b'{"model":"llama","messages":[],"stream":true,"stream":false}'
    assert receive(gateway, one, data) == data


@pytest.mark.parametrize(
    "options",
    [
        '{"include_usage":true,"include_usage":false}',
        '{"include_usage":false}',
        '{"continuous_usage_stats":true}',
        "null",
    ],
)
def test_client_cannot_turn_the_usage_off(gateway, one, options):
    data = b'{"model":"llama","messages":[],"stream":true,"stream_options":%s}' % options.encode()
    assert json.loads(receive(gateway, one, data))["stream_options"] == OPTIONS


def test_stream_of_a_tenant_without_the_limit_is_not_changed(gateway, one):
    data = json.dumps(chat(stream=True)).encode()
    assert receive(gateway, one, data, key="free-key") == data


def test_salt_and_usage_are_both_added(one, gateway):
    """`known` has two tenants, so its prefix cache is separate for each."""
    found = json.loads(receive(gateway, one, chat("known", stream=True)))
    assert (found["stream_options"], len(found["cache_salt"])) == (OPTIONS, 64)


@pytest.mark.parametrize("failure", ["closes", "500"])
def test_retried_stream_is_asked_for_its_usage_once(gateway, one, failure):
    before = len(one.requests)

    async def responses(request, reply):
        if len(one.requests) > before + 1:
            await reply.start(200, content_type="text/event-stream")
            await reply.send(chunk("a") + last(77) + DONE)
            await reply.end()
        elif failure == "500":
            await reply.json({}, status=500)
        else:
            reply.drop()

    one.respond = responses
    entry, response = send(gateway, content=chat(stream=True))
    assert (entry["tokens"], response.body) == (str(PROMPT + 77), chunk("a") + DONE)
    first, second = (request.body for request in one.requests[before:])
    assert first == second
    assert second.count(b"stream_options") == 1


# -- clients that leave ----------------------------------------------------------------------------------------------


def leave(gateway, one, content, *events):
    """Leave after these events, and return the counted tokens."""
    gate = one.gate()

    async def responses(request, reply):
        await reply.start(content_type="text/event-stream")
        for part in events:
            await reply.send(part)
        await gate.wait()

    one.respond = responses
    name = next(NAMES)
    with gateway.connect() as connection:
        connection.send(build_request(CHAT, content, headers=[("x-request-id", name)]))
        found = b""
        while found.count(b"data:") < len(events):
            found += connection.receive(1)
        connection.reset()
    entry = gateway.log_entry(name)
    gate.open()
    return int(entry["tokens"])


CONTINUOUS = {"include_usage": True, "continuous_usage_stats": True}


def test_choices_of_a_stream_that_the_client_left_add_up(gateway, one):
    events = [chunk("x", index, usage=usage(tokens)) for tokens in range(1, 6) for index in range(8)]
    content = chat(stream=True, n=8, stream_options=CONTINUOUS)
    assert leave(gateway, one, content, *events) == PROMPT + 8 * 5


def test_continuous_usage_counts_tokens_without_an_event(gateway, one):
    events = [chunk("x", index, usage=usage(tokens)) for tokens in (1, 101) for index in range(2)]
    content = chat(stream=True, n=2, stream_interval=100, stream_options=CONTINUOUS)
    assert leave(gateway, one, content, *events) == PROMPT + 2 * 101


def test_usage_of_further_choices_than_the_request_has_does_not_count(gateway, one):
    events = [chunk("x", index, usage=usage(1000)) for index in range(5)]
    content = chat(stream=True, n=2, max_tokens=1000, stream_options=CONTINUOUS)
    assert leave(gateway, one, content, *events) == PROMPT + 2 * 1000


def test_events_of_all_choices_count_when_the_client_left(gateway, one):
    events = [chunk("x", index) for _ in range(5) for index in range(8)]
    content = chat(stream=True, n=8)
    assert leave(gateway, one, content, *events) == size_of(content) // 3 + 40


@pytest.mark.parametrize(("status", "counts"), [(408, True), (400, False), (429, False), (503, False)])
def test_prompt_counts_when_the_model_server_gives_up(gateway, one, status, counts):
    """408 is Ray Serve's, after it has computed for a time."""
    respond(one, json.dumps({"error": "x" * 300, "usage": usage(50)}).encode(), status=status)
    content = chat(messages=[{"role": "user", "content": "x" * 3000}])
    entry, _ = send(gateway, content=content)
    assert entry["tokens"] == (str(size_of(content) // 3) if counts else "-")


def test_estimate_of_a_prompt_is_at_most_its_context(gateway, one):
    """An image in the body has many more bytes than tokens."""
    respond(one, b"{}", status=408)
    content = chat("known", messages=[{"role": "user", "content": "x" * 300_000}])
    assert count_tokens(gateway, content=content) == CONTEXT


# -- the bucket ------------------------------------------------------------------------------------------------------


def test_overdrawn_bucket_refuses_for_ten_minutes_at_most():
    with start_upstreams("one") as (one,):
        values = minimal_values(one, {"tenants": {"acme": {"models": ["llama"], "tokensPerMinute": 100}}})
        with start_gateway(values) as gateway:
            for _ in range(3):
                report(one, 10**13)
                send(gateway, content=chat(max_tokens=10**9))
                refused = gateway.chat()
                assert refused.error["code"] == "token_limit_exceeded"
                assert 500 < int(refused.headers["retry-after"]) <= 600


# -- other forms of `usage` ------------------------------------------------------------------------------------------

RESPONSES, MESSAGES = "/v1/responses", "/v1/messages"
COMPLETED = {
    "type": "response.completed",
    "response": {
        "output": [{"text": "x" * 6000}],
        "usage": {"input_tokens": 20, "output_tokens": 7, "total_tokens": 27},
    },
}
STARTED = {"type": "message_start", "message": {"usage": {"input_tokens": 12, "output_tokens": 0}}}
# vLLM with `enable_prompt_tokens_details`.
ALL, HIT = {"input_tokens": 20, "output_tokens": 0}, {"input_tokens": 2, "cache_read_input_tokens": 18}
CACHED = {"input_tokens": 12, "cache_read_input_tokens": 8, "output_tokens": 7}


def named(content):
    return b"event: " + content["type"].encode() + b"\n" + event(content)


def bounded(path, **more):
    return {"model": "llama", "input": "a", "messages": [{"content": "a"}], **more}


@pytest.mark.parametrize(
    ("path", "parts"),
    [
        (RESPONSES, [json.dumps(COMPLETED["response"]).encode()]),
        (MESSAGES, [json.dumps({"usage": CACHED}).encode()]),
        (MESSAGES, [b'{"usage":{"input_tok', b'ens":20,"output_tokens":7}}']),
    ],
)
def test_documents_of_other_forms_count_their_usage(gateway, one, path, parts):
    respond(one, *parts)
    assert count_tokens(gateway, path, bounded(path, max_tokens=50, max_output_tokens=50)) == 27


@pytest.mark.parametrize(
    ("path", "parts"),
    [
        (RESPONSES, [named({"type": "response.output_text.delta", "delta": "a"}), named(COMPLETED)]),
        (MESSAGES, [named(STARTED), named({"type": "message_delta", "usage": CACHED})]),
        (
            MESSAGES,
            [
                named({"type": "message_start", "message": {"usage": ALL}}),
                named({"type": "message_delta", "usage": HIT | {"output_tokens": 7}}),
            ],
        ),
    ],
)
def test_streams_of_other_forms_count_their_usage_without_being_asked(gateway, one, path, parts):
    respond(one, *parts, kind="text/event-stream")
    content = bounded(path, max_tokens=50, max_output_tokens=50, stream=True)
    entry, response = send(gateway, path, content)
    assert int(entry["tokens"]) == 27
    assert response.body == b"".join(parts)
    assert json.loads(one.requests[-1].body) == content


def test_stream_of_messages_without_its_end_counts_its_events(gateway, one):
    texts = [named({"type": "content_block_delta", "delta": {"text": "a"}}) for _ in range(9)]
    respond(one, named(STARTED), *texts, kind="text/event-stream")
    assert count_tokens(gateway, MESSAGES, bounded(MESSAGES, max_tokens=50, stream=True)) >= 9


def test_numbers_that_a_client_writes_count_at_most_what_its_request_may_cost(gateway, one):
    """Tools of a request are part of its response, so they can have any key."""
    respond(one, json.dumps({"tools": [{"total_tokens": 10**9}], "usage": {"total_tokens": 27}}).encode())
    content = bounded(RESPONSES, max_output_tokens=50)
    entry, _ = send(gateway, RESPONSES, content)
    assert int(entry["tokens"]) == 2 * size_of(content) + TEMPLATE + 50
