"""`fit` with the sizes of a shape, and arguments of vLLM by name."""

from collections.abc import Sequence
from dataclasses import replace

from rayhelm.facts import Catalog
from rayhelm.facts.gpu import GpuKind
from rayhelm.facts.model import Checkpoint
from rayhelm.planner.memory.engine_settings import read_settings
from rayhelm.planner.memory.fit import Fit
from rayhelm.planner.memory.fit import fit as fit_shape
from rayhelm.planner.shape import ReplicaShape

__all__ = ["fit"]


def fit(
    model: Checkpoint,
    gpus: Sequence[GpuKind],
    tp: int = 1,
    pp: int | None = None,
    *,
    expert_parallel: bool = False,
    partition: tuple[int, ...] | None = None,
    share: float = 1.0,
    vllm_version: str | None = None,
    facts: Catalog | None = None,
    **engine: object,
) -> Fit:
    shape = ReplicaShape(tp, pp or len(gpus), has_expert_parallel=expert_parallel, partition=partition)
    settings = replace(read_settings(engine), fraction=share)
    return fit_shape(model, gpus, shape, settings, vllm_version=vllm_version, facts=facts)
