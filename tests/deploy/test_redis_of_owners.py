"""Owners that share a Redis are refused, because its password gives code execution in each of their Ray clusters."""

import pytest

from rayhelm.deploy.compose.ray_service import build_ray_service_values
from rayhelm.deploy.values.ray_service import RayServiceValues
from rayhelm.errors import FleetError
from rayhelm.planner.planner import plan_fleet
from shared.fleets import load

LLAMA = "meta-llama/Llama-3.1-8B-Instruct"
SHARED = "redis: {address: 'redis.state:6379'}"


def values(cluster: str, one: str, other: str) -> dict[str, RayServiceValues]:
    loaded = load(
        "fleet: two\n"
        "pools: {pool: {gpu: L4-24GB, nodes: 2}}\n"
        f"models: {{a: {{source: {LLAMA}, context: 4096}}, b: {{source: {LLAMA}, context: 4096}}}}\n"
        "services: {a: {tenant: one}, b: {tenant: other}}\n"
        f"clusters: {{main: {{apiServer: {{cidrs: [10.0.0.1/32]}}, {cluster}}}}}\n"
        f"tenants: {{one: {{{one}}}, other: {{{other}}}}}\n"
    )
    return build_ray_service_values(plan_fleet(loaded))


@pytest.mark.parametrize(
    ("cluster", "one", "other"),
    [(SHARED, "", ""), ("", SHARED, SHARED), (SHARED, "redis: {address: 'REDIS.state:6379'}", "")],
    ids=["of the cluster", "of both tenants", "of the cluster and a tenant"],
)
def test_two_owners_with_one_redis_are_refused(cluster: str, one: str, other: str) -> None:
    with pytest.raises(FleetError) as caught:
        values(cluster, one, other)
    (problem,) = caught.value.problems
    assert "use the same Redis, redis.state:6379" in problem.message
    assert problem.fix_text.endswith("# a Redis of its own")


def test_each_owner_gets_its_own_redis() -> None:
    found = values("", "redis: {address: 'redis.one:6379'}", "redis: {address: 'redis.other:6379'}")
    addresses = {name: each.gcs_fault_tolerance.redis_address for name, each in found.items()}
    assert addresses == {"a": "redis.one:6379", "b": "redis.other:6379"}


def test_redis_of_the_cluster_serves_a_single_owner() -> None:
    found = values(SHARED, "", "redis: {address: 'redis.other:6379'}")
    assert found["a"].gcs_fault_tolerance.redis_address == "redis.state:6379"
