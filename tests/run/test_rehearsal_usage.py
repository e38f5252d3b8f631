"""GPUs that the real fleet would use while its stand-ins change."""

from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from rayhelm.deploy.charts.helm import charts_dir
from rayhelm.deploy.render.files import render_fleet
from rayhelm.live.cluster.kubectl import Kubectl
from rayhelm.run.rehearsal.capacity import Capacity
from rayhelm.run.rehearsal.usage import UsageMonitor, count_gpus, count_pool_gpus

VALUES = charts_dir().parent / "values"
FLEETS = [path.name for path in sorted(VALUES.iterdir()) if path.is_dir()]
POOL = ("gpu", "nvidia.com/gpu")


class Cluster(Kubectl):
    """Ray clusters by owning service, and pods of 1 GiB each."""

    def __init__(self, pods: int = 0, **clusters: str) -> None:
        super().__init__(Path("kubectl"), None)
        self.clusters, self.pods, self.namespace = clusters, pods, "ours"

    def get(self, *what: str, namespace: str = "") -> dict[str, Any]:
        if what[0] == "rayclusters.ray.io":
            owned = [
                {"name": name, "namespace": self.namespace, "ownerReferences": [{"name": by}]}
                for name, by in self.clusters.items()
            ]
            return {"items": [{"metadata": metadata} for metadata in owned]}
        container = {"resources": {"requests": {"memory": "1Gi", "cpu": "1"}}}
        count = self.pods if "--selector=rayhelm.dev/service" in what else 0
        pod = {"metadata": {"namespace": self.namespace}, "spec": {"containers": [container]}}
        return {"items": [pod] * count}


def watch(cluster: Cluster, old: int = 1, new: int = 2) -> UsageMonitor:
    gpus = {"one": Counter({POOL: old})}, {"one": Counter({POOL: new}), "two": Counter({POOL: 5})}
    return UsageMonitor(cluster, *gpus, ["ours"])


@pytest.mark.parametrize("name", FLEETS)
def test_cluster_uses_the_planned_gpus_or_fewer_if_it_scales(name: str) -> None:
    rendered = render_fleet(VALUES / name / "fleet.yaml")
    for service, values in rendered.values.items():
        held: Counter[str] = Counter()
        for (_, resource), count in count_gpus(service, rendered, values).items():
            held[resource] += count
        planned = Counter(rendered.plan.services[service].gpu_resources)
        scales = any(model.min_replicas < model.replicas for model in rendered.plan.of_service(service))
        assert (held < planned) if scales else (held == planned), service


@pytest.mark.parametrize("name", FLEETS)
def test_every_pool_has_the_gpus_of_the_plan(name: str) -> None:
    rendered = render_fleet(VALUES / name / "fleet.yaml")
    for cluster in rendered.plan.declared.clusters:
        held: Counter[tuple[str, str]] = Counter()
        for service, values in rendered.values.items():
            if rendered.plan.services[service].cluster == cluster:
                held += count_gpus(service, rendered, values)
        assert held <= count_pool_gpus(rendered, cluster)


def test_two_clusters_use_the_old_and_the_new_gpus() -> None:
    cluster = Cluster(a="one")
    seen = watch(cluster)
    assert seen.observe()[POOL] == 1
    seen.mark_change()
    cluster.clusters = {"a": "one", "b": "one"}
    assert seen.observe()[POOL] == 3
    cluster.clusters = {"b": "one"}
    assert seen.observe()[POOL] == 2
    assert (seen.peak[POOL], seen.peak_clusters) == (3, 2)


def test_cluster_changed_in_place_uses_the_new_gpus() -> None:
    seen = watch(Cluster(a="one"))
    seen.mark_change()
    assert seen.observe()[POOL] == 1
    seen.in_place.add("one")
    assert seen.observe()[POOL] == 2


def test_added_service_uses_its_gpus_and_other_namespaces_are_not_counted() -> None:
    cluster = Cluster(a="one")
    seen = watch(cluster)
    seen.mark_change()
    cluster.clusters = {"a": "one", "c": "two", "d": "foreign"}
    assert seen.observe()[POOL] == 6
    assert seen.peak_clusters == 2


def test_monitor_has_peak_pods_and_memory() -> None:
    cluster = Cluster(pods=4, a="one")
    seen = watch(cluster)
    seen.observe()
    cluster.pods = 2
    seen.observe()
    assert (seen.peak_pods, seen.peak_requests) == (4, Capacity(4 * 2**30, 4))


def test_other_namespaces_are_not_counted() -> None:
    cluster = Cluster(pods=3, a="one")
    cluster.namespace = "theirs"
    seen = watch(cluster)
    assert seen.observe() == Counter()
    assert (seen.peak_clusters, seen.peak_pods) == (0, 0)
