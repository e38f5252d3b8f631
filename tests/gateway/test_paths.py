"""Paths: only the configured ones are served."""

import pytest

from gateway.kit import endpoint, minimal_values, model, start_gateway, start_upstreams
from gateway.kit.connection import build_request
from gateway.kit.hostile import collect_responses, malformed


@pytest.fixture(scope="module")
def environment():
    with start_upstreams("one", "two") as (one, two):
        ends = {"stable": {"routePrefix": "/", "endpoints": {"two": endpoint(two)}}}
        values = {
            "tenants": {
                "acme": {"models": ["llama", "org/sees.v2", "painter", "whisper", "speaks", "embed", "rank", "direct"]}
            },
            "models": {
                "org/sees.v2": model(two, route="/sees"),
                "whisper": {"task": "transcribe", "path": "/audio", "versions": ends},
                "speaks": {"task": "speak", "versions": ends},
                "embed": {"task": "embed", "versions": ends},
                "direct": model(two, route="/direct") | {"dataPath": "Direct"},
                "rank": {"task": "rerank", "versions": ends},
                "painter": {
                    "task": "custom",
                    "versions": {"stable": {"routePrefix": "/paint", "endpoints": {"two": endpoint(two)}}},
                    "operations": {"/v1/images/generations": {}, "/v1/styles": {"method": "GET"}},
                },
            },
        }
        with start_gateway(minimal_values(one, values)) as gateway:
            yield gateway, [one, two]


@pytest.fixture
def forwarded(environment):
    """Paths that the upstreams received."""
    return lambda: [item.path for upstream in environment[1] for item in upstream.requests]


@pytest.mark.parametrize(
    ("address", "name", "upstream"),
    [
        ("/v1/chat/completions", "llama", "/app/v1/chat/completions"),
        ("/v1/completions", "llama", "/app/v1/completions"),
        ("/llama/v1/chat/completions", "llama", "/app/v1/chat/completions"),
        ("/org/sees.v2/v1/chat/completions", "org/sees.v2", "/sees/v1/chat/completions"),
        ("/v1/chat/completions", "org/sees.v2", "/sees/v1/chat/completions"),
        ("/v1/embeddings", "embed", "/v1/embeddings"),
        ("/v1/responses", "direct", "/direct/v1/responses"),
        ("/v1/messages", "direct", "/direct/v1/messages"),
        ("/direct/v1/messages/count_tokens", "direct", "/direct/v1/messages/count_tokens"),
        ("/tokenize", "direct", "/direct/tokenize"),
        ("/v1/score", "rank", "/v1/score"),
        ("/speaks/v1/audio/speech", "speaks", "/v1/audio/speech"),
        ("/v1/audio/speech", "speaks", "/v1/audio/speech"),
    ],
)
def test_path_is_rewritten_to_that_of_the_application(gateway, address, name, upstream):
    assert gateway.request(address, {"model": name}).json()["path"] == upstream


@pytest.mark.parametrize(
    ("address", "name"),
    [
        ("/v1/responses", "llama"),
        ("/llama/v1/messages", "llama"),
        ("/v1/rerank", "rank"),
        ("/embed/tokenize", "embed"),
        ("/audio/v1/audio/translations", "whisper"),
    ],
)
def test_path_that_the_data_path_lacks_gets_404_with_the_reason(gateway, forwarded, address, name):
    before = forwarded()
    response = gateway.request(address, {"model": name})
    assert (response.status, response.error["code"]) == (404, "operation_not_served")
    assert "data path Direct" in response.error["message"]
    assert forwarded() == before


def test_uploads_are_accepted_at_the_path_of_the_model_only(gateway):
    assert gateway.request("/audio/v1/audio/transcriptions", b"sound").json()["path"] == "/v1/audio/transcriptions"
    assert gateway.request("/v1/audio/transcriptions", b"sound").status == 404


def test_custom_application_has_its_configured_paths_only(gateway):
    made = gateway.request("/painter/v1/images/generations?size=1", {"prompt": "x"}).json()
    assert made["path"] == "/paint/v1/images/generations?size=1"
    assert gateway.request("/painter/v1/styles").json()["path"] == "/paint/v1/styles"
    assert gateway.request("/painter/v1/chat/completions", {"model": "painter"}).status == 404


def test_query_is_not_forwarded_for_known_operations(gateway):
    response = gateway.request("/v1/chat/completions?api-version=1&x=%0d%0a", {"model": "llama"})
    assert response.json()["path"] == "/app/v1/chat/completions"


def test_absolute_url_is_accepted(gateway):
    response = gateway.request("http://gateway.example/v1/chat/completions", {"model": "llama"})
    assert response.json()["path"] == "/app/v1/chat/completions"


@pytest.mark.parametrize(
    "path",
    [
        "/",
        "/redoc",
        "/metrics",
        "/readyz",
        "/-/healthz",
        "/-/routes",
        "/app/v1/chat/completions",
        "/v1",
        "/v1/",
        "/v1/models/",
        "/v1/chat/completions/",
        "//v1/chat/completions",
        "/v1//chat/completions",
        "/v1/./chat/completions",
        "/./v1/chat/completions",
        "/v1/../v1/chat/completions",
        "/llama/../v1/chat/completions",
        "/v1/chat/completions/..",
        "/v1/chat/completions/../../../-/routes",
        "/v1/chat%2fcompletions",
        "/v1/chat%2Fcompletions",
        "/%761/chat/completions",
        "/v1/%2e%2e/v1/chat/completions",
        "/v1%2f..%2fdocs",
        "/V1/chat/completions",
        "/v1/Chat/Completions",
        "/v1\\chat\\completions",
        "/v1/chat/completions;x=1",
        "/v1/chat/completions%00",
        "/v1/chat/completions%20",
        "/v1/tokenize",
        "/v1/responses/resp_1",
        "/LLAMA/v1/chat/completions",
        "/llama/v1/embeddings",
        "/whisper/v1/audio/transcriptions",
        "v1/chat/completions",
        "*",
    ],
)
def test_unknown_path_gets_404(gateway, forwarded, path):
    before = forwarded()
    for method in ("POST", "GET"):
        data = build_request(path, {"model": "llama"}, method=method, headers=[("Connection", "close")])
        responses = collect_responses(gateway, data)
        if path.startswith("/"):
            assert [response.status for response in responses] == [404]
            assert responses[0].error["code"] == "unknown_url"
        else:  # not a valid URL; newer versions of HAProxy refuse it themselves
            assert [response.status for response in responses] in malformed(400, 404)
    assert forwarded() == before


@pytest.mark.parametrize("method", ["GET", "HEAD", "PUT", "DELETE", "PATCH", "OPTIONS", "TRACE", "post", "INVENTED"])
def test_wrong_method_gets_405_with_allow(gateway, forwarded, method):
    before = forwarded()
    response = gateway.request("/v1/chat/completions", {"model": "llama"}, method=method)
    assert response.status == 405
    assert response.headers["allow"] == "POST"
    assert method == "HEAD" or response.error["code"] == "method_not_allowed"
    assert forwarded() == before
    assert gateway.request("/v1/models", {}, method="POST").headers["allow"] == "GET"
