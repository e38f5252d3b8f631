"""The health that Argo CD reads out of statuses of the real operator; with RAYHELM_WRITE_HEALTH=1 they are recorded as
testdata of resource_customizations/."""

import os
from collections.abc import Iterator
from typing import Any

import pytest
import yaml

from charts.kit import over
from cluster.kit.cluster import Cluster, Object, condition
from cluster.kit.helm import Helm
from cluster.kit.small import Small
from cluster.kit.wait import eventually
from gitops.lua import CUSTOMIZATIONS, assess

PLACE = Small("health")
NAME = "chat"
KEPT = ("suspend", "upgradeStrategy", "entrypoint", "submissionMode", "activeDeadlineSeconds")
"""Keys of specs that testdata keep."""


@pytest.fixture(scope="module", autouse=True)
def _machines(cluster: Cluster) -> Iterator[None]:
    with cluster.machines(PLACE.machines()):
        yield


class Service:
    """A RayService of chart ray-service."""

    def __init__(self, cluster: Cluster, namespace: str) -> None:
        self.cluster, self.namespace = cluster, namespace

    def apply(self, overlay: Object | None = None) -> None:
        helm = Helm.of_major("4", self.cluster.place.kubeconfig)
        helm.install("ray-service", NAME, self.namespace, PLACE.values(self.cluster.place, overlay or {}))

    def read(self) -> Object:
        return self.cluster.one("RayService", NAME, self.namespace)

    def becomes(self, status: str, message: str, recorded: str = "") -> None:
        wait_for(self.cluster, "RayService", NAME, self.namespace, (status, message), recorded)


@pytest.fixture
def service(cluster: Cluster, namespace: str) -> Service:
    return Service(cluster, namespace)


def wait_for(
    cluster: Cluster, kind: str, name: str, namespace: str, health: tuple[str, str], recorded: str = ""
) -> None:
    """Wait until an object has a health whose message contains the text; `recorded` is the name of the testdata."""

    def answer() -> Object | None:
        item = cluster.find(kind, name, namespace)
        if not item:
            return None
        status, message = assess(f"ray.io/{kind}", item)
        return item if status == health[0] and health[1] in message else None

    def shows() -> object:
        item = cluster.one(kind, name, namespace)
        return assess(f"ray.io/{kind}", item), yaml.safe_dump(item.get("status"))

    found = eventually(answer, f"{kind} {name} being {health}", shows=shows)
    if recorded and os.environ.get("RAYHELM_WRITE_HEALTH"):
        write(kind, recorded, found, cluster.place.kuberay)


def write(kind: str, name: str, item: Object, kuberay: str) -> None:
    """Write an object as testdata, without its pod templates."""
    spec: dict[str, Any] = {key: value for key, value in item["spec"].items() if key in KEPT}
    groups = item["spec"].get("rayClusterConfig", {}).get("workerGroupSpecs", [])
    if kind == "RayService":
        bounds = ("groupName", "minReplicas", "maxReplicas", "numOfHosts")
        kept = [{key: group[key] for key in bounds if key in group} for group in groups]
        cluster = item["spec"]["rayClusterConfig"]
        suspended = {key: cluster[key] for key in ("suspend",) if key in cluster}
        spec["rayClusterConfig"] = {**suspended, "workerGroupSpecs": kept}
    metadata = {key: item["metadata"][key] for key in ("name", "generation")}
    short = {"apiVersion": item["apiVersion"], "kind": kind, "metadata": metadata, "spec": spec}
    text = yaml.safe_dump({**short, "status": item.get("status", {})}, sort_keys=False)
    path = CUSTOMIZATIONS / f"ray.io/{kind}/testdata/{name}.yaml"
    header = f"# Status of KubeRay {kuberay}, recorded by tests/cluster/test_health.py; pod templates are removed.\n"
    path.write_text(header + text)


