"""Read parts of a config.json that only some families have: experts, latent attention, peculiar shapes.

A part reader changes the record that the general reader made. Files in `data/architectures/` name them.
"""

from collections.abc import Callable

from rayhelm.facts._decoders import Record, add_extra
from rayhelm.facts._experts import read_experts
from rayhelm.facts._families import FAMILIES
from rayhelm.facts._keys import Config
from rayhelm.facts._recurrence import RECURRENCES

__all__ = ["LAYER_KINDS", "PARTS"]


def _read_latent_attention(config: Config, record: Record) -> None:
    """Read DeepSeek's latent attention, without the layers of multi-token prediction: vLLM loads those only for
    speculative decoding."""
    ranks = ("kv_lora_rank", "qk_nope_head_dim", "qk_rope_head_dim", "v_head_dim")
    mla = {key: config.count(key) for key in ranks}
    record["attention"] |= {
        "mla": mla | {"q_lora_rank": config.count_or_none("q_lora_rank")},
        "head_dim": mla["qk_nope_head_dim"] + mla["qk_rope_head_dim"],
        "kv_heads": record["attention"]["heads"],
    }


def _read_indexer(config: Config, record: Record) -> None:
    kinds = config.texts("indexer_types")
    record["attention"]["mla"]["indexer"] = {
        "heads": config.count("index_n_heads"),
        "head_dim": config.count("index_head_dim"),
        "layers": kinds.count("full") if kinds else record["layers"],
    }


def _read_qk_norm(config: Config, record: Record) -> None:
    record["attention"]["qk_norm"] = config.flag("use_qk_norm", False)


def _read_head_bias(config: Config, record: Record) -> None:
    if not record["tied_embeddings"] or config.flag("has_head_bias", True):
        add_extra(record, record["vocab"], "bias of the output head")


def _read_bias(config: Config, record: Record) -> None:
    """Read one flag for the bias of all linear layers."""
    bias = config.flag("use_bias", config.flag("bias", False))
    record["mlp_bias"] = bias
    record["attention"] |= {"qkv_bias": bias, "output_bias": bias}


def _read_expert_bias(config: Config, record: Record) -> None:
    """Read a correction of the router for each expert."""
    if "experts" in record:
        record["experts"]["router_bias"] = config.flag("use_expert_bias", True)


def _read_position_offset(config: Config, record: Record) -> None:
    """Read learned positions of OPT, whose table has two rows more."""
    record["positions"] = record["max_context"] + 2


def _read_positions(config: Config, record: Record) -> None:
    record["positions"] = record["max_context"]


PARTS: dict[str, Callable[[Config, Record], None]] = {
    "bias": _read_bias,
    "expert_bias": _read_expert_bias,
    "experts": read_experts,
    "head_bias": _read_head_bias,
    "indexer": _read_indexer,
    "latent_attention": _read_latent_attention,
    "position_offset": _read_position_offset,
    "positions": _read_positions,
    "use_qk_norm": _read_qk_norm,
    **FAMILIES,
    **{name: read for name, (read, _) in RECURRENCES.items()},
}

LAYER_KINDS: dict[str, frozenset[str]] = {
    "indexer": frozenset({"deepseek_sparse_attention"}),
    **{name: kinds for name, (_, kinds) in RECURRENCES.items()},
}
"""Kinds in `layer_types` that a part reader knows."""
