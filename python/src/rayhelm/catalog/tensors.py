"""Weights by tensor: parameters and bytes of each part of a model, and how tensor parallelism splits it."""

from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property, lru_cache
from itertools import chain

from rayhelm.catalog._tensor import Shard, Tensor, TensorBuilder
from rayhelm.catalog.model import Checkpoint, Encoder, Experts, Mla

__all__ = ["ModelWeights", "Shard", "Tensor", "count_weights"]

Layer = tuple[Tensor, ...]


@dataclass(frozen=True)
class ModelWeights:
    """All weights of a model, in the order in which pipeline stages hold them."""

    embedding: tuple[Tensor, ...]
    """First stage: token (and position) embeddings, encoders."""
    layers: tuple[Layer, ...]
    """One tuple per decoder layer; layers that are alike share one object."""
    final: tuple[Tensor, ...]
    """Last stage: final norm, output head. With tied embeddings the head is listed with 0 parameters and its bytes,
    as vLLM holds the embedding on the last stage again when there is more than one stage."""

    @cached_property
    def parameters(self) -> int:
        return sum(tensor.parameters for tensor in self._all())

    @cached_property
    def bytes(self) -> float:
        """Bytes on a single GPU; a tied output head counts once."""
        return sum(tensor.bytes for tensor in self._all() if tensor.parameters)

    def _all(self) -> Iterable[Tensor]:
        return chain(self.embedding, chain.from_iterable(self.layers), self.final)


@lru_cache(maxsize=1024)
def count_weights(model: Checkpoint) -> ModelWeights:
    """Compute a model's weights from its architecture."""
    return ModelWeights(embedding=_build_embedding(model), layers=_build_layers(model), final=_build_final(model))


def _build_embedding(model: Checkpoint) -> tuple[Tensor, ...]:
    store = TensorBuilder.plain(model)
    tensors = [store.table("embedding.tokens", model.vocab, model.hidden, "vocab")]
    if rows := model.positions + model.token_types:
        tensors.append(store.table("embedding.positions", rows, model.hidden))
    if model.norms.embedding:
        tensors.append(store.vector("embedding.norm", _count_norm(model)))
    if model.encoder:
        tensors += _build_encoder(model.encoder, store)
    if model.extra_parameters:
        tensors.append(store.vector("extra", model.extra_parameters))
    return tuple(tensors)


def _build_encoder(encoder: Encoder, store: TensorBuilder) -> list[Tensor]:
    """Return the weights of a transformer encoder with LayerNorm and biases, including its convolutions."""
    width, layers = encoder.hidden, encoder.layers
    key_bias = width if encoder.key_bias else 0
    attention = 4 * width * width + 3 * width + key_bias
    mlp = 2 * width * encoder.intermediate + encoder.intermediate + width
    stem = encoder.positions * width if encoder.kind != "text" else 0
    if encoder.mel_bins:
        stem += 3 * width * (encoder.mel_bins + width) + 2 * width
    if encoder.patch:
        stem += 3 * encoder.patch**2 * width + width
    return [
        store.vector("encoder.stem", stem),
        store.vector("encoder.attention", layers * attention, "split"),
        store.vector("encoder.mlp", layers * mlp, "split"),
        store.vector("encoder.norms", (2 * layers + 1) * 2 * width),
    ]


def _build_layers(model: Checkpoint) -> tuple[Layer, ...]:
    """Build each kind of layer once: dense or of experts, quantized or not."""
    built: dict[tuple[bool, bool], Layer] = {}
    plain_layers = model.quantization.skip_layers if model.quantization else ()

    def layer(index: int) -> Layer:
        dense = model.experts is None or index < model.experts.dense_layers
        plain = index in plain_layers
        if (dense, plain) not in built:
            built[dense, plain] = _build_layer(model, dense, plain)
        return built[dense, plain]

    return tuple(layer(index) for index in range(model.layers))


def _build_layer(model: Checkpoint, dense: bool, plain: bool) -> Layer:
    store = TensorBuilder.plain(model) if plain else TensorBuilder.of(model)
    attention = (
        _build_latent_attention(model, model.attention.mla, store)
        if model.attention.mla
        else _build_attention(model, store)
    )
    mlp = _build_mlp(model, store) if dense or not model.experts else _build_experts(model, model.experts, store)
    norms = store.vector("norms", model.norms.per_layer * _count_norm(model))
    return (*attention, *_build_cross_attention(model, store), *mlp, norms)


