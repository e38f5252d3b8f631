"""Change the values of a fleet's releases so that nodes without GPUs can run them (CPU stand-ins).

The charts, their pods, policies and rules stay the same. The models are the tiny ones of `model.py`, which are in the
image; the pods are as small as those models allow. Pure.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from rayhelm.deploy.values.gateway import GatewayValues
from rayhelm.deploy.values.gateway.operations import GatewayAutoscaling, GatewayLimits, GatewayResources
from rayhelm.deploy.values.platform import PlatformValues
from rayhelm.deploy.values.platform.policies import Policies
from rayhelm.deploy.values.ray_service import RayServiceValues
from rayhelm.deploy.values.ray_service.cluster import KubeRay, RayAutoscaler
from rayhelm.deploy.values.ray_service.groups import HeadPod, WorkerGroup
from rayhelm.deploy.values.ray_service.image import RayImage
from rayhelm.deploy.values.ray_service.resources import build_resources
from rayhelm.deploy.values.ray_service.serve import CustomApplication, IngressDeployment, ServeApplication
from rayhelm.deploy.values.tenant import TenantValues
from rayhelm.run.standin.model import StandIn, make_stand_in

__all__ = ["GROUP", "MODELS", "StandInCluster", "adapt_gateway", "adapt_platform", "adapt_service",
           "adapt_tenant"]  # fmt: skip

MODELS = Path("/models")
"""Folder of the tiny models in the image."""
GROUP = "stand-in"
"""The only worker group: a worker without a replica of Serve is never ready, so there is not one per GPU."""
SLOT = "stand-in-slot"
"""Ray resource of a worker: one per model that fits on it."""

_ENVIRONMENT: Mapping[str, str] = {
    # Ray starts its workers at niceness 15 otherwise.
    "RAY_worker_niceness": "0",
    # Serve restarts a proxy that is not ready after 5 s or does not answer for 10 s: too short on a busy computer.
    "RAY_SERVE_PROXY_READY_CHECK_TIMEOUT_S": "60",
    "RAY_SERVE_PROXY_HEALTH_CHECK_TIMEOUT_S": "30",
    # The sampler's torch.compile adds 31 s to the first request.
    "TORCHDYNAMO_DISABLE": "1",
    "VLLM_CPU_OMP_THREADS_BIND": "nobind",
    "OMP_NUM_THREADS": "1",
}
_CPU_REQUEST = "200m"
"""CPU request of the head and of a worker: two clusters, during an upgrade, have to fit on two cores."""
_BASE_GIB = 3
"""Memory of a worker before its first engine: Ray, the ingress of an application, an idle process, /dev/shm."""
_ENGINE_GIB = 3
"""Memory of a tiny model's processes; measured: 3.1 GiB in two."""
_CUSTOM_GIB = 2
"""Memory of a replica of a custom application; measured: 0.9 GiB with the tiny SpeechT5, without Ray's worker."""


@dataclass(frozen=True)
class StandInCluster:
    """A cluster without GPUs, as the values name it."""

    kuberay: str
    """Version of its operator."""
    image: RayImage
    """Image with Ray, vLLM for CPUs, rayhelm and the tiny models (`ci/images/build` makes one)."""
    haproxy: str = ""
    """Image of HAProxy, `repository:tag`; empty for the chart's own."""
    api_servers: tuple[str, ...] = ()
    """Addresses of the Kubernetes API, as CIDRs."""
    operator_namespace: str = ""
    """Namespace of its operator; empty for the one of the values."""


def adapt_service(
    values: RayServiceValues, architectures: Mapping[str, str], cluster: StandInCluster, *, workers: int = 1
) -> StandIn:
    """Return values of chart `ray-service`; `architectures` as for `make_stand_in`.

    Each of the `workers` runs a replica of every model, and each application has as many ingress replicas.
    """
    small = make_stand_in(values, architectures, MODELS)
    models = [model for application in small.values.serve.applications.values() for model in application.models]
    applications = {
        name: _set_replicas(application, workers) for name, application in small.values.serve.applications.items()
    }
    custom = {
        name: _set_custom_replicas(application, workers)
        for name, application in small.values.serve.custom_applications.items()
    }
    serve = {"applications": applications, "custom_applications": custom}
    policy = values.network_policy
    api = policy.api_server.model_copy(update={"cidrs": list(cluster.api_servers) or policy.api_server.cidrs})
    namespace = cluster.operator_namespace or policy.operator.namespace
    operator = policy.operator.model_copy(update={"namespace": namespace})
    changed = small.values.model_copy(
        update={
            "kuberay": KubeRay.model_validate({"version": cluster.kuberay}),
            "image": cluster.image,
            "head": _build_head(values.head),
            "serve": small.values.serve.model_copy(update=serve),
            "worker_groups": {GROUP: _build_group(values, models=len(models), custom=len(custom), workers=workers)},
            "autoscaler": _adapt_autoscaler(values.autoscaler),
            "network_policy": policy.model_copy(update={"api_server": api, "operator": operator}),
        }
    )
    return StandIn(changed, small.families, small.notes)


