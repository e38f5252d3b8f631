"""What a fleet holds while it is rehearsed: the cards of the real thing, and the room of the stand-ins."""

import threading
from collections import Counter
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field

from rayhelm.errors import RayhelmError
from rayhelm.kube.kubectl import Kubectl
from rayhelm.rehearsal.capacity import ZERO, Capacity, sum_requests
from rayhelm.render.files import Rendered
from rayhelm.values.build.pod_kinds import name_pod_kinds
from rayhelm.values.build.worker_groups import get_gpu_resource
from rayhelm.values.ray_service import RayServiceValues

__all__ = ["GpuUsage", "UsageMonitor", "count_gpus", "count_pool_gpus"]

GpuUsage = Counter[tuple[str, str]]
"""By pool and extended resource: parts of cards are counted as such."""
EVERY = 3.0
"""Seconds between two looks."""


def count_gpus(service: str, rendered: Rendered, values: RayServiceValues) -> GpuUsage:
    """What one Ray cluster of the service holds at the least number of workers."""
    kinds = name_pod_kinds(rendered.plan.of_service(service), rendered.loaded)
    pools = {name: kind.pool for kind, name in kinds.items()}
    held: GpuUsage = Counter()
    for name, group in values.worker_groups.items():
        held[pools[name], get_gpu_resource(group)] += group.min_replicas * group.num_of_hosts * group.gpu.count
    return held


def count_pool_gpus(rendered: Rendered, cluster: str) -> GpuUsage:
    """What the pools of a cluster offer."""
    pools = rendered.plan.pools.items()
    return Counter(
        {(name, res): n for name, pool in pools if pool.cluster == cluster for res, n in pool.gpu_resources.items()}
    )


@dataclass
class UsageMonitor:
    """Looks at the cluster again and again, in a thread of its own."""

    kubectl: Kubectl
    old: Mapping[str, GpuUsage]
    """By service: cards of a Ray cluster that was there before the change."""
    new: Mapping[str, GpuUsage]
    """And of one that the change made, or changed in place."""
    namespaces: Collection[str]
    """Where the fleet lives: what others have beside it is not counted."""
    before: set[str] | None = None
    """Ray clusters that were there before the change; None until that begins."""
    in_place: set[str] = field(default_factory=set)
    """Services whose clusters were changed in place."""
    cards: GpuUsage = field(default_factory=Counter)
    """At the last look."""
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
        """Cards that the real thing would hold now."""
        clusters = self._clusters()
        self.cards = Counter()
        for name, service in clusters.items():
            first = (self.before is None or name in self.before) and service not in self.in_place
            self.cards += (self.old if first else self.new).get(service, Counter())
        self.peak |= self.cards
        self.peak_clusters = max(self.peak_clusters, len(clusters))
        pods = self._pods()
        self.peak_pods = max(self.peak_pods, len(pods))
        room = sum(pods, start=ZERO)
        self.peak_requests = max(self.peak_requests, room, key=lambda each: each.memory)
        return self.cards

    def mark_change(self) -> None:
        """What is there now was there before the change."""
        self.before = set(self._clusters())

    def _run(self) -> None:
        while not self._ended.wait(EVERY):
            try:
                self.observe()
            except RayhelmError:
                continue  # the next look may be answered

    def _clusters(self) -> dict[str, str]:
        """Ray clusters that are there, and whose they are."""
        items = self.kubectl.get("rayclusters.ray.io", "--all-namespaces")["items"]
        return {
            item["metadata"]["name"]: owner["name"]
            for item in items
            for owner in item["metadata"].get("ownerReferences", ())
            if item["metadata"]["namespace"] in self.namespaces
            if owner["name"] in self.old or owner["name"] in self.new
        }

    def _pods(self) -> list[Capacity]:
        kinds = ("rayhelm.dev/service", "rayhelm.dev/gateway")
        found = [self.kubectl.get("pods", "--all-namespaces", f"--selector={kind}")["items"] for kind in kinds]
        ours = (item for items in found for item in items if item["metadata"]["namespace"] in self.namespaces)
        return [sum_requests(item["spec"]) for item in ours]
