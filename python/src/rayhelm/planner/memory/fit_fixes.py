"""Find settings with which a model fits. Each one is evaluated before it is suggested."""

import re
from bisect import bisect_left
from collections.abc import Iterator
from dataclasses import replace
from functools import cache

from rayhelm.facts import Catalog
from rayhelm.facts.closed import Closed
from rayhelm.facts.gpu import GpuKind
from rayhelm.facts.model import Checkpoint
from rayhelm.facts.tensors import count_weights
from rayhelm.planner.memory.accounting import EngineConfig, MemoryResult, evaluate
from rayhelm.planner.memory.parallelism import list_split_errors, list_tensor_parallel_sizes
from rayhelm.planner.shape import ReplicaShape

__all__ = ["LEAST_CONTEXT", "FitFix", "list_fixes", "list_split_fixes"]

_QUANTIZED = re.compile(
    r"[-_.](fp8|awq|gptq|int[48]|w\d+a\d+|nvfp4|mxfp4|bnb|4bit|8bit|dynamic|block|quantized|marlin)(?=[-_.]|$)"
)
LEAST_CONTEXT = 512
"""Tokens. A shorter context is not suggested: few models are useful with it."""
_FEW_SEQUENCES = 16


class FitFix(Closed):
    """Settings with which the model would fit. All of them are needed together."""

    settings: dict[str, bool | int | str | tuple[int, ...]] = {}
    """By name: an engine argument (`max_model_len`), `layers`, `source` (another checkpoint) or `gpu`. Empty if no
    setting helps; `why` then says what does."""
    why: str = ""
    """What the settings cost or need."""

    def __str__(self) -> str:
        text = ", ".join(f"{name}: {_format(value)}" for name, value in self.settings.items())
        return "   # ".join(part for part in (text, self.why) if part)


def list_fixes(result: MemoryResult, facts: Catalog | None) -> tuple[FitFix, ...]:
    """Return the settings that fit, the cheapest first; at least one entry. `catalog`: where to look for checkpoints
    and GPUs."""
    found = [*_list_engine_fixes(result), *_split_fixes(result.config)]
    if facts:
        found += [*_list_smaller_checkpoints(result.config, facts), *_list_larger_gpus(result.config, facts)]
    none = "no setting, split or GPU that was tried holds the model: use a smaller model or fewer bits per weight"
    return tuple(found) or (FitFix(why=none),)


def list_split_fixes(config: EngineConfig) -> tuple[FitFix, ...]:
    """Return splits that vLLM accepts, if it refuses the requested one. Memory is not looked at."""
    sizes, tp = _list_sizes(config), config.shape.tp
    if not sizes:
        return (FitFix(settings={"enable_expert_parallel": False}, why="the model has no experts to divide"),)
    if tp not in sizes:
        nearest = min(sizes, key=lambda size: (abs(size - tp), -size))
        why = f"vLLM accepts {', '.join(map(str, sizes))} for this model"
        return (FitFix(settings={"tensor_parallel_size": nearest}, why=why),)
    if _is_refused(config, config.shape):
        why = f"the model has {config.model.layers} layers; vLLM has no pipeline parallelism for encoders"
        return (FitFix(settings={"pipeline_parallel_size": 1}, why=why),)
    return (FitFix(why="use a GPU of the catalog that vLLM runs on and whose usable memory is known"),)


def _format(value: bool | int | str | tuple[int, ...]) -> str:
    if isinstance(value, tuple):
        return f"[{', '.join(map(str, value))}]"
    return str(value).lower() if isinstance(value, bool) else str(value)


def _list_engine_fixes(result: MemoryResult) -> Iterator[FitFix]:
    config = result.config
    if config.cache and result.largest_context >= LEAST_CONTEXT:
        yield FitFix(settings={"max_model_len": result.largest_context}, why="the longest that fits")
    if config.cache and config.kv_cache_dtype == "auto" and _fits(replace(config, kv_cache_dtype="fp8")):
        yield FitFix(settings={"kv_cache_dtype": "fp8"}, why="half as many bytes of cache per token")
    if config.seqs > _FEW_SEQUENCES and _fits(replace(config, seqs=_FEW_SEQUENCES)):
        counts = (512, 256, 128, 64, 32, _FEW_SEQUENCES)
        fewer = next(n for n in counts if n < config.seqs and _fits(replace(config, seqs=n)))
        why = "fewer blocks for CUDA graphs" if result.lacks_state_blocks else "the sampler needs less memory"
        yield FitFix(settings={"max_num_seqs": fewer}, why=why)
    if not config.eager and _fits(replace(config, eager=True)):
        yield FitFix(settings={"enforce_eager": True}, why="slower: no CUDA graphs and no torch.compile")


