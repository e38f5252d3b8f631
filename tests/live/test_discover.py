"""`rayhelm discover`: pools from the nodes of a cluster."""

from pathlib import Path
from time import process_time
from typing import Any

import pytest
import yaml

from rayhelm.deploy.compose.ray_service import build_ray_service_values
from rayhelm.errors import FleetError
from rayhelm.facts import load_catalog
from rayhelm.fleet.document import parse_document
from rayhelm.fleet.load import LoadedFleet, parse_fleet
from rayhelm.live.cluster.reader import ClusterReader
from rayhelm.live.cluster.recorded import RecordedTransport
from rayhelm.live.discovery.cluster import Discovery, discover
from rayhelm.live.discovery.fleet_text import format_fleet
from rayhelm.live.discovery.machine import Machine, Unusable, read_machine
from rayhelm.planner.planner import plan_fleet
from shared.command import run
from shared.fleets import load
from testbed.nodes import cpu_nodes, simulated, uniform

Object = dict[str, Any]

VALUES = Path(__file__).parents[2] / "values"
FLEETS = sorted(path.parent.name for path in VALUES.glob("*/fleet.yaml"))
KNOWN = load_catalog()
MODELS = """
models:
  chat: {source: Qwen/Qwen3-0.6B, context: 4096, unpinnedReason: a test of discover}
"""
OPERATOR = {
    "metadata": {"name": "kuberay-operator", "namespace": "kuberay-system"},
    "spec": {
        "selector": {},
        "template": {"spec": {"containers": [{"image": "quay.io/kuberay/operator:v1.6.2"}]}},
    },
}


def cluster_with(nodes: list[Object], forbidden: frozenset[str] = frozenset(), **answers: Any) -> ClusterReader:
    known = {
        "/version": {"major": "1", "minor": "36+"},
        "/api/v1/nodes": {"items": nodes},
        "/apis/apps/v1/deployments": {"items": [OPERATOR]},
        "/api/v1/namespaces/default/services/kubernetes": {"spec": {"clusterIP": "10.96.0.1"}},
        "/apis/discovery.k8s.io/v1/namespaces/default/endpointslices": {
            "items": [{"endpoints": [{"addresses": ["192.0.2.7"]}]}]
        },
    }
    return ClusterReader(RecordedTransport({**known, **answers}, forbidden), "test")


def found_in(nodes: list[Object]) -> Discovery:
    return discover(cluster_with(nodes), KNOWN)


def written(found: Discovery) -> str:
    return format_fleet("found", "main", found.settings, found.notes, found.pools, found.unusable)


def node(**changes: Any) -> Object:
    (one,) = uniform("L4-24GB", 1, 2)
    one["metadata"]["labels"] |= changes.pop("labels", {})
    one["status"]["allocatable"] |= changes.pop("allocatable", {})
    for key, value in changes.items():
        one[key] = one.get(key, {}) | value
    return one


def machines_of(loaded: LoadedFleet, cluster: str) -> list[tuple[str, int]]:
    """GPU and count of each host."""
    pools = [pool for pool in loaded.fleet.pools.values() if pool.cluster == cluster]
    hosts = [(KNOWN.gpu(host.gpu).id, host.gpus) for pool in pools for host in pool.hosts]
    plain = [pool for pool in pools if not pool.hosts]
    return sorted(hosts + [(pool.gpu or "", pool.gpus_per_node or 1) for pool in plain for _ in range(pool.nodes or 1)])


@pytest.mark.parametrize("name", FLEETS)
def test_discover_finds_the_hosts_of_each_reference_fleet(name: str) -> None:
    loaded = load((VALUES / name / "fleet.yaml").read_text())
    for cluster in loaded.fleet.clusters:
        found = found_in([*simulated(loaded, cluster), *cpu_nodes(2)])
        assert not found.unusable
        hosts = [(machine.gpu.id, machine.gpus) for pool in found.pools for machine in pool.machines]
        assert sorted(hosts) == machines_of(loaded, cluster)
        rdma = {pool.rdma_resource for pool in loaded.fleet.pools.values() if pool.cluster == cluster}
        assert {pool.fields.get("rdmaResource") for pool in found.pools} == rdma


