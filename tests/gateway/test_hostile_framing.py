"""Request smuggling: requests whose end two servers could find at different places.

The gateway either refuses and closes, or forwards one request with one length."""

import pytest

from gateway.kit import endpoint, minimal_values, start_gateway, start_upstreams
from gateway.kit.connection import build_request
from gateway.kit.hostile import assert_malformed, assert_unaffected, exchange

CHAT = b"POST /v1/chat/completions HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer acme-key\r\n"
UPLOAD = b"POST /whisper/v1/audio/transcriptions HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer acme-key\r\n"
BODY = b'{"model":"llama"}'
HIDDEN = build_request("/smuggled", b"{}", headers=[("X-Rayhelm-Tenant", "boss")])
CHUNKED = b"Transfer-Encoding: chunked"


@pytest.fixture(scope="module")
def environment():
    with start_upstreams("one") as (one,):
        whisper = {
            "task": "transcribe",
            "versions": {"stable": {"routePrefix": "/", "endpoints": {"one": endpoint(one)}}},
        }
        styles = {
            "task": "custom",
            "operations": {"/v1/styles": {"method": "GET"}},
            "versions": {"stable": {"routePrefix": "/paint", "endpoints": {"one": endpoint(one)}}},
        }
        values = {
            "tenants": {"acme": {"models": ["llama", "whisper", "painter"]}},
            "models": {"whisper": whisper, "painter": styles},
            # So long HAProxy 3.4 waits for a refused body of 2^63 bytes: less than the client's patience.
            "timeouts": {"clientSeconds": 30},
        }
        with start_gateway(minimal_values(one, values)) as gateway, assert_unaffected(gateway):
            yield gateway, one


@pytest.fixture
def send(environment):
    """Send bytes and return the exchange."""
    return lambda data: exchange(*environment, data)


def chunked(body=BODY, size=None, extension=b"", end=b"\r\n", last=b"0\r\n\r\n"):
    return b"".join([size or b"%x" % len(body), extension, end, body, end, last])


def with_headers(*headers, start=CHAT):
    return b"".join([start, *(header + b"\r\n" for header in headers), b"\r\n"])


def assert_one_request_forwarded(found, body=BODY):
    (request,) = found.requests
    assert (request.path, request.body) == ("/app/v1/chat/completions", body)
    framing = [name.strip() for name, _ in request.headers if name.strip() in ("content-length", "transfer-encoding")]
    assert len(framing) == 1
    assert request.trailers == []
    assert request.header("x-rayhelm-tenant") == "acme"


# -- lengths ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "lengths",
    [
        [b"17", b"0"],
        [b"0", b"17"],
        [b"17", b"16"],
        [b"17, 0"],
        [b"0, 17"],
        [b"17,17", b"18"],
        [b"+17"],
        [b"-1"],
        [b"-17"],
        [b"0x11"],
        [b"1e1"],
        [b"17.0"],
        [b"1 7"],
        [b"17abc"],
        [b"17;"],
        [b'"17"'],
        [b""],
        [b"17\x00"],
        [b"\x0b17"],
        [b"\xd9\xa1\xd9\xa7"],
        [b"9223372036854775808"],
        [b"18446744073709551633"],
        [b"9" * 400],
    ],
)
def test_ambiguous_length_is_refused_and_connection_closed(send, lengths):
    found = send(with_headers(*(b"Content-Length: " + length for length in lengths)) + BODY + HIDDEN)
    assert_malformed(found, 400, 413)


@pytest.mark.parametrize("lengths", [[b"17", b"17"], [b"17, 17"], [b"\t17 "], [b"017"], [b"00000000000000000017"]])
def test_equal_lengths_are_forwarded_as_one(send, lengths):
    found = send(with_headers(*(b"Content-Length: " + length for length in lengths)) + BODY)
    assert (found.statuses, found.in_sync) == ([200], True)
    assert_one_request_forwarded(found)
    assert found.requests[0].header("content-length") == "17"


# -- chunks against lengths ------------------------------------------------------------------------------------------


@pytest.mark.parametrize("length", [b"0", b"6", b"17", b"27", b"1000"])
@pytest.mark.parametrize("chunks_first", [True, False])
@pytest.mark.parametrize("coding", [CHUNKED, b"transfer-encoding:CHUNKED", b"Transfer-Encoding:\r\n chunked"])
def test_chunked_coding_overrides_length_and_closes_connection(send, length, chunks_first, coding):
    both = [coding, b"Content-Length: " + length]
    found = send(with_headers(*(both if chunks_first else both[::-1])) + chunked() + HIDDEN)
    assert (found.statuses, found.in_sync) == ([200], False)
    assert_one_request_forwarded(found)