def adapt_gateway(values: GatewayValues, cluster: StandInCluster, *, replicas: int = 1) -> GatewayValues:
    """Return values of chart `gateway` with the same routes, keys and limits in small pods."""
    image = values.image
    if cluster.haproxy:
        repository, _, tag = cluster.haproxy.rpartition(":")
        image = image.model_copy(update={"repository": repository, "tag": tag, "digest": ""})
    return values.model_copy(
        update={
            "image": image,
            "replicas": replicas,
            "autoscaling": GatewayAutoscaling(kind="None"),
            "limits": values.limits.model_copy(update={"connections": 100}),
            "resources": GatewayResources(limits=GatewayLimits(cpu="200m", memory="256Mi")),
            "node_selector": {},
            "tolerations": [],
            "node_spread": "Preferred",
        }
    )


def adapt_tenant(values: TenantValues, cluster: StandInCluster) -> TenantValues:
    """Return values of chart `tenant` without GPU quotas; quotas of pods, objects and storage stay as they are."""
    quota = values.quota.model_copy(update={"gpus": {}, "priority_classes": {}})
    policy = values.network_policy
    operator = [f"{cluster.operator_namespace}:8265"] if cluster.operator_namespace else []
    namespaces = list(dict.fromkeys([*policy.allowed.namespaces, *operator]))
    allowed = policy.allowed.model_copy(update={"namespaces": namespaces})
    return values.model_copy(update={"quota": quota, "network_policy": policy.model_copy(update={"allowed": allowed})})


def adapt_platform(values: PlatformValues, cluster: StandInCluster) -> PlatformValues:
    """Return values of chart `platform` without GPUs: policies admit the image."""
    policies = values.policies.model_dump(by_alias=True)
    policies["imageSource"]["registries"][cluster.image.repository] = "replaces Ray's image"
    default = PlatformValues()
    off = {name: getattr(default, name) for name in ("nvidia", "amd", "intel", "runtime_classes")}
    return values.model_copy(update={**off, "policies": Policies.model_validate(policies)})


def _build_head(head: HeadPod) -> HeadPod:
    return HeadPod(
        resources=build_resources(cpu="2", cpu_request=_CPU_REQUEST, memory="3Gi"),
        shm_size="512Mi",
        priority_class_name=head.priority_class_name,
        termination_grace_period_seconds=head.termination_grace_period_seconds,
        min_available=head.min_available,
        env=dict(_ENVIRONMENT),
    )


def _set_replicas(application: ServeApplication, count: int) -> ServeApplication:
    """Set `count` replicas of everything. Each model replica requests a slot, so Ray puts one on each worker."""
    models = {
        name: model.model_copy(
            update={
                "resources": {SLOT: 1.0},
                "autoscaling": model.autoscaling.model_copy(update={"min_replicas": count, "max_replicas": count}),
            }
        )
        for name, model in application.models.items()
    }
    return application.model_copy(
        update={"models": models, "ingress": IngressDeployment(min_replicas=count, max_replicas=count)},
    )


def _set_custom_replicas(application: CustomApplication, count: int) -> CustomApplication:
    """Set `count` replicas. They need a slot of no worker, so Ray may put several on one."""
    deployments = {
        name: deployment.model_copy(update={"min_replicas": count, "max_replicas": count})
        for name, deployment in application.deployments.items()
    }
    return application.model_copy(update={"deployments": deployments})


def _build_group(values: RayServiceValues, *, models: int, custom: int, workers: int) -> WorkerGroup:
    """Return the size of a worker for all models. Two CPUs per model, one per application and one per replica of a
    custom application are Ray's logical CPUs only."""
    groups = list(values.worker_groups.values())
    ingresses = max(1, len(values.serve.applications))
    return WorkerGroup(
        gpu=groups[0].gpu.model_copy(update={"count": 0, "product": "", "resource": ""}),
        min_replicas=workers,
        max_replicas=workers,
        resources=build_resources(
            cpu=str(max(4, 2 * models + (ingresses + custom) * workers)),
            cpu_request=_CPU_REQUEST,
            memory=f"{_BASE_GIB + _ENGINE_GIB * models + _CUSTOM_GIB * custom * workers}Gi",
        ),
        ray_resources={SLOT: models},
        shm_size="1Gi",
        priority_class_name=groups[0].priority_class_name,
        termination_grace_period_seconds=max(group.termination_grace_period_seconds for group in groups),
        min_available=min(group.min_available for group in groups),
        env=dict(_ENVIRONMENT),
    )


def _adapt_autoscaler(autoscaler: RayAutoscaler) -> RayAutoscaler:
    resources = build_resources(cpu="1", cpu_request="50m", memory="768Mi")
    return autoscaler.model_copy(update={"resources": resources})
