"""Which endpoint gets a request, and what happens when one is ill."""

import asyncio
import socket
import threading
import time
from contextlib import ExitStack, contextmanager
from http.client import IncompleteRead
from types import SimpleNamespace

import pytest

from gateway.kit import eventually, gateway, model, sites, tenant
from gateway.kit.dns import REFUSED, SERVER_FAILURE, dns
from gateway.kit.raw import request

CHAT = "/v1/chat/completions"
SELDOM = {"intervalSeconds": 3600}


def values(*found, **more):
    return {
        "tenants": {"acme": tenant("acme", ["llama"])},
        "models": {"llama": model(*found, **more.pop("model", {}))},
        **more,
    }


@pytest.fixture
def three():
    with sites("one", "two", "three") as found:
        yield found


def down(door, site):
    return door.metric("haproxy_server_status", proxy="llama:stable", server=site, state="DOWN") == 1


def where(door, texts):
    """Who answers each, asked one after the other: on one connection the next begins when the last has ended. A request
    that HAProxy has not yet counted off would send another connection's to a neighbour."""
    with door.line() as line:
        found = {text: line.ask(CHAT, said(text)).site for text in texts}
    counted = "haproxy_backend_current_sessions"
    eventually(lambda: door.metric(counted, proxy="llama:stable") == 0, "every request being counted off")
    return found


def said(text):
    return {"model": "llama", "messages": [{"role": "user", "content": text}]}


TEXTS = [f"{number}: you are a helpful assistant" for number in range(60)]

# -- choice ----------------------------------------------------------------------------------------------------------


def test_chats_that_begin_alike_go_to_the_same_endpoint(three):
    with gateway(values(*three)) as door:
        first = where(door, TEXTS)
        assert set(first.values()) == {"one", "two", "three"}
        assert where(door, TEXTS) == first
        assert len({*where(door, ["x" * 256 + str(number) for number in range(20)]).values()}) == 1
        later = [{"role": "user", "content": TEXTS[0]}, {"role": "assistant", "content": "what else?"}]
        assert door.ask(CHAT, {"messages": later, "model": "llama"}).site == first[TEXTS[0]]
        asked = {"model": "llama", "prompt": TEXTS[1]}
        with door.line() as line:
            assert {line.ask("/v1/completions", asked).site for _ in range(10)} == {first[TEXTS[1]]}


def test_when_an_endpoint_goes_the_others_keep_what_they_have_cached(three):
    with gateway(values(*three, health=SELDOM)) as door:
        first = where(door, TEXTS)
        three[2].close()
        second = where(door, TEXTS)
        three[2].open()
    stayed = {text for text, site in first.items() if site != "three"}
    assert len(stayed) < len(TEXTS)
    assert {second[text] for text in TEXTS} == {"one", "two"}
    assert all(second[text] == first[text] for text in stayed)


def crowd(door, found, size):
    """So many requests that begin alike, all in flight; how many each site got."""
    gates = [site.gate() for site in found]
    for site, gate in zip(found, gates, strict=True):

        async def wait(asked, reply, site=site, gate=gate):
            await gate.passed()
            await site.echo(asked, reply)

        site.answers = wait
    threads = [threading.Thread(target=door.chat) for _ in range(size)]
    for number, thread in enumerate(threads, 1):
        thread.start()
        eventually(lambda so_far=number: sum(len(site.asked) for site in found) == so_far, "the request arrived")
    counts = [len(site.asked) for site in found]
    for gate in gates:
        gate.open()
    for thread in threads:
        thread.join(60)
    return counts


def test_an_endpoint_with_too_much_of_it_yields(three):
    with gateway(values(*three[:2])) as door:
        counts = sorted(crowd(door, three[:2], 20))
    assert sum(counts) == 20
    assert 3 <= counts[0] <= 7, "one may have half as much again as the average, and a request more"


def test_without_affinity_the_one_with_the_fewest_requests_gets_the_next(three):
    with gateway(values(*three, model={"loadBalancing": {"kind": "LeastConnections"}})) as door:
        assert crowd(door, three, 18) == [6, 6, 6]


# -- health ----------------------------------------------------------------------------------------------------------


async def never(asked, reply):
    await asyncio.Event().wait()


async def ill(asked, reply):
    await reply.json("draining", status=503)


QUICK = {"intervalSeconds": 0.2, "failures": 2}


def test_an_endpoint_whose_probe_fails_gets_nothing_as_long_as_another_is_well(three):
    one, two, _ = three
    two.probe = ill
    with gateway(values(one, two, health=QUICK)) as door:
        eventually(lambda: down(door, "two"), "two is known to be ill")
        assert set(where(door, TEXTS).values()) == {"one"}
        two.probe = two.well
        eventually(lambda: not down(door, "two"), "two is known to be well")
        assert set(where(door, TEXTS).values()) == {"one", "two"}


