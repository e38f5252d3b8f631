"""Forged, injected, duplicate and oversized headers."""

import json

import pytest

from gateway.kit import minimal_values, model, start_gateway, start_upstreams, tenant
from gateway.kit.hostile import assert_malformed, assert_unaffected, exchange

BODY = b'{"model":"llama"}'


@pytest.fixture(scope="module")
def environment():
    with start_upstreams("one") as (one,):
        values = {
            "tenants": {"boss": tenant("boss", ["llama", "secret"])},
            "models": {"secret": model(one)},
        }
        with start_gateway(minimal_values(one, values)) as gateway, assert_unaffected(gateway):
            yield gateway, one


@pytest.fixture
def send(environment):
    """Send bytes and return the exchange."""
    return lambda data: exchange(*environment, data)


def build(*headers, key=b"Authorization: Bearer acme-key", body=BODY):
    start = [b"POST /v1/chat/completions HTTP/1.1", b"Host: x", key, b"Content-Length: %d" % len(body)]
    return b"\r\n".join([*filter(None, start), *headers, b"", b""]) + body


def header_values(request, name):
    return [value for key, value in request.headers if key == name]


# -- who asks --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "header",
    [
        b"X-Rayhelm-Tenant: boss",
        b"x-rayhelm-tenant:boss",
        b"X-RAYHELM-TENANT: boss",
        b"X-Rayhelm-Tenant: boss\r\nX-Rayhelm-Tenant: boss",
        b"X-Rayhelm-Tenant:\r\n boss",
        b"X_Rayhelm_Tenant: boss",
        b"X-Rayhelm_Tenant: boss",
        b"X.Rayhelm.Tenant: boss",
        b"X-Rayhelm-Model: secret",
        b"X-Rayhelm-Key: main",
        b"X-Tenant: boss",
        b"X-API-Key: acme-key",
        b"Api-Key: boss-key",
        b"Proxy-Authorization: Bearer boss-key",
        b"Cookie: session=boss-key",
        b"Forwarded: for=10.0.0.1;host=boss",
        b"X-Forwarded-For: 10.0.0.1",
        b"X-Forwarded-Host: boss",
        b"X-Forwarded-User: boss",
        b"X-Real-IP: 10.0.0.1",
        b"Via: 1.1 boss",
        b"X-Ray-Serve: boss",
        b"X-Serve-Multiplexed-Model-Id: boss",
        b"X-Session-Id: boss",
        b"Host: x\r\nX-Rayhelm-Tenant: boss",
        b"Content-Encoding: boss",
        b"Keep-Alive: boss",
        b"TE: boss",
        b"Trailer: boss",
        b"Proxy-Connection: boss",
        b"Connection: boss",
        b"Expect: boss",
    ],
)
def test_identity_headers_of_clients_are_not_forwarded(send, header):
    found = send(build(header))
    assert (found.statuses, found.in_sync) == ([200], True)
    (request,) = found.requests
    assert header_values(request, "x-rayhelm-tenant") == ["acme"]
    assert "boss" not in json.dumps(request.headers)
    assert "10.0.0.1" not in json.dumps(request.headers)


@pytest.mark.parametrize("name", ["x-rayhelm-tenant", "x-request-id", "content-length", "host", "close, x-request-id"])
def test_connection_header_cannot_drop_gateway_headers(send, name):
    """The next proxy removes the headers that `connection` names."""
    found = send(build(f"Connection: {name}".encode()))
    (request,) = found.requests
    assert header_values(request, "connection") == []
    assert header_values(request, "x-rayhelm-tenant") == ["acme"]
    assert len(header_values(request, "x-request-id")) == 1


@pytest.mark.parametrize(
    "key",
    [
        b"",
        b"Authorization:",
        b"Authorization: Bearer",
        b"Authorization: acme-key",
        b"Authorization: Basic acme-key",
        b"Authorization: Token acme-key",
        b"Authorization: Bearer acme-key, Bearer boss-key",
        b"Authorization: Bearer acme-key,boss-key",
        b"Authorization: Bearer acme-key\r\nAuthorization: Bearer boss-key",
        b"Authorization: Bearer acme-key\r\nAuthorization: Bearer acme-key",
        b"Authorization: Bearer no-key\r\nAuthorization: Bearer acme-key",
        b"Authorization: Bearer acme-key\r\nauthorization: Basic eDp5",
        b"Authorization: Bearer\tacme-key",
        b"Authorization: Bearer  acme-key",
        b"Authorization: Bearer ACME-KEY",
        b'Authorization: Bearer "acme-key"',
        b"Authorization: Bearer acme-key;",
        b"Authorization: Bearer acme-key\xc2\xa0",
        b"Authorization: Bearer acme-key x",
        b"Authorization: Bearer acme-ke",
        b"Authorization: Bearer acme-keyy",
        b"Authorization: Bearer 86d3b1e0b4e9f2a5",
        b"Authorization: Bearer keys.map",
        b"Authorization: Bearer %[var(txn.tenant)]",
        b"Authorization: Bearer " + b"a" * 16_000,
        b"Authorization: Digest username=acme, response=acme-key",
        b"Authorization : Bearer acme-key",
        b"Authorization_: Bearer acme-key",
        b"Proxy-Authorization: Bearer acme-key",
        b"X-API-Key: acme-ke",
        b"X-API-Key: Bearer acme-key",
        b"X-API-Key: " + b"a" * 16_000,
        b"Api-Key: acme-key",
        b"Cookie: Authorization=Bearer acme-key",
        b"X: y\x00Authorization: Bearer acme-key",
    ],
)
def test_nothing_is_forwarded_without_exactly_one_valid_key(send, key):
    found = send(build(key=key))
    assert found.statuses in ([401], [400])
    if found.statuses == [401]:
        assert found.responses[0].error["code"] == "invalid_api_key"
        assert found.responses[0].headers["www-authenticate"] == "Bearer"
    assert found.requests == []