@pytest.mark.parametrize("name", FLEETS)
def test_discovered_fleet_is_accepted_with_a_model(name: str) -> None:
    loaded = load((VALUES / name / "fleet.yaml").read_text())
    for cluster in loaded.fleet.clusters:
        text = written(found_in(simulated(loaded, cluster)))
        assert parse_fleet(parse_document(text + MODELS, "found.yaml")).fleet.pools


def test_discover_finds_the_partitions_of_shared_gpus() -> None:
    loaded = load((VALUES / "shared-gpus/fleet.yaml").read_text())
    pools = {pool.fields["gpu"]: pool.fields["sharing"] for pool in found_in(simulated(loaded)).pools}
    assert pools["A100-SXM-80GB"] == {"layout": {"1g.10gb": 2, "2g.20gb": 1, "3g.40gb": 1}}
    assert pools["H100-SXM-80GB"] == {"layout": {"3g.40gb": 2}}
    assert pools["L4-24GB"] == {"shares": 2}


# Nodes of Intel GPUs tell a GPU by the id of its device, which is not known of each.
FOUND_BY_LABELS = [gpu.id for gpu in KNOWN.gpus() if gpu.vendor not in ("google", "intel") or gpu.identifying_label]


@pytest.mark.parametrize("gpu", FOUND_BY_LABELS)
def test_discover_knows_each_gpu_of_the_catalog(gpu: str) -> None:
    (pool,) = found_in(uniform(gpu, 1, 1)).pools
    assert (pool.fields["gpu"], pool.fields["nodes"], pool.fields["gpusPerNode"]) == (gpu, 1, 1)


def test_discover_reads_versions_and_addresses_of_the_api_server() -> None:
    settings = found_in([node()]).settings
    cidrs = ["10.96.0.1/32", "192.0.2.7/32"]
    expected = {"kubernetes": "1.36", "kuberay": "1.6.2", "apiServer": {"cidrs": cidrs}, "gpuFeatureDiscovery": True}
    assert settings == expected


def test_discover_writes_another_namespace_of_the_operator() -> None:
    operator = {**OPERATOR, "metadata": {"name": "kuberay-operator", "namespace": "ray"}}
    found = discover(cluster_with([node()], **{"/apis/apps/v1/deployments": {"items": [operator]}}), KNOWN)
    text = written(found) + MODELS
    assert "kuberayOperator: {namespace: ray}" in text
    assert load(text).fleet.clusters["main"].kuberay_operator.namespace == "ray"


@pytest.mark.parametrize(
    ("answers", "note"),
    [
        ({"/version": {"major": "1", "minor": "29"}}, "kubernetes: the cluster has 1.29"),
        ({"/apis/apps/v1/deployments": {"items": []}}, "kuberay: no Deployment"),
        (
            {
                "/apis/apps/v1/deployments": {
                    "items": [OPERATOR, {**OPERATOR, "metadata": {"name": "other", "namespace": "ray"}}]
                }
            },
            "kuberayOperator.namespace: operators run in several: kuberay-system, ray",
        ),
    ],
)
def test_discover_notes_what_it_cannot_write(answers: Object, note: str) -> None:
    found = discover(cluster_with([node()], **answers), KNOWN)
    assert any(line.startswith(note) for line in found.notes)
    assert f"# {note}" in written(found)


def test_discover_goes_on_when_only_nodes_may_be_read() -> None:
    forbidden = frozenset({"/apis/apps/v1/deployments", "/api/v1/namespaces/default/services/kubernetes"})
    found = discover(cluster_with([node()], forbidden), KNOWN)
    assert [line.split(":")[0] for line in found.notes] == ["kuberay", "apiServer.cidrs"]
    assert found.pools


