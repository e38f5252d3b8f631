"""What would make a model fit: each suggestion was evaluated before it is made."""

import re
from bisect import bisect_left
from collections.abc import Iterator
from dataclasses import replace
from functools import cache

from rayhelm.catalog import Catalog
from rayhelm.catalog.gpu import GpuKind
from rayhelm.catalog.model import Checkpoint
from rayhelm.catalog.tensors import count_weights
from rayhelm.planner.memory.accounting import EngineConfig, MemoryResult, evaluate
from rayhelm.planner.memory.parallelism import list_split_errors, list_tensor_parallel_sizes

__all__ = ["list_fixes", "list_split_fixes"]

_QUANTISED = re.compile(
    r"[-_.](fp8|awq|gptq|int[48]|w\d+a\d+|nvfp4|mxfp4|bnb|4bit|8bit|dynamic|block|quantized|marlin)(?=[-_.]|$)"
)
_LEAST_CONTEXT = 512
"""Suggesting less helps nobody."""
_FEW_SEQUENCES = 16


def list_fixes(outcome: MemoryResult, catalog: Catalog | None) -> tuple[str, ...]:
    """Ways out, the cheapest first."""
    found = [*_settings(outcome), *_splits(outcome.ask)]
    if catalog:
        found += [*_smaller_checkpoints(outcome.ask, catalog), *_larger_gpus(outcome.ask, catalog)]
    return tuple(found) or ("no setting, split or card that was tried holds it: take a smaller model or fewer bits",)


def list_split_fixes(ask: EngineConfig) -> tuple[str, ...]:
    """Splits that vLLM takes, where the asked one is refused before memory matters."""
    sizes = list_tensor_parallel_sizes(ask.model, ask.engine)
    if ask.tp not in sizes:
        return (f"tensor_parallel_size: {' or '.join(map(str, sizes))}",)
    if list_split_errors(ask.model, ask.tp, ask.pp, ask.engine):
        return (f"pipeline_parallel_size: 1, or at most {ask.model.layers} for models that vLLM can cut",)
    return ("take a GPU of the catalog whose memory is known and that vLLM runs on",)


def _settings(outcome: MemoryResult) -> Iterator[str]:
    ask = outcome.ask
    if ask.cache and outcome.largest_context >= _LEAST_CONTEXT:
        yield f"max_model_len: {outcome.largest_context}"
    if ask.cache and ask.kv_cache_dtype == "auto" and _fits(replace(ask, kv_cache_dtype="fp8")):
        yield "kv_cache_dtype: fp8, which halves the bytes of a token"
    if ask.seqs > _FEW_SEQUENCES and _fits(replace(ask, seqs=_FEW_SEQUENCES)):
        fewer = next(n for n in (256, 128, 64, 32, _FEW_SEQUENCES) if n < ask.seqs and _fits(replace(ask, seqs=n)))
        yield f"max_num_seqs: {fewer}, which makes the sampler's memory smaller"
    if not ask.eager and _fits(replace(ask, eager=True)):
        yield "enforce_eager: true, without CUDA graphs and torch.compile; it costs speed"


def _splits(ask: EngineConfig) -> Iterator[str]:
    """More of the same cards: the fewest in one host, and the fewest as stages. Unlike cards: other layers each."""
    if len({gpu.id for gpu in ask.gpus}) > 1:
        yield from _uneven_layers(ask)
        return
    gpu, sizes = ask.gpus[0], list_tensor_parallel_sizes(ask.model, ask.engine, limit=8)
    stages = [pp for pp in (2, 3, 4, 6, 8) if not list_split_errors(ask.model, ask.tp, pp, ask.engine)]
    wider = next((tp for tp in sizes if tp > ask.tp and _fits(_split(ask, gpu, tp, ask.pp))), None)
    longer = next((pp for pp in stages if pp > ask.pp and _fits(_split(ask, gpu, ask.tp, pp))), None)
    if wider:
        yield f"tensor_parallel_size: {wider} ({_describe_gpus(wider * ask.pp, gpu)})"
    if longer:
        yield f"pipeline_parallel_size: {longer} ({_describe_gpus(ask.tp * longer, gpu)})"
    if not wider and not longer and sizes:
        both = next((pp for pp in stages if _fits(_split(ask, gpu, sizes[-1], pp))), None)
        if both:
            total = _describe_gpus(sizes[-1] * both, gpu)
            yield f"tensor_parallel_size: {sizes[-1]} and pipeline_parallel_size: {both} ({total})"


