"""Claim of the volume with the weights of a service: size and access mode."""

from collections.abc import Sequence
from math import ceil

from rayhelm.fleet.fleet import Fleet
from rayhelm.fleet.sources import CLAIM, is_downloaded, is_hub_id
from rayhelm.planner.plan import ModelPlan
from rayhelm.planner.reason import Reason
from rayhelm.planner.service_pods import AccessMode, ClaimPlan

__all__ = ["plan_claim"]

STEP_GIB = 10
"""Sizes are multiples of it, and leave as much for files beside the weights."""


def plan_claim(service: str, models: Sequence[ModelPlan], upgrade: str, fleet: Fleet) -> ClaimPlan | None:
    """Plan the claim; None if nothing is downloaded, or if a model names an existing claim."""
    downloaded = [plan for plan in models if is_downloaded(plan.source, plan.revision)]
    adapters = any(is_hub_id(each.source) for plan in models for each in plan.adapters.values())
    if not (downloaded or adapters) or any(CLAIM.fullmatch(plan.source) for plan in models):
        return None
    several = _needs_several_nodes(models, upgrade, fleet)
    size, why_size = _choose_size(service, models, downloaded, fleet)
    mode, why_mode = _choose_mode(models[0].cluster, several, fleet)
    return ClaimPlan(size_gib=size, access_mode=mode, needs_several_nodes=several, reasons=(why_size, why_mode))


def _choose_size(
    service: str, models: Sequence[ModelPlan], downloaded: Sequence[ModelPlan], fleet: Fleet
) -> tuple[int, Reason]:
    path = f"services.{service}.weightsSize"
    declared = fleet.services.get(service)
    if declared and declared.weights_size:
        size = ceil(declared.weights_size / 2**30)
        because = "pinned in the fleet file"
        return size, Reason(decision="size", chosen=f"{size} GiB", because=because, path=path)
    held = sum(_count_checkpoint_gib(plan) for plan in downloaded)
    held += sum(plan.adapter_gib * len(plan.adapters) for plan in models)
    size = ceil((2 * held + STEP_GIB) / STEP_GIB) * STEP_GIB
    because = f"room for two revisions of the weights and {STEP_GIB} GiB, rounded up"
    numbers: dict[str, float | int | str] = {"weights_gib": round(held, 2)}
    return size, Reason(decision="size", chosen=f"{size} GiB", because=because, numbers=numbers, path=path)


def _count_checkpoint_gib(plan: ModelPlan) -> float:
    if plan.checkpoint_gib is not None:
        return plan.checkpoint_gib
    return sum(stage.weights_gib for stage in plan.stages) * plan.shape.tp * plan.shape.dp


def _choose_mode(cluster: str, several: bool, fleet: Fleet) -> tuple[AccessMode, Reason]:
    path = f"clusters.{cluster}.weights.accessMode"
    if pinned := fleet.clusters[cluster].weights.access_mode:
        return pinned, Reason(decision="access_mode", chosen=pinned, because="pinned in the fleet file", path=path)
    mode: AccessMode = "ReadWriteMany" if several else "ReadWriteOnce"
    because = "pods on several nodes can mount it at one time" if several else "one node has all pods that mount it"
    return mode, Reason(decision="access_mode", chosen=mode, because=because, path=path)


def _needs_several_nodes(models: Sequence[ModelPlan], upgrade: str, fleet: Fleet) -> bool:
    """Return whether pods on several nodes can have the volume at one time."""
    is_single = upgrade == "None" and _has_one_pod(models)
    return not (is_single or _is_on_one_node(models, fleet))


def _is_on_one_node(models: Sequence[ModelPlan], fleet: Fleet) -> bool:
    """Return whether the models are on the only node of one pool. Pods of an upgrade are there too."""
    names = {model.pool for model in models}
    pools = [fleet.pools[name] for name in names if name in fleet.pools]
    return len(names) == len(pools) == 1 and (len(pools[0].hosts) or pools[0].nodes) == 1


def _has_one_pod(models: Sequence[ModelPlan]) -> bool:
    """Return whether the largest number of replicas is in one pod: one replica, or shares of one GPU."""
    if len({(model.pool, model.hosts) for model in models}) > 1:
        return False
    whole = [model for model in models if model.gpu_fraction == 1]
    shares = sum(model.gpu_fraction * model.max_replicas for model in models if model.gpu_fraction < 1)
    if whole:
        return not shares and sum(model.max_replicas * model.nodes_per_replica for model in whole) == 1
    return shares <= 1 + 1e-9
