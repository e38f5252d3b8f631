"""Values of the chart `platform`: one release per cluster holds what all services share.

`values.schema.json`, `values.yaml` and the README table are generated from these models. Each section is a module, and
a folder of the chart's templates.
"""

from rayhelm.deploy.values.common.labels import ObjectName
from rayhelm.deploy.values.common.release import PodReleaseValues
from rayhelm.deploy.values.platform.classes import PriorityClasses, RuntimeClass
from rayhelm.deploy.values.platform.dashboards import Dashboards
from rayhelm.deploy.values.platform.doctor import Doctor
from rayhelm.deploy.values.platform.gpus import Amd, Intel, Nvidia
from rayhelm.deploy.values.platform.metrics import Metrics
from rayhelm.deploy.values.platform.network import PlatformNetworkPolicy
from rayhelm.deploy.values.platform.policies import Policies
from rayhelm.deploy.values.platform.probe import Probe
from rayhelm.deploy.values.platform.prometheus_rules import PrometheusRules

__all__ = ["PlatformValues"]


class PlatformValues(PodReleaseValues):
    """A cluster: priority and runtime classes, GPU operators, metrics, dashboards, rules, admission policies."""

    priority_classes: PriorityClasses = PriorityClasses()
    """PriorityClasses: which pods are scheduled first, and which they preempt. Kubernetes does not change the value of
    an existing class: use a new name for a new value."""
    runtime_classes: dict[ObjectName, RuntimeClass] = {}
    """RuntimeClasses by name, for clusters that do not have them yet. NVIDIA's GPU operator and k3s create `nvidia`
    themselves."""
    nvidia: Nvidia = Nvidia()
    """NVIDIA GPUs: configuration of its GPU operator."""
    amd: Amd = Amd()
    """AMD GPUs: configuration of its GPU operator."""
    intel: Intel = Intel()
    """Intel GPUs: configuration of its device plugin operator."""
    metrics: Metrics = Metrics()
    """Metrics for autoscaling the gateway and other workloads."""
    dashboards: Dashboards = Dashboards()
    """Grafana dashboards of services, gateways, GPUs and Ray clusters."""
    prometheus_rules: PrometheusRules = PrometheusRules()
    """Alert and recording rules of Prometheus."""
    probe: Probe = Probe()
    """Repeated measurements of the pools."""
    doctor: Doctor = Doctor()
    """Checks of the live cluster, whose findings are metrics."""
    network_policy: PlatformNetworkPolicy = PlatformNetworkPolicy()
    """NetworkPolicies of the doctor, of a managed adapter, and of the probe."""
    policies: Policies = Policies()
    """Admission policies. `rayhelm lint` checks them before objects reach the cluster."""
