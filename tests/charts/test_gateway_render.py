"""Objects that chart gateway renders. tests/gateway has the tests of HAProxy itself."""

from typing import Any

import pytest

from charts import kit
from charts.kit import kinds, only

Object = dict[str, Any]


def rendered(overlay: Object | None = None, base: str = "gateway/minimal") -> list[Object]:
    return kit.rendered(overlay, chart="gateway", base=base, release="main-gateway")


def spec(kind: str, overlay: Object | None = None, base: str = "gateway/minimal") -> Object:
    found: Object = only(rendered(overlay, base), kind)["spec"]
    return found


def pod(overlay: Object | None = None, base: str = "gateway/minimal") -> Object:
    found: Object = spec("Deployment", overlay, base)["template"]["spec"]
    return found


def file(name: str, overlay: Object | None = None, base: str = "gateway/minimal") -> str:
    found: str = only(rendered(overlay, base), "ConfigMap")["data"][name]
    return found


def table(name: str, overlay: Object | None = None) -> dict[str, str]:
    lines = (line.partition(" ") for line in file(name, overlay).splitlines() if not line.startswith("#"))
    return {key: value for key, _, value in lines}


# -- pods ------------------------------------------------------------------------------------------------------------


def test_minimal_values_render_a_deployment_and_its_objects() -> None:
    assert kinds(rendered()) == {
        "ConfigMap",
        "Deployment",
        "HorizontalPodAutoscaler",
        "NetworkPolicy",
        "PodDisruptionBudget",
        "Service",
        "ServiceAccount",
    }


def test_deployment_has_no_replicas_when_autoscaling_is_on() -> None:
    assert "replicas" not in spec("Deployment")
    assert "replicas" not in spec("Deployment", base="gateway/keda")
    alone = {"autoscaling": {"kind": "None"}, "replicas": 3}
    assert spec("Deployment", alone)["replicas"] == 3
    assert "HorizontalPodAutoscaler" not in kinds(rendered(alone))


def test_hpa_has_the_configured_targets_only() -> None:
    def kinds_of_metrics(**scaling: int) -> list[str]:
        return [metric["type"] for metric in spec("HorizontalPodAutoscaler", {"autoscaling": scaling})["metrics"]]

    assert kinds_of_metrics() == ["ContainerResource"]
    assert kinds_of_metrics(targetRequestsInFlight=50) == ["ContainerResource", "Pods"]
    assert kinds_of_metrics(targetRequestsInFlight=50, targetCpuPercent=0) == ["Pods"]


def test_rolling_update_keeps_all_pods_available() -> None:
    assert spec("Deployment")["strategy"]["rollingUpdate"] == {"maxUnavailable": 0, "maxSurge": 1}


def test_pods_are_replaced_only_when_the_configuration_changes() -> None:
    def pods(overlay: Object | None = None) -> Object:
        found: Object = spec("Deployment", overlay)["template"]
        return found

    assert pods() == pods({"service": {"port": 81}, "labels": {"a": "b"}, "autoscaling": {"maxReplicas": 7}})
    assert pods() != pods({"timeouts": {"connectSeconds": 6}})
    assert pods() != pods({"tenants": {"acme": {"tokensPerMinute": 9000}}}), "the first one needs other rules"


def test_limits_weights_and_access_of_tenants_replace_no_pod() -> None:
    def version(weight: int) -> Object:
        return {"weight": weight, "routePrefix": "/chat", "endpoints": {"here": {"service": "chat"}}}

    acme = {"tokensPerMinute": 9000, "maxOutputTokens": {"llama-8b": 50}, "pinnedVersions": {"llama-8b": "next"}}
    other = {"prefixCache": {"sharedReason": "no salt"}, "versions": {"v1": version(100)}}
    base: Object = {
        "autoscaling": {"kind": "None"},
        "models": {"llama-8b": {"versions": {"stable": version(100), "next": version(0)}}, "other": other},
        "tenants": {"acme": acme, "rest": {"keys": {"secretName": "rest-keys"}, "models": ["other"]}},
    }

    def checksum(overlay: Object) -> str:
        annotations = spec("Deployment", kit.over(base, overlay))["template"]["metadata"]["annotations"]
        found: str = annotations["checksum/config"]
        return found

    tenants: list[Object] = [
        {"requestsPerMinute": 2, "concurrency": 1, "tokensPerMinute": 1, "maxOutputTokens": {"llama-8b": 9}},
        {"models": ["llama-8b", "other"], "pinnedVersions": {"llama-8b": "stable"}},
    ]
    shares: list[Object] = [{"stable": {"weight": old}, "next": {"weight": 100 - old}} for old in (80, 0)]
    edits: list[Object] = [
        {"replicas": 3},
        *({"tenants": {"acme": tenant}} for tenant in tenants),
        *({"models": {"llama-8b": {"versions": versions}}} for versions in shares),
    ]
    assert {checksum(edit) for edit in edits} == {checksum({})}


