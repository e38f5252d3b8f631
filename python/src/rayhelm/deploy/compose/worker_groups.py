"""Worker groups of a service: one for each kind of pod."""

from collections.abc import Sequence
from functools import partial
from math import ceil

from rayhelm.deploy.compose.pod_kinds import PodKind, find_hosts, list_pod_kinds, name_pod_kinds
from rayhelm.deploy.values.common.labels import Toleration
from rayhelm.deploy.values.platform.classes import PriorityClasses
from rayhelm.deploy.values.ray_service.groups import HeadPod, Rdma, Spread, WorkerGpu, WorkerGroup
from rayhelm.deploy.values.ray_service.image import ImageOverride
from rayhelm.deploy.values.ray_service.resources import ContainerResources, build_resources
from rayhelm.errors import FleetError, Problem, run_all
from rayhelm.facts import Catalog
from rayhelm.facts.gpu import GpuKind
from rayhelm.fleet.fleet import Fleet
from rayhelm.fleet.pools import Pool
from rayhelm.fleet.problems import problem_at
from rayhelm.planner.access.ingress import REPLICAS_PER_WORKER, count_ingress_replicas
from rayhelm.planner.ingress_workers import IngressWorkersPlan
from rayhelm.planner.memory.offloaded_cache import count_offloaded_bytes
from rayhelm.planner.placement.gpu_partitioning import rename_resource
from rayhelm.planner.plan import ModelPlan

__all__ = [
    "build_ingress_group",
    "build_worker_groups",
    "get_gpu_resource",
    "name_groups_by_model",
    "name_ingress_group",
]

CPUS_PER_GPU, CPUS_BESIDE_RAY, CPUS_STEP = 4, 1, 8
MEMORY_GIB_PER_GPU, MEMORY_GIB_BASE = 16, 16
"""Resources of a worker if the pool does not state those of its nodes: memory for loading weights and for
`/dev/shm`."""
INGRESS, INGRESS_MEMORY_GIB = "ingress", 8
"""Worker group without GPUs, and the memory of a pod: Ray, its proxy, and three ingress replicas."""

DEFAULT_GPU_RESOURCES = {"nvidia": "nvidia.com/gpu", "amd": "amd.com/gpu", "intel": "gpu.intel.com/xe"}
"""Default extended resource of a GPU vendor."""


def get_gpu_resource(group: WorkerGroup) -> str:
    """Return the extended resource that the pods of a group request."""
    return group.gpu.resource or DEFAULT_GPU_RESOURCES[group.gpu.vendor]


def name_groups_by_model(models: Sequence[ModelPlan], fleet: Fleet) -> dict[str, list[str]]:
    """Return the group names of each model: one, or one for each stage on unlike hosts."""
    names = name_pod_kinds(models, fleet)
    return {plan.model: [names[kind] for kind in list_pod_kinds(plan, fleet)] for plan in models}


def build_worker_groups(models: Sequence[ModelPlan], fleet: Fleet, facts: Catalog) -> dict[str, WorkerGroup]:
    kinds = name_pod_kinds(models, fleet)
    return run_all({name: partial(_build_group, kind, models, fleet, facts) for kind, name in kinds.items()})


def name_ingress_group(models: Sequence[ModelPlan], fleet: Fleet) -> str:
    """Return the name of the group without GPUs, which differs from those of all pools."""
    name = INGRESS
    while name in name_pod_kinds(models, fleet).values():
        name += "-2"
    return name


def build_ingress_group(planned: IngressWorkersPlan) -> WorkerGroup:
    """Build the group without GPUs, on which the ingress runs while no model has a replica. A node selector and
    tolerations of its nodes are overrides, as those of the head."""
    return WorkerGroup(
        gpu=WorkerGpu(count=0),
        min_replicas=planned.min_workers,
        max_replicas=planned.max_workers,
        mounts_weights=False,
        # An ingress waits most of the time. Ray counts the limit.
        resources=build_resources(
            cpu=str(REPLICAS_PER_WORKER + CPUS_BESIDE_RAY), cpu_request="1", memory=f"{INGRESS_MEMORY_GIB}Gi"
        ),
        shm_size="1Gi",
        cache_size=HeadPod().cache_size,
        spread={"kubernetes.io/hostname": Spread()} if planned.max_workers > 1 else {},
        priority_class_name=PriorityClasses().workers.name,
        min_available=1 if planned.min_workers > 1 else 0,
    )


