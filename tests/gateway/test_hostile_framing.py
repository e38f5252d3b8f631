"""Request smuggling: bytes of which two servers could think that the request ends in different places.

Either the gateway refuses and closes, or one request goes up with one length. Nobody sees what was hidden."""

import pytest

from gateway.kit import endpoint, gateway, sites, smallest
from gateway.kit.hostile import talk, unshaken
from gateway.kit.raw import request

CHAT = b"POST /v1/chat/completions HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer acme-key\r\n"
UPLOAD = b"POST /whisper/v1/audio/transcriptions HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer acme-key\r\n"
BODY = b'{"model":"llama"}'
HIDDEN = request("/smuggled", b"{}", headers=[("X-Rayhelm-Tenant", "boss")])
CHUNKED = b"Transfer-Encoding: chunked"


@pytest.fixture(scope="module")
def place():
    with sites("one") as (one,):
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
            "timeouts": {"headerSeconds": 1, "bodySeconds": 1, "clientSeconds": 2},
        }
        with gateway(smallest(one, values)) as door, unshaken(door):
            yield door, one


@pytest.fixture
def said(place):
    """What comes of some bytes."""
    return lambda data: talk(*place, data)


def chunked(body=BODY, size=None, extension=b"", end=b"\r\n", last=b"0\r\n\r\n"):
    return b"".join([size or b"%x" % len(body), extension, end, body, end, last])


def with_headers(*headers, start=CHAT):
    return b"".join([start, *(header + b"\r\n" for header in headers), b"\r\n"])


def one_request_went_up(found, body=BODY):
    (asked,) = found.asked
    assert (asked.path, asked.body) == ("/app/v1/chat/completions", body)
    framing = [name.strip() for name, _ in asked.headers if name.strip() in ("content-length", "transfer-encoding")]
    assert len(framing) == 1
    assert asked.trailers == []
    assert asked.header("x-rayhelm-tenant") == "acme"


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
def test_a_length_in_doubt_is_refused_and_the_connection_closed(said, lengths):
    found = said(with_headers(*(b"Content-Length: " + length for length in lengths)) + BODY + HIDDEN)
    assert found.statuses in ([400], [413])
    assert (found.in_step, found.asked) == (False, [])


@pytest.mark.parametrize("lengths", [[b"17", b"17"], [b"17, 17"], [b"\t17 "], [b"017"], [b"00000000000000000017"]])
def test_a_length_said_twice_or_with_zeros_goes_up_once_and_plain(said, lengths):
    found = said(with_headers(*(b"Content-Length: " + length for length in lengths)) + BODY)
    assert (found.statuses, found.in_step) == ([200], True)
    one_request_went_up(found)
    assert found.asked[0].header("content-length") == "17"


# -- chunks against lengths ------------------------------------------------------------------------------------------


@pytest.mark.parametrize("length", [b"0", b"6", b"17", b"27", b"1000"])
@pytest.mark.parametrize("chunks_first", [True, False])
@pytest.mark.parametrize("coding", [CHUNKED, b"transfer-encoding:CHUNKED", b"Transfer-Encoding:\r\n chunked"])
def test_chunks_win_over_a_length_and_end_the_connection(said, length, chunks_first, coding):
    both = [coding, b"Content-Length: " + length]
    found = said(with_headers(*(both if chunks_first else both[::-1])) + chunked() + HIDDEN)
    assert (found.statuses, found.in_step) == ([200], False)
    one_request_went_up(found)


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
def test_a_coding_in_doubt_is_refused_and_the_connection_closed(said, length, coding):
    found = said(with_headers(*filter(None, [length, coding])) + chunked() + HIDDEN)
    assert found.statuses in ([400], [422])
    assert (found.in_step, found.asked) == (False, [])


def test_a_coding_that_looks_like_one_is_none(said):
    """A name with `_` is dropped, and what follows is a body of the length that was told."""
    found = said(with_headers(b"Transfer_Encoding: chunked", b"Content-Length: 17") + BODY)
    assert (found.statuses, found.in_step) == ([200], True)
    one_request_went_up(found)


def test_without_a_length_there_is_no_body(said):
    found = said(with_headers(b"Transfer_Encoding: chunked") + chunked())
    assert (found.statuses, found.in_step, found.asked) == ([400, 400], False, [])


