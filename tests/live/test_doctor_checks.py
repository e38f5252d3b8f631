"""The checks of the doctor on recorded answers of an API server: a healthy fleet, and each planted fault."""

import fnmatch
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from rayhelm.deploy.charts.helm import charts_dir
from rayhelm.deploy.render.files import render_fleet
from rayhelm.live.cluster.kinds import CONFIG_MAPS, DEPLOYMENTS, NETWORK_POLICIES, NODES, RENDERED, RESOURCE_QUOTAS
from rayhelm.live.cluster.reader import ClusterReader
from rayhelm.live.cluster.recorded import RecordedTransport
from rayhelm.live.doctor.access import build_manifests, list_kinds
from rayhelm.live.doctor.check import load_checks
from rayhelm.live.doctor.checks import kuberay_operator
from rayhelm.live.doctor.facts import Facts
from rayhelm.live.doctor.finding import CheckState, Finding, Severity
from rayhelm.live.doctor.run import run_checks
from shared.doctor_world import World, fleet
from shared.plant import Plant, load_plants
from testbed.nodes import simulated

PLANTS = [
    pytest.param(name, fault, id=f"{name}-{index}")
    for name, faults in load_plants().items()
    for index, fault in enumerate(faults)
    if not fault.is_only_real
]


@pytest.fixture
def world() -> World:
    return World(fleet())


def test_healthy_fleet_has_no_findings(world: World) -> None:
    report = world.examine()
    assert report.findings == ()
    assert {result.state for result in report.checks} <= {CheckState.ok, CheckState.skipped}


def test_healthy_cluster_has_no_findings_without_a_fleet_file() -> None:
    report = World(None).examine()
    assert report.findings == ()
    assert {result.id for result in report.checks if result.state is CheckState.skipped} >= {"drift"}


@pytest.mark.parametrize(("check", "fault"), PLANTS)
def test_planted_fault_is_found_with_its_cause(world: World, check: str, fault: Plant) -> None:
    world.plant(fault)
    findings = world.examine(check).findings
    assert any(_is_about(finding, fault) for finding in findings), findings
    assert all(finding.fix and finding.severity in Severity for finding in findings)


@pytest.mark.parametrize("name", load_checks())
def test_every_check_has_a_planted_fault(name: str) -> None:
    check = load_checks()[name]
    assert name in load_plants() or check.needs_prometheus or name in ("apis", "kubernetes-version")


def _is_about(finding: Finding, fault: Plant) -> bool:
    text = f"{finding.evidence} | {finding.cause}"
    return fnmatch.fnmatch(finding.object, fault.object) and bool(re.search(fault.found, text, re.DOTALL))


def test_forbidden_list_is_a_finding_with_the_missing_right(world: World) -> None:
    world.forbidden = frozenset({RESOURCE_QUOTAS.path()})
    report = world.examine("quota")
    (finding,) = report.findings
    assert "could not check: quotas" in finding.cause
    assert "resources: [events, resourcequotas]" in finding.fix
    assert report.checks[0].state is CheckState.not_checked


def test_forbidden_secret_is_a_finding_with_a_role_of_its_name(world: World) -> None:
    world.forbidden = frozenset({"/api/v1/namespaces/gateway/secrets/gateway-keys-lab"})
    (finding,) = world.examine("secrets").findings
    assert "forbidden: Secret gateway/gateway-keys-lab" in finding.evidence
    assert "resourceNames: [gateway-keys-lab]" in finding.fix


def test_missing_kind_is_a_finding_with_its_installation(world: World) -> None:
    for path in ("/apis/ray.io/v1", "/apis/ray.io/v1/rayservices", "/apis/ray.io/v1/rayclusters"):
        world.answers.pop(path)
    findings = world.examine("apis", "ray-services", "ray-clusters").findings
    assert {finding.object for finding in findings} == {"ray.io/v1 RayService", "ray.io/v1 RayCluster"}
    assert "helm install kuberay-operator" in findings[0].fix


