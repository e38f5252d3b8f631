"""Messages of `rayhelm fit`: the result with its figures."""

from rayhelm.facts.gpu import explain_assumed_memory
from rayhelm.planner.memory.accounting import EngineConfig, MemoryResult, StageMemory
from rayhelm.planner.memory.expert_padding import MARLIN, TRITON, compute_experts_growth, find_padding
from rayhelm.planner.memory.gpu_memory import GIB

__all__ = ["explain_custom_engine", "explain_fit", "list_notes", "list_unknown_figures"]


def explain_fit(result: MemoryResult, *, tight: bool) -> str:
    """Return one sentence: fits or not, and the figures that decide, GiB."""
    return _explain_success(result, tight=tight) if result.fits else _explain_failure(result)


def explain_custom_engine(result: MemoryResult) -> str:
    """Explain the result for a model that vLLM does not serve: only the weights are known."""
    stage = result.weakest
    verdict = "are within" if result.fits else "exceed"
    return (
        f"weights of {_gib(stage.weights)} {verdict} the budget of {_gib(stage.budget)} on {_describe_gpu(stage)}."
        f" vLLM does not serve {result.config.model.id}: the working memory of its application is not known"
    )


def list_unknown_figures(config: EngineConfig) -> tuple[str, ...]:
    """Return facts that the result lacks."""
    missing = [f"vLLM does not run on {gpu.id}" for gpu in config.gpus if gpu.engine == "none"]
    missing += [f"the usable memory of {gpu.id} is not known" for gpu in config.gpus if not gpu.usable_gib]
    if config.model.engine == "custom":
        missing.append("memory beyond the weights: the model is served by its own application, not by vLLM")
    if config.model.encoder and config.model.encoder.kind != "text" and config.model.engine == "vllm":
        kind = config.model.encoder.kind
        missing.append(f"memory of the {kind} encoder in vLLM's profile run: the activations do not include it")
    return tuple(dict.fromkeys(missing))


def list_notes(config: EngineConfig) -> tuple[str, ...]:
    """Return assumptions behind the figures."""
    notes = list(dict.fromkeys(explain_assumed_memory(gpu) for gpu in config.gpus if gpu.is_memory_assumed))
    if config.model.dtype == "float32" and config.model.engine == "vllm":
        notes.append("the checkpoint is float32; vLLM's `dtype: auto` casts it, so weights count 16 bits each")
    if config.moe_backend == "auto" and _has_triton_experts(config):
        notes.append(
            "experts in MXFP4 are counted with the kernel of Triton; where the package triton_kernels is missing, vLLM"
            " takes Marlin, which pads more: `moe_backend: marlin` counts it"
        )
    return tuple(notes)


def _has_triton_experts(config: EngineConfig) -> bool:
    growths = {padding: compute_experts_growth(config.model, config.shape.tp, padding) for padding in (TRITON, MARLIN)}
    return growths[MARLIN] > growths[TRITON] and any(find_padding(gpu) is TRITON for gpu in config.gpus)


def _explain_success(result: MemoryResult, *, tight: bool) -> str:
    config, stage = result.config, result.weakest
    left = (
        f"fits{', tightly' if tight else ''}: {_describe_weights(stage, config)}; {_gib(stage.cache)} ±{_error(stage)}"
    )
    if config.cache is None:
        return f"{left} are left; the model has no KV cache"
    return (
        f"{left} are left for the KV cache: {result.tokens:,} tokens, or {result.concurrency:.1f} requests of"
        f" {config.context:,} tokens{_describe_stage(result)}"
    )


def _explain_failure(result: MemoryResult) -> str:
    config, stage = result.config, result.weakest
    if stage.cache <= 0:
        rest = stage.activation + stage.non_torch + stage.cuda_graphs
        return (
            f"does not fit: {_describe_weights(stage, config)}; activations, non-torch memory and CUDA graphs take"
            f" {_gib(rest)}: {_gib(-stage.cache)} too much; with one request of {config.context:,} tokens,"
            f" {_gib(result.missing)} are missing{_describe_stage(result)}"
        )
    if result.lacks_state_blocks:
        return (
            f"does not fit: with CUDA graphs vLLM needs a block of the cache for each of the {config.seqs} sequences of"
            f" max_num_seqs, because layers have a recurrent state, and {_gib(stage.cache)} ±{_error(stage)} hold"
            f" {result.blocks} blocks; {_describe_weights(stage, config)}{_describe_stage(result)}"
        )
    check = " in the layers of all stages, which the check of vLLM 0.14 and 0.15 counts" if _counts_all(config) else ""
    return (
        f"does not fit: one request of {config.context:,} tokens needs {_gib(result.needed)} of KV cache{check}, and"
        f" {_gib(stage.cache)} ±{_error(stage)} are left: {_gib(result.missing)} are missing;"
        f" {_describe_weights(stage, config)}. The longest context that fits"
        f" is {result.largest_context:,} tokens{_describe_stage(result)}"
    )


def _counts_all(config: EngineConfig) -> bool:
    return config.engine.checks_all_layers and config.shape.pp > 1


def _describe_weights(stage: StageMemory, config: EngineConfig) -> str:
    return (
        f"weights take {_gib(stage.weights)} of the budget of {_gib(stage.budget)} ({config.share:.2f} of"
        f" {_describe_gpu(stage)})"
    )


def _describe_stage(result: MemoryResult) -> str:
    if result.config.shape.pp == 1:
        return ""
    position = result.stages.index(result.weakest) + 1
    return f"; stage {position} of {result.config.shape.pp} ({result.weakest.layers} layers) has the least cache"


def _describe_gpu(stage: StageMemory) -> str:
    return f"{stage.gpu.id}, {stage.gpu.usable_gib or 0:.1f} GiB"


def _error(stage: StageMemory) -> str:
    return f"{stage.error / GIB:.1f}"


def _gib(size: float) -> str:
    return f"{size / GIB:.1f} GiB"