def test_probes_that_time_out_everywhere_empty_no_backend(three):
    """A busy service answers its probe late: that is no reason to answer nobody."""
    one, two, _ = three
    one.probe = two.probe = never
    with gateway(values(one, two, health=QUICK)) as door:
        eventually(lambda: down(door, "one") and down(door, "two"), "both probes have failed")
        assert set(where(door, TEXTS).values()) == {"one", "two"}
        assert where(door, TEXTS) == where(door, TEXTS), "with the same affinity"


def test_it_starts_before_its_services_exist_and_finds_them_when_they_come(three):
    ends = {"one": {"host": None, "service": "chat", "cidrs": None}}
    with dns() as names:
        overlay = {"versions": {"stable": {"endpoints": ends}}}
        resolvers = {"nameservers": [names.address], "validSeconds": 1}
        with gateway(values(three[0], model=overlay, resolvers=resolvers)) as door:
            answer = door.chat()
            assert answer.status == 503
            assert answer.error["code"] == "service_unavailable"
            names.names["chat-serve-svc.models.svc.cluster.local"] = "127.0.0.1"
            assert eventually(lambda: door.chat().status == 200, "the service is found")


def test_a_dns_that_is_ill_empties_no_backend(three):
    """By itself HAProxy forgets an address half a minute after the last good answer."""
    ends = {"one": {"host": None, "service": "chat", "cidrs": None, "port": three[0].port}}
    overlay = {"versions": {"stable": {"endpoints": ends}}}
    with ExitStack() as stack:
        servers = [stack.enter_context(dns()) for _ in range(3)]
        doors = []
        for server in servers:
            server.names["chat-serve-svc.models.svc.cluster.local"] = "127.0.0.1"
            resolvers = {"nameservers": [server.address], "validSeconds": 1}
            doors.append(stack.enter_context(gateway(values(three[0], model=overlay, resolvers=resolvers))))
        for door in doors:
            assert eventually(lambda door=door: door.chat().status == 200, "the service is found")
        servers[0].silent = True
        servers[1].failure = REFUSED
        servers[2].failure = SERVER_FAILURE
        time.sleep(45)
        assert [door.chat().status for door in doors] == [200, 200, 200]


# -- failures --------------------------------------------------------------------------------------------------------


def test_an_endpoint_that_refuses_is_passed_over(three):
    three[0].close()
    with gateway(values(*three[:2], health=SELDOM)) as door:
        assert set(where(door, TEXTS).values()) == {"two"}
    three[0].open()


async def drop(asked, reply):
    reply.drop()


async def fail(asked, reply):
    await reply.json({"error": {"message": "Internal Server Error"}}, status=500)


@pytest.mark.parametrize("lost", [drop, fail])
@pytest.mark.parametrize("stream", [False, True])
def test_a_request_whose_endpoint_is_lost_before_its_answer_is_sent_to_another(three, lost, stream):
    three[0].answers = lost
    with gateway(values(*three, health=SELDOM)) as door:
        for text in TEXTS:
            assert door.ask(CHAT, said(text) | {"stream": stream}).site in ("two", "three")
    assert three[0].asked, "some of them were lost"


def test_one_that_every_endpoint_falls_by_is_sent_to_three_and_no_more(three):
    for site in three:
        site.answers = drop
    with gateway(values(*three, health=SELDOM)) as door:
        assert door.chat().error["code"] == "bad_gateway"
    assert sum(len(site.asked) for site in three) == 3


@pytest.mark.parametrize(("lost", "status"), [(drop, 502), (fail, 500)])
def test_where_a_lost_answer_is_not_tried_again_no_second_endpoint_reads_it(three, lost, status):
    """It may have fallen by that very request."""
    for site in three:
        site.answers = lost
    with gateway(values(*three, health=SELDOM, retries={"emptyResponse": False})) as door:
        assert door.chat().status == status
    assert sum(len(site.asked) for site in three) == 1


def test_gateway_passes_on_the_last_500_after_two_retries(three):
    for site in three:
        site.answers = fail
    with gateway(values(*three, health=SELDOM)) as door:
        answer = door.chat()
        assert (answer.status, answer.json()) == (500, {"error": {"message": "Internal Server Error"}})
    assert sum(len(site.asked) for site in three) == 3


def test_gateway_does_not_retry_after_the_server_timeout(three):
    for site in three:
        site.answers = never
    with gateway(values(*three, health=SELDOM, timeouts={"serverSeconds": 1})) as door:
        assert door.chat().status == 504
    assert sum(len(site.asked) for site in three) == 1


@pytest.mark.parametrize(("size", "tries"), [(10_000, 3), (500_000, 1)])
def test_gateway_retries_an_upload_only_when_it_was_read_at_once(three, size, tries):
    for site in three:
        site.answers = drop
    audio = {"model": {"task": "transcribe"}}
    with gateway(values(*three, health=SELDOM, **audio)) as door:
        assert door.ask("/llama/v1/audio/transcriptions", b"x" * size).status == 502
    assert sum(len(site.asked) for site in three) == tries


