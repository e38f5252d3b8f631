"""An order of changes in which the GPUs of pools and quotas suffice."""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from rayhelm.check.diff.gpus import GpuCount
from rayhelm.check.diff.report import GpuNeed, QuotaNeed, UpgradeWave

__all__ = ["GpuChange", "Limit", "list_limits", "order_waves"]

Limit = tuple[str, str, str, str]
"""`pool` or `namespace`, cluster, name, extended resource."""


@dataclass(frozen=True)
class GpuChange:
    """GPUs of one RayService, by pool."""

    cluster: str
    namespace: str
    release: str
    before: GpuCount
    meanwhile: GpuCount
    """While it changes."""
    after: GpuCount

    @property
    def is_change(self) -> bool:
        return self.meanwhile != self.before or self.after != self.before

    def count(self, gpus: GpuCount) -> Counter[Limit]:
        """The GPUs that pools and the namespace have to have for `gpus`."""
        found = Counter[Limit]()
        for (cluster, pool, resource), count in gpus.items():
            found["pool", cluster, pool, resource] += count
            found["namespace", self.cluster, self.namespace, resource] += count
        return found


def list_limits(gpus: Sequence[GpuNeed], quotas: Sequence[QuotaNeed]) -> dict[Limit, int]:
    """The GPUs that each pool and namespace has, where that is known."""
    pools = {
        ("pool", each.cluster, each.pool, each.resource): each.capacity for each in gpus if each.capacity is not None
    }
    return pools | {("namespace", each.cluster, each.namespace, each.resource): each.limit for each in quotas}


def order_waves(changes: Sequence[GpuChange], limits: Mapping[Limit, int]) -> tuple[UpgradeWave, ...]:
    """Order the changes: each wave has all that fits beside what runs, and starts when the one before is complete.

    What frees GPUs comes first, then what needs the fewest more meanwhile. Changes that fit in no order are the last
    wave, with the GPUs that are missing for the smallest of them. A pool or namespace without a limit is never short.
    """
    used = sum((change.count(change.before) for change in changes), Counter[Limit]())
    left = sorted((change for change in changes if change.is_change), key=_rank)
    waves: list[UpgradeWave] = []
    while left:
        load, wave = Counter(used), list[GpuChange]()
        for change in left:
            extra = _find_extra(change)
            if not _find_missing(load, extra, limits):
                load += extra
                wave.append(change)
        if not wave:
            missing = _find_missing(used, _find_extra(left[0]), limits)
            waves.append(UpgradeWave(releases=_name(left), missing=tuple(missing)))
            return tuple(waves)
        for change in wave:
            used = used + change.count(change.after) - change.count(change.before)
        waves.append(UpgradeWave(releases=_name(wave)))
        left = [change for change in left if change not in wave]
    return tuple(waves)


def _find_extra(change: GpuChange) -> Counter[Limit]:
    return change.count(change.meanwhile) - change.count(change.before)


def _find_missing(load: Counter[Limit], extra: Counter[Limit], limits: Mapping[Limit, int]) -> list[str]:
    return [
        f"{load[key] + count - limits[key]} {key[3]} in {key[0]} {key[2]}"
        for key, count in extra.items()
        if key in limits and load[key] + count > limits[key]
    ]


def _rank(change: GpuChange) -> tuple[int, int]:
    return change.after.total() - change.before.total(), _find_extra(change).total()


def _name(changes: Sequence[GpuChange]) -> tuple[str, ...]:
    clusters = {change.cluster for change in changes}
    return tuple(f"{each.release} ({each.cluster})" if len(clusters) > 1 else each.release for each in changes)
