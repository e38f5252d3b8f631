"""The charts' policies allow exactly the connections in the list of flows."""

import pytest

from charts.kit import EXAMPLES, VALUES
from charts.kit import FLEETS as SERVICES
from network.kit.compare import find_differences
from network.kit.releases import FLEETS, RELEASES, Fleet, fleet_world, render_alone, render_one
from network.kit.world import world_of

OTHERS = sorted(str(path.relative_to(VALUES).with_suffix("")) for path in VALUES.glob("*/*.yaml"))


@pytest.mark.parametrize("fleet", FLEETS, ids=str)
def test_reference_fleet_allows_exactly_the_listed_flows(fleet: Fleet) -> None:
    assert find_differences(fleet_world(fleet)) == []


@pytest.mark.parametrize("release", RELEASES)
def test_single_release_allows_exactly_the_listed_flows(release: str) -> None:
    assert find_differences(render_alone(RELEASES[release])) == []


@pytest.mark.parametrize("base", [name for name in EXAMPLES if name not in SERVICES])
def test_ray_service_allows_exactly_the_listed_flows(base: str) -> None:
    assert find_differences(world_of([render_one("ray-service", base=base)])) == []


@pytest.mark.parametrize("base", [name for name in OTHERS if name.startswith(("gateway/", "tenant/"))])
def test_gateway_and_tenant_allow_exactly_the_listed_flows(base: str) -> None:
    chart = base.split("/")[0]
    assert find_differences(world_of([render_one(chart, base=base, name="research", namespace="shared")])) == []
