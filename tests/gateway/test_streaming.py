"""Answers that take their time, clients that go, and the end of a pod."""

import asyncio
import threading

import pytest

from gateway.kit import eventually, gateway, sites, smallest
from gateway.kit.raw import request

CHAT = "/v1/chat/completions"
STREAM = {"model": "llama", "stream": True}


@pytest.fixture(scope="module")
def place():
    with sites("one") as (one,), gateway(smallest(one, {"timeouts": {"clientSeconds": 1}})) as door:
        yield door, one


@pytest.fixture
def door(place):
    return place[0]


@pytest.fixture
def one(place):
    yield place[1]
    place[1].answers = place[1].echo


def stream(one, events=3):
    """Events, each of which waits for a gate of its own; the headers and the first go at once."""
    gates = [one.gate() for _ in range(events)]
    gates[0].open()

    async def answers(asked, reply):
        await reply.start(content_type="text/event-stream")
        for number, gate in enumerate(gates):
            await gate.passed()
            await reply.send(f"data: {number}\n\n".encode())
        await reply.end()

    one.answers = answers
    return gates


def asks(line, **options):
    line.send(request(CHAT, STREAM, **options))


def event(response):
    return response.readline() + response.readline()


def test_each_event_arrives_before_the_next_is_sent(door, one):
    gates = stream(one)
    with door.line() as line:
        asks(line)
        response = line.begin()
        assert event(response) == b"data: 0\n\n"
        gates[1].open()
        assert event(response) == b"data: 1\n\n"
        gates[2].open()
        assert event(response) == b"data: 2\n\n"
        assert response.read() == b""


@pytest.mark.parametrize("begun", [False, True])
def test_silence_longer_than_a_client_may_be_silent_cuts_nothing(door, one, begun):
    async def late(asked, reply):
        if begun:
            await reply.start(content_type="text/event-stream")
            await reply.send(b"data: 0\n\n")
        await asyncio.sleep(2.5)
        if not begun:
            await reply.start(content_type="text/event-stream")
        await reply.send(b"data: 1\n\n")
        await reply.end()

    one.answers = late
    assert door.ask(CHAT, STREAM).body.endswith(b"data: 1\n\n")


@pytest.mark.parametrize("begun", [False, True])
def test_a_client_that_goes_ends_the_work_upstream(door, one, begun):
    gate = one.gate()

    async def work(asked, reply):
        if begun:
            await reply.start(content_type="text/event-stream")
            await reply.send(b"data: 0\n\n")
        await gate.passed()

    one.answers = work
    before = len(one.asked)
    with door.line() as line:
        asks(line, headers=[("X-Request-Id", f"left-{begun}")])
        eventually(lambda: len(one.asked) > before, "the request is upstream")
        if begun:
            assert event(line.begin()) == b"data: 0\n\n"
    assert one.asked[before].gone.wait(60)
    gate.open()
    assert door.logged(f"left-{begun}")["termination_state"][0] == "C"


def test_a_pod_that_ends_finishes_its_streams_and_takes_nothing_new():
    with sites("one") as (one,), gateway(smallest(one)) as door:
        gates = stream(one)
        with door.line() as line, door.line() as idle:
            assert idle.ask("/v1/models").status == 200
            asks(line)
            response = line.begin()
            assert event(response) == b"data: 0\n\n"
            door.stop_softly()
            eventually(lambda: refuses(door), "nothing new is taken")
            last = idle.ask("/v1/models")
            assert (last.status, last.headers["connection"]) == (200, "close")
            assert door.process.is_alive
            for gate in gates[1:]:
                gate.open()
            assert response.read() == b"data: 1\n\ndata: 2\n\n"
        eventually(lambda: not door.process.is_alive, "the process has ended")


def refuses(door):
    try:
        door.line().close()
    except ConnectionRefusedError:
        return True
    return False


def test_a_pod_that_ends_under_load_loses_no_request():
    with sites("one") as (one,), gateway(smallest(one)) as door:
        statuses, started = [], threading.Barrier(9)

        def client():
            with door.line() as line:
                answer = line.ask(CHAT, STREAM)
                started.wait(60)
                while answer.headers.get("connection") != "close":
                    answer = line.ask(CHAT, STREAM)
                    statuses.append(answer.status)

        clients = [threading.Thread(target=client) for _ in range(8)]
        for thread in clients:
            thread.start()
        started.wait(60)
        door.stop_softly()
        for thread in clients:
            thread.join(60)
        assert set(statuses) == {200}
        assert len(statuses) >= 8
        eventually(lambda: not door.process.is_alive, "the process has ended")


def test_no_stream_outlives_the_time_to_drain():
    overlay = {"timeouts": {"serverSeconds": 1}, "drain": {"seconds": 1}}
    with sites("one") as (one,), gateway(smallest(one, overlay)) as door, door.line() as line:
        ended = one.gate()

        async def for_ever(asked, reply):
            await reply.start(content_type="text/event-stream")
            while not asked.gone.is_set():
                await reply.send(b"data: more\n\n")
                await asyncio.sleep(0.05)
            ended.open()

        one.answers = for_ever
        asks(line)
        assert event(line.begin()) == b"data: more\n\n"
        door.stop_softly()
        eventually(lambda: not door.process.is_alive, "the process has ended")
        assert one.asked[0].gone.wait(60)
