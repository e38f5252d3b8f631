"""Request lines: methods, addresses, versions and other protocols. What is served was asked in so many letters."""

import pytest

from gateway.kit import gateway, model, sites, smallest, tenant
from gateway.kit.hostile import talk, unshaken

BODY = b'{"model":"llama"}'
PATH = b"/v1/chat/completions"


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


def asks(method=b"POST", path=PATH, version=b"HTTP/1.1", headers=(), body=BODY):
    lines = [b" ".join([method, path, version]), b"Host: x", b"Authorization: Bearer acme-key"]
    length = b"Content-Length: %d" % len(body)
    return b"\r\n".join([*lines, length, *headers, b"", b""]) + body


# -- methods ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "method",
    [b"post", b"Post", b"OPTIONS", b"TRACE", b"PUT", b"PATCH", b"DELETE", b"PROPFIND", b"POSTX", b"X" * 5000],
)
def test_another_method_is_refused_and_the_connection_goes_on(said, method):
    found = said(asks(method=method))
    assert (found.statuses, found.in_step, found.asked) == ([405], True, [])
    assert found.answers[0].headers["allow"] == "POST"


@pytest.mark.parametrize(
    "method",
    [b"CONNECT", b"", b"P OST", b"P\x00ST", b"P\rOST", b"G@T", b"G(T", b"\xc3\x89", b'"POST"', b"POST:", b"{}"],
)
def test_what_is_no_method_is_refused_and_the_connection_closed(said, method):
    found = said(asks(method=method))
    assert (found.statuses, found.in_step, found.asked) == ([400], False, [])


@pytest.mark.parametrize(
    "header", [b"X-HTTP-Method-Override: DELETE", b"X-HTTP-Method: PUT", b"X-Method-Override: GET", b"Max-Forwards: 0"]
)
def test_a_method_in_a_header_is_none(said, header):
    found = said(asks(headers=[header]))
    assert found.statuses == [200]
    assert found.asked[0].method == "POST"


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
def test_an_address_that_is_not_there_letter_by_letter_is_nowhere(said, path):
    found = said(asks(path=path))
    assert ([answer.error["code"] for answer in found.answers], found.in_step) == (["unknown_url"], True)
    assert found.asked == []


@pytest.mark.parametrize(
    "path", [b"\\v1\\chat\\completions", b"v1/chat/completions", b"*", b"x:80", b"gateway.example:443"]
)
def test_an_address_of_another_kind_is_nowhere_or_refused(said, path):
    found = said(asks(path=path))
    assert found.statuses in ([404], [400])
    assert found.asked == []


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
def test_what_is_no_address_is_refused_and_the_connection_closed(said, path):
    found = said(asks(path=path))
    assert (found.statuses, found.in_step, found.asked) == ([400], False, [])


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
def test_what_stands_around_an_address_does_not_go_up(said, path):
    found = said(asks(path=path))
    assert found.statuses == [200]
    assert [asked.path for asked in found.asked] == ["/app/v1/chat/completions"]
    assert found.asked[0].header("host") == "x"


@pytest.mark.parametrize("size", [16_500, 100_000, 900_000])
def test_a_very_long_address_is_refused(said, size):
    for path in (b"/" + b"a" * size, PATH + b"?" + b"a" * size):
        found = said(asks(path=path))
        assert ([answer.error["code"] for answer in found.answers], found.asked) == (["url_too_long"], [])


def test_an_address_that_no_buffer_holds_is_refused(said):
    found = said(asks(path=PATH + b"?" + b"a" * 3_000_000))
    assert found.statuses in ([400], [414])
    assert (found.in_step, found.asked) == (False, [])


# -- versions and other protocols ------------------------------------------------------------------------------------


@pytest.mark.parametrize("version", [b"HTTP/0.9", b"HTTP/1.2", b"HTTP/1.9", b"HTTP/2.0", b"HTTP/9.9"])
def test_another_version_is_refused(said, version):
    found = said(asks(version=version))
    assert ([answer.error["code"] for answer in found.answers], found.asked) == (["http_version_not_supported"], [])


@pytest.mark.parametrize(
    "version",
    [b"HTTP/3", b"HTTP/11", b"HTTP/1", b"HTTP/01.1", b"HTTP/1.1x", b"http/1.1", b"XTTP/1.1", b"RTSP/1.0", b"HTTP /1.1"],
)
def test_what_is_no_version_is_refused_and_the_connection_closed(said, version):
    found = said(asks(version=version))
    assert (found.statuses, found.in_step, found.asked) == ([400], False, [])


def test_an_old_client_is_served_once(said):
    found = said(asks(version=b"HTTP/1.0"))
    assert (found.statuses, found.in_step, len(found.asked)) == ([200], False, 1)


@pytest.mark.parametrize(
    "data",
    [
        b"GET /v1/models\r\n",
        b"GET\r\n",
        b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + bytes.fromhex("000000040000000000"),
        b"PROXY TCP4 10.0.0.1 10.0.0.2 1 2\r\n" + asks(),
        bytes.fromhex("0d0a0d0a000d0a515549540a2111000c7f0000017f00000100010002") + asks(),
        bytes.fromhex("16030102000100") + b"\x00" * 600,
        b"\x00" * 100_000,
        b"SSH-2.0-OpenSSH_9.9\r\n",
        b"EHLO x\r\nMAIL FROM:<a@x>\r\n",
        b"*1\r\n$4\r\nINFO\r\n",
        b" " + asks(),
        asks().replace(b"\r\n", b"\r"),
    ],
)
def test_another_protocol_is_refused_and_the_connection_closed(said, data):
    found = said(data)
    assert found.statuses
    assert set(found.statuses) <= {400, 405}, "405: HAProxy 3.4 reads the preface of HTTP/2 as a method"
    assert (found.in_step, found.asked) == (False, [])


@pytest.mark.parametrize(
    "headers",
    [
        [b"Upgrade: h2c", b"Connection: Upgrade, HTTP2-Settings", b"HTTP2-Settings: AAMAAABkAAQAoAAAAAIAAAAA"],
        [b"Upgrade: h2c", b"Connection: Upgrade"],
        [b"Upgrade: TLS/1.3", b"Connection: upgrade"],
        [b"Upgrade: websocket"],
    ],
)
def test_nobody_is_taken_to_another_protocol(said, headers):
    found = said(asks(headers=headers))
    assert (found.statuses, found.in_step) == ([200], True)
    (asked,) = found.asked
    assert not {"upgrade", "connection", "http2-settings"} & {name for name, _ in asked.headers}


def test_a_websocket_is_refused(said):
    headers = [b"Upgrade: websocket", b"Connection: Upgrade", b"Sec-WebSocket-Version: 13", b"Sec-WebSocket-Key: x"]
    for method, path, status in ((b"GET", b"/v1/models", 200), (b"POST", PATH, 400)):
        found = said(asks(method, path, headers=headers, body=b"" if method == b"GET" else BODY))
        assert found.statuses[0] in (400, status)
        assert found.asked == []


def test_empty_lines_before_a_request_are_nothing(said):
    found = said(b"\r\n\r\n" + asks())
    assert (found.statuses, found.in_step, len(found.asked)) == ([200], True, 1)
