"""python -m engine.measure FOLDER RESULT: start vLLM with random weights, and measure it in closed loops.

FOLDER has a config.json. One JSON object is written to RESULT; the log of the engine goes to standard output.
"""

import asyncio
import json
import os
import random
import statistics
import sys
import time
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

MAX_MODEL_LEN = 16384
MAX_NUM_SEQS = 256
LOADS = ((1, 1024), (8, 1024), (32, 1024), (128, 1024), (4, 8000))
"""Requests in flight, and tokens of each prompt."""
OUTPUT_TOKENS = 128
ROUNDS = 3
"""Requests of each client, one after the other."""


@dataclass(frozen=True)
class Timing:
    """One request, in seconds."""

    ttft_s: float
    tpot_s: float
    tokens: int


def main(folder: str, result: str) -> None:
    from vllm import __version__
    from vllm.engine.arg_utils import AsyncEngineArgs
    from vllm.usage.usage_lib import UsageContext
    from vllm.v1.engine.async_llm import AsyncLLM

    begin = time.monotonic()
    arguments = AsyncEngineArgs(
        model=folder,
        load_format="dummy",
        skip_tokenizer_init=True,
        enable_prefix_caching=False,
        max_model_len=MAX_MODEL_LEN,
        max_num_seqs=MAX_NUM_SEQS,
    )
    engine = AsyncLLM.from_engine_args(arguments, usage_context=UsageContext.OPENAI_API_SERVER)
    started = time.monotonic() - begin
    config = engine.vllm_config
    found = {
        "vllm": __version__,
        "gpu_memory_utilization": config.cache_config.gpu_memory_utilization,
        "max_model_len": config.model_config.max_model_len,
        "max_num_seqs": config.scheduler_config.max_num_seqs,
        "max_num_batched_tokens": config.scheduler_config.max_num_batched_tokens,
        "kv_cache_tokens": config.cache_config.num_gpu_blocks * config.cache_config.block_size,
        "starts_s": [round(started, 1)],
        "loads": asyncio.new_event_loop().run_until_complete(measure_loads(engine)),
    }
    Path(result).write_text(json.dumps(found))
    engine.shutdown()
    # The tasks of the engine outlive its shutdown, and would end this process with an error.
    os._exit(0)


async def measure_loads(engine: Any) -> list[dict[str, float]]:
    await asyncio.gather(*(send(engine, f"warm-up-{number}", 300, 16) for number in range(8)))
    return [await measure_load(engine, *load) for load in LOADS]


async def measure_load(engine: Any, concurrency: int, input_tokens: int) -> dict[str, float]:
    """Keep `concurrency` requests in flight."""
    numbers = iter(range(ROUNDS * concurrency))
    timings: list[Timing] = []

    async def run_client() -> None:
        for number in numbers:
            timings.append(await send(engine, f"{concurrency}-{input_tokens}-{number}", input_tokens, OUTPUT_TOKENS))

    begin = time.perf_counter()
    await asyncio.gather(*(run_client() for _ in range(concurrency)))
    seconds = time.perf_counter() - begin
    means = {name: statistics.fmean(asdict(each)[name] for each in timings) for name in ("ttft_s", "tpot_s")}
    return {
        "concurrency": concurrency,
        "input_tokens": input_tokens,
        "output_tokens": OUTPUT_TOKENS,
        "requests": len(timings),
        **{name: round(value, 6) for name, value in means.items()},
        "output_tokens_per_second": round(sum(each.tokens for each in timings) / seconds, 1),
    }


async def send(engine: Any, name: str, input_tokens: int, output_tokens: int) -> Timing:
    """Send random tokens, and read exactly `output_tokens`."""
    from vllm import SamplingParams
    from vllm.sampling_params import RequestOutputKind

    vocabulary = engine.vllm_config.model_config.get_vocab_size()
    prompt = {"prompt_token_ids": [random.randrange(100, vocabulary - 100) for _ in range(input_tokens)]}
    sampling = SamplingParams(
        max_tokens=output_tokens,
        min_tokens=output_tokens,
        ignore_eos=True,
        temperature=0.0,
        detokenize=False,
        output_kind=RequestOutputKind.DELTA,
    )
    begin, first, last, tokens = time.perf_counter(), 0.0, 0.0, 0
    async for answer in engine.generate(prompt, sampling, name):
        if not (new := len(answer.outputs[0].token_ids)):
            continue
        last = time.perf_counter()
        first, tokens = first or last, tokens + new
    return Timing(first - begin, (last - first) / (tokens - 1), tokens)


if __name__ == "__main__":
    main(*sys.argv[1:])
