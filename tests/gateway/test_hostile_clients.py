"""Clients that are slow, idle, many, or gone: others are served meanwhile, and afterwards nothing of them is left."""

import resource
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager

import psutil
import pytest

from gateway.kit import endpoint, eventually, gateway, hashed, sites, smallest, tenant
from gateway.kit.hostile import LAST, served_as, unshaken
from gateway.kit.raw import Line, request

IDLE = 1000
BODY = 2**20
CHAT = "/v1/chat/completions"
HEAD = b"POST /v1/chat/completions HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer acme-key\r\n"


@pytest.fixture(scope="module", autouse=True)
def _files():
    """Room for the connections of both sides; the gateway inherits it."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    assert hard >= 4096, "the gateway and its clients need some thousand open files"
    resource.setrlimit(resource.RLIMIT_NOFILE, (max(soft, 4096), hard))
    yield
    resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


@pytest.fixture(scope="module")
def place():
    """Short times, and room for more than the idle ones."""
    with sites("one") as (one,):
        whisper = {
            "task": "transcribe",
            "versions": {"stable": {"routePrefix": "/", "endpoints": {"one": endpoint(one)}}},
        }
        values = {
            "tenants": {
                "acme": {"models": ["llama", "whisper"]},
                "narrow": tenant("narrow", ["llama"], concurrency=20),
                "brief": tenant("brief", ["llama"]),
            },
            "models": {"whisper": whisper},
            "limits": {"bodyBytes": BODY, "connections": IDLE + 200},
            "resources": {"memory": "8Gi"},
            "timeouts": {"headerSeconds": 2, "bodySeconds": 2, "clientSeconds": 2, "keyRefreshSeconds": 1},
        }
        with gateway(smallest(one, values)) as door, unshaken(door, megabytes=400):
            yield door, one


@pytest.fixture
def door(place):
    return place[0]


@pytest.fixture
def one(place):
    yield place[1]
    place[1].answers = place[1].echo


@contextmanager
def lines(door, count):
    with ExitStack() as stack:
        yield [stack.enter_context(Line(door.port)) for _ in range(count)]


def nobody_is_left(door):
    """One session is that of the question."""
    return eventually(lambda: door.metric("haproxy_frontend_current_sessions", proxy="http") == 0, "all have left")


def drip(line, pieces):
    """Sends bit by bit until the other side has had enough; answers what it said."""
    for piece in pieces:
        line.send(piece)
        if line.says_more(0.05):
            return line.take_all()
    raise AssertionError("the gateway took it all")


# -- idle ------------------------------------------------------------------------------------------------------------


def test_a_thousand_idle_connections_hold_nobody_up(door, one):
    memory = psutil.Process(door.process.pid).memory_info
    before = memory().rss
    with lines(door, IDLE // 2) as used:
        for line in used:
            assert line.ask("/v1/models").status == 200
        with lines(door, IDLE // 2):
            assert [door.chat().status for _ in range(50)] == [200] * 50
            assert door.metric("haproxy_frontend_current_sessions", proxy="http") >= IDLE // 2
            assert memory().rss - before < 100 * 2**20
    nobody_is_left(door)


def test_idle_connections_on_every_place_there_is_end_by_themselves(one):
    values = {"limits": {"connections": 50}, "timeouts": {"headerSeconds": 1, "keepAliveSeconds": 1}}
    with gateway(smallest(one, values)) as door, unshaken(door), lines(door, 150) as silent:
        for line in silent[:20]:
            line.send(request("/v1/models"))
        assert door.chat().status == 200, "after whoever came before was sent away"
        assert all(line.is_closed for line in silent[20:50])


# -- slow ------------------------------------------------------------------------------------------------------------


def test_headers_that_come_bit_by_bit_end_in_time(door, one):
    before = len(one.asked)
    with lines(door, 100) as slow:
        for piece in (b"GET /v1/models HTTP/1.1\r\n", b"Host: x\r\n", b"X-Filler: x\r\n"):
            for line in slow:
                line.send(piece)
            assert door.chat().status == 200
        assert b" 408 " in drip(slow[0], [b"X-Filler: x\r\n"] * 1000)
        for line in slow[1:]:
            assert line.answer().status == 408
    assert len(one.asked) == before + 3


@pytest.mark.parametrize("start", [b"Content-Length: 1000\r\n\r\n", b"Transfer-Encoding: chunked\r\n\r\n3e8\r\n"])
def test_a_body_that_comes_bit_by_bit_ends_in_time(door, one, start):
    before = len(one.asked)
    with Line(door.port) as line:
        line.send(HEAD + start)
        assert b'"request_timeout"' in drip(line, [b"x"] * 999)
    assert len(one.asked) == before


def test_an_upload_that_stops_ends_upstream_too(door, one):
    with Line(door.port) as line:
        line.send(HEAD.replace(b"/v1/chat/completions", b"/whisper/v1/audio/transcriptions"))
        line.send(b"Content-Length: 1000\r\nX-Request-Id: stops\r\n\r\nsome")
        assert line.answer().status in (400, 408)
    (asked,) = [asked for asked in one.asked if asked.header("x-request-id") == "stops"]
    assert not asked.whole
    assert asked.gone.wait(60)
    assert door.logged("stops")["termination_state"].startswith("c")


def test_a_client_that_does_not_read_ends_upstream_too(door, one):
    async def endless(asked, reply):
        await reply.start()
        while not asked.gone.is_set():
            await reply.send(b"x" * 65_536)

    one.answers = endless
    with Line(door.port) as line:
        line.send(request(CHAT, {"model": "llama"}, headers=[("X-Request-Id", "deaf")]))
        (asked,) = eventually(lambda: [a for a in one.asked if a.header("x-request-id") == "deaf"], "it is asked")
        assert asked.gone.wait(60)
    assert door.logged("deaf")["termination_state"].startswith("c")


def test_largest_bodies_that_never_end_take_the_memory_that_was_planned(door):
    memory = psutil.Process(door.process.pid).memory_info
    before, count = memory().rss, 100
    with lines(door, count) as slow:
        for line in slow:
            line.send(HEAD + b"Content-Length: %d\r\n\r\n" % BODY + b"x" * (BODY - 1))
        assert door.chat().status == 200
        assert memory().rss - before < 2 * count * BODY
        for line in slow:
            assert line.answer().error["code"] == "request_timeout"
    nobody_is_left(door)


# -- too much --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("length", [BODY + 1, 10**9, 10**15, 2**63 - 1])
def test_a_body_that_says_it_is_too_large_is_refused_unread(door, one, length):
    before = len(one.asked)
    for path in (b"/v1/chat/completions", b"/whisper/v1/audio/transcriptions"):
        with Line(door.port) as line:
            line.send(HEAD.replace(b"/v1/chat/completions", path) + b"Content-Length: %d\r\n\r\n" % max(length, 10**9))
            assert line.answer().status == 413
    assert len(one.asked) == before


def test_endless_chunks_are_refused(door, one):
    before = len(one.asked)

    def endless(_):
        with Line(door.port) as line:
            line.send(HEAD + b"Transfer-Encoding: chunked\r\n\r\n" + (b"10000\r\n" + b" " * 65_536 + b"\r\n") * 80)
            return line.answer().status

    with ThreadPoolExecutor(8) as pool:
        assert set(pool.map(endless, range(40))) == {413}
    assert len(one.asked) == before


# -- keys ------------------------------------------------------------------------------------------------------------


def test_wrong_keys_at_speed_cost_the_others_nothing(door, one):
    before = len(one.asked)
    guesses = [f"guess-{number}" for number in range(6000)]

    def guess(keys):
        return [answer.status for answer in served_as(door, b"".join(asks(key) for key in keys) + LAST)]

    with ThreadPoolExecutor(4) as pool:
        found = pool.map(guess, [guesses[at : at + 300] for at in range(0, len(guesses), 300)])
        assert [door.chat().status for _ in range(50)] == [200] * 50
        assert [sorted(set(statuses[:-1])) for statuses in found] == [[401]] * 20
    assert len(one.asked) == before + 50
    assert "guess" not in door.said


def test_a_key_that_ends_while_it_is_used_at_speed_ends_once_and_for_all(door):
    end = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(time.time() + 4))
    door.write_keys("brief", f"{hashed('brief-key')} old {end}", f"{hashed('other-key')} new")
    eventually(lambda: door.ask("/v1/models", key="other-key").status == 200, "the file was read")
    statuses = []

    def ask():
        with door.line() as line:
            statuses.extend(line.ask(CHAT, {"model": "llama"}, key="brief-key").status for _ in range(100))
        return statuses[-1] == 401

    eventually(ask, "the key ended")
    assert statuses[0] == 200
    assert statuses == sorted(statuses)
    ended = served_as(door, asks("brief-key") * 500 + asks("other-key") + LAST)
    assert [answer.status for answer in ended] == [401] * 500 + [200, 200]


def asks(key):
    return request("/v1/models", key=key)


# -- gone ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "begun",
    [
        b"",
        b"P",
        HEAD,
        HEAD + b"Content-Length: 100\r\n\r\n",
        HEAD + b"Content-Length: 100\r\n\r\n" + b'{"model":',
        HEAD + b"Transfer-Encoding: chunked\r\n\r\n11",
    ],
)
def test_clients_that_break_off_leave_nothing(door, one, begun):
    before = len(one.asked)
    for _ in range(100):
        line = door.line()
        line.send(begun)
        line.reset()
    nobody_is_left(door)
    assert len(one.asked) == before


def test_clients_that_break_off_while_they_wait_give_their_places_back(door, one):
    """Twenty at once are allowed; two hundred come and go."""

    async def wait(asked, reply):
        await gate.passed()

    gate, one.answers = one.gate(), wait
    before = len(one.asked)
    for wanted in range(before + 20, before + 201, 20):
        waiting = [door.line() for _ in range(20)]
        for line in waiting:
            line.send(request(CHAT, {"model": "llama"}, key="narrow-key"))
        eventually(lambda wanted=wanted: len(one.asked) == wanted, "they arrived")
        assert door.ask("/v1/models", key="narrow-key").status == 429
        for line in waiting:
            line.reset()
        nobody_is_left(door)
    assert all(asked.gone.wait(60) for asked in one.asked[before:])
    gate.open()
    one.answers = one.echo
    assert [door.chat(key="narrow-key").status for _ in range(30)] == [200] * 30