def test_after_the_first_byte_nothing_is_tried_again(three):
    async def break_off(asked, reply):
        await reply.start(content_type="text/event-stream")
        await reply.send(b"data: 1\n\n")
        reply.drop()

    for site in three:
        site.answers = break_off
    with gateway(values(*three, health=SELDOM)) as door:
        with pytest.raises(IncompleteRead) as caught:
            door.chat(headers=[("X-Request-Id", "broken")])
        assert caught.value.partial == b"data: 1\n\n"
        assert sum(len(site.asked) for site in three) == 1
        assert door.logged("broken")["termination_state"] == "SD"


def test_an_answer_that_blames_the_request_or_the_load_is_passed_on(three):
    async def refuse(asked, reply):
        await reply.json({"error": {"message": "too long"}}, status=400)

    three[0].answers = refuse
    with gateway(values(three[0], health=SELDOM)) as door:
        answer = door.chat()
        assert (answer.status, answer.json()) == (400, {"error": {"message": "too long"}})
        three[0].answers = ill
        assert door.chat().status == 503
        assert len(three[0].asked) == 2, "neither is tried again"


def test_failures_have_the_shape_that_clients_know(three):
    one = three[0]
    with gateway(values(one, health=SELDOM, timeouts={"serverSeconds": 1})) as door:
        found = []
        for answers in (drop, never):
            one.answers = answers
            found.append(door.chat())
        one.close()
        found.append(door.chat())
        one.open()
    assert [answer.status for answer in found] == [502, 504, 503]
    assert [answer.error["code"] for answer in found] == ["bad_gateway", "gateway_timeout", "service_unavailable"]


@contextmanager
def deaf():
    """A server whose packets nobody answers, as when a pod is gone: its queue of one is full."""
    with socket.socket() as one, ExitStack() as queue:
        one.bind(("127.0.0.1", 0))
        one.listen(0)
        for _ in range(3):
            waits = queue.enter_context(socket.socket())
            waits.setblocking(False)
            waits.connect_ex(one.getsockname())
        yield SimpleNamespace(name="deaf", port=one.getsockname()[1])


def test_a_connection_that_was_used_before_is_closed_without_a_word_where_nobody_can_be_reached():
    """HAProxy's way, which nothing in a configuration changes: clients try again what was closed on them."""
    with deaf() as one, gateway(values(one, health=SELDOM, timeouts={"connectSeconds": 1})) as door:
        assert door.chat().status == 503
        with door.line() as line:
            assert line.ask("/v1/models").status == 200
            line.send(request(CHAT, said("hi")))
            assert line.take_all() == b""


def test_the_gateway_says_nothing_of_the_server_and_nothing_to_browsers(three):
    async def chatter(asked, reply):
        await reply.start(content_type="text/plain", server="uvicorn", access_control_allow_origin="*", x_extra="kept")
        await reply.end()

    three[0].answers = chatter
    with gateway(values(three[0])) as door:
        headers = door.chat().headers
        assert headers["x-extra"] == "kept"
        assert "server" not in headers
        assert "access-control-allow-origin" not in headers


def test_headers_that_only_the_gateway_may_set_do_not_come_from_clients(three):
    spoofed = [
        ("X-Rayhelm-Tenant", "boss"),
        ("X-RAYHELM-ROLE", "admin"),
        ("X-Tenant", "boss"),
        ("Forwarded", "for=1.2.3.4"),
        ("X-Forwarded-For", "1.2.3.4"),
        ("X-Real-IP", "1.2.3.4"),
        ("serve_multiplexed_model_id", "other"),
        ("X_Rayhelm_Tenant", "boss"),
        ("Cookie", "a=b"),
        ("Proxy-Authorization", "Basic x"),
        ("X-Request-Id", "mine-1.2_3"),
        ("Traceparent", "00-1-1-00"),
    ]
    with gateway(values(three[0])) as door:
        headers = dict(door.chat(headers=spoofed).json()["headers"])
    assert headers.pop("x-rayhelm-tenant") == "acme"
    assert headers.pop("x-request-id") == "mine-1.2_3"
    assert set(headers) == {"host", "content-type", "content-length", "traceparent"}


@pytest.mark.parametrize("named", [b"", b"Content-Type: text/plain\r\n"], ids=["untyped", "mistyped"])
def test_a_json_body_goes_up_as_json_whatever_its_client_called_it(three, named):
    """Ray answers 500 to JSON that is not called so, and the body was read as JSON here."""
    with gateway(values(three[0])) as door, door.line() as line:
        line.send(request(CHAT, said("hi")).replace(b"Content-Type: application/json\r\n", named))
        assert dict(line.answer().json()["headers"])["content-type"] == "application/json"


def test_nobody_behind_is_told_to_unpack_a_body_or_to_wait_for_it(three):
    """It was read here as it stands, and it is here whole."""
    with gateway(values(three[0])) as door, door.line() as line:
        asked = request(CHAT, said("hi"), headers=[("Content-Encoding", "gzip"), ("Expect", "100-continue")])
        line.send(asked.replace(b"HTTP/1.1", b"HTTP/1.0"))  # of those HAProxy itself leaves the second header in
        headers = dict(line.answer().json()["headers"])
        assert {"content-encoding", "expect"}.isdisjoint(headers)
