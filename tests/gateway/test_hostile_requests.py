"""Invalid request lines: methods, URLs, HTTP versions and other protocols."""

import pytest

from gateway.kit import minimal_values, model, start_gateway, start_upstreams, tenant
from gateway.kit.hostile import assert_malformed, assert_unaffected, exchange, malformed

BODY = b'{"model":"llama"}'
PATH = b"/v1/chat/completions"


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


def build(method=b"POST", path=PATH, version=b"HTTP/1.1", headers=(), body=BODY):
    lines = [b" ".join([method, path, version]), b"Host: x", b"Authorization: Bearer acme-key"]
    length = b"Content-Length: %d" % len(body)
    return b"\r\n".join([*lines, length, *headers, b"", b""]) + body


# -- methods ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "method",
    [b"post", b"Post", b"OPTIONS", b"TRACE", b"PUT", b"PATCH", b"DELETE", b"PROPFIND", b"POSTX", b"X" * 5000],
)
def test_wrong_method_is_refused_and_connection_stays_open(send, method):
    found = send(build(method=method))
    assert (found.statuses, found.in_sync, found.requests) == ([405], True, [])
    assert found.responses[0].headers["allow"] == "POST"


@pytest.mark.parametrize(
    "method",
    [b"CONNECT", b"", b"P OST", b"P\x00ST", b"P\rOST", b"G@T", b"G(T", b"\xc3\x89", b'"POST"', b"POST:", b"{}"],
)
def test_invalid_method_is_refused_and_connection_closed(send, method):
    found = send(build(method=method))
    assert_malformed(found)


@pytest.mark.parametrize(
    "header", [b"X-HTTP-Method-Override: DELETE", b"X-HTTP-Method: PUT", b"X-Method-Override: GET", b"Max-Forwards: 0"]
)
def test_method_override_header_has_no_effect(send, header):
    found = send(build(headers=[header]))
    assert found.statuses == [200]
    assert found.requests[0].method == "POST"


# -- addresses -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "path",
    [
        b"//v1/chat/completions",
        b"/v1//chat/completions",
        b"/%2e%2e/v1/chat/completions",
        b"/v1/%2e/chat/completions",
        b"/v1/..;/v1/chat/completions",
        b"/v1/chat/completions;x",
        b"/v1/chat/completions;x=/../../secret",
        b"/v1/chat/completions%00",
        b"/v1/chat/completions%0d%0aX-Rayhelm-Tenant:%20boss",
        b"/v1/chat/completions%3fmodel=secret",
        b"/v1/chat/completions%23",
        b"/v1/chat%252fcompletions",
        b"/v1/chat/completions/",
        b"/v1/chat/completion%C5%BF",
        b"/app/v1/chat/completions",
        b"/v1/chat\\completions",
        b"///",
        b"/" + b"../" * 3000,
        b"http://x",
        b"http://x/-/healthz",
        b"http://x//v1/chat/completions",
        b"http://x/http://x/v1/chat/completions",
    ],
)
def test_path_gets_404_unless_it_matches_byte_for_byte(send, path):
    found = send(build(path=path))
    assert ([response.error["code"] for response in found.responses], found.in_sync) == (["unknown_url"], True)
    assert found.requests == []


@pytest.mark.parametrize(
    "path", [b"\\v1\\chat\\completions", b"v1/chat/completions", b"*", b"x:80", b"gateway.example:443"]
)
def test_request_target_of_another_form_is_refused(send, path):
    found = send(build(path=path))
    assert found.statuses in malformed(404, 400)
    assert found.requests == []


@pytest.mark.parametrize(
    "path",
    [
        b"",
        b"/v1/chat completions",
        b"/v1/chat/completions#fragment",
        b"/v1/chat/completions?a#b",
        b"/v1/chat/completions\x00",
        b"/v1/chat/completions\x0b",
        b"/v1/chat/completions\x7f",
        b"/v1/chat/completions\xff",
        b"/v1/chat/completions?\x01",
        b"/v1/chat/completions\rX: y",
        b"http://other.example/v1/chat/completions",
        b"http://x:99999999/v1/chat/completions",
        b"http://x:80:80/v1/chat/completions",
    ],
)
def test_invalid_target_is_refused_and_connection_closed(send, path):
    found = send(build(path=path))
    assert_malformed(found)


