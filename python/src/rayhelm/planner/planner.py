"""Plan a fleet: resolve its models, place them, and describe the result with its reasons."""

from collections.abc import Iterable, Sequence
from pathlib import Path

from rayhelm.errors import Fix, FleetError, Problem
from rayhelm.facts import Catalog, load_catalog
from rayhelm.facts.engines import find_engine
from rayhelm.facts.huggingface import resolve_online
from rayhelm.facts.model import Checkpoint
from rayhelm.facts.tasks import get_task
from rayhelm.facts.versions import versions
from rayhelm.fleet.load import LoadedFleet
from rayhelm.fleet.models import ModelSpec
from rayhelm.planner.access.gateways import plan_gateways, plan_tenants, warn_access
from rayhelm.planner.access.ingress import check_reachable
from rayhelm.planner.access.services import plan_services, warn_gated_models, warn_missing_images
from rayhelm.planner.access.tenant_limits import check_tenant_limits, warn_idle_shares
from rayhelm.planner.explain.model_plan import build_model_plan
from rayhelm.planner.kubernetes import warn_old_kubernetes
from rayhelm.planner.memory.parallelism import split_layers
from rayhelm.planner.overrides import plan_overrides, warn_unused_overrides
from rayhelm.planner.place import Placement, list_placements
from rayhelm.planner.placement.inventory import (
    PoolInventory,
    build_inventories,
    warn_ambiguous_gpus,
    warn_unknown_prices,
)
from rayhelm.planner.placement.measured import warn_measurements
from rayhelm.planner.placement.measured_speed import warn_speed_measurements
from rayhelm.planner.placement.model_spec import ResolvedModelSpec
from rayhelm.planner.placement.pool_labels import check_pool_labels
from rayhelm.planner.placement.rdma_access import check_rdma_access
from rayhelm.planner.placement.replica_limits import check_replica_limits
from rayhelm.planner.plan import Plan, PoolUse
from rayhelm.planner.stated_model import check_architecture, find_stated_model

__all__ = ["plan_fleet", "resolve_model_specs"]


def plan_fleet(loaded: LoadedFleet, known: Catalog | None = None) -> Plan:
    """Plan every model. Raises FleetError with all problems."""
    known = known or load_catalog()
    inventories = build_inventories(loaded, known)
    model_specs = resolve_model_specs(loaded, known)
    problems: Sequence[Problem] = ()
    for placement in list_placements(model_specs, inventories, loaded, known):
        try:
            return _build_plan(placement, model_specs, inventories, loaded, known)
        except FleetError as error:
            problems = error.problems
    raise FleetError(problems)


def _build_plan(
    placement: Placement,
    model_specs: Sequence[ResolvedModelSpec],
    inventories: dict[str, PoolInventory],
    loaded: LoadedFleet,
    known: Catalog,
) -> Plan:
    """Build the plan of a placement whose GPUs are allocated. Raises FleetError if it breaks a rule of the fleet."""
    chosen = {name: choice.candidate for name, choice in placement.choices.items()}
    plans = {
        name: build_model_plan(
            choice,
            placement.hosts[name],
            _read_speed(choice.candidate.split.inventory.pool.cluster, loaded),
            loaded.fleet.aliases_of(name),
        )
        for name, choice in placement.choices.items()
    }
    plan = Plan(
        fleet=loaded.fleet.fleet,
        vllm_version=versions().vllm,
        models={name: plans[name] for name in loaded.fleet.models},
        services=plan_services(plans, inventories, loaded),
        tenants=plan_tenants(loaded.fleet),
        gateways=plan_gateways(plans, loaded.fleet),
        pools={name: _use(inventory) for name, inventory in inventories.items()},
        overrides=plan_overrides(loaded.fleet),
        warnings=(
            *warn_ambiguous_gpus(loaded, known),
            *warn_unknown_prices(inventories.values()),
            *warn_measurements(loaded, inventories.values()),
            *warn_speed_measurements(loaded, model_specs),
            *warn_idle_shares(inventories.values()),
            *warn_missing_images(plans, loaded),
            *warn_gated_models(model_specs, plans, loaded),
            *warn_access(plans, loaded.fleet),
            *warn_unused_overrides(plans, loaded.fleet),
            *warn_old_kubernetes(loaded.fleet),
        ),
    )
    check_reachable(plan.models, loaded)
    check_rdma_access(plan.models, inventories, loaded)
    check_pool_labels(plan.models, inventories, loaded)
    check_tenant_limits(plan, inventories, loaded)
    check_replica_limits(plan.models, chosen, loaded)
    return plan


def _read_speed(cluster: str, loaded: LoadedFleet) -> float | None:
    """Return the rate at which a node reads weights, GiB/s; None if the fleet file does not set it."""
    speed = loaded.fleet.clusters[cluster].weights.read_speed
    return speed / 8 / 2**30 if speed else None


