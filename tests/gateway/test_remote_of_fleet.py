"""Two gateways with the values that one fleet file renders: only endpoints and health checks are of this computer."""

from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager

import pytest

from gateway.kit.certificates import Certificate, create_client_context, issue, write_ca
from gateway.kit.pair import Side, tls_files
from gateway.kit.process import hash_key, start_gateway
from gateway.kit.upstream import Upstream, start_upstreams
from gateway.kit.values import Values
from rayhelm.deploy.compose.gateway import build_gateways
from rayhelm.deploy.compose.ray_service import build_ray_service_values
from rayhelm.deploy.values.emit import select_changed
from rayhelm.fleet.document import parse_document
from rayhelm.fleet.load import parse_fleet
from rayhelm.planner.planner import plan_fleet
from shared.ports import reserve_port

FLEET = """\
fleet: joined
clusters:
  eu:
    apiServer: {cidrs: [10.0.0.1/32]}
    gateway:
      host: gateway.example
      tls: {secrets: [public], cidrs: [127.0.0.1/32]}
      remotes:
        us:
          certificateAuthority: {configMap: gateway-ca}
          cidrs: [127.0.0.1/32]
          host: 127.0.0.1
          port: US
          serverName: us.example
  us:
    apiServer: {cidrs: [10.0.0.1/32]}
    gateway: {host: us.example, tls: {secrets: [public], cidrs: [127.0.0.1/32]}TO_EU}
pools:
  eu: {gpu: L4-24GB, nodes: 2, cluster: eu}
  us: {gpu: L4-24GB, nodes: 2, cluster: us}
tenants: {acme: {models: [llama, far], requestsPerMinute: 1000000, concurrency: 10000}}
models:
  llama: {source: Qwen/Qwen2.5-7B-Instruct, context: 4096, pool: eu}
  llama-us: {source: Qwen/Qwen2.5-7B-Instruct, context: 4096, pool: us, servedAs: {model: llama}}
  far: {source: BAAI/bge-m3, task: embed, pool: us}
"""
TO_EU = (
    ", remotes: {eu: {certificateAuthority: {configMap: gateway-ca}, cidrs: [127.0.0.1/32], host: 127.0.0.1, port: EU,"
    " serverName: eu.example}}"
)
LOCAL: Values = {
    "health": {"intervalSeconds": 0.2, "failures": 3},
    "timeouts": {"keyRefreshSeconds": 0.1, "connectSeconds": 1},
    "autoscaling": {"kind": "None"},
    "replicas": 1,
}


def render(ports: Mapping[str, int], to_eu: str) -> dict[str, Values]:
    """Return the values of both gateways that `rayhelm render` writes."""
    text = FLEET.replace("TO_EU", to_eu).replace("port: US", f"port: {ports['us']}").replace("EU", str(ports["eu"]))
    loaded = parse_fleet(parse_document(text, "fleet.yaml"))
    plan = plan_fleet(loaded)
    built = build_gateways(plan, build_ray_service_values(plan))
    return {name: select_changed(values) for name, values in built.items()}


def adapt(values: Values, upstream: Upstream) -> Values:
    """Return the values with an upstream of this computer."""
    end = {"host": "127.0.0.1", "cidrs": ["127.0.0.1/32"], "port": upstream.port}
    versions = {name: model["versions"]["stable"] for name, model in values["models"].items()}
    found = {name: list(version["endpoints"]) for name, version in versions.items() if "endpoints" in version}
    assert found == {"eu": {"llama": ["llama"]}, "us": {"llama": ["llama-us"], "far": ["far"]}}[upstream.name]
    changed = {name: {"stable": {**versions[name], "endpoints": {upstream.name: end}}} for name in found}
    models = {
        name: {**model, "versions": changed.get(name, model["versions"])} for name, model in values["models"].items()
    }
    return {**values, **LOCAL, "models": models}