@pytest.mark.parametrize(
    "path",
    [
        PATH + b"?",
        PATH + b"?model=secret",
        PATH + b"?a=%0d%0aX-Rayhelm-Tenant:%20boss",
        PATH + b"?/../../-/routes",
        PATH + b"?\"<>'{}|^`",
        PATH + b"??",
        b"http://x" + PATH,
        b"HTTP://x" + PATH,
        b"https://x" + PATH,
        b"http://user:password@x" + PATH + b"?x",
    ],
)
def test_query_scheme_and_user_of_a_url_are_not_forwarded(send, path):
    found = send(build(path=path))
    assert found.statuses == [200]
    assert [request.path for request in found.requests] == ["/app/v1/chat/completions"]
    assert found.requests[0].header("host") == "x"


@pytest.mark.parametrize("size", [16_500, 100_000, 900_000])
def test_long_url_gets_414(send, size):
    for path in (b"/" + b"a" * size, PATH + b"?" + b"a" * size):
        found = send(build(path=path))
        assert ([response.error["code"] for response in found.responses], found.requests) == (["url_too_long"], [])


def test_url_larger_than_a_buffer_is_refused(send):
    found = send(build(path=PATH + b"?" + b"a" * 3_000_000))
    assert found.statuses in ([400], [414])
    assert (found.in_sync, found.requests) == (False, [])


# -- versions and other protocols ------------------------------------------------------------------------------------


@pytest.mark.parametrize("version", [b"HTTP/0.9", b"HTTP/1.2", b"HTTP/1.9", b"HTTP/2.0", b"HTTP/9.9"])
def test_unsupported_http_version_is_refused(send, version):
    found = send(build(version=version))
    assert ([response.error["code"] for response in found.responses], found.requests) == (
        ["http_version_not_supported"],
        [],
    )


@pytest.mark.parametrize(
    "version",
    [b"HTTP/3", b"HTTP/11", b"HTTP/1", b"HTTP/01.1", b"HTTP/1.1x", b"http/1.1", b"XTTP/1.1", b"RTSP/1.0", b"HTTP /1.1"],
)
def test_invalid_http_version_is_refused_and_connection_closed(send, version):
    found = send(build(version=version))
    assert_malformed(found)


def test_http_1_0_client_is_served_once(send):
    found = send(build(version=b"HTTP/1.0"))
    assert (found.statuses, found.in_sync, len(found.requests)) == ([200], False, 1)


@pytest.mark.parametrize(
    "data",
    [
        b"GET /v1/models\r\n",
        b"GET\r\n",
        b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + bytes.fromhex("000000040000000000"),
        b"PROXY TCP4 10.0.0.1 10.0.0.2 1 2\r\n" + build(),
        bytes.fromhex("0d0a0d0a000d0a515549540a2111000c7f0000017f00000100010002") + build(),
        bytes.fromhex("16030102000100") + b"\x00" * 600,
        b"\x00" * 100_000,
        b"SSH-2.0-OpenSSH_9.9\r\n",
        b"EHLO x\r\nMAIL FROM:<a@x>\r\n",
        b"*1\r\n$4\r\nINFO\r\n",
        b" " + build(),
        build().replace(b"\r\n", b"\r"),
    ],
)
def test_other_protocol_is_refused_and_connection_closed(send, data):
    found = send(data)
    assert found.statuses
    assert set(found.statuses) <= {400, 405}, "405: HAProxy 3.4 reads the preface of HTTP/2 as a method"
    assert (found.in_sync, found.requests) == (False, [])


@pytest.mark.parametrize(
    "headers",
    [
        [b"Upgrade: h2c", b"Connection: Upgrade, HTTP2-Settings", b"HTTP2-Settings: AAMAAABkAAQAoAAAAAIAAAAA"],
        [b"Upgrade: h2c", b"Connection: Upgrade"],
        [b"Upgrade: TLS/1.3", b"Connection: upgrade"],
        [b"Upgrade: websocket"],
    ],
)
def test_upgrade_headers_have_no_effect(send, headers):
    found = send(build(headers=headers))
    assert (found.statuses, found.in_sync) == ([200], True)
    (request,) = found.requests
    assert not {"upgrade", "connection", "http2-settings"} & {name for name, _ in request.headers}


def test_websocket_is_refused(send):
    headers = [b"Upgrade: websocket", b"Connection: Upgrade", b"Sec-WebSocket-Version: 13", b"Sec-WebSocket-Key: x"]
    for method, path, status in ((b"GET", b"/v1/models", 200), (b"POST", PATH, 400)):
        found = send(build(method, path, headers=headers, body=b"" if method == b"GET" else BODY))
        assert found.statuses[:1] in malformed(400, status)
        assert found.requests == []


def test_empty_lines_before_a_request_are_ignored(send):
    found = send(b"\r\n\r\n" + build())
    assert (found.statuses, found.in_sync, len(found.requests)) == ([200], True, 1)
