"""The product as a whole: the releases of a reference fleet, in real pods, with Ray and vLLM in them.

CPU stand-ins replace the models. Pod Security `restricted`, quotas, token authentication, admission policies and
default-deny are on, as rendered.
"""

import json
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import httpx
import pytest

from cluster.kit.wait import eventually
from gateway.kit.certificates import issue, write_ca
from pods.kit.cluster import Cluster, pod
from pods.kit.product import FORBIDDEN, Product, product_of, stand_ins_of
from pods.kit.scraping import scrape
from rayhelm.deploy.charts.helm import charts_dir
from rayhelm.deploy.render.releases import Release
from rayhelm.deploy.values.ray_service import RayServiceValues
from rayhelm.live.cluster.kubectl import KubectlError
from rayhelm.run.rehearsal.without_gpus import LOAD_CLIENT
from shared.dashboard_queries import OF_UNUSED_FEATURES, fill_variables, queries_of

FLEET = charts_dir().parent / "values" / "two-workstations" / "fleet.yaml"
MODEL, TENANT, CLIENTS = "qwen3-32b", "lab", "apps"
DASHBOARDS = charts_dir().parent / "dashboards"
WITHOUT_DATA = ("rayhelm:", "exception", "rejections", *OF_UNUSED_FEATURES)
"""Parts of queries without data here: no recording rules, no failed and no refused request, and what is not used."""
TLS = "    serveTls: {certificateAuthority: {configMap: serve-ca}}\n"
"""What the fleet file gets for TLS."""
PLAIN_HTTP = """
import http.client
connection = http.client.HTTPConnection("{host}", 8000, timeout=30)
connection.request("GET", "/-/healthz")
try:
    print(connection.getresponse().status)
except ConnectionResetError:  # RemoteDisconnected is one; a port that nothing listens on raises another
    print("closed without a response")
"""
NEW_CLUSTER = {"strategy": "NewCluster", "deletionDelaySeconds": 30}
PATIENCE = 120
"""Seconds for an answer; a tiny model takes one."""

pytestmark = pytest.mark.timeout(1800)


@pytest.fixture(scope="module")
def product(cluster: Cluster) -> Iterator[Product]:
    with product_of(cluster, FLEET) as found:
        yield found


@pytest.fixture
def client(product: Product) -> Iterator[httpx.Client]:
    """A client with a key of the tenant."""
    headers = {"Authorization": f"Bearer {product.session.keys[TENANT]}"}
    with httpx.Client(base_url=product.gateway, headers=headers, timeout=PATIENCE, trust_env=False) as session:
        yield session


def chat(**changes: Any) -> dict[str, Any]:
    return {"model": MODEL, "messages": [{"role": "user", "content": "hi"}], "max_tokens": 8, **changes}


def test_chat_is_answered_through_the_gateway(client: httpx.Client) -> None:
    answer = client.post("/v1/chat/completions", json=chat())
    assert answer.status_code == 200, answer.text
    assert answer.json()["model"] == MODEL
    assert answer.json()["usage"]["completion_tokens"] == 8


def test_stream_arrives_in_chunks_and_complete(client: httpx.Client) -> None:
    with client.stream("POST", "/v1/chat/completions", json=chat(stream=True)) as answer:
        assert answer.status_code == 200
        lines = [line.removeprefix("data: ") for line in answer.read().decode().split("\n") if line]
    assert lines[-1] == "[DONE]"
    pieces = [json.loads(line)["choices"] for line in lines[:-1]]
    assert len(pieces) > 2
    assert any(choice["finish_reason"] for choices in pieces for choice in choices)


def test_helm_says_that_every_model_answers(product: Product) -> None:
    service = product.of("ray-service")
    assert "Succeeded" in product.session.run_helm(
        "test", service.name, f"--namespace={service.namespace}", "--timeout=5m"
    )


def test_client_without_a_key_is_unknown(client: httpx.Client) -> None:
    for headers in ({"Authorization": ""}, {"Authorization": "Bearer another"}):
        answer = client.post("/v1/chat/completions", json=chat(), headers=headers)
        assert (answer.status_code, answer.json()["error"]["code"]) == (401, "invalid_api_key")


