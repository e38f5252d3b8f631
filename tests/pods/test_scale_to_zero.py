"""A model without requests: its worker goes, the one of the ingress stays, and the next request is answered."""

import time
from collections.abc import Callable, Iterator

import pytest

from charts.kit import over
from pods.kit.cluster import Cluster
from pods.kit.service import GRACE, TINY, Service, given, serving, values
from rayhelm.deploy.values.emit import select_changed
from rayhelm.deploy.values.ray_service import RayServiceValues
from rayhelm.run.rehearsal.load import run_load
from rayhelm.run.standin.cluster import GROUP

INGRESS = "ingress"
DEPLOYMENT = "LLMServer"
SCALING = {
    "minReplicas": 0,
    "initialReplicas": 1,
    "maxReplicas": 1,
    "targetOngoingRequests": 1,
    "upscaleDelaySeconds": 2,
    "downscaleToZeroDelaySeconds": 60,
    "lookBackPeriodSeconds": 15,
}
PATIENCE = 900.0
"""Seconds that a client waits: for a pod and for the engine, on a busy computer."""

pytestmark = pytest.mark.timeout(2400)


def build_values(cluster: Cluster) -> RayServiceValues:
    """The stand-in of the GPU group, which can be empty, and the group of the ingress as in a plan, but smaller."""
    small = values(cluster, {})
    worker = select_changed(small)["workerGroups"][GROUP]
    overlay = {
        "autoscaler": {"enabled": True, "idleTimeoutSeconds": 30},
        "serve": {
            "applications": {
                TINY: {
                    "models": {TINY: {"workerGroups": [GROUP], "autoscaling": SCALING}},
                    "ingress": {"workerGroup": INGRESS, "minReplicas": 1, "maxReplicas": 1},
                }
            }
        },
        "workerGroups": {
            GROUP: {"minReplicas": 0, "maxReplicas": 1},
            INGRESS: {
                "gpu": {"count": 0},
                "mountsWeights": False,
                "resources": {"limits": {"cpu": "2", "memory": "4Gi"}, "requests": {"cpu": "200m"}},
                "shmSize": "512Mi",
                "terminationGracePeriodSeconds": GRACE,
                "env": worker["env"],
            },
        },
    }
    return RayServiceValues.model_validate(over(select_changed(small), overlay))


@pytest.fixture(scope="module")
def service(cluster: Cluster) -> Iterator[Service]:
    with serving(cluster, "zero", build_values(cluster)) as found:
        found.session.wait_until_ready(found.release)
        yield found


def test_last_worker_is_removed_without_load_and_next_request_is_answered(service: Service) -> None:
    until(service, lambda: list_groups(service) == [INGRESS], "no worker of the model")
    kubectl, image = service.session.kubectl, given(service.cluster)
    with run_load(kubectl, image, [service.target()], timeout=PATIENCE, clients=1, name="after-zero") as load:
        until(service, lambda: len(service.replicas(DEPLOYMENT)) == 1, "a replica again")
        until(service, lambda: list_groups(service) == [INGRESS, GROUP], "a worker of the model again")
    print(f"{len(load.outcome.answered)} answered, the slowest after {load.outcome.slowest:.1f} s")
    assert load.outcome.answered
    assert load.outcome.failed == ()
    until(service, lambda: list_groups(service) == [INGRESS], "no worker of the model again")


def list_groups(service: Service) -> list[str]:
    """Worker group of each worker pod, sorted."""
    return sorted(pod["metadata"]["labels"]["rayhelm.dev/worker-group"] for pod in service.pods("worker"))


def until(service: Service, so: Callable[[], bool], what: str) -> None:
    begin = time.monotonic()
    service.session.wait(so, what, service.release.namespace, poll=5)
    print(f"{what}: {time.monotonic() - begin:.0f} s")
