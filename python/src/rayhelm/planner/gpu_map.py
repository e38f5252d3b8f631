"""Which replica is on which GPU: what the planner allocated. Kubernetes chooses the nodes."""

from collections.abc import Iterator
from dataclasses import dataclass

from rayhelm.planner.plan import ModelPlan, NodeGroup, Plan
from rayhelm.planner.pool_use import GpuPart

__all__ = ["MappedNode", "ModelPart", "map_pool"]


@dataclass(frozen=True)
class ModelPart:
    """What a replica has on one GPU, or on a part of a partitioned one."""

    model: str
    share: float
    """Part of the GPU, 0 to 1."""
    weights_gib: float
    kv_gib: float


@dataclass(frozen=True)
class MappedNode:
    """One node, with the parts on each of its GPUs."""

    group: NodeGroup
    gpus: tuple[tuple[ModelPart, ...], ...]


def map_pool(plan: Plan, pool: str) -> Iterator[MappedNode]:
    """Yield the nodes of a pool with what is on them at the planned load."""
    use = plan.pools[pool]
    groups = (group for group in use.nodes for _ in range(group.nodes))
    for group, gpus in zip(groups, use.allocation, strict=True):
        mapped = (tuple(_describe(plan.models[part.model], part) for part in parts) for parts in gpus)
        yield MappedNode(group, tuple(mapped))


def _describe(model: ModelPlan, part: GpuPart) -> ModelPart:
    stage = model.stages[part.rank // model.shape.tp % model.shape.pp]
    return ModelPart(model.model, model.gpu_fraction, stage.weights_gib, stage.kv_gib)
