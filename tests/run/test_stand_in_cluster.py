"""CPU stand-ins on a cluster: values of every reference fleet."""

from dataclasses import replace
from functools import cache
from typing import Any

import pytest

from rayhelm.deploy.charts.helm import charts_dir, template
from rayhelm.deploy.render.files import Rendered, render_fleet
from rayhelm.deploy.render.releases import Release
from rayhelm.deploy.values.emit import select_changed
from rayhelm.deploy.values.gateway import GatewayValues
from rayhelm.deploy.values.platform import PlatformValues
from rayhelm.deploy.values.ray_service import RayServiceValues
from rayhelm.deploy.values.ray_service.image import RayImage
from rayhelm.deploy.values.tenant import TenantValues
from rayhelm.facts.closed import Closed
from rayhelm.run.standin.cluster import (
    GROUP,
    StandInCluster,
    adapt_gateway,
    adapt_platform,
    adapt_service,
    adapt_tenant,
)

VALUES = charts_dir().parent / "values"
FLEETS = [path.name for path in sorted(VALUES.iterdir()) if path.is_dir()]
CLUSTER = StandInCluster(
    kuberay="1.6.2",
    image=RayImage(repository="here.example/ray", tag="cpu", includes_rayhelm=True),
    haproxy="here.example:5000/haproxy:2.8",
    api_servers=("10.200.0.1/32",),
)


@cache
def fleet(name: str) -> Rendered:
    return render_fleet(VALUES / name / "fleet.yaml")


def test_stand_ins_allow_the_operator_of_the_cluster() -> None:
    rendered, cluster = fleet("multi-node"), replace(CLUSTER, operator_namespace="ray")
    for release in rendered.releases:
        match release.values:
            case RayServiceValues() as values:
                architectures = {plan.served_as: plan.architecture for plan in rendered.plan.of_service(release.name)}
                policy = adapt_service(values, architectures, cluster).values.network_policy
                assert policy.operator.namespace == "ray"
                assert policy.operator.pod_labels == values.network_policy.operator.pod_labels
            case TenantValues() as values:
                assert "ray:8265" in adapt_tenant(values, cluster).network_policy.allowed.namespaces


def small(release: Release, rendered: Rendered, *, workers: int = 1) -> Closed:
    match release.values:
        case RayServiceValues() as values:
            architectures = {plan.served_as: plan.architecture for plan in rendered.plan.of_service(release.name)}
            return adapt_service(values, architectures, CLUSTER, workers=workers).values
        case GatewayValues() as values:
            return adapt_gateway(values, CLUSTER)
        case TenantValues() as values:
            return adapt_tenant(values, CLUSTER)
        case PlatformValues() as values:
            return adapt_platform(values, CLUSTER)
    raise AssertionError(release.chart)


def objects(name: str, chart: str, *, workers: int = 1) -> list[dict[str, Any]]:
    rendered = fleet(name)
    return [
        item
        for release in rendered.releases
        if release.chart == chart
        for item in template(
            chart, release.name, release.namespace, select_changed(small(release, rendered, workers=workers))
        )
    ]


def service(name: str = "two-workstations", **options: Any) -> dict[str, Any]:
    (found,) = (item for item in objects(name, "ray-service", **options) if item["kind"] == "RayService")
    return found


@pytest.mark.parametrize("name", FLEETS)
def test_charts_accept_stand_ins_of_every_reference_fleet(name: str) -> None:
    for chart in ("platform", "tenant", "ray-service", "gateway"):
        items = objects(name, chart)
        assert items or chart == "tenant"
        assert "nvidia.com/gpu" not in str([item for item in items if item["kind"] == "RayService"])


@pytest.mark.parametrize("name", FLEETS)
def test_stand_in_pods_request_no_gpu_and_no_special_node(name: str) -> None:
    for item in objects(name, "ray-service"):
        if item["kind"] != "RayService":
            continue
        cluster = item["spec"]["rayClusterConfig"]
        (group,) = cluster["workerGroupSpecs"]
        assert (group["groupName"], group["resources"]["GPU"]) == (GROUP, "0")
        for pod in (cluster["headGroupSpec"]["template"]["spec"], group["template"]["spec"]):
            assert not {"nodeSelector", "tolerations", "topologySpreadConstraints", "runtimeClassName"} & set(pod)
            assert set(pod["containers"][0]["resources"]["limits"]) == {"cpu", "memory"}