def test_a_folded_line_belongs_to_the_header_above(said):
    """It becomes a part of the key here, which is wrong then."""
    found = said(CHAT + b" Transfer-Encoding: chunked\r\nContent-Length: 17\r\n\r\n" + BODY)
    assert (found.statuses, found.asked) == ([401], [])


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
def test_chunks_in_doubt_are_refused_and_the_connection_closed(said, body):
    found = said(with_headers(CHUNKED) + body + HIDDEN)
    assert found.statuses in ([400], [408], [413])
    assert (found.in_step, found.asked) == (False, [])


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
def test_chunks_go_up_whole_and_what_follows_is_a_request_of_its_own(said, body):
    found = said(with_headers(CHUNKED) + body + HIDDEN)
    assert (found.statuses, found.in_step) == ([200, 404], True)
    one_request_went_up(found)


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
def test_nothing_behind_the_last_chunk_goes_up(said, trailer):
    """Uvicorn would take it for one more header."""
    found = said(with_headers(CHUNKED, b"Trailer: X-Rayhelm-Tenant") + chunked(last=b"0\r\n" + trailer + b"\r\n\r\n"))
    assert (found.statuses, found.in_step) == ([200], True)
    one_request_went_up(found)
    assert [value for name, value in found.asked[0].headers if name == "x-rayhelm-tenant"] == ["acme"]
    assert found.asked[0].header("trailer") is None


def test_trailers_that_no_buffer_holds_are_refused(said):
    many = b"".join(b"X-%d: %s\r\n" % (number, b"x" * 4000) for number in range(300))
    found = said(with_headers(CHUNKED) + chunked(last=b"0\r\n" + many + b"\r\n"))
    assert found.statuses in ([400], [413], [])
    assert (found.in_step, found.asked) == (False, [])


def test_an_upload_in_chunks_is_refused_whatever_the_method(said):
    for start in (UPLOAD, UPLOAD.replace(b"POST /whisper/v1/audio/transcriptions", b"GET /painter/v1/styles")):
        for headers in ([CHUNKED], [CHUNKED, b"Content-Length: 17"]):
            found = said(with_headers(*headers, start=start) + chunked())
            assert ([answer.error["code"] for answer in found.answers], found.asked) == (["length_required"], [])


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
def test_the_body_of_a_request_that_is_answered_here_is_never_a_request(said, start, status, in_chunks):
    length = CHUNKED if in_chunks else b"Content-Length: %d" % len(HIDDEN)
    found = said(with_headers(length, start=start) + (chunked(HIDDEN) if in_chunks else HIDDEN))
    assert (found.statuses, found.asked) == ([status], [])


def test_a_request_in_the_body_of_an_upload_stays_there(said):
    found = said(with_headers(b"Content-Length: %d" % len(HIDDEN), start=UPLOAD) + HIDDEN)
    assert (found.statuses, found.in_step) == ([200], True)
    (asked,) = found.asked
    assert asked.body == HIDDEN


# -- one after the other ---------------------------------------------------------------------------------------------


def test_a_bad_request_behind_a_good_one_spoils_only_itself(said):
    good = with_headers(b"Content-Length: 17") + BODY
    for bad in (b"G@T / HTTP/1.1\r\n\r\n", b"\x00\x01\x02\x03\r\n\r\n", CHAT + b"Content-Length: x\r\n\r\n"):
        found = said(good + bad + HIDDEN)
        assert (found.statuses, found.in_step) == ([200, 400], False)
        one_request_went_up(found)


def test_a_key_is_good_for_its_own_request_and_not_for_the_next(said):
    good = with_headers(b"Content-Length: 17") + BODY
    found = said(good + good.replace(b"Authorization: Bearer acme-key\r\n", b"") + good)
    assert (found.statuses, found.in_step, len(found.asked)) == ([200, 401, 200], True, 2)


def test_a_hundred_requests_at_once_are_answered_in_order(said):
    ids = [b"r%d" % number for number in range(100)]
    found = said(b"".join(with_headers(b"Content-Length: 17", b"X-Request-Id: " + name) + BODY for name in ids))
    assert (found.statuses, found.in_step) == ([200] * 100, True)
    assert [answer.headers["x-request-id"].encode() for answer in found.answers] == ids