@contextmanager
def start_fleet(
    to_eu: str = TO_EU, keys: Mapping[str, str] | None = None, certificate: Certificate | None = None
) -> Iterator[tuple[Side, Side]]:
    """Start both gateways. `keys` are the ones that are sent, by cluster; `certificate` is the one of `us`."""
    sent = {"eu": "eu-to-us", "us": "us-to-eu"} if keys is None else keys
    quick = {"haproxy.cfg": lambda text: text.replace("retries 5", "retries 0")}
    names = ("eu", "us")
    with ExitStack() as stack:
        upstreams = dict(zip(names, stack.enter_context(start_upstreams(*names)), strict=True))
        ports = {name: stack.enter_context(reserve_port()) for name in names}
        rendered, sides = render(ports, to_eu), {}
        for name, other in (names[::-1], names):
            own = certificate if name == "us" and certificate else issue(name, names=(f"{name}.example",))
            mounted = {
                **tls_files(own),
                f"remote/{other}/ca.crt": write_ca(),
                f"keys/@{other}/keys": f"{hash_key(f'{other}-to-{name}')} first\n",
                **({f"remote/{other}/key": sent[name]} if name in sent else {}),
            }
            context = create_client_context()
            context.check_hostname = False
            values = adapt(rendered[name], upstreams[name])
            gateway = stack.enter_context(
                start_gateway(values, port=ports[name], mounted=mounted, tls=context, edit=quick)
            )
            sides[name] = Side(gateway, upstreams[name])
        yield sides["eu"], sides["us"]


@pytest.fixture(scope="module")
def pair() -> Iterator[tuple[Side, Side]]:
    with start_fleet() as (eu, us):
        eu.wait_until("remote.us", up=True)
        us.wait_until("remote.eu", up=True)
        yield eu, us


@pytest.mark.parametrize("first", [0, 1], ids=["eu", "us"])
def test_each_cluster_of_a_fleet_serves_the_requests_of_the_other(pair: tuple[Side, Side], first: int) -> None:
    here, there = pair[first], pair[1 - first]
    names = ("eu", "us")[first], ("us", "eu")[first]
    assert here.gateway.chat().endpoint == names[0]
    here.upstream.close()
    try:
        assert here.gateway.chat().endpoint == names[1]
        assert there.upstream.requests[-1].header("x-rayhelm-tenant") == "acme"
    finally:
        here.upstream.open()
    here.wait_until(names[0], up=True)
    there.wait_until(f"remote.{names[0]}", up=True)
    assert here.gateway.chat().endpoint == names[0]


def test_cluster_of_a_fleet_answers_for_a_model_of_the_other(pair: tuple[Side, Side]) -> None:
    eu, us = pair
    content = {"model": "far", "input": "hello"}
    eu.wait_until("remote.us", up=True, model="far")
    assert {side.gateway.request("/v1/embeddings", content).endpoint for side in pair} == {"us"}
    assert us.upstream.requests[-1].path == "/far/v1/embeddings"
    us.upstream.close()
    try:
        eu.wait_until("remote.us", up=False, model="far")
        found = eu.gateway.request("/v1/embeddings", content)
        assert (found.status, found.error["code"]) == (503, "remote_gateways_unavailable")
    finally:
        us.upstream.open()
    eu.wait_until("remote.us", up=True, model="far")
    us.wait_until("us", up=True)
    eu.wait_until("remote.us", up=True)
    assert eu.gateway.request("/v1/embeddings", content).endpoint == "us"


def test_cluster_that_names_no_other_accepts_requests_and_forwards_none() -> None:
    with start_fleet(to_eu="") as (eu, us):
        eu.wait_until("remote.us", up=True)
        eu.upstream.close()
        assert eu.gateway.chat().endpoint == "us"
        eu.upstream.open()
        us.upstream.close()
        assert us.gateway.chat().status == 503


@pytest.mark.parametrize("keys", [{}, {"eu": "another"}], ids=["missing", "wrong"])
def test_gateway_without_the_right_key_serves_its_own_cluster(keys: dict[str, str]) -> None:
    """A pod starts without the Secret of the key."""
    with start_fleet(to_eu="", keys=keys) as (eu, us):
        eu.wait_until("remote.us", up=False)
        eu.gateway.wait_for_output("code: 401")
        assert eu.gateway.chat().endpoint == "eu"
        eu.upstream.close()
        assert eu.gateway.chat().status == 503
        assert us.upstream.requests == []


def test_gateway_forwards_nothing_to_a_wrong_certificate_of_a_fleet() -> None:
    with start_fleet(to_eu="", certificate=issue("us", names=("eu.example",))) as (eu, us):
        eu.gateway.wait_for_output("Server llama.stable.remote.us/us is DOWN, reason: Layer6 invalid response")
        eu.upstream.close()
        assert eu.gateway.chat().status == 503
        assert us.upstream.requests == []
