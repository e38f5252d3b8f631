"""One test for each behavior of what the chart tenant renders."""

from typing import Any

import pytest

from charts import kit
from charts.kit import EXAMPLES as SERVICES
from charts.kit import only, pods
from rayhelm.deploy.charts.helm import charts_dir

Object = dict[str, Any]
ISOLATION = {
    ("Namespace", "research"),
    ("ServiceAccount", "default"),
    ("ResourceQuota", "research"),
    ("ResourceQuota", "research-denied"),
    ("ResourceQuota", "research-other-priority"),
    ("LimitRange", "research"),
    ("NetworkPolicy", "research-default-deny"),
    ("NetworkPolicy", "research-dns"),
}
"""What stays when the release goes."""


def rendered(overlay: Object | None = None, base: str = "tenant/minimal") -> list[Object]:
    return kit.rendered(overlay, chart="tenant", base=base, release="research", namespace="tenants")


def hard(name: str = "research", overlay: Object | None = None) -> dict[str, str]:
    found: dict[str, str] = only(rendered(overlay), "ResourceQuota", name)["spec"]["hard"]
    return found


def keys(item: Object) -> tuple[str, str]:
    return item["kind"], item["metadata"]["name"]


# -- namespace -------------------------------------------------------------------------------------------------------


def test_namespace_enforces_warns_and_audits_restricted() -> None:
    namespace = only(rendered(), "Namespace", "research")
    for mode in ("enforce", "warn", "audit"):
        assert namespace["metadata"]["labels"][f"pod-security.kubernetes.io/{mode}"] == "restricted"
        assert namespace["metadata"]["labels"][f"pod-security.kubernetes.io/{mode}-version"] == "latest"
    assert namespace["metadata"]["labels"]["rayhelm.dev/tenant"] == "research"


def test_namespace_name_can_differ_from_the_tenant_name() -> None:
    found = rendered({"namespace": {"name": "research-prod"}})
    assert only(found, "Namespace")["metadata"]["name"] == "research-prod"
    assert only(found, "LimitRange")["metadata"] | {"labels": 0, "annotations": 0} == {
        "name": "research", "namespace": "research-prod", "labels": 0, "annotations": 0,
    }  # fmt: skip


def test_namespace_annotation_has_the_gpus_for_upgrades() -> None:
    """Admission sees the namespace of an object, and never its quota."""
    noted = only(rendered({"quota": {"gpus": {"amd.com/gpu": {"planned": 1, "upgradeSurge": 3}}}}), "Namespace")
    assert noted["metadata"]["annotations"]["rayhelm.dev/upgrade-surge.amd.com_gpu"] == "3"
    assert only(rendered(), "Namespace")["metadata"]["annotations"]["rayhelm.dev/upgrade-surge.nvidia.com_gpu"] == "2"


def test_foreign_namespace_is_not_rendered_and_everything_else_is() -> None:
    without = rendered({"namespace": {"manage": False, "name": "research"}})
    assert {keys(item) for item in rendered()} - {keys(item) for item in without} == {("Namespace", "research")}
    inside = rendered({"namespace": {"manage": False}})
    assert {item["metadata"]["namespace"] for item in inside} == {"tenants"}


def test_only_isolation_stays_when_the_release_is_uninstalled() -> None:
    kept = {
        keys(item): item["metadata"]["annotations"]
        for item in rendered()
        if item["metadata"].get("annotations", {}).get("helm.sh/resource-policy") == "keep"
    }
    assert set(kept) == ISOLATION
    for annotations in kept.values():
        assert annotations["argocd.argoproj.io/sync-options"] == "Prune=false,Delete=false"


def test_kept_objects_are_rendered_with_any_values() -> None:
    """Helm leaves such an object standing too when an edit takes it out of the manifests."""
    for base in ("tenant/everything", "tenant/client"):
        found = {keys(item)[0]: item for item in rendered(base=base)}
        assert {kind for kind, _ in ISOLATION} - set(found) <= {"Namespace", "ServiceAccount"}
    fullest = {keys(item) for item in rendered(base="tenant/everything")}
    assert {(kind, name) for kind, name in ISOLATION if kind != "Namespace"} <= fullest


