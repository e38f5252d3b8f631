"""The field `cache_salt`, by which vLLM's prefix cache is separate for each tenant."""

import hmac
import json
import random

import pytest

from gateway.kit import endpoint, minimal_values, model, start_gateway, start_upstreams, tenant, wait_for
from gateway.kit.bodies import mutate
from gateway.kit.connection import build_request
from gateway.kit.hostile import LAST, collect_responses, exchange
from gateway.kit.process import replace_file

CHAT, COMPLETION, EMBEDDING, SCORE = "/v1/chat/completions", "/v1/completions", "/v1/embeddings", "/v1/score"
MESSAGES = [{"role": "user", "content": "hi"}]


def build_values(one):
    both = ["llama", "embed", "rank", "team"]
    return {
        "tenants": {
            "acme": tenant("acme", [*both, "alone"]),
            "search": tenant("search", [*both, "whisper"]),
        },
        "models": {
            "embed": model(one, task="embed", route="/embed"),
            "rank": model(one, task="rerank", route="/rank"),
            "team": model(one, route="/team", prefixCache={"sharedReason": "both are one team"}),
            "alone": model(one, route="/alone"),
            "whisper": {
                "task": "transcribe",
                "versions": {"stable": {"routePrefix": "/whisper", "endpoints": {"one": endpoint(one)}}},
            },
        },
    }


@pytest.fixture(scope="module")
def environment():
    with (
        start_upstreams("one") as (one,),
        start_gateway(minimal_values(one, build_values(one))) as gateway,
    ):
        yield gateway, one


@pytest.fixture
def receive(environment):
    """Send a body in the name of a tenant, and return what the upstream received."""
    gateway, one = environment

    def send(path, content, tenant="acme", build=None):
        data = content if isinstance(content, bytes) else json.dumps(content).encode()
        found = exchange(gateway, one, (build or build_request)(path, data, key=f"{tenant}-key"))
        assert found.statuses == [200]
        (request,) = found.requests
        return request.body

    return send


def compute_salt(*parts, secret=b"rayhelm"):
    return hmac.new(secret, "\n".join(parts).encode(), "sha256").hexdigest().upper()


def chat(raw="", filler=""):
    body = {"model": "llama", "user": filler, "messages": MESSAGES}
    return json.dumps(body)[:-1].encode() + raw.encode() + b"}"


@pytest.mark.parametrize(
    ("path", "content"),
    [
        (CHAT, {"model": "llama", "messages": MESSAGES}),
        (COMPLETION, {"model": "llama", "prompt": "hi"}),
        (EMBEDDING, {"model": "embed", "input": "hi"}),
        (SCORE, {"model": "rank", "text_1": "a", "text_2": "b"}),
        ("/llama/v1/chat/completions", {"model": "llama", "messages": MESSAGES}),
    ],
)
def test_gateway_adds_a_salt_of_the_tenant_to_a_shared_model(receive, path, content):
    for name in ("acme", "search"):
        assert json.loads(receive(path, content, name)) == content | {"cache_salt": compute_salt(name)}


def chunked(path, body, key):
    headers = [("Transfer-Encoding", "chunked"), ("Content-Type", "application/json")]
    start = build_request(path, headers=headers, method="POST", key=key)
    half = len(body) // 2
    parts = b"".join(b"%x\r\n%s\r\n" % (len(part), part) for part in (body[:half], body[half:]) if part)
    return start + parts + b"0\r\n\r\n"


@pytest.mark.parametrize("build", [build_request, chunked], ids=["length", "chunks"])
@pytest.mark.parametrize("size", [0, 5_000, 60_000, 200_000, 1_048_000])
def test_salt_reaches_bodies_of_every_size(receive, size, build):
    body = chat(filler="}" * size)
    assert json.loads(receive(CHAT, body, build=build)) == json.loads(body) | {"cache_salt": compute_salt("acme")}