def _build_attention(model: Checkpoint, store: TensorBuilder) -> list[Tensor]:
    attention, hidden = model.attention, model.hidden
    width, narrow = attention.heads * attention.head_dim, attention.kv_heads * attention.head_dim
    store = store.for_attention()
    bias, key_bias = attention.qkv_bias, attention.qkv_bias and attention.key_bias
    tensors = [
        store.linear("attention.q", hidden, width, "split", bias=bias),
        store.linear("attention.k", hidden, narrow, "kv", bias=key_bias),
        store.linear("attention.v", hidden, narrow, "kv", bias=bias),
        store.linear("attention.o", width, hidden, "split", bias=attention.output_bias),
    ]
    if attention.qk_norm:
        tensors.append(store.vector("attention.qk_norm", 2 * attention.head_dim))
    if attention.sinks:
        tensors.append(store.vector("attention.sinks", attention.heads, "split"))
    return tensors


def _build_latent_attention(model: Checkpoint, mla: Mla, store: TensorBuilder) -> list[Tensor]:
    """Return the weights of DeepSeek's latent attention, with low-rank queries and keys. Every rank has the whole
    down-projections."""
    heads, hidden, store = model.attention.heads, model.hidden, store.for_attention()
    query = heads * (mla.qk_nope_head_dim + mla.qk_rope_head_dim)
    rank = mla.q_lora_rank
    queries = (
        [
            store.linear("attention.q_down", hidden, rank, "replicated"),
            store.linear("attention.q_up", rank, query, "split"),
        ]
        if rank
        else [store.linear("attention.q", hidden, query, "split")]
    )
    return [
        *queries,
        store.linear("attention.kv_down", hidden, mla.kv_lora_rank + mla.qk_rope_head_dim, "replicated"),
        store.linear("attention.kv_up", mla.kv_lora_rank, heads * (mla.qk_nope_head_dim + mla.v_head_dim), "split"),
        store.linear("attention.o", heads * mla.v_head_dim, hidden, "split"),
        store.vector("attention.rank_norms", (rank or 0) + mla.kv_lora_rank),
    ]


def _build_cross_attention(model: Checkpoint, store: TensorBuilder) -> list[Tensor]:
    if not model.encoder or not model.encoder.cross_attention:
        return []
    names = {"attention.q": "cross.q", "attention.k": "cross.k", "attention.v": "cross.v", "attention.o": "cross.o"}
    return [
        Tensor(names[tensor.name], tensor.parameters, tensor.bytes, tensor.shard)
        for tensor in _build_attention(model, store)
    ]


def _build_mlp(model: Checkpoint, store: TensorBuilder) -> list[Tensor]:
    hidden, wide, bias = model.hidden, model.intermediate, model.mlp_bias
    store = store.for_dense_mlp()
    up = store.linear("mlp.gate_up" if model.gated else "mlp.up", hidden, wide * _count_ups(model), "split", bias=bias)
    return [up, store.linear("mlp.down", wide, hidden, "split", bias=bias)]


def _build_experts(model: Checkpoint, experts: Experts, store: TensorBuilder) -> list[Tensor]:
    hidden, wide, count = model.hidden, experts.intermediate, experts.count
    up = wide * _count_ups(model)
    tensors = [
        TensorBuilder.plain(model).linear("experts.router", hidden, count, "replicated", bias=experts.router_bias),
        store.linear("experts.gate_up", hidden, up, "split", bias=experts.expert_bias, copies=count),
        store.linear("experts.down", wide, hidden, "split", bias=experts.expert_bias, copies=count),
    ]
    if shared := experts.shared_intermediate:
        dense = store.for_dense_mlp()
        tensors.append(dense.linear("shared.gate_up", hidden, shared * _count_ups(model), "split"))
        tensors.append(dense.linear("shared.down", shared, hidden, "split"))
    return tensors


def _build_final(model: Checkpoint) -> tuple[Tensor, ...]:
    store = TensorBuilder.of(model).for_head()
    norm = [TensorBuilder.plain(model).vector("final.norm", _count_norm(model))] if model.norms.final else []
    if model.output == "none":
        return tuple(norm)
    if model.output == "vocabulary":
        head = store.linear("final.head", model.hidden, model.vocab, "vocab")
        return (*norm, Tensor(head.name, 0, head.bytes, "vocab") if model.tied_embeddings else head)
    dense = store.linear("final.pooler", model.hidden, model.hidden, "replicated", bias=True)
    if model.output == "pooler":
        return (*norm, dense)
    return (*norm, dense, store.linear("final.score", model.hidden, 1, "replicated", bias=True))


def _count_norm(model: Checkpoint) -> int:
    return model.hidden * (2 if model.norms.bias else 1)


def _count_ups(model: Checkpoint) -> int:
    return 2 if model.gated else 1
