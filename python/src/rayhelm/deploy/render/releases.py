"""The Helm releases of a fleet, in the order of their installation: platform, tenants, services, gateways."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from rayhelm.deploy.compose.fleet_values import FleetValues
from rayhelm.deploy.compose.gateway import RELEASE
from rayhelm.deploy.compose.platform import NAMESPACE
from rayhelm.deploy.compose.platform import RELEASE as PLATFORM
from rayhelm.deploy.values.gateway import GatewayValues
from rayhelm.deploy.values.platform import PlatformValues
from rayhelm.deploy.values.ray_service import RayServiceValues
from rayhelm.deploy.values.tenant import TenantValues
from rayhelm.facts.closed import Closed
from rayhelm.fleet.check_tenants import RELEASES
from rayhelm.planner.plan import GatewayPlan, Plan

__all__ = ["Release", "build_releases"]


@dataclass(frozen=True)
class Release:
    """One release of one of the charts."""

    chart: str
    name: str
    namespace: str
    """Namespace of the release itself."""
    cluster: str
    values: Closed
    about: str
    """Description for readers: models, services."""
    file: str
    """Path of its values below the fleet's folder: `<chart>/<release>.yaml`, or `<chart>/<cluster>/<release>.yaml` if
    the fleet has several clusters, because their releases can have the same name."""
    kubernetes: str
    """Version of Kubernetes, in the form of `helm template --kube-version`."""


def build_releases(plan: Plan, values: FleetValues) -> tuple[Release, ...]:
    """Build the releases, in the order of their installation."""
    return (
        *_build_platforms(plan, values.platforms),
        *_build_tenants(plan, values.tenants),
        *_build_services(plan, values.services),
        *_build_gateways(plan, values.gateways),
    )


def _build_platforms(plan: Plan, values: Mapping[str, PlatformValues]) -> Iterator[Release]:
    for cluster, each in values.items():
        pools = [name for name, pool in plan.declared.pools.items() if pool.cluster == cluster]
        yield Release(
            chart="platform",
            name=PLATFORM,
            namespace=NAMESPACE,
            cluster=cluster,
            values=each,
            about=f"pools {', '.join(pools)}",
            file=f"platform/{_find_folder(cluster, plan)}{PLATFORM}.yaml",
            kubernetes=_find_kubernetes(cluster, plan),
        )


def _build_tenants(plan: Plan, values: Mapping[tuple[str, str], TenantValues]) -> Iterator[Release]:
    for (cluster, tenant), each in values.items():
        owned = [name for name in plan.tenants[tenant].services if plan.services[name].cluster == cluster]
        yield Release(
            chart="tenant",
            name=tenant,
            namespace=RELEASES,
            cluster=cluster,
            values=each,
            about=f"owns {', '.join(owned)}",
            file=f"tenant/{_find_folder(cluster, plan)}{tenant}.yaml",
            kubernetes=_find_kubernetes(cluster, plan),
        )


def _build_services(plan: Plan, values: Mapping[str, RayServiceValues]) -> Iterator[Release]:
    for service, each in values.items():
        planned = plan.services[service]
        yield Release(
            chart="ray-service",
            name=service,
            namespace=planned.namespace,
            cluster=planned.cluster,
            values=each,
            about=", ".join(planned.models),
            file=f"ray-service/{service}.yaml",
            kubernetes=_find_kubernetes(planned.cluster, plan),
        )


def _build_gateways(plan: Plan, values: Mapping[str, GatewayValues]) -> Iterator[Release]:
    for cluster, each in values.items():
        planned = plan.gateways[cluster]
        yield Release(
            chart="gateway",
            name=RELEASE,
            namespace=planned.namespace,
            cluster=cluster,
            values=each,
            about=_describe_gateway(planned),
            file=f"gateway/{_find_folder(cluster, plan)}{RELEASE}.yaml",
            kubernetes=_find_kubernetes(cluster, plan),
        )


def _describe_gateway(planned: GatewayPlan) -> str:
    serves = f"serves {', '.join(model for model in planned.models if model not in planned.forwarded)}"
    return f"{serves}; forwards {', '.join(planned.forwarded)}" if planned.forwarded else serves


def _find_folder(cluster: str, plan: Plan) -> str:
    return f"{cluster}/" if len(plan.declared.clusters) > 1 else ""


def _find_kubernetes(cluster: str, plan: Plan) -> str:
    return f"{plan.declared.clusters[cluster].kubernetes}.0"
