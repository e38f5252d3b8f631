"""Bounds of a tenant's requests to a model: output tokens and bytes of the body."""

import json
import random

import pytest

from gateway.kit import minimal_values, model, start_gateway, start_upstreams, tenant
from gateway.kit.connection import build_request
from gateway.kit.hostile import LAST, assert_unaffected, collect_responses

CHAT, COMPLETION = "/v1/chat/completions", "/v1/completions"
BOUND, BYTES = 1000, 9000
FILLER = "x" * 5000
"""Makes a body too long for the way of small bodies."""


@pytest.fixture(scope="module")
def environment():
    with start_upstreams("one") as (one,):
        both = ["llama", "qwen"]
        values = {
            "tenants": {
                "acme": {"models": both, "maxOutputTokens": {"qwen": BOUND}, "maxBodyBytes": {"qwen": BYTES}},
                "free": tenant("free", both),
                "open": tenant("open", both, maxOutputTokens={"qwen": BOUND}, withoutMaxTokens="Forward"),
            },
            "models": {"qwen": model(one, prefixCache={"sharedReason": "the test compares bodies"})},
            "validation": {"enabled": True},
        }
        with start_gateway(minimal_values(one, values)) as gateway, assert_unaffected(gateway):
            yield gateway, one


def body(path, raw):
    """A body with these raw members after the prompt, and without a comma if there are none."""
    prompt = '"messages":[{"role":"user","content":"hi"}]' if path == CHAT else '"prompt":"hi"'
    return ("{" + ",".join([prompt, '"model":"qwen"', *([raw] if raw else [])]) + "}").encode()


ACCEPTED = [
    (CHAT, '"max_tokens":1000'),
    (CHAT, '"max_completion_tokens": 1000 ,"stream":true'),
    (CHAT, '"max_tokens":null,"max_completion_tokens":7'),
    (CHAT, '"max_tokens":250,"n":4'),
    (CHAT, '"max_tokens":5,"n":null'),
    (CHAT, '"tools":[{"max_tokens":5000}],"max_tokens":5'),
    (CHAT, '"m\\u0061x_tokens":5'),
    (COMPLETION, '"max_tokens":0'),
    (COMPLETION, '"max_tokens":1000'),
    (COMPLETION, '"prompt":["a","b"],"max_tokens":500'),
    (COMPLETION, '"prompt_embeds":["a","b"],"max_tokens":333'),
]
REFUSED = [
    (CHAT, '"max_tokens":1001', "max_tokens_exceeded"),
    (CHAT, '"max_completion_tokens":1001,"max_tokens":5', "max_tokens_exceeded"),
    (CHAT, '"max_tokens":99999999999999999999999', "max_tokens_exceeded"),
    (CHAT, '"max_tokens":501,"n":2', "max_tokens_exceeded"),
    (CHAT, '"max_tokens":9999999999,"n":9999999999', "max_tokens_exceeded"),
    (CHAT, '"m\\u0061x_tokens":5000', "max_tokens_exceeded"),
    (CHAT, '"max\\u005ftokens":5000', "max_tokens_exceeded"),
    (CHAT, '"ma\\u0078_tokens":5000', "max_tokens_exceeded"),
    (CHAT, '"max_tokens":5,"\\u006e":500', "max_tokens_exceeded"),
    (CHAT, "", "max_tokens_missing"),
    (CHAT, '"max_tokens":null', "max_tokens_missing"),
    (CHAT, '"tools":[{"max_tokens":5}]', "max_tokens_missing"),
    (CHAT, '"x":{"max_tokens":5}', "max_tokens_missing"),
    (CHAT, '"x":"\\"max_tokens\\":5,"', "max_tokens_missing"),
    (CHAT, '"x\\"max_tokens":5', "max_tokens_missing"),
    (CHAT, '"max_output_tokens":5', "max_tokens_missing"),
    (CHAT, '"max_tokens":"5000"', "invalid_max_tokens"),
    (CHAT, '"max_tokens":5e3', "invalid_max_tokens"),
    (CHAT, '"max_tokens":5000.0', "invalid_max_tokens"),
    (CHAT, '"max_tokens":-1', "invalid_max_tokens"),
    (CHAT, '"max_tokens":5,"max_tokens":5000', "invalid_max_tokens"),
    (CHAT, '"max_tokens":5,"max_tokens":null', "invalid_max_tokens"),
    (CHAT, '"max_tokens":5,"n":"900"', "invalid_max_tokens"),
    (CHAT, '"max_tokens":5,"n":1,"n":900', "invalid_max_tokens"),
    (COMPLETION, '"max_completion_tokens":5', "max_tokens_missing"),
    (COMPLETION, '"max_tokens":5000', "max_tokens_exceeded"),
    (COMPLETION, '"max_tokens":5,"prompt":["a"]', "invalid_max_tokens"),
    (COMPLETION, '"max_tokens":501,"prompt_embeds":["a","b"]', "max_tokens_exceeded"),
]


@pytest.mark.parametrize("filler", ["", FILLER], ids=["small", "large"])
@pytest.mark.parametrize(("path", "raw"), ACCEPTED)
def test_request_within_the_bound_is_forwarded(gateway, path, raw, filler):
    sent = body(path, raw)
    if '"prompt":[' in raw:
        sent = sent.replace(b'"prompt":"hi",', b"")
    assert gateway.request(path, sent[:-1] + b',"user":"%s"}' % filler.encode()).status == 200