def resolve_model_specs(loaded: LoadedFleet, known: Catalog) -> list[ResolvedModelSpec]:
    """Resolve the models against the catalog. Raises FleetError with all unknown models and wrong settings."""
    constants, _ = find_engine(versions().vllm)
    problems: list[Problem] = []
    model_specs = []
    for name, spec in loaded.fleet.models.items():
        try:
            model = _find_model(name, spec, loaded, known)
        except FleetError as error:
            problems += error.problems
            continue
        problems += _check_model(name, spec, model, loaded)
        problems += check_architecture(name, spec, model, loaded, known)
        service = loaded.fleet.service_of(name)
        is_shared = len(loaded.fleet.models_of(service)) > 1
        measured = loaded.measured.models.get(loaded.fleet.part_of(name) or name, ()) if loaded.measured else ()
        model_specs.append(ResolvedModelSpec(name, service, model, spec, constants, is_shared, measured))
    if problems:
        # A model with `pools` is checked once for each pool, and each check can find the same line of the file.
        raise FleetError(list({(problem.path, problem.message): problem for problem in problems}.values()))
    return model_specs


def _find_model(name: str, spec: ModelSpec, loaded: LoadedFleet, known: Catalog) -> Checkpoint:
    if spec.memory:
        return find_stated_model(name, spec, loaded, known)
    key = "architecture" if spec.architecture else "source"
    path = ("models", name, key)
    wanted = spec.architecture or spec.source
    try:
        return resolve_online(wanted, Path(loaded.document.file).parent, known)
    except FleetError as error:
        raise FleetError([_locate_model(problem, path, spec.task, loaded) for problem in error.problems]) from None


def _locate_model(problem: Problem, path: tuple[str | int, ...], task: str, loaded: LoadedFleet) -> Problem:
    """A problem of a name is one of the fleet file; one inside a config.json stays there."""
    if problem.path:
        return problem
    message = f"{problem.file}: {problem.message}" if problem.file else problem.message
    if problem.file and path[-1] == "source":
        message += ". If it is a path in the container, `architecture` says what is there"
    fixes = [fix for fix in (problem.fix, *problem.alternatives) if isinstance(fix, Fix) and not fix.is_advice]
    named = [fix for fix in fixes if fix.value is not None]
    proposed = _propose_models([str(fix.value) for fix in named], task)
    if named:
        why = named[0].why
        fixes = [Fix(value=each, why=why * (each == proposed[0])) for each in proposed]
    why = "a model of the same architecture, or the path of its config.json"
    similar = Fix("../architecture" if path[-1] == "source" else "", proposed[0], why)
    first, *others = [*fixes, similar]
    return loaded.document.problem(path, message, first, alternatives=others)


def _propose_models(named: Sequence[str], task: str) -> list[str]:
    """Return ids of the catalog that the task can use: those that are named, else three others."""
    known = load_catalog()
    can_use = [model.id for model in known.models() if task in model.tasks or get_task(task).is_any_model_allowed]
    ids = list(dict.fromkeys(known.model(name).id for name in named))
    return [each for each in ids if each in can_use] or can_use[:3]


def _check_model(name: str, spec: ModelSpec, model: Checkpoint, loaded: LoadedFleet) -> Iterable[Problem]:
    """Return the settings of the fleet file that the model does not support."""
    path, traffic = ("models", name), spec.traffic
    if spec.context and spec.context > model.max_context:
        yield loaded.document.problem(
            (*path, "context"),
            f"{spec.context} tokens, and the longest context of {model.id} is {model.max_context} tokens",
            Fix(value=model.max_context),
        )
    tokens = traffic.input_tokens + (traffic.output_tokens or 0) if traffic else 0
    if traffic and not spec.context and tokens > model.max_context:
        yield loaded.document.problem(
            (*path, "traffic"),
            f"the mean prompt and answer are {tokens} tokens together, and the longest context of {model.id} is"
            f" {model.max_context} tokens",
            Fix("inputTokens", max(1, model.max_context - (traffic.output_tokens or 0)), "or another `source`"),
        )
    if spec.task not in model.tasks and not get_task(spec.task).is_any_model_allowed:
        yield loaded.document.problem(
            (*path, "task") if "task" in spec.model_fields_set else path,
            f"{model.id} does not support the task `{spec.task}`",
            Fix("" if "task" in spec.model_fields_set else "task", model.tasks[0]),
        )
    layers = spec.parallelism.layers if spec.parallelism else ()
    if layers and sum(layers) != model.layers:
        even = split_layers(model.layers, len(layers))
        yield loaded.document.problem(
            (*path, "parallelism", "layers"),
            f"{'+'.join(map(str, layers))} are {sum(layers)} layers, and {model.id} has {model.layers}",
            Fix(value=list(even)),
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
    )
