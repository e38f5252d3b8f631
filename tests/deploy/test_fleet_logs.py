"""Logs of a cluster in the fleet file, and what the values of its services get."""

import pytest

from rayhelm.deploy.render.files import render_plan
from rayhelm.deploy.values.ray_service import RayServiceValues
from rayhelm.planner.planner import plan_fleet
from shared.fleets import load
from shared.small_fleet import SMALL, the_problem

FLEET = """\
fleet: logged
clusters: {main: {apiServer: {cidrs: [10.0.0.1/32]}%s}}
pools: {gpu: {gpu: L4-24GB, nodes: 4}}
models: {chat: {source: Qwen/Qwen3-8B, context: 4096}}
services: {chat: {tenant: owner}}
tenants: {owner: {models: [chat]}}
"""


def service(cluster: str) -> RayServiceValues:
    (found,) = [
        release.values
        for release in render_plan(plan_fleet(load(FLEET % cluster))).releases
        if isinstance(release.values, RayServiceValues)
    ]
    return found


@pytest.mark.parametrize("requests", [True, False])
@pytest.mark.parametrize("stdout", [True, False])
def test_services_of_a_cluster_get_its_log_settings(requests: bool, stdout: bool) -> None:
    found = service(f", logs: {{requests: {requests}, stdout: {stdout}}}".lower())
    assert found.serve.logging.access_log is requests
    assert found.logs.stdout.enabled is stdout


def test_requests_are_not_logged_by_default() -> None:
    found = service("")
    assert not found.serve.logging.access_log
    assert not found.logs.stdout.enabled
    assert found.serve.logging.encoding == "JSON"


@pytest.mark.parametrize(
    ("logs", "message"),
    [("{stdout: loki}", "stdout"), ("{prompts: true}", "prompts"), ("true", "logs"), ("{requests: 1}", "requests")],
)
def test_invalid_logs_are_refused(logs: str, message: str) -> None:
    problem = the_problem(f"{SMALL}clusters: {{main: {{logs: {logs}}}}}\n")
    assert message in f"{problem.path} {problem.message}"
    assert "Traceback" not in str(problem)
