"""What rayhelm knows of a model: its architecture, in the terms of its Hugging Face `config.json`.

One file in `data/models/` each; `huggingface.py` reads the same record out of any `config.json`.
"""

from typing import Literal

from pydantic import Field

from rayhelm.closed import Closed

__all__ = ["Attention", "Encoder", "Experts", "Mla", "Model", "Published", "Quantization", "Task"]

Task = Literal["chat", "embed", "rerank", "transcribe", "speak", "custom"]


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
    output_bias: bool = False
    qk_norm: bool = False
    """RMSNorm on queries and keys, one weight of head_dim each (Qwen3, Gemma 3)."""
    sinks: bool = False
    """One learned sink per head (gpt-oss)."""
    sliding_window: int | None = Field(default=None, gt=0)
    """Tokens that windowed layers see."""
    windowed_layers: int = Field(default=0, ge=0)
    """How many of the layers are windowed; the rest see everything."""
    mla: Mla | None = None


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


class Quantization(Closed):
    """How the checkpoint stores its linear weights. Embeddings, norms and routers stay in `dtype`."""

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
    """Two-dimensional scale blocks (DeepSeek FP8: 128 × 128)."""
    lm_head: bool = False
    """The output head is quantised too."""
    only_experts: bool = False
    """Only expert weights are quantised (gpt-oss)."""


class Encoder(Closed):
    """An encoder beside the decoder (Whisper: audio; vision towers)."""

    layers: int = Field(gt=0)
    hidden: int = Field(gt=0)
    heads: int = Field(gt=0)
    intermediate: int = Field(gt=0)
    positions: int = Field(gt=0)
    """Encoder positions of one input (Whisper: 1500 for 30 s)."""
    kind: Literal["audio", "vision"]


class Published(Closed):
    """What the publisher states, to check the arithmetic against."""

    parameters: float = Field(gt=0)
    """Parameters, as a count (not billions)."""
    source: str


class Model(Closed):
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
    max_context: int = Field(gt=0)
    """Longest context that the model takes, tokens."""
    dtype: Literal["bfloat16", "float16", "float32"] = "bfloat16"
    attention: Attention
    experts: Experts | None = None
    quantization: Quantization | None = None
    encoder: Encoder | None = None
    extra_parameters: int = Field(default=0, ge=0)
    """Parameters that no formula here covers, counted from the publisher's code or checkpoint; `extra_source` says which."""
    extra_source: str = ""
    engine: Literal["vllm", "custom"] = "vllm"
    """Whether vLLM serves it; `custom` needs an application of its own (text-to-speech)."""
    published: Published | None = None
    source: str
    """Where the architecture was read: repository and file."""
    notes: str = ""
