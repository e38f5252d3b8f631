"""Simulate one hour of a trace with one policy. A separate module, because other processes import it."""

import logging
from collections.abc import Iterable, Iterator
from functools import cache
from itertools import product
from typing import Any

from autoscaling.deciders import open_policy
from autoscaling.engine import ReplicaModel
from autoscaling.report import Run
from autoscaling.service import DeploymentTerms, SimulatedDeployment
from autoscaling.trace import Trace, draw_requests, load_trace
from rayhelm.facts import load_catalog
from rayhelm.fleet.document import parse_document
from rayhelm.fleet.load import parse_fleet
from rayhelm.planner.plan import ModelPlan
from rayhelm.planner.planner import plan_fleet

__all__ = ["SHARES", "TRACES", "TTFT_S", "list_jobs", "plan_trace", "run"]

TRACES = ("conversation", "code")
POLICIES = ("default", "engine-queue")
FACTORS = (0.5, 0.65, 0.8, 0.9, 1.0, 1.1, 1.2, 1.35)
"""Factors on the plan's target."""
SLOWER = 1.3
"""Factor on the planned durations for a plan that is wrong by a typical amount."""
TTFT_S = 3.0
SHARES = (0.90, 0.95, 0.97)
FLEET = """\
fleet: autoscaling
pools:
  gpus: {{gpu: L4-24GB, nodes: 100}}
models:
  model:
    source: meta-llama/Llama-3.1-8B-Instruct
    context: 8192
    parallelism: {{tensor: 1}}
    traffic: {{requestsPerSecond: {rate:.2f}, inputTokens: {prompt:.0f}, outputTokens: {answer:.0f}}}
    slo: {{ttft: {ttft:g}s}}
"""
Job = tuple[str, str, float, float, int]


def list_jobs(seeds: Iterable[int]) -> Iterator[Job]:
    draws = tuple(seeds)
    yield from product(TRACES, POLICIES, FACTORS, (1.0,), draws)
    yield from product(TRACES, POLICIES, (1.0,), (SLOWER,), draws)


def run(job: Job) -> Run:
    name, policy, factor, slower, seed = job
    of, plan = load_trace(name), plan_trace(name)
    terms, config = build_terms(plan, of), build_config(plan, factor)
    with open_policy(policy, config, TTFT_S) as decide:
        service = SimulatedDeployment(ReplicaModel.of_plan(plan, load_catalog(), slower), terms, seed)
        # The policy logs each of thousands of decisions.
        logging.disable(logging.INFO)
        try:
            outcome = service.run(draw_requests(seed, of), of.seconds, decide)
        finally:
            logging.disable(logging.NOTSET)
    hours, share = round(outcome.gpu_seconds / 3600, 3), round(outcome.in_time(TTFT_S), 4)
    return Run(name, policy, factor, slower, seed, hours, share, outcome.started)


@cache
def plan_trace(name: str) -> ModelPlan:
    """Plan for the minute with the most requests, with the mean lengths of the trace."""
    of = load_trace(name)
    text = FLEET.format(rate=of.peak, prompt=of.prompt, answer=of.answer, ttft=TTFT_S)
    return plan_fleet(parse_fleet(parse_document(text, "fleet.yaml"))).models["model"]


def build_terms(plan: ModelPlan, of: Trace) -> DeploymentTerms:
    """Start with the replicas for the mean load; at most twice the planned number, so that no limit decides."""
    mean = sum(minute.requests for minute in of.minutes) / of.seconds
    return DeploymentTerms(
        min_replicas=1,
        max_replicas=2 * plan.max_replicas,
        initial=max(1, round(plan.replicas * mean / of.peak)),
        load_s=plan.scaling.load_s,
        look_back_s=plan.scaling.look_back_s,
        max_ongoing=plan.max_ongoing_requests,
        ttft_s=TTFT_S,
    )


def build_config(plan: ModelPlan, factor: float) -> dict[str, Any]:
    return {
        "min_replicas": 1,
        "max_replicas": 2 * plan.max_replicas,
        "target_ongoing_requests": factor * plan.target_ongoing_requests,
        "upscale_delay_s": plan.scaling.upscale_delay_s,
        "downscale_delay_s": plan.scaling.downscale_delay_s,
        "look_back_period_s": plan.scaling.look_back_s,
    }
