"""Refuse a pool whose replicas span hosts if its network and its RDMA device disagree.

The plan counts with `network`; the pods use RDMA only through `rdmaResource`, and otherwise get `NCCL_IB_DISABLE=1`.
Runs after all models are placed: replicas on one host do not use the network.
"""

from collections.abc import Iterator, Mapping

from rayhelm.errors import Fix, Problem
from rayhelm.fleet.problems import problem_at
from rayhelm.planner.placement.inventory import PoolInventory
from rayhelm.planner.plan import ModelPlan

__all__ = ["find_rdma_contradictions"]


def find_rdma_contradictions(
    plans: Mapping[str, ModelPlan], inventories: Mapping[str, PoolInventory]
) -> Iterator[Problem]:
    """Yield a problem of each pool with a replica on several hosts whose `network` and `rdmaResource` disagree."""
    spanning = [plan for plan in plans.values() if plan.nodes_per_replica > 1 or plan.prefill_decode]
    by_pool = {plan.pool: plan for plan in sorted(spanning, key=lambda plan: plan.prefill_decode is not None)}
    for pool, plan in by_pool.items():
        yield from _check_pool(inventories[pool], plan)


def _check_pool(inventory: PoolInventory, plan: ModelPlan) -> Iterator[Problem]:
    """Yield the contradictions of a pool. `plan`: a model that uses the network; one with prompts and answers on
    different replicas, if there is one, because it needs RDMA."""
    network, resource = inventory.network, inventory.pool.rdma_resource
    path = ("pools", inventory.name)
    if network.rdma and not resource:
        transfers = f"NCCL would use sockets between the hosts of `{plan.model}`"
        tcp = [Fix("", "ethernet-100g", "or another network without RDMA: the plan then counts with TCP")]
        if plan.prefill_decode:
            transfers, tcp = f"KV caches would move over TCP between the replicas of `{plan.model}`", []
        yield problem_at(
            (*path, "network"),
            f"{network.name} is RDMA, and the pool has no `rdmaResource`: pods get no RDMA device, so {transfers}, and"
            " the plan would count with RDMA",
            Fix(
                "../rdmaResource",
                "rdma/hca_shared_devices_a",
                "the one of your RDMA device plugin: kubectl describe nodes lists it under Allocatable",
            ),
            alternatives=tcp,
        )
    if resource and not network.rdma:
        yield problem_at(
            (*path, "rdmaResource"),
            f"pods get {resource}, so NCCL would use RDMA between the hosts of `{plan.model}`, and network"
            f" {network.name} of the plan is not RDMA",
            Fix("../network", "rdma-100g", "or another network with RDMA: `rdma-200g`, `rdma-400g`"),
            alternatives=[Fix.removal("", "NCCL then uses sockets")],
        )