@pytest.mark.parametrize("length", [None, b"Content-Length: 27"])
@pytest.mark.parametrize(
    "coding",
    [
        b"Transfer-Encoding: identity",
        b"Transfer-Encoding: chunked, identity",
        b"Transfer-Encoding: identity, chunked",
        b"Transfer-Encoding: gzip, chunked",
        b"Transfer-Encoding: chunked, chunked",
        b"Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked",
        b"Transfer-Encoding: chunked\r\nTransfer-Encoding: identity",
        b"Transfer-Encoding: identity\r\nTransfer-Encoding: chunked",
        b"Transfer-Encoding: xchunked",
        b"Transfer-Encoding: chunkedx",
        b"Transfer-Encoding: chunk",
        b"Transfer-Encoding: ,chunked",
        b"Transfer-Encoding: chunked,",
        b"Transfer-Encoding: chunked;q=1",
        b'Transfer-Encoding: "chunked"',
        b"Transfer-Encoding: 'chunked'",
        b"Transfer-Encoding: \x0bchunked",
        b"Transfer-Encoding: \x0cchunked",
        b"Transfer-Encoding: \xffchunked",
        b"Transfer-Encoding: chun\x00ked",
        b"Transfer-Encoding:",
        b"Transfer-Encoding",
        b"Transfer-Encoding : chunked",
        b"Transfer-Encoding\t: chunked",
        b"Transfer-Encoding\x00: chunked",
        b"\x00Transfer-Encoding: chunked",
        b"transfer\xadencoding: chunked",
        b"X: x\rTransfer-Encoding: chunked",
        b"X: x\r\n\rTransfer-Encoding: chunked",
    ],
)
def test_ambiguous_coding_is_refused_and_connection_closed(send, length, coding):
    found = send(with_headers(*filter(None, [length, coding])) + chunked() + HIDDEN)
    assert_malformed(found, 400, 422)


def test_header_similar_to_transfer_encoding_has_no_effect(send):
    """A header name with `_` is dropped, so the body has the length of Content-Length."""
    found = send(with_headers(b"Transfer_Encoding: chunked", b"Content-Length: 17") + BODY)
    assert (found.statuses, found.in_sync) == ([200], True)
    assert_one_request_forwarded(found)


def test_request_without_length_has_no_body(send):
    found = send(with_headers(b"Transfer_Encoding: chunked") + chunked())
    assert (found.statuses, found.in_sync, found.requests) == ([400, 400], False, [])


def test_folded_line_belongs_to_the_header_above(send):
    """It becomes part of the API key, which is then invalid."""
    found = send(CHAT + b" Transfer-Encoding: chunked\r\nContent-Length: 17\r\n\r\n" + BODY)
    assert (found.statuses, found.requests) == ([401], [])


# -- chunks ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "body",
    [
        chunked(size=b"0x11"),
        chunked(size=b"+11"),
        chunked(size=b"-11"),
        chunked(size=b" 11"),
        chunked(size=b"1_1"),
        chunked(size=b"g"),
        chunked(size=b"\x0011"),
        chunked(size=b";11"),
        chunked(size=b"10000000000000011"),
        chunked(size=b"ffffffffffffffff"),
        chunked(size=b"7fffffffffffffff"),
        chunked(size=b"10"),
        chunked(size=b"12"),
        chunked(end=b"\n"),
        chunked(end=b"\r"),
        chunked(end=b""),
        chunked(end=b"\r\r\n"),
        chunked(extension=b";a\n"),
        chunked(extension=b";a\r"),
        chunked(extension=b';a="b\r\n"'),
        b"\r\n" + chunked(),
        chunked(last=b"\r\n0\r\n\r\n"),
        chunked(last=b"0\n\n"),
        chunked(last=b"0\r\nnothing like a header\r\n\r\n"),
        chunked(last=b"0\r\nX : y\r\n\r\n"),
    ],
)
def test_invalid_chunks_are_refused_and_connection_closed(send, body):
    found = send(with_headers(CHUNKED) + body + HIDDEN)
    assert found.statuses in ([400], [408], [413])
    assert (found.in_sync, found.requests) == (False, [])


