"""One hour of a trace with one policy: the plan it starts from, and its run. A module of its own, because other
processes import it."""

import logging
from collections.abc import Iterable, Iterator
from functools import cache
from itertools import product
from typing import Any

from autoscaling.deciders import deciding
from autoscaling.engine import Machine
from autoscaling.report import Run
from autoscaling.service import Service, Terms
from autoscaling.trace import Trace, requests, trace
from rayhelm.catalog import load_catalog
from rayhelm.planner.plan import ModelPlan
from rayhelm.planner.planner import plan_fleet
from rayhelm.spec.document import parse_document
from rayhelm.spec.load import fleet_of

__all__ = ["SHARES", "TRACES", "TTFT_S", "jobs", "planned", "run"]

TRACES = ("conversation", "code")
POLICIES = ("default", "engine-queue")
FACTORS = (0.5, 0.65, 0.8, 0.9, 1.0, 1.1, 1.2, 1.35)
"""On the plan's target: the sweep."""
SLOWER = 1.3
"""A plan that is wrong by as much as plans are: replicas need so many times the planned time."""
TTFT_S = 3.0
SHARES = (0.90, 0.95, 0.97)
FLEET = """\
fleet: autoscaling
pools:
  cards: {{gpu: L4-24GB, nodes: 100}}
models:
  model:
    source: meta-llama/Llama-3.1-8B-Instruct
    context: 8192
    parallelism: {{tensor: 1}}
    traffic: {{requestsPerSecond: {rate:.2f}, inputTokens: {prompt:.0f}, outputTokens: {answer:.0f}}}
    slo: {{ttft: {ttft:g}s}}
"""
Job = tuple[str, str, float, float, int]


def jobs(seeds: Iterable[int]) -> Iterator[Job]:
    draws = tuple(seeds)
    yield from product(TRACES, POLICIES, FACTORS, (1.0,), draws)
    yield from product(TRACES, POLICIES, (1.0,), (SLOWER,), draws)


def run(job: Job) -> Run:
    name, policy, factor, slower, seed = job
    logging.disable(logging.INFO)
    of, plan = trace(name), planned(name)
    terms, config = terms_of(plan, of), config_of(plan, factor)
    with deciding(policy, config, TTFT_S) as decide:
        service = Service(Machine.of_plan(plan, load_catalog(), slower), terms, seed)
        outcome = service.run(requests(seed, of), of.seconds, decide)
    hours, share = round(outcome.card_s / 3600, 3), round(outcome.in_time(TTFT_S), 4)
    return Run(name, policy, factor, slower, seed, hours, share, outcome.started)


@cache
def planned(name: str) -> ModelPlan:
    """The plan for the fullest minute, with the trace's mean lengths."""
    of = trace(name)
    text = FLEET.format(rate=of.peak, prompt=of.prompt, answer=of.answer, ttft=TTFT_S)
    return plan_fleet(fleet_of(parse_document(text, "fleet.yaml"))).models["model"]


def terms_of(plan: ModelPlan, of: Trace) -> Terms:
    """Begun with what the mean minute needs of the peak's plan; twice the plan at most, so that no bound decides."""
    mean = sum(minute.requests for minute in of.minutes) / of.seconds
    return Terms(
        least=1,
        most=2 * plan.max_replicas,
        initial=max(1, round(plan.replicas * mean / of.peak)),
        load_s=plan.scaling.load_s,
        look_back_s=plan.scaling.look_back_s,
        max_ongoing=plan.max_ongoing_requests,
        ttft_s=TTFT_S,
    )


def config_of(plan: ModelPlan, factor: float) -> dict[str, Any]:
    return {
        "min_replicas": 1,
        "max_replicas": 2 * plan.max_replicas,
        "target_ongoing_requests": factor * plan.target_ongoing_requests,
        "upscale_delay_s": plan.scaling.upscale_delay_s,
        "downscale_delay_s": plan.scaling.downscale_delay_s,
        "look_back_period_s": plan.scaling.look_back_s,
    }
