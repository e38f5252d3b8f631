"""Architecture of a model, in the terms of its Hugging Face `config.json`.

One file in `data/models/` each; `huggingface.py` reads the same record out of any `config.json`.
"""

from functools import cached_property
from typing import Literal, Self

from pydantic import Field, model_validator

from rayhelm.facts.closed import Closed
from rayhelm.facts.model_memory import BuiltMemory, BuiltRank, StatedMemory
from rayhelm.facts.tasks import Task

__all__ = [
    "Attention",
    "BuiltMemory",
    "BuiltRank",
    "Checkpoint",
    "Companion",
    "Encoder",
    "Experts",
    "FullAttention",
    "Indexer",
    "Mla",
    "Norms",
    "Published",
    "Quantization",
    "Recurrence",
    "StatedMemory",
]


class Indexer(Closed):
    """Selection of the tokens that sparse attention reads (DeepSeek V3.2, GLM 5). It caches a key of its own."""

    heads: int = Field(gt=0)
    head_dim: int = Field(gt=0)
    layers: int = Field(gt=0)
    """Layers with an indexer of their own; the others use the selection of the layer before."""


class Mla(Closed):
    """Multi-head latent attention (DeepSeek): the cache holds one latent per token, the same on every TP rank."""

    kv_lora_rank: int = Field(gt=0)
    q_lora_rank: int | None = Field(default=None, gt=0)
    qk_nope_head_dim: int = Field(gt=0)
    qk_rope_head_dim: int = Field(gt=0)
    v_head_dim: int = Field(gt=0)
    indexer: Indexer | None = None


class FullAttention(Closed):
    """Layers with full attention, where they differ from those with a sliding window (Gemma 4, MiMo V2)."""

    kv_heads: int = Field(gt=0)
    head_dim: int = Field(gt=0)
    values_are_keys: bool = False
    """No value projection: values are the keys before their rotation. The cache holds both."""


class Attention(Closed):
    """Decoder (or encoder-only) attention. `kv_heads == heads` is MHA, 1 is MQA, between them GQA."""

    heads: int = Field(gt=0)
    kv_heads: int = Field(gt=0)
    head_dim: int = Field(gt=0)
    qkv_bias: bool = False
    key_bias: bool = True
    """If queries and values have a bias, keys have one too (not in Whisper)."""
    output_bias: bool = False
    qk_norm: bool = False
    """RMSNorm on queries and keys, one weight of head_dim each (Qwen3, Gemma 3)."""
    qk_norm_all_heads: bool = False
    """Their norms have a weight for each channel of all heads (OLMo 2, MiniMax M2)."""
    value_dim: int | None = Field(default=None, gt=0)
    """Width of a value, where it is not that of a key (MiMo V2)."""
    output_gate: bool = False
    """A gate as wide as the queries multiplies the output (Qwen3-Next)."""
    full: FullAttention | None = None
    cache_shared_layers: int = Field(default=0, ge=0)
    """Last layers that read the cache of an earlier layer (Gemma 3n and 4)."""
    sinks: bool = False
    """One learned sink per head (gpt-oss)."""
    sliding_window: int | None = Field(default=None, gt=0)
    """Size of the sliding window, tokens."""
    windowed_layers: int = Field(default=0, ge=0)
    """Number of layers with a sliding window; the others have full attention."""
    chunk: int | None = Field(default=None, gt=0)
    """Size of a chunk, tokens: a token attends to those of its own chunk (Llama 4)."""
    chunked_layers: int = Field(default=0, ge=0)
    """Number of layers with chunks. Their cache holds all tokens: vLLM's default."""
    mla: Mla | None = None

    @property
    def local_layers(self) -> int:
        """Return the layers that read a bounded number of tokens."""
        return self.windowed_layers + self.chunked_layers

    @property
    def local_tokens(self) -> int | None:
        """Return the most tokens that they read; None without such layers."""
        return self.sliding_window or self.chunk if self.local_layers else None

    @model_validator(mode="after")
    def _check_heads(self) -> Self:
        if self.heads % self.kv_heads:
            raise ValueError(f"kv_heads {self.kv_heads} does not divide heads {self.heads}")
        if self.windowed_layers and not self.sliding_window:
            raise ValueError("windowed_layers needs sliding_window, the size of the window in tokens")
        if self.chunked_layers and not self.chunk:
            raise ValueError("chunked_layers needs chunk, the size of a chunk in tokens")
        if self.full and self.heads % self.full.kv_heads:
            raise ValueError(f"full.kv_heads {self.full.kv_heads} does not divide heads {self.heads}")
        return self