@pytest.mark.parametrize(
    "body",
    [
        chunked(),
        chunked(size=b"0" * 2000 + b"11"),
        chunked(size=b"11 "),
        chunked(size=b"11\t"),
        chunked(extension=b";a=b"),
        chunked(extension=b";" + b"a" * 100_000),
        chunked(last=b"000\r\n\r\n"),
        chunked(last=b"0;x\r\n\r\n"),
        b"".join(b"1\r\n%c\r\n" % byte for byte in BODY) + b"0\r\n\r\n",
    ],
)
def test_chunks_are_forwarded_and_next_request_is_separate(send, body):
    found = send(with_headers(CHUNKED) + body + HIDDEN)
    assert (found.statuses, found.in_sync) == ([200, 404], True)
    assert_one_request_forwarded(found)


@pytest.mark.parametrize(
    "trailer",
    [
        b"X-Rayhelm-Tenant: boss",
        b"X-Request-Id: forged",
        b"Transfer-Encoding: chunked",
        b"Content-Length: 100",
        b"Authorization: Bearer boss-key",
        b"X-Model-Version: canary",
        b"X-Filler: " + b"x" * 10_000,
    ],
)
def test_trailers_are_not_forwarded(send, trailer):
    """Uvicorn would read it as a header."""
    found = send(with_headers(CHUNKED, b"Trailer: X-Rayhelm-Tenant") + chunked(last=b"0\r\n" + trailer + b"\r\n\r\n"))
    assert (found.statuses, found.in_sync) == ([200], True)
    assert_one_request_forwarded(found)
    assert [value for name, value in found.requests[0].headers if name == "x-rayhelm-tenant"] == ["acme"]
    assert found.requests[0].header("trailer") is None


def test_trailers_larger_than_a_buffer_are_refused(send):
    many = b"".join(b"X-%d: %s\r\n" % (number, b"x" * 4000) for number in range(300))
    found = send(with_headers(CHUNKED) + chunked(last=b"0\r\n" + many + b"\r\n"))
    assert found.statuses in ([400], [413], [])
    assert (found.in_sync, found.requests) == (False, [])


def test_chunked_upload_is_refused(send):
    for start in (UPLOAD, UPLOAD.replace(b"POST /whisper/v1/audio/transcriptions", b"GET /painter/v1/styles")):
        for headers in ([CHUNKED], [CHUNKED, b"Content-Length: 17"]):
            found = send(with_headers(*headers, start=start) + chunked())
            assert ([response.error["code"] for response in found.responses], found.requests) == (
                ["length_required"],
                [],
            )


# -- bodies that look like requests ----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("start", "status"),
    [
        (CHAT.replace(b"acme-key", b"no-key"), 401),
        (CHAT.replace(b"/v1/chat", b"/nowhere"), 404),
        (CHAT.replace(b"POST", b"PUT"), 405),
        (CHAT, 400),
        (CHAT.replace(b"POST /v1/chat/completions", b"GET /v1/models"), 200),
    ],
)
@pytest.mark.parametrize("in_chunks", [False, True])
def test_body_of_a_refused_request_is_never_a_request(send, start, status, in_chunks):
    length = CHUNKED if in_chunks else b"Content-Length: %d" % len(HIDDEN)
    found = send(with_headers(length, start=start) + (chunked(HIDDEN) if in_chunks else HIDDEN))
    assert (found.statuses, found.requests) == ([status], [])


def test_request_inside_an_upload_is_not_executed(send):
    found = send(with_headers(b"Content-Length: %d" % len(HIDDEN), start=UPLOAD) + HIDDEN)
    assert (found.statuses, found.in_sync) == ([200], True)
    (request,) = found.requests
    assert request.body == HIDDEN


# -- one after the other ---------------------------------------------------------------------------------------------


def test_invalid_pipelined_request_does_not_affect_earlier_one(send):
    good = with_headers(b"Content-Length: 17") + BODY
    for bad in (b"G@T / HTTP/1.1\r\n\r\n", b"\x00\x01\x02\x03\r\n\r\n", CHAT + b"Content-Length: x\r\n\r\n"):
        found = send(good + bad + HIDDEN)
        assert (found.statuses, found.in_sync) == ([200, 400], False)
        assert_one_request_forwarded(found)


def test_key_applies_to_one_request_only(send):
    good = with_headers(b"Content-Length: 17") + BODY
    found = send(good + good.replace(b"Authorization: Bearer acme-key\r\n", b"") + good)
    assert (found.statuses, found.in_sync, len(found.requests)) == ([200, 401], False, 1), "closed after the 401"


def test_100_pipelined_requests_are_answered_in_order(send):
    ids = [b"r%d" % number for number in range(100)]
    found = send(b"".join(with_headers(b"Content-Length: 17", b"X-Request-Id: " + name) + BODY for name in ids))
    assert (found.statuses, found.in_sync) == ([200] * 100, True)
    assert [response.headers["x-request-id"].encode() for response in found.responses] == ids
