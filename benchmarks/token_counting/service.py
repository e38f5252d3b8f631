"""Throughput, and CPU time of the replica, of two endpoints side by side: one counts tokens by tenant."""

import asyncio
import os
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

import httpx
import psutil

from rayhelm.run.local.state import EndpointState
from testbed.live_metrics.endpoint import Endpoint, serve

__all__ = ["CLIENTS", "Round", "endpoints", "measure"]

CLIENTS = 16
"""Concurrent streams, of all tenants."""
TOKENS = 64
"""Generated tokens of each stream."""
_SWITCH = "RAYLLM_VLLM_ENGINE_CLS"


Side = tuple[Endpoint, psutil.Process]
"""An endpoint and the replica of its chat model."""


@dataclass(frozen=True)
class Round:
    """One endpoint under load."""

    tokens_per_second: float
    cpu_microseconds_per_token: float
    """Of the replica's process, which has vLLM's frontend; the engine core is another process."""


@contextmanager
def endpoints() -> Iterator[tuple[Side, Side]]:
    """Start an endpoint without the count and one with it."""
    os.environ[_SWITCH] = ""
    with serve() as without:
        del os.environ[_SWITCH]
        with serve() as counting:
            yield (without, _find_replica(without)), (counting, _find_replica(counting))


def _find_replica(endpoint: Endpoint) -> psutil.Process:
    """Return the replica of model `chat`: its log is in the session folder of the endpoint's Ray."""
    session = str(EndpointState(endpoint.data.parents[1]).session.resolve())
    (found,) = (each for each in psutil.process_iter() if _is_replica(each, session))
    return found


def _is_replica(process: psutil.Process, session: str) -> bool:
    try:
        return "ServeReplica:chat:LLMServer" in " ".join(process.cmdline()) and any(
            file.path.startswith(session) for file in process.open_files()
        )
    except psutil.Error:
        return False


async def measure(endpoint: Endpoint, replica: psutil.Process, seconds: float) -> Round:
    """Send streams for so many seconds."""
    keys, count = list(endpoint.keys.values()), 0
    deadline = time.monotonic() + seconds

    async def work(client: int) -> None:
        nonlocal count
        headers = {"Authorization": f"Bearer {keys[client % len(keys)]}"}
        body = {
            "model": "chat",
            "messages": [{"role": "user", "content": f"Question {client}"}],
            "max_tokens": TOKENS,
            "ignore_eos": True,
            "stream": True,
        }
        async with httpx.AsyncClient(base_url=endpoint.url, headers=headers, timeout=600, trust_env=False) as http:
            while time.monotonic() < deadline:
                (await http.post("/v1/chat/completions", json=body)).raise_for_status()
                count += TOKENS

    before, start = _cpu(replica), time.monotonic()
    await asyncio.gather(*(work(client) for client in range(CLIENTS)))
    used, passed = _cpu(replica) - before, time.monotonic() - start
    return Round(count / passed, used / count * 1e6)


def _cpu(process: psutil.Process) -> float:
    times = process.cpu_times()
    return float(times.user + times.system)
