"""An install that may be disturbed on its way."""

from collections import Counter

from cluster.kit.cluster import Cluster, Object, condition
from cluster.kit.helm import Helm
from cluster.kit.small import Small
from cluster.kit.wait import eventually

__all__ = ["NAME", "PLACE", "PLANNED", "Install"]

PLACE = Small("resilience")
NAME = "chat"
PLANNED = Counter(head=1, worker=2)


class Install:
    """A release with a head and two workers, in a namespace of its own."""

    def __init__(self, cluster: Cluster, namespace: str) -> None:
        self.cluster = cluster
        self.namespace = namespace

    def begins(self) -> None:
        workers = {"workerGroups": {"gpu": {"minReplicas": 2, "maxReplicas": 2}}}
        values = PLACE.values(self.cluster.place, workers)
        Helm.of_major("4", self.cluster.place.kubeconfig).install("ray-service", NAME, self.namespace, values)

    def pods(self, role: str = "") -> list[Object]:
        """Ray's pods, of `head` or `worker` where it is named."""
        labels = {"ray.io/is-ray-node": "yes", **({"ray.io/node-type": role} if role else {})}
        return self.cluster.all("Pod", self.namespace, labels)

    def uids(self) -> set[str]:
        return {pod["metadata"]["uid"] for pod in self.pods()}

    def all_run(self) -> bool:
        roles = Counter(pod["metadata"]["labels"]["ray.io/node-type"] for pod in self.pods())
        return roles == PLANNED and all(condition(pod, "Ready") == "True" for pod in self.pods())

    @property
    def ray_cluster(self) -> str:
        """Return the UID of the only RayCluster."""
        (found,) = self.cluster.all("RayCluster", self.namespace)
        return str(found["metadata"]["uid"])

    def is_ready(self) -> str:
        return condition(self.cluster.one("RayService", NAME, self.namespace), "Ready")

    def applications(self, which: str) -> dict[str, str]:
        """Their states, of the `active` Ray cluster or of the `pending` one."""
        status = self.cluster.one("RayService", NAME, self.namespace).get("status", {})
        reported = status.get(f"{which}ServiceStatus", {}).get("applicationStatuses") or {}
        return {name: application["status"] for name, application in reported.items()}

    def goes_on(self) -> None:
        """Ray answers from now on."""
        self.cluster.place.ray.heal(self.namespace, NAME)

    def converges(self) -> None:
        self.cluster.becomes_ready(NAME, self.namespace)
        eventually(self.all_run, f"{dict(PLANNED)}", shows=lambda: self.cluster.tell(self.namespace))
