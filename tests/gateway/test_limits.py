"""What a tenant and a client may take: requests, sizes, times."""

import threading

import pytest

from gateway.kit import Line, endpoint, eventually, gateway, model, sites, tenant

BODY, HEADERS, UPLOAD = 65_536, 4096, 100_000


@pytest.fixture(scope="module")
def place():
    with sites("one") as (one,):
        whisper = {
            "task": "transcribe",
            "versions": {"stable": {"routePrefix": "/", "endpoints": {"one": endpoint(one)}}},
        }
        both = ["llama", "whisper"]
        values = {
            "tenants": {
                "acme": tenant("acme", both),
                "slow": tenant("slow", both, requestsPerMinute=5),
                "narrow": tenant("narrow", both, concurrency=2),
            },
            "models": {"llama": model(one), "whisper": whisper},
            "limits": {"bodyBytes": BODY, "headerBytes": HEADERS, "uploadBytes": UPLOAD, "connections": 200},
            "timeouts": {"headerSeconds": 1, "bodySeconds": 1},
        }
        with gateway(values) as door:
            yield door, one


@pytest.fixture
def door(place):
    return place[0]


@pytest.fixture
def one(place):
    yield place[1]
    place[1].answers = place[1].echo


def chat(size):
    """A request of exactly so many bytes."""
    frame = b'{"messages":[{"role":"user","content":"%s"}],"model":"llama"}'
    return frame % (b"x" * (size - len(frame % b"")))


def chunked(body, size):
    pieces = [body[at : at + size] for at in range(0, len(body), size)]
    return b"".join(b"%x\r\n%s\r\n" % (len(piece), piece) for piece in pieces) + b"0\r\n\r\n"


def head(path, *headers):
    return "\r\n".join(
        [f"POST {path} HTTP/1.1", "Host: x", "Authorization: Bearer acme-key", *headers, "", ""]
    ).encode()


CHUNKED = head("/v1/chat/completions", "Transfer-Encoding: chunked")

# -- a tenant's requests ---------------------------------------------------------------------------------------------


def test_more_requests_in_a_minute_than_a_tenant_has_get_429_and_wait(door):
    assert [door.chat(key="slow-key").status for _ in range(5)] == [200] * 5
    answer = door.chat(key="slow-key")
    assert answer.status == 429
    assert answer.error["code"] == "rate_limit_exceeded"
    assert answer.headers["retry-after"] == "12"
    assert door.chat().status == 200, "another tenant has limits of its own"


def hold(one):
    """Requests stay in flight until the gate is open."""
    gate = one.gate()

    async def wait(asked, reply):
        await gate.passed()
        await one.echo(asked, reply)

    one.answers = wait
    return gate


def test_more_requests_at_once_than_a_tenant_has_get_429_until_one_ends(door, one):
    gate, before, statuses = hold(one), len(one.asked), []
    running = [threading.Thread(target=lambda: statuses.append(door.chat(key="narrow-key").status)) for _ in range(2)]
    for thread in running:
        thread.start()
    eventually(lambda: len(one.asked) == before + 2, "two requests are in flight")
    answer = door.chat(key="narrow-key")
    assert answer.status == 429
    assert answer.error["code"] == "concurrency_limit_exceeded"
    assert answer.headers["retry-after"] == "1"
    assert door.ask("/v1/models").status == 200, "another tenant is not held up"
    gate.open()
    for thread in running:
        thread.join(60)
    assert statuses == [200, 200]
    assert eventually(lambda: door.chat(key="narrow-key").status == 200, "there is room again")


def test_a_connection_that_stays_open_is_no_request(door):
    lines = [door.line() for _ in range(5)]
    for line in lines:
        for _ in range(3):
            assert line.ask("/v1/models", key="narrow-key").status == 200
    for line in lines:
        line.close()


# -- sizes -----------------------------------------------------------------------------------------------------------


def test_the_largest_body_passes_whole(door):
    assert door.ask("/v1/chat/completions", chat(BODY)).json()["length"] == BODY


@pytest.mark.parametrize("size", [1, 100, 16_384, BODY])
def test_the_largest_body_passes_in_chunks_of_any_size(door, size):
    assert door.send(CHUNKED + chunked(chat(BODY), size)).json()["length"] == BODY