def test_model_that_the_tenant_may_not_call_is_refused(client: httpx.Client) -> None:
    answer = client.post("/v1/chat/completions", json=chat(model=FORBIDDEN))
    assert (answer.status_code, answer.json()["error"]["code"]) == (404, "model_not_found")


def test_pods_of_clients_reach_the_gateway_and_no_others_do(product: Product, namespace: str) -> None:
    gateway, service = product.of("gateway"), product.of("ray-service")
    cluster = product.cluster
    address = f"{gateway.name}.{gateway.namespace}.svc.cluster.local:80"
    served = f"{service.name}-serve-svc.{service.namespace}.svc.cluster.local:8000"
    cluster.start(namespace, "stranger", "pause")
    with cluster.namespace(CLIENTS):
        cluster.start(CLIENTS, "client", "pause")
        cluster.until(CLIENTS, "client", address, open=True)
        assert not cluster.connects(CLIENTS, "client", served), "past the gateway there is no key"
    assert not cluster.connects(namespace, "stranger", address)
    assert not cluster.connects(namespace, "stranger", served)


def test_alias_answers_in_the_namespace_of_its_clients(product: Product, namespace: str) -> None:
    """It is a Service in their namespace, without a gateway: KServe names its services so."""
    service, cluster = product.of("ray-service"), product.cluster
    values = service.values
    assert isinstance(values, RayServiceValues)
    ((application, settings),) = values.serve.applications.items()
    path = f"{settings.route_prefix or f'/{application}'}/v1/chat/completions"
    url = f"http://chat-predictor.{namespace}.svc.cluster.local:{values.serve.port}{path}"
    ask = (
        f"wget -q -O- --tries 1 -T {PATIENCE} --header 'Content-Type: application/json' "
        f"--post-data '{json.dumps(chat())}' {url} || true"
    )
    change = {
        "aliases": {"chat-predictor": {"namespace": namespace}},
        "networkPolicy": {"allowedGateways": {"clients": {"namespace": namespace}}},
    }
    cluster.start(namespace, "client", image=product.image, command=["sleep", "infinity"])

    def answer() -> str:
        return cluster.kubectl("exec", "client", f"--namespace={namespace}", "--", "bash", "-c", ask)

    assert answer() == ""
    product.session.install(product.change(service, change))
    try:
        answered = eventually(answer, "an answer by the alias")
    finally:
        product.session.install(service)
    assert json.loads(answered)["usage"]["completion_tokens"] == 8


def test_rays_dashboard_requires_a_token(product: Product) -> None:
    service = product.of("ray-service")
    head = product.session.list_pods(service, "head")[0]["metadata"]["name"]
    ask = "wget -q -O- -T 10 --server-response http://localhost:8265/api/serve/applications/ 2>&1 || true"
    said = product.cluster.kubectl(
        "exec", head, f"--namespace={service.namespace}", "--container=ray-head", "--", "bash", "-c", ask
    )
    assert "401" in said


def test_pods_run_without_rights_and_the_namespace_takes_no_others(product: Product) -> None:
    service = product.of("ray-service")
    for item in product.session.list_pods(service, "head") + product.session.list_pods(service, "worker"):
        for status in item["status"]["containerStatuses"]:
            assert status["ready"], status
            assert status["restartCount"] == 0, status
            assert status["user"]["linux"]["uid"] == 1000
    namespace = product.cluster.get("", "namespace", service.namespace)
    assert namespace["metadata"]["labels"]["pod-security.kubernetes.io/enforce"] == "restricted"


def test_tenants_quota_counts_the_pods_and_a_policy_denies_gpus(product: Product) -> None:
    service = product.of("ray-service")
    quotas = product.cluster.get(service.namespace, "resourcequota")["items"]
    assert max(int(quota["status"]["used"].get("pods", 0)) for quota in quotas) >= 2
    with pytest.raises(KubectlError, match=r"extended-resource: the quota of this tenant does not count"):
        product.cluster.apply(greedy(service.namespace))


