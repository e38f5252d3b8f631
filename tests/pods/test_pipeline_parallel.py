"""Two stages of one model on two worker groups, as far as the CPU engine goes.

Ray reserves a bundle for each stage on its own group, as it does for GPUs. But vLLM 0.29 starts workers through Ray on
GPUs only, and Ray Serve LLM makes engines on CPU start theirs as processes: both are in the replica's pod, and the
engine dies of its first request.
"""

import json
from collections.abc import Iterator
from typing import Any

import pytest

from pods.kit.cluster import Cluster
from pods.kit.service import TINY, Service, serving, values
from rayhelm.deploy.values.emit import select_changed
from rayhelm.errors import RayhelmError
from rayhelm.run.standin.cluster import GROUP

STAGES = ("first", "second")
LOGS = "/tmp/ray/session_latest/logs/worker-*.err"

pytestmark = pytest.mark.timeout(1800)


@pytest.fixture(scope="module")
def service(cluster: Cluster) -> Iterator[Service]:
    group = select_changed(values(cluster, {}))["workerGroups"][GROUP]
    # Ranks that share nothing but the network: each group has one pod, and room for one stage.
    model = {"engine": {"pipelineParallelSize": 2}, "workerGroups": list(STAGES), "placementStrategy": "STRICT_SPREAD"}
    overlay: dict[str, Any] = {
        "serve": {"applications": {TINY: {"models": {TINY: model}}}},
        "workerGroups": {GROUP: None, **dict.fromkeys(STAGES, group)},
    }
    with serving(cluster, "staged", values(cluster, overlay)) as found:
        found.session.wait_until_ready(found.release)
        yield found


def test_each_stage_has_a_place_on_its_own_group(service: Service) -> None:
    pods = {pod["status"]["podIP"]: pod["metadata"]["labels"]["ray.io/group"] for pod in service.pods("worker")}
    nodes = {node["node_id"]: node["node_ip"] for node in reported(service, "nodes")}
    (group,) = (each for each in reported(service, "placement_groups") if each["state"] == "CREATED")
    places = [pods[nodes[bundle["node_id"]]] for bundle in group["bundles"]]
    assert places == list(STAGES)


def test_both_stages_are_processes_in_the_pod_of_the_replica(service: Service) -> None:
    listed = "ps -eo args | grep -o '^VLLM::Worker[^ ]*' | sort || true"
    engines = {group: service.runs(pod_of(service, group), listed, "ray-worker").split() for group in STAGES}
    assert engines == {"first": ["VLLM::Worker_PP0", "VLLM::Worker_PP1"], "second": []}


def test_helm_test_fails_for_an_engine_that_dies_at_its_first_request(
    service: Service,
) -> None:
    """vLLM 0.29's CPU engine has no room for what the first stage sends on, unless it is compiled."""
    with pytest.raises(RayhelmError, match="staged-test failed"):
        service.session.run_helm(
            "test", service.release.name, f"--namespace={service.release.namespace}", "--timeout=5m"
        )
    assert "EngineDeadError" in service.runs(pod_of(service, "first"), f"cat {LOGS}", "ray-worker")


def test_vllm_says_that_its_cpu_engine_starts_no_worker_through_ray(service: Service) -> None:
    ask = (
        "from vllm.config import ParallelConfig\n"
        "from vllm.v1.executor.ray_utils import initialize_ray_cluster\n"
        "initialize_ray_cluster(ParallelConfig(pipeline_parallel_size=2, distributed_executor_backend='ray'))\n"
    )
    said = service.runs(pod_of(service, "second"), f'python -c "{ask}" 2>&1 || true', "ray-worker")
    assert "ValueError: current platform cpu does not support ray." in said


def pod_of(service: Service, group: str) -> str:
    (found,) = (pod for pod in service.pods("worker") if pod["metadata"]["labels"]["ray.io/group"] == group)
    return str(found["metadata"]["name"])


def reported(service: Service, what: str) -> list[dict[str, Any]]:
    """Ray's state, of its dashboard."""
    (head,) = service.pods("head")
    ask = f'wget -q -O- --header "Authorization: Bearer $RAY_AUTH_TOKEN" "localhost:8265/api/v0/{what}?detail=1"'
    answer = json.loads(service.runs(head["metadata"]["name"], ask, "ray-head"))
    found: list[dict[str, Any]] = answer["data"]["result"]["result"]
    return found