def _split_fixes(config: EngineConfig) -> Iterator[FitFix]:
    """Yield splits over more GPUs of the same kind: the fewest in one host, and the fewest as stages. For different
    kinds, yield other numbers of layers per stage."""
    if len({gpu.id for gpu in config.gpus}) > 1:
        yield from _list_uneven_layers(config)
        return
    gpu, shape, sizes = config.gpus[0], config.shape, _list_sizes(config, limit=8)
    stages = [pp for pp in (2, 3, 4, 6, 8) if not _is_refused(config, replace(shape, pp=pp))]
    wider = next((tp for tp in sizes if tp > shape.tp and _fits(_split(config, gpu, tp, shape.pp))), None)
    longer = next((pp for pp in stages if pp > shape.pp and _fits(_split(config, gpu, shape.tp, pp))), None)
    if wider:
        yield FitFix(settings={"tensor_parallel_size": wider}, why=_describe_gpus(wider * shape.pp, gpu))
    if longer:
        yield FitFix(settings={"pipeline_parallel_size": longer}, why=_describe_gpus(shape.tp * longer, gpu))
    if not wider and not longer and sizes:
        both = next((pp for pp in stages if _fits(_split(config, gpu, sizes[-1], pp))), None)
        if both:
            yield FitFix(
                settings={"tensor_parallel_size": sizes[-1], "pipeline_parallel_size": both},
                why=f"{_describe_gpus(sizes[-1] * both, gpu)}, {sizes[-1]} per host",
            )


def _list_uneven_layers(config: EngineConfig) -> Iterator[FitFix]:
    """Move layers, one by one, from the stage with the largest shortage to the stage with most memory left."""
    for _ in range(config.model.layers):
        spare = [stage.cache for stage in evaluate(config).stages]
        least, most = spare.index(min(spare)), spare.index(max(spare))
        if least == most or config.layers[least] == 1:
            return
        moved = {least: -1, most: 1}
        partition = tuple(n + moved.get(stage, 0) for stage, n in enumerate(config.layers))
        config = replace(config, shape=replace(config.shape, partition=partition))
        if _fits(config):
            yield FitFix(settings={"layers": config.layers}, why="VLLM_PP_LAYER_PARTITION; needs this order of ranks")
            return


def _list_smaller_checkpoints(config: EngineConfig, facts: Catalog) -> Iterator[FitFix]:
    """Yield the same model with fewer bits per weight, the largest that fits."""
    size = count_weights(config.model).bytes
    for model in _group_checkpoints(facts).get(_get_base_name(config.model), ()):
        if count_weights(model).bytes >= size:
            continue
        smaller = replace(config, model=model, context=min(config.context, model.max_context))
        if not _is_refused(smaller, config.shape) and _fits(smaller):
            yield FitFix(
                settings={"source": model.id}, why=model.quantization.method if model.quantization else model.dtype
            )
            return


def _list_larger_gpus(config: EngineConfig, facts: Catalog) -> Iterator[FitFix]:
    """Yield the smallest GPU that holds the model under the same split. What fits on one fits on all larger ones."""
    by_size = _sort_gpus_by_size(facts)
    found = bisect_left(by_size, True, key=lambda gpu: _fits(replace(config, gpus=(gpu,) * config.shape.pp)))
    if found < len(by_size):
        yield FitFix(settings={"gpu": by_size[found].id}, why=f"{by_size[found].usable_gib:.0f} GiB")


@cache
def _sort_gpus_by_size(facts: Catalog) -> tuple[GpuKind, ...]:
    known = [gpu for gpu in facts.gpus() if gpu.usable_gib and gpu.engine == "vllm" and not gpu.unified_memory]
    return tuple(sorted(known, key=lambda gpu: (gpu.usable_gib or 0.0, gpu.price.on_demand or float("inf"))))


@cache
def _group_checkpoints(facts: Catalog) -> dict[str, tuple[Checkpoint, ...]]:
    """Return checkpoints of one model that differ in bits per weight, by common name, the largest first."""
    found: dict[str, list[Checkpoint]] = {}
    for model in facts.models():
        found.setdefault(_get_base_name(model), []).append(model)
    return {base: tuple(sorted(models, key=lambda m: -count_weights(m).bytes)) for base, models in found.items()}


def _split(config: EngineConfig, gpu: GpuKind, tp: int, pp: int) -> EngineConfig:
    """Return the same over other GPUs. A given partition is valid for its own number of stages only."""
    partition = config.shape.partition if pp == config.shape.pp else None
    return replace(config, gpus=(gpu,) * pp, shape=replace(config.shape, tp=tp, pp=pp, partition=partition))


def _list_sizes(config: EngineConfig, limit: int = 32) -> tuple[int, ...]:
    shape = config.shape
    return list_tensor_parallel_sizes(
        config.model, config.engine, limit, has_expert_parallel=shape.has_expert_parallel, dp=shape.dp
    )


def _is_refused(config: EngineConfig, shape: ReplicaShape) -> bool:
    """Return whether vLLM would refuse this split of the model."""
    return bool(list_split_errors(config.model, shape, config.engine))


def _fits(config: EngineConfig) -> bool:
    return evaluate(config).fits


def _describe_gpus(count: int, gpu: GpuKind) -> str:
    return f"{count} x {gpu.id}"


def _get_base_name(model: Checkpoint) -> str:
    """Return the name without its quantization: `llama-3.1-405b-instruct`."""
    return _QUANTIZED.sub("", model.id.rpartition("/")[2].lower())
