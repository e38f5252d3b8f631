"""What becomes in a cluster of a RayService that the chart would have refused.

Each ending is waited for by its own sign; that a service is not Ready yet is none.
"""

import json
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from packaging.version import Version

from cluster.kit.cluster import Cluster, Object, condition, reason
from cluster.kit.wait import eventually, stays
from testbed.ray_stand_in.client import RayStandIn
from testbed.ray_stand_in.memory import Put

__all__ = ["ENDINGS", "NOT_READY", "Written", "edit"]

AGAIN = 2
"""Events of one kind that make a stuck operator: newer ones are counted once an hour."""
PUTS = 3
"""Times that the operator hands out a configuration: a service that comes up gets it once."""


@dataclass(frozen=True)
class Written:
    """A RayService that was written, or that the API server refused."""

    cluster: Cluster
    namespace: str
    name: str
    refusal: str = field(default="", kw_only=True)
    group: str = field(default="", kw_only=True)

    @property
    def service(self) -> Object:
        return self.cluster.one("RayService", self.name, self.namespace)

    @property
    def ray_clusters(self) -> list[Object]:
        return self.cluster.all("RayCluster", self.namespace, {"ray.io/originated-from-cr-name": self.name})

    def pods(self, group: str = "") -> list[Object]:
        """Ray's pods, of all groups where none is named."""
        return [
            pod
            for ray_cluster in self.ray_clusters
            for pod in self.cluster.all("Pod", self.namespace, {"ray.io/cluster": ray_cluster["metadata"]["name"]})
            if group in ("", pod["metadata"]["labels"]["ray.io/group"])
        ]

    def events(self) -> list[Object]:
        """Of the service and of its Ray clusters."""
        names = {self.name, *(item["metadata"]["name"] for item in self.ray_clusters)}
        return [item for item in self.cluster.all("Event", self.namespace) if item["involvedObject"]["name"] in names]

    def is_ready(self) -> bool:
        return self.cluster.is_ready("RayService", self.name, self.namespace)

    def waits_for(self, ask: Callable[[], Any], what: str) -> Any:
        return eventually(ask, f"{self.name}: {what}", shows=self._tell)

    def all_run(self) -> bool:
        """Its pods are there, and each is Ready: it waits for none of them."""
        pods = self.pods()
        return bool(pods) and all(condition(pod, "Ready") == "True" for pod in pods)

    def _tell(self) -> str:
        events = [f"{item['reason']}: {item['message']}" for item in self.events()]
        return "\n".join([str(self.service.get("status")), *events])


def refused(it: Written, says: str) -> None:
    assert says in it.refusal, it.refusal or "the API server took it"


def invalid(it: Written, says: str) -> None:
    it.waits_for(lambda: reason(it.service, "Ready") == "ValidationFailed", "ValidationFailed")
    assert condition(it.service, "Ready") == "False"
    (ready,) = (item for item in it.service["status"]["conditions"] if item["type"] == "Ready")
    assert says in ready["message"]
    it.waits_for(lambda: [item for item in it.events() if item["reason"].startswith("InvalidRayService")], "an event")
    assert not it.ray_clusters


def stuck(it: Written, says: str) -> None:
    it.waits_for(lambda: _times(it, says) >= AGAIN or _is_logged(it, says), f"{says!r} said again and again")


def cut(it: Written, says: str) -> None:
    """Dropped by the API server, and everything runs as if it had not been said."""
    node: Any = it.service
    *way, last = says.split("/")[1:]
    for key in way:
        node = node[int(key) if isinstance(node, list) else key]
    assert last not in node
    it.waits_for(it.is_ready, "being Ready")


def reported(it: Written, says: str) -> None:
    """In an environment, or in a command that KubeRay writes there."""
    it.waits_for(lambda: it.pods(it.group), f"a pod of {it.group}")
    for pod in it.pods(it.group):
        environment = pod["spec"]["containers"][0]["env"]
        assert says in "".join(f"{item['name']}={item.get('value', '')}\n" for item in environment)


def budget(it: Written, says: str) -> None:
    def broken() -> list[Object]:
        budgets = it.cluster.all("PodDisruptionBudget", it.namespace, {"app.kubernetes.io/instance": it.name})
        for item in budgets:
            # The controller looks again only at a budget that has changed. At its first look, its list of kinds may be
            # older than the CRDs of a cluster that was joined.
            looked = {"metadata": {"annotations": {"tests.rayhelm.dev/looked": str(time.time())}}}
            it.cluster.patch("poddisruptionbudget", item["metadata"]["name"], it.namespace, looked)
        return [item for item in budgets if reason(item, "DisruptionAllowed") == "SyncFailed" and says in str(item)]

    it.waits_for(it.all_run, "running")
    it.waits_for(broken, f"a budget that says {says!r}")


