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

    @property
    def grows(self) -> bool:
        """Whether a pool has to have more GPUs for it in the end."""
        return bool(self.after - self.before)

    @property
    def surge(self) -> Counter[Limit]:
        """GPUs that it needs while it changes, besides those that it has."""
        return self.count(self.meanwhile) - self.count(self.before)

    @property
    def settling(self) -> Counter[Limit]:
        """GPUs that it needs while it changes, besides those that it ends with."""
        return self.count(self.meanwhile) - self.count(self.after)

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
    """Order the changes: each wave has what fits beside all that runs, and starts when the one before is complete.

    What needs no more GPUs in the end comes first, the smallest surge first: it only makes room. What grows comes last,
    in an order found from the end, where all of it runs. Changes for which no order is found are the last wave, with
    what is missing for the first of them. A pool or namespace without a limit is never short.
    """
    several = len({change.cluster for change in changes}) > 1
    used = sum((change.count(change.before) for change in changes), Counter[Limit]())
    changed = sorted((change for change in changes if change.is_change), key=lambda each: each.surge.total())
    waves: list[UpgradeWave] = []
    left = list[GpuChange]()
    for grow in (False, True):
        part = [each for each in changed if each.grows == grow]
        left += _order_from_end(part, used, limits) if grow else part
        while wave := _pack(left, used, limits):
            used = _complete(used, wave)
            left = [change for change in left if change not in wave]
            waves.append(UpgradeWave(releases=tuple(_name(each, several) for each in wave)))
    if left:
        first = f" for {_name(left[0], several)}" if len(left) > 1 else ""
        missing = tuple(f"{each}{first}" for each in _find_missing(used, left[0].surge, limits))
        waves.append(UpgradeWave(releases=tuple(_name(each, several) for each in left), missing=missing))
    return tuple(waves)


def _order_from_end(changes: Sequence[GpuChange], used: Counter[Limit], limits: Mapping[Limit, int]) -> list[GpuChange]:
    """Put last what fits beside all others when they are complete, and so on backwards; the given order if nothing
    does."""
    state, left, last = _complete(used, changes), list(changes), list[GpuChange]()
    while left:
        # Backwards in time a change begins with the GPUs of its end.
        fitting = (each for each in reversed(left) if not _find_missing(state, each.settling, limits))
        if (found := next(fitting, None)) is None:
            return list(changes)
        left.remove(found)
        last.insert(0, found)
        state = state + found.count(found.before) - found.count(found.after)
    return last


def _pack(changes: Sequence[GpuChange], used: Counter[Limit], limits: Mapping[Limit, int]) -> list[GpuChange]:
    """The first of the changes that fit at the same time; any that fits where the first does not."""
    load, wave = Counter(used), list[GpuChange]()
    for change in changes:
        if not _find_missing(load, change.surge, limits):
            load += change.surge
            wave.append(change)
        elif wave:
            break
    return wave


def _complete(used: Counter[Limit], changes: Sequence[GpuChange]) -> Counter[Limit]:
    for change in changes:
        used = used + change.count(change.after) - change.count(change.before)
    return used


def _find_missing(used: Counter[Limit], extra: Counter[Limit], limits: Mapping[Limit, int]) -> list[str]:
    return [
        f"{used[key] + count - limits[key]} {key[3]} in {key[0]} {key[2]}"
        for key, count in extra.items()
        if key in limits and used[key] + count > limits[key]
    ]


def _name(change: GpuChange, several: bool) -> str:
    return f"{change.release} ({change.cluster})" if several else change.release
