"""Models that only other clusters serve: gateway `eu` forwards every request for them to `us` or `asia`."""

import json
from collections import Counter
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from typing import Any

import pytest

from charts.kit import over
from gateway.kit.certificates import create_client_context, issue, write_ca
from gateway.kit.connection import build_request
from gateway.kit.pair import Side, remote, start_side, tls_files, tls_values
from gateway.kit.process import hash_key, start_gateway
from gateway.kit.upstream import ReceivedRequest, Reply, Upstream, start_upstreams
from gateway.kit.values import Values, model, tenant
from gateway.test_cache_salt import compute_salt
from gateway.test_forms import FILE, assert_no_field, build_form, build_sound, upload
from shared.ports import reserve_port

HERE: Values = {"versions": {"stable": {}}}
"""A version without endpoints."""
KINDS: dict[str, Values] = {
    "qwen": {},
    "bge": {"task": "embed"},
    "whisper": {"task": "transcribe"},
    "images": {"task": "custom", "operations": {"/v1/images": {}}},
}
"""Models of `us`; `asia` has the first one only."""
TENANTS = {"acme": tenant("acme", ["llama", *KINDS]), "beta": tenant("beta", ["llama", "qwen"])}
WITHOUT_QWEN = tenant("gamma", ["llama"])
WEIGHTS = {"us": 75, "asia": 25}


def serve(upstream: Upstream, names: Mapping[str, Values]) -> Values:
    """Values of a gateway whose cluster serves these models beside `llama`."""
    allowed = {
        name: {**one, "models": [each for each in one["models"] if each in {"llama", *names}]}
        for name, one in TENANTS.items()
    }
    return {
        "tenants": {**allowed, "gamma": WITHOUT_QWEN},
        "models": {name: model(upstream, route=f"/{name}", **more) for name, more in names.items()},
    }


@contextmanager
def start_three(
    remotes: Mapping[str, Values], overlay: Values | None = None, others: Values | None = None
) -> Iterator[dict[str, Side]]:
    """Start three gateways. `remotes` are further values of the entries of the two that `eu` forwards to, `overlay`
    values of `eu`, and `others` those of the two."""
    with ExitStack() as stack:
        upstreams = {one.name: one for one in stack.enter_context(start_upstreams("eu", *remotes))}
        ports = {name: stack.enter_context(reserve_port()) for name in upstreams}
        sides = {}
        for name in remotes:
            names = KINDS if name == "us" else {"qwen": KINDS["qwen"]}
            more = {"overlay": over(serve(upstreams[name], names), others or {})}
            sides[name] = stack.enter_context(start_side(name, "eu", upstreams[name], ports[name], ports["eu"], **more))
        served = {
            name: {"models": {each: ["stable"] for each in ("llama", *(KINDS if name == "us" else ["qwen"]))}}
            for name in remotes
        }
        values = tls_values(
            upstreams["eu"],
            {
                "tenants": {**TENANTS, "gamma": WITHOUT_QWEN},
                "models": {name: over(HERE, more) for name, more in KINDS.items()},
                "remoteGateways": {
                    name: remote(ports[name], **over(served[name], more)) for name, more in remotes.items()
                },
            },
        )
        mounted = tls_files(issue("gateway.example"))
        for name in remotes:
            mounted |= {
                f"remote/{name}/ca.crt": write_ca(),
                f"remote/{name}/key": f"eu-to-{name}",
                f"keys/@{name}/keys": f"{hash_key(f'{name}-to-eu')} first\n",
            }
        gateway = stack.enter_context(
            start_gateway(over(values, overlay or {}), port=ports["eu"], mounted=mounted, tls=create_client_context())
        )
        sides["eu"] = Side(gateway, upstreams["eu"])
        for name in remotes:
            for each in KINDS if name == "us" else ["qwen"]:
                sides["eu"].wait_until(f"remote.{name}", up=True, model=each)
        yield sides


