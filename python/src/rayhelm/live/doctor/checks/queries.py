"""Every query of a dashboard or an alert can be evaluated, and the metrics that always exist do exist.

Metrics of GPUs are only expected where a node has that vendor's GPUs. Metrics that exist after a first event are not
expected.
"""

from collections import defaultdict
from collections.abc import Iterator

from rayhelm.facts.metrics import exporter_of, load_exporters, load_metrics
from rayhelm.live.cluster.kinds import CERTIFICATES, NODES
from rayhelm.live.cost.client import PrometheusClient, QueryError
from rayhelm.live.doctor.check import Check
from rayhelm.live.doctor.facts import Facts
from rayhelm.live.doctor.finding import Finding, Severity
from rayhelm.live.doctor.queries import NamedQuery, list_queries
from rayhelm.live.doctor.upgrades import describe_upgrade

_MOST = 6
_OPTIONAL = ("cert-manager",)
"""Exporters of programs that are only expected where they have objects."""
_VENDORS = {"dcgm": "nvidia.com/", "amd": "amd.com/", "intel": "gpu.intel.com/"}
"""Exporters of GPU metrics, with the start of the resources of their nodes."""
_PLAIN = ("rules",)
"""Exporters whose series are made of others."""


def _find(facts: Facts) -> Iterator[Finding]:
    assert facts.prometheus
    queries = list_queries()
    yield from _find_refused(facts.prometheus, queries)
    names = set(facts.prometheus.list_values("__name__"))
    missing: dict[str, dict[str, set[str]]] = defaultdict(lambda: defaultdict(set))
    for query in queries:
        for metric in _list_expected(query, facts):
            if not names & {metric, f"{metric}_bucket", f"{metric}_count"}:
                missing[_name_exporter(metric)][metric].add(query.user)
    for exporter, metrics in sorted(missing.items()):
        users = sorted(set().union(*metrics.values()))
        yield Finding(
            object=f"metrics of {load_exporters()[exporter].about}",
            evidence=f"Prometheus has no series of {', '.join(sorted(metrics)[:_MOST])}"
            + (f" and {len(metrics) - _MOST} more" if len(metrics) > _MOST else ""),
            cause=f"Prometheus does not scrape {exporter}, so these show nothing: {', '.join(users[:_MOST])}"
            + (f" and {len(users) - _MOST} more" if len(users) > _MOST else ""),
            fix=_describe_fix(exporter, facts),
        )


def _find_refused(client: PrometheusClient, queries: list[NamedQuery]) -> Iterator[Finding]:
    for text in dict.fromkeys(query.text for query in queries):
        try:
            client.query(text)
        except QueryError as error:
            users = sorted({query.user for query in queries if query.text == text})
            yield Finding(
                object=", ".join(users[:_MOST]),
                evidence=f"{error.what} ({text[:150]})",
                cause="Prometheus cannot evaluate the query with the series that it has, for example because two"
                " targets have"
                " the same labels",
                severity=Severity.warning,
                fix="kubectl get podmonitors,servicemonitors -A    # look for two that select the same pods",
            )


def _list_expected(query: NamedQuery, facts: Facts) -> set[str]:
    """Return the metrics of a query that exist while their exporter runs."""
    from rayhelm.observe.check import metrics_of

    found = set()
    for name in metrics_of(query.text):
        metric, exporter = load_metrics().get(name), _name_exporter(name)
        if metric is None or metric.availability not in ("always", "device") or metric.needs or exporter in _PLAIN:
            continue
        if exporter in _VENDORS and not _has_gpus(_VENDORS[exporter], facts):
            continue
        if exporter in _OPTIONAL and not facts.get_all(CERTIFICATES):
            continue
        found.add(name)
    return found


def _has_gpus(resource: str, facts: Facts) -> bool:
    nodes = facts.get_all(NODES)
    return any(key.startswith(resource) for node in nodes for key in (node.get("status", {}).get("allocatable") or {}))


def _name_exporter(metric: str) -> str:
    exporter = exporter_of(metric)
    return next(name for name, each in load_exporters().items() if each is exporter)


def _describe_fix(exporter: str, facts: Facts) -> str:
    fixes = {
        "kube-state-metrics": "helm install kube-prometheus-stack prometheus-community/kube-prometheus-stack"
        " -n monitoring",
        "dcgm": describe_upgrade(
            "gpu-operator",
            "nvidia/gpu-operator",
            "gpu-operator",
            "dcgmExporter.enabled=true",
            "dcgmExporter.serviceMonitor.enabled=true",
        ),
        "kuberay": describe_upgrade(
            "kuberay-operator",
            "kuberay/kuberay-operator",
            facts.kuberay_namespace,
            "metrics.serviceMonitor.enabled=true",
        ),
    }
    return fixes.get(
        exporter,
        "kubectl get podmonitors -A --show-labels; kubectl get prometheus -A -o yaml | grep -A3 podMonitorSelector"
        "    # the labels have to match: clusters.NAME.prometheus.scrapeLabels",
    )


CHECK = Check(
    title="queries of dashboards and alerts",
    severity=Severity.warning,
    find=_find,
    reads=(NODES, CERTIFICATES),
    needs_prometheus=True,
)
