"""Weights by tensor: parameters and bytes of each part of a model, and how tensor parallelism splits it."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import cache, cached_property, lru_cache, partial
from itertools import chain
from typing import Literal

from rayhelm.facts._encoder_tensors import build_encoder
from rayhelm.facts._recurrence_tensors import build_recurrence
from rayhelm.facts._tensor import Shard, Tensor, TensorBuilder
from rayhelm.facts.model import Checkpoint, Experts, Mla

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
    """Compute a model's weights from its architecture, or spread the stated weights over its layers."""
    if model.stated:
        part = model.stated.weights / model.layers
        layer = (Tensor("stated", round(part / 2), part, "split"),)
        return ModelWeights(embedding=(), layers=(layer,) * model.layers, final=())
    return ModelWeights(embedding=_build_embedding(model), layers=_build_layers(model), final=_build_final(model))


def _build_embedding(model: Checkpoint) -> tuple[Tensor, ...]:
    store = TensorBuilder.plain(model)
    tensors = [store.table("embedding.tokens", model.vocab, model.hidden, "vocab")]
    if rows := model.positions + model.token_types:
        tensors.append(store.table("embedding.positions", rows, model.hidden))
    if model.norms.embedding:
        tensors.append(store.vector("embedding.norm", _count_norm(model)))
    if model.encoder:
        tensors += build_encoder(model.encoder, store)
    if model.extra_parameters:
        tensors.append(store.vector("extra", model.extra_parameters))
    return tuple(tensors)


@dataclass(frozen=True)
class _LayerKind:
    """Parts of a decoder layer. Layers of the same kind are built once."""

    attention: Literal["", "full", "window"]
    recurrent: bool
    reads_other_cache: bool
    """Reads the cache of an earlier layer, without keys and values of its own."""
    mlp: int
    """Width; 0 without an MLP."""
    experts: bool
    indexer: bool
    plain: bool
    """Not quantized."""


def _build_layers(model: Checkpoint) -> tuple[Layer, ...]:
    build = cache(partial(_build_layer, model))
    return tuple(build(kind) for kind in _list_kinds(model))


def _list_kinds(model: Checkpoint) -> Iterator[_LayerKind]:
    plain_layers = model.quantization.skip_layers if model.quantization else ()
    attention, windowed = set(model.attention_layers), model.windowed_layers
    indexed = model.attention.mla.indexer.layers if model.attention.mla and model.attention.mla.indexer else 0
    beside_dense = model.experts is not None and model.experts.beside_dense
    for layer in range(model.layers):
        has_experts = layer in model.expert_layers
        width = model.mlp_widths[layer] if model.mlp_widths else model.intermediate
        yield _LayerKind(
            attention="" if layer not in attention else "window" if layer in windowed else "full",
            recurrent=layer in model.recurrent_layers,
            reads_other_cache=layer >= model.layers - model.attention.cache_shared_layers,
            mlp=width if beside_dense or not has_experts else 0,
            experts=has_experts,
            indexer=layer < indexed,
            plain=layer in plain_layers,
        )


def _build_layer(model: Checkpoint, kind: _LayerKind) -> Layer:
    store = TensorBuilder.plain(model) if kind.plain else TensorBuilder.of(model)
    tensors: list[Tensor] = []
    if kind.attention and model.attention.mla:
        tensors += _build_latent_attention(model, model.attention.mla, store, has_indexer=kind.indexer)
    elif kind.attention:
        tensors += _build_attention(model, store, is_full=kind.attention == "full", has_keys=not kind.reads_other_cache)
    if kind.recurrent and model.recurrence:
        tensors += build_recurrence(model.recurrence, model.hidden, store.for_attention())
    tensors += _build_cross_attention(model, store)
    if kind.mlp:
        tensors += _build_mlp(model, store, kind.mlp)
    if kind.experts and model.experts:
        tensors += _build_experts(model, model.experts, store)
    return (*tensors, store.vector("norms", model.norms.per_layer * _count_norm(model)))


def _build_attention(
    model: Checkpoint, store: TensorBuilder, *, is_full: bool = True, has_keys: bool = True
) -> list[Tensor]:
    attention, hidden = model.attention, model.hidden
    heads, own = attention.heads, attention.full if is_full else None
    kv_heads, head_dim = (own.kv_heads, own.head_dim) if own else (attention.kv_heads, attention.head_dim)
    value_dim = attention.value_dim or head_dim
    width, query = heads * value_dim, heads * head_dim * (2 if attention.output_gate else 1)
    store = store.for_attention()
    bias, key_bias = attention.qkv_bias, attention.qkv_bias and attention.key_bias
    tensors = [store.linear("attention.q", hidden, query, "split", bias=bias)]
    if has_keys:
        tensors.append(store.linear("attention.k", hidden, kv_heads * head_dim, "kv", bias=key_bias))
    if has_keys and not (own and own.values_are_keys):
        tensors.append(store.linear("attention.v", hidden, kv_heads * value_dim, "kv", bias=bias))
    tensors.append(store.linear("attention.o", width, hidden, "split", bias=attention.output_bias))
    if attention.qk_norm:
        normed = heads + kv_heads if attention.qk_norm_all_heads else 1 + has_keys
        tensors.append(store.vector("attention.qk_norm", normed * head_dim))
    if attention.sinks:
        tensors.append(store.vector("attention.sinks", heads, "split"))
    return tensors


