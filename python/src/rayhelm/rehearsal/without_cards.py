"""A fleet's releases as a cluster without cards can run them, and how its models are called there. Pure."""

from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, field, replace

from rayhelm.rehearsal.caller import Target
from rayhelm.rehearsal.load import NAMESPACE
from rayhelm.render.files import Rendered
from rayhelm.render.releases import Release
from rayhelm.standin.cluster import (
    Place,
    gateway_without_cards,
    platform_without_cards,
    service_without_cards,
    tenant_without_cards,
)
from rayhelm.values.gateway import GatewayValues
from rayhelm.values.gateway.network import AllowedClient
from rayhelm.values.gateway.tenants import Tenant
from rayhelm.values.platform import PlatformValues
from rayhelm.values.ray_service import RayServiceValues
from rayhelm.values.ray_service.network import Peer
from rayhelm.values.tenant import TenantValues

__all__ = ["CALLER", "Cast", "cast_of"]

CALLER = "rehearsal"
"""The tenant of the load, who may call every model, and the name of its way in."""
DELETION_DELAY = 60
"""Seconds that a cluster which was replaced lives on at most: nobody waits for ten minutes in a rehearsal."""


@dataclass(frozen=True)
class Cast:
    """Who plays."""

    releases: tuple[Release, ...]
    """In the order of their install."""
    targets: tuple[Target, ...]
    """Models that somebody stands in for; without keys."""
    notes: tuple[str, ...]
    """What is not as in the fleet, a sentence each."""
    services: Mapping[str, RayServiceValues] = field(default_factory=dict)
    """The fleet's own values of each service that plays."""


def cast_of(
    rendered: Rendered,
    place: Place,
    *,
    cluster: str,
    services: Collection[str] = (),
    workers: int = 1,
    doors: int = 1,
) -> Cast:
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
                architectures = {plan.answers_to: plan.architecture for plan in plans}
                small = service_without_cards(values, architectures, place, workers=workers)
                notes += small.notes
                if small.values.serve.applications:
                    own[release.name] = values
                    played.append(replace(release, values=_service(small.values)))
            case GatewayValues():
                played.append(replace(release, values=_gateway(gateway_without_cards(values, place, replicas=doors))))
            case TenantValues():
                played.append(replace(release, values=tenant_without_cards(values)))
            case PlatformValues():
                played.append(replace(release, values=platform_without_cards(values, place)))
    return Cast(tuple(played), tuple(_targets(played, rendered)), tuple(notes), own)


def _service(values: RayServiceValues) -> RayServiceValues:
    """Lets the load in past a gateway that is not there, and replaces clusters quicker."""
    policy = values.network_policy
    delay = min(DELETION_DELAY, values.upgrade.deletion_delay_seconds)
    gateways = policy.gateways or {CALLER: Peer(namespace=NAMESPACE)}
    return values.model_copy(
        update={
            "upgrade": values.upgrade.model_copy(update={"deletion_delay_seconds": delay}),
            "network_policy": policy.model_copy(update={"gateways": gateways}),
        }
    )


def _gateway(values: GatewayValues) -> GatewayValues:
    """Lets the load in, with a key of its own and without limits that it could meet."""
    policy = values.network_policy
    clients = {**policy.allowed_clients, CALLER: AllowedClient(namespace=NAMESPACE)}
    load = Tenant.model_validate(
        {
            "keys": {"secretName": f"gateway-keys-{CALLER}"},
            "models": list(values.models),
            "requestsPerMinute": 1_000_000,
            "concurrency": 10_000,
        }
    )
    return values.model_copy(
        update={
            "network_policy": policy.model_copy(update={"allowed_clients": clients}),
            "tenants": {**values.tenants, CALLER: load},
        }
    )


def _targets(played: list[Release], rendered: Rendered) -> Iterator[Target]:
    tasks = {plan.answers_to: str(plan.task) for plan in rendered.plan.models.values()}
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
                yield Target(name=model, url=_url(release, name, values, doors), model=model, task=tasks[model])


def _url(release: Release, application: str, values: RayServiceValues, doors: list[Release]) -> str:
    if doors:
        return f"http://{doors[0].name}.{doors[0].namespace}.svc.{values.cluster_domain}"
    prefix = values.serve.applications[application].route_prefix or f"/{application}"
    host = f"{values.name_override or release.name}-serve-svc.{release.namespace}.svc.{values.cluster_domain}"
    return f"http://{host}:{values.serve.port}{prefix}"