def _uneven_layers(ask: EngineConfig) -> Iterator[str]:
    """Move layers, one by one, from the stage that lacks most to the stage with most to spare."""
    for _ in range(ask.model.layers):
        spare = [stage.cache for stage in evaluate(ask).stages]
        least, most = spare.index(min(spare)), spare.index(max(spare))
        if least == most or ask.layers[least] == 1:
            return
        moved = {least: -1, most: 1}
        ask = replace(ask, partition=tuple(n + moved.get(stage, 0) for stage, n in enumerate(ask.layers)))
        if _fits(ask):
            yield f"layers: {list(ask.layers)} (VLLM_PP_LAYER_PARTITION), with the ranks held in this order"
            return


def _smaller_checkpoints(ask: EngineConfig, catalog: Catalog) -> Iterator[str]:
    """The same model with fewer bits, the largest that fits."""
    size = count_weights(ask.model).bytes
    for model in _checkpoints(catalog).get(_base(ask.model), ()):
        if count_weights(model).bytes >= size:
            continue
        asked = replace(ask, model=model, context=min(ask.context, model.max_context))
        if not list_split_errors(model, ask.tp, ask.pp, ask.engine) and _fits(asked):
            method = model.quantization.method if model.quantization else model.dtype
            yield f"source: {model.id} ({method})"
            return


def _larger_gpus(ask: EngineConfig, catalog: Catalog) -> Iterator[str]:
    """The smallest card that holds it under the same split; what fits one fits all that are larger."""
    by_size = _gpus_by_size(catalog)
    found = bisect_left(by_size, True, key=lambda gpu: _fits(_split(ask, gpu, ask.tp, ask.pp)))
    if found < len(by_size):
        yield f"gpu: {by_size[found].id} ({by_size[found].usable_gib:.0f} GiB)"


@cache
def _gpus_by_size(catalog: Catalog) -> tuple[GpuKind, ...]:
    known = [gpu for gpu in catalog.gpus() if gpu.usable_gib and gpu.engine == "vllm" and not gpu.unified_memory]
    return tuple(sorted(known, key=lambda gpu: (gpu.usable_gib or 0.0, gpu.price.on_demand or float("inf"))))


@cache
def _checkpoints(catalog: Catalog) -> dict[str, tuple[Checkpoint, ...]]:
    """Models that differ in bits alone, by their common name, the largest first."""
    found: dict[str, list[Checkpoint]] = {}
    for model in catalog.models():
        found.setdefault(_base(model), []).append(model)
    return {base: tuple(sorted(models, key=lambda m: -count_weights(m).bytes)) for base, models in found.items()}


def _split(ask: EngineConfig, gpu: GpuKind, tp: int, pp: int) -> EngineConfig:
    """The same on other cards; a given partition only holds for its own number of stages."""
    return replace(ask, gpus=(gpu,) * pp, tp=tp, partition=ask.partition if pp == ask.pp else None)


def _fits(ask: EngineConfig) -> bool:
    return evaluate(ask).fits


def _describe_gpus(count: int, gpu: GpuKind) -> str:
    return f"{count} x {gpu.id}"


def _base(model: Checkpoint) -> str:
    """Name without its quantisation: `llama-3.1-405b-instruct`."""
    return _QUANTISED.sub("", model.id.rpartition("/")[2].lower())
