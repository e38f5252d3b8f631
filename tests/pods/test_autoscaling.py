"""Ray's autoscaler as a sidecar of the head: a worker pod comes with the load and goes again, and loses no request."""

import time
from collections.abc import Callable, Iterator
from dataclasses import replace

import pytest

from pods.kit.cluster import Cluster
from pods.kit.service import Service, given, serving, values
from rayhelm.run.rehearsal.load import run_load
from rayhelm.run.standin.cluster import GROUP, SLOT

SCALING = {
    "minReplicas": 1,
    "maxReplicas": 2,
    # One client needs one replica, and the rush any number.
    "targetOngoingRequests": 1,
    "upscaleDelaySeconds": 2,
    # Longer than a replica takes to start on a busy computer: a lull in between would end it.
    "downscaleDelaySeconds": 60,
    "lookBackPeriodSeconds": 15,
}
OVERLAY = {
    "autoscaler": {"enabled": True, "idleTimeoutSeconds": 30},
    "serve": {
        "applications": {
            "tiny": {
                # Each books what one worker has one of: a second replica has no place there.
                "models": {"tiny": {"autoscaling": SCALING, "maxOngoingRequests": 16, "resources": {SLOT: 1}}},
                "ingress": {"minReplicas": 1, "maxReplicas": 1},
            }
        }
    },
    "workerGroups": {GROUP: {"minReplicas": 1, "maxReplicas": 2, "rayResources": {SLOT: 1}}},
}
DEPLOYMENT = "LLMServer"
PATIENCE = 120.0
"""Seconds until the first answers of a service that is ready."""

pytestmark = pytest.mark.timeout(2400)


@pytest.fixture(scope="module")
def service(cluster: Cluster) -> Iterator[Service]:
    with serving(cluster, "grows", values(cluster, OVERLAY)) as found:
        found.session.wait_until_ready(found.release)
        yield found


def test_worker_is_added_and_removed_with_load_without_lost_requests(service: Service) -> None:
    (first,) = workers(service)
    kubectl, image, target = service.session.kubectl, given(service.cluster), service.target()
    long = replace(target, tokens=400)
    # Some go on after the rush: requests that could be lost when the second worker goes.
    with run_load(kubectl, image, [target], timeout=PATIENCE, clients=1, name="constant") as constant:
        with run_load(kubectl, image, [long], timeout=PATIENCE, clients=4, name="rush") as rush:
            until(service, lambda: len(service.replicas(DEPLOYMENT)) == 2, "a second replica")
            (second,) = workers(service) - {first}
            until(service, lambda: answers(service, second) > 20, f"answers of {second}")
        until(service, lambda: len(service.replicas(DEPLOYMENT)) == 1, "one replica again")
        until(service, lambda: workers(service) == {first}, "one worker again")
    for outcome in (constant.outcome, rush.outcome):
        print(f"{len(outcome.answered)} answered, the slowest after {outcome.slowest:.1f} s")
        assert len(outcome.answered) > 20
        assert outcome.failed == ()


def workers(service: Service) -> set[str]:
    return {pod["metadata"]["name"] for pod in service.pods("worker")}


def answers(service: Service, worker: str) -> float:
    """Requests that the replica on a worker has answered, as it reports to Prometheus."""
    reported = service.runs(worker, "wget -q -O- localhost:8080/metrics", "ray-worker")
    counted = (line for line in reported.splitlines() if line.startswith("ray_serve_deployment_request_counter_total{"))
    return sum(float(line.rpartition(" ")[2]) for line in counted if f'deployment="{DEPLOYMENT}' in line)


def until(service: Service, so: Callable[[], bool], what: str) -> None:
    begin = time.monotonic()
    # Seldom: a look into a pod costs the replica that starts its time.
    service.session.wait(so, what, service.release.namespace, poll=5)
    print(f"{what}: {time.monotonic() - begin:.0f} s")
