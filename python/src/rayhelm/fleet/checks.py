"""Rules between records of the fleet file: references and sums. The planner has more."""

from collections.abc import Iterator

from rayhelm.errors import Fix, Problem
from rayhelm.facts import load_catalog
from rayhelm.facts.engine_arguments import load_owned_arguments
from rayhelm.facts.tasks import get_task
from rayhelm.fleet.base import short
from rayhelm.fleet.check_adapters import check_adapters
from rayhelm.fleet.check_aliases import check_aliases
from rayhelm.fleet.check_derived_names import check_derived_names
from rayhelm.fleet.check_engine_limits import check_engine_limits
from rayhelm.fleet.check_image_versions import check_image_versions
from rayhelm.fleet.check_pools import check_pools
from rayhelm.fleet.check_prefill_decode import check_prefill_decode
from rayhelm.fleet.check_remotes import check_remotes
from rayhelm.fleet.check_secrets import check_secrets
from rayhelm.fleet.check_served_as import check_served_as
from rayhelm.fleet.check_sources import check_sources
from rayhelm.fleet.check_tenants import check_tenants
from rayhelm.fleet.document import Document
from rayhelm.fleet.fleet import Fleet
from rayhelm.fleet.models import ModelSpec, Parallelism
from rayhelm.fleet.names import MAX_LABEL, derive_kubernetes_name
from rayhelm.fleet.nearest import nearest
from rayhelm.fleet.own_gpus import OwnGpu, extend_catalog, find_figure_problems
from rayhelm.fleet.pools import Pool
from rayhelm.fleet.prices import find_price_problems
from rayhelm.fleet.problems import problem_at
from rayhelm.fleet.references import reference
from rayhelm.fleet.yaml_nodes import Path

__all__ = ["check"]


def check(fleet: Fleet, document: Document) -> list[Problem]:
    """Return the problems of all rules between records."""
    return [
        *_clusters(fleet),
        *_gpus(fleet),
        *_prices(fleet),
        *_pools(fleet, document),
        *_models(fleet, document),
        *_services(fleet, document),
        *check_derived_names(fleet),
        *check_served_as(fleet),
        *check_remotes(fleet),
        *check_adapters(fleet),
        *check_aliases(fleet),
        *check_prefill_decode(fleet),
        *check_pools(fleet),
        *check_sources(fleet),
        *check_image_versions(fleet),
        *check_secrets(fleet),
        *check_tenants(fleet),
    ]


def _clusters(fleet: Fleet) -> Iterator[Problem]:
    for name, cluster in fleet.clusters.items():
        if cluster.gateway.requests_in_flight and not cluster.prometheus:
            yield problem_at(
                ("clusters", name, "gateway", "requestsInFlight"),
                f"it needs the metric of a Prometheus, and cluster `{name}` has no `prometheus`",
                Fix("../../prometheus", {"url": "http://prometheus-operated.monitoring:9090"}),
            )


def _gpus(fleet: Fleet) -> Iterator[Problem]:
    facts = load_catalog()
    for name, gpu in fleet.gpus.items():
        for key, message, fix in find_figure_problems(name, gpu, facts):
            yield problem_at(("gpus", name, *([key] if key else [])), message, fix)


def _prices(fleet: Fleet) -> Iterator[Problem]:
    if not fleet.prices:
        return
    own = {name: OwnGpu(like="T4-16GB") for name in fleet.gpus}
    for key, message, fix in find_price_problems(fleet.prices, extend_catalog(own)):
        yield problem_at(("prices", *key), message, fix)


def _pools(fleet: Fleet, document: Document) -> Iterator[Problem]:
    for name, pool in fleet.pools.items():
        path = ("pools", name)
        yield from _daemon_sets(pool, path)
        like = [key for key in ("gpu", "nodes", "gpusPerNode") if key in _keys(document, path)]
        if pool.hosts and like:
            yield problem_at(
                (*path, like[0]),
                f"a pool has either `{like[0]}` or `hosts`: hosts are equal, or listed one by one",
                Fix.removal(),
            )
        elif not pool.hosts and not (pool.gpu and pool.nodes):
            yield problem_at(
                path,
                "a pool needs `gpu` and `nodes`, or `hosts`",
                _add_missing(pool, document.value(path)),
            )
        yield from _sharing(pool, document, (*path, "sharing"))
        yield from reference((*path, "cluster"), pool.cluster, fleet.clusters, "cluster")
        yield from _groups(name, pool)
        names = [host.name for host in pool.hosts if host.name]
        for twice in sorted({host for host in names if names.count(host) > 1}):
            fix = Fix("", _name_once(document.value((*path, "hosts")), twice))
            yield problem_at((*path, "hosts"), f"two hosts have the name `{twice}`: names are unique", fix)


