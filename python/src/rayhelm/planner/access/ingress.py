"""Ingress of the models: how many replicas parse requests, and the workers without GPUs on which they run if a model
can scale to zero."""

from collections.abc import Iterator, Mapping, Sequence
from math import ceil

from rayhelm.errors import Fix, Problem
from rayhelm.facts.tasks import get_task
from rayhelm.fleet.problems import problem_at
from rayhelm.planner.plan import ModelPlan

__all__ = ["REPLICAS_PER_WORKER", "count_ingress_replicas", "count_ingress_workers", "find_unreachable"]

REPLICAS_PER_WORKER = 3
"""Replicas of ingress deployments on one worker without GPUs. Each reserves one CPU."""


def count_ingress_replicas(plan: ModelPlan) -> tuple[int, int]:
    """Count the minimum and maximum replicas of the deployment that parses requests: at most one if the model has at
    most one replica, else two. None for an application without one."""
    if get_task(plan.task).server == "application":
        return 0, 0
    most = 1 if plan.max_serving_replicas == 1 else 2
    fewest = plan.prefill_decode.decode.min_replicas if plan.prefill_decode else plan.min_replicas
    # As many as replicas, because the loss of one worker must not take the only ingress.
    return min(max(1, fewest), most), most


def count_ingress_workers(models: Sequence[ModelPlan]) -> tuple[int, int] | None:
    """Count the minimum and maximum workers without GPUs of a service; None if no model can scale to zero, or none has
    an ingress.

    All ingress deployments of the service run there: Serve may place one on the worker of any model, and that worker
    would keep its GPUs."""
    counts = [count_ingress_replicas(plan) for plan in models]
    fewest, most = sum(low for low, _ in counts), sum(high for _, high in counts)
    if not most or all(plan.min_replicas for plan in models):
        return None
    spread = max(low for low, _ in counts)
    smallest = max(spread, ceil(fewest / REPLICAS_PER_WORKER))
    return smallest, max(smallest, ceil(most / REPLICAS_PER_WORKER))


def find_unreachable(models: Mapping[str, ModelPlan]) -> Iterator[Problem]:
    """Yield each model of a service that could be without any replica: a worker accepts requests only while it has one,
    and the head none."""
    for service in dict.fromkeys(plan.service for plan in models.values()):
        members = [plan for plan in models.values() if plan.service == service]
        if any(plan.min_replicas or count_ingress_replicas(plan)[1] for plan in members):
            continue
        for plan in members:
            yield problem_at(
                (*plan.path, "replicas"),
                f"`min` is 0, and `{plan.model}` is an application of its own: without a replica no worker of service"
                f" `{service}` accepts requests, so none would start it again",
                Fix("", {"min": 1, "max": plan.max_replicas}, "or a `service` with a model that vLLM serves"),
            )
