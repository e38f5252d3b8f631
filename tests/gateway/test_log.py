"""What is written down, and what is counted."""

import pytest

from gateway.kit import eventually, gateway, sites, smallest, tenant

PROMPT = "the-secret-of-the-prompt"
FIELDS = {
    "time",
    "request_id",
    "client",
    "tenant",
    "key",
    "model",
    "version",
    "operation",
    "endpoint",
    "status",
    "request_bytes",
    "response_bytes",
    "read_ms",
    "connect_ms",
    "first_byte_ms",
    "total_ms",
    "retries",
    "termination_state",
}


@pytest.fixture(scope="module")
def door():
    with sites("one") as (one,):
        other = {"tenants": {"slow": tenant("slow", ["llama"], requestsPerMinute=1)}}
        with gateway(smallest(one, other)) as door:
            yield door


def line(door, name, *args, **options):
    """The log's line of a request."""
    headers = [("X-Request-Id", name), *options.pop("headers", [])]
    door.ask(*args, headers=headers, **options)
    return door.logged(name)


CHAT = "/v1/chat/completions"


def test_a_request_is_one_line_of_json(door):
    found = line(door, "good", CHAT, {"model": "llama", "messages": [{"content": PROMPT}]})
    assert set(found) == FIELDS
    told = ("tenant", "key", "model", "version", "operation", "endpoint", "status", "client")
    assert [found[name] for name in told] == ["acme", "main", "llama", "stable", CHAT, "one", 200, "127.0.0.1"]
    for name in FIELDS:
        if name.endswith(("_ms", "_bytes")):
            assert found[name] >= 0
    assert found["request_bytes"] > 100
    assert found["response_bytes"] > 100


def test_what_was_refused_is_there_too_without_a_word_of_the_clients(door):
    assert line(door, "nobody", CHAT, {}, key="unknown-key")["tenant"] == "-"
    wrong = line(door, "wrong", CHAT, {"model": PROMPT})
    assert (wrong["tenant"], wrong["status"], wrong["model"]) == ("acme", 404, "-")
    assert line(door, "version", CHAT, {"model": "llama"}, headers=[("X-Model-Version", PROMPT)])["version"] == "-"
    assert line(door, "path", f"/{PROMPT}?{PROMPT}")["operation"] == "-"
    assert line(door, "method", CHAT, method=PROMPT.upper())["status"] == 405
    door.chat(key="slow-key")
    assert line(door, "late", CHAT, {"model": "llama"}, key="slow-key")["status"] == 429
    assert PROMPT not in door.said
    assert PROMPT.upper() not in door.said
    assert "unknown-key" not in door.said


@pytest.mark.parametrize("given", ['a"b', "a b", "ü", "x" * 65, "a\tb", "{}", "%[rand]", "a,b", ""])
def test_a_request_id_of_strange_letters_is_replaced(door, given):
    answer = door.chat(headers=[("X-Request-Id", given)])
    name = answer.headers["x-request-id"]
    assert len(name) == 36
    assert dict(answer.json()["headers"])["x-request-id"] == name
    assert door.logged(name)["status"] == 200


def test_a_request_id_is_passed_on_and_back(door):
    given = "Trace.1_2-" + "x" * 54
    answer = door.chat(headers=[("X-Request-Id", given)])
    assert answer.headers["x-request-id"] == given
    assert dict(answer.json()["headers"])["x-request-id"] == given
    assert door.chat(key=None, headers=[("X-Request-Id", given + "-")]).headers["x-request-id"] != given + "-"
    assert door.chat(key=None, headers=[("X-Request-Id", "refused")]).headers["x-request-id"] == "refused"


def test_two_request_ids_are_none(door):
    answer = door.chat(headers=[("X-Request-Id", "a"), ("X-Request-Id", "b")])
    assert len(answer.headers["x-request-id"]) == 36


def test_every_line_on_stdout_is_json(door):
    door.send(b"nonsense\r\n\r\n")
    assert eventually(lambda: [item for item in door.requests if item["status"] == 400], "the nonsense is told")


def test_metrics_count_requests_by_version_and_those_in_flight(door):
    before = door.metric("haproxy_backend_http_requests_total", proxy="llama:stable")
    door.chat()
    assert door.metric("haproxy_backend_http_requests_total", proxy="llama:stable") == before + 1
    assert door.metric("haproxy_backend_http_responses_total", proxy="llama:stable", code="2xx") > 0
    assert door.metric("haproxy_frontend_http_responses_total", proxy="http", code="4xx") >= 0
    assert door.metric("haproxy_backend_current_sessions", proxy="llama:stable") == 0


def test_the_metrics_port_has_nothing_else(door):
    assert door.watch("/stats")[0] == 404
    assert door.watch("/v1/models")[0] == 404
    assert door.ask("/metrics").status == 404
