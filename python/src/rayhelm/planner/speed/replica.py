"""What a speed estimate depends on: a replica of a model, and the load."""

from dataclasses import dataclass, field
from functools import cached_property, lru_cache

from rayhelm.facts.gpu import GpuKind
from rayhelm.facts.model import Checkpoint, Quantization
from rayhelm.facts.tensors import count_weights
from rayhelm.planner.shape import ReplicaShape

__all__ = ["Load", "ModelWork", "Replica", "Speculation", "StageLink", "count_work", "find_format"]

_ONE_GPU = ReplicaShape()
_FOUR_BIT_FLOAT = ("nvfp4", "mxfp4", "fp4")


@dataclass(frozen=True)
class StageLink:
    """The link between two pipeline stages."""

    gb_per_s: float
    latency_s: float


@dataclass(frozen=True)
class Speculation:
    """Speculative decoding."""

    tokens: int
    """Draft tokens per step."""
    acceptance_rate: float
    """Probability, 0 to 1, that a draft token is accepted."""

    @property
    def tokens_per_step(self) -> float:
        """Expected output tokens of a step: accepted ones up to the first rejected one, and one of the model."""
        rate = min(self.acceptance_rate, 0.999)
        return (1 - rate ** (self.tokens + 1)) / (1 - rate)


@dataclass(frozen=True)
class Replica:
    """A model on its GPUs, and what its engine holds."""

    model: Checkpoint
    gpus: tuple[GpuKind, ...]
    """One per pipeline stage."""
    shape: ReplicaShape = _ONE_GPU
    kv_bytes_per_token: float = 0.0
    """Of all stages, on one GPU of each."""
    kv_tokens: float | None = None
    """Tokens in the cache of one rank; None if unknown."""
    max_num_seqs: int = 1024
    batched_tokens: int = 8192
    """`max_num_batched_tokens`: of one step."""
    link: StageLink | None = None
    """Between hosts; None if all stages are on one host."""
    network_hops: int | None = None
    """Transfers between stages over `link`; None if all are."""
    share: float = 1.0
    """Fraction of each GPU."""
    speculation: Speculation | None = None
    known_rates: dict[str, dict[str, dict[str, float]]] = field(
        init=False, default_factory=dict, compare=False, repr=False
    )
    """Rates of a decode step by GPU: they do not depend on the load, and a plan asks for many loads of a replica."""

    known_weights: dict[str, tuple[object, dict[str, float]]] = field(
        init=False, default_factory=dict, compare=False, repr=False
    )
    """The rates of each unit with the coefficients of a fit, by GPU, and these coefficients."""
    known_prefill_rates: dict[str, dict[str, dict[str, float]]] = field(
        init=False, default_factory=dict, compare=False, repr=False
    )
    """Rates of prompt tokens by GPU."""

    @cached_property
    def work(self) -> "ModelWork":
        return count_work(self.model)


@dataclass(frozen=True)
class Load:
    """Requests of one length, with a constant number in flight."""

    input_tokens: float
    output_tokens: float
    concurrency: float
    """Requests in flight in the whole group of ranks."""
    cached_tokens: float = 0.0
    """Prompt tokens that are in the prefix cache."""


@dataclass(frozen=True)
class ModelWork:
    """Bytes and parameters of a model, by what a step does with them."""

    dense_bytes: float
    """Read by every step: all weights but the input embedding and the routed experts."""
    dense_parameters: float
    expert_bytes: float
    """All routed experts of all layers."""
    expert_parameters: float
    """Routed experts that one token passes through."""
    expert_layers: int
    dense_format: str
    """Format of the weights: `bf16`, `fp8`, `fp4`, `int4`."""
    expert_format: str


@lru_cache(maxsize=4096)
def count_work(model: Checkpoint) -> ModelWork:
    weights = count_weights(model)
    dense_bytes = dense_parameters = expert_bytes = expert_parameters = 0.0
    for tensor in (*(tensor for layer in weights.layers for tensor in layer), *weights.final):
        if tensor.name in ("experts.gate_up", "experts.down"):
            expert_bytes += tensor.bytes
            expert_parameters += tensor.parameters
        else:
            dense_bytes += tensor.bytes
            dense_parameters += tensor.parameters or tensor.bytes / 2
    experts, quantization = model.experts, model.quantization
    found = find_format(quantization)
    return ModelWork(
        dense_bytes=dense_bytes,
        dense_parameters=dense_parameters,
        expert_bytes=expert_bytes,
        expert_parameters=expert_parameters * experts.active / experts.count if experts else 0.0,
        expert_layers=len(model.expert_layers),
        dense_format="bf16" if quantization and quantization.only_experts else found,
        expert_format=found,
    )


def find_format(quantization: Quantization | None) -> str:
    """Return the format of quantized weights, for their efficiency."""
    if quantization is None or quantization.bits > 8:
        return "bf16"
    if quantization.bits > 4:
        return "fp8"
    return "fp4" if _has_four_bit_floats(quantization) else "int4"


def _has_four_bit_floats(quantization: Quantization) -> bool:
    """Return whether weights of 4 bits are floating-point numbers. ModelOpt has no others, and compressed-tensors has
    scales of 8 bits for them only."""
    method = quantization.method
    with_small_scales = method == "compressed-tensors" and quantization.scale_bits == 8
    return method in _FOUR_BIT_FLOAT or method.startswith("modelopt") or with_small_scales