def test_init_container_checks_the_configuration() -> None:
    (check,), (haproxy,) = pod()["initContainers"], pod()["containers"]
    assert check["command"] == ["haproxy", "-C", "/etc/gateway", "-c", "-f", "haproxy.cfg"]
    assert haproxy["command"] == ["haproxy", "-C", "/etc/gateway", "-db", "-f", "haproxy.cfg"]
    assert check["image"] == haproxy["image"]
    assert check["volumeMounts"] == haproxy["volumeMounts"]


def test_keys_are_mounted_as_a_projected_volume() -> None:
    """A subPath is never updated, and a missing Secret stops the pod unless it is optional."""
    volume, *_ = pod(base="gateway/everything")["volumes"]
    first, *secrets, authority, salt, jwks = volume["projected"]["sources"]
    assert first == {"configMap": {"name": "main-gateway"}}
    assert [source["secret"] for source in secrets] == [
        {"name": "acme-keys", "optional": True, "items": [{"key": "hashes", "path": "keys/acme/keys"}]},
        {"name": "search-keys", "optional": True, "items": [{"key": "keys", "path": "keys/search/keys"}]},
        {
            "name": "gateway-remote-us",
            "optional": True,
            "items": [{"key": "key", "path": "remote/us/key"}, {"key": "accepted", "path": "keys/@us/keys"}],
        },
    ]
    items = [{"key": "us.crt", "path": "remote/us/ca.crt"}]
    assert authority == {"configMap": {"name": "gateway-ca", "items": items}}
    items = [{"key": "keys.json", "path": "jwks.json"}]
    assert salt == {"secret": {"name": "gateway-salt", "items": [{"key": "text", "path": "salt/key"}]}}
    assert jwks == {"configMap": {"name": "idp-jwks", "optional": True, "items": items}}
    assert volume["projected"]["defaultMode"] == 0o440
    for part in (*pod()["initContainers"], *pod()["containers"]):
        assert not any("subPath" in mount for mount in part["volumeMounts"])


def test_jwks_is_mounted_from_a_secret() -> None:
    volume, *_ = pod({"oidc": {"jwks": {"configMapName": "", "secretName": "idp"}}}, base="gateway/everything")[
        "volumes"
    ]
    assert volume["projected"]["sources"][-1]["secret"]["name"] == "idp"


def test_keys_of_tokens_are_written_to_memory_only() -> None:
    changed = pod(base="gateway/everything")
    (volume,) = [volume for volume in changed["volumes"] if volume["name"] == "token-keys"]
    assert volume["emptyDir"]["medium"] == "Memory"
    (mount,) = [mount for mount in changed["containers"][0]["volumeMounts"] if mount["name"] == "token-keys"]
    assert {"name": "TOKEN_KEYS_FOLDER", "value": mount["mountPath"]} in changed["containers"][0]["env"]
    assert [volume["name"] for volume in pod()["volumes"]] == ["config", "sockets"]


def test_tenant_without_a_secret_mounts_no_keys() -> None:
    values = {"tenants": {"acme": {"keys": {"secretName": ""}}}}
    volume, *_ = pod(values, base="gateway/everything")["volumes"]
    assert [source["secret"]["name"] for source in volume["projected"]["sources"] if "secret" in source] == [
        "search-keys",
        "gateway-remote-us",
        "gateway-salt",
    ]


def test_chart_renders_no_secret() -> None:
    assert "Secret" not in kinds(rendered(base="gateway/everything"))


def test_grace_period_covers_the_drain() -> None:
    (haproxy,) = pod()["containers"]
    hook = haproxy["lifecycle"]["preStop"]["exec"]["command"]
    assert hook[:2] == ["sh", "-c"]
    assert hook[2] == "sleep 10; kill -USR1 1; while kill -0 1 2>/dev/null; do sleep 1; done"
    assert "hard-stop-after 1320s" in file("haproxy.cfg")
    assert pod()["terminationGracePeriodSeconds"] == 10 + 1320 + 15


