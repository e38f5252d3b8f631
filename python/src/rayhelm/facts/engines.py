"""Memory that vLLM needs besides weights and cache, by version: one file in `data/engines/` each.

Every constant has an error and a source. A version without a file uses the nearest lower one, and the answer says so.
"""

import re
from functools import cache
from pathlib import Path
from typing import Literal

import yaml
from pydantic import Field

from rayhelm.errors import Fix, FleetError, Problem
from rayhelm.facts._origin import shown
from rayhelm.facts.closed import Closed
from rayhelm.facts.gpu import GpuKind, Vendor

__all__ = [
    "Activation",
    "Constant",
    "EngineConstants",
    "EngineDefaults",
    "NonTorch",
    "QuantizationLimit",
    "find_engine",
    "is_older_than_measured",
    "list_engines",
]

_FOLDER = Path(__file__).parent.parent / "data" / "engines"
_LOADER = getattr(yaml, "CSafeLoader", yaml.SafeLoader)


_CHECKS_ALL_LAYERS = (0, 14, 0), (0, 16, 0)
"""First version with this check, and the first without it."""


class Constant(Closed):
    """A figure with its error and its source."""

    value: float = Field(ge=0)
    error: float = Field(ge=0)
    """Plus or minus, in the unit of `value`."""
    source: str


class EngineDefaults(Closed):
    """Defaults of vLLM for an API server."""

    memory_gib: float = Field(ge=0)
    """For GPUs with at least this much memory, GiB."""
    except_gpu: str | None = None
    """Not for GPUs whose id contains this."""
    unified_memory: bool = False
    """Only for GPUs that share their memory with the CPU."""
    max_num_seqs: int = Field(gt=0)
    max_num_batched_tokens: int = Field(gt=0)


class Activation(Closed):
    """Peak of the profile run. Only the last pipeline stage runs the sampler."""

    sampler_bytes: Constant
    """Bytes per logit while the sampler is warmed up: x max_num_seqs x padded vocabulary."""
    sampler_state_bytes: Constant
    """Bytes per logit that the sampler keeps all the time (counts for penalties)."""
    forward_scale: Constant
    """Forward pass of max_num_batched_tokens, as a multiple of the widest tensors that live at once."""
    experts_workspace: Literal["freed", "held"]
    """Whether buffers of fused experts are still held when the sampler runs."""


class NonTorch(Closed):
    """Memory outside PyTorch's allocator (NCCL, libraries, driver part of CUDA graphs), GiB per GPU."""

    single: Constant
    """One GPU."""
    pipeline: Constant
    """Pipeline stages with one GPU each."""
    tensor: Constant
    """Two or more GPUs in tensor parallelism."""


class QuantizationLimit(Closed):
    """Where vLLM refuses the checkpoints of a format."""

    method: str
    """`quant_method` of config.json; `modelopt_fp4` is `modelopt` with 4 bits, and `modelopt_mixed` and
    `modelopt_mxfp8` are its formats of these names."""
    is_removed: bool = False
    """No longer read on any GPU."""
    is_deprecated: bool = False
    """Read with `allow_deprecated_quantization` only."""
    least_compute: float = 0.0
    """Lowest CUDA compute capability."""
    not_on: tuple[Vendor, ...] = ()
    """Vendors whose GPUs have no kernels for it."""
    source: str


class Fp8OnAmd(Closed):
    """AMD GPUs on which vLLM has kernels for FP8 checkpoints, by the starts of their architectures (`gfx942`)."""

    methods: tuple[str, ...]
    """`quant_method` of the checkpoints."""
    tensor_scales: tuple[str, ...]
    """For one scale per tensor or channel. Scales of blocks run on all."""
    experts: tuple[str, ...]
    source: str