def test_version_of_kubernetes_is_compared_with_the_fleet(world: World) -> None:
    world.answers["/version"] = {"major": "1", "minor": "35+"}
    (finding,) = world.examine("kubernetes-version").findings
    assert "version 1.35; the fleet file says 1.36" in finding.evidence


def test_untested_version_of_kubernetes_is_found(world: World) -> None:
    world.answers["/version"] = {"major": "1", "minor": "29"}
    evidence = [finding.evidence for finding in world.examine("kubernetes-version").findings]
    assert "version 1.29; tested: 1.34, 1.35, 1.36" in evidence


def test_rights_are_read_only_and_name_every_secret() -> None:
    import yaml

    roles = [item for item in yaml.safe_load_all(build_manifests(fleet(), "main")) if "rules" in item]
    rules = [rule for role in roles for rule in role["rules"]]
    assert {verb for rule in rules for verb in rule["verbs"]} == {"get", "list"}
    secrets = [rule for rule in rules if "secrets" in rule["resources"]]
    assert [(rule["verbs"], rule["resourceNames"]) for rule in secrets] == [(["get"], ["gateway-keys-lab"])]
    allowed = {(group, name) for rule in rules for group in rule["apiGroups"] for name in rule["resources"]}
    assert allowed >= {(kind.group, kind.plural) for kind in list_kinds()}


def test_drift_reads_every_kind_that_the_fleet_renders(world: World) -> None:
    known = {(kind.api_version, kind.name) for kind in RENDERED} | {("batch/v1", "Job")}
    facts: Facts = world.facts()
    assert {(item["apiVersion"], item["kind"]) for item in facts.manifests} <= known


@pytest.mark.parametrize(
    "file", sorted((charts_dir().parent / "values").glob("*/fleet.yaml")), ids=lambda file: file.parent.name
)
def test_simulated_nodes_of_every_reference_fleet_are_its_pools(file: Path) -> None:
    rendered = render_fleet(file)
    for cluster in rendered.plan.declared.clusters:
        nodes = simulated(rendered.plan.source, cluster)
        for node in nodes:
            node.setdefault("status", {})["conditions"] = [{"type": "Ready", "status": "True"}]
        facts = Facts(ClusterReader(RecordedTransport({NODES.path(): {"items": nodes}})), rendered, cluster)
        assert run_checks(facts, wanted=["nodes", "drivers"]).findings == ()
        facts = Facts(ClusterReader(RecordedTransport({NODES.path(): {"items": nodes[1:]}})), rendered, cluster)
        assert run_checks(facts, wanted=["nodes"]).findings


def test_node_without_the_rdma_resource_of_its_pool_is_found() -> None:
    rendered = render_fleet(charts_dir().parent / "values/multi-node/fleet.yaml")
    nodes = simulated(rendered.plan.source, "main")
    for node in nodes:
        node.setdefault("status", {})["conditions"] = [{"type": "Ready", "status": "True"}]
    nodes[0]["status"]["allocatable"].pop("rdma/hca_shared_devices_a")
    facts = Facts(ClusterReader(RecordedTransport({NODES.path(): {"items": nodes}})), rendered, "main")
    (finding,) = run_checks(facts, wanted=["nodes"]).findings
    assert "allocatable has no rdma/hca_shared_devices_a" in finding.evidence


