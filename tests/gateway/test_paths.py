"""Addresses: those that there are, letter by letter, and nothing else."""

import pytest

from gateway.kit import endpoint, gateway, model, sites, smallest


@pytest.fixture(scope="module")
def place():
    with sites("one", "two") as (one, two):
        ends = {"stable": {"routePrefix": "/", "endpoints": {"two": endpoint(two)}}}
        values = {
            "tenants": {"acme": {"models": ["llama", "org/sees.v2", "painter", "whisper", "speaks", "embed", "rank"]}},
            "models": {
                "org/sees.v2": model(two, route="/sees"),
                "whisper": {"task": "transcribe", "path": "/audio", "versions": ends},
                "speaks": {"task": "speak", "versions": ends},
                "embed": {"task": "embed", "versions": ends},
                "rank": {"task": "rerank", "versions": ends},
                "painter": {
                    "task": "custom",
                    "versions": {"stable": {"routePrefix": "/paint", "endpoints": {"two": endpoint(two)}}},
                    "operations": {"/v1/images/generations": {}, "/v1/styles": {"method": "GET"}},
                },
            },
        }
        with gateway(smallest(one, values)) as door:
            yield door, [one, two]


@pytest.fixture
def door(place):
    return place[0]


@pytest.fixture
def asked(place):
    """Paths that arrived upstream."""
    return lambda: [item.path for site in place[1] for item in site.asked]


@pytest.mark.parametrize(
    ("address", "name", "upstream"),
    [
        ("/v1/chat/completions", "llama", "/app/v1/chat/completions"),
        ("/v1/completions", "llama", "/app/v1/completions"),
        ("/llama/v1/chat/completions", "llama", "/app/v1/chat/completions"),
        ("/org/sees.v2/v1/chat/completions", "org/sees.v2", "/sees/v1/chat/completions"),
        ("/v1/chat/completions", "org/sees.v2", "/sees/v1/chat/completions"),
        ("/v1/embeddings", "embed", "/v1/embeddings"),
        ("/v1/score", "rank", "/v1/score"),
        ("/speaks/v1/audio/speech", "speaks", "/v1/audio/speech"),
        ("/v1/audio/speech", "speaks", "/v1/audio/speech"),
    ],
)
def test_the_address_becomes_that_of_the_application(door, address, name, upstream):
    assert door.ask(address, {"model": name}).json()["path"] == upstream


def test_a_streamed_body_is_reached_by_the_models_own_address_alone(door):
    assert door.ask("/audio/v1/audio/transcriptions", b"sound").json()["path"] == "/v1/audio/transcriptions"
    assert door.ask("/v1/audio/transcriptions", b"sound").status == 404


def test_a_custom_application_has_the_addresses_that_were_named(door):
    made = door.ask("/painter/v1/images/generations?size=1", {"prompt": "x"}).json()
    assert made["path"] == "/paint/v1/images/generations?size=1"
    assert door.ask("/painter/v1/styles").json()["path"] == "/paint/v1/styles"
    assert door.ask("/painter/v1/chat/completions", {"model": "painter"}).status == 404


def test_the_query_of_a_known_operation_does_not_go_up(door):
    answer = door.ask("/v1/chat/completions?api-version=1&x=%0d%0a", {"model": "llama"})
    assert answer.json()["path"] == "/app/v1/chat/completions"


def test_an_address_may_be_whole(door):
    answer = door.ask("http://gateway.example/v1/chat/completions", {"model": "llama"})
    assert answer.json()["path"] == "/app/v1/chat/completions"


@pytest.mark.parametrize(
    "path",
    [
        "/",
        "/docs",
        "/openapi.json",
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
        "/tokenize",
        "/v1/responses",
        "/LLAMA/v1/chat/completions",
        "/llama/v1/embeddings",
        "/whisper/v1/audio/transcriptions",
        "v1/chat/completions",
        "*",
    ],
)
def test_any_other_address_is_nowhere(door, asked, path):
    before = asked()
    for method in ("POST", "GET"):
        answer = door.ask(path, {"model": "llama"}, method=method)
        if path.startswith("/"):
            assert answer.status == 404
            assert answer.error["code"] == "unknown_url"
        else:  # no address in HTTP, which newer versions of HAProxy say in their own words
            assert answer.status in (400, 404)
    assert asked() == before


@pytest.mark.parametrize("method", ["GET", "HEAD", "PUT", "DELETE", "PATCH", "OPTIONS", "TRACE", "post", "INVENTED"])
def test_another_method_is_refused_with_the_one_that_is_right(door, asked, method):
    before = asked()
    answer = door.ask("/v1/chat/completions", {"model": "llama"}, method=method)
    assert answer.status == 405
    assert answer.headers["allow"] == "POST"
    assert method == "HEAD" or answer.error["code"] == "method_not_allowed"
    assert asked() == before
    assert door.ask("/v1/models", {}, method="POST").headers["allow"] == "GET"
