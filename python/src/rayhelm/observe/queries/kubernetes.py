"""Kubernetes around the services: RayServices, pods, quotas, volumes, certificates, Secrets, scrape targets."""

from collections.abc import Sequence

from rayhelm.observe.queries import blocks
from rayhelm.observe.queries.labels import CLUSTER, NAMESPACE, SERVICE_LABEL, By
from rayhelm.observe.queries.registry import query
from rayhelm.observe.queries.scope import Scope

__all__ = [
    "certificate_lifetime",
    "certificate_renewal_delay",
    "container_restarts",
    "doctor_age",
    "doctor_findings",
    "doctor_interval",
    "down_targets",
    "failed_jobs",
    "firing_alerts",
    "out_of_memory_containers",
    "pods_not_ready",
    "quota_usage",
    "secret_exists",
    "service_not_ready",
    "service_upgrading",
    "unissued_certificates",
    "unschedulable_pods",
    "volume_usage",
    "waiting_containers",
]


@query(unit="state", idle="value")
def service_not_ready(scope: Scope, by: By = (*NAMESPACE, "name")) -> str:
    """1 for each RayService without endpoints."""
    return blocks.gauge("kuberay_service_condition_ready", scope, 'condition="false"', by=by, operator="max")


@query(unit="state", idle="value")
def service_upgrading(scope: Scope, by: By = (*NAMESPACE, "name")) -> str:
    """1 for each RayService that is being upgraded."""
    return blocks.gauge(
        "kuberay_service_condition_upgrade_in_progress", scope, 'condition="true"', by=by, operator="max"
    )


@query(unit="count", idle="value")
def container_restarts(scope: Scope, window: str = "15m", by: By = (*NAMESPACE, "pod", "container")) -> str:
    """Restarts of containers in the window."""
    return blocks.increase("kube_pod_container_status_restarts_total", scope, window, by=by)


@query(unit="count", idle="no data")
def waiting_containers(scope: Scope, by: By = (*NAMESPACE, "reason")) -> str:
    """Containers that wait, by reason: `CrashLoopBackOff`, `ImagePullBackOff`, `CreateContainerConfigError`."""
    return blocks.gauge("kube_pod_container_status_waiting_reason", scope, by=by)


@query(unit="state", idle="no data")
def out_of_memory_containers(scope: Scope, by: By = (*NAMESPACE, "pod", "container")) -> str:
    """1 for containers that the kernel killed last because they reached their memory limit."""
    name = "kube_pod_container_status_last_terminated_reason"
    return blocks.gauge(name, scope, 'reason="OOMKilled"', by=by, operator="max")


@query(unit="count", idle="value")
def pods_not_ready(scope: Scope, by: By = NAMESPACE) -> str:
    """Pods that are not Ready."""
    return blocks.gauge("kube_pod_status_ready", scope, 'condition="false"', by=by)


@query(unit="count", idle="no data")
def unschedulable_pods(scope: Scope, by: By = NAMESPACE) -> str:
    """Pods that no node can take."""
    return blocks.gauge("kube_pod_status_unschedulable", scope, by=by)


@query(unit="ratio", idle="value")
def quota_usage(scope: Scope, by: By = (*NAMESPACE, "resourcequota", "resource")) -> str:
    """Used share of a ResourceQuota."""
    used = blocks.gauge("kube_resourcequota", scope, 'type="used"', by=by)
    return blocks.ratio(used, blocks.gauge("kube_resourcequota", scope, 'type="hard"', by=by))


@query(unit="ratio", idle="value")
def volume_usage(scope: Scope, by: By = (*NAMESPACE, "persistentvolumeclaim")) -> str:
    """Used share of a volume. No data while no pod uses it."""
    used = blocks.gauge("kubelet_volume_stats_used_bytes", scope, by=by, operator="max")
    return blocks.ratio(used, blocks.gauge("kubelet_volume_stats_capacity_bytes", scope, by=by, operator="max"))


@query(unit="count", idle="value")
def failed_jobs(scope: Scope, by: By = (*NAMESPACE, "job_name")) -> str:
    """Failed pods of Jobs, for example of the download of weights."""
    return blocks.gauge("kube_job_status_failed", scope, by=by)


@query(unit="seconds", idle="value")
def certificate_lifetime(scope: Scope, by: By = (*NAMESPACE, "name")) -> str:
    """Time until a certificate expires. No data for one that was never issued: cert-manager then reports 0."""
    end = blocks.gauge("certmanager_certificate_expiration_timestamp_seconds", scope, by=by, operator="min")
    return f"({end} > 0) - time()"


@query(unit="state", idle="no data")
def unissued_certificates(scope: Scope, by: By = (*NAMESPACE, "name")) -> str:
    """Certificates that cert-manager has never issued."""
    end = blocks.gauge("certmanager_certificate_expiration_timestamp_seconds", scope, by=by, operator="max")
    return f"{end} == 0"


@query(unit="seconds", idle="value")
def certificate_renewal_delay(scope: Scope, by: By = (*NAMESPACE, "name")) -> str:
    """Time since cert-manager should have renewed a certificate; below 0 before that time."""
    due = blocks.gauge("certmanager_certificate_renewal_timestamp_seconds", scope, by=by, operator="min")
    return f"time() - ({due})"


@query(unit="count", idle="no data")
def secret_exists(scope: Scope, by: By = (*NAMESPACE, "secret")) -> str:
    """1 for each Secret. kube-state-metrics has to watch Secrets."""
    return blocks.gauge("kube_secret_info", scope, by=by, operator="max")


@query(unit="count", idle="no data")
def doctor_findings(scope: Scope, by: By = ("cluster", "check", "object")) -> str:
    """1 for each critical finding of rayhelm doctor."""
    return blocks.gauge("rayhelm_doctor_finding", scope, 'severity="critical"', by=by, operator="max")


@query(unit="seconds", idle="value")
def doctor_age(scope: Scope, by: By = (*CLUSTER, "job")) -> str:
    """Time since rayhelm doctor last reached the cluster; if it never did, since it started."""
    return f"time() - {blocks.gauge('rayhelm_doctor_last_run_timestamp_seconds', scope, by=by, operator='max')}"


@query(unit="seconds", idle="value")
def doctor_interval(scope: Scope, by: By = (*CLUSTER, "job")) -> str:
    """Time between two runs of rayhelm doctor."""
    return blocks.gauge("rayhelm_doctor_interval_seconds", scope, by=by, operator="max")


@query(unit="count", idle="no data")
def firing_alerts(
    scope: Scope, names: Sequence[str] = (), by: By = (*NAMESPACE, "alertname", "severity", SERVICE_LABEL)
) -> str:
    """Firing alerts, of all names or of those given."""
    matchers = ['alertstate="firing"', *([f'alertname=~"{"|".join(names)}"'] if names else [])]
    return blocks.aggregate("count", blocks.vector("ALERTS", scope, *matchers), by)


@query(unit="count", idle="no data")
def down_targets(scope: Scope, by: By = (*NAMESPACE, "job")) -> str:
    """Targets whose last scrape failed."""
    return blocks.aggregate("count", f"{blocks.vector('up', scope)} == 0", by)
