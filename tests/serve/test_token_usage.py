"""Counting of tokens in vLLM's output processor: exact, and without effect on requests if it fails."""

import asyncio
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import pytest

from rayhelm.runtime.token_usage.ledger import HEADER, UNKNOWN, TokenLedger
from shared.log_records import capture_records

pytestmark = pytest.mark.serve

ENGINE = "rayhelm.runtime.token_usage.engine:TokenCountingEngine"


@pytest.fixture(scope="module")
def vllm() -> SimpleNamespace:
    """The classes of vLLM that take part. The import of the engine configures the logger of Ray Serve."""
    from vllm import sampling_params
    from vllm.v1 import engine
    from vllm.v1.engine import output_processor
    from vllm.v1.metrics import stats

    import rayhelm.runtime.token_usage.engine  # noqa: F401

    return SimpleNamespace(**{**vars(sampling_params), **vars(engine), **vars(stats), **vars(output_processor)})


class Engine:
    """An output processor of vLLM whose tokens are counted, and vLLM's own statistics of it."""

    def __init__(self, vllm: SimpleNamespace) -> None:
        from rayhelm.runtime.token_usage.engine import count_tokens

        self.vllm = vllm
        self.counted: dict[str, list[int]] = {}
        self.ledger = TokenLedger(self._record)
        self.processor = vllm.OutputProcessor(None, log_stats=True)
        self.requests = count_tokens(self.processor, self.ledger)
        self.stats = vllm.IterationStats()

    def _record(self, counted: Any) -> None:
        for tenant, tokens in counted.items():
            sums = self.counted.setdefault(tenant, [0, 0])
            sums[0] += tokens.prompt
            sums[1] += tokens.generation

    def register(self, name: str, tenant: str | None, prompt: int = 5) -> None:
        """Register a request as Ray Serve LLM does: in a task of its own."""
        from rayhelm.runtime.token_usage.engine import _tenant

        async def request() -> None:
            if tenant is not None:
                _tenant.set(self.ledger.name_tenant({HEADER: tenant}))
            await asyncio.create_task(add())

        async def add() -> None:
            params = self.vllm.SamplingParams(detokenize=False, output_kind=self.vllm.RequestOutputKind.DELTA)
            made = self.vllm.EngineCoreRequest(
                request_id=name,
                external_req_id=name,
                prompt_token_ids=list(range(prompt)),
                mm_features=None,
                sampling_params=params,
                pooling_params=None,
                arrival_time=0.0,
                lora_request=None,
                cache_salt=None,
                data_parallel_rank=None,
            )
            queue = self.vllm.RequestOutputCollector(params.output_kind, name)
            self.processor.add_request(made, "", None, 0, queue)

        asyncio.get_running_loop().create_task(request())

    def step(self, name: str, tokens: int, prompt: int | None = None, cached: int = 0, finish: bool = False) -> None:
        """One output of the engine for a request; the first one has the statistics of the prompt."""
        prefill = None
        if prompt is not None:
            prefill = self.vllm.PrefillStats()
            prefill.num_prompt_tokens, prefill.num_cached_tokens = prompt, cached
        output = self.vllm.EngineCoreOutput(
            request_id=name,
            new_token_ids=[1] * tokens,
            finish_reason=self.vllm.FinishReason.LENGTH if finish else None,
            prefill_stats=prefill,
        )
        self.processor.process_outputs([output], 1.0, self.stats)


@pytest.fixture
def run(vllm: SimpleNamespace) -> Callable[..., Engine]:
    """Run a coroutine function with an engine, and return the engine after its tokens are collected."""

    def play(work: Any) -> Engine:
        async def main() -> Engine:
            engine = Engine(vllm)
            await work(engine)
            engine.requests.collect()
            return engine

        return asyncio.run(main())

    return play


async def registered() -> None:
    """Wait for the tasks of the requests."""
    await asyncio.gather(*(asyncio.all_tasks() - {asyncio.current_task()}))