def test_pods_are_spread_over_nodes_and_zones() -> None:
    nodes, zones = pod()["topologySpreadConstraints"]
    assert (nodes["topologyKey"], zones["topologyKey"]) == ("kubernetes.io/hostname", "topology.kubernetes.io/zone")
    assert nodes["whenUnsatisfiable"] == zones["whenUnsatisfiable"] == "ScheduleAnyway"
    required, _ = pod({"nodeSpread": "Required"})["topologySpreadConstraints"]
    assert required["whenUnsatisfiable"] == "DoNotSchedule"
    assert nodes["nodeTaintsPolicy"] == required["nodeTaintsPolicy"] == "Honor"
    assert nodes["labelSelector"]["matchLabels"].items() <= spec("Deployment")["template"]["metadata"]["labels"].items()


@pytest.mark.parametrize(("cpu", "threads"), [("100m", 1), (1, 1), ("1500m", 2), (2.5, 3), ("4", 4)])
def test_threads_follow_the_cpu(cpu: Any, threads: int) -> None:
    assert f"\n  nbthread {threads}\n" in file("haproxy.cfg", {"resources": {"limits": {"cpu": cpu}}})


def test_digest_overrides_the_tag() -> None:
    digest = f"sha256:{'0' * 64}"
    assert pod({"image": {"digest": digest}})["containers"][0]["image"] == f"haproxy@{digest}"


# -- shares ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("overlay", "limits"),
    [
        ({}, "300 32"),
        ({"autoscaling": {"minReplicas": 4}}, "150 16"),
        ({"autoscaling": {"kind": "None"}, "replicas": 3}, "200 22"),
        ({"tenants": {"acme": {"requestsPerMinute": 1, "concurrency": 1}}}, "1 1"),
        ({"tenants": {"acme": {"requestsPerMinute": 25, "concurrency": 5}}}, "13 3"),
        ({"tenants": {"acme": {"tokensPerMinute": 999_999_999_999}}}, "300 32 500000000000"),
        ({"tenants": {"acme": {"tokensPerMinute": None}}}, "300 32"),
    ],
)
def test_limits_are_divided_by_the_minimum_of_pods(overlay: Object, limits: str) -> None:
    """Requests per minute and in flight, and tokens per minute where they are limited, rounded up."""
    assert table("limits.map", overlay) == {"acme": limits}


@pytest.mark.parametrize(
    ("bounds", "line"),
    [
        ({"maxOutputTokens": {"llama-8b": 999_999_999}}, "999999999 none Refuse"),
        ({"maxBodyBytes": {"llama-8b": 1_000_000}, "withoutMaxTokens": "Forward"}, "none 1000000 Forward"),
        ({"maxOutputTokens": {"llama-8b": 1}, "maxBodyBytes": {"llama-8b": 2}}, "1 2 Refuse"),
    ],
)
def test_bounds_are_whole_numbers(bounds: Object, line: str) -> None:
    """Helm reads large numbers as floats."""
    assert table("bounds.map", {"tenants": {"acme": bounds}}) == {"acme:llama-8b": line}


@pytest.mark.parametrize(
    ("weights", "slots"),
    [
        ([100], 1),
        ([80, 20], 5),
        ([50, 50], 2),
        ([95, 5], 20),
        ([99, 1], 100),
        ([34, 33, 33], 100),
        ([100, 0], 1),
        ([60, 30, 10], 10),
    ],
)
def test_weights_use_the_smallest_number_of_slots(weights: list[int], slots: int) -> None:
    versions = {f"v{number}": weight for number, weight in enumerate(weights)}
    one = {"routePrefix": "/", "endpoints": {"here": {"service": "chat"}}}
    llama = {"versions": {"stable": None, **{name: {**one, "weight": weight} for name, weight in versions.items()}}}
    overlay = {"models": {"llama-8b": llama}}
    assert table("slot-counts.map", overlay) == {"llama-8b": str(slots)}
    found = table("slot-versions.map", overlay)
    assert sorted(found) == sorted(f"llama-8b:{number}" for number in range(slots))
    for name, weight in versions.items():
        assert [*found.values()].count(name) == weight * slots / 100


# -- network ---------------------------------------------------------------------------------------------------------


def pods_of(namespace: str, **labels: str) -> Object:
    peer: Object = {"namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": namespace}}}
    return {**peer, **({"podSelector": {"matchLabels": labels}} if labels else {})}


