"""The sentences of a fit: what was found, with its numbers."""

from rayhelm.planner.memory.accounting import EngineConfig, MemoryResult, StageMemory
from rayhelm.planner.memory.gpu_memory import GIB

__all__ = ["explain_custom_engine", "explain_fit", "list_notes", "list_unknown_figures"]


def explain_fit(outcome: MemoryResult, *, tight: bool) -> str:
    """One sentence that says yes or no, and the figures that decide."""
    return _yes(outcome, tight=tight) if outcome.fits else _no(outcome)


def explain_custom_engine(outcome: MemoryResult) -> str:
    """For models that vLLM does not run: nothing but the weights can be known."""
    stage = outcome.weakest
    verdict = "are within" if outcome.fits else "exceed"
    return (
        f"{_gib(stage.weights)} of weights {verdict} the {_gib(stage.budget)} given of {_describe_gpu(stage)}; vLLM"
        f" does not run {outcome.ask.model.id}, so what its own application needs besides is not known"
    )


def list_unknown_figures(ask: EngineConfig) -> tuple[str, ...]:
    """Facts that the answer lacks."""
    missing = [f"vLLM does not run on {gpu.id}" for gpu in ask.gpus if gpu.engine == "none"]
    missing += [f"the memory that {gpu.id} leaves to programs is not known" for gpu in ask.gpus if not gpu.usable_gib]
    if ask.model.engine == "custom":
        missing.append("memory beyond the weights: the model is served by an application of its own")
    if ask.model.encoder and ask.model.encoder.kind != "text" and ask.model.engine == "vllm":
        missing.append(f"the profile run of the {ask.model.encoder.kind} encoder is not in the activations")
    return tuple(dict.fromkeys(missing))


def list_notes(ask: EngineConfig) -> tuple[str, ...]:
    """How the figures were counted, where that may surprise."""
    if ask.model.dtype == "float32" and ask.model.engine == "vllm":
        return ("the checkpoint is in float32: counted at 16 bits a weight, to which vLLM's `dtype: auto` casts it",)
    return ()


def _yes(outcome: MemoryResult, *, tight: bool) -> str:
    ask, stage = outcome.ask, outcome.weakest
    left = f"{_weights(stage, ask)}; {_gib(stage.cache)} (± {stage.error / GIB:.1f}) stay"
    if ask.cache is None:
        return f"fits{', tightly' if tight else ''}: {left}, and the model caches nothing"
    return (
        f"fits{', tightly' if tight else ''}: {left} for the cache, {outcome.tokens:,} tokens or "
        f"{outcome.concurrency:.1f} requests of {ask.context:,}{_pipeline(outcome)}"
    )


def _no(outcome: MemoryResult) -> str:
    ask, stage = outcome.ask, outcome.weakest
    if stage.cache <= 0:
        rest = stage.activation + stage.non_torch + stage.cuda_graphs
        return (
            f"does not fit: {_weights(stage, ask)}, activations and the rest {_gib(rest)}: "
            f"{_gib(-stage.cache)} too much{_pipeline(outcome)}"
        )
    needed = (outcome.request_blocks + ask.engine.null_block) * stage.block
    return (
        f"does not fit: one request of {ask.context:,} tokens needs {_gib(needed)} of cache, and {_gib(stage.cache)} "
        f"(± {stage.error / GIB:.1f}) stay; {_weights(stage, ask)}; "
        f"it holds up to {outcome.largest_context:,} tokens{_pipeline(outcome)}"
    )


def _weights(stage: StageMemory, ask: EngineConfig) -> str:
    return (
        f"weights take {_gib(stage.weights)}, where the engine may use {_gib(stage.budget)} "
        f"({ask.share:.2f} of {_describe_gpu(stage)})"
    )


def _pipeline(outcome: MemoryResult) -> str:
    if outcome.ask.pp == 1:
        return ""
    position = outcome.stages.index(outcome.weakest) + 1
    return f"; stage {position} of {outcome.ask.pp} ({outcome.weakest.layers} layers) decides for all"


def _describe_gpu(stage: StageMemory) -> str:
    return f"{stage.gpu.id}, {stage.gpu.usable_gib or 0:.1f} GiB"


def _gib(size: float) -> str:
    return f"{size / GIB:.1f} GiB"
