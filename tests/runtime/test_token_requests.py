"""Tokens of running requests are read once per second, and once more after the last one."""

import asyncio
from collections.abc import Mapping
from dataclasses import dataclass, field

import pytest

from rayhelm.runtime.token_usage import requests as module
from rayhelm.runtime.token_usage.ledger import TokenLedger, Tokens
from rayhelm.runtime.token_usage.requests import RunningRequests
from shared.log_records import capture_records


@dataclass
class Stats:
    num_generation_tokens: int = 0


@dataclass
class State:
    """State of a request, as vLLM has it."""

    request_id: str = "one"
    is_prefilling: bool = True
    prompt_len: int = 5
    stats: Stats = field(default_factory=Stats)
    is_running: bool = True

    def generate(self, count: int) -> None:
        self.is_prefilling = False
        self.stats.num_generation_tokens += count


class Counted:
    """Requests that run, and the sums of each tenant."""

    def __init__(self) -> None:
        self.sums: dict[str, list[int]] = {}
        self.called = asyncio.Event()
        self.requests = RunningRequests(TokenLedger(self._record), lambda state: state.is_running)  # type: ignore[attr-defined]

    def _record(self, counted: Mapping[str, Tokens]) -> None:
        for tenant, tokens in counted.items():
            sums = self.sums.setdefault(tenant, [0, 0])
            sums[0] += tokens.prompt
            sums[1] += tokens.generation
        self.called.set()


def test_each_token_counts_once() -> None:
    async def run() -> dict[str, list[int]]:
        counted, state = Counted(), State()
        counted.requests.add(state, "acme")
        for tokens in (1, 3):
            state.generate(tokens)
            counted.requests.collect()
        counted.requests.collect()
        return counted.sums

    assert asyncio.run(run()) == {"acme": [5, 4]}


def test_prompt_counts_with_the_first_output() -> None:
    async def run() -> tuple[dict[str, list[int]], dict[str, list[int]]]:
        counted, state = Counted(), State()
        counted.requests.add(state, "acme")
        counted.requests.collect()
        before = dict(counted.sums)
        state.generate(0)
        counted.requests.collect()
        return before, counted.sums

    assert asyncio.run(run()) == ({}, {"acme": [5, 0]})


def test_request_that_ended_is_read_once_more_and_then_forgotten() -> None:
    async def run() -> dict[str, list[int]]:
        counted, state = Counted(), State()
        counted.requests.add(state, "acme")
        state.generate(7)
        state.is_running = False
        counted.requests.collect()
        state.generate(100)
        counted.requests.collect()
        return counted.sums

    assert asyncio.run(run()) == {"acme": [5, 7]}


def test_timer_runs_until_the_last_request_ends(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "INTERVAL_S", 0.001)

    async def run() -> dict[str, list[int]]:
        counted, state = Counted(), State()
        counted.requests.add(state, "acme")
        for _ in range(2):
            counted.called.clear()
            state.generate(2)
            await asyncio.wait_for(counted.called.wait(), timeout=300)
        state.is_running = False
        while counted.requests._timer is not None:
            await asyncio.sleep(0.001)
        # A later request starts it again.
        counted.called.clear()
        later = State("two")
        counted.requests.add(later, "search")
        later.generate(1)
        await asyncio.wait_for(counted.called.wait(), timeout=300)
        return counted.sums

    assert asyncio.run(run()) == {"acme": [5, 4], "search": [5, 1]}


def test_unreadable_request_is_logged_once_and_the_others_count() -> None:
    async def run() -> dict[str, list[int]]:
        counted, good, bad = Counted(), State("one"), State("two")
        del bad.stats
        for state in (bad, good, bad):
            counted.requests.add(state, "acme")
        good.generate(2)
        counted.requests.collect()
        return counted.sums

    with capture_records("ray.serve") as records:
        assert asyncio.run(run()) == {"acme": [5, 2]}
    assert len([record for record in records if "tokens by tenant" in record.getMessage()]) == 1