class Recurrence(Closed):
    """Layers with a state of fixed size in place of attention: Mamba, gated delta rule, short convolution."""

    kind: Literal["mamba", "mamba2", "delta", "kimi_delta", "convolution"]
    layers: tuple[int, ...] = Field(min_length=1)
    """Which layers, counted from 0."""
    heads: int = Field(default=1, gt=0)
    head_dim: int = Field(gt=0)
    """Width of a head; mamba and convolution: of the whole layer."""
    groups: int = Field(default=1, gt=0)
    """Mamba 2: groups of B and C; delta: heads of queries and keys."""
    state: int = Field(default=1, gt=0)
    """Mamba: states per channel; delta: width of a query or key."""
    kernel: int = Field(gt=1)
    """Width of the convolution, tokens."""
    rank: int = Field(default=0, ge=0)
    """Mamba: rank of the step size."""
    projection_bias: bool = False
    convolution_bias: bool = False
    norms: bool = False
    """Mamba: norms of step size, B and C (Jamba)."""
    gated_norm: bool = True
    """Mamba 2: a norm before the output projection."""
    state_bits: Literal[16, 32] = 16
    """Of an element of the recurrent state; the state of the convolution has the dtype of the model."""
    beside_attention: bool = False
    """Each of these layers has attention too (Falcon-H1)."""


class Experts(Closed):
    """Mixture of experts."""

    count: int = Field(gt=1)
    """Routed experts per layer."""
    active: int = Field(gt=0)
    """Routed experts per token."""
    intermediate: int = Field(gt=0)
    """Width of one expert."""
    shared_intermediate: int = Field(default=0, ge=0)
    """Width of the shared expert(s) together; 0: none."""
    dense_layers: int = Field(default=0, ge=0)
    """First layers that are dense (DeepSeek's `first_k_dense_replace`)."""
    layers: tuple[int, ...] | None = None
    """Layers with experts, counted from 0; None: all after `dense_layers`."""
    router_bias: bool = False
    expert_bias: bool = False
    shared_gate: bool = False
    """A gate of one output decides the weight of the shared expert (Qwen2-MoE)."""
    beside_dense: bool = False
    """Each layer has a dense MLP too (Gemma 4)."""
    latent: int = Field(default=0, ge=0)
    """Width to which hidden states are projected before the routed experts (Nemotron 3 Super); 0: not projected."""

    @model_validator(mode="after")
    def _check_active_experts(self) -> Self:
        if self.active > self.count:
            raise ValueError(f"active {self.active} is more than the {self.count} experts of a layer")
        return self


class Quantization(Closed):
    """Quantization of the linear weights of a checkpoint. Embeddings, norms and routers stay in `dtype`."""

    method: str
    """`awq`, `gptq`, `fp8`, `mxfp4`, `bitsandbytes`, `compressed-tensors` …"""
    bits: float = Field(gt=0, le=16)
    """Bits per weight, without scales."""
    group_size: int | None = Field(default=None, gt=0)
    """Weights that share a scale; None: one scale per tensor or channel."""
    scale_bits: int = Field(default=16, ge=0)
    zero_bits: int = Field(default=0, ge=0)
    """Bits of the zero point of a group (AWQ and GPTQ: 4)."""
    block: tuple[int, int] | None = None
    """Two-dimensional scale blocks (DeepSeek FP8: 128 by 128)."""
    lm_head: bool = False
    """The output head is quantized too."""
    attention: bool = True
    """Attention projections are quantized too (Meta's FP8 405B keeps them in `dtype`)."""
    only_experts: bool = False
    """Only expert weights are quantized (gpt-oss)."""
    weight_type: Literal["int", "float"] | None = None
    """Type of a weight, where the method alone does not tell (compressed-tensors)."""
    kv_bits: Literal[4, 8] | None = None
    """Bits of a cached key or value with `kv_cache_dtype: auto`, floating point (4: NVFP4); None: 16."""
    skip_layers: tuple[int, ...] = ()
    """Layers that stay in `dtype`, counted from 0."""


