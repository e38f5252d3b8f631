"""Simulated nodes, held against the pods that the chart renders for them."""

from collections import Counter
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from pydantic import TypeAdapter

from rayhelm.deploy.charts.helm import template
from rayhelm.deploy.render.files import Rendered, render_fleet, render_plan
from rayhelm.deploy.values.emit import select_changed
from rayhelm.errors import FleetError, UsageError
from rayhelm.facts import load_catalog
from rayhelm.facts.gpu import GpuKind
from rayhelm.fleet.labels import Labels
from rayhelm.planner.planner import plan_fleet
from rayhelm.planner.workers.kinds import name_pod_kinds
from shared.fleets import load
from testbed.nodes import cpu_nodes, pool_of, simulated, uniform, volumes
from testbed.nodes.labels import labels_of, spot_marks

Object = dict[str, Any]

VALUES = Path(__file__).parents[2] / "values"
FLEETS = sorted(path.parent.name for path in VALUES.glob("*/fleet.yaml"))
GPUS = [gpu_kind for gpu_kind in load_catalog().gpus() if gpu_kind.vendor != "google"]
MAIN = "clusters: {main: {apiServer: {cidrs: [10.0.0.1/32]}}}"
MODEL = "{chat: {source: meta-llama/Llama-3.1-8B-Instruct, context: 4096, unpinnedReason: a test of nodes}}"


# -- what the scheduler looks at ---------------------------------------------------------------------------------------


def selects(pod: Object, node: Object) -> bool:
    return pod["spec"].get("nodeSelector", {}).items() <= node["metadata"]["labels"].items()


def tolerates(pod: Object, node: Object) -> bool:
    taints = node.get("spec", {}).get("taints", [])
    return all(any(covers(item, taint) for item in pod["spec"].get("tolerations", [])) for taint in taints)


def covers(toleration: Object, taint: Object) -> bool:
    return (
        toleration["key"] == taint["key"]
        and toleration.get("effect") in (None, taint["effect"])
        and (toleration.get("operator") == "Exists" or toleration.get("value") == taint["value"])
    )


def amount(quantity: str | int) -> float:
    text = str(quantity)
    units = {"m": 1e-3, "Mi": 2**20, "Gi": 2**30, "Ti": 2**40}
    unit = next((unit for unit in units if text.endswith(unit)), "")
    return float(text.removesuffix(unit)) * units.get(unit, 1)


def asked(pod: Object) -> dict[str, float]:
    (container,) = pod["spec"]["containers"]
    return {name: amount(quantity) for name, quantity in container["resources"]["limits"].items()}


def room(node: Object) -> dict[str, float]:
    return {name: amount(quantity) for name, quantity in node["status"]["allocatable"].items()}


def has_room(left: dict[str, float], wanted: dict[str, float]) -> bool:
    return all(left.get(name, 0) >= quantity for name, quantity in wanted.items())


def may_stand(pod: Object, node: Object) -> bool:
    return selects(pod, node) and tolerates(pod, node) and has_room(room(node), asked(pod))


# -- what the chart makes of a fleet -----------------------------------------------------------------------------------


@cache
def rendered(fleet: str) -> Rendered:
    return render_fleet(VALUES / fleet / "fleet.yaml")


def of_text(text: str) -> Rendered:
    return render_plan(plan_fleet(load(text)))


def groups(found: Rendered, cluster: str) -> Iterator[tuple[str, int, Object]]:
    """Pool, most pods and pod of every worker group of a cluster."""
    for service, planned in found.plan.services.items():
        if planned.cluster != cluster:
            continue
        objects = template("ray-service", service, "models", select_changed(found.values[service]))
        (ray,) = [item for item in objects if item["kind"] == "RayService"]
        pools = {
            name: kind.pool
            for kind, name in name_pod_kinds(found.plan.of_service(service), found.plan.source.fleet).items()
        }
        for group in ray["spec"]["rayClusterConfig"]["workerGroupSpecs"]:
            yield pools[group["groupName"]], group["maxReplicas"] * group["numOfHosts"], group["template"]


CLUSTERS = [(fleet, cluster) for fleet in FLEETS for cluster in rendered(fleet).plan.declared.clusters]