@pytest.fixture(scope="module")
def started() -> Iterator[dict[str, Side]]:
    with start_three({name: {"weight": weight} for name, weight in WEIGHTS.items()}) as sides:
        yield sides


@pytest.fixture
def sides(started: dict[str, Side]) -> Iterator[dict[str, Side]]:
    yield started
    for name, side in started.items():
        side.upstream.restore()
        if name != "eu":
            started["eu"].wait_until(f"remote.{name}", up=True, model="qwen")


def stop(name: str, sides: Mapping[str, Side]) -> None:
    """Close the upstream of a cluster and wait until `eu` knows."""
    sides[name].upstream.close()
    sides["eu"].wait_until(f"remote.{name}", up=False, model="qwen")


def test_model_of_another_cluster_is_answered(sides: dict[str, Side]) -> None:
    found = sides["eu"].gateway.chat("bge", headers=[("x-request-id", "chat-of-bge")])
    assert (found.status, found.error["code"]) == (400, "operation_not_supported")
    content = {"model": "bge", "input": "hello"}
    found = sides["eu"].gateway.request("/v1/embeddings", content, headers=[("x-request-id", "elsewhere")])
    assert (found.status, found.endpoint, found.headers["x-model-version"]) == (200, "us", "stable")
    near, far = (sides[name].gateway.log_entry("elsewhere") for name in ("eu", "us"))
    assert (near["endpoint"], near["tenant"], near["model"], near["remote"]) == ("remote.us", "acme", "bge", "-")
    assert (far["endpoint"], far["tenant"], far["model"], far["remote"]) == ("us", "acme", "bge", "eu")
    request = sides["us"].upstream.requests[-1]
    assert (request.path, request.header("authorization")) == ("/bge/v1/embeddings", None)
    assert (request.header("x-rayhelm-tenant"), request.header("x-rayhelm-url")) == ("acme", None)


def test_own_models_stay_in_the_cluster(sides: dict[str, Side]) -> None:
    assert {sides["eu"].gateway.chat("llama").endpoint for _ in range(5)} == {"eu"}


def test_list_of_models_has_those_of_other_clusters(sides: dict[str, Side]) -> None:
    gateway = sides["eu"].gateway
    listed = {one["id"] for one in gateway.request("/v1/models").json()["data"]}
    assert listed == {"llama", *KINDS}
    assert gateway.request("/v1/models/qwen").json()["id"] == "qwen"


def test_tenant_without_the_model_gets_the_response_of_an_unknown_one(sides: dict[str, Side]) -> None:
    gateway = sides["eu"].gateway
    hidden, unknown = gateway.chat("qwen", key="gamma-key"), gateway.chat("nothing", key="gamma-key")
    assert (hidden.status, hidden.body) == (unknown.status, unknown.body)
    assert hidden.status == 404
    assert "qwen" not in gateway.request("/v1/models", key="gamma-key").body.decode()
    hidden = gateway.request("/qwen/v1/chat/completions", {}, key="gamma-key")
    unknown = gateway.request("/nothing/v1/chat/completions", {}, key="gamma-key")
    assert (hidden.status, hidden.body) == (unknown.status, unknown.body)


@pytest.mark.parametrize("path", ["/qwen/v1/chat/completions", "/v1/chat/completions"])
def test_both_paths_of_a_model_are_forwarded(sides: dict[str, Side], path: str) -> None:
    content = {"model": "qwen", "messages": [{"role": "user", "content": "hello"}]}
    assert sides["eu"].gateway.request(path, content).endpoint in WEIGHTS


def test_custom_application_is_forwarded_with_its_query(sides: dict[str, Side]) -> None:
    assert sides["eu"].gateway.request("/images/v1/images?size=9", {"prompt": "a"}).endpoint == "us"
    assert sides["us"].upstream.requests[-1].path == "/images/v1/images?size=9"