def test_hash_of_a_key_is_not_accepted_as_key(send, environment):
    gateway, _ = environment
    (line,) = (gateway.folder / "keys" / "acme" / "keys").read_text().splitlines()
    found = send(build(key=b"Authorization: Bearer " + line.split()[0].encode()))
    assert (found.statuses, found.requests) == ([401], [])


# -- injection -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "value",
    [
        b'a"b',
        b"a b",
        b"a\tb",
        b"a,b",
        b"a%0d%0ab",
        b"a\\nb",
        b"\xe2\x80\xa8",
        b"\x01",
        b"",
        b"a" * 65,
        b'","tenant":"boss',
        b"%[var(txn.key)]",
        b"${HOME}",
        b"<script>",
        b"one\r\nX-Request-Id: two",
    ],
)
def test_unsafe_request_id_is_replaced(send, environment, value):
    found = send(build(b"X-Request-Id: " + value))
    (request,), (response,) = found.requests, found.responses
    name = response.headers["x-request-id"]
    assert header_values(request, "x-request-id") == [name]
    assert len(name) == 36
    assert environment[0].log_entry(name)["tenant"] == "acme"


@pytest.mark.parametrize(
    "header",
    [
        b"X: a\rX-Rayhelm-Tenant: boss",
        b"X: a\x00b",
        b"X",
        b": a",
        b"X Y: a",
        b"X(: a",
        b'"X": a',
        b"X\xc3\xa9: a",
        b"X : a",
    ],
)
def test_invalid_header_is_refused_and_connection_closed(send, header):
    found = send(build(header))
    assert_malformed(found)


def test_header_after_a_bare_line_feed_is_filtered_too(send):
    found = send(build(b"X: a\nX-Rayhelm-Tenant: boss\nAuthorization_: x"))
    (request,) = found.requests
    assert header_values(request, "x") == ["a"]
    assert header_values(request, "x-rayhelm-tenant") == ["acme"]


@pytest.mark.parametrize(
    ("version", "status"),
    [
        (b"stable", 200),
        (b"canary", 400),
        (b"stable\r\nX-Model-Version: stable", 400),
        (b"", 400),
        (b"*", 400),
        (b"stable,canary", 400),
        (b"../stable", 400),
        (b"stable\xc2\xa0", 400),
        (b"%[str(stable)]", 400),
        (b"a" * 16_000, 400),
    ],
)
def test_model_version_header_must_name_an_existing_version(send, version, status):
    found = send(build(b"X-Model-Version: " + version))
    assert found.statuses == [status]
    assert [header_values(request, "x-model-version") for request in found.requests] == ([[]] if status == 200 else [])


def test_invalid_or_second_host_is_refused(send):
    for header in (b"Host: y", b"Host: x, y", b"Host: "):
        found = send(build(header))
        assert_malformed(found)


def test_range_header_has_no_effect(send):
    found = send(build(b"Range: bytes=0-1", b"If-Range: x", b"If-None-Match: *"))
    assert found.statuses == [200]
    assert found.responses[0].json()["endpoint"] == "one"


# -- sizes -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("count", [1, 90])
def test_many_headers_are_forwarded(send, count):
    found = send(build(*(b"X-%d: y" % number for number in range(count))))
    assert found.statuses == [200]
    assert sum(name.startswith("x-") for name, _ in found.requests[0].headers) == count + 2


@pytest.mark.parametrize("count", [101, 1000, 60_000])
def test_too_many_headers_are_refused_and_connection_closed(send, count):
    found = send(build(*(b"X-%d: y" % number for number in range(count))))
    assert_malformed(found)


@pytest.mark.parametrize("size", [17_000, 200_000, 900_000])
def test_large_headers_are_refused(send, size):
    found = send(build(b"X: " + b"a" * size))
    assert ([response.error["code"] for response in found.responses], found.requests) == (["headers_too_large"], [])
    found = send(build(b"X" * size + b": a"))
    assert_malformed(found)


def test_headers_larger_than_a_buffer_close_the_connection(send):
    found = send(build(b"X: " + b"a" * 3_000_000))
    assert_malformed(found, 400, 414, 431)
