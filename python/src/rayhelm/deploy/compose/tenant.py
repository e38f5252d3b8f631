"""Build the typed values of the chart `tenant` from a plan: one release for each owner of services and each of its
clusters. Pure."""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import partial
from math import ceil

from rayhelm.deploy.compose.gateway import RELEASE
from rayhelm.deploy.compose.origin import Origins
from rayhelm.deploy.compose.overrides import apply_overrides
from rayhelm.deploy.compose.ray_service import GATEWAY_PODS
from rayhelm.deploy.compose.worker_groups import get_gpu_resource
from rayhelm.deploy.values.common.network import Peer, PrometheusEgress
from rayhelm.deploy.values.gateway import GatewayValues
from rayhelm.deploy.values.ray_service import RayServiceValues
from rayhelm.deploy.values.ray_service.network import RedisEgress, TracingEgress
from rayhelm.deploy.values.tenant import TenantValues
from rayhelm.deploy.values.tenant.access import NamespaceAccess, RoleSubjects
from rayhelm.deploy.values.tenant.namespace import TenantNamespace
from rayhelm.deploy.values.tenant.network import AllowedPeers, TenantEgress, TenantNetworkPolicy, TenantRedis
from rayhelm.deploy.values.tenant.quota import GPU_RESOURCES, GpuQuota, ObjectQuota, PodQuota, Quota, Storage
from rayhelm.errors import run_all
from rayhelm.fleet.tenants import Subjects as Declared
from rayhelm.fleet.tenants import Tenant
from rayhelm.planner.plan import Plan, ServicePlan

__all__ = ["build_tenant_values"]

PODS_BESIDE_WORKERS = 4
"""Pods of a service in addition to its workers: the head, two download Jobs, the pod of `helm test`."""
PER_SERVICE = {
    "ray_services": 1,
    "services": 8,
    "jobs": 4,
    "config_maps": 4,
    "secrets": 16,
    "persistent_volume_claims": 2,
    "service_accounts": 4,
    "network_policies": 10,
    "pod_disruption_budgets": 8,
    "pod_monitors": 2,
    "scrape_configs": 2,
}
"""Largest number of objects of a `ray-service` release, including those of KubeRay and Helm, with a margin."""


def build_tenant_values(
    plan: Plan, values: Mapping[str, RayServiceValues], gateways: Mapping[str, GatewayValues]
) -> dict[tuple[str, str], TenantValues]:
    """Build the values by cluster and tenant. `values` are those of the services, by name: the quotas count their pods.
    `gateways` are those of the gateways, by cluster: tenants connect to their ports. Raises FleetError for overrides
    that are refused."""
    owned: dict[tuple[str, str], list[str]] = {}
    for tenant in plan.declared.tenants:
        for service in plan.declared.services_of(tenant):
            owned.setdefault((plan.services[service].cluster, tenant), []).append(service)

    def build(cluster: str, tenant: str) -> TenantValues:
        built = _build_values(tenant, cluster, owned[cluster, tenant], plan, values, gateways)
        return apply_overrides(built, Origins("tenant", tenant, cluster, plan))

    return run_all({key: partial(build, *key) for key in owned})


def _build_values(
    name: str,
    cluster: str,
    services: Sequence[str],
    plan: Plan,
    values: Mapping[str, RayServiceValues],
    gateways: Mapping[str, GatewayValues],
) -> TenantValues:
    tenant = plan.declared.tenants[name]
    plans, releases = [plan.services[service] for service in services], [values[service] for service in services]
    used = sum(plan.services[service].gpus for service in plan.declared.services_of(name))
    free = None if tenant.gpus is None else max(0.0, tenant.gpus - used)
    return TenantValues(
        namespace=TenantNamespace(name=tenant.namespace or ""),
        access=_build_access(tenant),
        quota=_build_quota(plans, releases, free, _list_devices(cluster, plan), _map_parts(plan)),
        network_policy=TenantNetworkPolicy(
            egress=_build_egress(tenant.namespace or name, cluster, plan, values, gateways),
            redis=_build_redis(releases),
            allowed=_build_allowed_peers(releases),
        ),
    )


