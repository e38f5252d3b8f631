"""Prometheus keeps the buckets of histograms, which dashboards, alerts and autoscalers query."""

from collections.abc import Iterator, Mapping
from typing import Any

from rayhelm.live.doctor.check import Check
from rayhelm.live.doctor.facts import Facts
from rayhelm.live.doctor.finding import Finding, Severity

_CONVERTS = "convert_classic_histograms_to_nhcb"
_KEEPS = "always_scrape_classic_histograms"


def _find(facts: Facts) -> Iterator[Finding]:
    assert facts.prometheus
    targets = facts.prometheus.list_targets()
    used = {target.get("scrapePool") for target in targets if _namespace_of(target) in facts.namespaces}
    config = facts.prometheus.read_config()
    shared = config.get("global") or {}
    for job in config.get("scrape_configs") or []:
        if job.get("job_name") not in used or not _drops_buckets(job, shared):
            continue
        yield Finding(
            object=f"scrape job {job['job_name']}",
            evidence=f"{_CONVERTS} is true and {_KEEPS} is false",
            cause="Prometheus stores the histograms of Ray and vLLM without `_bucket` and `_count`: panels, objectives"
            " and scaling by latency have no data",
            fix=f"scrape_configs:\n  - job_name: {job['job_name']}\n    {_KEEPS}: true"
            "    # with the Prometheus Operator: spec.scrapeClassicHistograms: true of the Prometheus or the monitor",
        )


def _drops_buckets(job: Mapping[str, Any], shared: Mapping[str, Any]) -> bool:
    def is_set(key: str) -> bool:
        found = job.get(key)
        return bool(shared.get(key) if found is None else found)

    return is_set(_CONVERTS) and not is_set(_KEEPS)


def _namespace_of(target: Mapping[str, Any]) -> str:
    return str(target.get("labels", {}).get("namespace", ""))


CHECK = Check(title="histograms in Prometheus", severity=Severity.warning, find=_find, needs_prometheus=True)