def _daemon_sets(pool: Pool, path: Path) -> Iterator[Problem]:
    """What DaemonSets request is a part of a node."""
    reserved = pool.daemon_sets
    for key, taken, of_node in (
        ("cpus", reserved.cpus, pool.cpus_per_node),
        ("memory", reserved.memory or 0, pool.memory_per_node),
    ):
        if key in reserved.model_fields_set and of_node is not None and taken >= of_node:
            yield problem_at(
                (*path, "daemonSets", key),
                f"leaves nothing of `{key}PerNode` to the pods of models",
                Fix.removal("", "for the default; `kubectl describe node` lists what is allocated"),
            )


def _sharing(pool: Pool, document: Document, path: Path) -> Iterator[Problem]:
    """Rules that need no catalog; the planner knows the partitions of each GPU."""
    sharing = pool.sharing
    if not sharing:
        return
    if pool.hosts:
        yield problem_at(
            path, "a pool with `hosts` cannot be shared: use one pool for each kind of host", Fix.removal()
        )
    if sharing.shares and sharing.layout:
        yield problem_at(
            path, "`sharing` has either `shares` or `layout`: parts are equal, or listed", Fix.removal("layout")
        )
    elif not (sharing.shares or sharing.layout):
        yield problem_at(path, "`sharing` needs `shares` or `layout`: how each GPU is divided", Fix("shares", 2))
    elif pool.gpu_resource and len(sharing.layout) > 1:
        yield problem_at(
            (*path, "layout"),
            f"all instances are offered as `{pool.gpu_resource}` (`gpuResource`), so they have one profile",
            Fix("", dict([max(sharing.layout.items(), key=lambda item: item[1])])),
        )
    elif sharing.layout and "isolation" in _keys(document, path) and sharing.isolation == "none":
        yield problem_at((*path, "isolation"), "a `layout` uses MIG, which isolates in hardware", Fix("", "hardware"))


def _groups(name: str, pool: Pool) -> Iterator[Problem]:
    """A worker group has the name of its pool and host, and the number of GPUs if a pool has several kinds."""
    for index, host in enumerate(pool.hosts):
        length = len(f"{name}-{host.name or f'{name}-{index}'}-x{host.gpus}")
        if length > MAX_LABEL:
            yield problem_at(
                ("pools", name, "hosts", index),
                f"its worker group, named after pool and host, has {length} characters; Kubernetes allows {MAX_LABEL}",
                Fix("name", f"h{index}", "or a shorter name of the pool"),
            )


def _models(fleet: Fleet, document: Document) -> Iterator[Problem]:
    for name, model in fleet.models.items():
        path, task = ("models", name), get_task(model.task)
        if model.pool:
            yield from reference((*path, "pool"), model.pool, fleet.pools, "pool")
        if model.gpu_fraction and model.gpu_fraction < 1 and model.parallelism and _split(model.parallelism) > 1:
            yield problem_at(
                (*path, "gpuFraction"),
                "a share of one GPU cannot be split over several GPUs: keep `gpuFraction` or `parallelism`",
                Fix.removal(),
            )
        if model.scaling == "engine-queue" and model.parallelism and (model.parallelism.data or 1) > 1:
            yield problem_at(
                (*path, "scaling"),
                "`engine-queue` was not tested with groups of data parallel ranks",
                Fix("", "ongoing-requests"),
            )
        traffic = model.traffic
        if traffic and model.context and traffic.input_tokens + (traffic.output_tokens or 0) > model.context:
            need = traffic.input_tokens + (traffic.output_tokens or 0)
            yield problem_at(
                (*path, "context"),
                f"prompt and answer have {need} tokens on average, and `context` is {model.context}",
                Fix("", need),
            )
        longest = (traffic.input_tokens_p95 or 0) + (traffic.output_tokens_p95 or 0) if traffic else 0
        if model.context and longest > model.context:
            yield problem_at(
                (*path, "context"),
                f"`inputTokensP95` and `outputTokensP95` are {longest} tokens together, and `context` is"
                f" {model.context}: the engine would refuse such requests",
                Fix("", longest),
            )
        if not model.application and task.server == "application" and not task.application:
            yield problem_at(
                (*path, "task"),
                "task `custom` needs `application`, the Serve application of the model",
                Fix("../application", {"importPath": "mymodels.ocr:build_app", "deployment": "Ocr"}),
            )
        if model.scaling == "engine-queue" and task.server == "application":
            message = f"task `{model.task}` has no vLLM engine, so there is no engine queue"
            yield problem_at((*path, "scaling"), message, Fix("", "ongoing-requests"))
        if model.application and (task.server != "application" or task.application):
            message = f"only task `custom` has an `application`, and the task is `{model.task}`"
            yield problem_at((*path, "application"), message, Fix("../task", "custom"))
        if task.needs_output_tokens and traffic and traffic.output_tokens is None:
            yield problem_at(
                (*path, "traffic"), "`traffic` of a chat model needs `outputTokens`", Fix("outputTokens", 300)
            )
        yield from _engine(model, document, (*path, "engine"))
        yield from check_engine_limits(model, (*path, "engine"))


