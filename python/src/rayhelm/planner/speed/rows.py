"""Measured rows: `data/performance/measured.csv`."""

import csv
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from importlib.resources import files

from rayhelm.facts import load_catalog
from rayhelm.facts.model import Checkpoint, Quantization
from rayhelm.planner.shape import ReplicaShape
from rayhelm.planner.speed.build import build_replica
from rayhelm.planner.speed.replica import Load, Replica, find_format

__all__ = [
    "MeasuredRow",
    "count_rows_by_gpu",
    "describe_unmeasured",
    "find_architecture",
    "load_rows",
    "replica_of_row",
]

_QUANTIZATION = {
    "fp8": Quantization(method="fp8", bits=8, scale_bits=32),
    "nvfp4": Quantization(method="nvfp4", bits=4, group_size=16, scale_bits=8),
    "int4": Quantization(method="compressed-tensors", bits=4, group_size=32, only_experts=True, attention=False),
}
_SPARE_CONTEXT = 256
"""Tokens that a benchmark's max_model_len has beside prompt and response."""


@dataclass(frozen=True)
class MeasuredRow:
    """One measured row. Times in seconds."""

    model: str
    weights: str
    kv_cache_dtype: str
    gpu: str
    shape: ReplicaShape
    load: Load
    ttft_s: float | None
    tpot_s: float
    vllm: str
    source: str
    row: str
    replica: Replica | None = None
    """Replica that was measured; None: the one that the fields above describe."""

    def __hash__(self) -> int:
        # A plan looks rows up thousands of times; the hash of all fields takes several times as long.
        return hash((self.source, self.row, self.tpot_s))

    @property
    def reference(self) -> str:
        return f"{self.source}: {self.row}"

    @property
    def architecture(self) -> tuple[object, ...]:
        return _find_architecture(self.model, self.weights)


@cache
def load_rows() -> tuple[MeasuredRow, ...]:
    return tuple(_read_rows())


@cache
def count_rows_by_gpu() -> Counter[str]:
    return Counter(row.gpu for row in load_rows())


def describe_unmeasured(load: Load, own: tuple[MeasuredRow, ...] = ()) -> str:
    """Return in what a load differs from that of all rows; empty if rows reach it. `own`: rows of the fleet."""
    most, fewest = _find_range_of_all()
    if own:
        longest, shortest = _find_range(own)
        most, fewest = max(most, longest), min(fewest, shortest)
    new = load.input_tokens - load.cached_tokens
    found = [f"prompts of {new:,.0f} tokens (most: {most:,.0f})"] if new > most else []
    if load.output_tokens < fewest:
        found.append(f"responses of {load.output_tokens:,.0f} tokens (fewest: {fewest:,.0f})")
    return " or ".join(found)


@cache
def _find_range_of_all() -> tuple[float, float]:
    return _find_range(load_rows())


def _find_range(rows: tuple[MeasuredRow, ...]) -> tuple[float, float]:
    """Return the longest prompt and the shortest response that were measured, tokens."""
    return max(row.load.input_tokens for row in rows), min(row.load.output_tokens for row in rows)


def _read_rows() -> Iterator[MeasuredRow]:
    text = files("rayhelm").joinpath("data/performance/measured.csv").read_text(encoding="utf-8")
    for row in csv.DictReader(line for line in text.splitlines() if not line.startswith("#")):
        yield MeasuredRow(
            model=row["model"],
            weights=row["weights"],
            kv_cache_dtype=row["kv_cache_dtype"],
            gpu=row["gpu"],
            shape=ReplicaShape(int(row["tp"]), dp=int(row["dp"]), has_expert_parallel=row["ep"] == "true"),
            load=Load(float(row["input_tokens"]), float(row["output_tokens"]), float(row["concurrency"])),
            ttft_s=float(row["ttft_ms"]) / 1e3 if row["ttft_ms"] else None,
            tpot_s=float(row["tpot_ms"]) / 1e3,
            vllm=row["vllm"],
            source=row["source"],
            row=row["row"],
        )


@cache
def replica_of_row(row: MeasuredRow) -> Replica:
    """Return the replica that was measured."""
    if row.replica:
        return row.replica
    gpu = load_catalog().gpu(row.gpu)
    context = int(row.load.input_tokens + row.load.output_tokens) + _SPARE_CONTEXT
    engine = {"kv_cache_dtype": row.kv_cache_dtype}
    replica, _ = build_replica(_find_model(row.model, row.weights), [gpu], row.shape, context=context, engine=engine)
    return replica


@cache
def _find_model(name: str, weights: str) -> Checkpoint:
    model = load_catalog().model(name)
    if weights == "mxfp4":
        return model
    return model.model_copy(update={"quantization": _QUANTIZATION.get(weights)})


@cache
def _find_architecture(name: str, weights: str) -> tuple[object, ...]:
    return find_architecture(_find_model(name, weights))


def find_architecture(model: Checkpoint) -> tuple[object, ...]:
    """Return what two checkpoints of the same speed have in common."""
    attention, experts = model.attention, model.experts
    return (
        model.layers,
        model.hidden,
        model.intermediate,
        (attention.heads, attention.kv_heads, attention.head_dim),
        (experts.count, experts.active, experts.intermediate) if experts else None,
        find_format(model.quantization),
    )
