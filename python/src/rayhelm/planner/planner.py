"""Plan a fleet: resolve its models, place them, and describe the result with its reasons."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial

from rayhelm.errors import Diagnostics, FleetError, Problem, attempt
from rayhelm.facts import Catalog
from rayhelm.facts.versions import versions
from rayhelm.fleet.check_image_versions import warn_image_versions
from rayhelm.fleet.fleet import Fleet
from rayhelm.fleet.load import LoadedFleet
from rayhelm.planner.access.exposure import warn_exposure, warn_open_cidrs
from rayhelm.planner.access.gateways import plan_gateways, plan_tenants, warn_access
from rayhelm.planner.access.ingress import find_unreachable
from rayhelm.planner.access.services import plan_services, warn_gated_models, warn_missing_images
from rayhelm.planner.access.tenant_limits import find_exceeded_limits, warn_idle_shares
from rayhelm.planner.blocked_shares import add_blocked_shares
from rayhelm.planner.explain.model_plan import build_model_plan
from rayhelm.planner.kubernetes import warn_old_kubernetes
from rayhelm.planner.overrides import plan_overrides, warn_unused_overrides
from rayhelm.planner.place import list_placements
from rayhelm.planner.placement.choose import Choice
from rayhelm.planner.placement.inventory import (
    PoolInventory,
    build_inventories,
    warn_ambiguous_gpus,
    warn_assumed_memory,
    warn_several_providers,
    warn_unknown_prices,
)
from rayhelm.planner.placement.measured import warn_measurements
from rayhelm.planner.placement.measured_speed import warn_speed_measurements
from rayhelm.planner.placement.pool_labels import find_shared_nodes
from rayhelm.planner.placement.rdma_access import find_rdma_contradictions
from rayhelm.planner.placement.replica_limits import find_too_large
from rayhelm.planner.placement.shared_nodes import check_hosts
from rayhelm.planner.plan import NodeGroup, Plan, PoolUse
from rayhelm.planner.resolved import Resolved, resolve

__all__ = ["plan_fleet"]


@dataclass(frozen=True)
class _Outcome:
    """A placement, and what is wrong with it."""

    plan: Plan | None
    problems: Sequence[Problem]
    too_large: Mapping[str, float]
    """GPUs of a replica by model, if nothing else is wrong than that `replicas.max` has no room for such replicas."""


def plan_fleet(loaded: LoadedFleet, facts: Catalog | None = None) -> Plan:
    """Plan every model. Raises FleetError with all problems, each with its line."""
    with loaded.joined():
        facts = loaded.fleet.extend_catalog(facts)
        build_inventories(loaded.fleet, loaded.measured, facts)
        check_hosts(loaded.fleet, facts)
        return _plan(resolve(loaded, facts))


def _plan(resolved: Resolved) -> Plan:
    first = _place(resolved)
    last: _Outcome | None = first
    while last and last.too_large:
        resolved = _limit_gpus(resolved, last.too_large)
        last = attempt(partial(_place, resolved))
    if last and last.plan and not last.problems:
        return last.plan
    raise FleetError(first.problems)


def _limit_gpus(resolved: Resolved, too_large: Mapping[str, float]) -> Resolved:
    """Return the fleet with fewer GPUs for each replica of some models."""
    models = (replace(each, gpus_below=too_large.get(each.name, each.gpus_below)) for each in resolved.models)
    return replace(resolved, models=tuple(models))


def _place(resolved: Resolved) -> _Outcome:
    """Return the first placement that keeps the rules of the fleet, else the last one. Raises FleetError if there is
    none."""
    inventories = build_inventories(resolved.fleet, resolved.source.measured, resolved.facts)
    outcomes = (
        _check(choices, inventories, resolved)
        for choices in list_placements(resolved.models, inventories, resolved.fleet, resolved.facts)
    )
    outcome = next(outcomes)
    while outcome.problems and (another := next(outcomes, None)):
        outcome = another
    return outcome


def _check(choices: Mapping[str, Choice], inventories: Mapping[str, PoolInventory], resolved: Resolved) -> _Outcome:
    """Plan a placement whose GPUs are allocated, and collect the rules of the fleet that it breaks."""
    fleet, found = resolved.fleet, Diagnostics()
    plan = found.run(lambda: _build_plan(choices, inventories, resolved))
    if not plan:
        return _Outcome(None, found.problems, {})
    found.add(find_unreachable(plan.models))
    found.add(find_rdma_contradictions(plan.models, inventories))
    found.add(find_shared_nodes(plan.models, inventories, fleet, resolved.facts))
    found.add(find_exceeded_limits(plan, inventories, fleet))
    chosen = {name: choice.candidate for name, choice in choices.items()}
    too_large = () if found.problems else tuple(find_too_large(plan.models, chosen, fleet))
    found.add(each.problem for each in too_large)
    return _Outcome(plan, found.problems, {each.model: each.gpus for each in too_large})


def _build_plan(choices: Mapping[str, Choice], inventories: Mapping[str, PoolInventory], resolved: Resolved) -> Plan:
    """Build the plan of a placement whose GPUs are allocated."""
    fleet, facts, measured = resolved.fleet, resolved.facts, resolved.source.measured
    plans = {
        name: build_model_plan(
            choice,
            _read_speed(choice.candidate.split.inventory.pool.cluster, fleet),
            fleet.aliases_of(name),
        )
        for name, choice in choices.items()
    }
    plans = add_blocked_shares(plans, inventories)
    gateways = plan_gateways(plans, fleet)
    return Plan(
        fleet=fleet.fleet,
        vllm_version=versions().vllm,
        resolved=resolved,
        models={name: plans[name] for name in fleet.models},
        services=plan_services(plans, inventories, fleet, facts),
        tenants=plan_tenants(fleet),
        gateways=gateways,
        pools={name: _use(inventory) for name, inventory in inventories.items()},
        overrides=plan_overrides(fleet, plans.values()),
        warnings=(
            *warn_ambiguous_gpus(fleet, facts),
            *warn_assumed_memory(inventories.values()),
            *warn_unknown_prices(inventories.values()),
            *warn_several_providers(inventories.values(), fleet),
            *warn_measurements(measured, inventories.values()),
            *warn_speed_measurements(measured, resolved.models),
            *warn_idle_shares(inventories.values()),
            *warn_missing_images(plans, fleet),
            *warn_gated_models(resolved.models, plans, fleet),
            *warn_access(plans, gateways, fleet),
            *warn_exposure(gateways, fleet),
            *warn_open_cidrs(fleet),
            *warn_unused_overrides(plans, gateways, fleet),
            *warn_old_kubernetes(fleet),
            *warn_image_versions(fleet),
        ),
    )


def _read_speed(cluster: str, fleet: Fleet) -> float | None:
    """Return the rate at which a node reads weights, GiB/s; None if the fleet file does not set it."""
    speed = fleet.clusters[cluster].weights.read_speed
    return speed / 8 / 2**30 if speed else None


def _use(inventory: PoolInventory) -> PoolUse:
    return PoolUse(
        cluster=inventory.pool.cluster,
        gpu=inventory.gpu_name,
        gpus=inventory.gpu_count,
        used=inventory.used,
        network=str(inventory.network),
        sharing=str(inventory.partitioning or ""),
        mig=dict(inventory.partitioning.layout) if inventory.partitioning else {},
        time_slices=inventory.partitioning.slices if inventory.partitioning else 0,
        gpu_resources=inventory.gpu_resources,
        nodes=tuple(_group_nodes(inventory)),
        allocation=tuple(tuple(host.parts) for alike in inventory.hosts_by_gpu.values() for host in alike),
    )


def _group_nodes(inventory: PoolInventory) -> Iterator[NodeGroup]:
    """Yield each host of a pool of unlike hosts, and else all nodes together, by part of their GPUs."""
    for gpu, alike in inventory.hosts_by_gpu.items():
        memory = alike[0].gpu.usable_gib
        named = [(host.name, 1, host.gpu_count) for host in alike]
        for name, nodes, count in [("", len(alike), alike[0].gpu_count)] if inventory.is_uniform else named:
            yield NodeGroup(name=name, nodes=nodes, gpu=gpu, gpus=count, memory_gib=memory)
