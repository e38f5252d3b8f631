"""CPU time of vLLM's output processor for each generated token, with and without the count."""

import time
from typing import Any

__all__ = ["REQUESTS", "STEPS", "measure"]

REQUESTS = 256
"""Requests in each step, as on a busy GPU."""
STEPS = 400
STEPS_PER_SECOND = 50
"""Steps between two reads of the running requests: those of an engine with 20 ms for a step."""


async def measure() -> tuple[float, float, float]:
    """Return CPU microseconds for each token without and with the count, and those of one read of the requests.

    Two processors take turns in each step, so that other processes slow both. Streams of 16 tenants; without a
    tokenizer, which costs more.
    """
    from vllm.v1.engine.output_processor import OutputProcessor

    from rayhelm.runtime.token_usage import engine
    from rayhelm.runtime.token_usage.ledger import HEADER, TokenLedger

    ledger = TokenLedger(lambda counted: None)
    processors = [OutputProcessor(None, log_stats=True) for _ in range(2)]
    requests = engine.count_tokens(processors[1], ledger)
    for number in range(REQUESTS):
        engine._tenant.set(ledger.name_tenant({HEADER: f"tenant-{number % 16}"}))
        for processor in processors:
            _register(processor, f"request-{number}")
    used, reads = [0.0, 0.0], 0.0
    for step in range(STEPS):
        for side in (0, 1) if step % 2 else (1, 0):
            used[side] += _step(processors[side], is_first=not step)
        if step % STEPS_PER_SECOND == 0:
            start = time.process_time()
            requests.collect()
            reads += time.process_time() - start
    tokens, count = REQUESTS * STEPS, STEPS // STEPS_PER_SECOND
    return used[0] / tokens * 1e6, (used[1] + reads) / tokens * 1e6, reads / count * 1e6


def _step(processor: Any, *, is_first: bool) -> float:
    """Process one token of each request, and return the CPU seconds."""
    from vllm.v1.engine import EngineCoreOutput
    from vllm.v1.metrics.stats import IterationStats, PrefillStats

    prefill = PrefillStats()
    prefill.num_prompt_tokens = 5
    outputs = [
        EngineCoreOutput(request_id=f"request-{number}", new_token_ids=[1], prefill_stats=prefill if is_first else None)
        for number in range(REQUESTS)
    ]
    stats = IterationStats()
    start = time.process_time()
    processor.process_outputs(outputs, time.monotonic(), stats)
    return time.process_time() - start


def _register(processor: Any, name: str) -> None:
    from vllm.sampling_params import RequestOutputKind, SamplingParams
    from vllm.v1.engine import EngineCoreRequest
    from vllm.v1.engine.output_processor import RequestOutputCollector

    params = SamplingParams(detokenize=False, output_kind=RequestOutputKind.DELTA, max_tokens=10_000)
    request = EngineCoreRequest(
        request_id=name,
        external_req_id=name,
        prompt_token_ids=[1, 2, 3, 4, 5],
        mm_features=None,
        sampling_params=params,
        pooling_params=None,
        arrival_time=0.0,
        lora_request=None,
        cache_salt=None,
        data_parallel_rank=None,
    )
    processor.add_request(request, "", None, 0, RequestOutputCollector(params.output_kind, name))
