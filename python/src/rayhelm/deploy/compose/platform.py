"""Build the typed values of the chart `platform` from a plan, one release for each cluster. Pure."""

from collections.abc import Iterator, Mapping
from functools import partial

from rayhelm.deploy.compose.metrics import metrics_of_plan
from rayhelm.deploy.compose.origin import Origins
from rayhelm.deploy.compose.overrides import apply_overrides
from rayhelm.deploy.compose.policies import build_policies
from rayhelm.deploy.compose.prometheus_rules import build_prometheus_rules
from rayhelm.deploy.values.common.network import ApiServerEgress, Peer
from rayhelm.deploy.values.platform import PlatformValues
from rayhelm.deploy.values.platform.gpus import ClusterPolicy, Intel, IntelPool, Nvidia, NvidiaPool
from rayhelm.deploy.values.platform.network import PlatformNetworkPolicy
from rayhelm.deploy.values.platform.probe import Probe, ProbeImage
from rayhelm.deploy.values.ray_service import RayServiceValues
from rayhelm.errors import Fix, FleetError, Problem, run_all
from rayhelm.fleet.pools import GpuOperator, Pool
from rayhelm.fleet.problems import problem_at
from rayhelm.fleet.worker_images import name_worker_image
from rayhelm.planner.plan import Plan, PoolUse

__all__ = ["NAMESPACE", "RELEASE", "build_platform_network_policy", "build_platform_values"]

RELEASE = "platform"
"""Release of each cluster's platform."""
NAMESPACE = "rayhelm-system"
"""Namespace of that release. Objects that operators read are in the namespaces of the operators."""


def build_platform_values(plan: Plan, services: Mapping[str, RayServiceValues]) -> dict[str, PlatformValues]:
    """Build values of each cluster that has a pool; `services` are values by name. Raise FleetError if the nodes of a
    shared pool have no labels that select them, or if an override is refused."""
    clusters = [name for name in plan.declared.clusters if name in {pool.cluster for pool in plan.pools.values()}]

    def build(cluster: str) -> PlatformValues:
        values = _build_values(cluster, plan, services)
        return apply_overrides(values, Origins("platform", RELEASE, cluster, plan))

    if problems := list(_find_unlabeled_pools(plan)):
        raise FleetError(problems)
    return run_all({cluster: partial(build, cluster) for cluster in clusters})


def _find_unlabeled_pools(plan: Plan) -> Iterator[Problem]:
    """Yield a problem for each shared pool without labels that select its nodes."""
    for name, use in plan.pools.items():
        pool = plan.declared.pools[name]
        if use.sharing and not pool.gpu_resource and not pool.node_selector:
            message = "the GPU operator configures the nodes of a shared pool by a label, and `nodeSelector` names none"
            fix = Fix(
                "nodeSelector", {"example.com/pool": name}, "a label of its nodes: kubectl get nodes --show-labels"
            )
            yield problem_at(("pools", name), message, fix)


def _build_values(cluster: str, plan: Plan, services: Mapping[str, RayServiceValues]) -> PlatformValues:
    operator = plan.declared.clusters[cluster].gpu_operator
    shared = dict(_list_shared_pools(cluster, plan))
    by_vendor = {name: plan.declared.facts.gpu(use.gpu).vendor for name, (use, _) in shared.items()}
    nvidia = {name: _build_nvidia_pool(*pool) for name, pool in shared.items() if by_vendor[name] == "nvidia"}
    intel = {name: _build_intel_pool(*pool) for name, pool in shared.items() if by_vendor[name] == "intel"}
    return PlatformValues(
        nvidia=_build_operator(operator or GpuOperator(), nvidia) if operator or nvidia else Nvidia(),
        intel=Intel(enabled=bool(intel), pools=intel),
        policies=build_policies(cluster, plan, services),
        metrics=metrics_of_plan(cluster, plan),
        prometheus_rules=build_prometheus_rules(cluster, plan, services),
        probe=_build_probe(cluster, plan),
        network_policy=build_platform_network_policy(cluster, plan),
    )


def build_platform_network_policy(cluster: str, plan: Plan) -> PlatformNetworkPolicy:
    """Build the peers of the doctor, of a managed adapter and of the probe; each is off unless values turn it on."""
    section, usual = plan.declared.clusters[cluster], PlatformNetworkPolicy()
    peer = Peer(namespace=section.prometheus.namespace) if section.prometheus else usual.prometheus
    return PlatformNetworkPolicy(
        api_server=ApiServerEgress(cidrs=list(section.api_server.cidrs)),
        prometheus=peer,
        prometheus_api=usual.prometheus_api.model_copy(update={"peer": peer}),
    )


def _build_probe(cluster: str, plan: Plan) -> Probe:
    """Build the CronJob of repeated measurements, with the fleet file as it is but for the name of the last ones."""
    import yaml

    section = plan.declared.clusters[cluster]
    if not section.probe:
        return Probe()
    image, pools = section.probe.image, plan.declared.pools.items()
    return Probe(
        enabled=True,
        schedule=section.probe.schedule,
        image=ProbeImage(repository=image.repository, tag=image.tag or "", digest=image.digest or ""),
        fleet=yaml.safe_dump({key: value for key, value in plan.source.data.items() if key != "measurements"}),
        cluster=cluster if len(plan.declared.clusters) > 1 else "",
        cpu=section.probe.cpu,
        images=sorted({name_worker_image(plan.declared, name) for name, pool in pools if pool.cluster == cluster}),
    )


def _build_operator(operator: GpuOperator, pools: dict[str, NvidiaPool]) -> Nvidia:
    policy = ClusterPolicy(manage=operator.cluster_policy)
    return Nvidia(enabled=True, namespace=operator.namespace, pools=pools, cluster_policy=policy)


def _list_shared_pools(cluster: str, plan: Plan) -> Iterator[tuple[str, tuple[PoolUse, Pool]]]:
    """List the pools whose GPUs the operator divides; the labels of each select its nodes."""
    for name, use in plan.pools.items():
        pool = plan.declared.pools[name]
        if use.cluster != cluster or not use.sharing or pool.gpu_resource:
            continue
        yield name, (use, pool)


def _build_nvidia_pool(use: PoolUse, pool: Pool) -> NvidiaPool:
    gpu = use.gpu if use.mig else ""
    return NvidiaPool(node_selector=pool.node_selector, gpu=gpu, mig=use.mig, replicas=use.time_slices)


def _build_intel_pool(use: PoolUse, pool: Pool) -> IntelPool:
    return IntelPool(node_selector=pool.node_selector, shared_dev_num=use.time_slices)
