"""Memory of the slots in which vLLM holds the LoRA adapters of a batch.

vLLM reserves every slot when it loads the model, at the largest rank and for every linear layer, whatever an adapter
has weights for (vllm/lora/layers: `create_lora_weights` of `base_linear.py`, `column_parallel_linear.py`,
`fused_moe.py`, `vocab_parallel_embedding.py` and `logits_processor.py`, 0.29). A layer of `inputs` x `outputs` has two
matrices per slot, `rank` x `inputs` and `outputs` x `rank`. Tensor parallelism divides only the side that it divides in
the layer itself; the two matrices of the vocabulary are whole on each GPU.
"""

from dataclasses import dataclass

from rayhelm.facts._tensor import Tensor, element_bytes
from rayhelm.facts.model import Checkpoint
from rayhelm.facts.tensors import count_weights
from rayhelm.planner.memory.parallelism import find_partition
from rayhelm.planner.shape import ReplicaShape

__all__ = ["AdapterSlots", "count_adapter_bytes"]

_ROW_PARALLEL = (".o", ".down")
"""Ends of the names of layers whose inputs tensor parallelism divides; of all others it divides the outputs."""
_MERGED = ".gate_up"
"""End of the names of two layers in one: they share their inputs, and each has a matrix for them."""


@dataclass(frozen=True)
class AdapterSlots:
    """Slots of an engine: `max_loras` and `max_lora_rank`."""

    count: int
    rank: int


def count_adapter_bytes(model: Checkpoint, shape: ReplicaShape, slots: AdapterSlots) -> tuple[float, ...]:
    """Return the bytes of the slots on one GPU of each pipeline stage.

    The slots of the vocabulary are counted for every model; some architectures have none.
    """
    weights, each = count_weights(model), slots.count * slots.rank * element_bytes(model)
    layers = [sum(_count_edge(tensor, shape) for tensor in layer) for layer in weights.layers]
    stages, start = [], 0
    for count in find_partition(model, shape):
        stages.append(sum(layers[start : start + count]))
        start += count
    vocabulary = model.vocab + model.hidden
    stages[0] += vocabulary
    stages[-1] += vocabulary
    return tuple(each * stage for stage in stages)


def _count_edge(tensor: Tensor, shape: ReplicaShape) -> float:
    """Return the elements per rank of both matrices of a layer on one GPU."""
    matrix = tensor.matrix
    if matrix is None:
        return 0.0
    inputs: float = matrix.inputs * (2 if tensor.name.endswith(_MERGED) else 1)
    outputs: float = matrix.outputs
    if shape.has_expert_parallel and matrix.copies > 1:
        return matrix.copies / shape.tp * (inputs + outputs)
    if tensor.shard != "replicated" and tensor.name.endswith(_ROW_PARALLEL):
        inputs /= shape.tp
    elif tensor.shard != "replicated":
        outputs /= shape.tp
    return matrix.copies * (inputs + outputs)
