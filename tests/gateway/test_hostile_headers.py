"""Headers: forged, injected, doubled, endless. Whoever is behind the gateway believes only what the gateway says."""

import json

import pytest

from gateway.kit import gateway, model, sites, smallest, tenant
from gateway.kit.hostile import talk, unshaken

BODY = b'{"model":"llama"}'


@pytest.fixture(scope="module")
def place():
    with sites("one") as (one,):
        values = {
            "tenants": {"boss": tenant("boss", ["llama", "secret"])},
            "models": {"secret": model(one)},
            "timeouts": {"headerSeconds": 1, "bodySeconds": 1},
        }
        with gateway(smallest(one, values)) as door, unshaken(door):
            yield door, one


@pytest.fixture
def said(place):
    """What comes of some bytes."""
    return lambda data: talk(*place, data)


def asks(*headers, key=b"Authorization: Bearer acme-key", body=BODY):
    start = [b"POST /v1/chat/completions HTTP/1.1", b"Host: x", key, b"Content-Length: %d" % len(body)]
    return b"\r\n".join([*filter(None, start), *headers, b"", b""]) + body


def values_of(asked, name):
    return [value for key, value in asked.headers if key == name]


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
        b"X-API-Key: boss-key",
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
def test_nobody_speaks_for_another(said, header):
    found = said(asks(header))
    assert (found.statuses, found.in_step) == ([200], True)
    (asked,) = found.asked
    assert values_of(asked, "x-rayhelm-tenant") == ["acme"]
    assert "boss" not in json.dumps(asked.headers)
    assert "10.0.0.1" not in json.dumps(asked.headers)


@pytest.mark.parametrize("name", ["x-rayhelm-tenant", "x-request-id", "content-length", "host", "close, x-request-id"])
def test_no_header_of_ours_is_named_for_this_hop_alone(said, name):
    """A proxy further up takes out what `connection` names."""
    found = said(asks(f"Connection: {name}".encode()))
    (asked,) = found.asked
    assert values_of(asked, "connection") == []
    assert values_of(asked, "x-rayhelm-tenant") == ["acme"]
    assert len(values_of(asked, "x-request-id")) == 1


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
        b"X-API-Key: acme-key",
        b"Api-Key: acme-key",
        b"Cookie: Authorization=Bearer acme-key",
        b"X: y\x00Authorization: Bearer acme-key",
    ],
)
def test_without_exactly_one_good_key_nothing_goes_up(said, key):
    found = said(asks(key=key))
    assert found.statuses in ([401], [400])
    if found.statuses == [401]:
        assert found.answers[0].error["code"] == "invalid_api_key"
        assert found.answers[0].headers["www-authenticate"] == "Bearer"
    assert found.asked == []


def test_the_hash_of_a_key_is_no_key(said, place):
    door, _ = place
    (line,) = (door.folder / "keys" / "acme" / "keys").read_text().splitlines()
    found = said(asks(key=b"Authorization: Bearer " + line.split()[0].encode()))
    assert (found.statuses, found.asked) == ([401], [])


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
def test_a_request_id_that_could_break_a_log_is_replaced(said, place, value):
    found = said(asks(b"X-Request-Id: " + value))
    (asked,), (answer,) = found.asked, found.answers
    name = answer.headers["x-request-id"]
    assert values_of(asked, "x-request-id") == [name]
    assert len(name) == 36
    assert place[0].logged(name)["tenant"] == "acme"


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
def test_what_is_no_header_is_refused_and_the_connection_closed(said, header):
    found = said(asks(header))
    assert (found.statuses, found.in_step, found.asked) == ([400], False, [])


def test_a_line_feed_alone_begins_a_header_that_is_cleaned_like_any_other(said):
    found = said(asks(b"X: a\nX-Rayhelm-Tenant: boss\nAuthorization_: x"))
    (asked,) = found.asked
    assert values_of(asked, "x") == ["a"]
    assert values_of(asked, "x-rayhelm-tenant") == ["acme"]


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
def test_a_version_is_one_that_there_is(said, version, status):
    found = said(asks(b"X-Model-Version: " + version))
    assert found.statuses == [status]
    assert [values_of(asked, "x-model-version") for asked in found.asked] == ([[]] if status == 200 else [])


def test_the_host_is_one(said):
    for header in (b"Host: y", b"Host: x, y", b"Host: "):
        found = said(asks(header))
        assert (found.statuses, found.in_step, found.asked) == ([400], False, [])


def test_a_part_of_an_answer_is_not_to_be_had(said):
    found = said(asks(b"Range: bytes=0-1", b"If-Range: x", b"If-None-Match: *"))
    assert found.statuses == [200]
    assert found.answers[0].json()["site"] == "one"


# -- sizes -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("count", [1, 90])
def test_many_headers_go_up(said, count):
    found = said(asks(*(b"X-%d: y" % number for number in range(count))))
    assert found.statuses == [200]
    assert sum(name.startswith("x-") for name, _ in found.asked[0].headers) == count + 2


@pytest.mark.parametrize("count", [101, 1000, 60_000])
def test_more_headers_than_a_table_has_are_refused_and_the_connection_closed(said, count):
    found = said(asks(*(b"X-%d: y" % number for number in range(count))))
    assert (found.statuses, found.in_step, found.asked) == ([400], False, [])


@pytest.mark.parametrize("size", [17_000, 200_000, 900_000])
def test_large_headers_are_refused(said, size):
    found = said(asks(b"X: " + b"a" * size))
    assert ([answer.error["code"] for answer in found.answers], found.asked) == (["headers_too_large"], [])
    found = said(asks(b"X" * size + b": a"))
    assert (found.statuses, found.in_step, found.asked) == ([400], False, [])


def test_headers_that_no_buffer_holds_are_refused_and_the_connection_closed(said):
    found = said(asks(b"X: " + b"a" * 3_000_000))
    assert found.statuses in ([400], [414], [431])
    assert (found.in_step, found.asked) == (False, [])
