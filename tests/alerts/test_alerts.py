"""Each alert fires in its firing case, and neither in its silent case nor for an idle service."""

from pathlib import Path

import pytest

from alerts.kit import LABELS, Case, case_of, check_rules, rule_files, rules_of, run_cases
from rayhelm.observe.check import check_query
from rayhelm.observe.rules import load_alerts

SHARED = ["rayhelm-plan.yaml", "rayhelm-service.yaml"]


def files_of(group: str) -> dict[str, str]:
    """Rules of an alert's group, and the recorded series that it uses."""
    needed = [*SHARED, *(["rayhelm-objectives.yaml"] if group == "slo" else []), f"rayhelm-alerts-{group}.yaml"]
    return {name: rule_files()[name] for name in needed}


@pytest.mark.parametrize("name", load_alerts())
def test_alert_fires_only_in_its_firing_case(name: str, tmp_path: Path) -> None:
    alert = load_alerts()[name]
    kinds = ["firing"] if alert.always else ["firing", "silent", "idle"]
    if alert.tests.firing_too:
        kinds.append("firing_too")
    run_cases(tmp_path, files_of(alert.group), [case_of(alert, kind) for kind in kinds])


def test_every_rule_passes_the_check_of_queries() -> None:
    problems = {rule.get("alert", rule.get("record")): list(check_query(rule["expr"])) for rule in rules_of()}
    assert {name: [str(each) for each in found] for name, found in problems.items() if found} == {}


def test_promtool_accepts_every_rule(tmp_path: Path) -> None:
    check_rules(tmp_path, rule_files())


def test_promtool_accepts_the_rules_of_a_model_without_plan_and_price(tmp_path: Path) -> None:
    check_rules(tmp_path, rule_files({"prometheusRules": {"models": {"whisper": {"service": "chat"}}}}))


def test_replicas_of_a_deployment_with_two_models_count_once(tmp_path: Path) -> None:
    same = {"application": "llama", "deployment": "LLMServer:llama"}
    files = rule_files({"prometheusRules": {"models": {"adapter": {"service": "chat", **same}}}})
    needed = {name: files[name] for name in SHARED}
    series = {f'ray_serve_deployment_replica_healthy{{{LABELS["E"]},replica="{name}"}}': "1x20" for name in ("a", "b")}
    case = Case("two models", series, {"sum(rayhelm:replicas)": {"10m": 2.0}})
    run_cases(tmp_path, needed, [case])
