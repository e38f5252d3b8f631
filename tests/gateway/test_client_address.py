"""The client's address behind a load balancer: in the log, in limits, and sent on; clients cannot write it."""

import socket
from contextlib import ExitStack

import pytest

from gateway.kit import Connection, minimal_values, start_gateway, start_upstreams, wait_for
from gateway.kit.certificates import create_client_context, issue
from gateway.kit.connection import build_request
from gateway.kit.pair import tls_files, tls_values

BALANCER = "127.0.0.2"
OTHER = "127.0.0.3"
CHAT = "/v1/chat/completions"
BODY = {"model": "llama", "messages": [{"role": "user", "content": "hello"}]}
PROXY = b"PROXY TCP4 203.0.113.7 10.0.0.1 40000 80\r\n"
PROXY_V2 = (
    b"\r\n\r\n\x00\r\nQUIT\n\x21\x11\x00\x0c"
    + socket.inet_aton("203.0.113.8")
    + socket.inet_aton("10.0.0.1")
    + (40000).to_bytes(2, "big")
    + (80).to_bytes(2, "big")
)
FORWARDER = {"forwardedForCidrs": [f"{BALANCER}/32", "10.0.0.0/8"], "passOn": True}


@pytest.fixture(scope="module")
def one():
    with start_upstreams("one") as (one,):
        yield one


@pytest.fixture(scope="module")
def proxied(one):
    settings = {"proxyProtocolCidrs": [f"{BALANCER}/32"], "passOn": True}
    with start_gateway(minimal_values(one, {"clientAddress": settings})) as gateway:
        yield gateway


@pytest.fixture(scope="module")
def forwarded(one):
    with start_gateway(minimal_values(one, {"clientAddress": FORWARDER})) as gateway:
        yield gateway


def request(name, *forwarded_for):
    headers = [("X-Request-Id", name), *(("X-Forwarded-For", each) for each in forwarded_for)]
    return build_request(CHAT, BODY, headers=headers)


def ask(gateway, one, source, name, *forwarded_for, before=b""):
    """Return the client of the access log and what the server got."""
    with Connection(gateway.port, source=source) as connection:
        connection.send(before + request(name, *forwarded_for))
        assert connection.read_response().status == 200
    sent = [value for key, value in one.requests[-1].headers if key.lower() == "x-forwarded-for"]
    return gateway.log_entry(name)["client"], sent


@pytest.mark.parametrize(("before", "client"), [(PROXY, "203.0.113.7"), (PROXY_V2, "203.0.113.8")], ids=["v1", "v2"])
def test_load_balancer_names_the_client_by_the_proxy_protocol(proxied, one, before, client):
    assert ask(proxied, one, BALANCER, f"proxy-{client}", before=before) == (client, [client])


def test_proxy_protocol_comes_before_tls(one):
    values = tls_values(one, {"clientAddress": {"proxyProtocolCidrs": [f"{BALANCER}/32"]}})
    files, context = tls_files(issue("gateway.example")), create_client_context()
    with start_gateway(values, mounted=files, tls=context) as gateway:
        own = (BALANCER, 0)
        with socket.create_connection(("127.0.0.1", gateway.port), timeout=60, source_address=own) as plain:
            plain.sendall(PROXY)
            with context.wrap_socket(plain, server_hostname="gateway.example") as wrapped:
                wrapped.sendall(request("tls"))
                assert wrapped.recv(12) == b"HTTP/1.1 200"
        assert gateway.log_entry("tls")["client"] == "203.0.113.7"


def test_proxy_protocol_of_other_clients_is_refused(proxied, one):
    with Connection(proxied.port, source=OTHER) as connection:
        connection.send(PROXY + request("spoofed"))
        assert connection.read_response().status == 400
    assert ask(proxied, one, OTHER, "direct", "198.51.100.1") == (OTHER, [OTHER])


def test_load_balancer_without_the_proxy_protocol_is_refused(proxied):
    with Connection(proxied.port, source=BALANCER) as connection:
        connection.send(request("plain"))
        assert connection.is_closed


def test_connections_of_one_client_are_limited_behind_the_proxy_protocol(one):
    settings = {
        "clientAddress": {"proxyProtocolCidrs": [f"{BALANCER}/32"]},
        "limits": {"connections": 40},
        "timeouts": {"headerSeconds": 3600, "keepAliveSeconds": 3600},
    }
    with start_gateway(minimal_values(one, settings)) as gateway, ExitStack() as stack:
        for _ in range(40):
            stack.enter_context(Connection(gateway.port, source=BALANCER)).send(PROXY)
        closed = "haproxy_frontend_denied_sessions_total"
        wait_for(lambda: gateway.sum_metric(closed, proxy="http") == 20, "half of them are closed")
        assert ask(gateway, one, BALANCER, "another", before=PROXY_V2) == ("203.0.113.8", [])


@pytest.mark.parametrize(
    ("sent", "client"),
    [
        (["198.51.100.1"], "198.51.100.1"),
        (["203.0.113.9, 198.51.100.1"], "198.51.100.1"),
        (["203.0.113.9", "198.51.100.1"], "198.51.100.1"),
        (["203.0.113.9, 198.51.100.1, 10.0.0.5"], "198.51.100.1"),
        (["203.0.113.9, 198.51.100.1, 10.0.0.5, 10.0.0.6"], "198.51.100.1"),
        (["203.0.113.9, unknown"], BALANCER),
        (["203.0.113.9, unknown, 10.0.0.6"], "10.0.0.6"),
        (["203.0.113.9,"], BALANCER),
        (["2001:db8::7"], "2001:db8::7"),
        ([], BALANCER),
    ],
)
def test_client_is_the_last_address_that_no_load_balancer_has(forwarded, one, sent, client):
    name = f"forwarded-{len(forwarded.log_entries)}"
    assert ask(forwarded, one, BALANCER, name, *sent) == (client, [client])


def test_forwarded_header_of_other_clients_is_ignored(forwarded, one):
    assert ask(forwarded, one, OTHER, "other", "198.51.100.1") == (OTHER, [OTHER])


def test_each_request_of_a_connection_has_its_own_client(forwarded):
    with Connection(forwarded.port, source=BALANCER) as connection:
        for number in (1, 2):
            connection.send(request(f"turn-{number}", f"198.51.100.{number}"))
            assert connection.read_response().status == 200
        connection.send(request("turn-3"))
        assert connection.read_response().status == 200
    found = [forwarded.log_entry(f"turn-{number}")["client"] for number in (1, 2, 3)]
    assert found == ["198.51.100.1", "198.51.100.2", BALANCER]


def test_header_is_neither_believed_nor_sent_by_default(one):
    with start_gateway(minimal_values(one)) as gateway:
        assert ask(gateway, one, BALANCER, "default", "198.51.100.1") == (BALANCER, [])


def test_load_balancer_may_hold_more_connections_than_one_client(one):
    settings = {
        "clientAddress": FORWARDER,
        "limits": {"connections": 40},
        "timeouts": {"headerSeconds": 3600, "keepAliveSeconds": 3600},
    }
    with start_gateway(minimal_values(one, settings)) as gateway, ExitStack() as stack:
        for _ in range(38):
            stack.enter_context(Connection(gateway.port, source=BALANCER))
        used = "haproxy_frontend_current_sessions"
        wait_for(lambda: gateway.sum_metric(used, proxy="http") == 38, "all connections are open")
        assert ask(gateway, one, BALANCER, "many", "198.51.100.1")[0] == "198.51.100.1"
