"""Tensor and pipeline parallel sizes that vLLM accepts for a model, and the layers of each pipeline stage."""

from collections.abc import Iterator

from rayhelm.errors import Fix, FleetError, Problem
from rayhelm.facts.engines import EngineConstants
from rayhelm.facts.model import BuiltMemory, Checkpoint
from rayhelm.planner.shape import ReplicaShape

__all__ = ["find_partition", "list_context_errors", "list_split_errors", "list_tensor_parallel_sizes", "split_layers"]

_SIZES = (1, 2, 3, 4, 5, 6, 7, 8, 12, 16, 24, 32)
_FREE_OF_GROUPS = ("mxfp4", "bitsandbytes")
"""Methods without limits by groups: MXFP4 kernels pad, bitsandbytes quantizes the part of each rank."""


def split_layers(layers: int, stages: int) -> tuple[int, ...]:
    """Return layers per stage as vLLM splits them. Remaining layers go to the stages before the last one, from the
    back, because the last stage also has the output head."""
    share, rest = divmod(layers, stages)
    return tuple(share + (stages - 1 - rest <= stage < stages - 1) for stage in range(stages))


def find_partition(model: Checkpoint, shape: ReplicaShape) -> tuple[int, ...]:
    """Return layers per stage: those of the shape (VLLM_PP_LAYER_PARTITION), or vLLM's own split. Raises FleetError if
    those of the shape do not add up to the layers of the model."""
    given, stages = shape.partition, shape.pp
    if given is None:
        return split_layers(model.layers, stages)
    if len(given) != stages or sum(given) != model.layers or min(given) < 1:
        raise FleetError(
            Problem(
                f"layers {list(given)} do not split the {model.layers} layers of {model.id} into {stages} stages",
                fix=Fix("layers", list(split_layers(model.layers, stages))),
            )
        )
    return given


def list_split_errors(model: Checkpoint, shape: ReplicaShape, engine: EngineConstants) -> tuple[str, ...]:
    """Return reasons why vLLM would refuse this split, or why it is not planned; empty if there are none. Expert
    parallelism without effect counts as refused too."""
    if model.built:
        return tuple(_list_built_errors(model.built, shape))
    return (
        *_list_tensor_errors(model, shape.tp, engine, shape.has_expert_parallel),
        *_list_pipeline_errors(model, shape.pp),
        *(_list_expert_errors(model, shape.expert_gpus) if shape.has_expert_parallel else ()),
        *(_list_data_errors(model, shape) if shape.dp > 1 else ()),
    )


