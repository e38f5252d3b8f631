"""From a fleet file and a live cluster to what is measured, and to the stored measurements."""

import secrets
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path

from rayhelm.deploy.images.reference import parse_reference
from rayhelm.errors import Fix, FleetError, Problem, UsageError
from rayhelm.fleet.fleet import Fleet
from rayhelm.fleet.measurements import CONFIG_MAP, FleetMeasurements, PoolMeasurement
from rayhelm.fleet.nearest import did_you_mean
from rayhelm.fleet.problems import problem_at
from rayhelm.fleet.worker_images import name_worker_image
from rayhelm.live.cluster.kinds import CONFIG_MAPS, NODES
from rayhelm.live.cluster.reader import ClusterReader
from rayhelm.live.cluster.writer import ClusterWriter
from rayhelm.live.probe.jobs import PoolTarget, build_node_job, build_pair_job
from rayhelm.live.probe.nodes import FoundNode, find_nodes
from rayhelm.live.probe.run import PoolProbe, list_pairs
from rayhelm.live.probe.store import format_measurements, merge, read_file, read_stored, store
from rayhelm.planner.placement.inventory import PoolInventory, build_inventories

__all__ = [
    "FoundTarget",
    "choose_cluster",
    "find_targets",
    "list_images",
    "list_jobs",
    "measure_pools",
    "read_registry",
]

FoundTarget = tuple[PoolTarget, list[FoundNode]]


def choose_cluster(fleet: Fleet, wanted: str) -> str:
    """Return the name of the cluster in the fleet file. Raises UsageError."""
    names = list(fleet.clusters)
    if wanted and wanted not in names:
        raise UsageError(f"the fleet has no cluster `{wanted}`; it has: {', '.join(names)}")
    if len(names) > 1 and not wanted:
        raise UsageError(f"the fleet has several clusters; name this one: --cluster {' | '.join(names)}")
    return wanted or names[0]


def find_targets(
    reader: ClusterReader,
    fleet: Fleet,
    cluster: str,
    wanted: Sequence[str],
    image: str,
    namespace: str,
    *,
    on_cpu: bool,
    registry: str = "",
    assigned_user: bool = False,
    priority_class: str = "rayhelm-batch",
    warn: Callable[[Problem], None] = lambda problem: None,
) -> list[FoundTarget]:
    """Return the pools with their nodes. Raises UsageError for an unknown pool, and FleetError if a wanted pool, or
    every pool, cannot be measured; without `wanted`, `warn` gets the others."""
    facts = fleet.facts
    pools = {name: pool for name, pool in fleet.pools.items() if pool.cluster == cluster}
    for name in wanted:
        if name not in pools:
            guess = did_you_mean(name, pools)
            raise UsageError(f"the fleet has no pool `{name}` in cluster `{cluster}`; {guess}".rstrip("; "))
    inventories = build_inventories(fleet, None, facts)
    nodes, run = reader.list(NODES), secrets.token_hex(3)
    found: list[FoundTarget] = []
    problems: list[Problem] = []
    for name in wanted or pools:
        target = _build_target(inventories[name], fleet, image, namespace, run, on_cpu=on_cpu, registry=registry)
        target = replace(target, priority_class=priority_class, assigned_user=assigned_user)
        here = find_nodes(pools[name], nodes, facts, on_cpu=on_cpu)
        if not here:
            problems.append(_explain_no_node(name, fleet, reader.name, len(nodes)))
        elif inventories[name].partitioning and not on_cpu:
            problems.append(_explain_parts(name))
        else:
            found.append((target, here))
    if problems and (wanted or not found):
        raise FleetError(problems)
    for problem in problems:
        warn(problem)
    return found


def _build_target(
    inventory: PoolInventory,
    fleet: Fleet,
    image: str,
    namespace: str,
    run: str,
    *,
    on_cpu: bool,
    registry: str,
) -> PoolTarget:
    return PoolTarget(
        name=inventory.name,
        pool=inventory.pool,
        gpu=inventory.hosts[0].gpu,
        gpu_name=inventory.gpu_name,
        image=image or _name_image(fleet, inventory.name, registry),
        on_cpu=on_cpu,
        namespace=namespace,
        run=run,
    )


def _explain_no_node(name: str, fleet: Fleet, cluster: str, nodes: int) -> Problem:
    pool = fleet.pools[name]
    looked = f"labels {pool.node_selector}" if pool.node_selector else f"{pool.gpus_per_node or 1} x {pool.gpu}"
    return problem_at(
        ("pools", name),
        f"none of the {nodes} nodes of cluster {cluster} is in this pool (looked for {looked})",
        Fix(command="rayhelm discover", why="prints the pools that the cluster has"),
    )


def _explain_parts(name: str) -> Problem:
    return problem_at(
        ("pools", name, "sharing"),
        "the GPUs of this pool are partitioned, and only whole GPUs are measured",
        Fix(command=f"rayhelm probe FLEET --pool {name} --cpu", why="measures its network"),
    )


def list_images(fleet: Fleet, cluster: str, image: str, registry: str = "") -> list[str]:
    """Return the images that the Jobs of a cluster may have. `registry`: of the globals of chart platform."""
    pools = [name for name, pool in fleet.pools.items() if pool.cluster == cluster]
    return sorted({_name_image(fleet, name, registry) for name in pools} | ({image} if image else set()))


def _name_image(fleet: Fleet, pool: str, registry: str) -> str:
    return str(parse_reference(name_worker_image(fleet, pool)).move(registry))


def read_registry(fleet: Fleet, cluster: str) -> str:
    """Return the registry that `values` of the cluster hand to chart platform; empty for none."""
    found = (fleet.clusters[cluster].values.get("global") or {}).get("imageRegistry")
    return found if isinstance(found, str) else ""


def list_jobs(targets: Sequence[FoundTarget], timeout_s: float) -> list[dict[str, object]]:
    """Return the Jobs that a probe would create."""
    jobs = []
    for target, nodes in targets:
        usable = [node for node in nodes if not node.why_not]
        jobs += [build_node_job(target, node.name, node.gpus, round(timeout_s)) for node in usable]
        pairs = list_pairs([node.name for node in usable])
        jobs += [build_pair_job(target, pair, round(timeout_s)) for pair in pairs]
    return jobs


def measure_pools(
    writer: ClusterWriter,
    targets: Sequence[FoundTarget],
    namespace: str,
    timeout_s: float,
    output: Path | None,
    show: Callable[[str], None],
    warn: Callable[[str], None] = lambda text: None,
) -> FleetMeasurements:
    """Measure one pool after the other, and store the results after each. Returns those of this run.

    Raises AbsentError if the cluster lacks the objects of a probe, and ForbiddenError if a right is missing."""
    writer.get(CONFIG_MAPS, CONFIG_MAP, namespace)  # before the Jobs: without it their results would be lost
    measured = dict[str, PoolMeasurement]()
    for target, nodes in targets:
        measured[target.name] = PoolProbe(writer, target, timeout_s, show).measure(nodes)
        # What was measured before an interruption is kept.
        store(writer, namespace, merge(_read_earlier(writer, namespace, warn), measured))
        if output:
            output.write_text(format_measurements(merge(read_file(output), measured)), encoding="utf-8")
    return FleetMeasurements(pools=measured)


def _read_earlier(reader: ClusterReader, namespace: str, warn: Callable[[str], None]) -> FleetMeasurements | None:
    try:
        return read_stored(reader, namespace)
    except FleetError as error:
        warn(f"the earlier measurements of the cluster are replaced, because they cannot be read: {error}")
    return None
