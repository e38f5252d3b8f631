"""One outage is one page: the inhibition rules, evaluated over the alerts of an outage.

Their matchers are those of PromQL too, so that promtool evaluates them: targets `unless on (equal)` sources.
"""

from pathlib import Path
from typing import Any

import pytest
import yaml

from alerts.kit import VALUES, Case, rule_files, run_cases
from charts import kit
from rayhelm.observe.rules import load_alerts
from rayhelm.observe.rules.inhibitions import Inhibition, load_inhibitions

PAGES = 'ALERTS{alertstate="firing",severity="critical"}'
BURN = {
    'haproxy_backend_http_responses_total{$G,pod="g",proxy="llama:stable",code="2xx"}': "0+90x120",
    'haproxy_backend_http_responses_total{$G,pod="g",proxy="llama:stable",code="5xx"}': "0+10x120",
}
NO_REPLICA = {
    'ray_serve_deployment_replica_healthy{$E,replica="a"}': "1x25 0x1 stale",
    "ray_serve_autoscaling_target_replicas{$E}": "1x120",
}


def lost_endpoints(name: str) -> dict[str, str]:
    condition = f'kuberay_service_condition_ready{{namespace="search",name="{name}",condition='
    return {f'{condition}"true"}}': "1x20 stale", f'{condition}"false"}}': "_x21 1x120"}


def rendered_rules() -> list[dict[str, Any]]:
    values = kit.over(VALUES, {"prometheusRules": {"inhibition": True}})
    objects = kit.rendered(
        values, chart="platform", base="platform/minimal", release="platform", namespace="rayhelm-system"
    )
    text = kit.only(objects, "ConfigMap", "platform-inhibition")["data"]["inhibit-rules.yaml"]
    found: list[dict[str, Any]] = yaml.safe_load(text)["inhibit_rules"]
    return found


def notified() -> str:
    """Query of the pages that are left when each rule is applied."""
    text = PAGES
    for rule in rendered_rules():
        source = f'ALERTS{{alertstate="firing",{",".join(rule["source_matchers"])}}}'
        (target,) = rule["target_matchers"]
        inhibited = f"ALERTS{{{target}}} and on ({', '.join(rule['equal'])}) {source}"
        text = f"({text} unless ({inhibited}))"
    return f"count({text})"


@pytest.mark.parametrize(
    ("series", "pages", "left"),
    [
        pytest.param({**lost_endpoints("chat"), **NO_REPLICA, **BURN}, 3, 1, id="no endpoint"),
        pytest.param({**NO_REPLICA, **BURN}, 2, 1, id="no replica"),
        pytest.param({**lost_endpoints("other"), **BURN}, 2, 2, id="two services"),
    ],
)
def test_one_outage_is_one_page(series: dict[str, str], pages: int, left: int, tmp_path: Path) -> None:
    expected: dict[str, dict[str, float | None]] = {f"count({PAGES})": {"90m": pages}, notified(): {"90m": left}}
    run_cases(tmp_path, rule_files(), [Case("outage", series, expected)])


def test_rule_with_an_unknown_alert_is_refused() -> None:
    with pytest.raises(ValueError, match="there is no alert GpuLazy"):
        Inhibition(source="GpuIdle", targets=["GpuLazy"], equal=["cluster"], because="the same GPU is without work")


def test_no_rule_hides_a_page_behind_an_alert_that_does_not_page() -> None:
    severity = {name: alert.severity for name, alert in load_alerts().items()}
    for rule in load_inhibitions():
        pages = [target for target in rule.targets if severity[target] == "critical"]
        assert not pages or severity[rule.source] == "critical", rule.source