def test_tokens_of_tenants_sum_up_to_those_of_the_engine(run: Any) -> None:
    async def work(engine: Engine) -> None:
        engine.register("one", "acme", prompt=5)
        engine.register("two", "search", prompt=9)
        await registered()
        engine.step("one", 1, prompt=5, cached=4)
        engine.step("two", 1, prompt=9)
        engine.step("one", 3)
        engine.step("two", 1, finish=True)

    engine = run(work)
    assert engine.counted == {"acme": [5, 4], "search": [9, 2]}
    assert engine.stats.prompt_token_stats.total == 5 + 9
    assert engine.stats.num_generation_tokens == 4 + 2


def test_aborted_request_counts_the_tokens_that_it_got(run: Any) -> None:
    async def work(engine: Engine) -> None:
        engine.register("one", "acme")
        await registered()
        engine.step("one", 1, prompt=5)
        engine.step("one", 2)
        engine.processor.abort_requests(["one"], internal=True)
        engine.step("one", 7)

    engine = run(work)
    assert engine.counted == {"acme": [5, 3]}
    assert engine.stats.num_generation_tokens == 3


def test_request_without_the_header_counts_as_unknown(run: Any) -> None:
    async def work(engine: Engine) -> None:
        engine.register("one", None)
        await registered()
        engine.step("one", 1, prompt=5, finish=True)

    assert run(work).counted == {UNKNOWN: [5, 1]}


def test_request_with_several_answers_counts_each(run: Any) -> None:
    """vLLM makes a request for each, and counts the prompt of each."""

    async def work(engine: Engine) -> None:
        engine.register("0_one", "acme")
        engine.register("1_one", "acme")
        await registered()
        for name in ("0_one", "1_one"):
            engine.step(name, 2, prompt=5, finish=True)

    engine = run(work)
    assert engine.counted == {"acme": [10, 4]}
    assert engine.stats.prompt_token_stats.total == 10


def test_failed_count_is_logged_once_and_requests_go_on(run: Any) -> None:
    async def work(engine: Engine) -> None:
        # As with an engine that keeps no statistics.
        engine.processor.log_stats = False
        engine.stats = None
        for name in ("one", "two"):
            engine.register(name, "acme")
        await registered()
        states = [engine.processor.request_states[name] for name in ("one", "two")]
        engine.step("one", 1, prompt=5)
        engine.step("two", 1, prompt=5)
        assert all(state.queue.get_nowait() is not None for state in states)

    with capture_records("ray.serve") as records:
        assert run(work).counted == {}
    assert len([record for record in records if "tokens by tenant" in record.getMessage()]) == 1


def test_ray_serve_llm_imports_the_engine(monkeypatch: pytest.MonkeyPatch) -> None:
    """As its server chooses the class of the engine."""
    from ray.llm._internal.serve.core.server.llm_server import LLMServer

    from rayhelm.runtime.token_usage.engine import TokenCountingEngine

    monkeypatch.setenv("RAYLLM_VLLM_ENGINE_CLS", ENGINE)
    assert LLMServer._get_default_engine_class(SimpleNamespace()) is TokenCountingEngine


@pytest.mark.parametrize("method", ["chat", "completions", "embeddings", "score", "transcriptions"])
def test_engine_returns_the_generator_of_vllm(method: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """A generator around it would delay the abort of a request that the client left."""
    from ray.llm._internal.serve.core.protocol import RawRequestInfo
    from ray.llm._internal.serve.engines.vllm.vllm_engine import VLLMEngine

    from rayhelm.runtime.token_usage.engine import TokenCountingEngine, _tenant

    answer = object()
    monkeypatch.setattr(VLLMEngine, method, lambda *arguments: answer)
    engine = TokenCountingEngine.__new__(TokenCountingEngine)
    engine._ledger = TokenLedger()

    async def call() -> str:
        assert getattr(engine, method)(None, RawRequestInfo({HEADER: "acme"})) is answer
        return _tenant.get()

    assert asyncio.run(call()) == "acme"
