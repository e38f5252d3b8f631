"""Every query that a ScaledObject scales by returns a series now."""

from collections.abc import Iterator

from rayhelm.live.cluster.kinds import SCALED_OBJECTS
from rayhelm.live.cost.client import QueryError
from rayhelm.live.doctor.check import Check
from rayhelm.live.doctor.facts import Facts, Object
from rayhelm.live.doctor.failures import find_in_each
from rayhelm.live.doctor.finding import Finding, Severity, name_object


def _find(facts: Facts) -> Iterator[Finding]:
    assert facts.prometheus
    return find_in_each(
        facts.get_all(SCALED_OBJECTS, facts.namespaces), lambda scaler: _find_without_series(scaler, facts)
    )


def _find_without_series(scaler: Object, facts: Facts) -> Iterator[Finding]:
    assert facts.prometheus
    for trigger in scaler["spec"].get("triggers") or []:
        query = (trigger.get("metadata") or {}).get("query", "")
        if trigger.get("type") != "prometheus" or not query:
            continue
        try:
            evidence = "" if facts.prometheus.query(query) else f"the query returns no series: {query}"
        except QueryError as error:
            evidence = f"{error.what}: {query}"
        if evidence:
            yield Finding(
                object=name_object(scaler),
                evidence=evidence[:400],
                cause="KEDA reads no value, so it keeps the number of pods or falls back, however large the load is",
                fix=f"rayhelm lint FOLDER    # a metric name that does not exist; or: kubectl describe scaledobject"
                f" {scaler['metadata']['name']} -n {scaler['metadata']['namespace']}",
            )


CHECK = Check(
    title="series of ScaledObjects",
    severity=Severity.critical,
    find=_find,
    reads=(SCALED_OBJECTS,),
    needs_prometheus=True,
)