def test_pods_without_a_service_account_get_no_token() -> None:
    assert only(rendered(), "ServiceAccount", "default")["automountServiceAccountToken"] is False
    off = rendered({"defaultServiceAccount": {"manage": False}})
    assert not [item for item in off if item["kind"] == "ServiceAccount"]


# -- quota -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("gpus", "sum_"),
    [
        ({"planned": 4, "upgradeSurge": 4}, "8"),
        ({"planned": 4, "upgradeSurge": 0}, "4"),
        ({"planned": 4, "baseline": 6, "upgradeSurge": 4}, "10"),
        ({"planned": 0, "baseline": 6, "upgradeSurge": 1}, "7"),
    ],
)
def test_gpu_quota_is_baseline_plus_upgrade_surge(gpus: Object, sum_: str) -> None:
    overlay = {"quota": {"gpus": {"nvidia.com/gpu": None, "amd.com/gpu": gpus}}}
    quota = only(rendered(overlay), "ResourceQuota", "research")
    assert quota["spec"]["hard"]["requests.amd.com/gpu"] == sum_
    baseline = gpus.get("baseline", gpus["planned"])
    assert quota["metadata"]["annotations"]["rayhelm.dev/amd.com_gpu"] == (
        f"baseline {baseline} + upgrade surge {gpus['upgradeSurge']}; planned {gpus['planned']}"
    )


def test_each_gpu_resource_has_its_own_quota() -> None:
    more = {"quota": {"gpus": {"amd.com/gpu": {"planned": 1, "upgradeSurge": 0}}}}
    assert hard(overlay=more)["requests.nvidia.com/gpu"] == "4"
    assert hard(overlay=more)["requests.amd.com/gpu"] == "1"
    assert "requests.amd.com/gpu" not in hard("research-denied", more)
    assert hard("research-denied")["requests.amd.com/gpu"] == "0"


@pytest.mark.parametrize(
    ("baseline", "upgrade_surge", "sum_"),
    [
        ("64Gi", "64Gi", "128Gi"),
        ("1Ti", "512Gi", "1536Gi"),
        ("500m", "16", "16500m"),
        ("0.1", "0.2", "300m"),
        ("1G", "1Gi", "2073741824"),
        ("1500m", "500m", "2"),
        (200.5, 100, "300500m"),
        ("100G", "20G", "120G"),
    ],
)
def test_sums_of_quantities_have_the_canonical_form(baseline: Any, upgrade_surge: Any, sum_: str) -> None:
    overlay = {"quota": {"compute": {"cpu": {"baseline": baseline, "upgradeSurge": upgrade_surge}}}}
    assert hard(overlay=overlay)["requests.cpu"] == sum_


def test_bypasses_of_the_gateway_are_denied_or_limited() -> None:
    kinds = ("ingresses.networking.k8s.io", "gateways.gateway.networking.k8s.io")
    for name in ("services.loadbalancers", "services.nodeports", *(f"count/{kind}" for kind in kinds)):
        assert hard("research-denied")[name] == "0"
    opened = {"quota": {"objects": {"loadBalancers": 1}}}
    assert hard(overlay=opened)["services.loadbalancers"] == "1"
    assert "services.loadbalancers" not in hard("research-denied", opened)


CLAIMS = "count/resourceclaims.resource.k8s.io"


def test_resource_claims_are_as_many_as_devices() -> None:
    gpus = {"nvidia.com/gpu": {"planned": 2, "upgradeSurge": 1}, "amd.com/gpu": {"planned": 1, "upgradeSurge": 0}}
    assert hard(overlay={"quota": {"gpus": gpus, "extendedResources": {"rdma/hca": 4}}})[CLAIMS] == "8"
    assert CLAIMS not in hard("research-denied", {"quota": {"gpus": gpus}})


