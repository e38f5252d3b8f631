"""Plan a fleet: resolve its models, place them, and describe the result with its reasons."""

from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

from rayhelm.errors import Fix, FleetError, Problem
from rayhelm.facts import Catalog
from rayhelm.facts.engines import find_engine
from rayhelm.facts.huggingface import resolve_online
from rayhelm.facts.model import Checkpoint
from rayhelm.facts.tasks import get_task
from rayhelm.facts.versions import versions
from rayhelm.fleet.fleet import Fleet
from rayhelm.fleet.load import LoadedFleet
from rayhelm.fleet.measurements import FleetMeasurements
from rayhelm.fleet.models import ModelSpec
from rayhelm.fleet.own_gpus import extend_catalog
from rayhelm.fleet.problems import problem_at
from rayhelm.planner.access.exposure import warn_exposure, warn_open_cidrs
from rayhelm.planner.access.gateways import plan_gateways, plan_tenants, warn_access
from rayhelm.planner.access.ingress import check_reachable
from rayhelm.planner.access.services import plan_services, warn_gated_models, warn_missing_images
from rayhelm.planner.access.tenant_limits import check_tenant_limits, warn_idle_shares
from rayhelm.planner.explain.model_plan import build_model_plan
from rayhelm.planner.explain.unknown_model import locate_model
from rayhelm.planner.kubernetes import warn_old_kubernetes
from rayhelm.planner.memory.parallelism import split_layers
from rayhelm.planner.overrides import plan_overrides, warn_unused_overrides
from rayhelm.planner.place import Placement, list_placements
from rayhelm.planner.placement.inventory import (
    PoolInventory,
    build_inventories,
    warn_ambiguous_gpus,
    warn_assumed_memory,
    warn_unknown_prices,
)
from rayhelm.planner.placement.measured import warn_measurements
from rayhelm.planner.placement.measured_speed import warn_speed_measurements
from rayhelm.planner.placement.model_spec import ResolvedModelSpec
from rayhelm.planner.placement.pool_labels import check_pool_labels
from rayhelm.planner.placement.rdma_access import check_rdma_access
from rayhelm.planner.placement.replica_limits import check_replica_limits
from rayhelm.planner.placement.shared_nodes import check_hosts
from rayhelm.planner.plan import NodeGroup, Plan, PoolUse
from rayhelm.planner.start_checks import check_draft_model, check_output_bounds, check_quantization
from rayhelm.planner.stated_model import check_architecture, find_stated_model

__all__ = ["plan_fleet", "resolve_model_specs"]


def plan_fleet(loaded: LoadedFleet, facts: Catalog | None = None) -> Plan:
    """Plan every model. Raises FleetError with all problems, each with its line."""
    with loaded.document.joined():
        return _plan(loaded, extend_catalog(loaded.fleet.gpus, facts))


def _plan(loaded: LoadedFleet, facts: Catalog) -> Plan:
    fleet, measured = loaded.fleet, loaded.measured
    inventories = build_inventories(fleet, measured, facts)
    check_hosts(fleet, facts)
    model_specs = resolve_model_specs(loaded, facts)
    problems: Sequence[Problem] = ()
    for placement in list_placements(model_specs, inventories, fleet, facts):
        try:
            return _build_plan(placement, model_specs, inventories, fleet, measured, facts)
        except FleetError as error:
            problems = error.problems
    raise FleetError(problems)


def _build_plan(
    placement: Placement,
    model_specs: Sequence[ResolvedModelSpec],
    inventories: dict[str, PoolInventory],
    fleet: Fleet,
    measured: FleetMeasurements | None,
    facts: Catalog,
) -> Plan:
    """Build the plan of a placement whose GPUs are allocated. Raises FleetError if it breaks a rule of the fleet."""
    chosen = {name: choice.candidate for name, choice in placement.choices.items()}
    plans = {
        name: build_model_plan(
            choice,
            placement.hosts[name],
            _read_speed(choice.candidate.split.inventory.pool.cluster, fleet),
            fleet.aliases_of(name),
        )
        for name, choice in placement.choices.items()
    }
    gateways = plan_gateways(plans, fleet)
    plan = Plan(
        fleet=fleet.fleet,
        vllm_version=versions().vllm,
        models={name: plans[name] for name in fleet.models},
        services=plan_services(plans, inventories, fleet, facts),
        tenants=plan_tenants(fleet),
        gateways=gateways,
        pools={name: _use(inventory) for name, inventory in inventories.items()},
        overrides=plan_overrides(fleet),
        warnings=(
            *warn_ambiguous_gpus(fleet, facts),
            *warn_assumed_memory(inventories.values()),
            *warn_unknown_prices(inventories.values()),
            *warn_measurements(measured, inventories.values()),
            *warn_speed_measurements(measured, model_specs),
            *warn_idle_shares(inventories.values()),
            *warn_missing_images(plans, fleet),
            *warn_gated_models(model_specs, plans, fleet),
            *warn_access(plans, gateways, fleet),
            *warn_exposure(gateways, fleet),
            *warn_open_cidrs(fleet),
            *warn_unused_overrides(plans, gateways, fleet),
            *warn_old_kubernetes(fleet),
        ),
    )
    check_reachable(plan.models, fleet)
    check_rdma_access(plan.models, inventories)
    check_pool_labels(plan.models, inventories, fleet, facts)
    check_tenant_limits(plan, inventories, fleet)
    check_replica_limits(plan.models, chosen, fleet)
    return plan