def test_a_larger_body_is_refused_before_it_is_read(door):
    answer = door.send(head("/v1/chat/completions", f"Content-Length: {BODY + 1}"))
    assert answer.status == 413
    assert answer.error["code"] == "body_too_large"


@pytest.mark.parametrize("size", [1, 100, BODY])
@pytest.mark.parametrize("more", [1, 10_000, 1_000_000])
def test_a_larger_body_in_chunks_is_refused(door, size, more):
    assert door.send(CHUNKED + chunked(chat(BODY + more), size)).status == 413


def test_an_upload_is_streamed_and_has_a_limit_of_its_own(door):
    sound = bytes(range(256)) * (UPLOAD // 256)
    assert door.ask("/whisper/v1/audio/transcriptions", sound).json()["length"] == len(sound)
    assert door.ask("/whisper/v1/audio/transcriptions", b"x" * (UPLOAD + 1)).error["code"] == "body_too_large"


def test_an_upload_has_to_say_its_length(door):
    upload = head("/whisper/v1/audio/transcriptions", "Transfer-Encoding: chunked")
    answer = door.send(upload + chunked(b"x" * 100, 10))
    assert answer.status == 411
    assert answer.error["code"] == "length_required"


def test_of_two_lengths_one_goes_up_and_nothing_is_left_for_a_second_request(door, one):
    before = len(one.asked)
    both = head("/v1/chat/completions", "Content-Length: 5", "Transfer-Encoding: chunked")
    with door.line() as line:
        line.send(both + chunked(chat(100), 100) + both)
        assert line.answer().json()["length"] == 100
        assert line.is_closed
    (asked,) = one.asked[before:]
    assert (asked.header("content-length"), asked.header("transfer-encoding")) in (("100", None), (None, "chunked"))


@pytest.mark.parametrize("path", ["/v1/chat/completions", "/whisper/v1/audio/transcriptions"])
def test_a_client_that_waits_to_be_told_to_go_on_is_told(door, path):
    with door.line() as line:
        line.send(head(path, "Content-Length: 100", "Expect: 100-continue"))
        assert line.take(25) == b"HTTP/1.1 100 Continue\r\n\r\n"
        line.send(chat(100))
        assert line.answer().json()["length"] == 100


def test_headers_have_a_limit(door):
    assert door.chat(headers=[("X-Filler", "x" * (HEADERS // 2))]).status == 200
    answer = door.chat(headers=[("X-Filler", "x" * HEADERS)])
    assert answer.status == 431
    assert answer.error["code"] == "headers_too_large"
    answer = door.ask(f"/v1/models?{'x' * HEADERS}")
    assert answer.status == 414
    assert answer.error["code"] == "url_too_long"


def test_headers_that_no_buffer_holds_end_the_connection(door):
    answer = door.chat(headers=[(f"X-Filler-{number}", "x" * 4000) for number in range(60)])
    assert answer.status in (400, 414, 431)
    assert door.chat().status == 200


# -- times -----------------------------------------------------------------------------------------------------------


def test_a_client_that_sends_its_headers_slowly_gets_408(door):
    """In HAProxy's own words: no rule is asked before there are headers."""
    assert door.send(b"POST /v1/chat/completions HTTP/1.1\r\nHost: x\r\n").status == 408


@pytest.mark.parametrize(
    "begun",
    [
        head("/v1/chat/completions", "Content-Length: 100") + b'{"model": "llama", ',
        CHUNKED + b'13\r\n{"model": "llama", \r\n',
        CHUNKED + b"ff\r\n",
    ],
)
def test_a_client_that_sends_its_body_slowly_gets_408_and_nothing_goes_up(door, one, begun):
    before = len(one.asked)
    assert door.send(begun).error["code"] == "request_timeout"
    assert len(one.asked) == before


def test_a_connection_on_which_nothing_is_asked_ends_without_a_word(door):
    with Line(door.port) as line:
        assert line.is_closed


def test_a_client_that_goes_while_it_sends_leaves_nothing_upstream(door, one):
    before = len(one.asked)
    with Line(door.port) as line:
        line.send(head("/v1/chat/completions", "Content-Length: 100", "X-Request-Id: left") + b'{"model": "llama"}')
    assert door.logged("left")["status"] in (400, 408)
    assert len(one.asked) == before