@pytest.mark.parametrize(("fleet", "cluster"), CLUSTERS)
def test_worker_runs_only_on_nodes_of_the_planned_pool(fleet: str, cluster: str) -> None:
    nodes = [*simulated(rendered(fleet).plan.source, cluster), *cpu_nodes(1)]
    workers = list(groups(rendered(fleet), cluster))
    assert workers
    for pool, _, pod in workers:
        assert {pool_of(node) for node in nodes if may_stand(pod, node)} == {pool}


@pytest.mark.parametrize(("fleet", "cluster"), CLUSTERS)
def test_all_workers_have_room_at_once(fleet: str, cluster: str) -> None:
    nodes = simulated(rendered(fleet).plan.source, cluster)
    left = {node["metadata"]["name"]: room(node) for node in nodes}
    for _, count, pod in groups(rendered(fleet), cluster):
        wanted = asked(pod)
        for _ in range(count):
            fitting = [node["metadata"]["name"] for node in nodes if may_stand(pod, node)]
            name = next(name for name in fitting if has_room(left[name], wanted))
            left[name] = {key: value - wanted.get(key, 0) for key, value in left[name].items()}


@pytest.mark.parametrize(("fleet", "cluster"), CLUSTERS)
def test_every_gpu_of_the_pools_is_there(fleet: str, cluster: str) -> None:
    loaded = rendered(fleet).plan.source
    for name, pool in loaded.fleet.pools.items():
        nodes = [node for node in simulated(loaded, cluster) if pool_of(node) == name]
        offered = Counter[str]()
        for node in nodes:
            offered.update({key: count for key, count in room(node).items() if "gpu" in key or "/mig-" in key})
        assert offered == (rendered(fleet).plan.pools[name].gpu_resources if pool.cluster == cluster else {})


# -- pools and hosts ---------------------------------------------------------------------------------------------------


def test_like_pool_gives_numbered_nodes_of_one_size() -> None:
    nodes = simulated(load(f"fleet: one\npools: {{l4: {{gpu: L4-24GB, nodes: 3}}}}\nmodels: {MODEL}"))
    assert [node["metadata"]["name"] for node in nodes] == ["l4-0", "l4-1", "l4-2"]
    assert len({str(node["status"]) for node in nodes}) == 1


def test_unlike_hosts_are_nodes_of_their_own_names_gpus_and_labels() -> None:
    nodes = simulated(
        load(f"""
        fleet: one
        pools:
          lab:
            network: ethernet-1g
            nodeSelector: {{example.com/room: "2"}}
            hosts:
              - {{name: big, gpu: RTX-A5000-24GB, gpus: 2, nodeSelector: {{example.com/desk: a}}}}
              - {{gpu: RTX-A4000-16GB}}
        models: {MODEL}
        """)
    )
    assert {node["metadata"]["name"]: room(node)["nvidia.com/gpu"] for node in nodes} == {"big": 2, "lab-1": 1}
    big, small = (node["metadata"]["labels"] for node in nodes)
    assert (big["nvidia.com/gpu.product"], small["nvidia.com/gpu.product"]) == ("NVIDIA-RTX-A5000", "NVIDIA-RTX-A4000")
    assert (big["example.com/desk"], big["example.com/room"]) == ("a", "2")
    assert small["example.com/room"] == "2"
    assert "example.com/desk" not in small


def test_hosts_of_one_name_in_two_pools_are_two_nodes() -> None:
    host = "{hosts: [{name: box, gpu: L4-24GB}]}"
    nodes = simulated(load(f"fleet: one\npools: {{a: {host}, b: {host}}}\nmodels: {MODEL}"))
    assert [node["metadata"]["name"] for node in nodes] == ["box", "box-2"]
    assert [pool_of(node) for node in nodes] == ["a", "b"]


def test_host_name_of_fleet_overrides_node_name() -> None:
    (node,) = [node for node in simulated(rendered("homelab").plan.source) if pool_of(node) == "igpu"]
    assert node["metadata"]["labels"]["kubernetes.io/hostname"] == "mini"


def test_what_the_pool_says_of_its_nodes_is_what_pods_can_have() -> None:
    pool = "{gpu: L4-24GB, nodes: 1, cpusPerNode: 7.5, memoryPerNode: 60GiB, rdmaResource: rdma/hca}"
    (node,) = simulated(load(f"fleet: one\npools: {{l4: {pool}}}\nmodels: {MODEL}"))
    assert (room(node)["cpu"], room(node)["memory"]) == (7.5, 60 * 2**30)
    assert room(node)["rdma/hca"] > 1
    assert node["status"]["capacity"] == node["status"]["allocatable"]