@pytest.mark.parametrize("size", [100, 3_000_000])
def test_upload_is_forwarded_and_its_form_checked(sides: dict[str, Side], size: int) -> None:
    eu, us = sides["eu"], sides["us"]
    form = build_form((FILE, build_sound(size)), ("model", b"whisper"))
    found = upload(eu.gateway, form)
    assert (found.status, found.endpoint) == (200, "us")
    assert us.upstream.requests[-1].body == form
    before = len(us.upstream.requests)
    found = upload(eu.gateway, build_form((FILE, build_sound(size)), ("vllm_xargs", b"1")))
    assert (found.status, found.error["code"]) == (400, "field_not_allowed")
    for request in us.upstream.requests[before:]:
        assert_no_field(request.body, "vllm_xargs")


def test_stream_of_another_cluster_arrives_at_once(sides: dict[str, Side]) -> None:
    gate = sides["us"].upstream.gate()

    async def stream(_: ReceivedRequest, reply: Reply) -> None:
        await reply.start(content_type="text/event-stream")
        await reply.send(b"data: 1\n\n")
        await gate.wait()
        await reply.end()

    sides["us"].upstream.respond = stream
    with sides["eu"].gateway.connect() as connection:
        connection.send(build_request("/v1/embeddings", {"model": "bge", "input": "a"}))
        response = connection.begin_response()
        assert response.readline() == b"data: 1\n"
        gate.open()


@pytest.mark.parametrize("own", [{}, {"cache_salt": "mine"}, {"cache_salt": compute_salt("beta")}])
def test_serving_gateway_sets_the_salt_of_the_tenant(sides: dict[str, Side], own: Values) -> None:
    content = {"model": "qwen", "messages": [{"role": "user", "content": "hello"}], **own}
    name = sides["eu"].gateway.request("/v1/chat/completions", content).endpoint
    received = json.loads(sides[name].upstream.requests[-1].body)
    wanted = compute_salt("acme", *own.values())
    assert received == content | {"cache_salt": wanted}


# -- several clusters, and none ----------------------------------------------------------------------------------------


def count(side: Side, requests: int) -> Counter[str]:
    answers = [side.gateway.chat("qwen") for _ in range(requests)]
    assert {answer.status for answer in answers} == {200}
    return Counter(answer.endpoint for answer in answers)


def test_clusters_of_a_model_share_its_requests_by_weight(sides: dict[str, Side]) -> None:
    """Within five standard deviations."""
    found = count(sides["eu"], 200)
    assert set(found) == set(WEIGHTS)
    assert abs(found["us"] - 150) <= 5 * (200 * 0.75 * 0.25) ** 0.5, found


def test_remaining_cluster_gets_all_requests(sides: dict[str, Side]) -> None:
    stop("us", sides)
    assert count(sides["eu"], 20) == {"asia": 20}


def test_response_is_503_while_no_cluster_of_the_model_is_available(sides: dict[str, Side]) -> None:
    eu = sides["eu"]
    for name in WEIGHTS:
        stop(name, sides)
    counted = eu.gateway.request_metrics_port("/metrics/tenants")[1]
    found = eu.gateway.chat("qwen", headers=[("x-request-id", "no-cluster")])
    assert (found.status, found.error["code"]) == (503, "remote_gateways_unavailable")
    assert found.error["type"] == "server_error"
    assert "This cluster does not serve the model itself" in found.error["message"]
    assert found.headers["content-type"] == "application/json"
    assert eu.gateway.log_entry("no-cluster")["model"] == "qwen"
    assert eu.gateway.chat("llama").endpoint == "eu"
    after = eu.gateway.request_metrics_port("/metrics/tenants")[1]
    series = 'rayhelm_gateway_requests_total{tenant="acme",model="qwen",version="stable",code="5xx"}'
    assert read(after, series) == read(counted, series) + 1
    sides["asia"].upstream.open()
    eu.wait_until("remote.asia", up=True, model="qwen")
    assert eu.gateway.chat("qwen").endpoint == "asia"


def read(text: str, series: str) -> int:
    return sum(int(line.removeprefix(series)) for line in text.splitlines() if line.startswith(series))