def _build_egress(
    namespace: str,
    cluster: str,
    plan: Plan,
    values: Mapping[str, RayServiceValues],
    gateways: Mapping[str, GatewayValues],
) -> dict[str, TenantEgress]:
    """Allow egress to the gateway and to services with aliases that allow the namespace as a client."""
    found: dict[str, TenantEgress] = {}
    if cluster in plan.gateways and namespace in plan.declared.clusters[cluster].gateway.allowed_clients:
        gateway = Peer(namespace=plan.gateways[cluster].namespace, pod_labels=GATEWAY_PODS)
        found[RELEASE] = TenantEgress(peer=gateway, ports=[gateways[cluster].listen.port])
    for service, planned in plan.services.items():
        declared = plan.declared.services.get(service)
        if planned.cluster == cluster and declared and declared.aliases and declared.aliases.namespace == namespace:
            workers = {"rayhelm.dev/service": service, "rayhelm.dev/role": "worker"}
            peer = Peer(namespace=planned.namespace, pod_labels=workers)
            found[service] = TenantEgress(peer=peer, ports=[values[service].serve.port])
    return found


def _build_redis(releases: Sequence[RayServiceValues]) -> TenantRedis:
    """Return the pods of the Redis that these releases use, if the fleet file has their labels."""
    peers = [release.network_policy.redis for release in releases if release.network_policy.redis.peer.pod_labels]
    return TenantRedis(peer=peers[0].peer, port=peers[0].port) if peers else TenantRedis()


def _build_allowed_peers(releases: Sequence[RayServiceValues]) -> AllowedPeers:
    """Return the peers of the NetworkPolicies of these releases, which the tenant's pipeline installs."""
    flows = [flow for release in releases for flow in _list_flows(release)]
    namespaces = {f"{peer.namespace}:{port}" for peer, _, ports in flows for port in ports if peer.namespace}
    cidrs = {f"{cidr}:{port}" for _, cidrs, ports in flows for cidr in cidrs for port in ports}
    return AllowedPeers(namespaces=sorted(namespaces), cidrs=sorted(cidrs))


def _list_flows(release: RayServiceValues) -> Iterator[tuple[Peer, Sequence[str], Sequence[int]]]:
    """Yield peers, addresses and ports of the connections that a release allows."""
    policy = release.network_policy
    yield policy.operator, [], [8265]
    yield policy.prometheus, [], [8080, 44217, 44227]
    yield policy.dns.peer, policy.dns.cidrs, [53]
    yield Peer(), policy.api_server.cidrs, policy.api_server.ports
    for gateway in policy.allowed_gateways.values():
        yield gateway, [], [release.serve.port]
    targets: tuple[RedisEgress | PrometheusEgress | TracingEgress, ...] = (
        policy.redis,
        policy.prometheus_api,
        policy.tracing,
    )
    for target in targets:
        yield target.peer, target.cidrs, [target.port]
    yield policy.bucket.peer, [], policy.bucket.ports
    yield policy.hub.peer, [] if release.weights.offline else policy.hub.cidrs, policy.hub.ports
    for egress in policy.egress.values():
        yield Peer(), egress.cidrs, egress.ports


def _list_devices(cluster: str, plan: Plan) -> list[str]:
    """Return the extended resources of the cluster's pools. The quota denies those that the tenant does not use."""
    return [resource for pool in plan.pools.values() if pool.cluster == cluster for resource in pool.gpu_resources]


def _map_parts(plan: Plan) -> dict[str, float]:
    """Map each extended resource that is a part of a GPU to that part."""
    parts = [plan.facts.gpu(model.gpu) for model in plan.models.values() if "/" in model.gpu]
    return {gpu.resource: gpu.part for gpu in parts}


