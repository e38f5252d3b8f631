"""A fleet's releases as a cluster without GPUs can run them, and the addresses of its models there. Pure."""

from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, field, replace

from rayhelm.deploy.render.files import Rendered
from rayhelm.deploy.render.releases import Release
from rayhelm.deploy.values.common.network import Peer
from rayhelm.deploy.values.gateway import GatewayValues
from rayhelm.deploy.values.gateway.network import AllowedClient
from rayhelm.deploy.values.gateway.tenants import GatewayTenant
from rayhelm.deploy.values.platform import PlatformValues
from rayhelm.deploy.values.ray_service import RayServiceValues
from rayhelm.deploy.values.tenant import TenantValues
from rayhelm.run.rehearsal.load import NAMESPACE
from rayhelm.run.rehearsal.load_client import LoadTarget
from rayhelm.run.standin.cluster import (
    StandInCluster,
    adapt_gateway,
    adapt_platform,
    adapt_service,
    adapt_tenant,
)

__all__ = ["LOAD_CLIENT", "StandInSet", "build_stand_ins"]

LOAD_CLIENT = "rehearsal"
"""Tenant of the load, which may call every model, and name of its network policy peer."""
DELETION_DELAY = 60
"""Upper limit of the deletion delay of a replaced cluster, in seconds, to keep a rehearsal short."""


@dataclass(frozen=True)
class StandInSet:
    """Releases with CPU stand-ins."""

    releases: tuple[Release, ...]
    """In the order of their installation."""
    targets: tuple[LoadTarget, ...]
    """Models that have a stand-in; without API keys."""
    notes: tuple[str, ...]
    """Differences from the fleet, a sentence each."""
    services: Mapping[str, RayServiceValues] = field(default_factory=dict)
    """The fleet's own values of each service."""


def build_stand_ins(
    rendered: Rendered,
    stand_in_cluster: StandInCluster,
    *,
    cluster: str,
    services: Collection[str] = (),
    workers: int = 1,
    gateways: int = 1,
) -> StandInSet:
    """Build the stand-ins of one cluster of the fleet; of all services if `services` is empty.

    Each of the `workers` runs a replica of every model; the gateway has `gateways` pods.
    """
    notes: list[str] = []
    releases: list[Release] = []
    own: dict[str, RayServiceValues] = {}
    for release in (each for each in rendered.releases if each.cluster == cluster):
        values = release.values
        match values:
            case RayServiceValues():
                if services and release.name not in services:
                    continue
                plans = rendered.plan.of_service(release.name)
                architectures = {plan.served_as: plan.architecture for plan in plans}
                small = adapt_service(values, architectures, stand_in_cluster, workers=workers)
                notes += small.notes
                if small.values.serve.applications or small.values.serve.custom_applications:
                    own[release.name] = values
                    releases.append(replace(release, values=_adapt_service(small.values)))
            case GatewayValues():
                releases.append(
                    replace(release, values=_adapt_gateway(adapt_gateway(values, stand_in_cluster, replicas=gateways)))
                )
            case TenantValues():
                releases.append(replace(release, values=adapt_tenant(values, stand_in_cluster)))
            case PlatformValues():
                releases.append(replace(release, values=adapt_platform(values, stand_in_cluster)))
    return StandInSet(tuple(releases), tuple(_list_targets(releases, rendered)), tuple(notes), own)


def _adapt_service(values: RayServiceValues) -> RayServiceValues:
    """Allow the load if there is no gateway, and shorten the deletion delay."""
    policy = values.network_policy
    delay = min(DELETION_DELAY, values.upgrade.deletion_delay_seconds)
    gateways = policy.allowed_gateways or {LOAD_CLIENT: Peer(namespace=NAMESPACE)}
    return values.model_copy(
        update={
            "upgrade": values.upgrade.model_copy(update={"deletion_delay_seconds": delay}),
            "network_policy": policy.model_copy(update={"allowed_gateways": gateways}),
        }
    )


def _adapt_gateway(values: GatewayValues) -> GatewayValues:
    """Allow the load, with its own key and limits that it cannot reach."""
    policy = values.network_policy
    clients = {**policy.allowed_clients, LOAD_CLIENT: AllowedClient(namespace=NAMESPACE)}
    load = GatewayTenant.model_validate(
        {
            "keys": {"secretName": f"gateway-keys-{LOAD_CLIENT}"},
            "models": list(values.models),
            "requestsPerMinute": 1_000_000,
            "concurrency": 10_000,
        }
    )
    return values.model_copy(
        update={
            "network_policy": policy.model_copy(update={"allowed_clients": clients}),
            "tenants": {**values.tenants, LOAD_CLIENT: load},
        }
    )


def _list_targets(releases: list[Release], rendered: Rendered) -> Iterator[LoadTarget]:
    tasks = {plan.served_as: str(plan.task) for plan in rendered.plan.models.values()}
    gateways = [release for release in releases if isinstance(release.values, GatewayValues)]
    seen: set[str] = set()
    for release in releases:
        values = release.values
        if not isinstance(values, RayServiceValues):
            continue
        for name, prefix, model in _list_models(values):
            if model in seen:
                continue
            seen.add(model)
            url = _build_url(release, prefix or f"/{name}", values, gateways)
            yield LoadTarget(name=model, url=url, model=model, task=tasks[model])


def _list_models(values: RayServiceValues) -> Iterator[tuple[str, str | None, str]]:
    """List application, route and model of each model, those of custom applications included."""
    for name, application in values.serve.applications.items():
        for model in application.models:
            yield name, application.route_prefix, model
    for name, own in values.serve.custom_applications.items():
        yield name, own.route_prefix, own.args["model"]


def _build_url(release: Release, prefix: str, values: RayServiceValues, gateways: list[Release]) -> str:
    if gateways:
        return f"http://{gateways[0].name}.{gateways[0].namespace}.svc.{values.cluster_domain}"
    host = f"{values.name_override or release.name}-serve-svc.{release.namespace}.svc.{values.cluster_domain}"
    return f"http://{host}:{values.serve.port}{prefix}"