@pytest.mark.parametrize("gpus", [1, 2, 4, 8])
def test_where_the_pool_says_nothing_a_pod_for_each_gpu_and_one_for_all_have_room(gpus: int) -> None:
    pool = f"{{gpu: H100-SXM-80GB, nodes: 1, gpusPerNode: {gpus}}}"
    for split in (1, gpus):
        found = of_text(f"""
        fleet: one
        {MAIN}
        pools: {{pool: {pool}}}
        models:
          chat:
            source: meta-llama/Llama-3.1-8B-Instruct
            unpinnedReason: a test of nodes
            context: 4096
            parallelism: {{tensor: {split}}}
            replicas: {gpus // split}
        """)
        ((_, count, pod),) = groups(found, "main")
        (node,) = simulated(found.plan.source)
        assert count == gpus // split
        assert has_room(room(node), {name: quantity * count for name, quantity in asked(pod).items()})


def test_shares_of_a_gpu_are_pods_of_whole_gpus() -> None:
    """`whisper` and `tts` share one GPU inside Ray: one pod, one whole GPU, one node that offers one."""
    (rtx,) = [(count, pod) for pool, count, pod in groups(rendered("homelab"), "main") if pool == "rtx"]
    (node,) = [node for node in simulated(rendered("homelab").plan.source) if pool_of(node) == "rtx"]
    assert rtx[0] == asked(rtx[1])["nvidia.com/gpu"] == room(node)["nvidia.com/gpu"] == 1


def test_pool_s_tolerations_are_taints_that_its_pods_tolerate() -> None:
    found = of_text(f"""
        fleet: one
        {MAIN}
        pools:
          l4:
            gpu: L4-24GB
            nodes: 1
            tolerations:
              - {{key: example.com/ai}}
              - {{key: example.com/team, operator: Equal, value: search, effect: NoExecute}}
        models: {MODEL}
    """)
    (node,) = simulated(found.plan.source)
    assert [(taint["key"], taint["value"], taint["effect"]) for taint in node["spec"]["taints"]] == [
        ("nvidia.com/gpu", "present", "NoSchedule"),
        ("example.com/ai", "", "NoSchedule"),
        ("example.com/team", "search", "NoExecute"),
    ]
    ((_, _, pod),) = groups(found, "main")
    assert may_stand(pod, node)
    pod["spec"]["tolerations"].pop()
    assert not may_stand(pod, node)


@pytest.mark.parametrize("provider", spot_marks())
def test_spot_nodes_are_marked_as_the_chart_expects_it_of(provider: str) -> None:
    found = of_text(f"fleet: one\n{MAIN}\npools: {{l4: {{gpu: L4-24GB, nodes: 1, spot: {provider}}}}}\nmodels: {MODEL}")
    ((_, _, pod),) = groups(found, "main")
    (spot,) = simulated(found.plan.source)
    (lasting,) = simulated(load(f"fleet: one\npools: {{l4: {{gpu: L4-24GB, nodes: 1}}}}\nmodels: {MODEL}"))
    assert may_stand(pod, spot)
    assert not may_stand(pod, lasting)


def test_nodes_without_gpus_are_for_everything_else() -> None:
    nodes = cpu_nodes(2)
    assert not any("/" in key for node in nodes for key in room(node))
    assert not any(node.get("spec") for node in nodes)
    assert len({node["metadata"]["name"] for node in nodes}) == 2


# -- clusters ----------------------------------------------------------------------------------------------------------


def test_each_of_two_clusters_has_its_own_pools() -> None:
    loaded = rendered("three-tiers").plan.source
    pools = {cluster: {pool_of(node) for node in simulated(loaded, cluster)} for cluster in ("main", "edge")}
    assert pools == {"main": {"dc", "workstations"}, "edge": {"edge-4090"}}


def test_unknown_cluster_is_refused_with_known_ones() -> None:
    with pytest.raises(UsageError, match="no cluster `moon`; name one of: edge, main"):
        simulated(rendered("three-tiers").plan.source, "moon")
    with pytest.raises(UsageError, match="moon"):
        volumes(rendered("three-tiers").plan.source, "moon")


