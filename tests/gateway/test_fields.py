"""Checks of a request before a model server gets it: content type and required fields."""

import json
import random

import pytest

from gateway.kit import minimal_values, model, start_gateway, start_upstreams
from gateway.kit.connection import build_request
from gateway.kit.hostile import LAST, assert_unaffected, collect_responses

CHAT, COMPLETION, EMBEDDING, SCORE, SPEECH = (
    "/v1/chat/completions",
    "/v1/completions",
    "/v1/embeddings",
    "/v1/score",
    "/v1/audio/speech",
)
RESPONSES, MESSAGES, COUNT, RERANK = "/v1/responses", "/v1/messages", "/v1/messages/count_tokens", "/v2/rerank"
TOKENIZE, DETOKENIZE = "/tokenize", "/detokenize"
MODELS = {
    **dict.fromkeys((CHAT, COMPLETION, RESPONSES, MESSAGES, COUNT, TOKENIZE, DETOKENIZE), "llama"),
    **{EMBEDDING: "embed", SCORE: "rank", RERANK: "rank", SPEECH: "speaks"},
}
FILLER = "x" * 5000
"""Makes a body too long for the way of small bodies."""


@pytest.fixture(scope="module")
def environment():
    with start_upstreams("one") as (one,):
        tasks = {"embed": "embed", "rank": "rerank", "speaks": "speak"}
        values = {
            "tenants": {"acme": {"models": ["llama", *tasks]}},
            "models": {name: model(one, task=task, dataPath="Direct") for name, task in tasks.items()}
            | {"llama": {"dataPath": "Direct"}},
            "validation": {"enabled": True},
        }
        with start_gateway(minimal_values(one, values)) as gateway, assert_unaffected(gateway):
            yield gateway, one


def send(gateway, path, fields, more=""):
    return gateway.request(path, {"model": MODELS[path], **fields, "user": more})


ACCEPTED = [
    (CHAT, {"messages": [{"role": "user", "content": "hi"}]}),
    (CHAT, {"tools": [{"messages": None}], "messages": [{"role": "user", "content": "hi"}]}),
    (COMPLETION, {"prompt": "hi"}),
    (COMPLETION, {"prompt": ["hi", "ho"]}),
    (COMPLETION, {"prompt": [1, 2]}),
    (COMPLETION, {"prompt_embeds": "AAAA"}),
    (COMPLETION, {"prompt": None, "prompt_embeds": ["AAAA"]}),
    (EMBEDDING, {"input": "hi"}),
    (EMBEDDING, {"input": ["hi"]}),
    (EMBEDDING, {"messages": [{"role": "user", "content": "hi"}]}),
    (SCORE, {"text_1": "a", "text_2": ["b", "c"]}),
    (SCORE, {"queries": "a", "documents": ["b"]}),
    (SCORE, {"data_1": {"content": []}, "data_2": "b"}),
    (SPEECH, {"input": "hi"}),
    (RESPONSES, {"input": "hi"}),
    (RESPONSES, {"input": [{"role": "user", "content": "hi"}], "store": True}),
    (RESPONSES, {"input": "hi", "previous_response_id": None, "background": False, "conversation": None}),
    (RESPONSES, {"input": '"previous_response_id": "resp_1"', "metadata": {"background": "x"}}),
    (MESSAGES, {"messages": [{"role": "user", "content": "hi"}], "max_tokens": 1}),
    (COUNT, {"messages": [{"role": "user", "content": "hi"}]}),
    (RERANK, {"query": "a", "documents": ["b"]}),
    (TOKENIZE, {"prompt": "hi"}),
    (TOKENIZE, {"messages": [{"role": "user", "content": "hi"}]}),
    (DETOKENIZE, {"tokens": [1]}),
]
REFUSED = [
    (RESPONSES, {}, "missing_field", "input"),
    (RESPONSES, {"input": "hi", "previous_response_id": "resp_1"}, "state_not_supported", "previous_response_id"),
    (RESPONSES, {"input": "hi", "conversation": {"id": "c"}}, "state_not_supported", "conversation"),
    (RESPONSES, {"background": True, "input": "hi"}, "state_not_supported", "background"),
    (RESPONSES, {"input": "hi", "priority": 1}, "field_not_allowed", "priority"),
    (MESSAGES, {"max_tokens": 1}, "missing_field", "messages"),
    (RERANK, {"query": "a"}, "missing_field", "documents"),
    (DETOKENIZE, {"tokens": "a"}, "invalid_field", "tokens"),
    (CHAT, {}, "missing_field", "messages"),
    (CHAT, {"messages": None}, "missing_field", "messages"),
    (CHAT, {"messages": []}, "invalid_field", "messages"),
    (CHAT, {"messages": "hi"}, "invalid_field", "messages"),
    (CHAT, {"messages": 7}, "invalid_field", "messages"),
    (CHAT, {"prompt": "hi"}, "missing_field", "messages"),
    (CHAT, {"x": {"messages": [{}]}}, "missing_field", "messages"),
    (CHAT, {"x": '"messages":[{}]'}, "missing_field", "messages"),
    (COMPLETION, {}, "missing_field", "prompt"),
    (COMPLETION, {"prompt": ""}, "invalid_field", "prompt"),
    (COMPLETION, {"prompt": True}, "invalid_field", "prompt"),
    (COMPLETION, {"prompt_embeds": 1}, "invalid_field", "prompt_embeds"),
    (EMBEDDING, {"text": "hi"}, "missing_field", "input"),
    (EMBEDDING, {"input": []}, "invalid_field", "input"),
    (SCORE, {}, "missing_field", "text_1"),
    (SCORE, {"text_1": "a"}, "missing_field", "text_2"),
    (SCORE, {"queries": "a"}, "missing_field", "documents"),
    (SPEECH, {"input": ["hi"]}, "invalid_field", "input"),
]


