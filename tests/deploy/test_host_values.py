"""`values` of a host are those of its pods."""

import pytest

from rayhelm.deploy.compose.ray_service import build_ray_service_values
from rayhelm.errors import FleetError
from rayhelm.planner.planner import plan_fleet
from shared.apply_fix import check_fixes
from shared.fleets import load, plan

FLEET = """\
fleet: lab
clusters: {main: {apiServer: {cidrs: [10.0.0.1/32]}, gpuFeatureDiscovery: true}}
pools:
  ws:
    hosts:
      - {name: fast, gpu: RTX-A5000-24GB, values: {env: %s}}
      - {name: slow, gpu: %s, nodeSelector: {host: slow}}
    network: ethernet-1g
    values: {env: {NCCL_DEBUG: WARN}}
models:
  m: {source: Qwen/Qwen3-32B-AWQ, context: 4096, unpinnedReason: an example, parallelism: {tensor: 1, pipeline: 2}}
"""
SLOW = "RTX-A4000-16GB"


def test_values_of_a_host_are_merged_into_its_worker_group() -> None:
    loaded = load(FLEET % ("{NCCL_DEBUG: INFO, NCCL_SOCKET_IFNAME: eth1}", SLOW))
    groups = build_ray_service_values(plan_fleet(loaded))["m"].worker_groups
    assert groups["ws-fast"].env == {"NCCL_DEBUG": "INFO", "NCCL_SOCKET_IFNAME": "eth1"}
    assert groups["ws-slow"].env == {"NCCL_DEBUG": "WARN"}


def test_plan_lists_the_values_of_a_host() -> None:
    listed = {override.part: override.key for override in plan(FLEET % ("{NCCL_DEBUG: INFO}", SLOW)).overrides}
    assert listed == {"pools.ws": "workerGroups.*.env.NCCL_DEBUG", "pools.ws.hosts.0": "workerGroups.*.env.NCCL_DEBUG"}


def test_values_of_hosts_that_share_their_pods_are_refused() -> None:
    text = FLEET % ("{NCCL_DEBUG: INFO}", "RTX-A5000-24GB")
    with pytest.raises(FleetError) as raised:
        plan(text)
    (problem,) = raised.value.problems
    assert problem.path == "pools.ws.hosts[0].values"
    assert "share their pods" in problem.message
    check_fixes(text, [problem], plan)


def test_secrets_in_values_of_a_host_are_refused() -> None:
    with pytest.raises(FleetError) as raised:
        load(FLEET % ("{OPENAI_API_KEY: sk-1}", SLOW))
    (problem,) = raised.value.problems
    assert problem.line == 6
    assert "sk-1" not in problem.message