def operator_deployment(
    namespace: str, labels: dict[str, str], image: str = "kuberay/operator:v1.6.2"
) -> dict[str, Any]:
    template = {"metadata": {"labels": labels}, "spec": {"containers": [{"name": "operator", "image": image}]}}
    metadata = {"name": "ray-operator", "namespace": namespace}
    spec = {"selector": {"matchLabels": labels}, "template": template}
    return {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": metadata, "spec": spec}


COMPONENT = "app.kubernetes.io/component"


@pytest.mark.parametrize(
    ("namespace", "labels", "fix"),
    [
        ("kuberay-system", {COMPONENT: "kuberay-operator", "app.kubernetes.io/name": "kuberay-operator"}, ""),
        ("kuberay-system", {COMPONENT: "kuberay-operator", "app.kubernetes.io/name": "ours"}, ""),
        ("kuberay-system", {COMPONENT: "ours", "app.kubernetes.io/name": "kuberay-operator"}, f"{COMPONENT}: ours"),
        ("kuberay-system", {"app.kubernetes.io/name": "ours"}, f"{COMPONENT}: LABEL OF YOUR OPERATOR"),
        ("ray", {COMPONENT: "kuberay-operator"}, "namespace: ray"),
    ],
    ids=["chart", "name-override", "component-override", "no-component", "other-namespace"],
)
@pytest.mark.parametrize(
    "image", ["quay.io/kuberay/operator:v1.6.2", "registry.example:5000/kuberay/operator@sha256:0"]
)
def test_operator_that_no_head_allows_is_found(
    world: World, namespace: str, labels: dict[str, str], fix: str, image: str
) -> None:
    world.create(operator_deployment(namespace, labels, image))
    findings = world.examine("operator-access").findings
    assert len(findings) == (len(list(list_head_policies(world))) if fix else 0)
    assert all(fix in finding.fix for finding in findings)


def test_operator_outside_the_namespace_of_the_fleet_file_is_found() -> None:
    labels = {"app.kubernetes.io/name": "kuberay-operator"}
    operator = operator_deployment("ray", labels) | {"status": {"availableReplicas": 1}}
    operator["metadata"] |= {"labels": labels}
    rendered = render_fleet(charts_dir().parent / "values/single-gpu/fleet.yaml")
    reader = ClusterReader(RecordedTransport({DEPLOYMENTS.path(): {"items": [operator]}}))
    found = list(kuberay_operator.CHECK.find(Facts(reader, rendered, "main")))
    (finding,) = [each for each in found if "namespace" in each.evidence]
    assert finding.evidence == "it runs in namespace ray; the fleet file says kuberay-system"
    assert finding.fix == "clusters:\n  main: {kuberayOperator: {namespace: ray}}"


@pytest.mark.parametrize(("labels", "count"), [({COMPONENT: "kuberay-operator"}, 0), ({"app": "other"}, 1)])
def test_pods_of_the_operators_namespace_are_read_without_its_deployment(
    world: World, labels: dict[str, str], count: int
) -> None:
    metadata = {"name": "operator", "namespace": "kuberay-system", "labels": labels}
    spec = {"containers": [{"name": "operator"}]}
    world.create({"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": spec})
    assert len(world.examine("operator-access").findings) == count * len(list(list_head_policies(world)))


def list_head_policies(world: World) -> Iterator[str]:
    return (name for item in world.items(NETWORK_POLICIES) if (name := item["metadata"]["name"]).endswith("-head"))


MEASURED = "pools: {POOL: {gpu: RTX-A5000-24GB+RTX-A4000-16GB, measured_at: 2026-11-01T12:00:00Z, pairs: PAIRS}}"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (MEASURED.replace("POOL", "gone").replace("PAIRS", "[]"), "it has pool `gone`; cluster `main` has: lab"),
        ("pools: {lab: [", "not complete measurements"),
        (MEASURED.replace("POOL", "lab").replace("PAIRS", "[]"), ""),
    ],
    ids=["pool-that-is-gone", "half-written", "same-plan"],
)
def test_measurements_of_the_cluster_are_compared_with_the_plan(world: World, text: str, message: str) -> None:
    metadata = {"name": "rayhelm-measurements", "namespace": "rayhelm-probe"}
    world.items(CONFIG_MAPS).append({"kind": "ConfigMap", "metadata": metadata, "data": {"measurements.yaml": text}})
    found = [each.evidence for each in world.examine("measured-plan").findings]
    assert [message in evidence for evidence in found] == ([True] if message else [])