def _read_speed(cluster: str, fleet: Fleet) -> float | None:
    """Return the rate at which a node reads weights, GiB/s; None if the fleet file does not set it."""
    speed = fleet.clusters[cluster].weights.read_speed
    return speed / 8 / 2**30 if speed else None


def resolve_model_specs(loaded: LoadedFleet, facts: Catalog) -> list[ResolvedModelSpec]:
    """Resolve the models against the catalog. Raises FleetError with all unknown models and wrong settings."""
    constants, _ = find_engine(versions().vllm)
    problems: list[Problem] = []
    model_specs = []
    for name, spec in loaded.fleet.models.items():
        try:
            model = _find_model(name, spec, loaded.folder, facts)
        except FleetError as error:
            problems += error.problems
            continue
        problems += _check_model(name, spec, model)
        problems += check_quantization(name, spec, model)
        problems += check_draft_model(name, loaded.fleet)
        problems += check_architecture(name, spec, model, loaded.folder, facts)
        service = loaded.fleet.service_of(name)
        is_shared = len(loaded.fleet.models_of(service)) > 1
        measured = loaded.measured.models.get(loaded.fleet.part_of(name) or name, ()) if loaded.measured else ()
        model_specs.append(ResolvedModelSpec(name, service, model, spec, constants, is_shared, measured))
    problems += check_output_bounds(model_specs, loaded.fleet)
    if problems:
        raise FleetError(problems)
    return model_specs


def _find_model(name: str, spec: ModelSpec, folder: Path, facts: Catalog) -> Checkpoint:
    if spec.memory:
        return find_stated_model(name, spec, folder, facts)
    key = "architecture" if spec.architecture else "source"
    path = ("models", name, key)
    wanted = spec.architecture or spec.source
    try:
        return resolve_online(wanted, folder, facts)
    except FleetError as error:
        raise FleetError([locate_model(problem, path, spec) for problem in error.problems]) from None


def _check_model(name: str, spec: ModelSpec, model: Checkpoint) -> Iterable[Problem]:
    """Return the settings of the fleet file that the model does not support."""
    path, traffic = ("models", name), spec.traffic
    if spec.context and spec.context > model.max_context:
        yield problem_at(
            (*path, "context"),
            f"{spec.context} tokens, and the longest context of {model.id} is {model.max_context} tokens",
            Fix(value=model.max_context),
        )
    tokens = traffic.input_tokens + (traffic.output_tokens or 0) if traffic else 0
    if traffic and not spec.context and tokens > model.max_context:
        yield problem_at(
            (*path, "traffic"),
            f"the mean prompt and answer are {tokens} tokens together, and the longest context of {model.id} is"
            f" {model.max_context} tokens",
            Fix("inputTokens", max(1, model.max_context - (traffic.output_tokens or 0)), "or another `source`"),
        )
    if spec.task not in model.tasks and not get_task(spec.task).is_any_model_allowed:
        yield problem_at(
            (*path, "task") if "task" in spec.model_fields_set else path,
            f"{model.id} does not support the task `{spec.task}`",
            Fix("" if "task" in spec.model_fields_set else "task", model.tasks[0]),
        )
    layers = spec.parallelism.layers if spec.parallelism else ()
    if layers and sum(layers) != model.layers:
        even = split_layers(model.layers, len(layers))
        yield problem_at(
            (*path, "parallelism", "layers"),
            f"{'+'.join(map(str, layers))} are {sum(layers)} layers, and {model.id} has {model.layers}",
            Fix(value=list(even), why="even, as far as they can be"),
        )


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
    )


def _group_nodes(inventory: PoolInventory) -> Iterator[NodeGroup]:
    """Yield each host of a pool of unlike hosts, and else all nodes together, by part of their GPUs."""
    for gpu, alike in inventory.hosts_by_gpu.items():
        memory = alike[0].gpu.usable_gib
        named = [(host.name, 1, host.gpu_count) for host in alike]
        for name, nodes, count in [("", len(alike), alike[0].gpu_count)] if inventory.is_uniform else named:
            yield NodeGroup(name=name, nodes=nodes, gpu=gpu, gpus=count, memory_gib=memory)
