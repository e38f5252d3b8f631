"""Access log and metrics."""

import pytest

from gateway.kit import minimal_values, start_gateway, start_upstreams, tenant, wait_for

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
    "circuit",
}


@pytest.fixture(scope="module")
def gateway():
    with start_upstreams("one") as (one,):
        other = {
            "tenants": {"slow": tenant("slow", ["llama"], requestsPerMinute=1)},
            "circuit": {"enabled": True},
        }
        with start_gateway(minimal_values(one, other)) as gateway:
            yield gateway


def log_entry(gateway, name, *args, **options):
    """Send a request and return its log entry."""
    headers = [("X-Request-Id", name), *options.pop("headers", [])]
    gateway.request(*args, headers=headers, **options)
    return gateway.log_entry(name)


CHAT = "/v1/chat/completions"


def test_log_has_one_json_line_per_request(gateway):
    found = log_entry(gateway, "good", CHAT, {"model": "llama", "messages": [{"content": PROMPT}]})
    assert set(found) == FIELDS
    names = ("tenant", "key", "model", "version", "operation", "endpoint", "status", "client")
    assert [found[name] for name in names] == ["acme", "main", "llama", "stable", CHAT, "one", 200, "127.0.0.1"]
    for name in FIELDS:
        if name.endswith(("_ms", "_bytes")):
            assert found[name] >= 0
    assert found["request_bytes"] > 100
    assert found["response_bytes"] > 100


def test_log_of_refused_requests_has_no_client_text(gateway):
    assert log_entry(gateway, "unknown", CHAT, {}, key="unknown-key")["tenant"] == "-"
    wrong = log_entry(gateway, "wrong", CHAT, {"model": PROMPT})
    assert (wrong["tenant"], wrong["status"], wrong["model"]) == ("acme", 404, "-")
    assert (
        log_entry(gateway, "version", CHAT, {"model": "llama"}, headers=[("X-Model-Version", PROMPT)])["version"] == "-"
    )
    assert log_entry(gateway, "path", f"/{PROMPT}?{PROMPT}")["operation"] == "-"
    assert log_entry(gateway, "method", CHAT, method=PROMPT.upper())["status"] == 405
    gateway.chat(key="slow-key")
    assert log_entry(gateway, "late", CHAT, {"model": "llama"}, key="slow-key")["status"] == 429
    assert PROMPT not in gateway.output
    assert PROMPT.upper() not in gateway.output
    assert "unknown-key" not in gateway.output


@pytest.mark.parametrize("given", ['a"b', "a b", "ü", "x" * 65, "a\tb", "{}", "%[rand]", "a,b", ""])
def test_request_id_with_unsafe_characters_is_replaced(gateway, given):
    response = gateway.chat(headers=[("X-Request-Id", given)])
    name = response.headers["x-request-id"]
    assert len(name) == 36
    assert dict(response.json()["headers"])["x-request-id"] == name
    assert gateway.log_entry(name)["status"] == 200


def test_request_id_is_forwarded_and_returned(gateway):
    given = "Trace.1_2-" + "x" * 54
    response = gateway.chat(headers=[("X-Request-Id", given)])
    assert response.headers["x-request-id"] == given
    assert dict(response.json()["headers"])["x-request-id"] == given
    assert gateway.chat(key=None, headers=[("X-Request-Id", given + "-")]).headers["x-request-id"] != given + "-"
    assert gateway.chat(key=None, headers=[("X-Request-Id", "refused")]).headers["x-request-id"] == "refused"


def test_request_id_is_replaced_when_there_are_two(gateway):
    response = gateway.chat(headers=[("X-Request-Id", "a"), ("X-Request-Id", "b")])
    assert len(response.headers["x-request-id"]) == 36


def test_every_line_on_stdout_is_json(gateway):
    gateway.send(b"nonsense\r\n\r\n")
    assert wait_for(
        lambda: [item for item in gateway.log_entries if item["status"] == 400], "the invalid request is logged"
    )


def test_metrics_count_requests_by_version(gateway):
    counted = {
        "haproxy_backend_http_requests_total": {"proxy": "llama:stable"},
        "haproxy_backend_http_responses_total": {"proxy": "llama:stable", "code": "2xx"},
        "haproxy_frontend_http_responses_total": {"proxy": "http", "code": "4xx"},
    }

    def read_metrics():
        gateway.wait_until_idle()
        return [gateway.sum_metric(name, **labels) for name, labels in counted.items()]

    before = read_metrics()
    assert gateway.chat().status == 200
    assert gateway.request("/unknown").status == 404
    assert [now - then for now, then in zip(read_metrics(), before, strict=True)] == [1, 1, 1]


def test_metrics_port_serves_metrics_only(gateway):
    assert gateway.request_metrics_port("/stats")[0] == 404
    assert gateway.request_metrics_port("/v1/models")[0] == 404
    assert gateway.request("/metrics").status == 404