def tcp(port: int) -> list[Object]:
    return [{"port": port, "protocol": "TCP"}]


def test_network_policy_allows_clients_and_endpoints_only() -> None:
    policy = spec("NetworkPolicy", base="gateway/everything")
    assert policy["podSelector"]["matchLabels"] == {"rayhelm.dev/gateway": "main-gateway"}
    assert policy["policyTypes"] == ["Ingress", "Egress"]
    assert policy["ingress"] == [
        {"from": [pods_of("apps")], "ports": tcp(8081)},
        {"from": [pods_of("ingress-nginx", app="nginx")], "ports": tcp(8081)},
        {"from": [{"ipBlock": {"cidr": "10.6.0.0/16"}}], "ports": tcp(8081)},
        {"from": [pods_of("observability", app="prometheus")], "ports": tcp(9404)},
    ]
    dns, *ways = policy["egress"]
    assert dns["to"] == [pods_of("kube-system", **{"k8s-app": "kube-dns"}), {"ipBlock": {"cidr": "169.254.20.10/32"}}]

    def service(name: str, namespace: str = "models") -> Object:
        return pods_of(namespace, **{"rayhelm.dev/service": name, "rayhelm.dev/role": "worker"})

    expected = [
        {"to": [service("chat-canary")], "ports": tcp(8000)},
        {"to": [{"ipBlock": {"cidr": "10.20.0.0/16"}}], "ports": tcp(9000)},
        {"to": [service("chat")], "ports": tcp(8100)},
        {"to": [service("embed")], "ports": tcp(8000)},
        {"to": [service("paint")], "ports": tcp(8000)},
        {"to": [pods_of("rank", app="rank")], "ports": tcp(8000)},
        {"to": [service("audio")], "ports": tcp(8000)},  # speech and whisper
        {"to": [{"ipBlock": {"cidr": "203.0.113.10/32"}}], "ports": tcp(8443)},
    ]
    assert ways == expected


def test_egress_selects_the_worker_labels_of_ray_service() -> None:
    worker = kit.cluster()["workerGroupSpecs"][0]["template"]["metadata"]["labels"]
    way = spec("NetworkPolicy")["egress"][1]["to"][0]["podSelector"]["matchLabels"]
    assert way.items() <= worker.items()
    head = kit.cluster()["headGroupSpec"]["template"]["metadata"]["labels"]
    assert not way.items() <= head.items()


def test_ray_service_can_allow_the_gateway_by_its_label() -> None:
    labels = spec("Deployment")["template"]["metadata"]["labels"]
    gateway = {"namespace": "models", "podLabels": {"rayhelm.dev/gateway": "main-gateway"}}
    policies = kit.rendered({"networkPolicy": {"allowedGateways": {"main": gateway}}})
    worker = only(policies, "NetworkPolicy", "chat-worker")
    let_in = [peer for rule in worker["spec"]["ingress"] for peer in rule["from"]]
    assert pods_of("models", **{"rayhelm.dev/gateway": "main-gateway"}) in let_in
    assert gateway["podLabels"].items() <= labels.items()


def test_client_with_labels_alone_is_in_the_namespace_of_the_gateway() -> None:
    clients = {"own": {"podLabels": {"app": "web"}}, "none": {}}
    overlay = {"networkPolicy": {"allowedClients": clients, "prometheus": {"namespace": ""}}}
    (rule,) = spec("NetworkPolicy", overlay)["ingress"]
    assert rule["from"] == [{"podSelector": {"matchLabels": {"app": "web"}}}]


def test_prometheus_is_not_allowed_with_an_empty_namespace() -> None:
    assert "ingress" not in {
        key
        for key, value in spec("NetworkPolicy", {"networkPolicy": {"prometheus": {"namespace": ""}}}).items()
        if value
    }


def test_network_policy_can_be_off_with_a_reason() -> None:
    assert "NetworkPolicy" not in kinds(rendered({"networkPolicy": {"enabled": False, "reason": "a mesh does it"}}))


def test_endpoints_have_fully_qualified_names() -> None:
    found = file("haproxy.cfg", base="gateway/everything")
    assert "server here chat-serve-svc.models.svc.cluster.example:8100 weight 200 id 1101513 check" in found
    assert "server here chat-canary-serve-svc.models.svc.cluster.example:8000 weight 100 id 1101513 check" in found
    assert "server edge edge.example:9000 weight 100 id 728241 check" in found