class Encoder(Closed):
    """An encoder in addition to the decoder (Whisper: audio; vision towers)."""

    layers: int = Field(gt=0)
    hidden: int = Field(gt=0)
    heads: int = Field(gt=0)
    intermediate: int = Field(gt=0)
    positions: int = Field(gt=0)
    """Encoder positions of one input (Whisper: 1500 for 30 s)."""
    kind: Literal["audio", "vision", "text"]
    key_bias: bool = True
    """Keys have a bias, as queries and values have."""
    mel_bins: int | None = Field(default=None, gt=0)
    """Audio: rows of the spectrogram, which two convolutions of width 3 read."""
    patch: int | None = Field(default=None, gt=0)
    """Vision: edge of the square RGB patch that one position sees, pixels."""
    gated: bool = False
    """The MLP has a gate: three matrices."""
    bias: bool = True
    """Linear layers have a bias."""
    norm_bias: bool = True
    """LayerNorm, with a bias; False: RMSNorm."""
    learned_positions: bool = True
    """A learned embedding for each position; False: rotary."""
    frames: int = Field(default=1, gt=0)
    """Vision: frames in one patch (Qwen-VL: 2)."""
    cross_attention: bool = False
    """Each decoder layer attends to the encoder's output, whose keys and values are cached per request."""


class Norms(Closed):
    """Normalization layers. RMSNorm has one weight per channel, LayerNorm a bias besides."""

    per_layer: int = Field(default=2, ge=0)
    """In one decoder layer, those over `hidden` (Gemma 3: 4; with cross-attention: 3)."""
    bias: bool = False
    embedding: bool = False
    """One after the embeddings (BERT)."""
    final: bool = True
    """One before the output head."""


class Companion(Closed):
    """A checkpoint that another checkpoint needs."""

    role: str
    """Role of the checkpoint: `vocoder`."""
    source: str
    """Hub id."""


class Published(Closed):
    """Figures of the publisher, for a test of the computed weights."""

    parameters: float = Field(gt=0)
    """Parameters, as a count (not billions)."""
    source: str


