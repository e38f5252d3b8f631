"""Two gateways that serve one model: each prefers its own cluster, and forwards to the other one."""

from collections.abc import Iterator

import pytest

from gateway.kit.pair import Side, start_pair
from gateway.kit.upstream import ReceivedRequest, Reply


@pytest.fixture(scope="module")
def pair() -> Iterator[tuple[Side, Side]]:
    with start_pair() as both:
        yield both


@pytest.fixture
def eu(pair: tuple[Side, Side]) -> Iterator[Side]:
    yield from _restored(pair[0], "eu", pair[1])


@pytest.fixture
def us(pair: tuple[Side, Side]) -> Iterator[Side]:
    yield from _restored(pair[1], "us", pair[0])


def _restored(side: Side, name: str, other: Side) -> Iterator[Side]:
    """Give the upstream back as it was, and wait until both gateways find it available."""
    yield side
    side.upstream.restore()
    side.wait_until(name, up=True)
    other.wait_until(f"remote.{name}", up=True)


def stop(side: Side, name: str, other: Side) -> None:
    """Close the upstream and wait until both gateways know."""
    side.upstream.close()
    side.wait_until(name, up=False)
    other.wait_until(f"remote.{name}", up=False)


def test_requests_stay_in_their_cluster(eu: Side, us: Side) -> None:
    before = len(us.upstream.requests)
    assert {eu.gateway.chat().endpoint for _ in range(5)} == {"eu"}
    assert len(us.upstream.requests) == before


def test_gateway_forwards_when_its_endpoints_are_down_and_returns(eu: Side, us: Side) -> None:
    stop(eu, "eu", us)
    found = eu.gateway.chat(headers=[("x-request-id", "forwarded")])
    assert found.endpoint == "us"
    assert (found.headers["x-model-version"], found.headers["x-request-id"]) == ("stable", "forwarded")
    near, far = eu.gateway.log_entry("forwarded"), us.gateway.log_entry("forwarded")
    assert (near["endpoint"], near["remote"], far["endpoint"], far["remote"]) == ("remote.us", "-", "us", "eu")
    assert (near["tenant"], far["tenant"]) == ("acme", "acme")
    eu.upstream.open()
    eu.wait_until("eu", up=True)
    assert eu.gateway.chat().endpoint == "eu"


def test_metrics_count_forwarded_requests_by_remote_gateway(eu: Side, us: Side) -> None:
    """Panels and the alert MostRequestsForwarded read them."""

    def count() -> int:
        series = 'haproxy_server_http_responses_total{proxy="llama:stable",server="remote.us",code="2xx"} '
        (line,) = [each for each in eu.gateway.request_metrics_port("/metrics")[1].splitlines() if series in each]
        return int(line.removeprefix(series))

    before = count()
    assert eu.gateway.chat().endpoint == "eu"
    assert count() == before
    stop(eu, "eu", us)
    assert eu.gateway.chat().endpoint == "us"
    assert count() == before + 1


def test_first_request_after_a_failure_reaches_the_other_cluster(eu: Side) -> None:
    eu.upstream.close()
    assert eu.gateway.chat().endpoint == "us"


def test_upstream_receives_no_key_of_a_gateway(eu: Side, us: Side) -> None:
    stop(eu, "eu", us)
    eu.gateway.chat()
    request = us.upstream.requests[-1]
    assert (request.path, request.header("authorization")) == ("/app/v1/chat/completions", None)
    assert (request.header("x-rayhelm-tenant"), request.header("x-rayhelm-remote")) == ("acme", "eu")


def test_request_is_forwarded_once_when_both_clusters_are_down(eu: Side, us: Side) -> None:
    stop(eu, "eu", us)
    stop(us, "us", eu)
    found = eu.gateway.chat(headers=[("x-request-id", "nowhere")])
    assert (found.status, found.error["code"]) == (503, "service_unavailable")
    eu.gateway.log_entry("nowhere")
    assert not [entry for entry in us.gateway.log_entries if entry["request_id"] == "nowhere"]


def test_request_of_a_gateway_is_not_forwarded_back(eu: Side, us: Side) -> None:
    """The other gateway gets a request before it knows that its endpoint fails."""
    stop(us, "us", eu)
    before = len(eu.upstream.requests)
    headers = [("x-rayhelm-tenant", "acme"), ("x-request-id", "back")]
    found = us.gateway.chat(key="eu-to-us", headers=headers)
    assert (found.status, found.error["code"]) == (503, "remote_unavailable")
    us.upstream.open()
    us.wait_until("us", up=True)
    us.upstream.close()
    found = us.gateway.chat(key="eu-to-us", headers=headers)
    assert found.status == 503
    assert len(eu.upstream.requests) == before


def test_client_cannot_set_headers_of_gateways(eu: Side, us: Side) -> None:
    headers = [("x-rayhelm-tenant", "other"), ("x-rayhelm-remote", "us"), ("x-rayhelm-url", "/v1/models")]
    stop(eu, "eu", us)
    found = eu.gateway.chat(headers=[*headers, ("x-request-id", "own-headers")])
    assert found.endpoint == "us"
    assert us.gateway.log_entry("own-headers")["tenant"] == "acme"


@pytest.mark.parametrize("headers", [[], [("x-rayhelm-tenant", "other")], [("x-rayhelm-tenant", "@eu")]])
def test_other_gateway_refuses_an_unknown_tenant(us: Side, headers: list[tuple[str, str]]) -> None:
    found = us.gateway.chat(key="eu-to-us", headers=headers)
    assert (found.status, found.error["code"]) == (404, "model_not_found")


def test_client_key_does_not_reach_the_health_path(eu: Side) -> None:
    assert eu.gateway.request("/-/ready/llama/stable").status == 404
    assert eu.gateway.request("/-/ready/llama/stable", key="us-to-eu").status == 200


def test_wrong_key_is_not_used_until_it_is_replaced(eu: Side, us: Side) -> None:
    eu.write_remote_key("us", "wrong")
    eu.wait_until("remote.us", up=False)
    eu.gateway.wait_for_output("code: 401")
    eu.upstream.close()
    assert eu.gateway.chat().status == 503
    eu.write_remote_key("us", "eu-to-us")
    eu.wait_until("remote.us", up=True)
    assert eu.gateway.chat().endpoint == "us"


def test_server_error_of_the_other_cluster_reaches_the_client_once(eu: Side, us: Side) -> None:
    async def fail(_: ReceivedRequest, reply: Reply) -> None:
        await reply.json({"detail": "no"}, status=400)

    stop(eu, "eu", us)
    us.upstream.respond = fail
    before = len(us.upstream.requests)
    assert eu.gateway.chat().status == 400
    assert len(us.upstream.requests) == before + 1
