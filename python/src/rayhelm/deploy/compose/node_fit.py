"""Refuse overrides with which the containers of a worker pod do not fit its node together."""

from collections.abc import Iterator
from dataclasses import replace

from rayhelm.deploy.values.ray_service import RayServiceValues
from rayhelm.errors import Fix, Problem
from rayhelm.facts.quantities import parse_quantity
from rayhelm.fleet.problems import problem_at
from rayhelm.planner.plan import Plan
from rayhelm.planner.workers.kinds import PodKind, is_group_of_host
from rayhelm.planner.workers.node_room import NodeRoom, find_cpu_room, find_memory_room
from rayhelm.planner.workers.plan_workers import find_node_share

__all__ = ["find_oversized_pods"]

Path = tuple[str | int, ...]


def find_oversized_pods(values: RayServiceValues, service: str, plan: Plan) -> Iterator[Problem]:
    """Yield a problem for each worker pod that requests more than its part of a node, where the pool states it."""
    logs = values.logs.stdout.resources if values.logs.stdout.enabled else None
    for name, planned in plan.services[service].workers.items():
        if not planned.pool:
            continue
        pool, own = plan.declared.pools[planned.pool], values.worker_groups[name].resources
        part = find_node_share(PodKind(planned.pool, planned.gpu, planned.gpus), pool, plan.facts)
        path = _find_resources(service, name, planned.pool, plan)
        if room := find_cpu_room(pool, part, plan.declared):
            room = replace(room, beside=_read(logs.requests.cpu or logs.limits.cpu) if logs else 0)
            kind = "requests" if own.requests.cpu else "limits"
            yield from _check(room, _read(own.requests.cpu or own.limits.cpu), (*path, kind, "cpu"))
        if room := find_memory_room(pool, part, plan.declared):
            room = replace(room, beside=_read(logs.limits.memory) / 2**30 if logs else 0)
            yield from _check(room, _read(own.limits.memory) / 2**30, (*path, "limits", "memory"), "Gi")


def _read(quantity: str) -> float:
    return float(parse_quantity(quantity))


def _check(room: NodeRoom, request: float, path: Path, unit: str = "") -> Iterator[Problem]:
    """`unit`: that of the value at `path`; none for a number."""
    if not room.has_room(request):
        message = f"the pod requests {request:g} {room.unit} for Ray, and has {room.fill()} {room.explain()}"
        yield problem_at(path, message, Fix(value=f"{room.fill()}{unit}" if unit else room.fill()))


def _find_resources(service: str, group: str, pool: str, plan: Plan) -> Path:
    """Return the key that has the resources of a group: of the service, which is merged last, the host, or the pool."""
    declared = plan.declared.services.get(service)
    groups = declared.values.get("workerGroups") if declared else None
    own = groups.get(group) if isinstance(groups, dict) else None
    if isinstance(own, dict) and "resources" in own:
        return ("services", service, "values", "workerGroups", group, "resources")
    for index, host in enumerate(plan.declared.pools[pool].hosts):
        if "resources" in host.values and is_group_of_host(group, pool, index, plan.declared):
            return ("pools", pool, "hosts", index, "values", "resources")
    return ("pools", pool, "values", "resources")
