"""All containers of the worker pods of a node fit it, with room for DaemonSets."""

import pytest

from rayhelm.deploy.compose.ray_service import build_ray_service_values
from rayhelm.deploy.values.ray_service import RayServiceValues
from rayhelm.deploy.values.ray_service.logs import StdoutLogs
from rayhelm.errors import FleetError, Problem
from rayhelm.facts.quantities import parse_quantity
from rayhelm.planner.planner import plan_fleet
from rayhelm.planner.workers.node_room import LOG_CONTAINER_CPUS, LOG_CONTAINER_MEMORY_GIB
from shared.apply_fix import check_fixes
from shared.fleets import load

FLEET = """\
fleet: acme
clusters:
  main: {apiServer: {cidrs: [10.0.0.1/32]}, logs: {stdout: %s}}
pools:
  gpu: {gpu: L4-24GB, nodes: 2, gpusPerNode: 2, cpusPerNode: 16, memoryPerNode: 120GiB%s}
models:
  chat: {source: Qwen/Qwen3-8B, unpinnedReason: an example, context: 8192, replicas: 4}
services:
  chat: {values: {%s}}
"""
PODS_OF_A_NODE = 2


def build(logs: bool = True, pool: str = "", service: str = "") -> RayServiceValues:
    return build_text(FLEET % (str(logs).lower(), pool, service))


def build_text(text: str) -> RayServiceValues:
    loaded = load(text)
    with loaded.document.joined():
        return build_ray_service_values(plan_fleet(loaded))["chat"]


def refuse(pool: str = "", service: str = "") -> Problem:
    text = FLEET % ("true", pool, service)
    with pytest.raises(FleetError) as raised:
        build_text(text)
    check_fixes(text, raised.value.problems, build_text)
    (problem,) = raised.value.problems
    return problem


@pytest.mark.parametrize("logs", [True, False])
@pytest.mark.parametrize(
    ("pool", "cpus", "gib"), [("", 15.5, 119), (", daemonSets: {cpus: 2, memory: 10GiB}", 14, 110)]
)
def test_containers_of_a_node_fit_it_beside_its_daemon_sets(pool: str, cpus: float, gib: int, logs: bool) -> None:
    values = build(logs, pool)
    (group,) = values.worker_groups.values()
    containers = [group.resources, *([values.logs.stdout.resources] if logs else [])]
    assert PODS_OF_A_NODE * sum(parse_quantity(each.limits.cpu) for each in containers) <= cpus
    assert PODS_OF_A_NODE * sum(parse_quantity(each.limits.memory) for each in containers) <= gib * 2**30


def test_room_of_the_container_logs_is_that_of_the_chart() -> None:
    limits = StdoutLogs().resources.limits
    assert float(parse_quantity(limits.cpu)) == LOG_CONTAINER_CPUS
    assert float(parse_quantity(limits.memory)) / 2**30 == LOG_CONTAINER_MEMORY_GIB


@pytest.mark.parametrize(
    ("pool", "service", "path", "fix"),
    [
        (
            ", values: {resources: {limits: {cpu: 8}}}",
            "",
            "pools.gpu.values.resources.limits.cpu",
            "cpu: 7",
        ),
        (
            ", values: {resources: {limits: {memory: 60Gi}}}",
            "",
            "pools.gpu.values.resources.limits.memory",
            "memory: 59Gi",
        ),
        (
            ", values: {resources: {limits: {cpu: 8}, requests: {cpu: 7800m}}}",
            "",
            "pools.gpu.values.resources.requests.cpu",
            "cpu: 7",
        ),
        (
            "",
            "workerGroups: {gpu: {resources: {limits: {cpu: 9}}}}",
            "services.chat.values.workerGroups.gpu.resources.limits.cpu",
            "cpu: 7",
        ),
        (
            "",
            "logs: {stdout: {resources: {limits: {cpu: 2}}}}",
            "pools.gpu.values.resources.limits.cpu",
            "cpu: 5",
        ),
    ],
    ids=["cpus", "memory", "request", "service", "logs"],
)
def test_overrides_that_do_not_fit_the_node_are_refused(pool: str, service: str, path: str, fix: str) -> None:
    problem = refuse(pool, service)
    assert (problem.path, str(problem.fix)) == (path, fix)
    assert "of a node, without" in problem.message


def test_resources_of_a_host_that_do_not_fit_it_are_refused() -> None:
    host = "hosts: [{name: a, gpu: L4-24GB, gpus: 2, values: {resources: {limits: {cpu: 16}}}}]"
    text = (FLEET % ("true", "", "")).replace("gpu: L4-24GB, nodes: 2, gpusPerNode: 2", host).replace(": 4}", ": 2}")
    with pytest.raises(FleetError) as raised:
        build_text(text)
    (problem,) = raised.value.problems
    assert (problem.path, problem.line) == ("pools.gpu.hosts[0].values.resources.limits.cpu", 5)
    check_fixes(text, [problem], build_text)


def test_overrides_that_fit_the_node_are_kept() -> None:
    (group,) = build(pool=", values: {resources: {limits: {cpu: 8}, requests: {cpu: 6}}}").worker_groups.values()
    assert (group.resources.limits.cpu, group.resources.requests.cpu) == ("8", "6")
