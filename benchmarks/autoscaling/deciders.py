"""Call both policies as Serve's controller does, with Ray's own wrapper for delays and factors. Only the clock and the
answers of Prometheus are simulated."""

from bisect import bisect_right
from collections.abc import Iterator
from contextlib import contextmanager
from math import inf
from types import SimpleNamespace
from typing import Any
from unittest.mock import patch

from ray.serve import autoscaling_policy
from ray.serve._private.autoscaling_state import _resolve_policy_callable
from ray.serve._private.common import DeploymentID, ReplicaID
from ray.serve.autoscaling_policy import PrometheusSample, PrometheusVector, _apply_autoscaling_config
from ray.serve.config import AutoscalingConfig, AutoscalingContext

from autoscaling.service import Decider, DelayedMetrics

__all__ = ["open_policy"]

SELF = DeploymentID("LLMServer:model", "app")
ENGINE_QUEUE = "rayhelm.runtime.engine_queue.policy:EngineQueuePolicy"
BOUNDS = (0.001, 0.005, 0.01, 0.02, 0.04, 0.06, 0.08, 0.1, 0.25, 0.5, 0.75, 1.0, 2.5, 5.0, 7.5, 10.0, 20.0, 40.0, inf)
"""Bounds of vLLM's histogram of first tokens that matter here."""


@contextmanager
def open_policy(policy: str, config: dict[str, Any], ttft_s: float) -> Iterator[Decider]:
    """Open a policy: `default` is Ray's own rule, `engine-queue` is rayhelm's, imported by its path."""
    own: dict[str, Any] = {}
    if policy == "engine-queue":
        kwargs = {"prometheus_address": "http://prometheus.invalid", "session": "s", "ttft_s": ttft_s}
        own = {"policy": {"policy_function": ENGINE_QUEUE, "policy_kwargs": kwargs}}
    with _decider(AutoscalingConfig(**config, **own)) as decide:
        yield decide


@contextmanager
def _decider(config: Any) -> Iterator[Decider]:
    policy = _resolve_policy_callable(config.policy)
    wrapped = _apply_autoscaling_config(policy)
    state: dict[str, Any] = {}
    clock = SimpleNamespace(time=lambda: 0.0)

    def decide(look: DelayedMetrics) -> int:
        nonlocal state
        clock.time = lambda: look.now
        context = _context(look, config, state)
        if hasattr(policy, "_queries"):
            answers = _answers(look, policy._queries)
            with patch.object(type(policy), "prometheus_results", answers):
                replicas, state = wrapped(context)
        else:
            replicas, state = wrapped(context)
        return int(replicas)

    with patch.object(autoscaling_policy, "time", clock):
        yield decide


def _context(look: DelayedMetrics, config: Any, state: dict[str, Any]) -> Any:
    return AutoscalingContext(
        deployment_id=SELF,
        deployment_name=SELF.name,
        app_name=SELF.app_name,
        current_num_replicas=len(look.running_replicas),
        target_num_replicas=look.target_replicas,
        running_replicas=[ReplicaID(name, SELF) for name in look.running_replicas],
        total_num_requests=look.ongoing,
        total_queued_requests=0.0,
        aggregated_metrics=None,
        raw_metrics=None,
        capacity_adjusted_min_replicas=config.min_replicas,
        capacity_adjusted_max_replicas=config.max_replicas,
        policy_state=state,
        last_scale_up_time=None,
        last_scale_down_time=None,
        current_time=look.now,
        config=config,
    )


def _answers(look: DelayedMetrics, queries: Any) -> dict[str, Any]:
    """Return what Prometheus would answer."""
    waiting = [({"ReplicaId": name}, count) for name, count in look.waiting.items()]
    tokens = [sample for name, seen in look.first_tokens.items() for sample in _histogram(name, seen)]
    return {
        queries.scraped: _vector([({}, 1.0)]),
        queries.waiting: _vector(waiting),
        queries.first_tokens: _vector(tokens),
    }


def _histogram(name: str, seen: list[float]) -> Iterator[tuple[dict[str, str], float]]:
    ordered = sorted(seen)
    for bound in BOUNDS:
        yield {"ReplicaId": name, "le": "+Inf" if bound == inf else str(bound)}, float(bisect_right(ordered, bound))


def _vector(samples: list[tuple[dict[str, str], float]]) -> Any:
    return PrometheusVector(tuple(PrometheusSample(labels, value, 0.0) for labels, value in samples))