@pytest.mark.parametrize("quota", [{"gpus": None}, {"objects": {"resourceClaims": 0}}], ids=["no-gpus", "zero"])
def test_resource_claims_are_denied_without_gpus_or_with_zero(quota: dict[str, Any]) -> None:
    assert hard("research-denied", {"quota": quota})[CLAIMS] == "0"


def test_no_resource_is_both_denied_and_limited() -> None:
    for base in ("tenant/minimal", "tenant/everything", "tenant/client"):
        quotas = [item for item in rendered(base=base) if item["kind"] == "ResourceQuota"]
        plain = [set(item["spec"]["hard"]) for item in quotas if "scopeSelector" not in item["spec"]]
        assert len(plain) == 2
        assert not plain[0] & plain[1]


def test_denied_quota_exists_when_it_denies_nothing() -> None:
    all_given = {
        "quota": {
            "gpuResources": ["nvidia.com/gpu"],
            "objects": {"loadBalancers": 1, "nodePorts": 1, "ingresses": 1, "gateways": 1, "resourceClaims": 1},
        }
    }
    assert hard("research-denied", all_given) == {}


def test_priority_classes_are_limited_by_name() -> None:
    overlay = {"quota": {"priorityClasses": {"high": {"pods": 3, "gpus": {"nvidia.com/gpu": 2}}}}}
    spec = only(rendered(overlay), "ResourceQuota", "research-priority-high")["spec"]
    assert spec["hard"] == {"pods": "3", "requests.nvidia.com/gpu": "2"}
    (scope,) = spec["scopeSelector"]["matchExpressions"]
    assert scope == {"scopeName": "PriorityClass", "operator": "In", "values": ["high"]}


def test_quota_denies_every_priority_class_that_is_not_allowed() -> None:
    spec = only(rendered(), "ResourceQuota", "research-other-priority")["spec"]
    assert spec["hard"] == {"pods": "0"}
    exists, others = spec["scopeSelector"]["matchExpressions"]
    assert (exists["operator"], others["operator"]) == ("Exists", "NotIn")
    assert others["values"] == ["rayhelm-head", "rayhelm-workers", "rayhelm-batch"]


def test_only_heads_of_the_tenant_reach_its_redis() -> None:
    pods = {"app": "redis"}
    peer = {"namespace": "research-state", "podLabels": pods}
    overlay = {"networkPolicy": {"redis": {"peer": peer, "port": 6380}}}
    policy = only(rendered(overlay), "NetworkPolicy", "research-redis")
    assert policy["metadata"]["namespace"] == "research-state"
    assert policy["spec"]["podSelector"] == {"matchLabels": pods}
    assert policy["spec"]["policyTypes"] == ["Ingress"]
    heads, replicas = policy["spec"]["ingress"]
    assert heads == {
        "from": [
            {
                "namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": "research"}},
                "podSelector": {"matchLabels": {"rayhelm.dev/role": "head"}},
            }
        ],
        "ports": [{"port": 6380, "protocol": "TCP"}],
    }
    assert replicas == {"from": [{"podSelector": {"matchLabels": pods}}]}


def test_policy_of_redis_without_a_namespace_is_in_the_namespace_of_the_tenant() -> None:
    overlay = {"networkPolicy": {"redis": {"peer": {"podLabels": {"app": "redis"}}}}}
    assert only(rendered(overlay), "NetworkPolicy", "research-redis")["metadata"]["namespace"] == "research"


# -- limits ----------------------------------------------------------------------------------------------------------


def test_limit_range_gives_default_requests() -> None:
    (container,) = only(rendered(), "LimitRange")["spec"]["limits"]
    assert container == {
        "type": "Container",
        "defaultRequest": {"cpu": "100m", "memory": "128Mi"},
        "default": {"cpu": "1", "memory": "1Gi"},
    }


