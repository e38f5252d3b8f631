"""Read experts: their number and width, the shared expert, and which layers have them."""

from rayhelm.facts._decoders import Record
from rayhelm.facts._keys import Config

__all__ = ["read_experts"]


def read_experts(config: Config, record: Record) -> None:
    """Add the experts to the record, or leave it without (families whose small models are dense)."""
    count = config.count("num_experts", 0, least=0)
    if count == 0 and config.flag("can_lack_experts", False):
        return
    count = config.count("num_experts", least=2)
    width = config.count("moe_intermediate_size", record["intermediate"] or None)
    layers = _list_layers(config, record["layers"])
    dense = config.count("first_k_dense_replace", 0, least=0)
    record["experts"] = {
        "count": count,
        "active": config.count("num_experts_per_tok", most=count),
        "intermediate": width,
        "shared_intermediate": _read_shared_width(config, width),
        "dense_layers": dense if layers is None else 0,
        "router_bias": config.text("topk_method", "") == "noaux_tc" or config.flag("use_routing_bias", False),
    }
    if layers is not None:
        record["experts"]["layers"] = layers


def _read_shared_width(config: Config, width: int) -> int:
    if config.has("shared_expert_intermediate_size"):
        return config.count("shared_expert_intermediate_size", least=0)
    return width * config.count("n_shared_experts", 0, least=0)


def _list_layers(config: Config, layers: int) -> tuple[int, ...] | None:
    """Return the layers with experts; None for all after the dense ones at the start."""
    every = range(layers)
    if kinds := config.texts("mlp_layer_types"):
        return tuple(layer for layer, kind in enumerate(kinds[:layers]) if kind == "sparse")
    if frequency := config.flags("moe_layer_freq") if config.is_list("moe_layer_freq") else []:
        return tuple(layer for layer, has_experts in enumerate(frequency[:layers]) if has_experts)
    if chosen := config.layers("moe_layers"):
        return tuple(layer for layer in every if layer in chosen)
    if period := config.count_or_none("expert_layer_period"):
        offset = config.count("expert_layer_offset", 0, least=0)
        return tuple(layer for layer in every if layer % period == offset)
    if config.has("moe_layer_start_index"):
        step, first = config.count("moe_layer_interval", 1), config.count("moe_layer_start_index", least=0)
        last = config.count("moe_layer_end_index", layers - 1, least=-1)
        last = layers - 1 if last == -1 else last
        return tuple(layer for layer in every if first <= layer <= last and (layer + 1) % step == 0)
    step, plain = config.count("decoder_sparse_step", 1), config.layers("mlp_only_layers")
    if step == 1 and not plain:
        return None
    return tuple(layer for layer in every if (layer + 1) % step == 0 and layer not in plain)
