"""Reasons of the split of a replica: tensor and pipeline parallelism, data parallel ranks, experts."""

from collections.abc import Iterator
from dataclasses import replace

from rayhelm.facts.tensors import count_weights
from rayhelm.planner.memory.parallelism import list_split_errors
from rayhelm.planner.placement.candidates import Candidate
from rayhelm.planner.plan import Reason

__all__ = ["explain_experts", "explain_pipeline", "explain_ranks", "explain_tensor"]


def explain_tensor(chosen: Candidate) -> Reason:
    split, pin = chosen.split, chosen.model_spec.declared.parallelism
    link, joined = split.gpu.link, split.shape.tp <= (split.gpu.link.group or split.shape.tp)
    if pin and pin.tensor:
        because = "pinned in the fleet file"
    elif split.shape.tp == 1:
        because = "one GPU has enough memory for a stage; a larger size would add communication"
    elif link.fast and joined:
        because = f"{link.kind} joins the GPUs of a host and is fast enough for two all-reduces per layer"
    else:
        way = link.kind if joined and link.gb_per_s else "PCIe"
        because = (
            f"one GPU has too little memory or is too slow; two all-reduces per layer over {way} cost some of the gain"
        )
    return Reason(
        decision="tensor_parallel_size",
        chosen=str(split.shape.tp),
        because=because,
        numbers={
            "heads": chosen.model_spec.model.attention.heads,
            "kv_heads": chosen.model_spec.model.attention.kv_heads,
        },
    )


def explain_pipeline(chosen: Candidate) -> Reason:
    split, pin = chosen.split, chosen.model_spec.declared.parallelism
    if pin and pin.pipeline:
        because = "pinned in the fleet file"
    elif split.shape.pp == 1:
        because = "the GPUs of one stage have enough memory for the whole model"
    elif split.nodes > 1:
        because = (
            f"{_explain_hosts(chosen)}. Pipeline stages send activations over {split.inventory.network} once per stage;"
            " tensor parallelism would do so twice per layer"
        )
    else:
        because = f"pipeline stages in one host send less data over {split.gpu.link.kind} than tensor parallelism would"
    if not split.inventory.is_uniform and split.shape.pp > 1:
        because += _describe_order(chosen)
    layers = [stage.layers for stage in chosen.memory.stages] if chosen.memory else []
    return Reason(
        decision="pipeline_parallel_size",
        chosen=str(split.shape.pp),
        because=because,
        numbers={
            "layers": "+".join(map(str, layers)),
            "weights_gib": round(count_weights(chosen.model_spec.model).bytes / 2**30, 2),
        },
    )


def _explain_hosts(chosen: Candidate) -> str:
    """Describe why a replica is on several hosts."""
    weights = count_weights(chosen.model_spec.model).bytes
    split = chosen.split
    least = min(gpu.usable_gib or 0.0 for gpu in split.gpus) * 2**30
    if weights > least * min(host.gpu_count for host in split.hosts or split.matching_hosts):
        return "the model is larger than one host"
    return "one host holds the weights, and several have more memory for the KV cache"


def explain_ranks(chosen: Candidate) -> Iterator[Reason]:
    """Yield the data parallel ranks of a replica, which only a pin sets."""
    shape = chosen.split.shape
    if shape.dp == 1:
        return
    each = chosen.memory.tokens if chosen.memory else 0
    yield Reason(
        decision="data_parallel_size",
        chosen=str(shape.dp),
        because=(
            f"pinned in the fleet file: {shape.dp} ranks of TP {shape.tp}, on one host. Each has the KV cache of its"
            " own requests, and all restart together when one is lost"
        ),
        numbers={"kv_cache_tokens_per_rank": each, "max_num_seqs_per_rank": chosen.max_num_seqs},
    )


def explain_experts(chosen: Candidate) -> Iterator[Reason]:
    """Yield why each GPU holds whole experts."""
    shape, pin, experts = chosen.split.shape, chosen.model_spec.declared.parallelism, chosen.model_spec.model.experts
    if not shape.has_expert_parallel or experts is None:
        return
    model, engine = chosen.model_spec.model, chosen.model_spec.engine
    refused = list_split_errors(model, replace(shape, dp=1, has_expert_parallel=False), engine)
    pinned = "pinned in the fleet file" if pin and pin.expert else ""
    shared = "" if shape.dp == 1 or pinned else "the data parallel ranks share the experts"
    without = f"without it vLLM refuses tensor parallel size {shape.tp}: {refused[0]}" if refused else ""
    yield Reason(
        decision="expert_parallel",
        chosen="true",
        because="; ".join(part for part in (pinned, shared, without) if part),
        numbers={"experts": experts.count, "experts_per_gpu": -(-experts.count // shape.expert_gpus)},
    )


def _describe_order(chosen: Candidate) -> str:
    """Describe the order of the stages. vLLM puts the driver's stage first and orders the others by Ray node id, which
    is random."""
    if chosen.split.shape.partition is None:
        return "; the model fits in every order of the stages, because vLLM chooses the order"
    first = chosen.split.hosts[0].name
    return (
        f"; the layers are split unevenly, so the order is fixed: the replica starts on `{first}`, which makes it"
        " stage 0"
    )
