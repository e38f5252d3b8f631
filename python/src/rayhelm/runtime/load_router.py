"""Ray's router by load for the data path `Direct`. The chart names it.

There the router chooses a replica and sends nothing. Ray's class (2.60) names two replicas at random and compares their
queues only when it sends the request, so the first of them gets it, whatever waits there.
"""

import asyncio
import time
from collections.abc import Iterable
from math import inf
from typing import Any

from ray.serve._private.request_router.pow_2_router import PowerOfTwoChoicesRequestRouter

from rayhelm.runtime.first_replica import FirstReplica

__all__ = ["LoadRouter", "QueueProbes"]

_FRESH_S = 0.1
"""Age of a queue length at which the router asks the replica again, and the longest time a request waits for a second
answer. Between two answers the router adds the requests that it sends there."""
_PATIENCE = 4
"""Backoff of Ray that gives a busy replica 1 s to answer."""


class QueueProbes:
    """Queue lengths of replicas, for a router of Ray."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self._probes: dict[Any, tuple[float, asyncio.Task[Any]]] = {}

    async def _ask(self, replicas: Iterable[Any]) -> None:
        """Note the queue lengths of several replicas. Requests that arrive together share the question."""
        router: Any = self
        self._probes = {name: probe for name, probe in self._probes.items() if name in router._replicas}
        asked = {replica.replica_id: replica for replica in replicas}
        if len(asked) < 2:
            return
        now = time.monotonic()
        for name, replica in asked.items():
            if self._is_old(name, now):
                self._probes[name] = now, asyncio.ensure_future(router._probe_queue_lens([replica], _PATIENCE))
        probes = [self._probes[name] for name in asked]
        tasks = {probe for _, probe in probes}
        # A replica that hangs delays the requests that ask it, not those that come after them.
        in_time = {probe for start, probe in probes if probe.done() or now - start <= _FRESH_S}
        done, _ = await asyncio.wait(in_time or tasks, timeout=_FRESH_S)
        if not done:
            await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)

    def _is_old(self, name: Any, now: float) -> bool:
        if name not in self._probes:
            return True
        start, probe = self._probes[name]
        return probe.done() and now - start > _FRESH_S

    def _take_shortest(self, replicas: list[Any]) -> Any:
        """Return the first replica with the shortest queue, and add a request to it. One that has not answered is the
        last choice: it is busy."""
        lengths: Any = self.replica_queue_len_cache  # type: ignore[attr-defined]

        def rank(replica: Any) -> tuple[bool, float]:
            name = replica.replica_id
            length = lengths.get(name)
            return name in self._probes and not self._probes[name][1].done(), inf if length is None else length

        chosen = min(replicas, key=rank)
        lengths.update(chosen.replica_id, (lengths.get(chosen.replica_id) or 0) + 1)
        return chosen


class LoadRouter(FirstReplica, QueueProbes, PowerOfTwoChoicesRequestRouter):  # type: ignore[misc]
    """Chooses the shorter of the queues of two replicas."""

    async def choose_replicas(self, candidate_replicas: list[Any], pending_request: Any = None) -> list[list[Any]]:
        ranks = await super().choose_replicas(candidate_replicas, pending_request)
        two = next((rank for rank in ranks if rank), None)
        if not two:
            return list(ranks)
        await self._ask(two)
        # Ray takes the first one.
        return [[self._take_shortest(two)]]
