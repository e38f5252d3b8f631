"""Engine arguments that contradict each other or the share of the GPU."""

from collections.abc import Iterator
from math import floor

from rayhelm.errors import Fix, Problem
from rayhelm.fleet.models import ModelSpec
from rayhelm.fleet.problems import problem_at
from rayhelm.fleet.yaml_nodes import Path

__all__ = ["check_engine_limits"]

_FREE = 0.92
"""Part of a GPU that its engines may have together. With more, the one that starts last finds too little memory."""


def check_engine_limits(model: ModelSpec, path: Path) -> Iterator[Problem]:
    """Yield what vLLM refuses at its start, and memory that another engine on the GPU has."""
    seqs, tokens = _int(model, "max_num_seqs"), _int(model, "max_num_batched_tokens")
    if seqs and tokens and tokens < seqs:
        message = f"is {tokens}, below `max_num_seqs` of {seqs}: vLLM refuses it"
        yield problem_at((*path, "max_num_batched_tokens"), message, Fix("", seqs))
    elif tokens and model.context and tokens < model.context and model.engine.get("enable_chunked_prefill") is False:
        message = f"is {tokens}, below `context` of {model.context}, without chunked prefill: vLLM refuses it"
        yield problem_at((*path, "max_num_batched_tokens"), message, Fix("", model.context))
    used, share = model.engine.get("gpu_memory_utilization"), model.gpu_fraction or 1.0
    most = _FREE * share
    if isinstance(used, (int, float)) and not isinstance(used, bool) and share < 1 and used > most + 1e-9:
        part = f"{_FREE:g} of the `gpuFraction` of {share:g}"
        message = f"is {used:g}, more than {part}: other engines on the GPU have the rest"
        fix = Fix("", floor(most * 100 + 1e-9) / 100, f"{_FREE:g} x {share:g}, rounded down")
        yield problem_at((*path, "gpu_memory_utilization"), message, fix)


def _int(model: ModelSpec, key: str) -> int | None:
    value = model.engine.get(key)
    return value if isinstance(value, int) and not isinstance(value, bool) else None
