"""Which replica could be on which GPU: one way to place what the plan counts. Kubernetes chooses the nodes."""

from collections.abc import Iterator
from dataclasses import dataclass, field

from rayhelm.planner.plan import ModelPlan, NodeGroup, Plan, StagePlan

__all__ = ["MappedGpu", "MappedNode", "ModelPart", "map_pool"]


@dataclass(frozen=True)
class ModelPart:
    """What a replica has on one GPU."""

    model: str
    service: str
    share: float
    """Part of the GPU, 0 to 1."""
    weights_gib: float
    kv_gib: float


@dataclass
class MappedGpu:
    """A GPU, or a part of a partitioned one."""

    parts: list[ModelPart] = field(default_factory=list)

    def has_room(self, part: ModelPart) -> bool:
        """Return whether the part fits. Services do not share GPUs, because each Ray cluster schedules its own."""
        if not self.parts:
            return True
        used = sum(each.share for each in self.parts)
        return self.parts[0].service == part.service and used + part.share <= 1 + 1e-6


@dataclass(eq=False)
class MappedNode:
    """One node with its GPUs."""

    group: NodeGroup
    gpus: list[MappedGpu]
    free: int
    """GPUs without a part."""

    def put(self, part: ModelPart) -> None:
        """Put a part on a GPU with parts of the same service, else on a free one. Needs room for it."""
        gpu = self._find_shared(part) or next(gpu for gpu in self.gpus if not gpu.parts)
        self.free -= not gpu.parts
        gpu.parts.append(part)

    def count_room(self, part: ModelPart) -> int:
        """Return how many parts of this kind fit at least."""
        return self.free or bool(self._find_shared(part))

    def _find_shared(self, part: ModelPart) -> MappedGpu | None:
        if part.share == 1:
            return None
        return next((gpu for gpu in self.gpus if gpu.parts and gpu.has_room(part)), None)


@dataclass(frozen=True)
class _Replica:
    """Parts of a replica by pod: those of one pod are on one node."""

    pods: tuple[tuple[tuple[str, ModelPart], ...], ...]
    """GPU id and part for each GPU of each pod."""

    @property
    def largest(self) -> tuple[int, float]:
        return max(len(pod) for pod in self.pods), self.pods[0][0][1].share


def map_pool(plan: Plan, pool: str) -> list[MappedNode]:
    """Place the replicas of a pool at the planned load, those with the largest pods first."""
    groups = plan.pools[pool].nodes
    nodes = [
        MappedNode(one, [MappedGpu() for _ in range(one.gpus)], one.gpus) for one in groups for _ in range(one.nodes)
    ]
    models = [model for model in plan.models.values() if model.pool == pool]
    replicas = [replica for model in models for replica in [_build_replica(model)] * model.replicas]
    for replica in sorted(replicas, key=lambda replica: replica.largest, reverse=True):
        _place(replica, nodes)
    return nodes


def _build_replica(model: ModelPlan) -> _Replica:
    parts = [(stage.gpu, _build_part(model, stage)) for stage in _list_stages(model)]
    pods = len(model.hosts) or model.nodes_per_replica
    size = len(parts) // pods
    return _Replica(tuple(tuple(parts[index * size : (index + 1) * size]) for index in range(pods)))


def _list_stages(model: ModelPlan) -> Iterator[StagePlan]:
    """Yield the stage of each GPU: ranks of data parallelism beside each other, each with all its stages."""
    for _ in range(model.shape.dp):
        for stage in model.stages:
            yield from [stage] * model.shape.tp


def _build_part(model: ModelPlan, stage: StagePlan) -> ModelPart:
    return ModelPart(model.model, model.service, model.gpu_fraction, stage.weights_gib, stage.kv_gib)


def _place(replica: _Replica, nodes: list[MappedNode]) -> None:
    """Place each pod on a node of its own, the one with the least room, so that whole nodes stay free."""
    taken: list[MappedNode] = []
    for pod in replica.pods:
        gpu, part = pod[0]
        fit = (
            node for node in nodes if node.group.gpu == gpu and node.count_room(part) >= len(pod) and node not in taken
        )
        node = min(fit, key=lambda node: node.free, default=None)
        if node is None:
            return
        taken.append(node)
        for _, each in pod:
            node.put(each)