def test_rules_know_the_containers_with_fixed_requests() -> None:
    """`limit-range-min` and `limit-range-max` name them; KubeRay's own is proven on a control plane."""
    asked = {"model-0": {"cpu": "100m", "memory": "64Mi"}, "wait-for-weights": {"cpu": "50m", "memory": "64Mi"}}
    found = {part["name"]: part["resources"]["requests"] for part in containers() if part["name"] in asked}
    assert found == asked
    text = (charts_dir() / "tenant/templates/validate/_limits.tpl").read_text()
    for request in asked.values():
        assert f"cpu: {request['cpu']}, memory: {request['memory']}}}" in text


def test_ray_service_requests_no_less_than_the_limit_range() -> None:
    least = {"cpu": 0.05, "memory": 64 * 2**20}
    for part in containers():
        for resource, amount in part.get("resources", {}).get("requests", {}).items():
            assert number(amount) >= least.get(resource, 0), part["name"]


def number(quantity: str) -> float:
    units = {"m": 0.001, "Mi": 2**20, "Gi": 2**30, "Ti": 2**40, "": 1}
    amount = quantity.rstrip("mMGTi")
    return float(amount) * units[quantity.removeprefix(amount)]


def containers() -> list[Object]:
    made = [pod for example in SERVICES for pod in pods(kit.rendered(base=example))]
    return [part for pod in made for part in [*pod["spec"].get("initContainers", []), *pod["spec"]["containers"]]]


# -- network ---------------------------------------------------------------------------------------------------------


def policies(overlay: Object | None = None, base: str = "tenant/minimal") -> dict[str, Object]:
    return {
        item["metadata"]["name"]: item["spec"] for item in rendered(overlay, base) if item["kind"] == "NetworkPolicy"
    }


def test_pods_are_denied_all_connections_except_dns() -> None:
    found = policies()
    assert found == {
        "research-default-deny": {"podSelector": {}, "policyTypes": ["Ingress", "Egress"]},
        "research-dns": {
            "podSelector": {},
            "policyTypes": ["Egress"],
            "egress": [
                {
                    "to": [
                        {
                            "namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": "kube-system"}},
                            "podSelector": {"matchLabels": {"k8s-app": "kube-dns"}},
                        }
                    ],
                    "ports": [{"port": 53, "protocol": "UDP"}, {"port": 53, "protocol": "TCP"}],
                }
            ],
        },
    }


def test_egress_policy_selects_all_pods_but_those_of_services() -> None:
    found = policies(base="tenant/everything")["research-egress"]
    assert found["podSelector"] == {"matchExpressions": [{"key": "rayhelm.dev/service", "operator": "DoesNotExist"}]}
    assert found["policyTypes"] == ["Egress"]
    database, gateway = found["egress"]
    assert (database["to"], database["ports"][0]["port"]) == ([{"ipBlock": {"cidr": "10.5.0.0/16"}}], 5432)
    assert gateway["to"][0]["podSelector"]["matchLabels"] == {"rayhelm.dev/gateway": "gateway"}
    assert "research-egress" not in policies()


def test_extra_policy_selects_the_pods_with_its_labels() -> None:
    found = policies(base="tenant/everything")
    gateway, bucket = found["research-extra-upgrade-gateway"], found["research-extra-upgrade-gateway-bucket"]
    for each in (gateway, bucket):
        assert each["podSelector"]["matchLabels"] == {"gateway.networking.k8s.io/gateway-name": "chat-gateway"}
        assert each["policyTypes"] == ["Ingress", "Egress"]
    assert [port["port"] for port in gateway["ingress"][0]["ports"]] == [8080, 15020]
    assert len(gateway["ingress"][0]["from"]) == 2
    assert [[port["port"] for port in rule["ports"]] for rule in gateway["egress"]] == [[15012]]
    assert bucket["egress"] == [
        {
            "to": [{"ipBlock": {"cidr": "10.3.0.0/16"}}, {"ipBlock": {"cidr": "10.4.0.0/16"}}],
            "ports": [{"port": 443, "protocol": "TCP"}],
        }
    ]
    assert "ingress" not in bucket
    inside = found["research-extra-inside"]
    assert "egress" not in inside
    assert "ports" not in inside["ingress"][0]