def test_service_is_healthy_only_when_it_serves(service: Service) -> None:
    """The life of one service: install, failing model, edits of bounds, upgrade, failing upgrade."""
    ray = service.cluster.place.ray
    with ray.failing(service.namespace, NAME, dashboard=503):
        service.apply()
        service.becomes("Progressing", "Initializing", "initializing")
    service.becomes("Healthy", "1 endpoints", "ready")
    for broken, status in (("DEPLOY_FAILED", "Degraded"), ("UNHEALTHY", "Degraded"), ("DEPLOYING", "Progressing")):
        recorded = {"DEPLOY_FAILED": "ready-model-failed", "DEPLOYING": "ready-model-deploying"}.get(broken, "")
        with ray.failing(service.namespace, NAME, applications={NAME: broken}):
            service.becomes(status, f"application chat is {broken}", recorded)
            assert condition(service.read(), "Ready") == "True"
        service.becomes("Healthy", "1 endpoints")
    service.apply({"workerGroups": {"gpu": {"maxReplicas": 3}}})
    service.becomes("Healthy", "Held back: the RayCluster has", "ready-bounds-held-back")
    with ray.failing(service.namespace, NAME, applications={NAME: "DEPLOYING"}, only_new=True):
        service.apply(EDITED)
        service.becomes("Progressing", "replaces", "upgrading")
    with ray.failing(service.namespace, NAME, applications={NAME: "DEPLOY_FAILED"}, only_new=True):
        service.apply(over(EDITED, {"head": {"extraEnv": [{"name": "EDITED", "value": "2"}]}}))
        service.becomes("Degraded", "still serves", "upgrade-failed")
    service.becomes("Healthy", "1 endpoints")


EDITED = {"head": {"extraEnv": [{"name": "EDITED", "value": "1"}]}}


def test_service_says_that_strategy_none_holds_edits_back(service: Service) -> None:
    service.apply({"upgrade": {"strategy": "None"}})
    service.becomes("Healthy", "edits of pods apply when the RayService is recreated", "ready-strategy-none")


def test_service_that_does_not_start_in_time_is_degraded(service: Service) -> None:
    nowhere = {"head": {"nodeSelector": {"example.com/no": "node"}}}
    service.apply(over(nowhere, {"annotations": {"ray.io/initializing-timeout": "5s"}}))
    service.becomes("Degraded", "InitializingTimeout", "initializing-timeout")


def test_invalid_service_is_degraded(service: Service) -> None:
    service.apply()
    service.becomes("Healthy", "1 endpoints")
    for kind, health in (("Sometimes", ("Degraded", "ValidationFailed")), ("NewCluster", ("Healthy", "1 endpoints"))):
        service.cluster.patch("rayservice", NAME, service.namespace, {"spec": {"upgradeStrategy": {"type": kind}}})
        service.becomes(*health, recorded="validation-failed" if kind == "Sometimes" else "")


def test_service_is_suspended_while_its_cluster_may_have_no_pods(service: Service) -> None:
    """As Kueue does when it preempts a service."""
    service.apply()
    service.becomes("Healthy", "1 endpoints")
    suspend_cluster(service, True)
    service.becomes("Suspended", "no pods", "cluster-suspended")
    suspend_cluster(service, False)
    service.becomes("Healthy", "1 endpoints")


def suspend_cluster(service: Service, suspend: bool) -> None:
    spec = {"rayClusterConfig": {"suspend": suspend}}
    service.cluster.patch("rayservice", NAME, service.namespace, {"spec": spec})


