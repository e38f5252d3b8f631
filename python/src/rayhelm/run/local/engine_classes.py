"""Models built by vLLM's own classes on the meta device: weights of one rank, and the KV cache of all layers.

The meta device has shapes and no memory, so a model of any size is built on any computer. Importing vLLM takes seconds,
so the imports are in the functions.
"""

import atexit
import json
import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from unittest.mock import patch
from uuid import uuid4

__all__ = ["BATCH", "BuiltModel", "ModelShape", "build"]

BATCH = 2048
_LAYOUT = "LBNHC"
"""Order of the dimensions of the cache; the engine asks its workers for it. It has no influence on sizes."""


@dataclass(frozen=True)
class ModelShape:
    """What vLLM reads from a config.json."""

    architecture: str
    layers: int
    hidden: int
    vocab: int
    heads: int
    kv_heads: int
    head_dim: int
    max_context: int


@dataclass(frozen=True)
class BuiltModel:
    """What vLLM computes for one rank."""

    weights: int
    """Bytes of parameters and buffers."""
    block: int
    """Bytes of one block of the KV cache."""
    needed: int
    """Bytes of one request of full context, by the start-up check."""
    kv_per_token: float
    """Bytes of the cache of one token: of a request of full or of half context, whichever is more."""
    shape: ModelShape


def build(keys: dict[str, Any], tp: int, context: int | None, block_size: int | None = None) -> BuiltModel:
    """Build the model of a config.json for one of `tp` ranks. Raises what vLLM raises. `context`: tokens; None for the
    model's own. `block_size`: of the KV cache; None for vLLM's default."""
    import torch
    from vllm.config import set_current_vllm_config
    from vllm.model_executor.layers.attention_layer_base import AttentionLayerBase
    from vllm.model_executor.model_loader.utils import initialize_model
    from vllm.v1.core import kv_cache_utils

    config = _build_config(keys, context, block_size)
    config.cache_config.kv_cache_layout = _LAYOUT
    with set_current_vllm_config(config), _act_as_rank_of(tp):
        config.parallel_config.tensor_parallel_size = tp
        with _use_default_dtype(config.model_config.dtype), torch.device("meta"):
            model = initialize_model(vllm_config=config)
        layers = config.compilation_config.static_forward_context
        specs: Any = {
            name: layer.get_kv_cache_spec(config)
            for name, layer in layers.items()
            if isinstance(layer, AttentionLayerBase)
        }
        groups = kv_cache_utils.get_kv_cache_groups(config, {name: spec for name, spec in specs.items() if spec})
        block = kv_cache_utils._pool_bytes_per_block(groups) if groups else 0
        full, half = (_count_needed(config, groups, part) for part in (1, 2))
    tensors = [*model.parameters(), *model.buffers()]
    weights = sum(tensor.numel() * tensor.element_size() for tensor in tensors)
    tokens = config.model_config.max_model_len
    return BuiltModel(weights, block, full, max(full / tokens, half / (tokens // 2)), _read_shape(config))


@contextmanager
def _use_default_dtype(dtype: Any) -> Iterator[None]:
    """Do what vLLM's own function does, but leave no other default behind after an exception."""
    import torch

    before = torch.get_default_dtype()
    torch.set_default_dtype(dtype)
    try:
        yield
    finally:
        torch.set_default_dtype(before)


def _count_needed(config: Any, groups: Any, part: int) -> int:
    """Return the bytes of one request of the whole context, or of a part of it."""
    from vllm.v1.core import kv_cache_utils

    whole = config.model_config.max_model_len
    config.model_config.max_model_len = whole // part
    try:
        return int(kv_cache_utils._max_memory_usage_bytes_from_groups(config, groups)) if groups else 0
    finally:
        config.model_config.max_model_len = whole


def _read_shape(config: Any) -> ModelShape:
    model, parallel = config.model_config, config.parallel_config
    sharded, parallel.tensor_parallel_size = parallel.tensor_parallel_size, 1
    try:
        return ModelShape(
            architecture=str(model.architecture),
            layers=int(model.get_total_num_hidden_layers()),
            hidden=int(model.get_hidden_size()),
            vocab=int(model.get_vocab_size()),
            heads=int(model.get_num_attention_heads(parallel)),
            kv_heads=int(model.get_total_num_kv_heads()),
            head_dim=int(model.get_head_size()),
            max_context=int(model.max_model_len),
        )
    finally:
        parallel.tensor_parallel_size = sharded


def _build_config(keys: dict[str, Any], context: int | None, block_size: int | None) -> Any:
    from vllm.engine.arg_utils import EngineArgs
    from vllm.model_executor.models import registry

    def inspect(lazy: Any) -> Any:
        return registry._ModelInfo.from_model_cls(lazy.load_model_cls())

    with tempfile.TemporaryDirectory(prefix="rayhelm-") as folder:
        Path(folder, "config.json").write_text(json.dumps(keys))
        arguments = EngineArgs(
            model=folder,
            skip_tokenizer_init=True,
            load_format="dummy",
            dtype="bfloat16",
            max_model_len=context,
            max_num_batched_tokens=BATCH,
            max_num_seqs=8,
            block_size=block_size,
        )
        # vLLM inspects each class in another process, which imports torch again.
        with patch.object(registry._LazyRegisteredModel, "inspect_model_cls", inspect):
            return arguments.create_engine_config()


@contextmanager
def _act_as_rank_of(size: int) -> Iterator[None]:
    """Make a process group of one rank, without a port, whose size reads as `size`."""
    from vllm.distributed import parallel_state

    os.environ.setdefault("LOCAL_RANK", "0")
    # torch removes the file when it has closed the group, and waits for minutes if it is gone before.
    meeting = Path(tempfile.gettempdir(), f"rayhelm-{uuid4()}")
    atexit.register(meeting.unlink, missing_ok=True)
    parallel_state.init_distributed_environment(1, 0, f"file://{meeting}", 0, "gloo")
    try:
        parallel_state.initialize_model_parallel(1, 1)
        ranks: Any = parallel_state._TP
        ranks.world_size = size
        yield
    finally:
        parallel_state.destroy_model_parallel()
        parallel_state.destroy_distributed_environment()
