"""Overrides of each release: which parts of the fleet file it has, and the names for the advice."""

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING

from rayhelm.deploy.compose.overrides import Placed, apply_overrides
from rayhelm.fleet.fleet import Fleet
from rayhelm.fleet.overrides import list_overrides
from rayhelm.planner.plan import Plan
from rayhelm.planner.workers.kinds import is_group_of_host, name_pod_kinds

if TYPE_CHECKING:
    from rayhelm.deploy.values.argocd import ArgocdValues
    from rayhelm.deploy.values.gateway import GatewayValues
    from rayhelm.deploy.values.platform import PlatformValues
    from rayhelm.deploy.values.ray_service import RayServiceValues
    from rayhelm.deploy.values.tenant import TenantValues

__all__ = [
    "apply_overrides_of_argocd",
    "apply_overrides_of_gateway",
    "apply_overrides_of_platform",
    "apply_overrides_of_service",
    "apply_overrides_of_tenant",
    "list_placed",
]

Key = tuple[str, ...]


def apply_overrides_of_service(
    values: "RayServiceValues", service: str, plan: Plan, fleet: Fleet
) -> "RayServiceValues":
    """Merge the `values` of the pools of a service, then its own. Raises FleetError."""
    models = plan.of_service(service)
    pools = {name: kind.pool for kind, name in name_pod_kinds(models, fleet).items()}

    def name(key: Key) -> Mapping[str, str]:
        model = next((each.model for each in models if {each.served_as, each.application} & set(key)), models[0].model)
        in_file = fleet.part_of(model) or model
        names = {"service": service, "cluster": plan.services[service].cluster, "model": in_file}
        return names | ({"pool": pools[key[1]]} if len(key) > 1 and key[1] in pools else {})

    placed = list_placed("ray-service", service, pools, fleet)
    return apply_overrides(values, placed, "ray-service", name)


def apply_overrides_of_gateway(values: "GatewayValues", cluster: str, fleet: Fleet) -> "GatewayValues":
    """Merge the `values` of the gateway of a cluster. Raises FleetError."""

    def name(key: Key) -> Mapping[str, str]:
        entry = {"tenants": "tenant", "models": "model"}.get(key[0])
        return {"cluster": cluster} | ({entry: key[1]} if entry and len(key) > 1 else {})

    return apply_overrides(values, list_placed("gateway", cluster, {}, fleet), "gateway", name)


def apply_overrides_of_platform(values: "PlatformValues", cluster: str, fleet: Fleet) -> "PlatformValues":
    """Merge the `values` of a cluster. Raises FleetError."""

    def name(key: Key) -> Mapping[str, str]:
        is_pool = key[1:2] == ("pools",) and len(key) > 2
        return {"cluster": cluster} | ({"pool": key[2]} if is_pool else {})

    return apply_overrides(values, list_placed("platform", cluster, {}, fleet), "platform", name)


def apply_overrides_of_tenant(values: "TenantValues", tenant: str, cluster: str, fleet: Fleet) -> "TenantValues":
    """Merge the `values` of a tenant, which all its releases get. Raises FleetError."""
    names = {"tenant": tenant, "cluster": cluster}
    return apply_overrides(values, list_placed("tenant", tenant, {}, fleet), "tenant", lambda _: names)


def apply_overrides_of_argocd(values: "ArgocdValues", fleet: Fleet) -> "ArgocdValues":
    """Merge the `values` of the section `gitops`. Raises FleetError."""
    placed = list_placed("argocd", fleet.fleet, {}, fleet)
    return apply_overrides(values, placed, "argocd", lambda _: {})


def list_placed(chart: str, name: str, pools: Mapping[str, str], fleet: Fleet) -> tuple[Placed, ...]:
    """Return the overrides of a release. `name`: its service, tenant or cluster; `pools`: the pool of each worker
    group."""
    return tuple(_list_placed(chart, name, pools, fleet))


def _list_placed(chart: str, name: str, pools: Mapping[str, str], fleet: Fleet) -> Iterator[Placed]:
    for override in list_overrides(fleet):
        if override.chart != chart or not override.values:
            continue
        if override.path[0] == "pools":
            groups = [group for group, pool in pools.items() if pool == override.name]
            if override.path[2] == "hosts":
                index = int(override.path[3])
                groups = [group for group in groups if is_group_of_host(group, override.name, index, fleet)]
            yield from (Placed(override, ("workerGroups", group)) for group in groups)
        elif override.name == name:
            yield Placed(override)
