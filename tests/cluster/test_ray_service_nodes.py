"""Which nodes a worker group finds by the labels of its GPUs."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from charts.kit import example, over
from charts.unguarded import unguarded_chart
from cluster.kit.cluster import Cluster, reason
from cluster.kit.helm import Helm
from cluster.kit.wait import eventually
from testbed.nodes import cpu_nodes, uniform

CARD = "Arc-A770-16GB"
DEVICE = "gpu.intel.com/device-id.0300-56a0.present"


@pytest.fixture(scope="module", autouse=True)
def _machines(cluster: Cluster) -> Iterator[None]:
    with cluster.machines([*cpu_nodes(1), *uniform(CARD, nodes=1, per_node=1, pool="arc")]):
        yield


def values(cluster: Cluster, group: dict[str, Any]) -> dict[str, Any]:
    gpu = {"count": 1, "vendor": "intel", "resource": "gpu.intel.com/i915"}
    arc = over({"gpu": gpu, "image": {"repository": "registry.example/ray-vllm", "tag": "2.60.0-xpu"}}, group)
    on_it = {"applications": {"chat": {"models": {"llama-8b": {"accelerator": {"kind": "gpu"}}}}}}
    ours = {"kuberay": {"version": cluster.place.kuberay}, "workerGroups": {"cpu": arc}, "serve": on_it}
    return dict(over(example("stand-in"), ours))


def test_arc_gpu_is_never_found_by_a_product(cluster: Cluster, namespace: str, helm: Helm, tmp_path: Path) -> None:
    """So the chart refuses it; this is the chart without its refusals."""
    helm.install(unguarded_chart(tmp_path), "chat", namespace, values(cluster, {"gpu": {"product": "Arc_A770"}}))
    words = "node(s) didn't match Pod's node affinity/selector"
    why = eventually(lambda: words in (said := why_unscheduled(cluster, namespace)) and said, words)
    assert "Insufficient" not in why


def why_unscheduled(cluster: Cluster, namespace: str) -> str:
    """What the scheduler says of a worker that no node takes; empty without one."""
    workers = cluster.all("Pod", namespace, {"ray.io/node-type": "worker"})
    waiting = [pod for pod in workers if reason(pod, "PodScheduled") == "Unschedulable"]
    found = [item for pod in waiting for item in pod["status"]["conditions"] if item["type"] == "PodScheduled"]
    return str(found[0]["message"]) if found else ""


@pytest.mark.parametrize("group", [{}, {"nodeSelector": {DEVICE: "true"}}], ids=["any GPU", "by its device"])
def test_arc_gpu_is_found_as_the_rule_says(group: dict[str, Any], cluster: Cluster, namespace: str, helm: Helm) -> None:
    helm.install("ray-service", "chat", namespace, values(cluster, group))
    cluster.becomes_ready("chat", namespace)
    (worker,) = cluster.all("Pod", namespace, {"ray.io/node-type": "worker"})
    assert worker["spec"]["nodeName"] == "arc-0"
