"""Releases as the list of flows reads them."""

from rayhelm.deploy.network.allowed_flows import NetworkRelease
from rayhelm.deploy.network.flows import load_chart_flows
from rayhelm.deploy.render.releases import Release
from rayhelm.deploy.values.ray_service import RayServiceValues

__all__ = ["to_network_release"]


def to_network_release(release: Release) -> NetworkRelease | None:
    """Return None for a release of a chart without pods."""
    if release.chart not in load_chart_flows():
        return None
    values = release.values.model_dump(by_alias=True, mode="json")
    if isinstance(release.values, RayServiceValues):
        values["autoscaler"]["enabled"] = release.values.runs_autoscaler
    name = values.get("nameOverride") or release.name
    return NetworkRelease(release.chart, name, _find_namespace(release, values, name), values)


def _find_namespace(release: Release, values: dict[str, object], name: str) -> str:
    """Return the namespace of the pods: for a tenant the one that the release creates or names."""
    tenancy = values.get("namespace")
    if not isinstance(tenancy, dict):
        return release.namespace
    return str(tenancy["name"] or (name if tenancy["manage"] else release.namespace))