def test_extra_policy_opens_the_peer_too_when_it_is_in_the_same_namespace() -> None:
    own = {"namespace": "research", "podLabels": {"app": 7}}
    policy = {
        "podLabels": {"app": "cache"},
        "ingress": {
            "from": {"own": own, "all-pods": {"namespace": "research"}, "other": {"namespace": "other"}},
            "ports": [6379],
        },
        "egress": {"to": {"own": {"peer": own}, "other": {"peer": {"namespace": "other"}}}, "ports": [5432]},
    }
    found = policies({"networkPolicy": {"extraPolicies": {"cache": policy}}})
    prefix = "research-extra-cache."
    ends = {name.removeprefix(prefix): spec for name, spec in found.items() if name.startswith(prefix)}
    cache, seven = ([{"podSelector": {"matchLabels": {"app": app}}}] for app in ("cache", "7"))
    out = {"policyTypes": ["Egress"], "egress": [{"to": cache, "ports": [{"port": 6379, "protocol": "TCP"}]}]}
    assert ends == {
        "from.own": {**seven[0], **out},
        "from.all-pods": {"podSelector": {"matchLabels": {}}, **out},
        "to.own": {
            **seven[0],
            "policyTypes": ["Ingress"],
            "ingress": [{"from": cache, "ports": [{"port": 5432, "protocol": "TCP"}]}],
        },
    }


def test_peer_with_labels_alone_is_in_the_namespace_of_the_tenant() -> None:
    web = {"podLabels": {"app": "web"}}
    policy = {
        "podLabels": {"app": "cache"},
        "ingress": {"from": {"web": web}, "ports": [6379]},
        "egress": {"to": {"web": {"peer": web}}, "ports": [8080]},
    }
    egress = {"web": {"peer": web, "ports": [8080]}}
    found = policies({"networkPolicy": {"extraPolicies": {"cache": policy}, "egress": egress}})
    peers = [{"podSelector": {"matchLabels": {"app": "web"}}}]
    assert found["research-extra-cache"]["ingress"][0]["from"] == peers
    assert found["research-extra-cache"]["egress"][0]["to"] == peers
    assert found["research-egress"]["egress"][0]["to"] == peers
    assert {"research-extra-cache.from.web", "research-extra-cache.to.web"} <= found.keys(), "both ends are open"


@pytest.mark.parametrize("example", SERVICES)
def test_default_deny_does_not_change_what_a_service_may_reach(example: str) -> None:
    """Each of its pods is denied by its own chart already, both ways, and opened by its own chart alone."""
    found = kit.rendered(base=example)
    denials = [item["spec"] for item in found if item["kind"] == "NetworkPolicy" and selects_no_more(item["spec"])]
    for pod in pods(found):
        labels = pod["metadata"]["labels"]
        types = {
            kind
            for spec in denials
            if spec["podSelector"]["matchLabels"].items() <= labels.items()
            for kind in spec["policyTypes"]
        }
        assert types == {"Ingress", "Egress"}, pod["metadata"]


def selects_no_more(spec: Object) -> bool:
    return "ingress" not in spec and "egress" not in spec and "matchExpressions" not in spec["podSelector"]


# -- rights ----------------------------------------------------------------------------------------------------------


def rules(role: str) -> set[tuple[str, str, str]]:
    """Group, resource and verb of every rule."""
    found = only(rendered(base="tenant/everything"), "Role", f"research-{role}")["rules"]
    return {
        (group, resource, verb)
        for rule in found
        for group in rule["apiGroups"]
        for resource in rule["resources"]
        for verb in rule["verbs"]
    }


