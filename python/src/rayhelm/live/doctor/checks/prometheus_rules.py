"""Prometheus has loaded the rules that the fleet renders, and evaluates them without an error."""

from collections.abc import Iterator
from typing import Any

import yaml

from rayhelm.live.doctor.check import Check
from rayhelm.live.doctor.facts import Facts
from rayhelm.live.doctor.finding import Finding, Severity


def _find(facts: Facts) -> Iterator[Finding]:
    assert facts.prometheus
    loaded = facts.prometheus.list_rules()
    wanted = _list_rendered(facts)
    for rule in loaded:
        if rule.get("health") == "err" and (not wanted or rule["name"] in wanted):
            yield Finding(
                object=f"rule {rule['group']}/{rule['name']}",
                evidence=f"health is err: {rule.get('lastError', '')}"[:300],
                cause="Prometheus cannot evaluate the rule, so the alert or the recorded series does not exist",
                fix="rayhelm lint FLEET    # then apply the rules of this version of rayhelm",
            )
    missing = sorted(wanted - {rule["name"] for rule in loaded})
    if missing:
        yield Finding(
            object="rules of the chart platform",
            evidence=f"{len(missing)} of {len(wanted)} rules are not loaded: {', '.join(missing[:8])}"
            + (" …" if len(missing) > 8 else ""),
            cause="Prometheus does not select the rules: `ruleSelector` needs other labels or another namespace, or no"
            " file of"
            " `rule_files` has them",
            fix="kubectl get prometheus -A -o jsonpath='{.items[*].spec.ruleSelector}'"
            "    # write these labels into clusters.NAME.prometheus.ruleLabels",
        )


def _list_rendered(facts: Facts) -> set[str]:
    """Return the names of all rules that the fleet renders; empty if it renders none."""
    groups: list[dict[str, Any]] = []
    for item in facts.manifests:
        if item["kind"] == "PrometheusRule":
            groups += item["spec"]["groups"]
        elif item["kind"] == "ConfigMap" and item["metadata"]["name"].endswith("-rules"):
            for text in item["data"].values():
                groups += (yaml.safe_load(text) or {}).get("groups") or []
    return {rule.get("alert") or rule.get("record", "") for group in groups for rule in group["rules"]}


CHECK = Check(title="rules of Prometheus", severity=Severity.warning, find=_find, needs_prometheus=True)