def _build_group(kind: PodKind, models: Sequence[ModelPlan], fleet: Fleet, facts: Catalog) -> WorkerGroup:
    pool = fleet.pools[kind.pool]
    gpu = rename_resource(facts.gpu(kind.gpu), pool)
    here = [plan for plan in models if kind in list_pod_kinds(plan, fleet)]
    if gpu.vendor == "google":
        message = f"{gpu.id} can be planned for, but the chart has no worker groups of TPUs"
        raise FleetError(problem_at(("pools", kind.pool, "gpu"), message, "a pool of GPUs"))
    most = max(1, _count_pods(here, kind, [plan.max_replicas for plan in here], fleet))
    booked = ceil(_count_booked_cpus(here, kind, fleet) / most)
    fewest = _count_pods(here, kind, [plan.min_replicas for plan in here], fleet)
    return WorkerGroup(
        gpu=_build_gpu(gpu, kind.gpus, is_labeled=fleet.clusters[pool.cluster].gpu_feature_discovery),
        min_replicas=fewest,
        max_replicas=most,
        resources=_build_resources(kind, pool, booked, here, fleet, facts),
        shm_size=f"{_compute_shm_gib(kind.gpus)}Gi",
        image=_build_image(pool),
        rdma=_build_rdma(pool, here),
        spot=pool.spot or "",
        node_selector=_build_node_selector(kind, pool),
        tolerations=[Toleration(**item.model_dump()) for item in pool.tolerations],
        spread=_spread(here, most),
        priority_class_name=PriorityClasses().workers.name,
        runtime_class_name=pool.runtime_class or "",
        supplemental_groups=list(pool.device_groups),
        min_available=_choose_min_available(here, fewest),
    )


def _build_node_selector(kind: PodKind, pool: Pool) -> dict[str, str]:
    """Return the labels of the pool, and those that all hosts with this GPU have."""
    hosts = find_hosts(kind, pool)
    common = set.intersection(*(set(host.node_selector.items()) for host in hosts)) if hosts else set()
    return {**pool.node_selector, **dict(sorted(common))}


def _spread(models: Sequence[ModelPlan], most: int) -> dict[str, Spread]:
    """Spread over zones if each replica is one pod, so that the loss of a zone stops only a part of the replicas. Not
    required, because all GPUs may be in one zone."""
    if most == 1 or any(plan.hosts or plan.nodes_per_replica > 1 for plan in models):
        return {}
    return {"topology.kubernetes.io/zone": Spread()}


def _choose_min_available(models: Sequence[ModelPlan], fewest: int) -> int:
    """Count the ready pods that a drain keeps. One pod of each replica is ready, and one replica is kept. 0, which is
    no budget, if the smallest number of replicas leaves none to evict: a budget would then block every drain."""
    if any(plan.min_replicas == 0 for plan in models):
        return 0
    pods_of_replica = max(1 if plan.hosts else plan.nodes_per_replica for plan in models)
    return 1 if fewest // pods_of_replica > 1 else 0


def _count_booked_cpus(models: Sequence[ModelPlan], kind: PodKind, fleet: Fleet) -> int:
    """Count the CPUs that Ray reserves on these pods: one for each replica or data parallel rank, and for each
    ingress, which may run on any pod."""
    first = [plan for plan in models if list_pod_kinds(plan, fleet)[0] == kind]
    return sum(plan.max_replicas * plan.data_parallel_size + count_ingress_replicas(plan)[1] for plan in first)


