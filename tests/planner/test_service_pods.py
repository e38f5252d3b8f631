"""Pods and volumes of a service: what the plan decides, why, and which key changes it."""

from pathlib import Path

import pytest

from rayhelm.fleet.explain import explain
from rayhelm.fleet.load import load_fleet
from rayhelm.planner.plan import Plan, WorkerPlan
from rayhelm.planner.planner import plan_fleet
from rayhelm.planner.reason import Reason
from shared.fleets import plan

VALUES = Path(__file__).parents[2] / "values"
CHAT = "{source: Qwen/Qwen3-8B, context: 8192, unpinnedReason: an example, replicas: %s}"


def plan_one(pool: str = "gpu: L4-24GB, nodes: 8", replicas: str = "1", more: str = "") -> Plan:
    return plan(f"fleet: one\npools: {{gpu: {{{pool}}}}}\nmodels: {{chat: {CHAT % replicas}}}\n{more}")


def get_worker(found: Plan) -> WorkerPlan:
    return found.services["chat"].workers["gpu"]


def get_reason(reasons: tuple[Reason, ...], decision: str) -> Reason:
    return next(reason for reason in reasons if reason.decision == decision)


@pytest.mark.parametrize(
    ("pool", "cpus", "memory", "because"),
    [
        ("gpu: L4-24GB, nodes: 8", 4, 32, "the pool states no CPUs of its nodes"),
        ("gpu: L4-24GB, nodes: 8, gpusPerNode: 2, cpusPerNode: 24, memoryPerNode: 96GiB", 11, 47, "of the 24 CPUs"),
    ],
    ids=["assumed", "of-the-node"],
)
def test_size_of_a_worker_is_its_part_of_the_node_or_assumed(pool: str, cpus: int, memory: int, because: str) -> None:
    worker = get_worker(plan_one(pool))
    assert (worker.cpus, worker.memory_gib, worker.shm_gib) == (cpus, memory, 8)
    reason = get_reason(worker.reasons, "cpus")
    assert because in reason.because
    assert reason.path == "pools.gpu.cpusPerNode"


@pytest.mark.parametrize(
    ("replicas", "kept", "because"),
    [
        ("1", 0, "leaves none to evict"),
        ("{min: 2, max: 4}", 1, "one replica serves while a node is drained"),
        ("{min: 0, max: 4}", 0, "a model can scale to zero"),
    ],
    ids=["one", "several", "zero"],
)
def test_drain_keeps_a_replica_if_another_can_be_evicted(replicas: str, kept: int, because: str) -> None:
    worker = get_worker(plan_one(replicas=replicas))
    assert worker.min_available == kept
    assert because in get_reason(worker.reasons, "disruption_budget").because


@pytest.mark.parametrize(
    ("more", "size", "because"),
    [
        ("", 50, "room for two revisions of the weights"),
        ("services: {chat: {weightsSize: 200GiB}}", 200, "pinned in the fleet file"),
    ],
    ids=["computed", "pinned"],
)
def test_claim_has_room_for_two_revisions_or_the_pinned_size(more: str, size: int, because: str) -> None:
    claim = plan_one(more=f"{more}\n").services["chat"].claim
    assert claim
    assert claim.size_gib == size
    assert because in get_reason(claim.reasons, "size").because


def test_existing_claim_is_not_planned() -> None:
    found = plan(
        "fleet: one\npools: {gpu: {gpu: L4-24GB, nodes: 1}}\n"
        "models: {chat: {source: 'pvc://weights/qwen', architecture: Qwen/Qwen3-8B, context: 8192}}\n"
    )
    assert found.services["chat"].claim is None


@pytest.mark.parametrize("name", sorted(path.parent.name for path in VALUES.glob("*/fleet.yaml")))
def test_every_reason_names_a_key_of_the_fleet_file(name: str) -> None:
    found = plan_fleet(load_fleet(VALUES / name / "fleet.yaml"))
    reasons = [
        reason
        for service in found.services.values()
        for part in (*service.workers.values(), *filter(None, [service.claim]))
        for reason in part.reasons
    ]
    assert reasons
    for reason in reasons:
        assert reason.because
        # `models.NAME.replicas`: names can have dots.
        section, key = reason.path.split(".")[0], reason.path.rpartition(".")[2]
        below = "weights." if ".weights." in reason.path else ""
        assert not reason.path or explain(f"{section}.*.{below}{key}").description