def test_nodes_that_may_not_be_read_are_a_problem_with_the_role_that_is_missing() -> None:
    with pytest.raises(FleetError) as raised:
        discover(cluster_with([node()], frozenset({"/api/v1/nodes"})), KNOWN)
    (problem,) = raised.value.problems
    assert "forbids reading its nodes: GET /api/v1/nodes" in problem.message
    assert "--verb=get,list --resource=nodes" in str(problem.fix)


@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        ({"status": {"conditions": [{"type": "Ready", "status": "False", "reason": "KubeletNotReady"}]}}, "not Ready"),
        ({"spec": {"unschedulable": True}}, "cordoned"),
        ({"labels": {"nvidia.com/gpu.product": "NVIDIA-Z9000"}}, "no GPU `NVIDIA-Z9000`"),
        ({"labels": {"nvidia.com/gpu.product": ""}}, "no label with the name of its GPU"),
    ],
    ids=["not-ready", "cordoned", "unknown-gpu", "without-labels"],
)
def test_node_that_no_pool_can_have_is_left_out_with_a_fix(changes: Object, reason: str) -> None:
    left_out = read_machine(node(**changes), KNOWN)
    assert isinstance(left_out, Unusable)
    assert reason in left_out.reason
    assert left_out.fix.command
    (other,) = uniform("L4-24GB", 1, 2, pool="other")
    bad = node(**changes)
    found = found_in([bad, other])
    assert [pool.fields["nodes"] for pool in found.pools] == [1]
    assert f"# node {bad['metadata']['name']} is left out" in written(found)


def test_discover_fails_with_each_reason_when_no_node_can_be_used() -> None:
    with pytest.raises(FleetError, match="cordoned"):
        found_in([node(spec={"unschedulable": True})])
    with pytest.raises(FleetError, match="none of the 3 nodes of cluster test offers a GPU"):
        found_in(cpu_nodes(3))


def test_provider_labels_name_the_gpu_when_feature_discovery_is_missing() -> None:
    unlabeled = node(labels={"nvidia.com/gpu.product": "", "cloud.google.com/gke-accelerator": "nvidia-l4"})
    machine = read_machine(unlabeled, KNOWN)
    assert isinstance(machine, Machine)
    assert machine.gpu.id == "L4-24GB"


def test_pools_of_equal_gpus_are_selected_by_a_label_that_differs() -> None:
    first = [node(labels={"eks.amazonaws.com/nodegroup": "a"})]
    labels = {"eks.amazonaws.com/nodegroup": "b", "nvidia.com/gpu.count": "4"}
    second = [node(labels=labels, allocatable={"nvidia.com/gpu": "4"})]
    second[0]["metadata"]["name"] = "second"
    selectors = [pool.fields["nodeSelector"] for pool in found_in(first + second).pools]
    assert selectors == [{"eks.amazonaws.com/nodegroup": "a"}, {"eks.amazonaws.com/nodegroup": "b"}]


def test_pools_of_amd_gpus_are_selected_by_the_device_id() -> None:
    pools = found_in([*uniform("Strix-Halo-128GB", 1, 1, pool="a"), *uniform("Radeon-680M", 1, 1, pool="b")]).pools
    assert [pool.fields["nodeSelector"] for pool in pools] == [
        {"amd.com/gpu.device-id": "1681"},
        {"amd.com/gpu.device-id": "1586"},
    ]


def test_taints_that_charts_do_not_tolerate_become_tolerations() -> None:
    taints = [
        {"key": "nvidia.com/gpu", "value": "present", "effect": "NoSchedule"},
        {"key": "team", "value": "search", "effect": "NoSchedule"},
        {"key": "node.kubernetes.io/disk-pressure", "effect": "NoSchedule"},
    ]
    (pool,) = found_in([node(spec={"taints": taints})]).pools
    expected = {"key": "team", "effect": "NoSchedule", "operator": "Equal", "value": "search"}
    assert pool.fields["tolerations"] == [expected]


