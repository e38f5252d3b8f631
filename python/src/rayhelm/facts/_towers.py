"""Read towers of multimodal models: vision and audio encoders, and the projectors to the language model."""

from collections.abc import Callable

from rayhelm.facts._decoders import Record, add_extra
from rayhelm.facts._keys import Config

__all__ = ["TOWERS"]


def _read_siglip(config: Config, tower: Config, record: Record) -> None:
    """Read SigLIP, and CLIP's arrangement of the same layers."""
    image = tower.count("image_size")
    patch = tower.count("patch_size", most=image)
    _set_encoder(tower, record, patch=patch, positions=(image // patch) ** 2)


def _read_gemma3(config: Config, tower: Config, record: Record) -> None:
    _read_siglip(config, tower, record)
    width = record["encoder"]["hidden"]
    add_extra(
        record,
        record["hidden"] * width + width,
        "projector from image to text and its norm: hidden x width + width",
    )


def _read_paligemma(config: Config, tower: Config, record: Record) -> None:
    _read_siglip(config, tower, record)
    add_extra(record, _count_linear(record["encoder"]["hidden"], record["hidden"]), "projector")


def _read_idefics3(config: Config, tower: Config, record: Record) -> None:
    _read_siglip(config, tower, record)
    merged = config.count("scale_factor", 2) ** 2 * record["encoder"]["hidden"]
    add_extra(record, merged * record["hidden"], "projector of merged patches")


def _read_clip(config: Config, tower: Config, record: Record) -> None:
    """Read CLIP: a class token, a norm before the first layer, no bias of the patches; two layers of projector."""
    _read_siglip(config, tower, record)
    encoder, hidden = record["encoder"], record["hidden"]
    encoder["positions"] += 1
    width = encoder["hidden"]
    projector = _count_linear(width, hidden) + _count_linear(hidden, hidden)
    add_extra(record, 2 * width + projector, "class token, first norm, and two layers of projector")


def _read_llava(config: Config, tower: Config, record: Record) -> None:
    """Read Llava's towers: CLIP, SigLIP or Pixtral."""
    hidden, kind = record["hidden"], tower.text("model_type", "clip_vision_model")
    if kind == "pixtral":
        _read_pixtral(tower, record)
    elif kind == "siglip_vision_model":
        _read_siglip(config, tower, record)
    else:
        _read_clip(config, tower, record)
        return
    width = record["encoder"]["hidden"]
    projector = _count_linear(width, hidden) + _count_linear(hidden, hidden)
    newline = hidden if config.has("image_grid_pinpoints") else 0
    add_extra(record, projector + newline, "two layers of projector")


def _read_llava_next(config: Config, tower: Config, record: Record) -> None:
    _read_llava(config, tower, record)
    add_extra(record, record["hidden"], "embedding of a new image row")


def _read_mistral3(config: Config, tower: Config, record: Record) -> None:
    _read_pixtral(tower, record)
    hidden, width = record["hidden"], record["encoder"]["hidden"]
    merge = config.count("spatial_merge_size", 2)
    merger = width + (merge * width) * merge * width
    add_extra(record, merger + width * hidden + hidden * hidden, "merger of patches and two layers of projector")


def _read_pixtral(tower: Config, record: Record) -> None:
    image = tower.count("image_size")
    patch = tower.count("patch_size", most=image)
    _set_encoder(tower, record, patch=patch, positions=(image // patch) ** 2)
    record["encoder"] |= {"gated": True, "bias": False, "norm_bias": False, "learned_positions": False}


def _read_qwen2_vl(config: Config, tower: Config, record: Record) -> None:
    """Read Qwen2-VL, whose `hidden_size` is that of the language model, and 2.5, with RMSNorm and a gate."""
    old = tower.has("embed_dim")
    width = tower.count("embed_dim") if old else tower.count("hidden_size")
    wide = width * tower.count("mlp_ratio", 4) if old else tower.count("intermediate_size")
    merge = tower.count("spatial_merge_size", 2) ** 2 * width
    record["encoder"] = {
        "kind": "vision",
        "layers": tower.count("depth"),
        "hidden": width,
        "heads": tower.count("num_heads", most=width),
        "intermediate": wide,
        "patch": tower.count("patch_size", 14),
        "frames": tower.count("temporal_patch_size", 2),
        "positions": _QWEN_POSITIONS,
        "learned_positions": False,
        "norm_bias": old,
        "gated": not old,
    }
    projector = _count_linear(merge, merge) + _count_linear(merge, record["hidden"])
    add_extra(record, projector - width, "merger of patches; the patches have no bias")


def _read_qwen3_vl(config: Config, tower: Config, record: Record) -> None:
    """Read Qwen3-VL and later models: learned positions, and a merger for each level of depth."""
    width = tower.count("hidden_size")
    merged = tower.count("spatial_merge_size", 2) ** 2 * width
    levels = len(tower.layers("deepstack_visual_indexes"))
    record["encoder"] = {
        "kind": "vision",
        "layers": tower.count("depth"),
        "hidden": width,
        "heads": tower.count("num_heads", most=width),
        "intermediate": tower.count("intermediate_size"),
        "patch": tower.count("patch_size", 16),
        "frames": tower.count("temporal_patch_size", 2),
        "positions": tower.count("num_position_embeddings"),
    }
    merger = _count_linear(merged, merged) + _count_linear(merged, record["hidden"])
    add_extra(record, merger + levels * (merger + 2 * merged), "mergers of patches")


def _read_internvl(config: Config, tower: Config, record: Record) -> None:
    """Read InternViT: scales of each layer, a class token, no last norm; a projector over four patches."""
    image, hidden = tower.edge("image_size"), record["hidden"]
    patch = tower.edge("patch_size")
    _set_encoder(tower, record, patch=patch, positions=(image // max(1, patch)) ** 2 + 1)
    encoder = record["encoder"]
    width, layers = encoder["hidden"], encoder["layers"]
    bias = tower.flag("qkv_bias", tower.flag("attention_bias", True))
    has_norms = tower.flag("qk_normalization", tower.flag("use_qk_norm", False))
    rms = tower.text("norm_type", "layer_norm") == "rms_norm"
    encoder["norm_bias"] = not rms
    per_layer = 2 * width + (2 * width if has_norms else 0) - (0 if bias else 3 * width)
    projector = 8 * width + _count_linear(4 * width, hidden) + _count_linear(hidden, hidden)
    last_norm = width if rms else 2 * width
    add_extra(record, layers * per_layer + width + projector - last_norm, "scales, class token and projector")


def _read_llama4(config: Config, tower: Config, record: Record) -> None:
    image = tower.count("image_size")
    patch = tower.count("patch_size", most=image)
    _set_encoder(tower, record, patch=patch, positions=(image // patch) ** 2 + 1)
    width, wide = record["encoder"]["hidden"], record["encoder"]["intermediate"]
    inner, outer = tower.count("projector_input_dim"), tower.count("projector_output_dim")
    out = tower.count("vision_output_dim")
    adapter = wide * inner + inner * outer + out * record["hidden"]
    # The class token and the norm before the first layer; the patches have no bias.
    add_extra(record, adapter + 2 * width, "adapter of pixels, projector, class token and first norm")


def _read_moonvit(config: Config, tower: Config, record: Record) -> None:
    """Read Kimi's tower. K2.5 prefixes its keys with `vt_`."""
    names = {"hidden_size": "vt_hidden_size", "num_hidden_layers": "vt_num_hidden_layers"}
    names |= {"intermediate_size": "vt_intermediate_size", "num_attention_heads": "vt_num_attention_heads"}
    tower = tower.with_names(names) if tower.has("vt_hidden_size") else tower
    rows, columns = tower.count("init_pos_emb_height", 64), tower.count("init_pos_emb_width", 64)
    _set_encoder(tower, record, patch=tower.count("patch_size", 14), positions=rows * columns)
    width = record["encoder"]["hidden"]
    merged = 4 * width
    projector = 2 * width + _count_linear(merged, merged) + _count_linear(merged, record["hidden"])
    add_extra(record, projector, "norm and two layers of projector")


def _read_gemma4(config: Config, tower: Config, record: Record) -> None:
    """Read Gemma 4's tower: four norms and norms of queries and keys in a layer, a table of positions per axis."""
    width, layers = tower.count("hidden_size"), tower.count("num_hidden_layers")
    heads = tower.count("num_attention_heads", most=width)
    _set_encoder(tower, record, patch=tower.count("patch_size"), positions=tower.count("position_embedding_size"))
    record["encoder"] |= {"gated": True, "bias": False, "norm_bias": False}
    norms = layers * (2 * width + 2 * (width // heads)) - width
    scales = 2 * width if tower.flag("standardize", False) else 0
    table = record["encoder"]["positions"] * width
    add_extra(record, norms + scales + table + width * record["hidden"], "norms, positions of rows, projector")


def _read_glm4v(config: Config, tower: Config, record: Record) -> None:
    """Read GLM-4.1V: RMSNorm, a gate, learned positions, a convolution that merges patches, a gated projector."""
    image = tower.count("image_size")
    patch = tower.count("patch_size", most=image)
    hidden, width = tower.count("out_hidden_size"), tower.count("hidden_size")
    record["encoder"] = {
        "kind": "vision",
        "layers": tower.count("depth"),
        "hidden": width,
        "heads": tower.count("num_heads", most=width),
        "intermediate": hidden,
        "patch": patch,
        "frames": tower.count("temporal_patch_size", 2),
        "positions": (image // patch) ** 2,
        "gated": True,
        "bias": False,
        "norm_bias": False,
    }
    merge = tower.count("spatial_merge_size", 2) ** 2
    wide = tower.count("intermediate_size")
    projector = hidden * hidden + 3 * hidden * wide + 2 * hidden
    stem = merge * width * hidden + hidden + 2 * width
    add_extra(record, projector + stem, "patch norms, merging convolution and projector")


def _read_audio(config: Config, tower: Config, record: Record) -> None:
    """Read an encoder of Whisper's kind and its projector of one layer (Qwen2-Audio) or two (Voxtral, Ultravox)."""
    width = tower.count("d_model", tower.count("hidden_size") if tower.has("hidden_size") else None)
    record["encoder"] = {
        "kind": "audio",
        "layers": tower.count("encoder_layers", tower.count_or_none("num_hidden_layers")),
        "hidden": width,
        "heads": tower.count("encoder_attention_heads", tower.count_or_none("num_attention_heads")),
        "intermediate": tower.count("encoder_ffn_dim", tower.count_or_none("intermediate_size")),
        "positions": tower.count("max_source_positions", 1500),
        "key_bias": False,
        "mel_bins": tower.count("num_mel_bins", 128),
    }
    hidden = record["hidden"]
    two = config.has("projector_hidden_act")
    projector = 4 * width * hidden + hidden * hidden if two else _count_linear(width, hidden)
    add_extra(record, projector, "projector of audio")


def _set_encoder(tower: Config, record: Record, *, patch: int, positions: int) -> None:
    width = tower.count("hidden_size")
    record["encoder"] = {
        "kind": "vision",
        "layers": tower.count("num_hidden_layers"),
        "hidden": width,
        "heads": tower.count("num_attention_heads", most=width),
        "intermediate": tower.count("intermediate_size"),
        "patch": patch,
        "positions": positions,
    }


def _count_linear(inputs: int, outputs: int) -> int:
    return inputs * outputs + outputs


_QWEN_POSITIONS = 16384
"""Patches of one image at the largest size of Qwen's processors: 16,384 x 28 x 28 pixels."""

TOWERS: dict[str, Callable[[Config, Config, Record], None]] = {
    "audio": _read_audio,
    "gemma3": _read_gemma3,
    "gemma4": _read_gemma4,
    "glm4v": _read_glm4v,
    "idefics3": _read_idefics3,
    "internvl": _read_internvl,
    "llama4": _read_llama4,
    "llava": _read_llava,
    "llava_next": _read_llava_next,
    "mistral3": _read_mistral3,
    "moonvit": _read_moonvit,
    "paligemma": _read_paligemma,
    "qwen2_vl": _read_qwen2_vl,
    "qwen3_vl": _read_qwen3_vl,
    "siglip": _read_siglip,
}
"""Readers of the tower and its projector. They get the whole config, the tower's part, and the record of the text."""