class EngineConstants(Closed):
    """One version of vLLM."""

    version: str
    gpu_memory_utilization: float = Field(gt=0, le=1)
    """Default part of the GPU memory, 0 to 1."""
    block_size: int = Field(gt=0)
    """Tokens of a KV cache block."""
    latent_block_size: int = Field(gt=0)
    """Tokens of a block of latent (MLA) cache."""
    vocabulary_padding: int = Field(gt=0)
    """The vocabulary is padded to a multiple of this; TP divides the padded one."""
    hybrid_cache: bool
    """Layers with a sliding window cache only the window; if false, they cache all tokens."""
    recurrent_blocks: int = Field(default=1, gt=0)
    """Blocks of recurrent state of one request in each group: 2 with prefix caching, the default from 0.21 on."""
    null_block: bool
    """One block is reserved in the start-up check of the context length."""
    batches_in_flight: int = Field(gt=0)
    """Batches scheduled ahead on one stage; each stage more adds one. Windowed layers keep their tokens."""
    defaults: tuple[EngineDefaults, ...]
    """In order; the first that applies is used."""
    activation: Activation
    non_torch: NonTorch
    compile_gib: Constant
    """Memory that torch.compile holds when vLLM measures, after a cold start; 0 with enforce_eager."""
    unified_gib: Constant | None = None
    """Memory that vLLM counts as used on NVIDIA GPUs that share it with the CPU, besides the other terms; None: not
    known."""
    checks_all_layers: bool = False
    """The start-up check compares the memory of one pipeline stage with the need of the layers of all stages: versions
    0.14 and 0.15 (vllm-project/vllm#29431, fixed by #33698)."""
    checks_state_blocks: bool = False
    """With CUDA graphs, a model with recurrent layers needs as many blocks as max_num_seqs: the check of
    vllm-project/vllm#38270, after 0.19."""
    quantization: tuple[QuantizationLimit, ...] = ()
    """Empty for versions of which it is not known."""
    fp8_on_amd: Fp8OnAmd | None = None
    """None for versions of which it is not known."""
    cuda_graph_gib: Constant | None
    """Memory for CUDA graphs that vLLM subtracts from the cache; None: vLLM allocates it outside the budget."""

    def defaults_for(self, gpu: GpuKind) -> EngineDefaults:
        memory = gpu.usable_gib or gpu.memory_gb or 0.0
        return next(
            d
            for d in self.defaults
            if memory >= d.memory_gib
            and not _is_excepted(gpu, d.except_gpu)
            and (gpu.unified_memory or not d.unified_memory)
        )


def find_engine(version: str) -> tuple[EngineConstants, str]:
    """Return the constants for a version, and a note if they were measured with another version. Raises FleetError if
    `version` is not a version."""
    wanted = _parse(version)
    lower = [path for parsed, path in _list_files() if parsed <= wanted]
    chosen = _read(lower[-1] if lower else _list_files()[0][1])
    if _CHECKS_ALL_LAYERS[0] <= wanted < _CHECKS_ALL_LAYERS[1]:
        chosen = chosen.model_copy(update={"checks_all_layers": True})
    if _parse(chosen.version) == wanted:
        return chosen, ""
    side = "nearest lower" if lower else "oldest known"
    return (
        chosen,
        f"no constants were measured for vLLM {version}: planned with those of {chosen.version}, the {side} version",
    )


def is_older_than_measured(version: str) -> bool:
    """Return whether a version is older than each version with measured constants. Nothing is known of its memory."""
    return _parse(version) < _list_files()[0][0]


def list_engines() -> tuple[EngineConstants, ...]:
    """Return the constants of each version, the oldest first."""
    return tuple(_read(path) for _, path in _list_files())


@cache
def _list_files() -> tuple[tuple[tuple[int, ...], Path], ...]:
    return tuple(sorted((_parse(path.stem.removeprefix("vllm-")), path) for path in _FOLDER.glob("vllm-*.yaml")))


@cache
def _read(path: Path) -> EngineConstants:
    return EngineConstants.model_validate(yaml.load(path.read_text(encoding="utf-8"), Loader=_LOADER))


@cache
def _parse(version: str) -> tuple[int, ...]:
    match = re.match(r"v?(\d{1,4})\.(\d{1,4})(?:\.(\d{1,4}))?", version)
    if not match:
        raise FleetError(
            Problem(f"{shown(version)} is not a version of vLLM", fix=Fix(command="--vllm-version 0.29.0"))
        )
    return tuple(int(part or 0) for part in match.groups())


def _is_excepted(gpu: GpuKind, part: str | None) -> bool:
    return part is not None and part.lower() in gpu.id.lower()
