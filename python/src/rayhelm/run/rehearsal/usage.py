"""GPUs that the real fleet would use during a rehearsal, and resources that the stand-ins request."""

import threading
from collections import Counter
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field

from rayhelm.deploy.compose.worker_groups import get_gpu_resource
from rayhelm.deploy.render.files import Rendered
from rayhelm.deploy.values.ray_service import RayServiceValues
from rayhelm.errors import RayhelmError
from rayhelm.live.cluster.kubectl import Kubectl
from rayhelm.planner.workers.kinds import name_pod_kinds
from rayhelm.run.rehearsal.capacity import ZERO, Capacity, sum_requests

__all__ = ["GpuUsage", "UsageMonitor", "count_gpus", "count_pool_gpus"]

GpuUsage = Counter[tuple[str, str]]
"""Count by pool and extended resource; GPU partitions count as such."""
INTERVAL = 3.0
"""Seconds between two observations."""


def count_gpus(service: str, rendered: Rendered, values: RayServiceValues) -> GpuUsage:
    """Count the GPUs of one Ray cluster of the service with the minimum number of workers."""
    kinds = name_pod_kinds(rendered.plan.of_service(service), rendered.plan.declared)
    pools = {name: kind.pool for kind, name in kinds.items()}
    used: GpuUsage = Counter()
    for name, group in values.worker_groups.items():
        if not group.gpu.count:
            continue
        used[pools[name], get_gpu_resource(group)] += group.min_replicas * group.num_of_hosts * group.gpu.count
    return used


def count_pool_gpus(rendered: Rendered, cluster: str) -> GpuUsage:
    """Count the GPUs of the pools of a cluster."""
    pools = rendered.plan.pools.items()
    return Counter(
        {(name, res): n for name, pool in pools if pool.cluster == cluster for res, n in pool.gpu_resources.items()}
    )


@dataclass
class UsageMonitor:
    """Observes the cluster repeatedly, in its own thread."""

    kubectl: Kubectl
    old: Mapping[str, GpuUsage]
    """GPUs of a Ray cluster from before the change, by service."""
    new: Mapping[str, GpuUsage]
    """GPUs of a Ray cluster that the change creates or changes in place, by service."""
    namespaces: Collection[str]
    """Namespaces of the fleet; other namespaces are not counted."""
    before: set[str] | None = None
    """Ray clusters from before the change; None until it begins."""
    in_place: set[str] = field(default_factory=set)
    """Services whose clusters are changed in place."""
    gpus: GpuUsage = field(default_factory=Counter)
    """At the last observation."""
    peak: GpuUsage = field(default_factory=Counter)
    peak_clusters: int = 0
    peak_pods: int = 0
    peak_requests: Capacity = ZERO

    def __post_init__(self) -> None:
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True)

    def __enter__(self) -> "UsageMonitor":
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._ended.set()
        self._thread.join()

    def observe(self) -> GpuUsage:
        """Count the GPUs that the real fleet would use now."""
        clusters = self._list_clusters()
        self.gpus = Counter()
        for name, service in clusters.items():
            first = (self.before is None or name in self.before) and service not in self.in_place
            self.gpus += (self.old if first else self.new).get(service, Counter())
        self.peak |= self.gpus
        self.peak_clusters = max(self.peak_clusters, len(clusters))
        pods = self._list_pods()
        self.peak_pods = max(self.peak_pods, len(pods))
        total = sum(pods, start=ZERO)
        self.peak_requests = max(self.peak_requests, total, key=lambda each: each.memory)
        return self.gpus

    def mark_change(self) -> None:
        """Record the current Ray clusters as those from before the change."""
        self.before = set(self._list_clusters())

    def _run(self) -> None:
        while not self._ended.wait(INTERVAL):
            try:
                self.observe()
            except RayhelmError:
                continue  # the next observation may succeed

    def _list_clusters(self) -> dict[str, str]:
        """Return the service of each Ray cluster."""
        items = self.kubectl.get("rayclusters.ray.io", "--all-namespaces")["items"]
        return {
            item["metadata"]["name"]: owner["name"]
            for item in items
            for owner in item["metadata"].get("ownerReferences", ())
            if item["metadata"]["namespace"] in self.namespaces
            if owner["name"] in self.old or owner["name"] in self.new
        }

    def _list_pods(self) -> list[Capacity]:
        kinds = ("rayhelm.dev/service", "rayhelm.dev/gateway")
        found = [self.kubectl.get("pods", "--all-namespaces", f"--selector={kind}")["items"] for kind in kinds]
        ours = (item for items in found for item in items if item["metadata"]["namespace"] in self.namespaces)
        return [sum_requests(item["spec"]) for item in ours]