def list_context_errors(model: Checkpoint, tp: int, dcp: int) -> tuple[str, ...]:
    """Return reasons why vLLM would refuse a decode context parallel size: it spreads the tokens over ranks that would
    hold the same KV heads otherwise."""
    if dcp == 1:
        return ()
    heads = 1 if model.attention.mla else model.attention.kv_heads
    copies = max(1, tp // heads)
    if model.attention.windowed_layers or model.recurrence or not model.causal:
        return (f"decode_context_parallel_size {dcp} needs full attention in all layers of {model.id}",)
    if tp % dcp or copies % dcp:
        return (
            f"decode_context_parallel_size {dcp} does not divide the {copies} ranks that hold the same KV heads"
            f" ({heads} KV heads, tensor parallel size {tp})",
        )
    return ()


def list_tensor_parallel_sizes(
    model: Checkpoint, engine: EngineConstants, limit: int = 32, *, has_expert_parallel: bool = False, dp: int = 1
) -> tuple[int, ...]:
    """Return the sizes that vLLM accepts, up to `limit`; with expert parallelism those on which it has an effect."""
    shapes = (ReplicaShape(tp, 1, dp, has_expert_parallel) for tp in _SIZES if tp <= limit)
    return tuple(shape.tp for shape in shapes if not list_split_errors(model, shape, engine))


def _list_built_errors(built: BuiltMemory, shape: ReplicaShape) -> Iterator[str]:
    tp = shape.tp
    sizes = ", ".join(str(rank.tensor_parallel_size) for rank in built.ranks)
    if built.find(tp) is None:
        every = sorted({tp, *(rank.tensor_parallel_size for rank in built.ranks)})
        add = " ".join(("rayhelm catalog add CONFIG", *(f"--tp {size}" for size in every)))
        yield f"the data file of the model has tensor parallel size {sizes}, and not {tp}: `{add}`"
    if shape.pp > 1 or shape.dp > 1 or shape.has_expert_parallel:
        yield (
            "the data file of the model has the memory of tensor parallelism alone: no pipeline stages, expert"
            " parallelism or data parallel ranks"
        )


def _list_data_errors(model: Checkpoint, shape: ReplicaShape) -> Iterator[str]:
    if model.experts is None:
        yield f"data parallel ranks share experts, and {model.id} has none: use {shape.dp} replicas instead"
    elif not shape.has_expert_parallel:
        yield f"data parallel size {shape.dp} is planned with expert parallelism only"
    if shape.pp > 1:
        yield f"data parallel size {shape.dp} is not planned with {shape.pp} pipeline stages"


def _list_expert_errors(model: Checkpoint, ranks: int) -> Iterator[str]:
    if model.experts is None:
        yield f"expert parallelism needs a mixture-of-experts model, and {model.id} has no experts"
    elif ranks == 1:
        yield "expert parallelism divides the experts over the GPUs of a stage, and tensor parallel size 1 has one GPU"
    elif ranks > model.experts.count:
        yield f"{model.experts.count} experts are fewer than the {ranks} GPUs of a stage"


def _list_tensor_errors(
    model: Checkpoint, tp: int, engine: EngineConstants, has_expert_parallel: bool
) -> Iterator[str]:
    if tp == 1:
        return
    attention = model.attention
    if attention.heads % tp:
        yield f"{attention.heads} attention heads are not divisible by tensor parallel size {tp}"
    if not attention.mla and attention.kv_heads % tp and tp % attention.kv_heads:
        yield f"{attention.kv_heads} KV heads are neither a multiple nor a divisor of tensor parallel size {tp}"
    if attention.full and attention.full.kv_heads % tp and tp % attention.full.kv_heads:
        yield (
            f"{attention.full.kv_heads} KV heads of layers with full attention are neither a multiple nor a divisor of"
            f" tensor parallel size {tp}"
        )
    if model.recurrence and model.recurrence.heads * model.recurrence.head_dim % tp:
        width = model.recurrence.heads * model.recurrence.head_dim
        yield f"the recurrent state of {width} channels is not divisible by tensor parallel size {tp}"
    if model.recurrence and model.recurrence.heads > 1 and model.recurrence.heads % tp:
        yield f"{model.recurrence.heads} heads of the recurrent state are not divisible by tensor parallel size {tp}"
    for name, width in _list_widths(model, has_expert_parallel):
        if width % tp:
            yield f"{name} of {width} is not divisible by tensor parallel size {tp}"
    padded = -(-model.vocab // engine.vocabulary_padding) * engine.vocabulary_padding
    if padded % tp:
        yield f"the vocabulary, padded to {padded}, is not divisible by tensor parallel size {tp}"
    if model.encoder and model.encoder.kind != "vision" and model.encoder.heads % tp:
        yield f"{model.encoder.heads} encoder heads are not divisible by tensor parallel size {tp}"
    yield from _list_quantization_errors(model, tp, has_expert_parallel)


def _list_quantization_errors(model: Checkpoint, tp: int, has_expert_parallel: bool) -> Iterator[str]:
    """Yield an objection for each row-parallel layer whose part on a rank is not a multiple of the scale groups or
    blocks. These layers are split along their inputs."""
    quantization = model.quantization
    if quantization is None:
        return
    edge = quantization.block[1] if quantization.block else quantization.group_size
    if edge is None or quantization.method in _FREE_OF_GROUPS:
        return
    for name, width in _list_quantized_inputs(model, has_expert_parallel):
        if width % tp == 0 and width // tp % edge:
            yield (
                f"{name} of {width} over {tp} ranks is {width // tp} per rank, not a multiple of the quantization"
                f" group {edge}"
            )


def _list_pipeline_errors(model: Checkpoint, pp: int) -> Iterator[str]:
    if pp == 1:
        return
    if pp > model.layers:
        yield f"{model.layers} layers are fewer than {pp} pipeline stages"
    if not model.causal or (model.encoder and model.encoder.cross_attention):
        yield f"vLLM has no pipeline parallelism for {model.architecture}"


def _list_widths(model: Checkpoint, has_expert_parallel: bool) -> Iterator[tuple[str, int]]:
    """Yield the widths that tensor parallelism divides. Expert parallelism leaves each expert whole, but for the shared
    one."""
    if model.experts is None or model.experts.beside_dense or len(model.expert_layers) < model.layers:
        yield "the MLP width", model.intermediate
    if model.experts:
        if not has_expert_parallel:
            yield "the expert width", model.experts.intermediate
        if model.experts.shared_intermediate:
            yield "the shared expert width", model.experts.shared_intermediate


def _list_quantized_inputs(model: Checkpoint, has_expert_parallel: bool) -> Iterator[tuple[str, int]]:
    quantization, attention = model.quantization, model.attention
    assert quantization is not None
    if quantization.only_experts:
        if model.experts and not has_expert_parallel:
            yield "the expert width", model.experts.intermediate
        return
    yield from _list_widths(model, has_expert_parallel)
    if quantization.attention:
        value_dim = attention.mla.v_head_dim if attention.mla else attention.head_dim
        yield "the attention output", attention.heads * value_dim
