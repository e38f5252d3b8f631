"""Worker groups of a service: one for each kind of pod."""

from collections.abc import Sequence
from math import ceil

from rayhelm.facts import Catalog
from rayhelm.fleet.fleet import Fleet
from rayhelm.fleet.pools import Pool
from rayhelm.planner.access.ingress import REPLICAS_PER_WORKER, count_ingress_replicas, count_ingress_workers
from rayhelm.planner.memory.offloaded_cache import count_offloaded_bytes
from rayhelm.planner.plan import ModelPlan
from rayhelm.planner.reason import Reason
from rayhelm.planner.service_pods import WorkerPlan
from rayhelm.planner.workers.kinds import PodKind, find_hosts, list_pod_kinds, name_pod_kinds
from rayhelm.planner.workers.node_room import NodeRoom, find_cpu_room, find_memory_room

__all__ = ["CPUS_STEP", "MEMORY_GIB_BASE", "MEMORY_GIB_PER_GPU", "find_node_share", "plan_workers"]

CPUS_PER_GPU, CPUS_BESIDE_RAY, CPUS_STEP = 4, 1, 8
MEMORY_GIB_PER_GPU, MEMORY_GIB_BASE = 16, 16
"""Resources of a worker if the pool does not state those of its nodes: memory for loading weights and for
`/dev/shm`."""
INGRESS, INGRESS_MEMORY_GIB, INGRESS_SHM_GIB = "ingress", 8, 1
"""Worker group without GPUs, and the memory of a pod: Ray, its proxy, and three ingress replicas."""


def plan_workers(models: Sequence[ModelPlan], fleet: Fleet, facts: Catalog) -> dict[str, WorkerPlan]:
    """Plan the pods of a service. The name of the group without GPUs differs from those of all pools."""
    kinds = name_pod_kinds(models, fleet)
    workers = {name: _plan_group(kind, models, fleet, facts) for kind, name in kinds.items()}
    if bounds := count_ingress_workers(models):
        name = INGRESS
        while name in workers:
            name += "-2"
        workers[name] = _plan_ingress_group(*bounds)
    return workers


def find_node_share(kind: PodKind, pool: Pool, facts: Catalog) -> float:
    """Return the part of a node that a pod gets: its part of the GPUs."""
    hosts = find_hosts(kind, pool)
    there = min(host.gpus for host in hosts) if hosts else pool.gpus_per_node or 1
    return kind.gpus * facts.gpu(kind.gpu).part / there


def _plan_group(kind: PodKind, models: Sequence[ModelPlan], fleet: Fleet, facts: Catalog) -> WorkerPlan:
    pool = fleet.pools[kind.pool]
    here = [plan for plan in models if kind in list_pod_kinds(plan, fleet)]
    most = max(1, _count_pods(here, kind, [plan.max_replicas for plan in here], fleet))
    fewest = _count_pods(here, kind, [plan.min_replicas for plan in here], fleet)
    booked = ceil(_count_booked_cpus(here, kind, fleet) / most)
    part = find_node_share(kind, pool, facts)
    held = kind.gpus * facts.gpu(kind.gpu).part
    offloaded = max((_count_offloaded_gib(plan, kind, fleet) for plan in here), default=0)
    is_shared = any(plan.gpu_fraction < 1 for plan in here)
    cpus, why_cpus = _choose_cpus(kind, find_cpu_room(pool, part, fleet), booked, is_shared=is_shared)
    memory, why_memory = _choose_memory(kind, find_memory_room(pool, part, fleet), held, offloaded)
    shm = _compute_shm_gib(kind.gpus)
    kept, why_kept = _choose_min_available(here, fewest, fleet)
    return WorkerPlan(
        pool=kind.pool,
        gpu=kind.gpu,
        gpus=kind.gpus,
        min_pods=fewest,
        max_pods=most,
        cpus=cpus,
        needed_cpus=booked + CPUS_BESIDE_RAY,
        memory_gib=memory,
        needed_memory_gib=offloaded + shm,
        shm_gib=shm,
        min_available=kept,
        is_spread_over_zones=_is_spread(here, most),
        reasons=(why_cpus, why_memory, why_kept),
    )


def _plan_ingress_group(fewest: int, most: int) -> WorkerPlan:
    cpus = REPLICAS_PER_WORKER + CPUS_BESIDE_RAY
    kept = 1 if fewest > 1 else 0
    because = "the ingress runs on it while no model has a replica. It waits most of the time, and requests 1 CPU"
    return WorkerPlan(
        pool="",
        gpu="",
        gpus=0,
        min_pods=fewest,
        max_pods=most,
        cpus=cpus,
        needed_cpus=cpus,
        memory_gib=INGRESS_MEMORY_GIB,
        needed_memory_gib=INGRESS_SHM_GIB,
        shm_gib=INGRESS_SHM_GIB,
        min_available=kept,
        is_spread_over_zones=False,
        reasons=(Reason(decision="cpus", chosen=str(cpus), because=because),),
    )