def test_smallest_node_decides_cpu_and_memory_of_a_pool() -> None:
    small = node(allocatable={"cpu": "7910m", "memory": "31Gi"})
    large = node(allocatable={"cpu": "16", "memory": "64Gi"})
    large["metadata"]["name"] = "large"
    found = found_in([small, large])
    (pool,) = found.pools
    assert (pool.fields["cpusPerNode"], pool.fields["memoryPerNode"]) == (7, "31GiB")
    assert "the smallest; the largest is 16" in written(found)


def test_written_fleet_is_the_same_for_any_order_of_nodes() -> None:
    nodes = simulated(load((VALUES / "homelab/fleet.yaml").read_text()))
    assert written(found_in(nodes)) == written(found_in(nodes[::-1]))


def test_written_fleet_is_yaml_with_the_found_pools() -> None:
    found = found_in(simulated(load((VALUES / "three-tiers/fleet.yaml").read_text()), "edge"))
    assert yaml.safe_load(written(found))["pools"] == {pool.name: dict(pool.fields) for pool in found.pools}


@pytest.mark.parametrize("options", [("--fleet", "My Fleet"), ("--cluster", "on"), ("--fleet", "")])
def test_names_are_checked_before_the_cluster_is_asked(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, options: tuple[str, str]
) -> None:
    answer = run(capsys, monkeypatch, "discover", "--kubeconfig", "nowhere", *options)
    assert answer.code == 2
    assert f"{options[0]}: `{options[1]}` cannot be a name" in answer.err


def bare(name: str, labels: dict[str, str], gpus: int = 1, resource: str = "nvidia.com/gpu") -> Object:
    """A node without GPU feature discovery."""
    return {
        "metadata": {"name": name, "labels": {"kubernetes.io/hostname": name, **labels}},
        "status": {"allocatable": {"cpu": "32", "memory": "128Gi", resource: str(gpus)}},
    }


GKE = "cloud.google.com/gke-accelerator"


def test_pool_selects_a_label_of_its_nodes_without_feature_discovery() -> None:
    (pool,) = found_in([bare("a", {GKE: "nvidia-l4"}), bare("b", {GKE: "nvidia-l4"})]).pools
    assert pool.fields["nodeSelector"] == {GKE: "nvidia-l4"}


def test_pools_select_the_name_that_their_provider_gives_the_gpu() -> None:
    names = ["nvidia-tesla-a100", "nvidia-h100-80gb", "nvidia-h100-mega-80gb"]
    pools = found_in([bare(name, {GKE: name}) for name in names]).pools
    assert [(pool.fields["gpu"], pool.fields["nodeSelector"]) for pool in pools] == [
        ("A100-SXM-40GB", {GKE: "nvidia-tesla-a100"}),
        ("H100-SXM-80GB", {GKE: "nvidia-h100-80gb"}),
        ("H100-SXM-80GB", {GKE: "nvidia-h100-mega-80gb"}),
    ]


def test_pool_does_not_select_a_node_that_is_left_out() -> None:
    shared = {GKE: "nvidia-l4", "cloud.google.com/gke-gpu-sharing-strategy": "mps", "pool": "b"}
    nodes = [bare("a", {GKE: "nvidia-l4", "cloud.google.com/gke-nodepool": "a"}), bare("b", shared)]
    (pool,) = found_in(nodes).pools
    assert pool.fields["nodeSelector"] == {"cloud.google.com/gke-nodepool": "a"}


