"""A fleet's releases as a cluster without cards can run them, and how its models are called there. Pure."""

from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, field, replace

from rayhelm.rehearsal.load import NAMESPACE
from rayhelm.rehearsal.load_client import LoadTarget
from rayhelm.render.files import Rendered
from rayhelm.render.releases import Release
from rayhelm.standin.cluster import (
    StandInCluster,
    adapt_gateway,
    adapt_platform,
    adapt_service,
    adapt_tenant,
)
from rayhelm.values.common.network import Peer
from rayhelm.values.gateway import GatewayValues
from rayhelm.values.gateway.network import AllowedClient
from rayhelm.values.gateway.tenants import Tenant
from rayhelm.values.platform import PlatformValues
from rayhelm.values.ray_service import RayServiceValues
from rayhelm.values.tenant import TenantValues

__all__ = ["LOAD_CLIENT", "StandInSet", "build_stand_ins"]

LOAD_CLIENT = "rehearsal"
"""The tenant of the load, who may call every model, and the name of its way in."""
DELETION_DELAY = 60
"""Seconds that a cluster which was replaced lives on at most: nobody waits for ten minutes in a rehearsal."""


@dataclass(frozen=True)
class StandInSet:
    """Who plays."""

    releases: tuple[Release, ...]
    """In the order of their install."""
    targets: tuple[LoadTarget, ...]
    """Models that somebody stands in for; without keys."""
    notes: tuple[str, ...]
    """What is not as in the fleet, a sentence each."""
    services: Mapping[str, RayServiceValues] = field(default_factory=dict)
    """The fleet's own values of each service that plays."""


def build_stand_ins(
    rendered: Rendered,
    place: StandInCluster,
    *,
    cluster: str,
    services: Collection[str] = (),
    workers: int = 1,
    doors: int = 1,
) -> StandInSet:
    """The releases of one of the fleet's clusters; `services` are all when left out. `workers` have room for a replica
    of every model each."""
    notes: list[str] = []
    played: list[Release] = []
    own: dict[str, RayServiceValues] = {}
    for release in (each for each in rendered.releases if each.cluster == cluster):
        values = release.values
        match values:
            case RayServiceValues():
                if services and release.name not in services:
                    continue
                plans = rendered.plan.of_service(release.name)
                architectures = {plan.served_as: plan.architecture for plan in plans}
                small = adapt_service(values, architectures, place, workers=workers)
                notes += small.notes
                if small.values.serve.applications:
                    own[release.name] = values
                    played.append(replace(release, values=_service(small.values)))
            case GatewayValues():
                played.append(replace(release, values=_gateway(adapt_gateway(values, place, replicas=doors))))
            case TenantValues():
                played.append(replace(release, values=adapt_tenant(values)))
            case PlatformValues():
                played.append(replace(release, values=adapt_platform(values, place)))
    return StandInSet(tuple(played), tuple(_targets(played, rendered)), tuple(notes), own)


def _service(values: RayServiceValues) -> RayServiceValues:
    """Lets the load in past a gateway that is not there, and replaces clusters quicker."""
    policy = values.network_policy
    delay = min(DELETION_DELAY, values.upgrade.deletion_delay_seconds)
    gateways = policy.allowed_gateways or {LOAD_CLIENT: Peer(namespace=NAMESPACE)}
    return values.model_copy(
        update={
            "upgrade": values.upgrade.model_copy(update={"deletion_delay_seconds": delay}),
            "network_policy": policy.model_copy(update={"allowed_gateways": gateways}),
        }
    )


def _gateway(values: GatewayValues) -> GatewayValues:
    """Lets the load in, with a key of its own and without limits that it could meet."""
    policy = values.network_policy
    clients = {**policy.allowed_clients, LOAD_CLIENT: AllowedClient(namespace=NAMESPACE)}
    load = Tenant.model_validate(
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


def _targets(played: list[Release], rendered: Rendered) -> Iterator[LoadTarget]:
    tasks = {plan.served_as: str(plan.task) for plan in rendered.plan.models.values()}
    doors = [release for release in played if isinstance(release.values, GatewayValues)]
    seen: set[str] = set()
    for release in played:
        values = release.values
        if not isinstance(values, RayServiceValues):
            continue
        for name, application in values.serve.applications.items():
            for model in application.models:
                if model in seen:
                    continue
                seen.add(model)
                yield LoadTarget(name=model, url=_url(release, name, values, doors), model=model, task=tasks[model])


def _url(release: Release, application: str, values: RayServiceValues, doors: list[Release]) -> str:
    if doors:
        return f"http://{doors[0].name}.{doors[0].namespace}.svc.{values.cluster_domain}"
    prefix = values.serve.applications[application].route_prefix or f"/{application}"
    host = f"{values.name_override or release.name}-serve-svc.{release.namespace}.svc.{values.cluster_domain}"
    return f"http://{host}:{values.serve.port}{prefix}"