def _build_quota(
    plans: Sequence[ServicePlan],
    releases: Sequence[RayServiceValues],
    free: float | None,
    devices: Iterable[str],
    parts: Mapping[str, float],
) -> Quota:
    """Build the quota. `free`: GPUs that the tenant may use beyond the plan; None if it has no limit."""
    gpus = _build_gpu_quotas(plans, releases, free, parts)
    return Quota(
        gpus=gpus,
        extended_resources=_count_rdma(plans, releases),
        gpu_resources=list(dict.fromkeys([*GPU_RESOURCES, *devices, *gpus])),
        pods=_build_pod_quota(plans, releases),
        objects=_build_object_quota(len(plans)),
        storage=_build_storage(releases),
    )


def _count_rdma(plans: Sequence[ServicePlan], releases: Sequence[RayServiceValues]) -> dict[str, int]:
    """Count RDMA devices by extended resource, twice where an upgrade starts a second Ray cluster."""
    total: Counter[str] = Counter()
    for plan, release in zip(plans, releases, strict=True):
        for group in release.worker_groups.values():
            if group.rdma.resource:
                clusters = 2 if plan.upgrade == "NewCluster" else 1
                total[group.rdma.resource] += clusters * group.max_replicas * group.num_of_hosts * group.rdma.count
    return dict(total)


def _build_object_quota(services: int) -> ObjectQuota:
    defaults = {kind: ObjectQuota.model_fields[kind].default for kind in PER_SERVICE}
    return ObjectQuota(**{kind: max(count * services, defaults[kind]) for kind, count in PER_SERVICE.items()})


def _build_gpu_quotas(
    plans: Sequence[ServicePlan], releases: Sequence[RayServiceValues], free: float | None, parts: Mapping[str, float]
) -> dict[str, GpuQuota]:
    """Build the GPU quota by extended resource.

    The baseline is the plan, or more if the fleet file pins a larger maximum of replicas. The upgrade surge is the GPUs
    of all services with `NewCluster`, because all of them may be upgraded at the same time."""
    planned = _sum(plan.gpu_resources for plan in plans)
    upgrade_surge = _sum(plan.gpu_resources for plan in plans if plan.upgrade == "NewCluster")
    most = _sum(
        {get_gpu_resource(group): group.max_replicas * group.gpu.count}
        for release in releases
        for group in release.worker_groups.values()
    )
    found = {}
    for resource, count in planned.items():
        more = max(0, most[resource] - count)
        more = more if free is None else min(more, int(free / parts.get(resource, 1)))
        found[resource] = GpuQuota(
            planned=count, baseline=count + more if more else None, upgrade_surge=upgrade_surge[resource]
        )
    return found


def _sum(counts: Iterable[Mapping[str, int]]) -> Counter[str]:
    total: Counter[str] = Counter()
    for count in counts:
        total.update(count)
    return total


def _build_pod_quota(plans: Sequence[ServicePlan], releases: Sequence[RayServiceValues]) -> PodQuota:
    workers = [sum(group.max_replicas for group in release.worker_groups.values()) for release in releases]
    baseline = sum(workers) + PODS_BESIDE_WORKERS * len(plans)
    upgrade_surge = sum(count + 1 for count, plan in zip(workers, plans, strict=True) if plan.upgrade == "NewCluster")
    usual = PodQuota()
    return PodQuota(baseline=max(baseline, usual.baseline), upgrade_surge=max(upgrade_surge, usual.upgrade_surge))


def _build_storage(releases: Sequence[RayServiceValues]) -> Storage:
    """Return the quota for the volumes of weights."""
    claims = [
        release.weights.claim
        for release in releases
        if release.weights.enabled and not release.weights.claim.existing_claim
    ]
    needed = sum(int(claim.size.removesuffix("Gi")) for claim in claims)
    usual = int(str(Storage().size).removesuffix("Ti"))
    return Storage(size=f"{max(ceil(needed / 1024), usual)}Ti")


def _build_access(tenant: Tenant) -> NamespaceAccess:
    return NamespaceAccess(
        viewers=_build_subjects(tenant.access.viewers),
        editors=_build_subjects(tenant.access.editors),
        deployers=_build_subjects(tenant.access.deployers),
    )


def _build_subjects(declared: Declared) -> RoleSubjects:
    return RoleSubjects(
        groups=list(declared.groups), users=list(declared.users), service_accounts=list(declared.service_accounts)
    )