def test_pool_selects_two_labels_where_one_does_not_suffice() -> None:
    spot = {"cloud.google.com/gke-spot": "true"}
    group, zone = "eks.amazonaws.com/nodegroup", "topology.kubernetes.io/zone"
    labels = {"node.kubernetes.io/instance-type": "g6.xlarge"}
    places = [("a", "x", {}), ("a", "y", spot), ("b", "x", spot)]
    nodes = [
        bare(f"n{index}-{twice}", {**labels, group: name, zone: place, **more})
        for index, (name, place, more) in enumerate(places)
        for twice in (0, 1)
    ]
    selectors = [pool.fields.get("nodeSelector") for pool in found_in(nodes).pools if "spot" not in pool.fields]
    assert selectors == [{group: "a", zone: "x"}]


def test_shared_gpus_are_selected_by_the_product_label_that_they_have() -> None:
    labels = {
        "nvidia.com/gpu.product": "NVIDIA-L4-SHARED",
        "nvidia.com/gpu.count": "2",
        "nvidia.com/gpu.replicas": "4",
        "nvidia.com/gpu.sharing-strategy": "time-slicing",
    }
    (pool,) = found_in([bare("a", labels, 8)]).pools
    expected = ({"shares": 4}, "nvidia.com/gpu", {"nvidia.com/gpu.product": "NVIDIA-L4-SHARED"})
    assert tuple(pool.fields[key] for key in ("sharing", "gpuResource", "nodeSelector")) == expected


@pytest.mark.parametrize(
    ("product", "setting"), [("NVIDIA-L4", True), ("", False)], ids=["feature-discovery", "without"]
)
def test_discover_writes_whether_feature_discovery_labels_the_nodes(product: str, setting: bool) -> None:
    labels = {GKE: "nvidia-l4", "nvidia.com/gpu.product": product}
    assert found_in([bare("a", labels)]).settings.get("gpuFeatureDiscovery") is setting


def test_pools_select_all_labels_when_some_nodes_lack_feature_discovery() -> None:
    nodes = [bare("a", {"nvidia.com/gpu.product": "NVIDIA-L40S"}), bare("b", {GKE: "nvidia-l4"})]
    selectors = [pool.fields["nodeSelector"] for pool in found_in(nodes).pools]
    assert selectors == [{GKE: "nvidia-l4"}, {"nvidia.com/gpu.product": "NVIDIA-L40S"}]


def test_discovered_pods_select_labels_that_their_nodes_have() -> None:
    nodes = [bare("a", {GKE: "nvidia-l4"}), bare("b", {GKE: "nvidia-tesla-a100"})]
    services = "services: {chat: {tenant: t}}\ntenants: {t: {models: [chat]}}\n"
    loaded = parse_fleet(parse_document(written(found_in(nodes)) + MODELS + services, "found.yaml"))
    (service,) = build_ray_service_values(plan_fleet(loaded)).values()
    for group in service.worker_groups.values():
        assert group.gpu.product == ""
        assert any(group.node_selector.items() <= each["metadata"]["labels"].items() for each in nodes)


def test_pool_has_no_size_when_its_nodes_report_none() -> None:
    one = bare("a", {GKE: "nvidia-l4"})
    one["status"]["allocatable"] = {"nvidia.com/gpu": "1"}
    (pool,) = found_in([one]).pools
    assert not {"cpusPerNode", "memoryPerNode"} & pool.fields.keys()


def test_nodes_of_one_reason_are_listed_once() -> None:
    bad = [bare(f"bad-{index}", {GKE: "nvidia-x9"}) for index in range(5)]
    found = found_in([node(), *bad])
    assert "# nodes bad-0, bad-1, bad-2 and 2 more are left out: the catalog has no GPU" in written(found)
    with pytest.raises(FleetError) as raised:
        found_in(bad)
    assert len(raised.value.problems) == 1


def test_discover_reads_five_thousand_nodes_of_many_pools_quickly() -> None:
    nodes = [bare(f"n{index}", {GKE: "nvidia-l4"}) for index in range(5000)]
    for index, each in enumerate(nodes[:500]):
        each["spec"] = {"taints": [{"key": "dedicated", "value": f"t{index}", "effect": "NoSchedule"}]}
    start = process_time()
    found = found_in(nodes)
    assert process_time() - start < 30
    assert len(found.pools) == 501


