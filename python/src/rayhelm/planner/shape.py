"""How a replica of a model is split over GPUs, in the one form with which the planner computes.

The fleet file, the plan, engine arguments, measurements and options of commands have their own names for these sizes;
they are read into this form and written from it.
"""

from dataclasses import dataclass
from typing import Any

__all__ = ["ReplicaShape", "write_parallelism"]


@dataclass(frozen=True)
class ReplicaShape:
    """One replica: `dp` ranks, each with `tp` GPUs in every one of its `pp` pipeline stages."""

    tp: int = 1
    pp: int = 1
    dp: int = 1
    """Data parallel ranks, each with its own attention and KV cache; they share the experts."""
    has_expert_parallel: bool = False
    """Each GPU of a stage holds whole experts, instead of a part of each."""
    partition: tuple[int, ...] | None = None
    """Layers of each stage; None: the split of vLLM."""

    def __str__(self) -> str:
        ranks = f"DP {self.dp} x " if self.dp > 1 else ""
        return f"{ranks}TP {self.tp} x PP {self.pp}{' with EP' if self.has_expert_parallel else ''}"

    @property
    def gpu_count(self) -> int:
        return self.tp * self.pp * self.dp

    @property
    def expert_ranks(self) -> int:
        """Data parallel ranks whose tokens meet in the experts."""
        return self.dp if self.has_expert_parallel else 1

    @property
    def expert_gpus(self) -> int:
        """GPUs of a stage over which one copy of the experts is split."""
        return self.tp * self.expert_ranks


def write_parallelism(shape: ReplicaShape) -> dict[str, Any]:
    """Return `parallelism` of a model in the fleet file that pins the shape, with the layers that the planner finds."""
    keys: dict[str, Any] = {"tensor": shape.tp, "pipeline": shape.pp}
    if shape.dp > 1:
        keys["data"] = shape.dp
    if shape.has_expert_parallel:
        keys["expert"] = True
    return keys
