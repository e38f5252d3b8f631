"""What a plan warns of, and what it could not know."""

from collections.abc import Iterator

from rayhelm.planner.placement.candidates import Candidate
from rayhelm.planner.placement.performance import list_missing_figures

__all__ = ["list_unknown", "list_warnings"]

_BUILDS = {"vllm-unofficial": "community builds only", "none": "no known build"}
_MEMORY_PINS = ("dtype", "quantization")
"""Engine arguments that change the size of weights or cache, and that are counted as the checkpoint is published."""


def list_warnings(chosen: Candidate) -> Iterator[str]:
    model_spec, capacity, spec = chosen.model_spec, chosen.capacity, chosen.model_spec.declared
    if not spec.revision and "/" in spec.source and ":" not in spec.source:
        why = f" ({spec.unpinned_reason})" if spec.unpinned_reason else ""
        yield f"no `revision`: the weights of {spec.source} can change under you{why}"
    if chosen.tight:
        yield "tight: by the error of the estimate it may not start; lower `context`, or use a larger card"
    if not capacity.meets_tpot:
        yield "the tpot objective is out of reach by the estimate, even for one request alone"
    if not capacity.meets_ttft:
        yield f"the ttft objective is out of reach by the estimate: {capacity.ttft_s:.2g} s"
    if capacity.overloaded:
        yield f"{capacity.replicas} pinned replicas for a load that needs {capacity.needed}: requests will wait"
    if spec.slo.tpot and not model_spec.generates:
        yield f"`slo.tpot` means nothing for the task `{spec.task}`, which generates no tokens"
    for gpu in dict.fromkeys(chosen.split.gpus):
        if gpu.engine != "vllm" and not model_spec.has_own_engine:
            yield f"{gpu.id}: vLLM runs on it by {_BUILDS[gpu.engine]}; the pool's own `image` has to bring one"
        if gpu.vendor in ("amd", "intel") and not chosen.split.inventory.pool.device_groups:
            yield f"{gpu.id}: without the pool's `deviceGroups` a pod that is not root may not open its device files"


def list_unknown(chosen: Candidate) -> Iterator[str]:
    model_spec, gpus = chosen.model_spec, list(dict.fromkeys(chosen.split.gpus))
    for figure in dict.fromkeys(figure for gpu in gpus for figure in list_missing_figures(gpu)):
        yield f"{figure}: no speed, no replicas from traffic"
    if chosen.memory is None and model_spec.has_own_engine:
        yield "speed and working memory of an engine of one's own: only its weights were compared with the card"
    elif chosen.memory is None:
        yield f"memory or engine of {chosen.split.gpu.id}: whether the model fits was not checked"
    for key in _MEMORY_PINS:
        if key in model_spec.declared.engine:
            yield f"memory under the pinned `{key}`: counted as the checkpoint is published"
    if chosen.eager:
        yield "decode speed without CUDA graphs: the estimate assumes them"
    if chosen.price_per_hour is None:
        yield f"price of {', '.join(gpu.id for gpu in gpus)}: no cost; write the pool's `price`"
    if model_spec.lengths.assumed and model_spec.generates:
        lengths = model_spec.lengths
        yield (
            f"traffic: one replica is planned; speed and targets assume {lengths.prompt} tokens in and"
            f" {lengths.answer} out, and there is no price per token"
        )
    elif model_spec.lengths.assumed:
        yield "traffic: one replica is planned, and no price per token"