def test_priority_decides_among_clusters_of_a_model() -> None:
    with start_three({"us": {"priority": 2}, "asia": {"priority": 1}}) as sides:
        assert count(sides["eu"], 20) == {"asia": 20}
        stop("asia", sides)
        assert count(sides["eu"], 20) == {"us": 20}


# -- what a gateway refuses --------------------------------------------------------------------------------------------


def test_forwarded_request_is_not_forwarded_again(sides: dict[str, Side]) -> None:
    """Gateway `us` believes that `eu` serves the model."""
    before = [len(side.upstream.requests) for side in sides.values()]
    found = sides["eu"].gateway.chat("qwen", key="us-to-eu", headers=[("x-rayhelm-tenant", "acme")])
    assert (found.status, found.error["code"]) == (503, "remote_unavailable")
    assert [len(side.upstream.requests) for side in sides.values()] == before
    assert sides["eu"].gateway.request("/-/ready/qwen/stable", key="us-to-eu").status == 503
    assert sides["eu"].gateway.request("/-/ready/llama/stable", key="us-to-eu").status == 200


def test_limits_of_a_tenant_count_at_the_first_gateway() -> None:
    """The limit of `us` for the same tenant is not reached by requests of `eu`."""
    few: Values = {"tenants": {"beta": {"requestsPerMinute": 3}}}
    with start_three({"us": {}, "asia": {}}, few) as sides:
        statuses = [sides["eu"].gateway.chat("qwen", key="beta-key").status for _ in range(5)]
        assert statuses == [200, 200, 200, 429, 429]


# -- versions and metrics ----------------------------------------------------------------------------------------------


def test_metrics_count_available_clusters_as_servers_of_the_version(sides: dict[str, Side]) -> None:
    """The panel `Available endpoints` and the alert MostRequestsForwarded read them."""

    def servers(kind: str, name: str) -> float:
        return sides["eu"].gateway.sum_metric(f"haproxy_backend_{kind}_servers", proxy=f"{name}:stable")

    assert (servers("active", "qwen"), servers("backup", "qwen")) == (2, 0)
    assert servers("backup", "llama") > 0
    stop("us", sides)
    assert (servers("active", "qwen"), servers("backup", "qwen")) == (1, 0)


def test_versions_of_another_cluster_keep_their_weights() -> None:
    """`us` has the version `next` for a fifth of the requests, and `eu` serves only `stable` itself."""
    with ExitStack() as stack:
        own, other = stack.enter_context(start_upstreams("eu", "us"))
        ports = [stack.enter_context(reserve_port()) for _ in range(2)]
        next_: dict[str, Any] = {
            "weight": 20,
            "routePrefix": "/next",
            "endpoints": model(other)["versions"]["stable"]["endpoints"],
        }
        versions = {"stable": {"weight": 80}, "next": next_}
        us = {"overlay": {"models": {"llama": {"versions": versions}}}}
        here = {"stable": {"weight": 80, "routePrefix": "", "endpoints": {"eu": None}}, "next": {"weight": 20}}
        eu = {
            "overlay": {
                "models": {"llama": {"versions": here}},
                "remoteGateways": {"us": {"models": {"llama": ["stable", "next"]}}},
            }
        }
        stack.enter_context(start_side("us", "eu", other, ports[1], ports[0], **us))
        left = stack.enter_context(start_side("eu", "us", own, ports[0], ports[1], **eu))
        left.wait_until("remote.us", up=True)
        # A health check that a busy computer answers late takes a remote away for a moment.
        answers = [answer for _ in range(100) if (answer := left.gateway.chat()).status == 200]
        assert len(answers) > 50
        found = Counter(answer.headers["x-model-version"] for answer in answers)
        assert {answer.json()["path"].split("/")[1] for answer in answers} == {"app", "next"}
        assert abs(found["next"] - 20) <= 20, found
        assert left.gateway.chat(headers=[("x-model-version", "next")]).json()["path"] == "/next/v1/chat/completions"
