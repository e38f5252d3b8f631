"""What the charts' policies let through is what the list of flows says: no less, and no more."""

import pytest

from charts.kit import EXAMPLES, VALUES
from charts.kit import FLEETS as SERVICES
from network.kit.compare import differences
from network.kit.releases import FLEETS, RELEASES, Fleet, alone, fleet_world, one
from network.kit.world import world_of

OTHERS = sorted(str(path.relative_to(VALUES).with_suffix("")) for path in VALUES.glob("*/*.yaml"))


@pytest.mark.parametrize("fleet", FLEETS, ids=str)
def test_reference_fleet_allows_exactly_the_listed_flows(fleet: Fleet) -> None:
    assert differences(fleet_world(fleet)) == []


@pytest.mark.parametrize("release", RELEASES)
def test_single_release_allows_exactly_the_listed_flows(release: str) -> None:
    assert differences(alone(RELEASES[release])) == []


@pytest.mark.parametrize("base", [name for name in EXAMPLES if name not in SERVICES])
def test_ray_service_allows_exactly_the_listed_flows(base: str) -> None:
    assert differences(world_of([one("ray-service", base=base)])) == []


@pytest.mark.parametrize("base", [name for name in OTHERS if name.startswith(("gateway/", "tenant/"))])
def test_gateway_and_tenant_allow_exactly_the_listed_flows(base: str) -> None:
    chart = base.split("/")[0]
    assert differences(world_of([one(chart, base=base, name="research", namespace="doors")])) == []
