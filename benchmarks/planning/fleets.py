"""Generated fleets: many models and pools, the same for the same seed."""

import random
from typing import Any

__all__ = ["generate_fleet", "is_small"]

_POOLS: tuple[tuple[str, int, str, float], ...] = (
    ("H100-SXM-80GB", 8, "rdma-400g", 4.0),
    ("L40S-48GB", 4, "ethernet-100g", 1.1),
    ("A100-SXM-80GB", 8, "rdma-200g", 2.2),
    ("RTX-4090-24GB", 2, "ethernet-10g", 0.4),
    ("L4-24GB", 4, "ethernet-25g", 0.6),
    ("H200-SXM-141GB", 8, "rdma-400g", 5.0),
    ("RTX-A6000-48GB", 4, "ethernet-25g", 0.8),
    ("B200-SXM-180GB", 8, "rdma-400g", 8.0),
)
"""GPU, GPUs per node, network, and USD per GPU and hour before the pool's own discount."""
_SMALL = ("Qwen/Qwen3-8B", "meta-llama/Llama-3.1-8B-Instruct", "Qwen/Qwen3-4B", "mistralai/Mistral-7B-Instruct-v0.3")
_MEDIUM = ("Qwen/Qwen3-32B", "Qwen/Qwen3-14B", "google/gemma-3-27b-it", "openai/gpt-oss-20b", "Qwen/Qwen3-30B-A3B")
_LARGE = ("meta-llama/Llama-3.3-70B-Instruct", "openai/gpt-oss-120b", "Qwen/Qwen3-235B-A22B-FP8")
_RDMA = "rdma/hca_shared_devices_a"
_GPUS_PER_MODEL = 6
"""GPUs in all pools together, by model: about twice what a plan uses."""


def generate_fleet(models: int, pools: int, seed: int = 1, *, repeats_lengths: bool = True) -> dict[str, Any]:
    """Return a fleet file as a map, with enough GPUs for its models. `repeats_lengths`: whether prompts and responses
    have one of three lengths each."""
    dice = random.Random(f"{models} {pools} {seed}")
    names = [f"pool-{index:03}" for index in range(pools)]
    return {
        "fleet": "generated",
        "clusters": {"main": {"apiServer": {"cidrs": ["10.0.0.1/32"]}}},
        "pools": {name: _generate_pool(index, name, models / pools, dice) for index, name in enumerate(names)},
        "models": {f"model-{index:05}": _generate_model(dice, repeats_lengths) for index in range(models)},
    }


def is_small(model: dict[str, Any]) -> bool:
    """Return whether a generated model has at most 8 billion parameters."""
    return model["source"] in _SMALL


def _generate_pool(index: int, name: str, models: float, dice: random.Random) -> dict[str, Any]:
    gpu, each, network, price = _POOLS[index % len(_POOLS)]
    pool = {
        "gpu": gpu,
        "nodes": max(4, round(models * _GPUS_PER_MODEL / each)),
        "gpusPerNode": each,
        "network": network,
        "price": f"{price * dice.uniform(0.9, 1.1):.3f} USD/h",
        "nodeSelector": {"rayhelm.dev/pool": name},
    }
    return pool | ({"rdmaResource": _RDMA} if network.startswith("rdma") else {})


def _generate_model(dice: random.Random, repeats_lengths: bool) -> dict[str, Any]:
    (family,) = dice.choices((_SMALL, _MEDIUM, _LARGE), (70, 25, 5))
    if repeats_lengths:
        prompt, answer = dice.choice((256, 1024, 3000)), dice.choice((64, 200, 500))
    else:
        prompt, answer = dice.randint(256, 3000), dice.randint(64, 500)
    rate = {_SMALL: 10.0, _MEDIUM: 3.0, _LARGE: 1.0}[family] ** dice.uniform(-1, 1)
    model: dict[str, Any] = {
        "source": dice.choice(family),
        "unpinnedReason": "generated",
        "context": 8192,
        "traffic": {"requestsPerSecond": round(rate, 2), "inputTokens": prompt, "outputTokens": answer},
    }
    return model | ({"slo": {"ttft": "3s", "tpot": "100ms"}} if dice.random() < 0.5 else {})
