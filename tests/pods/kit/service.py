"""A service alone, in a namespace of its own: chart `ray-service` with tiny models, and no gateway before it."""

import json
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Any

from charts.kit import over
from pods.kit.cluster import Cluster
from rayhelm.deploy.render.releases import Release
from rayhelm.deploy.values.emit import select_changed
from rayhelm.deploy.values.ray_service import RayServiceValues
from rayhelm.deploy.values.ray_service.image import RayImage
from rayhelm.run.rehearsal.cluster_session import ClusterSession, build_namespace
from rayhelm.run.rehearsal.load import NAMESPACE
from rayhelm.run.rehearsal.load_client import LoadTarget
from rayhelm.run.standin.cluster import StandInCluster, adapt_service
from testbed.images.__main__ import build
from testbed.node.images import give
from testbed.tools import found

__all__ = ["TINY", "Service", "given", "serving", "values"]

TINY = "tiny"
"""The model where there is one, and its application."""
CHAT = {TINY: ("chat", "LlamaForCausalLM")}
"""Task and family by model; each is an application of its own."""
GRACE = 30
"""Seconds that a worker may take to end."""


@dataclass(frozen=True)
class Service:
    """One that was installed."""

    cluster: Cluster
    session: ClusterSession
    release: Release

    @property
    def host(self) -> str:
        return f"{self.release.name}-serve-svc.{self.release.namespace}.svc.cluster.local"

    def target(self, model: str = TINY, task: str = "chat") -> LoadTarget:
        return LoadTarget(name=model, url=f"http://{self.host}:8000/{model}", model=model, task=task)

    def pods(self, role: str) -> list[dict[str, Any]]:
        return self.session.list_pods(self.release, role)

    def runs(self, pod: str, command: str, container: str = "") -> str:
        """What a shell in a pod says."""
        where = [pod, f"--namespace={self.release.namespace}", *([f"--container={container}"] if container else [])]
        return self.session.kubectl("exec", *where, "--", "bash", "-c", command)

    def replicas(self, deployment: str) -> dict[str, str]:
        """Addresses of the pods by those replicas that run, as Ray's dashboard reports with its token."""
        (head,) = self.pods("head")
        ask = 'wget -q -O- --header "Authorization: Bearer $RAY_AUTH_TOKEN" localhost:8265/api/serve/applications/'
        reported = json.loads(self.runs(head["metadata"]["name"], ask, "ray-head"))
        deployments = reported["applications"][TINY]["deployments"]
        (reported,) = (each for name, each in deployments.items() if name.startswith(deployment))
        return {each["replica_id"]: each["node_ip"] for each in reported["replicas"] if each["state"] == "RUNNING"}

    def upgrade(self, overlay: Mapping[str, Any]) -> "Service":
        """The same with other values laid over its own."""
        merged = over(select_changed(self.release.values), dict(overlay))
        release = replace(self.release, values=RayServiceValues.model_validate(merged))
        self.session.install(release)
        return replace(self, release=release)


def given(cluster: Cluster) -> str:
    """The image with Ray, vLLM and tiny models, which the node then has."""
    return give(cluster.node.home, cluster.pid, build("cpu"), "cpu")


def values(
    cluster: Cluster, overlay: Mapping[str, Any], models: Mapping[str, tuple[str, str]] = CHAT
) -> RayServiceValues:
    """Of a service of `models`, with tiny ones in their place, in small pods, and `overlay` over all that."""
    repository, _, tag = given(cluster).rpartition(":")
    place = StandInCluster(
        kuberay=found("kuberay-operator").version,
        image=RayImage.model_validate({"repository": repository, "tag": tag, "includesRayhelm": True}),
        api_servers=(f"{cluster.node.network.node}/32",),
    )
    engine = {"maxModelLen": 1024, "maxNumSeqs": 8, "maxNumBatchedTokens": 1024}
    plain = {
        "serve": {"applications": {
            name: {"models": {name: {"source": "/models/tiny", "task": task, "engine": engine,
                                     "autoscaling": {"targetOngoingRequests": 8}}}}
            for name, (task, _) in models.items()
        }},
        "workerGroups": {"gpu": {
            "resources": {"limits": {"cpu": "4", "memory": "16Gi"}}, "terminationGracePeriodSeconds": GRACE,
        }},
        "networkPolicy": {"allowedGateways": {"clients": {"namespace": NAMESPACE}}},
        "upgrade": {"deletionDelaySeconds": 10},
    }  # fmt: skip
    families = {name: family for name, (_, family) in models.items()}
    small = adapt_service(RayServiceValues.model_validate(plain), families, place).values
    return RayServiceValues.model_validate(over(select_changed(small), dict(overlay)))


@contextmanager
def serving(cluster: Cluster, name: str, wanted: RayServiceValues) -> Iterator[Service]:
    """Installed by Helm into a namespace that enforces Pod Security `restricted`; taken away on leaving, pods too: the
    next one needs their memory. Does not wait until it is ready."""
    session = ClusterSession(cluster.kubectl, cluster.node.home.kubeconfig)
    session.kubectl.apply_objects(build_namespace(NAMESPACE), build_namespace(f"live-{name}"))
    release = Release("ray-service", name, f"live-{name}", "", wanted, "", "", "")
    try:
        session.install(release)
        yield Service(cluster, session, release)
    finally:
        session.kubectl("delete", "namespace", release.namespace, "--ignore-not-found", "--timeout=300s")