def test_viewers_can_only_read_and_not_secrets() -> None:
    assert {verb for _, _, verb in rules("viewer")} == {"get", "list", "watch"}
    assert not [resource for _, resource, _ in rules("viewer") if resource.startswith("secrets")]


def test_editors_can_write_only_ray_services() -> None:
    assert rules("editor") == {("ray.io", "rayservices", verb) for verb in ("create", "update", "patch", "delete")}


@pytest.mark.parametrize("role", ["viewer", "editor", "deployer"])
def test_no_role_allows_exec_or_escalation(role: str) -> None:
    found = rules(role)
    assert not [item for item in found if "*" in item]
    subresources = {resource for _, resource, _ in found if "/" in resource}
    assert subresources <= {"pods/log"}
    assert not {group for group, _, _ in found} & {"rbac.authorization.k8s.io", "authentication.k8s.io"}
    assert not {verb for _, _, verb in found} & {"escalate", "bind", "impersonate", "deletecollection"}
    written = {resource for _, resource, verb in found if verb not in ("get", "list", "watch")}
    assert not written & {"resourcequotas", "limitranges", "namespaces", "externalsecrets", "localqueues"}


def test_deployers_can_write_every_kind_of_ray_service() -> None:
    made = {item["kind"] for example in SERVICES for item in kit.rendered(base=example)}
    made |= {"RayService", "Secret", "ScrapeConfig"}
    plural = {"NetworkPolicy": "networkpolicies"}
    written = {resource for _, resource, verb in rules("deployer") | rules("editor") if verb == "create"}
    assert {plural.get(kind, f"{kind.lower()}s") for kind in made} == written


def test_each_role_includes_the_rights_of_the_lower_role() -> None:
    def bound(role: str) -> set[str]:
        binding = next(
            item for item in rendered(base="tenant/everything") if keys(item) == ("RoleBinding", f"research-{role}")
        )
        assert binding["roleRef"] == {
            "apiGroup": "rbac.authorization.k8s.io",
            "kind": "Role",
            "name": f"research-{role}",
        }
        return {
            f"{subject['kind']} {subject.get('namespace', '')}/{subject['name']}" for subject in binding["subjects"]
        }

    assert bound("deployer") == {"ServiceAccount ci/research", "ServiceAccount flux-system/research"}
    assert bound("editor") - bound("deployer") == {
        "Group /research",
        "User /ada@example.com",
        "User /grace@example.com",
    }
    assert bound("viewer") - bound("editor") == {
        "Group /all-of-research", "User /auditor@example.com", "ServiceAccount monitoring/reader",
    }  # fmt: skip


def test_no_role_binding_is_rendered_without_subjects() -> None:
    assert not [item for item in rendered({"access": {"editors": {"groups": []}}}) if item["kind"] == "RoleBinding"]


# -- secrets and queues -----------------------------------------------------------------------------------------------


def test_secret_is_rendered_as_a_reference() -> None:
    overlay = {"externalSecrets": {"hub": {"store": {"name": "vault"}, "keys": {"token": {"key": "research/hub"}}}}}
    spec = only(rendered(overlay), "ExternalSecret", "hub")["spec"]
    assert spec["secretStoreRef"] == {"kind": "ClusterSecretStore", "name": "vault"}
    assert spec["data"] == [{"secretKey": "token", "remoteRef": {"key": "research/hub"}}]
    assert spec["target"] == {"name": "hub", "creationPolicy": "Owner", "template": {"type": "Opaque"}}


def test_nothing_of_other_operators_is_rendered_by_default() -> None:
    assert {item["kind"] for item in rendered()} == {kind for kind, _ in ISOLATION} | {"Role", "RoleBinding"}


def test_no_secret_is_rendered_from_values() -> None:
    assert "Secret" not in {item["kind"] for item in rendered(base="tenant/everything")}
