"""Prometheus scrapes the pods of the installation: there is a target for each kind of exporter, and none is down."""

from collections.abc import Iterator

from rayhelm.live.doctor.check import Check
from rayhelm.live.doctor.facts import Facts
from rayhelm.live.doctor.finding import Finding, Severity


def _find(facts: Facts) -> Iterator[Finding]:
    assert facts.prometheus
    for target in facts.prometheus.list_targets():
        labels = target.get("labels", {})
        if target["health"] != "down" or labels.get("namespace", "") not in facts.namespaces:
            continue
        yield Finding(
            object=f"target {labels.get('namespace')}/{labels.get('pod') or target.get('scrapeUrl', '')}",
            evidence=f"{target.get('scrapeUrl', '')} is down: {target.get('lastError', '')}"[:300],
            cause="Prometheus cannot read the metrics of this pod: a NetworkPolicy without its namespace, or a pod"
            " that does"
            " not answer",
            fix=f"clusters:\n  {facts.region or 'main'}:\n    prometheus: {{namespace: monitoring}}"
            "    # namespace of the pods of Prometheus",
        )


CHECK = Check(title="targets of Prometheus", severity=Severity.warning, find=_find, needs_prometheus=True)