def test_stream_that_loses_its_replica_ends_with_an_error(product: Product, client: httpx.Client) -> None:
    # A tiny model has said everything before a busy computer has brought the first piece: then the kill came too late.
    for _ in range(10):
        last = last_of_a_stream_that_loses_its_replica(product, client)
        product.session.wait(lambda: asked(client), "another replica", product.of("ray-service").namespace)
        if last != "[DONE]":
            break
    assert "the replica failed" in json.loads(last)["error"]["message"]


def last_of_a_stream_that_loses_its_replica(product: Product, client: httpx.Client) -> str:
    service, session = product.of("ray-service"), product.session
    (worker,) = (item["metadata"]["name"] for item in session.list_pods(service, "worker"))
    where = (worker, f"--namespace={service.namespace}", "--container=ray-worker")
    kill = "pkill -9 -f '[S]erveReplica:.*LLMServer'"  # the bracket keeps the shell from finding itself
    with client.stream(
        "POST", "/v1/chat/completions", json=chat(max_tokens=4000, ignore_eos=True, stream=True)
    ) as answer:
        assert answer.status_code == 200, answer.read()
        pieces = answer.iter_bytes()
        seen = next(pieces)
        session.kubectl("exec", *where, "--", "bash", "-c", kill)
        seen += b"".join(pieces)
    return seen.rstrip(b"\n").rpartition(b"\n")[2].decode().removeprefix("data: ")


def asked(client: httpx.Client) -> bool:
    return client.post("/v1/chat/completions", json=chat()).status_code == 200


def test_requests_over_the_tenants_limit_get_429(product: Product, client: httpx.Client) -> None:
    """The last one: the minute is used up."""
    limit = product.rendered.plan.declared.tenants[TENANT].requests_per_minute or 0
    assert limit
    answers = [client.get("/v1/models") for _ in range(limit + 5)]
    refused = [answer for answer in answers if answer.status_code == 429]
    assert refused
    assert refused[0].json()["error"]["code"] == "rate_limit_exceeded"
    assert "retry-after" in refused[0].headers


@pytest.mark.short
def test_panels_have_data_through_pod_monitors(product: Product) -> None:
    """With the namespace and the service that the PodMonitors write into the labels."""
    service, gateway = product.of("ray-service"), product.of("gateway")
    queries = {
        f"{dashboard} {name}": fill_variables(text, {"namespace": release.namespace, "service": service.name})
        for dashboard, release in (("service", service), ("gateway", gateway))
        for name, text in queries_of(DASHBOARDS / f"{dashboard}.json").items()
        if not any(part in text for part in WITHOUT_DATA)
    }
    with scrape(product) as server, product.called():
        pods = {pod["metadata"]["name"] for release in (service, gateway) for pod in product.session.list_pods(release)}
        eventually(lambda: pods <= {each["labels"]["pod"] for each in server.targets()}, "a target of each pod")
        empty = list(queries)

        def find_empty() -> list[str]:
            empty[:] = [name for name in empty if not server.asks(queries[name])]
            return empty

        eventually(lambda: not find_empty(), "data of all panels", shows=lambda: empty)


@pytest.mark.short
def test_another_cluster_takes_over_under_load_and_no_request_is_lost(product: Product) -> None:
    """One worker each; the room for both is what the stand-in leaves free."""
    service, session = product.of("ray-service"), product.session
    before = session.list_ray_clusters(service)
    change = {"upgrade": NEW_CLUSTER, "head": {"env": {"CHANGED": "1"}}}
    with product.called() as load:
        session.install(product.change(service, change))
        session.wait_for_switch(service, before)
        session.wait_until_removed(service, before)
    assert len(load.outcome.answered) > 50
    assert load.outcome.failed == ()


