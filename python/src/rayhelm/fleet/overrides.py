"""`values` of clusters, gateways, pools, services, tenants and Argo CD: values of a chart that are merged last."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from rayhelm.fleet.yaml_nodes import Path

if TYPE_CHECKING:
    from rayhelm.fleet.fleet import Fleet

__all__ = ["ChartValues", "Override", "list_overrides"]

ChartValues = dict[str, Any]
"""Values of a chart as a part of a release: the chart's schema checks them, not the one of the fleet file."""


@dataclass(frozen=True)
class Override:
    """`values` of one part of a fleet file."""

    path: Path
    """Where it is: `("services", "chat", "values")`."""
    chart: str
    name: str
    """Name of the cluster, pool (also for its hosts), service or tenant; for Argo CD that of the fleet."""
    values: ChartValues
    """Values of the chart; for a pool those of its worker groups."""


def list_overrides(fleet: "Fleet") -> Iterator[Override]:
    """Yield the overrides in the order in which they are merged: the most specific one is last. Some are empty."""
    for name, cluster in fleet.clusters.items():
        yield Override(("clusters", name, "values"), "platform", name, cluster.values)
        yield Override(("clusters", name, "gateway", "values"), "gateway", name, cluster.gateway.values)
    for name, pool in fleet.pools.items():
        yield Override(("pools", name, "values"), "ray-service", name, pool.values)
        for index, host in enumerate(pool.hosts):
            yield Override(("pools", name, "hosts", index, "values"), "ray-service", name, host.values)
    for name, service in fleet.services.items():
        yield Override(("services", name, "values"), "ray-service", name, service.values)
    for name, tenant in fleet.tenants.items():
        yield Override(("tenants", name, "values"), "tenant", name, tenant.values)
    if fleet.gitops:
        yield Override(("gitops", "values"), "argocd", fleet.fleet, fleet.gitops.values)
