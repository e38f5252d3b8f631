"""Worker groups of a service: one for each kind of pod."""

from collections.abc import Iterator, Mapping, Sequence
from functools import partial

from rayhelm.deploy.values.common.labels import Toleration
from rayhelm.deploy.values.platform.classes import PriorityClasses
from rayhelm.deploy.values.ray_service.groups import HeadPod, Rdma, Spread, WorkerGpu, WorkerGroup
from rayhelm.deploy.values.ray_service.image import ImageOverride
from rayhelm.deploy.values.ray_service.resources import build_resources
from rayhelm.errors import Fix, FleetError, Problem, run_all
from rayhelm.facts.gpu import DEFAULT_GPU_RESOURCES, GpuKind
from rayhelm.fleet.pools import Pool
from rayhelm.fleet.problems import problem_at
from rayhelm.planner.placement.feature_discovery import select_product
from rayhelm.planner.placement.gpu_partitioning import rename_resource
from rayhelm.planner.plan import ModelPlan, Plan, WorkerPlan
from rayhelm.planner.workers.kinds import PodKind, find_hosts, list_pod_kinds, name_pod_kinds
from rayhelm.planner.workers.node_room import find_cpu_room, find_memory_room
from rayhelm.planner.workers.plan_workers import find_node_share

__all__ = [
    "build_worker_groups",
    "find_ingress_group",
    "get_gpu_resource",
    "name_groups_by_model",
]


def get_gpu_resource(group: WorkerGroup) -> str:
    """Return the extended resource that the pods of a group request."""
    return group.gpu.resource or DEFAULT_GPU_RESOURCES[group.gpu.vendor]


def name_groups_by_model(models: Sequence[ModelPlan], plan: Plan) -> dict[str, list[str]]:
    """Return the group names of each model: one, or one for each stage on unlike hosts."""
    names = name_pod_kinds(models, plan.declared)
    return {each.model: [names[kind] for kind in list_pod_kinds(each, plan.declared)] for each in models}


def build_worker_groups(
    workers: Mapping[str, WorkerPlan], models: Sequence[ModelPlan], plan: Plan
) -> dict[str, WorkerGroup]:
    """Build the groups of a service by name. Raises FleetError for pods that their nodes have no room for."""
    return run_all(
        {
            name: partial(_build_group, planned, models, plan)
            if planned.gpus
            else partial(_build_ingress_group, planned)
            for name, planned in workers.items()
        }
    )


def find_ingress_group(workers: Mapping[str, WorkerPlan]) -> str:
    """Return the name of the group without GPUs; empty if there is none."""
    return next((name for name, planned in workers.items() if not planned.gpus), "")


def _build_ingress_group(planned: WorkerPlan) -> WorkerGroup:
    """Build the group without GPUs. A node selector and tolerations of its nodes are overrides, as those of the
    head."""
    return WorkerGroup(
        gpu=WorkerGpu(count=0),
        min_replicas=planned.min_pods,
        max_replicas=planned.max_pods,
        mounts_weights=False,
        # An ingress waits most of the time. Ray counts the limit.
        resources=build_resources(cpu=str(planned.cpus), cpu_request="1", memory=f"{planned.memory_gib}Gi"),
        shm_size=f"{planned.shm_gib}Gi",
        cache_size=HeadPod().cache_size,
        spread={"kubernetes.io/hostname": Spread()} if planned.max_pods > 1 else {},
        priority_class_name=PriorityClasses().workers.name,
        min_available=planned.min_available,
    )


def _build_group(planned: WorkerPlan, models: Sequence[ModelPlan], plan: Plan) -> WorkerGroup:
    kind = PodKind(planned.pool, planned.gpu, planned.gpus)
    pool = plan.declared.pools[kind.pool]
    gpu = rename_resource(plan.facts.gpu(kind.gpu), pool)
    if problems := list(_find_small_nodes(planned, pool, find_node_share(kind, pool, plan.facts), plan)):
        raise FleetError(problems)
    here = [each for each in models if kind in list_pod_kinds(each, plan.declared)]
    return WorkerGroup(
        gpu=_build_gpu(gpu, kind.gpus, select_product(pool, gpu, plan.declared, plan.facts)),
        min_replicas=planned.min_pods,
        max_replicas=planned.max_pods,
        resources=build_resources(cpu=str(planned.cpus), memory=f"{planned.memory_gib}Gi"),
        shm_size=f"{planned.shm_gib}Gi",
        image=_build_image(pool),
        rdma=_build_rdma(pool, here),
        spot=pool.spot or "",
        node_selector=_build_node_selector(kind, pool),
        tolerations=[Toleration(**item.model_dump()) for item in pool.tolerations],
        spread={"topology.kubernetes.io/zone": Spread()} if planned.is_spread_over_zones else {},
        priority_class_name=PriorityClasses().workers.name,
        runtime_class_name=pool.runtime_class or "",
        supplemental_groups=list(pool.device_groups),
        min_available=planned.min_available,
    )


def _find_small_nodes(planned: WorkerPlan, pool: Pool, part: float, plan: Plan) -> Iterator[Problem]:
    """Yield what a pod needs more of than its part of a node, as the fleet file states it."""
    least = planned.needed_memory_gib
    memory, cpus = find_memory_room(pool, part, plan.declared), find_cpu_room(pool, part, plan.declared)
    if memory and planned.memory_gib < least:
        offloaded = " and the KV cache that its engines offload" if least > planned.shm_gib else ""
        yield problem_at(
            ("pools", planned.pool, "memoryPerNode"),
            f"a worker of {planned.gpus} GPUs would have {planned.memory_gib} GiB ({memory.explain()}), and"
            f" `/dev/shm`{offloaded} needs {least} GiB",
            Fix(value=f"{memory.size_node(least)}GiB", why="with nodes of this memory"),
        )
    if cpus and planned.cpus < planned.needed_cpus:
        yield problem_at(
            ("pools", planned.pool, "cpusPerNode"),
            f"a worker of {planned.gpus} GPUs would have {planned.cpus} CPUs ({cpus.explain()}), and its replicas and"
            f" their ingress book {planned.needed_cpus}",
            Fix(value=cpus.size_node(planned.needed_cpus), why="with nodes of so many CPUs"),
        )


def _build_node_selector(kind: PodKind, pool: Pool) -> dict[str, str]:
    """Return the labels of the pool, and those that all hosts with this GPU have."""
    hosts = find_hosts(kind, pool)
    common = set.intersection(*(set(host.node_selector.items()) for host in hosts)) if hosts else set()
    return {**pool.node_selector, **dict(sorted(common))}


def _build_gpu(kind: GpuKind, count: int, product: str) -> WorkerGpu:
    resource = "" if DEFAULT_GPU_RESOURCES.get(kind.vendor) == kind.resource else kind.resource
    assert kind.vendor != "google"
    return WorkerGpu(count=count, vendor=kind.vendor, resource=resource, product=product)


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