@pytest.fixture(scope="module")
def secured(product: Product, tmp_path_factory: pytest.TempPathFactory) -> Product:
    """The fleet with `serveTls`: its service in a new Ray cluster, and its gateway."""
    file = tmp_path_factory.mktemp("tls") / "fleet.yaml"
    before_tls, section, after = FLEET.read_text().partition("    apiServer:")
    file.write_text(before_tls + TLS + section + after)
    _, stand_ins, _ = stand_ins_of(product.cluster, file)
    found = replace(product, stand_ins=stand_ins)
    service, gateway, session = found.of("ray-service"), found.of("gateway"), found.session
    certificate = issue(service.name, names=(host_of(service),))
    pair = {"tls.crt": certificate.certificate, "tls.key": certificate.key}
    found.cluster.apply(
        {
            "apiVersion": "v1",
            "kind": "Secret",
            "metadata": {"name": f"{service.name}-serve-tls", "namespace": service.namespace},
            "type": "kubernetes.io/tls",
            "stringData": pair,
        },
        {
            "apiVersion": "v1",
            "kind": "ConfigMap",
            "metadata": {"name": "serve-ca", "namespace": gateway.namespace},
            "data": {"ca.crt": write_ca()},
        },
    )
    before = session.list_ray_clusters(service)
    session.install(found.change(service, {"upgrade": NEW_CLUSTER}))
    session.wait_for_switch(service, before)
    session.wait_until_removed(service, before)
    session.install(gateway)
    session.wait_for_rollout(gateway)
    return found


def test_chat_is_answered_over_tls_between_gateway_and_serve(secured: Product) -> None:
    service, session = secured.of("ray-service"), secured.session
    headers = {"Authorization": f"Bearer {session.keys[LOAD_CLIENT]}"}
    with httpx.Client(base_url=secured.gateway, headers=headers, timeout=PATIENCE, trust_env=False) as client:
        session.wait(lambda: asked(client), "an answer over TLS", service.namespace)
    session.wait_until_ready(service)
    for item in session.list_pods(service, "worker"):
        (container,) = [each for each in item["spec"]["containers"] if each["name"] == "ray-worker"]
        assert "https://localhost:8000/-/healthz" in container["readinessProbe"]["exec"]["command"][-1]
        assert all(status["ready"] for status in item["status"]["containerStatuses"])


def test_client_rejects_serve_port_over_tls_with_another_authority(secured: Product) -> None:
    url = f"https://{host_of(secured.of('ray-service'))}:8000/-/healthz"
    command = f"cat >/tmp/ca.pem; wget -q -O /dev/null --tries 1 -T 30 --ca-certificate /tmp/ca.pem {url}; echo $?"
    assert run_in_head(secured, command, write_ca("ca")) == "0"
    assert run_in_head(secured, command, write_ca("another")) == "5", "exit status of wget: a wrong certificate"


def test_serve_port_over_tls_closes_plain_http_without_a_response(secured: Product) -> None:
    program = PLAIN_HTTP.format(host=host_of(secured.of("ray-service")))
    assert run_in_head(secured, "python -", program) == "closed without a response"


def run_in_head(product: Product, command: str, text: str) -> str:
    """Return the output of a command in the head, which NetworkPolicies let through to the Serve port."""
    service = product.of("ray-service")
    head = product.session.list_pods(service, "head")[0]["metadata"]["name"]
    where = (head, f"--namespace={service.namespace}", "--container=ray-head")
    return product.session.kubectl("exec", "--stdin", *where, "--", "bash", "-c", command, text=text).strip()


def host_of(service: Release) -> str:
    return f"{service.name}-serve-svc.{service.namespace}.svc.cluster.local"


def greedy(namespace: str) -> dict[str, Any]:
    """A pod that requests a GPU and is valid otherwise."""
    wanted = pod(namespace, "greedy", image="rayhelm.local/ray:cpu", **{"rayhelm.dev/tenant": TENANT})
    limits = {"nvidia.com/gpu": "1", "cpu": "1", "memory": "1Gi"}
    wanted["spec"]["containers"][0]["resources"] = {"limits": limits, "requests": limits}
    wanted["spec"]["priorityClassName"] = "rayhelm-workers"
    return wanted
