"""The policy that Serve calls ten times per second. Ray's mixin queries Prometheus in another thread."""

import logging
from typing import Any

import ray
from ray.serve.autoscaling_policy import PrometheusQueryMixin

from rayhelm.runtime.engine_queue import signals
from rayhelm.runtime.engine_queue.decision import Decision, Measurement, PolicyState, Settings, decide

__all__ = ["EngineQueuePolicy"]

DELIVERY_S = 30
"""Seconds until Prometheus has a value: 10 of Ray, 15 of a scrape, and a margin."""
FETCH_S = 10
"""Seconds between two queries: Ray has no newer values."""
CACHE_S = 45
"""Seconds for which an answer is valid. Three slow queries take 15, so Ray's default of 15 is too short."""


class EngineQueuePolicy(PrometheusQueryMixin):  # type: ignore[misc]
    """Policy of one deployment. Arguments come from `policy_kwargs` of the Serve config, in seconds.

    `ttft_s`: limit of the time to first token; without it only the queue counts. `goal`: share of first tokens within
    the limit. `waiting`: requests that may wait in one engine. `window_s`: period in which first tokens are counted;
    fewer than `at_least` are ignored. `session`: SessionName of the Ray cluster; default: the current one.
    `fetch_interval_s` and `cache_ttl_s`: interval of the queries, and how long their answers are valid.
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
        cache_ttl_s: float = CACHE_S,
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
        self._last_reason = ""

    def __call__(self, ctx: Any) -> tuple[int, dict[str, Any]]:
        settings = Settings(
            target=ctx.config.get_target_ongoing_requests(),
            goal=self._goal,
            waiting=self._waiting,
            interval_s=self._queries.window_s + DELIVERY_S,
        )
        stored = ctx.policy_state or {}
        state = PolicyState(stored.get("correction", 1.0), stored.get("corrected_at"))
        decision = decide(self._measure(ctx), state, settings)
        self._log_reason(ctx, decision)
        return decision.replicas, {"correction": decision.state.correction, "corrected_at": decision.state.corrected_at}

    def _measure(self, ctx: Any) -> Measurement:
        basic = Measurement(ctx.current_time, ctx.total_num_requests, ctx.current_num_replicas, ctx.target_num_replicas)
        results = self.prometheus_results or {}
        if not signals.is_scraped(results.get(self._queries.scraped)):
            return basic
        mine = {replica.unique_id for replica in ctx.running_replicas}
        tokens = results.get(self._queries.first_tokens) if self._ttft_s else None
        return Measurement(
            basic.now,
            basic.ongoing,
            basic.running,
            basic.target_replicas,
            waiting=signals.sum_waiting(results.get(self._queries.waiting), mine),
            in_time=signals.share_in_time(tokens, mine, self._ttft_s or 0.0, at_least=self._at_least),
        )

    def _log_reason(self, ctx: Any, decision: Decision) -> None:
        """Log each change of the reason."""
        if decision.reason == self._last_reason:
            return
        self._last_reason = decision.reason
        # Not a global logger: this class is pickled by value.
        logging.getLogger("ray.serve").info(
            "%s: %d replicas, target x %.2f: %s",
            ctx.deployment_name,
            decision.replicas,
            decision.state.correction,
            decision.reason,
        )
