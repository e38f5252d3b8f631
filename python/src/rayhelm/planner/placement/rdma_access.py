"""Refuse a pool whose replicas span hosts if its network and its RDMA device disagree.

The plan counts with `network`; the pods use RDMA only through `rdmaResource`, and otherwise get `NCCL_IB_DISABLE=1`.
Runs after all models are placed: replicas on one host do not use the network.
"""

from collections.abc import Iterator, Mapping

from rayhelm.errors import Fix, FleetError, Problem
from rayhelm.planner.placement.inventory import PoolInventory
from rayhelm.planner.plan import ModelPlan
from rayhelm.spec.load import LoadedFleet

__all__ = ["check_rdma_access"]


def check_rdma_access(
    plans: Mapping[str, ModelPlan], inventories: Mapping[str, PoolInventory], loaded: LoadedFleet
) -> None:
    """Raise FleetError for each pool with a replica on several hosts whose `network` and `rdmaResource` disagree."""
    spanning = {plan.pool: plan.model for plan in plans.values() if plan.nodes_per_replica > 1 or plan.prefill_decode}
    problems = [
        problem for pool, model in spanning.items() for problem in _check_pool(inventories[pool], model, loaded)
    ]
    if problems:
        raise FleetError(sorted(problems, key=lambda problem: problem.line or 0))


def _check_pool(inventory: PoolInventory, model: str, loaded: LoadedFleet) -> Iterator[Problem]:
    network, resource = inventory.network, inventory.pool.rdma_resource
    path = ("pools", inventory.name)
    if network.rdma and not resource:
        yield loaded.document.problem(
            (*path, "network"),
            f"{network.name} is RDMA, and the pool has no `rdmaResource`: pods get no RDMA device, so NCCL would use"
            f" sockets between the hosts of `{model}`, and the plan would count with RDMA",
            Fix(
                "../rdmaResource",
                "rdma/hca_shared_devices_a",
                "the one of your RDMA device plugin: kubectl describe nodes lists it under Allocatable",
            ),
            alternatives=[Fix("", "ethernet-100g", "or another network without RDMA: the plan then counts with TCP")],
        )
    if resource and not network.rdma:
        yield loaded.document.problem(
            (*path, "rdmaResource"),
            f"pods get {resource}, so NCCL would use RDMA between the hosts of `{model}`, and network {network.name}"
            " of the plan is not RDMA",
            Fix("../network", "rdma-100g", "or another network with RDMA: `rdma-200g`, `rdma-400g`"),
            alternatives=[Fix.removal("", "NCCL then uses sockets")],
        )
