"""Reference fleets as `rayhelm render` writes them: platform, tenants, services and gateways, in their own
namespaces. Of the two that are left out, test_fleets.py installs the services; their other charts have no value of
their own."""

import re
from collections.abc import Iterator

import pytest

from cluster.kit.argocd_diff import find_differences
from cluster.kit.cluster import Cluster, Object
from cluster.kit.fleets import Fleet, fleet_clusters
from cluster.kit.references import missing_references
from cluster.kit.standing import Standing, install_fleet
from cluster.kit.wait import eventually
from rayhelm.check.admission.policy import load_chart_policies
from rayhelm.deploy.render.releases import Release

LEFT_OUT = ("expert-parallel", "single-gpu")
ANOTHER_POD = {"head": {"tmpSize": "11Gi"}}
"""An edit of values for which KubeRay builds a second cluster."""


@pytest.fixture(scope="module", params=[fleet for fleet in fleet_clusters() if fleet.name not in LEFT_OUT], ids=str)
def fleet(request: pytest.FixtureRequest, cluster: Cluster) -> Iterator[Fleet]:
    found: Fleet = request.param
    with cluster.machines(found.machines()):
        yield found


@pytest.fixture(scope="module")
def standing(fleet: Fleet, cluster: Cluster) -> Iterator[Standing]:
    with install_fleet(fleet, cluster) as here:
        yield here


def test_all_pods_of_the_gateways_are_ready(standing: Standing) -> None:
    for gateway in standing.releases("gateway"):

        def ready(gateway: Release = gateway) -> bool:
            found = standing.cluster.one("Deployment", gateway.name, gateway.namespace)
            return found["status"].get("readyReplicas", 0) == found["spec"]["replicas"] > 0

        eventually(
            ready, f"the gateway {gateway.file}", shows=lambda gateway=gateway: standing.cluster.tell(gateway.namespace)
        )


def test_gateway_pods_refer_to_nothing_that_is_missing(standing: Standing) -> None:
    for gateway in standing.releases("gateway"):
        pods = standing.cluster.all("Pod", gateway.namespace)
        assert pods
        assert not [line for pod in pods for line in missing_references(standing.cluster, pod)]


def test_every_server_of_a_gateway_is_a_service(standing: Standing) -> None:
    for gateway in standing.releases("gateway"):
        config = standing.cluster.one("ConfigMap", gateway.name, gateway.namespace)["data"]["haproxy.cfg"]
        servers = set(re.findall(r"^ +server \S+ ([^. ]+)\.([^. ]+)\.svc\.\S+?:(\d+) ", config, re.MULTILINE))
        plan = standing.fleet.rendered.plan
        behind = plan.gateways[gateway.cluster].models
        assert {name.removesuffix("-serve-svc") for name, _, _ in servers} == {
            model.service
            for model in plan.models.values()
            if model.served_as in behind and plan.services[model.service].cluster == gateway.cluster
        }
        for name, namespace, port in servers:
            ports = standing.cluster.one("Service", name, namespace)["spec"]["ports"]
            assert int(port) in {each["port"] for each in ports}


def test_services_allow_the_pods_of_their_gateway(standing: Standing) -> None:
    for gateway in standing.releases("gateway"):
        (pod, *_) = standing.cluster.all("Pod", gateway.namespace)
        for service in standing.releases("ray-service"):
            policies = standing.cluster.all("NetworkPolicy", service.namespace)
            peers = [
                peer
                for policy in policies
                for rule in policy["spec"].get("ingress", [])
                for peer in rule.get("from", [])
                if {"port": 8000, "protocol": "TCP"} in rule.get("ports", [])
            ]
            assert any(_admits(peer, pod) for peer in peers), service.name


def _admits(peer: Object, pod: Object) -> bool:
    namespace = peer.get("namespaceSelector", {}).get("matchLabels", {}).get("kubernetes.io/metadata.name")
    wanted = peer.get("podSelector", {}).get("matchLabels", {})
    return namespace == pod["metadata"]["namespace"] and wanted.items() <= pod["metadata"]["labels"].items()


def test_argo_cd_has_no_difference_to_ignore(standing: Standing) -> None:
    """No controller and no default of the API server changes a field that a chart renders."""
    releases = [one for one in standing.fleet.rendered.releases if one.cluster == standing.fleet.cluster]
    objects = [item for one in releases for item in standing.helm.manifest(one.name, one.namespace)]

    def differ() -> list[str]:
        return find_differences(standing.cluster, objects)

    eventually(lambda: not differ(), "no difference", shows=differ)


def test_quota_equals_the_plan(standing: Standing) -> None:
    plans = standing.fleet.rendered.plan.services.values()
    for tenant in standing.releases("tenant"):
        mine = [plan for plan in plans if (plan.tenant, plan.cluster) == (tenant.name, tenant.cluster)]
        hard = standing.quota(tenant)["hard"]
        for resource in {name for plan in mine for name in plan.gpu_resources}:
            planned = sum(plan.gpu_resources.get(resource, 0) for plan in mine)
            surge = sum(plan.gpu_resources.get(resource, 0) for plan in mine if plan.upgrade == "NewCluster")
            assert hard[f"requests.{resource}"] == str(planned + surge)


def test_service_is_upgraded_within_its_quota(standing: Standing) -> None:
    """The old cluster goes after a while; until then both are counted."""
    for service in standing.releases("ray-service"):
        plan = standing.fleet.rendered.plan.services[service.name]
        if plan.upgrade != "NewCluster":
            continue
        (before,) = standing.ray_clusters(service)
        standing.install(service, ANOTHER_POD)

        def another(service: Release = service, old: str = before["metadata"]["name"]) -> bool:
            status = standing.cluster.one("RayService", service.name, service.namespace)["status"]
            active = status.get("activeServiceStatus", {}).get("rayClusterName", "")
            return bool(active) and active != old

        eventually(another, f"{service.name} on another cluster")
        events = standing.cluster.all("Event", service.namespace)
        assert not [event["message"] for event in events if "exceeded quota" in event.get("message", "")]


def test_policies_refuse_no_object_of_the_operator(standing: Standing) -> None:
    """Last, after an upgrade: Ray clusters, pods, Services and Jobs of both clusters came past them."""
    bindings = standing.cluster.kubectl("get", "validatingadmissionpolicybindings", "--output=name").split()
    assert len([name for name in bindings if "/rayhelm-" in name]) == len(load_chart_policies())
    for service in standing.releases("ray-service"):
        events = standing.cluster.all("Event", service.namespace)
        assert not [event["message"] for event in events if "ValidatingAdmissionPolicy" in event.get("message", "")]
