"""GPUs before, during and after a change, against pools and quotas.

Workers at the planned load are counted, at least the minimum.
"""

from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping
from math import ceil
from typing import Any

from rayhelm.check.diff.report import GpuNeed, QuotaNeed, ReleaseEffect
from rayhelm.check.diff.side import Side, SideRelease
from rayhelm.planner.workers.kinds import name_pod_kinds

__all__ = ["GpuCount", "count_gpus", "list_gpu_needs", "list_quota_needs", "sum_after", "sum_meanwhile"]

GpuCount = Counter[tuple[str, str, str]]
"""Count by cluster, pool and extended resource."""
_SUFFIX, _PREFIX = "gpu", "nvidia.com/mig-"
_DEVICES = ("gpu.intel.com/", "habana.ai/gaudi", "google.com/tpu")


def count_gpus(release: SideRelease | None, service: Mapping[str, Any] | None, *sides: Side) -> GpuCount:
    """Count the GPUs of one RayCluster of the service, with the planned workers or the minimum.

    The first side with a plan names the pools.
    """
    found: GpuCount = Counter()
    if release is None or service is None or service["spec"].get("suspend"):
        return found
    side = next((side for side in sides if side.rendered), sides[0])
    pools = _find_pools(release, side)
    for group in service["spec"].get("rayClusterConfig", {}).get("workerGroupSpecs", []):
        workers = int(group.get("minReplicas") or 0) * int(group.get("numOfHosts", 1))
        name = str(group.get("groupName"))
        pool = pools.get(name, f"{release.name}, group {name}")
        cluster = side.rendered.plan.pools[pool].cluster if side.rendered and name in pools else release.cluster
        for resource, count in _list_devices(group):
            found[cluster, pool, resource] += workers * count
    return _raise_to_plan(+found, release.name, side)


def _raise_to_plan(found: GpuCount, service: str, side: Side) -> GpuCount:
    """Raise the counts to those of the planned load, in pools with one extended resource."""
    planned: Counter[str] = Counter()
    for model in side.rendered.plan.of_service(service) if side.rendered else ():
        planned[model.pool] += model.gpus  # type: ignore[assignment]  # parts of GPUs
    raised = Counter(found)
    for key in found:
        alone = sum(other[1] == key[1] for other in found) == 1
        raised[key] = max(found[key], ceil(planned[key[1]])) if alone else found[key]
    return raised


def sum_meanwhile(effect: ReleaseEffect, before: GpuCount, after: GpuCount) -> GpuCount:
    """Return the GPUs of a release while it changes."""
    if effect in ("new cluster", "new cluster, waiting"):
        return before + after
    if effect in ("install", "in place"):
        return before | after
    return before


def sum_after(effect: ReleaseEffect, before: GpuCount, after: GpuCount) -> GpuCount:
    """Return the GPUs of a release when the change is complete."""
    if effect == "new cluster, waiting":
        return before + after
    return after if effect in ("new cluster", "install", "in place", "uninstall", "suspended") else before


def list_gpu_needs(counts: Mapping[str, GpuCount], new: Side, old: Side) -> Iterator[GpuNeed]:
    """Yield the GPUs of each pool. `counts` has `before`, `meanwhile` and `after`."""
    capacity = {**_list_capacity(old), **_list_capacity(new)}
    for key in sorted({key for count in counts.values() for key in count}):
        yield GpuNeed(
            cluster=key[0],
            pool=key[1],
            resource=key[2],
            before=counts["before"][key],
            meanwhile=counts["meanwhile"][key],
            after=counts["after"][key],
            capacity=capacity.get(key),
        )


def list_quota_needs(meanwhile: Mapping[tuple[str, str], GpuCount], new: Side) -> Iterator[QuotaNeed]:
    """Yield the GPUs of each namespace with a quota. `meanwhile`: by cluster and namespace."""
    for release in new.releases.values():
        if release.chart != "tenant":
            continue
        gpus = (release.values or {}).get("quota", {}).get("gpus", {})
        used: Counter[str] = Counter()
        for (_, _, resource), count in meanwhile.get((release.cluster, release.name), Counter()).items():
            used[resource] += count
        for resource, limit in gpus.items():
            if used[resource]:
                total = int(limit.get("planned", 0)) + int(limit.get("upgradeSurge", 0))
                yield QuotaNeed(
                    cluster=release.cluster,
                    namespace=release.name,
                    resource=resource,
                    meanwhile=used[resource],
                    limit=total,
                )


def _find_pools(release: SideRelease, side: Side) -> dict[str, str]:
    """Return the pool of each worker group; empty without a plan."""
    if side.rendered is None or release.name not in side.rendered.plan.services:
        return {}
    kinds = name_pod_kinds(side.rendered.plan.of_service(release.name), side.rendered.plan.declared)
    return {name: kind.pool for kind, name in kinds.items()}


def _list_capacity(side: Side) -> dict[tuple[str, str, str], int]:
    if side.rendered is None:
        return {}
    found: dict[tuple[str, str, str], int] = defaultdict(int)
    for name, pool in side.rendered.plan.pools.items():
        for resource, count in pool.gpu_resources.items():
            found[pool.cluster, name, resource] += count
    return found


def _list_devices(group: Mapping[str, Any]) -> Iterator[tuple[str, int]]:
    for container in group.get("template", {}).get("spec", {}).get("containers", []):
        resources = container.get("resources", {})
        for name, count in {**resources.get("requests", {}), **resources.get("limits", {})}.items():
            if "/" in name and (name.endswith(_SUFFIX) or name.startswith((_PREFIX, *_DEVICES))):
                yield name, int(count)