def ray_cluster(name: str, **spec: Any) -> Object:
    container = {
        "name": "ray",
        "image": "ray:test",
        "resources": {"limits": {"cpu": "1", "memory": "1Gi"}},
        "securityContext": {
            "allowPrivilegeEscalation": False,
            "runAsNonRoot": True,
            "runAsUser": 1000,
            "capabilities": {"drop": ["ALL"]},
            "seccompProfile": {"type": "RuntimeDefault"},
        },
    }
    template = {"spec": {"containers": [container]}}
    group = {"groupName": "cpu", "minReplicas": 1, "maxReplicas": 1, "rayStartParams": {}, "template": template}
    return {
        "apiVersion": "ray.io/v1",
        "kind": "RayCluster",
        "metadata": {"name": name},
        "spec": {
            "rayVersion": "2.60.0",
            "headGroupSpec": {"rayStartParams": {}, "template": template},
            "workerGroupSpecs": [group],
            **spec,
        },
    }


def pending_head() -> Object:
    """A head that fits no node: its RayCluster never becomes ready."""
    nowhere = {"template": {"spec": {"nodeSelector": {"example.com/no": "node"}}}}
    return over(ray_cluster("")["spec"]["headGroupSpec"], nowhere)


def test_ray_cluster_is_healthy_only_when_head_and_workers_run(cluster: Cluster, namespace: str) -> None:
    def becomes(status: str, message: str, recorded: str) -> None:
        wait_for(cluster, "RayCluster", "plain", namespace, (status, message), recorded)

    quota = {
        "apiVersion": "v1",
        "kind": "ResourceQuota",
        "metadata": {"name": "none"},
        "spec": {"hard": {"pods": "0"}},
    }
    cluster.apply(quota, namespace=namespace)
    eventually(lambda: cluster.one("ResourceQuota", "none", namespace).get("status", {}).get("hard"), "the quota")
    cluster.apply(ray_cluster("plain"), namespace=namespace)
    becomes("Degraded", "exceeded quota", "replica-failure")
    cluster.delete("resourcequota", "none", namespace)
    becomes("Healthy", "head and 1 workers run", "running")
    cluster.apply(ray_cluster("plain", suspend=True), namespace=namespace)
    becomes("Suspended", "it has no pods", "suspended")
    cluster.apply(ray_cluster("plain", suspend=False, workerGroupSpecs=[]), namespace=namespace)
    becomes("Healthy", "head and 0 workers run", "head-only")
    cluster.apply(ray_cluster("pending", headGroupSpec=pending_head()), namespace=namespace)
    wait_for(cluster, "RayCluster", "pending", namespace, ("Progressing", "head: "), "provisioning")


def ray_job(name: str, **spec: Any) -> Object:
    """A job in HTTPMode. KubeRay submits it when its RayCluster is ready; the stand-in for Ray takes no jobs."""
    cluster = ray_cluster("")["spec"]
    body = {"entrypoint": "true", "submissionMode": "HTTPMode", "rayClusterSpec": cluster, **spec}
    return {"apiVersion": "ray.io/v1", "kind": "RayJob", "metadata": {"name": name}, "spec": body}


PENDING: Object = {**ray_cluster("")["spec"], "headGroupSpec": pending_head()}


@pytest.mark.parametrize(
    ("name", "spec", "health"),
    [
        ("suspended", {"suspend": True, "shutdownAfterJobFinishes": True}, ("Suspended", "no RayCluster")),
        ("waits", {"submissionMode": "InteractiveMode", "entrypoint": ""}, ("Suspended", "submits the job")),
        # KubeRay leaves Initializing as soon as the RayCluster is ready, often before a test looks.
        ("initializing", {"rayClusterSpec": PENDING}, ("Progressing", "Initializing")),
        ("deadline", {"activeDeadlineSeconds": 3}, ("Degraded", "DeadlineExceeded")),
        ("validation-failed", {"backoffLimit": -1}, ("Degraded", "ValidationFailed")),
    ],
)
def test_job_is_not_healthy_before_it_succeeds(
    cluster: Cluster, namespace: str, name: str, spec: Object, health: tuple[str, str]
) -> None:
    cluster.apply(ray_job(name, **spec), namespace=namespace)
    wait_for(cluster, "RayJob", name, namespace, health, name)