@pytest.mark.parametrize("filler", ["", FILLER], ids=["small", "large"])
@pytest.mark.parametrize(("path", "raw", "code"), REFUSED)
def test_request_above_the_bound_gets_400(environment, path, raw, code, filler):
    gateway, one = environment
    before = len(one.requests)
    response = gateway.request(path, body(path, raw)[:-1] + b',"user":"%s"}' % filler.encode())
    assert response.status == 400
    assert (response.error["code"], response.error["param"]) == (code, "max_tokens")
    assert len(one.requests) == before
    assert gateway.request(path, body(path, raw), key="free-key").status == 200, "another tenant has no bound"


@pytest.mark.parametrize(("count", "status"), [(10, 200), (11, 400)])
def test_prompts_of_a_list_count(gateway, count, status):
    for prompts in (["a,[]\"'"] * count, [[1, 2]] * count):
        content = {"model": "qwen", "prompt": prompts, "max_tokens": 100}
        assert gateway.request(COMPLETION, content).status == status
    one_prompt = {"model": "qwen", "prompt": [1] * count, "max_tokens": 100}
    assert gateway.request(COMPLETION, one_prompt).status == 200


def test_error_names_the_bound(gateway):
    response = gateway.request(CHAT, body(CHAT, '"max_tokens":600,"n":2'))
    assert "asks for 1200 output tokens" in response.error["message"]
    assert f"is {BOUND}." in response.error["message"]


def test_another_model_has_no_bound(gateway):
    assert gateway.request(CHAT, body(CHAT, '"max_tokens":5000').replace(b"qwen", b"llama")).status == 200


def test_request_without_max_tokens_is_forwarded_when_the_tenant_allows_it(gateway):
    assert gateway.request(CHAT, body(CHAT, ""), key="open-key").status == 200
    response = gateway.request(CHAT, body(CHAT, '"max_tokens":5000'), key="open-key")
    assert response.error["code"] == "max_tokens_exceeded"


def test_body_above_the_bound_gets_413(environment):
    gateway, one = environment
    frame = body(CHAT, '"max_tokens":5,"user":"%s"')
    largest = frame.replace(b"%s", b"x" * (BYTES - len(frame) + 2))
    assert gateway.request(CHAT, largest).status == 200
    before = len(one.requests)
    response = gateway.request(CHAT, largest + b" ")
    assert response.status == 413
    assert response.error["code"] == "prompt_too_large"
    assert f"has {BYTES + 1} bytes" in response.error["message"]
    assert f"is {BYTES} bytes" in response.error["message"]
    assert len(one.requests) == before
    assert gateway.request(CHAT, largest + b" ", key="free-key").status == 200


# -- by chance -------------------------------------------------------------------------------------------------------

PARTS = [
    *(b'"max_tokens":5', b'"max_tokens":5', b'"max_tokens":5000', b'"max_completion_tokens":7', b'"max_tokens":null'),
    *(b'"m\\u0061x_tokens":5000', b'"max\\u005Ftokens":5', b'"max_tokens":"5000"', b'"max_tokens":5e3', b'"n":2'),
    *(b'"n":3000', b'"\\u006e":900', b'"n":null', b'"x":{"max_tokens":5}', b'"x":[{"max_tokens":5000}]', b'"n":1.0'),
    *(b'"x":"\\"max_tokens\\":5"', b'"x\\"max_tokens":5', b'"x":"max_tokens"', b'"x":"]"', b'"x":"{"', b'"x":"\\\\"'),
    *(b'"max_tokens" \t:\n 5 ', b'"max_completion_tokens":5000', b'"max_pixels":5', b'"max_tokens":true'),
]
BASE = [b'"model":"qwen"', b'"messages":[{"role":"user","content":"hi"}]']


def output_in_python(content):
    """The output tokens that vLLM would allow: it converts texts and floats to integers. None: no bound."""
    tokens = content.get("max_completion_tokens")
    tokens = content.get("max_tokens") if tokens is None else tokens
    copies = content.get("n")
    return None if tokens is None else int(tokens) * int(1 if copies is None else copies)


def test_random_bodies_never_exceed_the_bound(environment):
    gateway, one = environment
    chance, statuses = random.Random(4), []
    for _ in range(20):
        bodies = []
        for _ in range(80):
            parts = [*BASE, *chance.choices(PARTS, k=chance.randrange(1, 4))]
            chance.shuffle(parts)
            bodies.append(b"{" + b",".join(parts) + b"}" + b" " * chance.choice([0, 0, 5000]))
        before = len(one.requests)
        *responses, _ = collect_responses(gateway, b"".join(build_request(CHAT, each) for each in bodies) + LAST)
        statuses += [response.status for response in responses]
        passed = [each for each, response in zip(bodies, responses, strict=True) if response.status == 200]
        assert [request.body for request in one.requests[before:]] == passed
        for each in passed:
            tokens = output_in_python(json.loads(each))
            assert tokens is not None, each
            assert tokens <= BOUND, each
    assert statuses.count(200) > 100
    assert statuses.count(400) > 100
