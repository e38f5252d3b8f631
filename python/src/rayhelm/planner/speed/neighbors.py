"""Correct the speed model by measured rows of the same model on the same GPU."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cache
from math import exp, log, log2

from rayhelm.facts.engines import find_engine
from rayhelm.facts.versions import versions
from rayhelm.planner.memory.kv_cache import count_token_bytes
from rayhelm.planner.speed.model import compute_speed
from rayhelm.planner.speed.replica import Load, Replica
from rayhelm.planner.speed.rows import MeasuredRow, find_architecture, load_rows, replica_of_row

__all__ = ["Correction", "correct", "find_rows", "list_row_gpus"]

_WIDTHS = {"tp": 1.0, "concurrency": 1.5, "input": 1.5, "output": 2.0}
"""Doublings over which a row loses its weight."""
_PRIOR_WEIGHT = 0.3
"""Weight of the model itself, as of a row without a deviation."""
_LEAST_WEIGHT = 0.1
"""Weight of the nearest row up to which the rows tell nothing."""
_FULL_WEIGHT = 0.5
"""Weight of the nearest row from which the whole correction applies. Between both it grows linearly: at a step, more
requests or longer prompts would shorten an estimate."""
_SAME = 0.03
"""Loads that differ by less are the same."""
_MOST = 0.7
"""A row deviates at most by this logarithm: more is another setting of the engine, which the row does not record."""
_MOST_REFERENCES = 5


@dataclass(frozen=True)
class Correction:
    """Logarithm of the factor on each figure of the model, and where it comes from."""

    tpot: float = 0.0
    ttft: float = 0.0
    basis: str = "model"
    """`measured`, `interpolated` or `model`."""
    references: tuple[str, ...] = ()
    confidence: float = 0.0
    """Part of the correction that applies: 1 near measured rows, 0 where the model of speed is alone."""

    def over(self, other: "Correction") -> "Correction":
        """Return this correction, completed by another one where it applies only in part."""
        if self.confidence == 1 or not other.confidence:
            return self
        if not self.confidence:
            return other
        left = 1 - self.confidence
        return Correction(
            self.tpot + left * other.tpot,
            self.ttft + left * other.ttft,
            "interpolated",
            (*self.references, *other.references)[:_MOST_REFERENCES],
            self.confidence + left * other.confidence,
        )


def find_rows(replica: Replica) -> tuple[MeasuredRow, ...]:
    """Return the rows of this model and GPU. A part of a GPU and a pipeline were not measured."""
    if replica.shape.pp > 1 or replica.share < 1 or replica.speculation:
        return ()
    return _index_rows().get((replica.gpus[0].id, replica.shape.dp, find_architecture(replica.model)), ())


def list_row_gpus(replica: Replica) -> tuple[str, ...]:
    """Return the GPUs on which the model was measured."""
    architecture = find_architecture(replica.model)
    return tuple(gpu for gpu, ranks, measured in _index_rows() if (ranks, measured) == (replica.shape.dp, architecture))


@cache
def _index_rows() -> dict[tuple[str, int, tuple[object, ...]], tuple[MeasuredRow, ...]]:
    found: dict[tuple[str, int, tuple[object, ...]], tuple[MeasuredRow, ...]] = {}
    for row in load_rows():
        key = (row.gpu, row.shape.dp, row.architecture)
        found[key] = (*found.get(key, ()), row)
    return found


def correct(replica: Replica, load: Load, rows: Sequence[MeasuredRow], kv_cache_dtype: str = "auto") -> Correction:
    """Return the correction by the rows that are near the load.

    `kv_cache_dtype`: the one of the query. Rows are compared with the model at this setting, because they do not record
    theirs.
    """
    near = sorted(((_measure_distance(replica, load, row), row) for row in rows), key=lambda pair: pair[0])
    same = [row for distance, row in near if distance == 0.0]
    if same:
        references = tuple(row.reference for row in same[:_MOST_REFERENCES])
        first = [value for row in same if (value := _deviate(row, kv_cache_dtype)[1]) is not None]
        tpot = _median([_deviate(row, kv_cache_dtype)[0] for row in same])
        return Correction(tpot, _median(first) if first else 0.0, "measured", references, 1.0)
    weights = [(exp(-(distance**2) / 2), row) for distance, row in near]
    strong = [row for weight, row in weights if weight > _LEAST_WEIGHT]
    if not strong:
        return Correction()
    confidence = min(1.0, (weights[0][0] - _LEAST_WEIGHT) / (_FULL_WEIGHT - _LEAST_WEIGHT))
    tpot = ttft = tpot_weight = ttft_weight = 0.0
    for weight, row in weights:
        step, first_token = _deviate(row, kv_cache_dtype)
        tpot += weight * _limit(step)
        tpot_weight += weight
        if first_token is not None:
            ttft += weight * _limit(first_token)
            ttft_weight += weight
    return Correction(
        confidence * tpot / (tpot_weight + _PRIOR_WEIGHT),
        confidence * ttft / (ttft_weight + _PRIOR_WEIGHT),
        "interpolated",
        tuple(row.reference for row in strong[:_MOST_REFERENCES]),
        confidence,
    )


def _measure_distance(replica: Replica, load: Load, row: MeasuredRow) -> float:
    ours, theirs = replica.shape, row.shape
    pairs = {
        "tp": (ours.tp, theirs.tp),
        "concurrency": (load.concurrency, row.load.concurrency),
        "input": (load.input_tokens - load.cached_tokens, row.load.input_tokens),
        "output": (load.output_tokens, row.load.output_tokens),
    }
    apart = {name: abs(log2(max(asked, 1e-6) / measured)) for name, (asked, measured) in pairs.items()}
    is_same_split = (ours.tp, ours.has_expert_parallel) == (theirs.tp, theirs.has_expert_parallel)
    if is_same_split and all(value < _SAME for value in apart.values()):
        return 0.0
    other = 0.5 if ours.has_expert_parallel != theirs.has_expert_parallel else 0.0
    squares = sum((value / _WIDTHS[name]) ** 2 for name, value in apart.items())
    return max(1e-3, float((squares + other**2) ** 0.5))


@cache
def _deviate(row: MeasuredRow, kv_cache_dtype: str) -> tuple[float, float | None]:
    """Return the logarithm of measured over modeled TPOT and TTFT."""
    replica = replica_of_row(row)
    if kv_cache_dtype != row.kv_cache_dtype:
        constants, _ = find_engine(versions().vllm)
        ours = count_token_bytes(replica.model, row.shape, kv_cache_dtype, constants)
        tokens = replica.kv_tokens * replica.kv_bytes_per_token / ours if replica.kv_tokens and ours else None
        replica = replace(replica, kv_bytes_per_token=ours, kv_tokens=tokens)
    modeled = compute_speed(replica, row.load)
    first = log(row.ttft_s / modeled.ttft_s) if row.ttft_s else None
    return log(row.tpot_s / modeled.tpot_s), first


def _limit(value: float) -> float:
    return max(-_MOST, min(_MOST, value))


def _median(values: list[float]) -> float:
    ordered, half = sorted(values), len(values) // 2
    return ordered[half] if len(ordered) % 2 else (ordered[half - 1] + ordered[half]) / 2