@pytest.mark.parametrize("after", ["", " ", "\r\n\t \n", " " * 5_000])
def test_salt_is_added_before_whitespace_at_the_end(receive, after):
    body = chat() + after.encode()
    assert json.loads(receive(CHAT, body)) == json.loads(body) | {"cache_salt": compute_salt("acme")}


OTHER = compute_salt("search")
ATTEMPTS = {
    "the salt of another tenant": f',"cache_salt":"{OTHER}"',
    "twice": f',"cache_salt":"mine","cache_salt":"{OTHER}"',
    "escaped": f',"cache\\u005fsalt":"{OTHER}"',
    "null": ',"cache_salt":null',
    "empty": ',"cache_salt":""',
    "a number": ',"cache_salt":1',
    "spaces": f',"cache_salt" \r\n:\t"{OTHER}"',
    "a line of the other tenant": ',"cache_salt":"x\\nsearch"',
    "in a text": f',"x":"\\"cache_salt\\":\\"{OTHER}\\""',
    "in an object": f',"x":{{"cache_salt":"{OTHER}"}}',
    "a bracket at the end": ',"x":"}"',
    "a quote at the end": ',"x":"\\"}\\\\"',
}


@pytest.mark.parametrize("raw", ATTEMPTS.values(), ids=ATTEMPTS)
@pytest.mark.parametrize("filler", ["", "x" * 5_000], ids=["small", "large"])
def test_client_cannot_choose_the_salt_of_another_tenant(receive, raw, filler):
    body = chat(raw, filler)
    received = json.loads(receive(CHAT, body))
    salt = received.pop("cache_salt")
    expected = json.loads(body)
    expected.pop("cache_salt", None)
    assert received == expected
    assert salt != OTHER
    assert len(salt) == 64


def test_salt_of_a_client_separates_its_own_users(receive):
    def salt(own, tenant="acme"):
        return json.loads(receive(CHAT, chat(f',"cache_salt":"{own}"'), tenant))["cache_salt"]

    salts = [salt("one"), salt("two"), salt("one", "search")]
    assert salts == [compute_salt("acme", "one"), compute_salt("acme", "two"), compute_salt("search", "one")]


def test_salt_that_a_gateway_has_set_before_stays(receive):
    """As that of a gateway of another cluster, which forwards the request."""
    body = chat(f',"cache_salt":"{compute_salt("acme")}"')
    assert json.loads(receive(CHAT, body))["cache_salt"] == compute_salt("acme")


@pytest.mark.parametrize("name", ["team", "alone"])
def test_body_is_unchanged_when_the_tenants_share_or_are_one(receive, name):
    body = json.dumps({"model": name, "messages": MESSAGES, "cache_salt": "mine"}).encode()
    assert receive(CHAT, body) == body


def test_upload_is_unchanged(receive):
    assert receive("/whisper/v1/audio/transcriptions", b"{}", "search") == b"{}"


def test_requests_on_one_connection_get_the_salt_of_their_tenant(environment):
    gateway, one = environment
    before = len(one.requests)
    with gateway.connect() as connection:
        for name in ("acme", "search", "acme"):
            assert connection.request(CHAT, json.loads(chat()), key=f"{name}-key").status == 200
    found = [json.loads(request.body)["cache_salt"] for request in one.requests[before:]]
    assert found == [compute_salt("acme"), compute_salt("search"), compute_salt("acme")]


def test_retried_request_has_the_salt_once(environment):
    gateway, one = environment
    bodies = []

    async def lose(request, reply):
        bodies.append(request.body)
        if len(bodies) == 1:
            reply.drop()
        else:
            await one.echo(request, reply)

    one.respond = lose
    try:
        assert gateway.request(CHAT, json.loads(chat())).status == 200
    finally:
        one.respond = one.echo
    assert len(bodies) == 2
    assert bodies[0] == bodies[1]
    assert bodies[0].count(b"cache_salt") == 1


