"""Architecture of a model, in the terms of its Hugging Face `config.json`.

One file in `data/models/` each; `huggingface.py` reads the same record out of any `config.json`.
"""

from typing import Literal, Self

from pydantic import Field, model_validator

from rayhelm.catalog.tasks import Task
from rayhelm.closed import Closed

__all__ = [
    "Attention",
    "Checkpoint",
    "Companion",
    "Encoder",
    "Experts",
    "Mla",
    "Norms",
    "Published",
    "Quantization",
]


class Mla(Closed):
    """Multi-head latent attention (DeepSeek): the cache holds one latent per token, the same on every TP rank."""

    kv_lora_rank: int = Field(gt=0)
    q_lora_rank: int | None = Field(default=None, gt=0)
    qk_nope_head_dim: int = Field(gt=0)
    qk_rope_head_dim: int = Field(gt=0)
    v_head_dim: int = Field(gt=0)


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
    sinks: bool = False
    """One learned sink per head (gpt-oss)."""
    sliding_window: int | None = Field(default=None, gt=0)
    """Size of the sliding window, tokens."""
    windowed_layers: int = Field(default=0, ge=0)
    """Number of layers with a sliding window; the others have full attention."""
    mla: Mla | None = None

    @model_validator(mode="after")
    def _check_heads(self) -> Self:
        if self.heads % self.kv_heads:
            raise ValueError(f"kv_heads {self.kv_heads} does not divide heads {self.heads}")
        if self.windowed_layers and not self.sliding_window:
            raise ValueError("windowed_layers needs sliding_window, the size of the window in tokens")
        return self


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
    router_bias: bool = False
    expert_bias: bool = False

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
    intermediate: int = Field(gt=0)
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
    output: Literal["vocabulary", "pooler", "classifier", "none"] = "vocabulary"
    """Output head: logits over `vocab`, BERT's pooler, a dense layer with one score, or none."""
    norms: Norms = Norms()
    max_context: int = Field(gt=0)
    """Longest context of the model, tokens."""
    dtype: Literal["bfloat16", "float16", "float32"] = "bfloat16"
    attention: Attention
    experts: Experts | None = None
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
    published: Published | None = None
    source: str
    """Source of the architecture: repository and file."""
    notes: str = ""

    @model_validator(mode="after")
    def _check_layers(self) -> Self:
        if self.attention.windowed_layers > self.layers:
            raise ValueError(f"attention.windowed_layers {self.attention.windowed_layers} exceeds layers {self.layers}")
        if self.experts and self.experts.dense_layers > self.layers:
            raise ValueError(f"experts.dense_layers {self.experts.dense_layers} exceeds layers {self.layers}")
        if self.quantization and any(layer >= self.layers for layer in self.quantization.skip_layers):
            raise ValueError(f"quantization.skip_layers names a layer above {self.layers - 1}, the last one")
        if self.extra_parameters and not self.extra_source:
            raise ValueError("extra_parameters needs extra_source: where they were counted")
        return self
