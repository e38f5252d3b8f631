"""Replicas that Ray never places: parallelism, bundles and replicas against the GPUs of the worker groups."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from math import ceil, floor, inf

from rayhelm.check.lint.ray_service.demand import Demand
from rayhelm.check.lint.ray_service.pods import Pods
from rayhelm.check.lint.ray_service.source import CLUSTER, RayService
from rayhelm.errors import Fix, Problem

__all__ = ["ClusterGpus", "check_demand", "check_replicas", "list_capacity_warnings"]

RULE = "ray-gpus"


@dataclass(frozen=True)
class ClusterGpus:
    """GPUs of all pods together."""

    groups: Sequence[Pods]
    is_autoscaled: bool

    @property
    def is_known(self) -> bool:
        """Whether the file says the GPUs. Ray also finds GPUs that a pod did not request, if its runtime shows them."""
        return all(group.gpus is not None for group in self.groups) and any(group.gpus for group in self.groups)

    @property
    def largest(self) -> float:
        """GPUs of the largest pod."""
        return max((group.gpus or 0 for group in self.groups if group.count), default=0)

    @property
    def total(self) -> float:
        return sum((group.gpus or 0) * group.count for group in self.groups if group.gpus)

    def count_bundles(self, gpus: float) -> float:
        """Return how many bundles of this size fit."""
        slots = (floor((group.gpus or 0) / gpus + 1e-9) * group.count for group in self.groups if group.gpus)
        return sum(slots)


def check_demand(service: RayService, demand: Demand, capacity: ClusterGpus) -> Iterator[Problem]:
    """Yield why no replica of a deployment can ever be placed."""
    problem_at = service.document.problem
    devices = demand.tensor * demand.pipeline
    config = (*demand.path, "placement_group_config")
    # Another number of bundles than ranks is a problem of the model itself.
    if not demand.bundles or (demand.has_own_bundles and len(demand.bundles) % devices):
        return
    largest = max(demand.bundles)
    if largest > capacity.largest:
        yield _refuse_bundle(service, demand, capacity)
    elif demand.strategy == "STRICT_PACK" and demand.gpus > capacity.largest:
        message = (
            f"STRICT_PACK places {_gpus(demand.gpus)} on one node, and the largest pod has {_gpus(capacity.largest)}"
        )
        yield problem_at((*config, "strategy"), message, Fix("", "PACK"), RULE)
    elif _count_placed(demand, capacity) < 1:
        path = (*demand.path, "engine_kwargs", "tensor_parallel_size")
        message = (
            f"a replica needs {_gpus(demand.gpus)} ({_parallelism(demand)}), and the pods have"
            f" {_gpus(capacity.total)} at most{_describe(capacity)}: Ray never places it"
        )
        fit = next((size for size in range(demand.tensor, 0, -1) if size * demand.pipeline <= capacity.total), 1)
        fix = _grow(service, capacity, demand.gpus)
        smaller = Fix("", fit) if demand.tensor > 1 and fit < demand.tensor and not demand.has_own_bundles else None
        at = path if demand.tensor > 1 else (*demand.path, "engine_kwargs", "pipeline_parallel_size")
        first, others = (smaller, (fix,)) if smaller else (fix, ())
        yield problem_at(at if smaller else demand.path, message, first, RULE, others)


def check_replicas(service: RayService, demands: Sequence[Demand], capacity: ClusterGpus) -> Iterator[Problem]:
    """Yield that the least replicas of all deployments do not fit together."""
    needed = sum(demand.gpus * demand.least for demand in demands)
    if needed <= capacity.total + 1e-9:
        return
    parts = [f"{demand.name}: {demand.least} x {_gpus(demand.gpus)}" for demand in demands if demand.gpus]
    message = (
        f"the least replicas need {_gpus(needed)} ({', '.join(parts)}), and the pods have {_gpus(capacity.total)} at"
        f" most{_describe(capacity)}: Ray never places the others"
    )
    yield service.document.problem((*CLUSTER, "workerGroupSpecs"), message, _grow(service, capacity, needed), RULE)


def list_capacity_warnings(demands: Sequence[Demand], capacity: ClusterGpus) -> Iterator[str]:
    """Yield what works and is slow, or never reached."""
    for demand in demands:
        fitting = _count_placed(demand, capacity)
        if 1 <= fitting < demand.most and fitting != inf:
            yield (
                f"{demand.name}: Ray places {floor(fitting)} of {demand.most} replicas: the pods have"
                f" {_gpus(capacity.total)} at most{_describe(capacity)}"
            )
        if demand.tensor > capacity.largest >= max(demand.bundles, default=inf) and not demand.has_own_bundles:
            yield (
                f"{demand.name}: tensor parallelism of {demand.tensor} spans pods of {_gpus(capacity.largest)}: each"
                " token waits for the network"
            )


def _count_placed(demand: Demand, capacity: ClusterGpus) -> float:
    """Return how many replicas fit, at most: bundles of one size are counted, others by their sum."""
    if not demand.bundles:
        return inf
    if len(set(demand.bundles)) == 1:
        return capacity.count_bundles(demand.bundles[0]) / len(demand.bundles)
    return (capacity.total + 1e-9) / demand.gpus


def _refuse_bundle(service: RayService, demand: Demand, capacity: ClusterGpus) -> Problem:
    largest = max(demand.bundles)
    has = f"the largest pod has {_gpus(capacity.largest)}: Ray never places it"
    if not demand.actor_gpus or largest - demand.actor_gpus > capacity.largest:
        message = f"a bundle needs {_gpus(largest)}, and {has}"
        return service.document.problem(demand.path, message, _resize(service, capacity, largest), RULE)
    options = (*demand.path, "deployment_config", "ray_actor_options", "num_gpus")
    if "deployments" in demand.path:
        message = f"a replica needs {_gpus(largest)}, and {has}"
        path = (*demand.path, "ray_actor_options", "num_gpus")
        return service.document.problem(path, message, _resize(service, capacity, largest), RULE)
    message = (
        f"Ray Serve LLM adds {demand.actor_gpus:g} to the first bundle of the engine, which then needs"
        f" {_gpus(largest)}, and {has}"
    )
    return service.document.problem(options, message, Fix.removal("", "the engine has GPUs of its own"), RULE)


def _grow(service: RayService, capacity: ClusterGpus, needed: float) -> Fix:
    """Return the fix with more pods of the group that has most GPUs."""
    groups = [group for group in capacity.groups if group.gpus and group.name != "head"]
    if not groups:
        return Fix.advice("a worker group with `nvidia.com/gpu` in the limits of its container")
    group = max(groups, key=lambda each: each.gpus or 0)
    others = capacity.total - (group.gpus or 0) * group.count
    replicas = ceil((needed - others) / ((group.gpus or 1) * group.hosts) - 1e-9)
    key = "maxReplicas" if capacity.is_autoscaled else "replicas"
    at = group.path[-1]
    return Fix(f"/spec.rayClusterConfig.workerGroupSpecs[{at}].{key}", replicas, f"of group {group.name}")


def _resize(service: RayService, capacity: ClusterGpus, gpus: float) -> Fix:
    return Fix.advice(f"a worker group whose pods have {_gpus(gpus)}")


def _describe(capacity: ClusterGpus) -> str:
    """Name the groups with GPUs."""
    parts = [
        f"{group.name}: {'any number' if group.count == inf else f'{group.count:g}'} x {group.gpus:g}"
        for group in capacity.groups
        if group.gpus
    ]
    note = "; enableInTreeAutoscaling is off, so groups keep `replicas`" if not capacity.is_autoscaled and parts else ""
    return f" ({', '.join(parts) or 'no group asks for GPUs'}{note})"


def _parallelism(demand: Demand) -> str:
    return f"tensor {demand.tensor} x pipeline {demand.pipeline}"


def _gpus(number: float) -> str:
    return "any number of GPUs" if number == inf else f"{number:g} GPU" + ("" if number == 1 else "s")
