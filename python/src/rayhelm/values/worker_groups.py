"""Worker groups of a service: one for each kind of pod, which is a pool, a host of it, and how many cards it takes."""

from collections.abc import Sequence
from dataclasses import dataclass
from math import ceil

from rayhelm.catalog import Catalog
from rayhelm.catalog.gpu import Gpu as Card
from rayhelm.errors import FleetError
from rayhelm.planner.plan import ModelPlan
from rayhelm.spec.load import LoadedFleet
from rayhelm.spec.pools import Host, Pool
from rayhelm.values.ray_service.groups import Gpu, Rdma, Resources, WorkerGroup
from rayhelm.values.ray_service.image import ImageOverride

__all__ = ["groups_of", "worker_groups"]

CPUS_PER_CARD, CPUS_LEAST = 4, 4
MEMORY_GIB_PER_CARD, MEMORY_GIB_BASE = 16, 16
"""What a worker asks for when the pool does not say what its nodes have: room to load weights, and `/dev/shm`."""


@dataclass(frozen=True)
class _Kind:
    """What makes pods alike."""

    pool: str
    host: str
    """Host of a pool of unlike hosts; empty in a pool of like ones."""
    cards: int
    """Of one pod."""


def groups_of(models: Sequence[ModelPlan], loaded: LoadedFleet, known: Catalog) -> dict[str, list[str]]:
    """Names of the groups that each model runs on, one per stage where its hosts are unlike."""
    names = _names(models, loaded)
    return {plan.model: [names[kind] for kind in _kinds(plan, loaded)] for plan in models}


def worker_groups(models: Sequence[ModelPlan], loaded: LoadedFleet, known: Catalog) -> dict[str, WorkerGroup]:
    return {name: _group(kind, models, loaded, known) for kind, name in _names(models, loaded).items()}


def _names(models: Sequence[ModelPlan], loaded: LoadedFleet) -> dict[_Kind, str]:
    """The pool's name; with the host or the number of cards behind it where a pool has several kinds of pods."""
    kinds = list(dict.fromkeys(kind for plan in models for kind in _kinds(plan, loaded)))
    names = {}
    for kind in kinds:
        alike = [other for other in kinds if (other.pool, other.host) == (kind.pool, kind.host)]
        name = f"{kind.pool}-{kind.host}" if kind.host else kind.pool
        names[kind] = f"{name}-x{kind.cards}" if len(alike) > 1 else name
    return names


def _kinds(plan: ModelPlan, loaded: LoadedFleet) -> list[_Kind]:
    if plan.hosts:
        return [_Kind(plan.pool, host, plan.tensor_parallel_size) for host in plan.hosts]
    cards = plan.tensor_parallel_size * plan.pipeline_parallel_size
    return [_Kind(plan.pool, "", ceil(cards / plan.nodes_per_replica))]


def _group(kind: _Kind, models: Sequence[ModelPlan], loaded: LoadedFleet, known: Catalog) -> WorkerGroup:
    pool = loaded.fleet.pools[kind.pool]
    named = {_host_name(kind.pool, index, host): host for index, host in enumerate(pool.hosts)}
    host = named.get(kind.host)
    card = known.gpu(host.gpu if host else pool.gpu or "")
    here = [plan for plan in models if kind in _kinds(plan, loaded)]
    if card.vendor == "google":
        raise FleetError(f"pool `{kind.pool}`: {card.id} is planned for, but the chart has no worker groups of TPUs")
    return WorkerGroup(
        gpu=_gpu(card, kind.cards),
        min_replicas=_pods(here, [plan.min_replicas for plan in here]),
        max_replicas=max(1, _pods(here, [plan.max_replicas for plan in here])),
        resources=_resources(pool, host, kind.cards),
        shm_size=f"{_shm_gib(kind.cards)}Gi",
        image=_image(pool),
        rdma=_rdma(pool, here),
        spot=pool.spot or "",
        node_selector={**pool.node_selector, **(host.node_selector if host else {})},
        tolerations=[item.model_dump(exclude_none=True) for item in pool.tolerations],
        supplemental_groups=list(pool.device_groups),
        min_available=_min_available(here),
    )


def _min_available(models: Sequence[ModelPlan]) -> int:
    """Pods that a drain leaves: one replica, on all of its nodes."""
    if any(plan.min_replicas == 0 for plan in models):
        return 0
    return max(1 if plan.hosts else plan.nodes_per_replica for plan in models)


def _host_name(pool: str, index: int, host: Host) -> str:
    return host.name or f"{pool}-{index}"


def _gpu(card: Card, count: int) -> Gpu:
    usual = {"nvidia": "nvidia.com/gpu", "amd": "amd.com/gpu", "intel": "gpu.intel.com/xe"}
    resource = "" if usual.get(card.vendor) == card.resource else card.resource
    assert card.vendor != "google"
    return Gpu(count=count, vendor=card.vendor, resource=resource, product=card.product_label or "")


def _pods(models: Sequence[ModelPlan], replicas: Sequence[int]) -> int:
    """Pods for so many replicas: whole ones take pods of their own, shares are packed into cards."""
    whole = sum(
        count * (1 if plan.hosts else plan.nodes_per_replica)
        for plan, count in zip(models, replicas, strict=True)
        if plan.gpu_fraction == 1
    )
    shares = [plan.gpu_fraction for plan, count in zip(models, replicas, strict=True) for _ in range(count)]
    return whole + _packed(sorted((share for share in shares if share < 1), reverse=True))


def _packed(shares: Sequence[float]) -> int:
    """Cards that hold these shares, each put on the first card with room."""
    cards: list[float] = []
    for share in shares:
        room = next((index for index, used in enumerate(cards) if used + share <= 1 + 1e-9), None)
        if room is None:
            cards.append(share)
        else:
            cards[room] += share
    return len(cards)


def _resources(pool: Pool, host: Host | None, cards: int) -> Resources:
    """A part of the node as large as its part of the cards, where the pool says what a node has."""
    part = cards / (host.gpus if host else pool.gpus_per_node or 1)
    cpus = max(CPUS_LEAST, CPUS_PER_CARD * cards)
    memory = MEMORY_GIB_BASE + MEMORY_GIB_PER_CARD * cards
    if pool.cpus_per_node:
        cpus = max(1, int(pool.cpus_per_node * part))
    if pool.memory_per_node:
        memory = max(1, int(pool.memory_per_node / 2**30 * part))
    return Resources(cpu=str(cpus), memory=f"{memory}Gi")


def _shm_gib(cards: int) -> int:
    """NCCL's buffers between the cards of a host."""
    return 8 if cards == 1 else 16


def _image(pool: Pool) -> ImageOverride:
    if not pool.image:
        return ImageOverride()
    return ImageOverride(repository=pool.image.repository, tag=pool.image.tag or "", digest=pool.image.digest or "")


def _rdma(pool: Pool, models: Sequence[ModelPlan]) -> Rdma:
    across = any(plan.nodes_per_replica > 1 for plan in models)
    return Rdma(resource=pool.rdma_resource) if across and pool.rdma_resource else Rdma()
