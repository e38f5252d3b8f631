"""Nodes and GPU limits that a changed fleet lacks: added to its file in memory, so that a question has its answer."""

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from rayhelm.errors import Fix, FleetError, Problem
from rayhelm.facts.closed import Closed
from rayhelm.fleet.fleet import Fleet
from rayhelm.fleet.load import LoadedFleet
from rayhelm.planner.placement.inventory import PoolInventory, build_inventories
from rayhelm.planner.plan import Plan
from rayhelm.planner.planner import plan_fleet

__all__ = ["AddedNodes", "ChangedPlan", "RaisedLimit", "plan_with_more_capacity"]

_KEY = re.compile(r"(pools|tenants)\.(?P<name>.+)\.(?P<key>nodes|hosts|gpus)")
_ROUNDS = 8
"""Each round adds what the problems of the last one name; few fleets need more than two."""


class AddedNodes(Closed):
    """Nodes that a pool needs in addition to those of the fleet file."""

    pool: str
    nodes: int
    of: int
    """Nodes in the fleet file."""
    gpus: int
    """GPUs of the additional nodes."""
    usd_per_hour: float | None
    """Price of these GPUs, used or not; None if it is unknown."""

    def __str__(self) -> str:
        cost = "their price is unknown" if self.usd_per_hour is None else f"{self.usd_per_hour:.2f} USD/h"
        nodes, gpus = (f"{count} {name}{'s' if count > 1 else ''}" for count, name in self._counts)
        return f"pool `{self.pool}` lacks {nodes} with {gpus} in all, beside the {self.of} that it has: {cost}"

    @property
    def _counts(self) -> tuple[tuple[int, str], tuple[int, str]]:
        return (self.nodes, "node"), (self.gpus, "GPU")


class RaisedLimit(Closed):
    """A limit of a tenant that is too low."""

    tenant: str
    gpus: int
    of: float
    """`gpus` in the fleet file."""

    def __str__(self) -> str:
        return f"tenant `{self.tenant}` needs `gpus: {self.gpus}` and has {self.of:g}"


class ChangedPlan(Closed):
    """The plan of a changed fleet, and what was added for it."""

    plan: Plan
    nodes: tuple[AddedNodes, ...] = ()
    limits: tuple[RaisedLimit, ...] = ()

    @property
    def added(self) -> tuple[str, ...]:
        return (*map(str, self.nodes), *map(str, self.limits))


def plan_with_more_capacity(loaded: LoadedFleet) -> ChangedPlan:
    """Plan a fleet; if only nodes or limits of tenants are missing, with those that its problems name. Raises
    FleetError with the first problems if there is another one."""
    changed, first = loaded, None
    for _ in range(_ROUNDS):
        try:
            plan = plan_fleet(changed)
        except FleetError as error:
            first = first or error
            missing = _find_missing(error.problems)
            if missing is None:
                break
            changed = changed.change(missing)
        else:
            old, new = (
                build_inventories(each.fleet, each.measured, each.fleet.extend_catalog()) for each in (loaded, changed)
            )
            limits = _list_limits(loaded.fleet, changed.fleet)
            return ChangedPlan(plan=plan, nodes=tuple(_list_nodes(old, new)), limits=tuple(limits))
    raise first or FleetError("no plan")


def _find_missing(problems: Sequence[Problem]) -> dict[str, dict[str, dict[str, Any]]] | None:
    """Return the change that solves all problems; None if one of them needs something else."""
    missing: dict[str, dict[str, dict[str, Any]]] = {}
    for problem in problems:
        fixes = [fix for fix in (problem.fix, *problem.alternatives) if isinstance(fix, Fix)]
        found = [(match, fix.value) for fix in fixes if (match := _KEY.fullmatch(fix.path)) and fix.value]
        if not found:
            return None
        match, value = found[0]
        keys, key = missing.setdefault(match[1], {}).setdefault(match["name"], {}), match["key"]
        keys[key] = max(keys.get(key, value), value, key=_measure)
    return missing


def _measure(value: Any) -> float:
    return len(value) if isinstance(value, list) else float(value)


def _list_nodes(old: Mapping[str, PoolInventory], new: Mapping[str, PoolInventory]) -> Iterator[AddedNodes]:
    for name, pool in new.items():
        if more := pool.node_count - old[name].node_count:
            costs = _find_cost(old[name]), _find_cost(pool)
            cost = None if None in costs else round((costs[1] or 0.0) - (costs[0] or 0.0), 4)
            gpus = pool.gpu_count - old[name].gpu_count
            yield AddedNodes(pool=name, nodes=more, of=old[name].node_count, gpus=gpus, usd_per_hour=cost)


def _find_cost(pool: PoolInventory) -> float | None:
    """Return USD per hour of all GPUs of a pool; None if one of their prices is unknown."""
    prices = [(pool.host_price(host), host.gpu_count * host.gpu.part) for host in pool.hosts]
    return None if any(price is None for price, _ in prices) else sum((price or 0.0) * count for price, count in prices)


def _list_limits(before: Fleet, after: Fleet) -> Iterator[RaisedLimit]:
    for name, tenant in after.tenants.items():
        old = before.tenants[name].gpus
        if tenant.gpus is not None and old is not None and tenant.gpus > old:
            yield RaisedLimit(tenant=name, gpus=int(tenant.gpus), of=old)
