"""Models built by vLLM's own classes on the meta device: weights of one rank, and the KV cache of all layers."""

import json
import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from unittest.mock import patch

__all__ = ["BATCH", "BuiltModel", "build"]

BATCH = 2048
_LAYOUT = "LBNHC"
"""Order of the dimensions of the cache; the engine asks its workers for it. It has no influence on sizes."""


@dataclass(frozen=True)
class BuiltModel:
    """What vLLM computes for one rank."""

    weights: int
    """Bytes of parameters and buffers."""
    block: int
    """Bytes of one block of the KV cache."""
    needed: int
    """Bytes of one request of full context, by the start-up check."""


def build(keys: dict[str, Any], tp: int, context: int, block_size: int) -> BuiltModel:
    """Build the model of a config.json for one of `tp` ranks. Raises what vLLM raises."""
    import torch
    from vllm.config import set_current_vllm_config
    from vllm.model_executor.layers.attention_layer_base import AttentionLayerBase
    from vllm.model_executor.model_loader.utils import initialize_model
    from vllm.utils.torch_utils import set_default_torch_dtype
    from vllm.v1.core import kv_cache_utils

    config = _build_config(keys, context, block_size)
    config.cache_config.kv_cache_layout = _LAYOUT
    with set_current_vllm_config(config), _act_as_rank_of(tp):
        config.parallel_config.tensor_parallel_size = tp
        with set_default_torch_dtype(torch.bfloat16), torch.device("meta"):
            model = initialize_model(vllm_config=config)
        layers = config.compilation_config.static_forward_context
        specs: Any = {
            name: layer.get_kv_cache_spec(config)
            for name, layer in layers.items()
            if isinstance(layer, AttentionLayerBase)
        }
        groups = kv_cache_utils.get_kv_cache_groups(config, specs)
        block = kv_cache_utils._pool_bytes_per_block(groups)
        needed = kv_cache_utils._max_memory_usage_bytes_from_groups(config, groups)
    tensors = [*model.parameters(), *model.buffers()]
    weights = sum(tensor.numel() * tensor.element_size() for tensor in tensors)
    return BuiltModel(weights, block, needed)


def _build_config(keys: dict[str, Any], context: int, block_size: int) -> Any:
    from vllm.engine.arg_utils import EngineArgs
    from vllm.model_executor.models import registry

    def inspect(lazy: Any) -> Any:
        return registry._ModelInfo.from_model_cls(lazy.load_model_cls())

    folder = Path(tempfile.mkdtemp(prefix="rayhelm-"))
    (folder / "config.json").write_text(json.dumps(keys))
    arguments = EngineArgs(
        model=str(folder),
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
    meeting = Path(tempfile.mkdtemp(prefix="rayhelm-")) / "ranks"
    parallel_state.init_distributed_environment(1, 0, f"file://{meeting}", 0, "gloo")
    try:
        parallel_state.initialize_model_parallel(1, 1)
        ranks: Any = parallel_state._TP
        ranks.world_size = size
        yield
    finally:
        parallel_state.destroy_model_parallel()
        parallel_state.destroy_distributed_environment()
