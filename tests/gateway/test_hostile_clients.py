"""Slow, idle, many and disconnected clients: others are still served, and no session or memory remains."""

import resource
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager

import psutil
import pytest

from gateway.kit import endpoint, hash_key, minimal_values, start_gateway, start_upstreams, tenant, wait_for
from gateway.kit.connection import Connection, build_request
from gateway.kit.hostile import LAST, assert_unaffected, collect_responses

IDLE = 1000
BODY = 2**20
CHAT = "/v1/chat/completions"
HEAD = b"POST /v1/chat/completions HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer acme-key\r\n"


@pytest.fixture(scope="module", autouse=True)
def _files():
    """Allow enough open files; the gateway inherits the limit."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    assert hard >= 4096, "the gateway and its clients need some thousand open files"
    resource.setrlimit(resource.RLIMIT_NOFILE, (max(soft, 4096), hard))
    yield
    resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


def clients_values(one, **timeouts):
    """More connections than the idle ones."""
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
        "limits": {"bodyBytes": BODY, "connections": IDLE + 200, "sourceIdlePercent": 100},
        "resources": {"limits": {"memory": "8Gi"}},
        "timeouts": {"keyRefreshSeconds": 1, **timeouts},
    }
    return minimal_values(one, values)


@pytest.fixture(scope="module")
def environment():
    with (
        start_upstreams("one") as (one,),
        start_gateway(clients_values(one)) as gateway,
        assert_unaffected(gateway, megabytes=400),
    ):
        yield gateway, one


@pytest.fixture(scope="module")
def impatient_environment():
    """Timeouts that a busy computer reaches also with a fast client: only for tests whose client is too slow."""
    with start_upstreams("one") as (one,):
        values = clients_values(one, headerSeconds=2, bodySeconds=2, clientSeconds=2)
        with start_gateway(values) as gateway, assert_unaffected(gateway, megabytes=400):
            yield gateway, one


@pytest.fixture
def impatient_gateway(impatient_environment):
    return impatient_environment[0]


@pytest.fixture
def impatient_one(impatient_environment):
    yield impatient_environment[1]
    impatient_environment[1].respond = impatient_environment[1].echo


@contextmanager
def open_connections(gateway, count, data=b""):
    """Open connections and send `data` on each at once: HAProxy closes one without data when it times out."""
    with ExitStack() as stack:
        connections = []
        for _ in range(count):
            connections.append(stack.enter_context(Connection(gateway.port)))
            connections[-1].send(data)
        yield connections


def wait_for_request(one, name):
    """Wait until the request with this id arrived upstream, and return it."""
    (request,) = wait_for(
        lambda: [request for request in one.requests if request.header("x-request-id") == name],
        f"the request {name} arrived upstream",
    )
    return request


def send_slowly(connection, pieces):
    """Send pieces slowly until the gateway responds, and return the response."""
    for piece in pieces:
        connection.send(piece)
        if connection.has_data(0.05):
            return connection.receive_all()
    raise AssertionError("the gateway took it all")


# -- idle ------------------------------------------------------------------------------------------------------------


def test_1000_idle_connections_do_not_block_other_clients(gateway, one):
    memory = psutil.Process(gateway.process.pid).memory_info
    before = memory().rss
    with open_connections(gateway, IDLE // 2) as used:
        for connection in used:
            assert connection.request("/v1/models").status == 200
        with open_connections(gateway, IDLE // 2):
            assert [gateway.chat().status for _ in range(50)] == [200] * 50
            assert gateway.sum_metric("haproxy_frontend_current_sessions", proxy="http") >= IDLE // 2
            assert memory().rss - before < 100 * 2**20
    gateway.wait_until_idle()


def test_idle_connections_are_closed_when_all_are_in_use(one):
    limits = {"connections": 50, "sourceIdlePercent": 100}
    values = {"limits": limits, "timeouts": {"headerSeconds": 1, "keepAliveSeconds": 1}}
    with (
        start_gateway(minimal_values(one, values)) as gateway,
        assert_unaffected(gateway),
        open_connections(gateway, 150) as silent,
    ):
        for connection in silent[:20]:
            connection.send(build_request("/v1/models"))
        assert gateway.chat().status == 200, "after the idle connections were closed"
        assert all(connection.is_closed for connection in silent[20:50])


# -- slow ------------------------------------------------------------------------------------------------------------


def test_slow_headers_get_408(impatient_gateway, impatient_one):
    before = len(impatient_one.requests)
    with open_connections(impatient_gateway, 100, b"GET /v1/models HTTP/1.1\r\n") as slow:
        for piece in (b"", b"Host: x\r\n", b"X-Filler: x\r\n"):
            for connection in slow:
                connection.send(piece)
            assert impatient_gateway.chat().status == 200
        assert b" 408 " in send_slowly(slow[0], [b"X-Filler: x\r\n"] * 1000)
        for connection in slow[1:]:
            assert connection.read_response().status == 408
    assert len(impatient_one.requests) == before + 3


@pytest.mark.parametrize("start", [b"Content-Length: 1000\r\n\r\n", b"Transfer-Encoding: chunked\r\n\r\n3e8\r\n"])
def test_slow_body_gets_408(impatient_gateway, impatient_one, start):
    before = len(impatient_one.requests)
    with Connection(impatient_gateway.port) as connection:
        connection.send(HEAD + start)
        assert b'"request_timeout"' in send_slowly(connection, [b"x"] * 999)
    assert len(impatient_one.requests) == before


def test_stopped_upload_of_the_body_limit_is_not_forwarded(impatient_gateway, impatient_one):
    before = len(impatient_one.requests)
    with Connection(impatient_gateway.port) as connection:
        connection.send(HEAD.replace(b"/v1/chat/completions", b"/whisper/v1/audio/transcriptions"))
        connection.send(b"Content-Length: %d\r\n\r\nsome" % BODY)
        assert connection.read_response().error["code"] == "request_timeout"
    assert len(impatient_one.requests) == before


def test_stopped_upload_is_aborted_upstream(impatient_gateway, impatient_one):
    with Connection(impatient_gateway.port) as connection:
        connection.send(HEAD.replace(b"/v1/chat/completions", b"/whisper/v1/audio/transcriptions"))
        connection.send(b"Content-Length: %d\r\nX-Request-Id: stops\r\n\r\nsome" % (BODY + 1))
        assert connection.read_response().status in (400, 408)
    request = wait_for_request(impatient_one, "stops")
    assert not request.is_complete
    assert request.disconnected.wait(300)
    assert impatient_gateway.log_entry("stops")["termination_state"].startswith("c")


def test_request_is_aborted_upstream_when_client_does_not_read(impatient_gateway, impatient_one):
    async def endless(request, reply):
        await reply.start()
        while not request.disconnected.is_set():
            await reply.send(b"x" * 65_536)

    impatient_one.respond = endless
    with Connection(impatient_gateway.port) as connection:
        connection.send(build_request(CHAT, {"model": "llama"}, headers=[("X-Request-Id", "slow-reader")]))
        assert wait_for_request(impatient_one, "slow-reader").disconnected.wait(300)
    assert impatient_gateway.log_entry("slow-reader")["termination_state"].startswith("c")


def test_incomplete_largest_bodies_stay_within_planned_memory(impatient_gateway):
    memory = psutil.Process(impatient_gateway.process.pid).memory_info
    before, count = memory().rss, 100
    incomplete = HEAD + b"Content-Length: %d\r\n\r\n" % BODY + b"x" * (BODY - 1)
    with open_connections(impatient_gateway, count, incomplete) as slow:
        assert impatient_gateway.chat().status == 200
        assert memory().rss - before < 2 * count * BODY
        for connection in slow:
            assert connection.read_response().error["code"] == "request_timeout"
    impatient_gateway.wait_until_idle()


# -- too much --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("length", [BODY + 1, 10**9, 10**15, 2**63 - 1])
def test_too_large_content_length_is_refused_before_the_body(gateway, one, length):
    before = len(one.requests)
    for path in (b"/v1/chat/completions", b"/whisper/v1/audio/transcriptions"):
        with Connection(gateway.port) as connection:
            connection.send(
                HEAD.replace(b"/v1/chat/completions", path) + b"Content-Length: %d\r\n\r\n" % max(length, 10**9)
            )
            assert connection.read_response().status == 413
    assert len(one.requests) == before


def test_endless_chunks_are_refused(gateway, one):
    before = len(one.requests)

    def endless(_):
        with Connection(gateway.port) as connection:
            connection.send(
                HEAD + b"Transfer-Encoding: chunked\r\n\r\n" + (b"10000\r\n" + b" " * 65_536 + b"\r\n") * 80
            )
            return connection.read_response().status

    with ThreadPoolExecutor(8) as pool:
        assert set(pool.map(endless, range(40))) == {413}
    assert len(one.requests) == before


# -- keys ------------------------------------------------------------------------------------------------------------


def test_many_wrong_keys_do_not_affect_other_clients(gateway, one):
    before = len(one.requests)

    def guess(number):
        """The gateway closes the connection after the first wrong key."""
        found = collect_responses(gateway, models_request(f"guess-{number}") * 2 + LAST)
        return [response.status for response in found]

    with ThreadPoolExecutor(4) as pool:
        found = pool.map(guess, range(1000))
        assert [gateway.chat().status for _ in range(50)] == [200] * 50
        assert list(found) == [[401]] * 1000
    assert len(one.requests) == before + 50
    assert "guess" not in gateway.output


def test_revoked_key_stays_revoked_under_load(gateway):
    gateway.write_keys("brief", f"{hash_key('brief-key')} old", f"{hash_key('other-key')} new")
    for key in ("brief-key", "other-key"):
        wait_for(lambda key=key: gateway.request("/v1/models", key=key).status == 200, "the file was read")
    statuses = []

    def ask():
        """The gateway closes the connection after a 401."""
        with gateway.connect() as connection:
            for _ in range(100):
                statuses.append(connection.request(CHAT, {"model": "llama"}, key="brief-key").status)
                if statuses[-1] == 401:
                    return True
        return False

    assert not ask()
    end = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(time.time() + 2))
    gateway.write_keys("brief", f"{hash_key('brief-key')} old {end}", f"{hash_key('other-key')} new")
    wait_for(ask, "the key is revoked")
    assert statuses == sorted(statuses)
    assert [gateway.request("/v1/models", key="brief-key").status for _ in range(100)] == [401] * 100
    assert gateway.request("/v1/models", key="other-key").status == 200


def models_request(key):
    return build_request("/v1/models", key=key)


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
def test_disconnected_clients_leave_no_sessions(gateway, one, begun):
    before = len(one.requests)
    for _ in range(100):
        connection = gateway.connect()
        connection.send(begun)
        connection.reset()
    gateway.wait_until_idle()
    assert len(one.requests) == before


def test_disconnected_clients_free_their_concurrency(gateway, one):
    """The limit is 20 concurrent requests; 200 clients connect and disconnect."""

    async def wait(request, reply):
        await gate.wait()

    gate, one.respond = one.gate(), wait
    before = len(one.requests)
    for wanted in range(before + 20, before + 201, 20):
        waiting = [gateway.connect() for _ in range(20)]
        for connection in waiting:
            connection.send(build_request(CHAT, {"model": "llama"}, key="narrow-key"))
        wait_for(lambda wanted=wanted: len(one.requests) == wanted, "the requests arrived upstream")
        assert gateway.request("/v1/models", key="narrow-key").status == 429
        for connection in waiting:
            connection.reset()
        gateway.wait_until_idle()
    assert all(request.disconnected.wait(300) for request in one.requests[before:])
    gate.open()
    one.respond = one.echo
    assert [gateway.chat(key="narrow-key").status for _ in range(30)] == [200] * 30