def _build_latent_attention(model: Checkpoint, mla: Mla, store: TensorBuilder, *, has_indexer: bool) -> list[Tensor]:
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
        *(_build_indexer(model, mla, store) if has_indexer else ()),
        store.linear("attention.kv_down", hidden, mla.kv_lora_rank + mla.qk_rope_head_dim, "replicated"),
        store.linear("attention.kv_up", mla.kv_lora_rank, heads * (mla.qk_nope_head_dim + mla.v_head_dim), "split"),
        store.linear("attention.o", heads * mla.v_head_dim, hidden, "split"),
        store.vector("attention.rank_norms", (rank or 0) + mla.kv_lora_rank),
    ]


def _build_indexer(model: Checkpoint, mla: Mla, store: TensorBuilder) -> list[Tensor]:
    """Return the weights that select the tokens of sparse attention. Every rank has all of them."""
    indexer = mla.indexer
    assert indexer is not None
    queries = mla.q_lora_rank or model.hidden
    return [
        store.linear("indexer.q", queries, indexer.heads * indexer.head_dim, "replicated"),
        store.linear("indexer.k", model.hidden, indexer.head_dim, "replicated"),
        TensorBuilder.plain(model).linear("indexer.weights", model.hidden, indexer.heads, "replicated"),
        store.vector("indexer.norm", 2 * indexer.head_dim),
    ]


def _build_cross_attention(model: Checkpoint, store: TensorBuilder) -> list[Tensor]:
    if not model.encoder or not model.encoder.cross_attention:
        return []
    names = {"attention.q": "cross.q", "attention.k": "cross.k", "attention.v": "cross.v", "attention.o": "cross.o"}
    return [
        Tensor(names[tensor.name], tensor.parameters, tensor.bytes, tensor.shard)
        for tensor in _build_attention(model, store)
    ]


def _build_mlp(model: Checkpoint, store: TensorBuilder, wide: int) -> list[Tensor]:
    hidden, bias = model.hidden, model.mlp_bias
    store = store.for_dense_mlp()
    up = store.linear("mlp.gate_up" if model.gated else "mlp.up", hidden, wide * _count_ups(model), "split", bias=bias)
    return [up, store.linear("mlp.down", wide, hidden, "split", bias=bias)]


def _build_experts(model: Checkpoint, experts: Experts, store: TensorBuilder) -> list[Tensor]:
    hidden, wide, count = model.hidden, experts.intermediate, experts.count
    up, latent, plain = wide * _count_ups(model), experts.latent or hidden, TensorBuilder.plain(model)
    tensors = [
        plain.linear("experts.router", hidden, count, "replicated", bias=experts.router_bias),
        store.linear("experts.gate_up", latent, up, "split", bias=experts.expert_bias, copies=count),
        store.linear("experts.down", wide, latent, "split", bias=experts.expert_bias, copies=count),
    ]
    if experts.latent:
        tensors.append(plain.linear("experts.latent", hidden, 2 * latent, "replicated"))
    if shared := experts.shared_intermediate:
        dense = store.for_dense_mlp()
        tensors.append(dense.linear("shared.gate_up", hidden, shared * _count_ups(model), "split"))
        tensors.append(dense.linear("shared.down", shared, hidden, "split"))
    if experts.shared_gate:
        tensors.append(plain.vector("shared.gate", hidden))
    return tensors


def _build_final(model: Checkpoint) -> tuple[Tensor, ...]:
    store = TensorBuilder.of(model).for_head()
    norm = [TensorBuilder.plain(model).vector("final.norm", _count_norm(model))] if model.norms.final else []
    if model.output == "none":
        return tuple(norm)
    if model.output == "vocabulary":
        head = store.linear("final.head", model.hidden, model.vocab, "vocab")
        return (*norm, Tensor(head.name, 0, head.bytes, "vocab") if model.tied_embeddings else head)
    if model.output == "score":
        return (*norm, TensorBuilder.plain(model).linear("final.score", model.hidden, 1, "replicated"))
    dense = store.linear("final.pooler", model.hidden, model.hidden, "replicated", bias=True)
    if model.output == "pooler":
        return (*norm, dense)
    return (*norm, dense, store.linear("final.score", model.hidden, 1, "replicated", bias=True))


def _count_norm(model: Checkpoint) -> int:
    return model.hidden * (2 if model.norms.bias else 1)


def _count_ups(model: Checkpoint) -> int:
    return 2 if model.gated else 1
