"""From a fleet to a plan: every model in turn, the largest first, each on what is left."""

from collections.abc import Iterable
from pathlib import Path

from rayhelm.catalog import Catalog, catalog
from rayhelm.catalog.engines import engine
from rayhelm.catalog.huggingface import resolve_online
from rayhelm.catalog.model import Model
from rayhelm.catalog.tensors import weights
from rayhelm.errors import FleetError, Problem
from rayhelm.planner.access.gateways import doors_ajar, gateway_plans, tenant_plans
from rayhelm.planner.access.services import gated_without_token, images_to_bring, service_plans
from rayhelm.planner.access.tenant_limits import idle_shares, owners_within_bounds
from rayhelm.planner.explain.model_plan import describe
from rayhelm.planner.explain.refusals import nothing_fits, too_little_room
from rayhelm.planner.memory.parallelism import split_layers
from rayhelm.planner.placement.allocate import place
from rayhelm.planner.placement.candidates import Candidate, Refusal, candidates
from rayhelm.planner.placement.choose import Choice, choose
from rayhelm.planner.placement.inventory import PoolSite, sites_of
from rayhelm.planner.placement.model_spec import Wish
from rayhelm.planner.placement.replica_limits import limits_within_reach
from rayhelm.planner.plan import ModelPlan, Plan, PoolUse
from rayhelm.spec.load import LoadedFleet
from rayhelm.spec.models import ModelSpec
from rayhelm.versions import versions

__all__ = ["plan_fleet", "wishes_of"]


def plan_fleet(loaded: LoadedFleet, known: Catalog | None = None) -> Plan:
    """Plan every model. Raises FleetError with all problems at once."""
    known = known or catalog()
    sites = sites_of(loaded, known)
    problems: list[Problem] = []
    plans: dict[str, ModelPlan] = {}
    chosen: dict[str, Candidate] = {}
    clusters: dict[frozenset[str], str] = {}
    wishes = wishes_of(loaded, known)
    for wish in _largest_first(wishes):
        try:
            home = loaded.fleet.on_one_cluster_with(wish.name)
            choice = _choose(wish, sites, clusters.get(home), loaded, known)
        except FleetError as error:
            problems += error.problems
            continue
        hosts = place(choice.candidate)
        chosen[wish.name] = choice.candidate
        clusters[home] = cluster = choice.candidate.split.pool.pool.cluster
        plans[wish.name] = describe(choice, hosts, _read_speed(cluster, loaded))
    if problems:
        raise FleetError(sorted(problems, key=lambda problem: problem.line or 0))
    plan = Plan(
        fleet=loaded.fleet.fleet,
        vllm_version=versions().vllm,
        models={name: plans[name] for name in loaded.fleet.models},
        services=service_plans(plans, sites, loaded),
        tenants=tenant_plans(loaded.fleet),
        gateways=gateway_plans(plans, loaded.fleet),
        pools={name: _use(site) for name, site in sites.items()},
        warnings=(
            *idle_shares(sites.values()),
            *images_to_bring(plans, loaded),
            *gated_without_token(wishes, plans, loaded),
            *doors_ajar(plans, loaded.fleet),
        ),
    )
    owners_within_bounds(plan, sites, loaded)
    limits_within_reach(plan.models, chosen, loaded)
    return plan


def _read_speed(cluster: str, loaded: LoadedFleet) -> float | None:
    """GiB/s that a node reads weights with, where the fleet file says."""
    speed = loaded.fleet.clusters[cluster].weights.read_speed
    return speed / 8 / 2**30 if speed else None


def wishes_of(loaded: LoadedFleet, known: Catalog) -> list[Wish]:
    """Resolve the models. Raises FleetError for those that nobody knows, all at once."""
    constants, _ = engine(versions().vllm)
    problems: list[Problem] = []
    wishes = []
    for name, spec in loaded.fleet.models.items():
        try:
            model = _model(name, spec, loaded, known)
        except FleetError as error:
            problems += error.problems
            continue
        problems += _against(name, spec, model, loaded)
        service = loaded.fleet.service_of(name)
        wishes.append(Wish(name, service, model, spec, constants, len(loaded.fleet.models_of(service)) > 1))
    if problems:
        raise FleetError(problems)
    return wishes


def _model(name: str, spec: ModelSpec, loaded: LoadedFleet, known: Catalog) -> Model:
    key = "architecture" if spec.architecture else "source"
    path = ("models", name, key)
    wanted = spec.architecture or spec.source
    try:
        return resolve_online(wanted, Path(loaded.document.file).parent, known)
    except FleetError as error:
        raise FleetError(
            [loaded.document.problem(path, problem.message, problem.fix) for problem in error.problems]
        ) from None


def _against(name: str, spec: ModelSpec, model: Model, loaded: LoadedFleet) -> Iterable[Problem]:
    """What the fleet asks of the model, and the model cannot do."""
    path, traffic = ("models", name), spec.traffic
    if spec.context and spec.context > model.max_context:
        yield loaded.document.problem(
            (*path, "context"),
            f"{spec.context} tokens; {model.id} was made for at most {model.max_context}",
            f"context: {model.max_context}",
        )
    tokens = traffic.input_tokens + (traffic.output_tokens or 0) if traffic else 0
    if not spec.context and tokens > model.max_context:
        yield loaded.document.problem(
            (*path, "traffic"),
            f"mean prompt and answer are {tokens} tokens; {model.id} takes at most {model.max_context}",
            "write lengths that it takes, or another `source`",
        )
    if spec.task not in model.tasks and spec.task != "custom":
        yield loaded.document.problem(
            (*path, "task") if spec.task != "chat" else path,
            f"{model.id} does not do `{spec.task}`",
            f"task: {model.tasks[0]}",
        )
    layers = spec.parallelism.layers if spec.parallelism else ()
    if layers and sum(layers) != model.layers:
        even = split_layers(model.layers, len(layers))
        yield loaded.document.problem(
            (*path, "parallelism", "layers"),
            f"{'+'.join(map(str, layers))} are {sum(layers)} layers, and {model.id} has {model.layers}",
            f"layers: [{', '.join(map(str, even))}]",
        )


def _largest_first(wishes: list[Wish]) -> list[Wish]:
    """Pinned pools before free ones, large models before small ones: what has the least choice chooses first."""
    return sorted(wishes, key=lambda wish: (wish.spec.pool is None, -weights(wish.model).bytes))


def _choose(wish: Wish, sites: dict[str, PoolSite], cluster: str | None, loaded: LoadedFleet, known: Catalog) -> Choice:
    pools = [
        site for name, site in sites.items() if wish.spec.pool in (None, name) and cluster in (None, site.pool.cluster)
    ]
    found: list[Candidate] = []
    refused: list[Refusal] = []
    for site in pools:
        for item in candidates(wish, site):
            if isinstance(item, Candidate):
                found.append(item)
            else:
                refused.append(item)
    if not found:
        raise FleetError(nothing_fits(wish, pools, refused, loaded, known))
    choice = choose(found)
    if choice is None:
        raise FleetError(too_little_room(wish, found, loaded))
    return choice


def _use(site: PoolSite) -> PoolUse:
    return PoolUse(
        cluster=site.pool.cluster,
        gpu=site.gpu_name,
        gpus=site.cards,
        used=site.used,
        network=str(site.link),
        sharing=str(site.cut or ""),
        mig=dict(site.cut.layout) if site.cut else {},
        time_slices=site.cut.slices if site.cut else 0,
        devices=site.devices,
    )