def _build_gpu(kind: GpuKind, count: int, *, is_labeled: bool) -> WorkerGpu:
    """`is_labeled`: GPU feature discovery sets the label with the product, which pods select."""
    resource = "" if DEFAULT_GPU_RESOURCES.get(kind.vendor) == kind.resource else kind.resource
    assert kind.vendor != "google"
    product = (kind.product_label or "") if is_labeled else ""
    return WorkerGpu(count=count, vendor=kind.vendor, resource=resource, product=product)


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


def _build_resources(
    kind: PodKind, pool: Pool, booked: int, models: Sequence[ModelPlan], fleet: Fleet, facts: Catalog
) -> ContainerResources:
    """Return the resources of a pod: its share of the node by GPUs, if the pool states what a node has."""
    hosts = find_hosts(kind, pool)
    there = min(host.gpus for host in hosts) if hosts else pool.gpus_per_node or 1
    held = kind.gpus * facts.gpu(kind.gpu).part
    part = held / there
    needed, shared = booked + CPUS_BESIDE_RAY, any(plan.gpu_fraction < 1 for plan in models)
    # In steps: another CPU count changes the pods and starts a second cluster, which a small new model must not do.
    cpus = max(CPUS_PER_GPU * kind.gpus, ceil(needed / CPUS_STEP) * CPUS_STEP if shared else needed)
    offloaded = max((_count_offloaded_gib(plan, kind, fleet) for plan in models), default=0)
    memory = MEMORY_GIB_BASE + ceil(MEMORY_GIB_PER_GPU * held) + offloaded
    if pool.memory_per_node:
        memory = max(1, int(pool.memory_per_node / 2**30 * part))
        if memory < (least := offloaded + _compute_shm_gib(kind.gpus)) and offloaded:
            raise FleetError(_build_memory_problem(kind, memory, least, part))
    if pool.cpus_per_node:
        cpus = max(1, int(pool.cpus_per_node * part))
        if cpus < needed:
            raise FleetError(_build_cpu_problem(kind, cpus, needed, part))
    return build_resources(cpu=str(cpus), memory=f"{memory}Gi")


def _count_offloaded_gib(plan: ModelPlan, kind: PodKind, fleet: Fleet) -> int:
    """Return the memory of a pod whose GPUs all serve this model for a KV cache that vLLM moves out of them, in GiB."""
    gpus = plan.tensor_parallel_size * plan.pipeline_parallel_size
    stated = count_offloaded_bytes(fleet.models[plan.model].engine, gpus) or 0.0
    return ceil(stated / gpus / plan.gpu_fraction * kind.gpus / 2**30)


def _build_memory_problem(kind: PodKind, memory: int, least: int, part: float) -> Problem:
    return problem_at(
        ("pools", kind.pool, "memoryPerNode"),
        f"a worker of {kind.gpus} GPUs would have {memory} GiB, and the KV cache that its engines offload and"
        f" `/dev/shm` take {least} GiB",
        f"memoryPerNode: {ceil(least / part)}GiB",
    )


def _build_cpu_problem(kind: PodKind, cpus: int, needed: int, part: float) -> Problem:
    return problem_at(
        ("pools", kind.pool, "cpusPerNode"),
        f"a worker of {kind.gpus} GPUs would have {cpus} CPUs, and its replicas and their ingress book {needed}",
        f"cpusPerNode: {ceil(needed / part)}",
    )


def _compute_shm_gib(gpus: int) -> int:
    """Return the size of `/dev/shm` in GiB, which NCCL uses between the GPUs of a host."""
    return 8 if gpus == 1 else 16


def _build_image(pool: Pool) -> ImageOverride:
    if not pool.image:
        return ImageOverride()
    named = pool.image
    return ImageOverride(
        repository=named.repository,
        tag=named.tag or "",
        digest=named.digest or "",
        includes_rayhelm=named.includes_rayhelm,
    )


def _build_rdma(pool: Pool, models: Sequence[ModelPlan]) -> Rdma:
    across = any(plan.nodes_per_replica > 1 or plan.prefill_decode for plan in models)
    return Rdma(resource=pool.rdma_resource) if across and pool.rdma_resource else Rdma()