def _choose_cpus(kind: PodKind, room: NodeRoom | None, booked: int, *, is_shared: bool) -> tuple[int, Reason]:
    path, needed = f"pools.{kind.pool}.cpusPerNode", booked + CPUS_BESIDE_RAY
    numbers: dict[str, float | int | str] = {"booked": booked, "beside_ray": CPUS_BESIDE_RAY}
    if room:
        cpus = room.fill()
        numbers["part_of_node"] = round(room.part, 4)
        because = f"its part, by GPUs, {room.explain()}"
        return cpus, Reason(decision="cpus", chosen=str(cpus), because=because, numbers=numbers, path=path)
    # In steps: another CPU count changes the pods and starts a second cluster, which a small new model must not do.
    cpus = max(CPUS_PER_GPU * kind.gpus, ceil(needed / CPUS_STEP) * CPUS_STEP if is_shared else needed)
    because = (
        f"{CPUS_PER_GPU} for each GPU"
        if cpus == CPUS_PER_GPU * kind.gpus
        else "what replicas and their ingress book, and 1 for Ray itself"
        + (f", in steps of {CPUS_STEP}, so that a further small model changes no pod" if is_shared else "")
    )
    because += ": the pool states no CPUs of its nodes"
    return cpus, Reason(decision="cpus", chosen=str(cpus), because=because, numbers=numbers, path=path)


def _choose_memory(kind: PodKind, room: NodeRoom | None, held: float, offloaded: int) -> tuple[int, Reason]:
    """`held`: GPUs of a pod; fewer than its devices where these are parts of GPUs."""
    path = f"pools.{kind.pool}.memoryPerNode"
    numbers: dict[str, float | int | str] = {"offloaded_gib": offloaded} if offloaded else {}
    if room:
        memory = room.fill()
        numbers["part_of_node"] = round(room.part, 4)
        because = f"its part, by GPUs, {room.explain()}"
    else:
        memory = MEMORY_GIB_BASE + ceil(MEMORY_GIB_PER_GPU * held) + offloaded
        because = (
            f"{MEMORY_GIB_BASE} GiB and {MEMORY_GIB_PER_GPU} for each GPU, for loading weights and `/dev/shm`"
            f"{', and the KV cache that engines offload' if offloaded else ''}: the pool states no memory of its nodes"
        )
    return memory, Reason(decision="memory", chosen=f"{memory} GiB", because=because, numbers=numbers, path=path)


def _choose_min_available(models: Sequence[ModelPlan], fewest: int, fleet: Fleet) -> tuple[int, Reason]:
    """Count the ready pods that a drain keeps. One pod of each replica is ready, and one replica is kept."""
    pods_of_replica = max(1 if plan.hosts else plan.nodes_per_replica for plan in models)
    kept = 1 if fewest // pods_of_replica > 1 else 0
    if any(plan.min_replicas == 0 for plan in models):
        kept, because = 0, "a model can scale to zero"
    elif kept:
        because = "one replica serves while a node is drained"
    else:
        because = "the smallest number of replicas leaves none to evict: a budget would block every drain"
    chosen = f"{kept} pod" if kept else "no budget"
    path = f"models.{models[0].written}.replicas"
    return kept, Reason(decision="disruption_budget", chosen=chosen, because=because, path=path)


def _is_spread(models: Sequence[ModelPlan], most: int) -> bool:
    """Spread over zones if each replica is one pod, so that the loss of a zone stops only a part of the replicas. Not
    required, because all GPUs may be in one zone."""
    return most > 1 and not any(plan.hosts or plan.nodes_per_replica > 1 for plan in models)


def _count_booked_cpus(models: Sequence[ModelPlan], kind: PodKind, fleet: Fleet) -> int:
    """Count the CPUs that Ray reserves on these pods: one for each replica or data parallel rank, and for each
    ingress, which may run on any pod."""
    first = [plan for plan in models if list_pod_kinds(plan, fleet)[0] == kind]
    return sum(plan.max_replicas * plan.shape.dp + count_ingress_replicas(plan)[1] for plan in first)


def _count_pods(models: Sequence[ModelPlan], kind: PodKind, replicas: Sequence[int], fleet: Fleet) -> int:
    """Count the pods for these replicas: replicas with whole GPUs take pods of their own, fractions are packed into
    GPUs."""
    counted = list(zip(models, replicas, strict=True))
    whole = sum(count * _count_pods_of_replica(plan, kind, fleet) for plan, count in counted if plan.gpu_fraction == 1)
    shares = [plan.gpu_fraction for plan, count in counted for _ in range(count) if plan.gpu_fraction < 1]
    return whole + _count_packed_pods(sorted(shares, reverse=True))


def _count_pods_of_replica(plan: ModelPlan, kind: PodKind, fleet: Fleet) -> int:
    """Count the pods of this kind that one replica takes."""
    return list_pod_kinds(plan, fleet).count(kind) if plan.hosts else plan.nodes_per_replica


def _count_packed_pods(shares: Sequence[float]) -> int:
    """Count the GPUs for these fractions, each placed on the first GPU with room."""
    used_shares: list[float] = []
    for share in shares:
        room = next((index for index, used in enumerate(used_shares) if used + share <= 1 + 1e-9), None)
        if room is None:
            used_shares.append(share)
        else:
            used_shares[room] += share
    return len(used_shares)


def _count_offloaded_gib(plan: ModelPlan, kind: PodKind, fleet: Fleet) -> int:
    """Return the memory of a pod whose GPUs all serve this model for a KV cache that vLLM moves out of them, in GiB."""
    gpus = plan.shape.tp * plan.shape.pp
    stated = count_offloaded_bytes(fleet.models[plan.model].engine, gpus) or 0.0
    return ceil(stated / gpus / plan.gpu_fraction * kind.gpus / 2**30)


def _compute_shm_gib(gpus: int) -> int:
    """Return the size of `/dev/shm` in GiB, which NCCL uses between the GPUs of a host."""
    return 8 if gpus == 1 else 16