def no_application(it: Written, says: str) -> None:
    """The operator hands out a configuration without any, again and again: it knows a service by its applications."""
    it.waits_for(it.all_run, "running")
    puts = it.waits_for(lambda: _puts(it), "its configuration put again and again")
    assert not any(put.body["applications"] for put in puts)
    it.waits_for(lambda: says in str(it.service["status"]), f"{says!r} in its status")


def no_endpoint(it: Written, says: str) -> None:
    """It is promoted, and its Service has no endpoint: the head takes no requests."""
    it.waits_for(it.all_run, "running")
    it.waits_for(lambda: it.service["status"].get("activeServiceStatus", {}).get("rayClusterName"), "being promoted")
    labels = {"kubernetes.io/service-name": f"{it.name}-serve-svc"}
    slices = it.waits_for(lambda: it.cluster.all("EndpointSlice", it.namespace, labels), "its Service")
    assert not any(item.get("endpoints") for item in slices)
    it.waits_for(lambda: says in str(it.service["status"]), f"{says!r} in its status")


def no_service(it: Written, says: str) -> None:
    """Each cluster has one of its own."""
    owners = it.waits_for(lambda: [item["metadata"]["name"] for item in it.ray_clusters], "a cluster")
    for name in owners:
        it.waits_for(lambda name=name: it.cluster.find("Service", name + says, it.namespace), f"Service {name}{says}")
    stays(lambda: not it.cluster.find("Service", it.name + says, it.namespace), f"no Service {it.name}{says}")


def same_cluster(it: Written, says: str) -> None:
    """The operator has seen an edit that calls for a new cluster, and there is none."""
    it.waits_for(it.is_ready, "being Ready")
    seen = edit(it)
    it.waits_for(lambda: it.service["status"].get("observedGeneration", 0) >= seen, "the edit being seen")
    it.waits_for(lambda: reason(it.service, "Ready") == says, f"Ready with the reason {says}")
    stays(lambda: len(it.ray_clusters) == 1 and reason(it.service, "Ready") == says, f"{it.name} has one cluster")


def edit(it: Written) -> int:
    """Changes the head, as only a new cluster can. The generation that the service has then."""
    path = "/spec/rayClusterConfig/headGroupSpec/template/spec/containers/0/env/-"
    change = [{"op": "add", "path": path, "value": {"name": "EDITED", "value": "1"}}]
    it.cluster.patch("rayservice", it.name, it.namespace, change)
    return int(it.service["metadata"]["generation"])


def _times(it: Written, says: str) -> int:
    reported = [item for item in it.events() if item["type"] == "Warning" and says in item["message"]]
    return sum(item.get("count") or item.get("series", {}).get("count", 1) for item in reported)


def _is_logged(it: Written, says: str) -> bool:
    """Whether KubeRay 1.7.0 has logged it again and again.

    Its events are those of events.k8s.io, and the API server refuses one with a text of more than 1,024 bytes.
    """
    log = it.cluster.place.plane.home.log("kuberay-operator")
    if Version(it.cluster.place.kuberay) < Version("1.7.0") or not log.is_file():
        return False
    names = [item["metadata"]["name"] for item in it.ray_clusters]
    quoted = json.dumps(says)[1:-1]
    with log.open() as lines:
        return sum(quoted in line and any(name in line for name in names) for line in lines) >= AGAIN


def _puts(it: Written) -> tuple[Put, ...]:
    with RayStandIn(it.cluster.place.plane.record.stand_in) as ray:
        puts = ray.puts(it.namespace, it.name)
    return puts if len(puts) >= PUTS else ()


ENDINGS: dict[str, Callable[[Written, str], None]] = {
    "refused": refused,
    "invalid": invalid,
    "stuck": stuck,
    "cut": cut,
    "reported": reported,
    "budget": budget,
    "no-application": no_application,
    "no-endpoint": no_endpoint,
    "no-service": no_service,
    "same-cluster": same_cluster,
}

NOT_READY = ("invalid", "stuck", "no-application", "no-endpoint")
"""Endings after which the service never becomes Ready."""
