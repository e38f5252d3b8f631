"""Compare the result with the planner, and write the tables of `docs/verification.md`."""

import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from rayhelm.facts import load_catalog
from rayhelm.facts.huggingface import read_config
from rayhelm.planner.memory.engine_settings import read_settings
from rayhelm.planner.memory.fit import Fit, fit
from rayhelm.planner.speed.estimate import SpeedEstimate
from rayhelm.planner.speed.query import SpeedQuery, answer_query

__all__ = ["PAGE", "SHAPES", "build_tables", "estimate_load", "fit_shape", "replace_tables"]

PAGE = Path(__file__).parents[2] / "docs" / "verification.md"
SHAPES = {
    "llama-3.1-8b": "meta-llama/Llama-3.1-8B-Instruct",
    "qwen3-0.6b": "Qwen/Qwen3-0.6B",
    "qwen3-30b-a3b": "Qwen/Qwen3-30B-A3B",
}
"""Model of the catalog with the shape of each file in `shapes`."""
_TABLES = re.compile(r"(<!-- engine -->\n).*(<!-- end of engine -->)", re.DOTALL)


def build_tables(result: Mapping[str, Any]) -> str:
    """Build both tables: memory, then speed."""
    memory = [
        ("model", "weights, GiB", "KV cache, GiB", "tokens of the KV cache", "difference"),
        ("---", *["---:"] * 4),
        *_list_memory(result),
    ]
    speed = [
        ("model", "tokens of a prompt", "in flight", "output tokens/s", "TPOT of one request, ms"),
        ("---", *["---:"] * 4),
        *_list_speed(result),
    ]
    return "\n\n".join("\n".join(f"| {' | '.join(row)} |" for row in rows) for rows in (memory, speed)) + "\n"


def replace_tables(page: str, result: Mapping[str, Any]) -> str:
    return _TABLES.sub(lambda found: f"{found[1]}\n{build_tables(result)}\n{found[2]}", page)


def fit_shape(name: str, measured: Mapping[str, Any], gpu: str) -> Fit:
    """Return the memory that the planner computes for the measured shape."""
    return fit(
        read_config(SHAPES[name]),
        [load_catalog().gpu(gpu)],
        settings=read_settings(measured),
        vllm_version=measured["vllm"],
    )


def estimate_load(name: str, measured: Mapping[str, Any], load: Mapping[str, Any], gpu: str) -> SpeedEstimate:
    """Return the speed that the planner estimates for a measured load."""
    return answer_query(
        SpeedQuery(
            model=SHAPES[name],
            gpu=gpu,
            input_tokens=load["input_tokens"],
            output_tokens=load["output_tokens"],
            concurrency=load["concurrency"],
            engine={"max_num_seqs": measured["max_num_seqs"]},
        )
    )


def _list_memory(result: Mapping[str, Any]) -> Iterator[tuple[str, ...]]:
    for name, measured in result["shapes"].items():
        planned = fit_shape(name, measured, result["gpu"])
        tokens, measured_tokens = planned.kv_cache_tokens or 0, measured["kv_cache_tokens"]
        cache = f"{planned.kv_available_gib_per_gpu:.2f} ± {planned.error_gib:.1f}"
        yield (
            SHAPES[name].partition("/")[2],
            f"{measured['weights_gib']:.2f}, planned {planned.weights_gib_per_gpu:.2f}",
            f"{measured['kv_available_gib']:.2f}, planned {cache}",
            f"{measured_tokens:,}, planned {tokens:,}",
            f"{tokens / measured_tokens - 1:+.1%}".replace("%", " %"),
        )


def _list_speed(result: Mapping[str, Any]) -> Iterator[tuple[str, ...]]:
    for name, measured in result["shapes"].items():
        for load in measured["loads"]:
            found = estimate_load(name, measured, load, result["gpu"])
            rate, tpot = found.output_tokens_per_second, found.tpot_s
            rates = f"{rate.mid:,.0f} ({rate.low:,.0f} to {rate.high:,.0f})"
            times = f"{tpot.mid * 1e3:.2f} ({tpot.low * 1e3:.2f} to {tpot.high * 1e3:.2f})"
            yield (
                SHAPES[name].partition("/")[2],
                f"{load['input_tokens']:,}",
                str(load["concurrency"]),
                f"{load['output_tokens_per_second']:,.0f}, estimated {rates}",
                f"{load['tpot_s'] * 1e3:.2f}, estimated {times}" if load["concurrency"] == 1 else "",
            )
