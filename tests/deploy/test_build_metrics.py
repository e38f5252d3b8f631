"""What a fleet gives Prometheus to scrape, and so the adapter to tell."""

from pathlib import Path

import pytest

from rayhelm.deploy.compose.metrics import metrics_of_plan
from rayhelm.deploy.render.files import render_fleet
from rayhelm.deploy.values.gateway import GatewayValues

FLEETS = sorted((Path(__file__).parents[2] / "values").glob("*/fleet.yaml"))


@pytest.mark.parametrize("path", FLEETS, ids=lambda path: path.parent.name)
def test_every_service_and_every_gateway_is_scraped_in_its_own_cluster(path: Path) -> None:
    fleet = render_fleet(path)
    for cluster in fleet.plan.declared.clusters:
        here = [release for release in fleet.releases if release.cluster == cluster]
        found = metrics_of_plan(cluster, fleet.plan)
        services = {release.name: release.namespace for release in here if release.chart == "ray-service"}
        gateways = {release.name: release.namespace for release in here if isinstance(release.values, GatewayValues)}
        assert {each: scraped.namespace for each, scraped in found.services.items()} == services
        assert {each: scraped.namespace for each, scraped in found.gateways.items()} == gateways