def dra(driver: str = "gpu.nvidia.com", extended: str = "nvidia.com/gpu", **attributes: str) -> dict[str, Any]:
    """ResourceSlices of two generations of a node with two GPUs, and the DeviceClass of the driver."""
    kind = {"gpu.nvidia.com": "gpu", "gpu.amd.com": "amdgpu"}[driver]
    device = {
        "attributes": {key: {"string": text} for key, text in {"type": kind, **attributes}.items()},
        "capacity": {"memory": {"value": "81559Mi"}},
    }
    slices = [
        {
            "spec": {
                "driver": driver,
                "nodeName": "a",
                "pool": {"name": "a", "generation": generation},
                "devices": [{"name": f"gpu-{index}", **device} for index in range(count)],
            }
        }
        for generation, count in ((1, 8), (2, 2))
    ]
    spec = {"extendedResourceName": extended} if extended else {}
    return {
        "/apis/resource.k8s.io/v1/resourceslices": {"items": slices},
        "/apis/resource.k8s.io/v1/deviceclasses": {"items": [{"metadata": {"name": driver}, "spec": spec}]},
    }


def only_in_slices() -> Object:
    plain = bare("a", {})
    del plain["status"]["allocatable"]["nvidia.com/gpu"]
    return plain


def test_gpus_that_only_resource_slices_have_are_found() -> None:
    answers = dra(productName="NVIDIA H100 80GB HBM3")
    (pool,) = discover(cluster_with([only_in_slices()], **answers), KNOWN).pools
    assert (pool.fields["gpu"], pool.fields["gpusPerNode"]) == ("H100-SXM-80GB", 2)
    assert "gpuResource" not in pool.fields
    assert "ResourceSlices of gpu.nvidia.com" in pool.notes["gpusPerNode"]


def test_pods_request_the_resource_of_the_device_class() -> None:
    answers = dra(extended="example.com/gpu", productName="NVIDIA H100 80GB HBM3")
    (pool,) = discover(cluster_with([only_in_slices()], **answers), KNOWN).pools
    assert pool.fields["gpuResource"] == "example.com/gpu"


@pytest.mark.parametrize(
    ("answers", "reason"),
    [
        (dra(extended="", productName="NVIDIA H100 80GB HBM3"), "has no `extendedResourceName`"),
        (dra(productName="NVIDIA Z9000"), "no GPU `NVIDIA-Z9000`"),
        (dra(type="mig", productName="NVIDIA H100 80GB HBM3"), "have 2 parts of GPUs, and no whole one"),
    ],
    ids=["no-resource", "unknown", "parts"],
)
def test_gpus_in_resource_slices_that_no_pod_can_have_are_left_out(answers: dict[str, Any], reason: str) -> None:
    found = discover(cluster_with([only_in_slices(), node()], **answers), KNOWN)
    assert [reason in each.reason for each in found.unusable] == [True]


def test_resource_slices_that_may_not_be_read_are_noted() -> None:
    forbidden = frozenset({"/apis/resource.k8s.io/v1/resourceslices"})
    notes = discover(cluster_with([node()], forbidden), KNOWN).notes
    assert [note.split(":")[0] for note in notes] == ["ResourceSlices"]


def test_spot_nodes_are_selected_by_labels_of_their_template() -> None:
    pool = "karpenter.sh/nodepool"
    spot = {"karpenter.sh/capacity-type": "spot", "nvidia.com/gpu.product": "NVIDIA-L4"}
    nodes = [bare("a", spot | {pool: "l4"}), bare("b", {"nvidia.com/gpu.product": "NVIDIA-L40S", pool: "l40s"})]
    (found,) = (found for found in found_in(nodes).pools if "spot" in found.fields)
    assert found.fields["nodeSelector"] == {pool: "l4"}
