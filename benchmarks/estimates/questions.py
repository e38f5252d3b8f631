"""What AIConfigurator is asked for a measured row, and why some rows cannot be asked."""

from typing import Any

from rayhelm.planner.speed.rows import MeasuredRow

__all__ = ["CACHES", "MODES", "SYSTEMS", "build_question"]

MODES = ("SILICON", "HYBRID")
"""Its default, and the mode that fills gaps of the data by formulas: asked where the default has no answer."""
CACHES = {"bf16": "bfloat16", "fp8": "fp8"}
"""Precisions of the KV cache that it is asked with where NVIDIA's checkpoint sets FP8, which the rows do not record."""

SYSTEMS = {
    "H100-SXM-80GB": "h100_sxm",
    "H200-SXM-141GB": "h200_sxm",
    "B200-SXM-180GB": "b200_sxm",
    "RTX-PRO-6000-96GB": "rtx_pro_6000_server",
}
"""GPUs of the rows that it has data for."""
_CHECKPOINTS: dict[tuple[str, str], tuple[str, dict[str, str]]] = {
    ("Qwen/Qwen3-32B", "bf16"): ("Qwen/Qwen3-32B", {}),
    ("Qwen/Qwen3-32B", "fp8"): ("Qwen/Qwen3-32B", {"gemm_quant_mode": "fp8"}),
    ("Qwen/Qwen3-30B-A3B", "bf16"): ("Qwen/Qwen3-30B-A3B", {}),
    ("meta-llama/Llama-3.1-8B-Instruct", "bf16"): ("meta-llama/Meta-Llama-3.1-8B", {}),
    ("meta-llama/Llama-3.1-8B-Instruct", "fp8"): ("meta-llama/Meta-Llama-3.1-8B", {"gemm_quant_mode": "fp8"}),
    ("meta-llama/Llama-3.1-70B-Instruct", "fp8"): ("meta-llama/Meta-Llama-3.1-70B", {"gemm_quant_mode": "fp8"}),
    ("meta-llama/Llama-3.1-70B-Instruct", "nvfp4"): ("meta-llama/Meta-Llama-3.1-70B", {"gemm_quant_mode": "nvfp4"}),
    ("meta-llama/Llama-3.1-405B-Instruct", "fp8"): ("meta-llama/Meta-Llama-3.1-405B", {"gemm_quant_mode": "fp8"}),
    ("moonshotai/Kimi-K2-Instruct", "int4"): ("moonshotai/Kimi-K2.5", {}),
    ("moonshotai/Kimi-K2-Instruct", "nvfp4"): ("nvidia/Kimi-K2.5-NVFP4", {}),
    ("openai/gpt-oss-120b", "mxfp4"): ("openai/gpt-oss-120b", {}),
}
"""By architecture and weights of a row: the configuration that the package carries, and its quantization."""


def build_question(row: MeasuredRow, kv_cache: str | None, database_mode: str) -> dict[str, Any] | None:
    """Return the arguments of `cli_estimate`; None if the package has no data for the GPU.

    `kv_cache`: its `kvcache_quant_mode`; None: what it infers from the checkpoint.
    """
    system = SYSTEMS.get(row.gpu)
    if system is None:
        return None
    model, quantization = _CHECKPOINTS[row.model, row.weights]
    question = {
        "model_path": model,
        "system_name": system,
        "backend_name": "vllm",
        "database_mode": database_mode,
        "isl": int(row.load.input_tokens),
        "osl": int(row.load.output_tokens),
        "batch_size": max(1, round(row.load.concurrency / row.shape.dp)),
        "tp_size": row.shape.tp,
        "attention_dp_size": row.shape.dp,
        **quantization,
    }
    if kv_cache:
        question["kvcache_quant_mode"] = kv_cache
    experts = row.shape.tp * row.shape.dp
    sizes = (1, experts) if row.shape.has_expert_parallel else (experts, 1)
    return question | dict(zip(("moe_tp_size", "moe_ep_size"), sizes, strict=True))