class Checkpoint(Closed):
    """One checkpoint."""

    id: str
    """Hub id: `meta-llama/Llama-3.1-8B-Instruct`."""
    aliases: tuple[str, ...] = ()
    tasks: tuple[Task, ...] = ("chat",)
    architecture: str
    """First of `architectures` in config.json: `LlamaForCausalLM`."""
    layers: int = Field(gt=0)
    hidden: int = Field(gt=0)
    intermediate: int = Field(ge=0)
    """Width of the dense MLP; 0: none (Mamba, models with experts in each layer)."""
    gated: bool = True
    """The MLP has a gate (SwiGLU: three matrices); False: two."""
    mlp_bias: bool = False
    vocab: int = Field(gt=0)
    tied_embeddings: bool = False
    positions: int = Field(default=0, ge=0)
    """Learned position embeddings (BERT, Whisper's decoder); 0: rotary."""
    token_types: int = Field(default=0, ge=0)
    """Segment embeddings (BERT 2, XLM-RoBERTa 1)."""
    causal: bool = True
    """A decoder, which caches keys and values; False: encoder-only, no cache."""
    output: Literal["vocabulary", "pooler", "classifier", "score", "none"] = "vocabulary"
    """Output head: logits over `vocab`, BERT's pooler, a dense layer with one score, one score alone, or none."""
    norms: Norms = Norms()
    max_context: int = Field(gt=0)
    """Longest context of the model, tokens."""
    usual_context: int | None = Field(default=None, gt=0)
    """Context of vLLM without `max_model_len`, where it is shorter (LongRoPE); None: `max_context`."""
    dtype: Literal["bfloat16", "float16", "float32"] = "bfloat16"
    attention: Attention
    experts: Experts | None = None
    recurrence: Recurrence | None = None
    mlp_widths: tuple[int, ...] = ()
    """Width of the dense MLP of each layer where they differ, 0 for a layer without one; empty: all `intermediate`."""
    attention_free: tuple[int, ...] = ()
    """Layers without attention that have no recurrent state either, counted from 0."""
    quantization: Quantization | None = None
    encoder: Encoder | None = None
    extra_parameters: int = Field(default=0, ge=0)
    """Parameters that the formulas do not include, counted in the publisher's code or checkpoint (`extra_source`)."""
    extra_source: str = ""
    engine: Literal["vllm", "custom"] = "vllm"
    """Whether vLLM serves it; `custom` needs an application of its own (text-to-speech)."""
    needs_token: bool = False
    """Gated: the hub requires a token of an account that accepted the license."""
    companions: tuple[Companion, ...] = ()
    """Other repositories that the model needs."""
    stated: StatedMemory | None = None
    built: BuiltMemory | None = None
    published: Published | None = None
    source: str
    """Source of the architecture: repository and file."""
    notes: str = ""

    @model_validator(mode="after")
    def _check_layers(self) -> Self:
        for key, count in (("windowed", self.attention.windowed_layers), ("chunked", self.attention.chunked_layers)):
            if count > self.layers:
                raise ValueError(f"attention.{key}_layers {count} exceeds layers {self.layers}")
        if self.experts and self.experts.dense_layers > self.layers:
            raise ValueError(f"experts.dense_layers {self.experts.dense_layers} exceeds layers {self.layers}")
        if self.recurrence and max(self.recurrence.layers) >= self.layers:
            raise ValueError(f"recurrence.layers names a layer above {self.layers - 1}, the last one")
        if self.mlp_widths and len(self.mlp_widths) != self.layers:
            raise ValueError(f"mlp_widths has {len(self.mlp_widths)} entries for {self.layers} layers")
        if self.quantization and any(layer >= self.layers for layer in self.quantization.skip_layers):
            raise ValueError(f"quantization.skip_layers names a layer above {self.layers - 1}, the last one")
        if self.extra_parameters and not self.extra_source:
            raise ValueError("extra_parameters needs extra_source: where they were counted")
        return self

    @property
    def default_context(self) -> int:
        """Return the context of vLLM without `max_model_len`, tokens."""
        return min(self.usual_context or self.max_context, self.max_context)

    @cached_property
    def expert_layers(self) -> frozenset[int]:
        """Return the layers with experts, counted from 0."""
        if self.experts is None:
            return frozenset()
        return frozenset(self.experts.layers or range(self.experts.dense_layers, self.layers))

    @cached_property
    def recurrent_layers(self) -> frozenset[int]:
        """Return the layers with a recurrent state, counted from 0."""
        return frozenset(self.recurrence.layers if self.recurrence else ())

    @cached_property
    def attention_layers(self) -> tuple[int, ...]:
        """Return the layers with attention, counted from 0."""
        without = set() if self.recurrence and self.recurrence.beside_attention else set(self.recurrent_layers)
        return tuple(layer for layer in range(self.layers) if layer not in without.union(self.attention_free))

    @cached_property
    def windowed_layers(self) -> frozenset[int]:
        """Return the layers with a sliding window, counted from 0. They are assumed evenly spread, the layers with full
        attention last in each group: only the split over pipeline stages depends on their position."""
        layers = self.attention_layers
        full = len(layers) - self.attention.windowed_layers
        return frozenset(
            layer
            for index, layer in enumerate(layers)
            if (index + 1) * full // len(layers) == index * full // len(layers)
        )
