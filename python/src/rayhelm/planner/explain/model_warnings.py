"""Warnings of a model's plan, and what could not be estimated."""

from collections.abc import Iterator

from rayhelm.facts.engine_arguments import load_uncounted_arguments
from rayhelm.facts.licenses import find_license
from rayhelm.fleet.models import ModelSpec
from rayhelm.planner.explain.prefill_decode import warn_roles
from rayhelm.planner.explain.unknown_model import read_numbers
from rayhelm.planner.memory.offloaded_cache import count_offloaded_bytes
from rayhelm.planner.placement.candidates import Candidate
from rayhelm.planner.speed.terms import list_missing_figures

__all__ = ["list_unknown", "list_warnings", "warn_slow_growth"]

_BUILDS = {
    "vllm-unofficial": "only community builds of vLLM run on it",
    "none": "no build of vLLM is known to run on it",
}
SLOW_LOAD_S = 900.0
"""Load time above which a fleet that grew smaller cannot follow a morning's load."""
_MEMORY_PINS = ("dtype", "quantization")
"""Engine arguments that change the size of weights or cache. The estimate uses the published checkpoint instead."""


def list_warnings(chosen: Candidate) -> Iterator[str]:
    model_spec, capacity, spec = chosen.model_spec, chosen.capacity, chosen.model_spec.declared
    if model_spec.name == model_spec.written:  # reported for the first of its `pools`
        yield from _list_source_warnings(spec, model_spec.generates)
    if chosen.tight:
        lever = "Lower `context` or use a larger GPU" if chosen.share == 1 else "Raise `gpuFraction`"
        yield f"tight: the error of the memory estimate is larger than the margin, so the engine may not start. {lever}"
    if not capacity.meets_slo:
        yield from _list_missed_objectives(chosen)
    if chosen.split.nodes > 1 and capacity.basis == "model" and spec.traffic:
        yield from _warn_pipeline(chosen)
    if capacity.roles:
        yield from warn_roles(chosen)
    elif capacity.overloaded:
        yield f"{capacity.replicas} pinned replicas, and the planned load needs {capacity.needed}: requests will queue"
    elif capacity.replicas < capacity.needed + capacity.spare:
        yield (
            f"{capacity.replicas} pinned replicas, and `slo.capacityAvailability` needs {capacity.needed} and"
            f" {capacity.spare} spare"
        )
    if spec.slo.capacity_availability and chosen.split.inventory.pool.spot:
        yield (
            f"`slo.capacityAvailability` counts failures of GPUs and hosts, and pool `{chosen.split.inventory.name}` is"
            " spot: its interruptions come in addition"
        )
    if model_spec.has_deprecated_quantization and model_spec.model.quantization:
        yield (
            f"vLLM {model_spec.engine.version} reads {model_spec.model.quantization.method} checkpoints only with"
            " `allow_deprecated_quantization`, which the plan sets. A later version refuses them"
        )
    for gpu in dict.fromkeys(chosen.split.gpus):
        if gpu.engine != "vllm" and not model_spec.has_own_engine:
            yield f"{gpu.id}: {_BUILDS[gpu.engine]}. The `image` of the pool has to contain one"
        if gpu.vendor in ("amd", "intel") and not chosen.split.inventory.pool.device_groups:
            yield (
                f"{gpu.id}: set `deviceGroups` of the pool. Without it, pods that do not run as root may not open its"
                " device files"
            )


def _list_source_warnings(spec: ModelSpec, generates: bool) -> Iterator[str]:
    """Yield what the fleet file alone decides, on any pool."""
    is_in_hub = "/" in spec.source and ":" not in spec.source
    if not spec.revision and (is_in_hub or spec.source.startswith(("s3://", "gs://", "azure://", "abfss://"))):
        why = f" ({spec.unpinned_reason})" if spec.unpinned_reason else ""
        yield f"no `revision`: the weights of {spec.source} can change without notice{why}"
    if license := find_license(spec.source):
        yield f"the license of {spec.source} ({license.name}): {license.restriction}"
    yield from _compare_names(spec)
    if spec.slo.tpot and not generates:
        yield f"`slo.tpot` has no effect: the task `{spec.task}` generates no tokens"


def _compare_names(spec: ModelSpec) -> Iterator[str]:
    """Yield an `architecture` whose name has other sizes than that of weights that cannot be read."""
    theirs, ours = read_numbers(spec.source), read_numbers(spec.architecture or "")
    if spec.architecture and theirs and theirs != ours:
        yield (
            f"planned as {spec.architecture}, its `architecture`. Sizes or versions in the name of its `source` are"
            f" others ({', '.join(theirs)}), so the GPUs may be too few"
        )


def _warn_pipeline(chosen: Candidate) -> Iterator[str]:
    """Yield how far the number of GPUs of a pipeline over hosts can be trusted."""
    nodes = chosen.split.nodes
    yield (
        f"no measurement confirms the speed of a pipeline over {nodes} hosts: measure one replica before you buy GPUs"
        " for this plan"
    )
    if chosen.model_spec.model.attention.mla:
        yield (
            "the GPUs are an upper bound: each tensor parallel rank holds the whole KV cache of latent attention (MLA)."
            f" Data parallel ranks over {nodes} hosts would each hold their own, and rayhelm does not render them"
        )