def test_two_clusters_of_one_model_fit_on_two_cores() -> None:
    cluster = service()["spec"]["rayClusterConfig"]
    pods = [cluster["headGroupSpec"], *cluster["workerGroupSpecs"]]
    asked = [pod["template"]["spec"]["containers"][0]["resources"]["requests"]["cpu"] for pod in pods]
    if cluster["enableInTreeAutoscaling"]:
        asked.append(cluster["autoscalerOptions"]["resources"]["requests"]["cpu"])
    assert 2 * sum(int(amount.removesuffix("m")) for amount in asked) < 1000


def test_worker_has_ray_cpus_for_each_model_and_ingress() -> None:
    (group,) = service("homelab")["spec"]["rayClusterConfig"]["workerGroupSpecs"]
    models, custom = 4, 1  # speech does not use Ray Serve LLM
    limits = group["template"]["spec"]["containers"][0]["resources"]["limits"]
    assert int(limits["cpu"]) >= 2 * models + models + custom


def test_stand_ins_keep_the_security_settings() -> None:
    rendered = fleet("two-workstations")
    (release,) = (item for item in rendered.releases if item.chart == "ray-service")
    before, after = select_changed(release.values), select_changed(small(release, rendered))
    assert after["tenant"] == before["tenant"]
    assert after["upgrade"] == before["upgrade"]
    assert after["networkPolicy"]["allowedGateways"] == before["networkPolicy"]["allowedGateways"]
    assert "auth" not in after
    assert after["head"]["priorityClassName"] == before["head"]["priorityClassName"]
    assert after["workerGroups"][GROUP]["priorityClassName"] == "rayhelm-workers"


def test_stand_in_cluster_sets_api_server_image_and_operator() -> None:
    rendered = fleet("two-workstations")
    (release,) = (item for item in rendered.releases if item.chart == "ray-service")
    after = select_changed(small(release, rendered))
    assert after["networkPolicy"]["apiServer"]["cidrs"] == ["10.200.0.1/32"]
    assert after["image"] == {"repository": "here.example/ray", "tag": "cpu", "includesRayhelm": True}
    assert after["kuberay"] == {"version": "1.6.2"}


def test_more_workers_are_more_pods_of_the_same_size() -> None:
    one, two = (service(workers=count)["spec"]["rayClusterConfig"]["workerGroupSpecs"][0] for count in (1, 2))
    assert (one["minReplicas"], two["minReplicas"]) == (1, 2)
    assert one["template"] == two["template"]


def test_gateway_stand_in_keeps_routes_keys_and_limits() -> None:
    rendered = fleet("shared-gpus")
    (release,) = (item for item in rendered.releases if item.chart == "gateway")
    before, after = select_changed(release.values), select_changed(small(release, rendered))
    assert {key: after[key] for key in ("tenants", "models")} == {key: before[key] for key in ("tenants", "models")}
    assert after["image"] == {"repository": "here.example:5000/haproxy", "tag": "2.8"}


def test_gateway_stand_in_uses_the_chart_image_by_default() -> None:
    (release,) = (item for item in fleet("single-gpu").releases if item.chart == "gateway")
    assert isinstance(release.values, GatewayValues)
    plain = StandInCluster(kuberay="1.6.2", image=CLUSTER.image)
    assert adapt_gateway(release.values, plain).image == release.values.image


def test_tenant_stand_in_has_no_gpu_quota() -> None:
    quotas = [item["spec"]["hard"] for item in objects("shared-gpus", "tenant") if item["kind"] == "ResourceQuota"]
    gpus = {key: amount for hard in quotas for key, amount in hard.items() if "nvidia.com/" in key}
    assert gpus
    assert set(gpus.values()) == {"0"}


def test_platform_stand_in_keeps_policies_and_admits_the_image() -> None:
    rendered = fleet("single-gpu")
    (release,) = (item for item in rendered.releases if item.chart == "platform")
    before, after = select_changed(release.values)["policies"], select_changed(small(release, rendered))["policies"]
    registries = after.pop("imageSource")["registries"]
    assert after == before
    assert "here.example/ray" in registries


def test_adapt_functions_do_not_change_their_input() -> None:
    rendered = fleet("two-workstations")
    before = [select_changed(release.values) for release in rendered.releases]
    for release in rendered.releases:
        small(release, rendered)
    assert [select_changed(release.values) for release in rendered.releases] == before