# -- exposure --------------------------------------------------------------------------------------------------------


def test_http_route_has_its_gateway_and_no_timeout() -> None:
    route = spec("HTTPRoute", base="gateway/keda")
    assert route["parentRefs"] == [{"name": "public", "namespace": "gateways", "sectionName": "https"}]
    (rule,) = route["rules"]
    assert rule["timeouts"] == {"request": "0s", "backendRequest": "0s"}
    assert rule["backendRefs"] == [{"name": "main-gateway", "port": 80}]


def test_http_route_has_no_timeouts_when_they_are_off() -> None:
    (rule,) = spec("HTTPRoute", {"exposure": {"httpRoute": {"timeouts": False}}}, "gateway/keda")["rules"]
    assert rule.keys() == {"matches", "backendRefs"}


def test_ingress_references_its_certificate() -> None:
    ingress = spec("Ingress", base="gateway/everything")
    hosts = ["ai.example.org", "llm.example.org"]
    assert ingress["tls"] == [{"hosts": hosts, "secretName": "ai-tls"}]
    assert [rule["host"] for rule in ingress["rules"]] == hosts
    elsewhere = {"exposure": {"ingress": {"tlsSecret": "", "tlsReason": "the controller's default certificate"}}}
    assert spec("Ingress", elsewhere, "gateway/everything")["tls"] == [{"hosts": hosts}]


def test_route_accepts_a_load_balancer_outside_the_cluster() -> None:
    route = {"kind": "Ingress", "hosts": ["ai.example.org"], "ingress": {"tlsSecret": "ai-tls"}}
    clients = {"balancer": {"cidrs": ["130.211.0.0/22"]}}
    (rule, *_) = spec("NetworkPolicy", {"exposure": route, "networkPolicy": {"allowedClients": clients}})["ingress"]
    assert rule["from"] == [{"ipBlock": {"cidr": "130.211.0.0/22"}}]


# -- operations ------------------------------------------------------------------------------------------------------


def test_hpa_scales_on_cpu_and_requests_in_flight() -> None:
    (cpu,) = spec("HorizontalPodAutoscaler")["metrics"]
    assert cpu["containerResource"]["target"]["averageUtilization"] == 70
    _, flight = spec("HorizontalPodAutoscaler", {"autoscaling": {"targetRequestsInFlight": 50}})["metrics"]
    assert flight["pods"] == {
        "metric": {"name": "haproxy_requests_in_flight"},
        "target": {"type": "AverageValue", "averageValue": "50"},
    }


def test_keda_queries_requests_in_flight_of_this_gateway() -> None:
    (trigger,) = spec("ScaledObject", base="gateway/keda")["triggers"]
    assert trigger["metadata"]["query"] == (
        'sum(haproxy_backend_current_sessions{namespace="models",rayhelm_dev_gateway="main-gateway",proxy=~".+:.+"})'
    )
    assert trigger["metadata"]["threshold"] == "50"
    assert trigger["metadata"]["ignoreNullValues"] == "false", "it would take a Prometheus that is lost for no load"
    assert trigger["authenticationRef"] == {"name": "prometheus"}
    assert "rayhelm.dev/gateway" in spec("PodMonitor", base="gateway/everything")["podTargetLabels"]


def test_disruption_budget_allows_one_pod() -> None:
    assert spec("PodDisruptionBudget")["maxUnavailable"] == 1


def test_selectors_match_the_pods() -> None:
    labels = spec("Deployment")["template"]["metadata"]["labels"]
    selectors = [
        spec("Deployment")["selector"]["matchLabels"],
        spec("Service")["selector"],
        spec("PodDisruptionBudget")["selector"]["matchLabels"],
        spec("NetworkPolicy")["podSelector"]["matchLabels"],
        spec("PodMonitor", {"scraping": {"kind": "PodMonitor"}})["selector"]["matchLabels"],
    ]
    for selector in selectors:
        assert selector
        assert selector.items() <= labels.items()


def test_service_account_can_be_an_existing_one() -> None:
    assert pod()["serviceAccountName"] == "main-gateway"
    assert pod(base="gateway/keda")["serviceAccountName"] == "default"
    named = {"serviceAccount": {"create": False, "name": "there-already"}}
    assert pod(named)["serviceAccountName"] == "there-already"
    assert "ServiceAccount" not in kinds(rendered(named))