def test_fleet_with_several_clusters_requires_a_cluster_name() -> None:
    with pytest.raises(UsageError, match="several clusters; name one of: edge, main"):
        simulated(rendered("three-tiers").plan.source)


def test_pool_that_no_chart_can_use_is_refused_with_its_line() -> None:
    loaded = load(f"fleet: one\npools:\n  tpu: {{gpu: TPU-v5e-16GB, nodes: 1}}\nmodels: {MODEL}")
    with pytest.raises(FleetError) as refused:
        simulated(loaded)
    (problem,) = refused.value.problems
    assert (problem.line, problem.path) == (3, "pools.tpu")
    assert "google.com/tpu" in problem.message


# -- many --------------------------------------------------------------------------------------------------------------


def test_thousand_gpus_are_125_nodes() -> None:
    nodes = uniform()
    assert len({node["metadata"]["name"] for node in nodes}) == 125
    assert sum(room(node)["nvidia.com/gpu"] for node in nodes) == 1000


def test_many_nodes_of_a_gpu_that_nothing_knows_are_refused() -> None:
    with pytest.raises(FleetError, match="H100-SXM-80GB"):
        uniform(gpu="H100-SXM-81GB")


# -- volumes -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("fleet", "cluster"), CLUSTERS)
def test_volume_fits_each_claim_of_the_weights(fleet: str, cluster: str) -> None:
    found = rendered(fleet)
    made = volumes(found.plan.source, cluster)
    classes = {item["metadata"]["name"] for item in made if item["kind"] == "StorageClass"}
    there = [item["spec"] for item in made if item["kind"] == "PersistentVolume"]
    services = [service for service, planned in found.plan.services.items() if planned.cluster == cluster]
    assert len(there) >= len(services)
    for service in services:
        claim = found.values[service].weights.claim
        assert claim.storage_class == "" or claim.storage_class in classes
        for volume in there:
            assert volume["storageClassName"] == claim.storage_class
            assert claim.access_mode in volume["accessModes"]
            assert amount(volume["capacity"]["storage"]) >= amount(claim.size)


# -- every GPU of the catalog ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("gpu_kind", GPUS, ids=lambda gpu_kind: gpu_kind.id)
def test_node_offers_the_resource_and_label_of_pods(gpu_kind: GpuKind) -> None:
    loaded = load(f"fleet: one\npools: {{pool: {{gpu: {gpu_kind.id}, nodes: 1, gpusPerNode: 2}}}}\nmodels: {MODEL}")
    (node,) = simulated(loaded)
    assert room(node)[gpu_kind.resource] == 2
    assert node["spec"]["taints"][0]["key"] == gpu_kind.resource
    TypeAdapter(Labels).validate_python(node["metadata"]["labels"])
    gpu: Object = {
        "vendor": gpu_kind.vendor,
        "resource": gpu_kind.resource,
        "count": 2,
        "product": gpu_kind.product_label or "",
    }
    # The stock image is a build for CUDA.
    image = {"repository": "registry.example/ray-vllm", "tag": "2.60.0"}
    group: Object = {"gpu": gpu, "image": image, "resources": {"limits": {"cpu": "4", "memory": "32Gi"}}}
    pod = pod_of(group)
    assert may_stand(pod, node), pod["spec"].get("nodeSelector")
    assert selects(pod, node)
    assert not may_stand(pod, cpu_nodes(1)[0])


def pod_of(group: Object) -> Object:
    values = select_changed(rendered("single-gpu").values["llama-8b"])
    only = next(iter(values["workerGroups"]))
    values = {**values, "workerGroups": {only: group}}
    objects = template("ray-service", "llama-8b", "models", values)
    (ray,) = [item for item in objects if item["kind"] == "RayService"]
    pod: Object = ray["spec"]["rayClusterConfig"]["workerGroupSpecs"][0]["template"]
    return pod


def test_labels_count_the_gpus_of_the_host() -> None:
    labels = labels_of(load_catalog().gpu("H100-SXM-80GB"), 8)
    assert (labels["nvidia.com/gpu.count"], labels["nvidia.com/gpu.family"]) == ("8", "hopper")
    assert (labels["nvidia.com/gpu.compute.major"], labels["nvidia.com/mig.capable"]) == ("9", "true")