@pytest.mark.parametrize("filler", ["", FILLER], ids=["small", "large"])
@pytest.mark.parametrize(("path", "fields"), ACCEPTED)
def test_request_with_required_fields_is_forwarded(gateway, path, fields, filler):
    assert send(gateway, path, fields, filler).status == 200


@pytest.mark.parametrize("filler", ["", FILLER], ids=["small", "large"])
@pytest.mark.parametrize(("path", "fields", "code", "field"), REFUSED)
def test_request_without_required_fields_gets_400(environment, path, fields, code, field, filler):
    gateway, one = environment
    before = len(one.requests)
    response = send(gateway, path, fields, filler)
    assert response.status == 400
    assert (response.error["code"], response.error["param"]) == (code, field)
    assert f" {field}" in response.error["message"]
    assert len(one.requests) == before


BODY = json.dumps({"model": "llama", "messages": [{"role": "user", "content": "hi"}]}).encode()


def with_types(*types):
    start = build_request(CHAT, headers=[("Content-Type", each) for each in types], method="POST")
    return start[:-2] + b"Content-Length: %d\r\n\r\n" % len(BODY) + BODY


@pytest.mark.parametrize(
    "kind",
    ["application/json", "Application/JSON", "application/json; charset=utf-8", "application/json;charset=UTF-8"],
)
def test_json_content_type_is_accepted(gateway, kind):
    assert gateway.send(with_types(kind)).status == 200


@pytest.mark.parametrize(
    "types",
    [
        (),
        ("text/plain",),
        ("application/x-www-form-urlencoded",),
        ("application/jsonp",),
        ("text/plain; application/json;",),
        ("application/json", "application/json"),
        ("text/plain", "application/json"),
    ],
)
def test_other_content_type_gets_415(environment, types):
    gateway, one = environment
    before = len(one.requests)
    response = gateway.send(with_types(*types))
    assert response.status == 415
    assert response.error["code"] == "unsupported_media_type"
    assert len(one.requests) == before


# -- by chance -------------------------------------------------------------------------------------------------------

PARTS = [
    *(b'"model":"llama"', b'"model":"llama"', b'"model":"llama"'),
    *(b'"messages":[{"role":"user","content":"hi"}]', b'"messages":[]', b'"messages":null', b'"messages":"x"'),
    *(b'"m\\u0065ssages":[{}]', b'"messages" \n: [ {} ]', b'"messages":[ ]', b'"x\\"messages":[{}]', b'"x\\\\":1'),
    *(b'"x":{"messages":[{}]}', b'"x":"messages"', b'"x":"\\"messages\\":[{}]"', b'"x":"["', b'"x":"}"', b'"x":[1]'),
]


def pairs_in_python(body):
    """The outermost members of a body, also those with equal names; None if Python refuses it."""
    try:
        return json.loads(body, object_pairs_hook=list)
    except ValueError:
        return None


def test_random_bodies_without_messages_are_not_forwarded(environment):
    """Of two fields `messages`, Python takes the last one. The gateway may take either."""
    gateway, one = environment
    chance, statuses = random.Random(4), []
    for _ in range(20):
        bodies = [b"{" + b",".join(chance.choices(PARTS, k=chance.randrange(1, 5))) + b"}" for _ in range(80)]
        before = len(one.requests)
        *responses, _ = collect_responses(gateway, b"".join(build_request(CHAT, body) for body in bodies) + LAST)
        passed = [body for body, response in zip(bodies, responses, strict=True) if response.status == 200]
        assert [request.body for request in one.requests[before:]] == passed
        for body, response in zip(bodies, responses, strict=True):
            statuses.append(response.status)
            pairs = pairs_in_python(body)
            assert pairs is not None, body
            values = [value for name, value in pairs if name == "messages"]
            good = [isinstance(value, list) and value != [] for value in values]
            if response.status == 200:
                assert any(good), body
            elif response.error["code"] in ("missing_field", "invalid_field"):
                assert not all(good) or not good, body
    assert statuses.count(200) > 100
    assert statuses.count(400) > 100
