"""Names of image repositories: the fleet file and the policies accept the same ones."""

import pytest

from rayhelm.deploy.compose.platform import build_platform_values
from rayhelm.deploy.compose.ray_service import build_ray_service_values
from rayhelm.fleet.document import parse_document
from rayhelm.fleet.load import parse_fleet
from rayhelm.planner.planner import plan_fleet
from shared.small_fleet import SMALL, the_problem

LONGEST = "a" * 255


def write_fleet(repository: str) -> str:
    image = f'{{repository: {repository}, tag: "1"}}'
    return f"{SMALL}clusters:\n  main: {{apiServer: {{cidrs: [10.0.0.1/32]}}, image: {image}}}\n"


@pytest.mark.parametrize("name", ["a_b/c", "a__b", "Registry.example/x", "reg:5000/x.y", "a---b/c", LONGEST])
def test_repository_is_accepted_and_allowed_by_the_policy(name: str) -> None:
    loaded = parse_fleet(parse_document(write_fleet(name), "fleet.yaml"))
    plan = plan_fleet(loaded)
    platform = build_platform_values(plan, build_ray_service_values(plan))["main"]
    assert name in platform.policies.image_source.registries


@pytest.mark.parametrize("name", ["a..b/c", "a//b", "/a", "a/", "A/B", "-a", "a___b", LONGEST + "a"])
def test_name_that_no_registry_accepts_is_refused(name: str) -> None:
    assert the_problem(write_fleet(name)).path == "clusters.main.image.repository"


def test_tag_within_the_repository_gets_its_own_key() -> None:
    assert "tag" in the_problem(write_fleet('"registry.example/x:1"')).message
