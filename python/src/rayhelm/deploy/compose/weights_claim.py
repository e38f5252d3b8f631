"""Access mode of the claim with the weights of a service."""

from collections.abc import Sequence
from typing import Literal

from rayhelm.fleet.fleet import Fleet
from rayhelm.planner.plan import ModelPlan, Plan

__all__ = ["AccessMode", "choose_access_mode", "needs_several_nodes"]

AccessMode = Literal["ReadWriteOnce", "ReadWriteMany"]


def choose_access_mode(service: str, plan: Plan, fleet: Fleet) -> AccessMode:
    """Return the pinned mode, else `ReadWriteOnce` if one node has all pods with the volume."""
    if pinned := fleet.clusters[plan.services[service].cluster].weights.access_mode:
        return pinned
    return "ReadWriteMany" if needs_several_nodes(service, plan, fleet) else "ReadWriteOnce"


def needs_several_nodes(service: str, plan: Plan, fleet: Fleet) -> bool:
    """Return whether pods on several nodes can have the volume at one time."""
    models = plan.of_service(service)
    is_single = plan.services[service].upgrade == "None" and _has_one_pod(models)
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
