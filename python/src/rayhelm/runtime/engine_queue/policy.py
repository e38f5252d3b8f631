"""The policy as Serve's controller calls it, ten times a second; Ray's mixin asks Prometheus in a thread beside."""

import logging
from typing import Any

import ray
from ray.serve.autoscaling_policy import PrometheusQueryMixin

from rayhelm.runtime.engine_queue import signals
from rayhelm.runtime.engine_queue.decision import Decision, Memory, Seen, Settings, decide

__all__ = ["EngineQueuePolicy"]

DELIVERY_S = 30
"""Seconds until Prometheus knows: Ray's 10, a scrape's 15, and some."""
FETCH_S = 10
"""Seconds between two questions: Ray has no newer figures."""
BELIEVED_S = 45
"""Seconds for which an answer holds. Three slow queries take 15, and Ray's own 15 would then be over between two."""


class EngineQueuePolicy(PrometheusQueryMixin):  # type: ignore[misc]
    """Policy of one deployment. Arguments come from `policy_kwargs` of the Serve config, in seconds.

    `ttft_s`: time in which first tokens have to come; without it only the queue counts. `goal`: share that has to.
    `waiting`: requests that may wait in one engine. `window_s`: over which first tokens are counted, and `at_least`:
    fewer of them say nothing. `session`: the Ray cluster; found out where it is left out. `fetch_interval_s` and
    `cache_ttl_s`: how often Prometheus is asked, and how long it is believed.
    """

    def __init__(
        self,
        *,
        prometheus_address: str,
        ttft_s: float | None = None,
        goal: float = Settings.goal,
        waiting: float = Settings.waiting,
        window_s: int = signals.Queries.window_s,
        at_least: float = 20,
        session: str | None = None,
        fetch_interval_s: float = FETCH_S,
        cache_ttl_s: float = BELIEVED_S,
    ) -> None:
        self._queries = signals.Queries(session or ray.get_runtime_context().get_session_name(), window_s)
        super().__init__(
            prometheus_address=prometheus_address,
            prometheus_queries=self._queries.all,
            fetch_interval_s=fetch_interval_s,
            cache_ttl_s=cache_ttl_s,
        )
        self._ttft_s, self._at_least = ttft_s, at_least
        self._goal, self._waiting = goal, waiting
        self._said = ""

    def __call__(self, ctx: Any) -> tuple[int, dict[str, Any]]:
        settings = Settings(
            target=ctx.config.get_target_ongoing_requests(),
            goal=self._goal,
            waiting=self._waiting,
            settle_s=self._queries.window_s + DELIVERY_S,
        )
        state = ctx.policy_state or {}
        memory = Memory(state.get("correction", 1.0), state.get("corrected_at"))
        decision = decide(self._look(ctx), memory, settings)
        self._say(ctx, decision)
        return decision.replicas, {"correction": decision.memory.correction, "corrected_at": decision.memory.at}

    def _look(self, ctx: Any) -> Seen:
        seen = Seen(ctx.current_time, ctx.total_num_requests, ctx.current_num_replicas, ctx.target_num_replicas)
        results = self.prometheus_results or {}
        if not signals.known(results.get(self._queries.known)):
            return seen
        mine = {replica.unique_id for replica in ctx.running_replicas}
        tokens = results.get(self._queries.first_tokens) if self._ttft_s else None
        return Seen(
            seen.now,
            seen.ongoing,
            seen.running,
            seen.wanted,
            waiting=signals.waiting(results.get(self._queries.waiting), mine),
            in_time=signals.in_time(tokens, mine, self._ttft_s or 0.0, at_least=self._at_least),
        )

    def _say(self, ctx: Any, decision: Decision) -> None:
        """One line for each change of mind."""
        if decision.why == self._said:
            return
        self._said = decision.why
        # By name and not as a global: this class is pickled by value.
        logging.getLogger("ray.serve").info(
            "%s: %d replicas, target x %.2f: %s",
            ctx.deployment_name,
            decision.replicas,
            decision.memory.correction,
            decision.why,
        )
