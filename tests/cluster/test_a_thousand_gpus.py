"""1,000 GPUs: 125 nodes of eight, and one service over all of them, from a fleet file."""

from collections import Counter
from collections.abc import Callable
from datetime import datetime
from pathlib import Path

import pytest

from cluster.kit.cluster import Cluster, Object
from cluster.kit.fleets import priority_classes
from cluster.kit.helm import Helm
from rayhelm.deploy.render.files import render_fleet
from rayhelm.deploy.values.emit import select_changed
from testbed.nodes import cpu_nodes, simulated, volumes

NODES, GPUS = 125, 8

FLEET = f"""
fleet: thousand
clusters: {{main: {{apiServer: {{cidrs: [10.0.0.1/32]}}}}}}
pools:
  h100: {{gpu: H100-SXM-80GB, nodes: {NODES}, gpusPerNode: {GPUS}, network: rdma-400g}}
models:
  llama-405b:
    source: meta-llama/Llama-3.1-405B-Instruct-FP8
    unpinnedReason: a test of places, not of weights
    context: 16384
    parallelism: {{tensor: {GPUS}}}
    replicas: {NODES}
"""


@pytest.mark.slow
def test_thousand_gpus_serve_one_model(
    cluster: Cluster,
    helm: Helm,
    namespace: str,
    tmp_path: Path,
    record_testsuite_property: Callable[[str, object], None],
) -> None:
    file = tmp_path / "fleet.yaml"
    file.write_text(FLEET)
    rendered = render_fleet(file)
    values = {**select_changed(rendered.values["llama-405b"]), "kuberay": {"version": cluster.place.kuberay}}
    classes = priority_classes(rendered)
    with cluster.machines([*simulated(rendered.plan.source), *cpu_nodes(1), *volumes(rendered.plan.source), *classes]):
        helm.install("ray-service", "llama-405b", namespace, values)
        cluster.becomes_ready("llama-405b", namespace)
        workers = cluster.all("Pod", namespace, {"ray.io/node-type": "worker"})
        placed = Counter(pod["spec"]["nodeName"] for pod in workers)
        assert placed == Counter(f"h100-{index}" for index in range(NODES))
        assert (
            sum(int(pod["spec"]["containers"][0]["resources"]["limits"]["nvidia.com/gpu"]) for pod in workers) == 1000
        )
        record_testsuite_property("seconds until 1,000 GPUs were placed", _placed_after(workers))


def _placed_after(pods: list[Object]) -> float:
    """Seconds from the first pod's creation to the last one's place."""
    first = min(datetime.fromisoformat(pod["metadata"]["creationTimestamp"]) for pod in pods)
    last = max(
        datetime.fromisoformat(found["lastTransitionTime"])
        for pod in pods
        for found in pod["status"]["conditions"]
        if found["type"] == "PodScheduled"
    )
    return (last - first).total_seconds()
