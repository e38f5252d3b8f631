"""Ray's router by prefixes for the data path `Direct`. The chart names it.

There the router chooses a replica and sends nothing, and Ray's class (2.60) notes a prompt only when it sends the
request. So it finds no prefix, and gives each prompt to the same replica. It also waits without end for a request that
has no prompt: an exception ends its task, and nothing answers. Such are the requests that arrive while HAProxy knows no
replica, because they pass Ray's Python proxy, which does not read them.
"""

import time
from typing import Any

from ray.serve._private.request_router.pow_2_router import PowerOfTwoChoicesRequestRouter
from ray.serve.llm.request_router import PrefixCacheAffinityRouter

from rayhelm.runtime.first_replica import FirstReplica
from rayhelm.runtime.load_router import QueueProbes

__all__ = ["PromptRouter"]


class PromptRouter(FirstReplica, QueueProbes, PrefixCacheAffinityRouter):  # type: ignore[misc]
    """Notes each prompt for the replica that it chooses. A request without text goes to the shorter of two queues."""

    async def choose_replicas(self, candidate_replicas: list[Any], pending_request: Any = None) -> list[list[Any]]:
        # Ray's class compares what is noted, for 10 s.
        await self._ask(candidate_replicas)
        try:
            ranks = await super().choose_replicas(candidate_replicas, pending_request)
        except KeyError:
            # All routers of a deployment share the noted prompts, and another one knows a replica before this one.
            ranks = await PowerOfTwoChoicesRequestRouter.choose_replicas(self, candidate_replicas, pending_request)
        best = next((rank for rank in ranks if rank), None)
        if pending_request is None or not best:
            return list(ranks)
        # Ray takes the first one.
        chosen = self._take_shortest(best)
        if text := self._extract_text_from_request(pending_request):
            self._tree_actor.insert.remote(text, chosen.replica_id.to_full_id_str(), time.time())
        return [[chosen]]

    def _extract_text_from_request(self, pending_request: Any) -> str | None:
        if not any(hasattr(each, name) for each in pending_request.args for name in ("messages", "prompt")):
            return None
        # Ray divides by the length of the text.
        return super()._extract_text_from_request(pending_request) or None
