"""Larger parts of the GPUs of a pool, for a model that its parts are too small for."""

from collections.abc import Iterator
from dataclasses import replace
from functools import partial

from rayhelm.errors import Fix, attempt
from rayhelm.facts import Catalog
from rayhelm.planner.placement.gpu_partitioning import GpuPartitioning, partition_gpus
from rayhelm.planner.placement.model_spec import ResolvedModelSpec
from rayhelm.planner.placement.model_splits import ModelSplit
from rayhelm.planner.placement.resolve import resolve_settings

__all__ = ["list_larger_parts"]


def list_larger_parts(model_spec: ResolvedModelSpec, split: ModelSplit, facts: Catalog) -> Iterator[Fix]:
    """Yield the number of equal parts that the model fits on: the one that leaves least of a GPU unused, then the
    largest one. No replica is split over parts, so a larger one is needed."""
    inventory = split.inventory
    sharing = inventory.pool.sharing
    if not inventory.partitioning or not sharing or not sharing.shares or split.shape.gpu_count > 1:
        return
    found: list[tuple[float, int, GpuPartitioning]] = []
    for shares in range(2, sharing.shares):
        pool = inventory.pool.model_copy(update={"sharing": sharing.model_copy(update={"shares": shares})})
        parts = attempt(partial(partition_gpus, inventory.name, pool, facts.gpu(inventory.gpu_name), facts))
        if parts and resolve_settings(model_spec, replace(split, gpus=(parts.parts[0][0],)), 1.0).fits:
            part = parts.parts[0][0]
            found.append((round(shares * (part.bf16_tflops or 0.0), 3), shares, parts))
    if not found:
        return
    _, shares, parts = max(found, key=lambda each: each[:2])
    gib = parts.parts[0][0].usable_gib or 0.0
    yield Fix(f"/pools.{inventory.name}.sharing.shares", shares, f"{parts}, {gib:.1f} GiB each")
