"""Tokens of the running requests of an engine.

vLLM's output processor has a state for each request, with the number of its tokens. So nothing is done for a token:
once per second the states are read, and what is new goes into the ledger. A state is read once more after its request
has finished or was aborted, because vLLM does not change it any more.
"""

import asyncio
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Protocol

from rayhelm.runtime.token_usage.ledger import TokenLedger, Tokens

__all__ = ["INTERVAL_S", "RequestState", "RunningRequests"]

INTERVAL_S = 1.0
"""Seconds between two reads of the states. Ray exports metrics every 10 s."""


class RequestStats(Protocol):
    """`RequestStateStats` of vLLM."""

    num_generation_tokens: int


class RequestState(Protocol):
    """`RequestState` of vLLM's output processor."""

    request_id: str
    is_prefilling: bool
    """No output has come yet."""
    prompt_len: int
    stats: RequestStats


@dataclass(slots=True)
class _Request:
    state: RequestState
    tenant: str
    counted: Tokens = field(default_factory=Tokens)


class RunningRequests:
    """Counts the tokens of requests. All methods belong to the event loop of the engine, and none raises."""

    def __init__(self, ledger: TokenLedger, is_running: Callable[[RequestState], bool]) -> None:
        self._ledger = ledger
        self._is_running = is_running
        self._requests: list[_Request] = []
        self._timer: asyncio.TimerHandle | None = None

    def add(self, state: RequestState, tenant: str) -> None:
        """Count a request from now on."""
        self._requests.append(_Request(state, tenant))
        if self._timer is None:
            self._timer = asyncio.get_running_loop().call_later(INTERVAL_S, self._tick)

    def collect(self) -> None:
        """Count what is new, pass it to the sinks, and forget the requests that do not run any more."""
        self._requests = [request for request in self._requests if self._count(request)]
        self._ledger.flush()

    def _tick(self) -> None:
        self._timer = None
        self.collect()
        if self._requests:
            self._timer = asyncio.get_running_loop().call_later(INTERVAL_S, self._tick)

    def _count(self, request: _Request) -> bool:
        """Count the new tokens of a request, and return whether it runs."""
        state, counted = request.state, request.counted
        try:
            # Before the tokens are read: the state of a request that does not run is final.
            is_running = self._is_running(state)
            # vLLM counts the prompt with the first output.
            prompt = 0 if state.is_prefilling else state.prompt_len - counted.prompt
            generation = state.stats.num_generation_tokens - counted.generation
            if prompt or generation:
                self._ledger.add(request.tenant, prompt, generation)
                counted.prompt += prompt
                counted.generation += generation
            return is_running
        except Exception:
            self._ledger.report_failure()
            return False