def warn_slow_growth(chosen: Candidate, fewest: int, load_s: float) -> Iterator[str]:
    """Yield that a load which comes back after a quiet time is served late. `fewest`: replicas that always run."""
    planned = chosen.replicas
    if fewest < planned and load_s > SLOW_LOAD_S and not chosen.capacity.roles:
        yield (
            f"a new replica serves after {load_s / 60:.0f} minutes, and a quiet time leaves {fewest} of {planned}: a"
            f" load that returns waits so long. Set `replicas.min` to what it needs, up to {planned}"
        )


def list_unknown(chosen: Candidate) -> Iterator[str]:
    model_spec, gpus = chosen.model_spec, list(dict.fromkeys(chosen.split.gpus))
    for figure in dict.fromkeys(figure for gpu in gpus for figure in list_missing_figures(gpu)):
        yield f"{figure}: speed and replicas for the traffic were not estimated"
    if chosen.memory is None and model_spec.has_own_engine:
        yield "speed and working memory of the application: only the size of the weights was compared with the GPU"
    elif chosen.memory is None:
        yield f"usable memory of {chosen.split.gpu.id}, or a vLLM build for it: whether the model fits was not checked"
    if built := model_spec.model.built:
        yield (
            f"memory: weights{' and cache' if model_spec.model.stated else ''} are those that the classes of vLLM"
            f" {built.engine} build; working memory"
            + (" and speed are those of a dense model of this size" if model_spec.model.stated else " is estimated")
        )
    elif stated := model_spec.model.stated:
        yield (
            f"memory, unchecked: `memory` of the fleet file states {stated.weights / 2**30:.1f} GiB of weights and"
            f" {stated.kv_per_token / 2**10:.1f} KiB of cache per token; working memory and speed are those of a dense"
            " model of this size"
        )
    for key in _MEMORY_PINS:
        if key in model_spec.declared.engine and not (key == "quantization" and model_spec.published):
            yield f"memory with the pinned `{key}`: the estimate uses the published checkpoint"
    yield from _list_uncounted_memory(chosen)
    encoder = model_spec.model.encoder
    if encoder and encoder.kind == "audio" and encoder.cross_attention and not model_spec.has_own_engine:
        yield "speed of the audio encoder: one input of 30 s per request, at an assumed part of the nominal rate"
    if model_spec.adapters:
        yield "speed with adapters: their matrices are multiplied beside those of the model"
        if not chosen.eager:
            yield "memory of CUDA graphs with adapters: vLLM captures each size with and without them"
    if chosen.eager:
        yield "decode speed without CUDA graphs: the estimate assumes that they are on"
    if chosen.price_per_hour is None:
        yield f"price of {', '.join(gpu.id for gpu in gpus)}: set `price` of the pool, USD per GPU and hour"
    if model_spec.lengths.assumed and chosen.capacity.tpot:
        lengths = model_spec.lengths
        yield (
            "traffic: one replica is planned. TTFT is that of one request alone, and TPOT that of"
            f" {chosen.capacity.concurrency} requests in flight, each with {lengths.prompt} input and {lengths.answer}"
            " output tokens. There is no price per token"
        )
    elif model_spec.lengths.assumed:
        yield "traffic: one replica is planned, and there is no price per token"


def _list_uncounted_memory(chosen: Candidate) -> Iterator[str]:
    model, engine = chosen.model_spec.model, chosen.model_spec.declared.engine
    is_in_vllm = not chosen.model_spec.has_own_engine and model.encoder and model.encoder.kind != "text"
    if model.encoder and is_in_vllm and not engine.get("language_model_only"):
        yield f"memory of the {model.encoder.kind} encoder in vLLM's profile run, and of its cache of outputs"
    for key, what in load_uncounted_arguments().items() if engine else ():
        if engine.get(key):  # false, 0 and an empty map change nothing
            yield f"`{key}`: {what}"
    if count_offloaded_bytes(engine, 1) is None:
        yield "memory of the node for an offloaded KV cache: the engine arguments state no size above 0"
    if chosen.model_spec.kv_cache_dtype != (pinned := engine.get("kv_cache_dtype", "auto")):
        yield f"`kv_cache_dtype: {pinned}`: the estimate counts 16 bits"


def _list_missed_objectives(chosen: Candidate) -> Iterator[str]:
    """Yield the objectives that the pessimistic end of the estimate misses at the planned load."""
    spec, capacity = chosen.model_spec.declared, chosen.capacity
    for name, objective, found in (("ttft", spec.slo.ttft, capacity.ttft), ("tpot", spec.slo.tpot, capacity.tpot)):
        if objective and found and found.high > objective:
            yield (
                f"`slo.{name}` of {objective:g} s is not safe at the planned load: estimated {found.mid:.2g} s, 90 %"
                f" interval up to {found.high:.2g} s"
            )