def _engine(model: ModelSpec, document: Document, path: Path) -> Iterator[Problem]:
    """Arguments that something else sets."""
    owned = load_owned_arguments() if model.engine else {}
    for key, value in model.engine.items():
        row = owned.get(key)
        if not row or (row.harmless is not None and row.harmless == value):
            continue
        if not row.fleet:
            yield problem_at((*path, key), f"not allowed: {row.why}", Fix.removal())
            continue
        first, *rest = row.fleet.split(".")
        if (written := _find_written(document, (*path[:-1], first, *rest))) is not None:
            message = f"not allowed below `engine`: {row.why}; the file has `{row.fleet}`, and it is {short(written)}"
            yield problem_at((*path, key), message, Fix.removal("", f"`{row.fleet}` stays {short(written)}"))
            continue
        new = {**(_keys(document, (*path[:-1], first)) if rest else {}), rest[0]: value} if rest else value
        message = f"not allowed below `engine`: {row.why}; the fleet file has a key for it, `{row.fleet}`"
        yield problem_at((*path, key), message, Fix(f"../../{first}", new, replaces=""))


def _add_missing(pool: Pool, written: dict[str, object]) -> Fix:
    """Return the pool with the keys that it lacks."""
    gpu = {} if pool.gpu else {"gpu": "L4-24GB"}
    nodes = {} if pool.nodes else {"nodes": 1}
    return Fix("", {**gpu, **nodes, **written}, "an example, with your GPU" if gpu else "with the number of your nodes")


def _find_written(document: Document, path: Path) -> object:
    """Return what the file has at `path`; None if it has nothing there."""
    try:
        return document.value(path)
    except (KeyError, TypeError):
        return None


def _services(fleet: Fleet, document: Document) -> Iterator[Problem]:
    known = fleet.service_names
    for name, service in fleet.services.items():
        path = ("services", name)
        if name not in known:
            near = nearest(name, [other for other in known if other not in fleet.services])
            fixes = [Fix(f"../{other}", document.value(path), replaces="") for other in near] or [Fix.removal()]
            first = next(iter(document.value(("models",))))
            fixes.append(Fix(f"/models.{first}.service", name, "for each model that belongs to it"))
            yield problem_at(path, f"no model has the service `{name}`", fixes[0], alternatives=fixes[1:])
        if service.tenant:
            yield from reference((*path, "tenant"), service.tenant, fleet.tenants, "tenant")
    for name in known:
        clusters = {cluster for model in fleet.models_of(name) if (cluster := fleet.pinned_cluster_of(model))}
        if len(clusters) > 1:
            last = fleet.models_of(name)[-1]
            derived = derive_kubernetes_name(last)
            own = derived if derived != name else f"{derived}-2"
            both = " and ".join(f"`{cluster}`" for cluster in sorted(clusters))
            yield problem_at(
                ("models", last),
                f"its service `{name}` is on clusters {both}, and a RayService is on one: use one service per cluster",
                Fix("service", own),
            )


def _name_once(hosts: list[dict[str, object]], twice: str) -> list[dict[str, object]]:
    """The hosts with a number behind each further use of a name."""
    named, taken = [], {str(host.get("name")) for host in hosts}
    used = False
    for host in hosts:
        if host.get("name") != twice or not used:
            used = used or host.get("name") == twice
            named.append(host)
            continue
        name = next(f"{twice}-{number}" for number in range(2, len(hosts) + 2) if f"{twice}-{number}" not in taken)
        taken.add(name)
        named.append({**host, "name": name})
    return named


def _keys(document: Document, path: Path) -> dict[str, object]:
    try:
        here = document.value(path)
    except KeyError:
        return {}
    return here if isinstance(here, dict) else {}


def _split(parallelism: Parallelism) -> int:
    return (parallelism.tensor or 1) * (parallelism.pipeline or len(parallelism.layers) or 1) * (parallelism.data or 1)