def test_secret_changes_the_salts_of_all_tenants():
    with start_upstreams("one") as (one,):
        values = minimal_values(one, build_values(one)) | {"prefixCache": {"salt": {"secretName": "salt"}}}
        with start_gateway(values, mounted={"salt/key": "a\0secret\n"}) as gateway:
            assert gateway.request(CHAT, json.loads(chat())).status == 200
    assert json.loads(one.requests[-1].body)["cache_salt"] == compute_salt("acme", secret=b"a\0secret\n")


def test_all_threads_keep_the_salt_when_the_secret_changes():
    """Until the pod restarts. A new connection can have another thread."""
    with start_upstreams("one") as (one,):
        values = minimal_values(one, build_values(one)) | {"prefixCache": {"salt": {"secretName": "salt"}}}
        with start_gateway(values, mounted={"salt/key": "first"}) as gateway:
            replace_file(gateway.folder / "salt" / "key", "second")
            for _ in range(20):
                assert gateway.request(CHAT, json.loads(chat())).status == 200
    assert {json.loads(request.body)["cache_salt"] for request in one.requests} == {
        compute_salt("acme", secret=b"first")
    }


@pytest.mark.parametrize("text", ["", "\n", " \r\n\t"])
def test_gateway_with_an_empty_salt_is_not_ready_and_sends_nothing(text):
    with start_upstreams("one") as (one,):
        values = minimal_values(one, build_values(one)) | {"prefixCache": {"salt": {"secretName": "salt"}}}
        with start_gateway(values, mounted={"salt/key": text}, is_ready=False) as gateway:
            reason = (503, "the Secret of prefixCache.salt is empty")
            wait_for(lambda: gateway.request_metrics_port("/readyz") == reason, "the reason")
            refused = gateway.request(CHAT, json.loads(chat()))
            assert (refused.status, refused.error["code"]) == (503, "salt_missing")
            assert not one.requests
            replace_file(gateway.folder / "salt" / "key", "secret")
            wait_for(lambda: gateway.is_ready, "the gateway is ready")
            assert gateway.request(CHAT, json.loads(chat())).status == 200
    assert json.loads(one.requests[-1].body)["cache_salt"] == compute_salt("acme", secret=b"secret")


def test_salt_and_token_limits_work_together():
    with start_upstreams("one") as (one,):
        values = minimal_values(one, build_values(one))
        values["tenants"]["acme"]["tokensPerMinute"] = 1_000_000
        with start_gateway(values) as gateway:
            assert gateway.request(CHAT, json.loads(chat())).status == 200
    assert json.loads(one.requests[-1].body)["cache_salt"] == compute_salt("acme")


def test_gateway_without_shared_models_has_no_filter():
    with start_upstreams("one") as (one,), start_gateway(minimal_values(one)) as gateway:
        assert not (gateway.folder / "salt.lua").exists()
        text = (gateway.folder / "haproxy.cfg").read_text()
        assert not [word for word in ("filter", "salt.lua", "has_salt") if word in text]


@pytest.mark.parametrize("build", [build_request, chunked], ids=["length", "chunks"])
def test_random_bodies_keep_all_other_fields(environment, build):
    gateway, one = environment
    chance, compared = random.Random(18), 0
    for _ in range(10):
        bodies = [mutate(chance) for _ in range(80)]
        before = len(one.requests)
        sent = b"".join(build(CHAT, body, key="acme-key") for body in bodies)
        *responses, _ = collect_responses(gateway, sent + LAST)
        passed = [body for body, response in zip(bodies, responses, strict=True) if response.status == 200]
        for body, request in zip(passed, one.requests[before:], strict=True):
            try:
                expected = json.loads(body)
            except (ValueError, RecursionError):
                continue
            expected["cache_salt"] = json.loads(request.body)["cache_salt"]
            assert json.dumps(json.loads(request.body), sort_keys=True) == json.dumps(expected, sort_keys=True)
            compared += 1
    assert compared > 50, "enough random bodies must be valid"
