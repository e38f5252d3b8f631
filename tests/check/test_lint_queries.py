"""`rayhelm lint` of rule files, dashboards, values and objects with queries."""

import json
from pathlib import Path
from typing import Any

import pytest
import yaml
from typer.testing import CliRunner

from rayhelm.check.lint.queries import check_queries, find_query_files
from rayhelm.cli.app import app
from rayhelm.errors import Problem
from rayhelm.facts.metrics import load_exporters

OLD_NAMES = (
    "ray_serve_requests_queued",
    "ray_serve_request_latency_seconds",
    "nvidia_gpu_utilization",
    "ray_serve_requests_total",
    "ray_serve_replica_num",
)
"""Names of old articles."""


def rule_file(folder: Path, expression: str) -> Path:
    file = folder / "rules.yaml"
    file.write_text(f"groups:\n  - name: mine\n    rules:\n      - alert: A\n        expr: {json.dumps(expression)}\n")
    return file


def problems(path: Path) -> list[Problem]:
    return check_queries(path).problems


@pytest.mark.parametrize("name", OLD_NAMES)
def test_old_name_is_refused_in_rules_with_a_fix_that_is_accepted(name: str, tmp_path: Path) -> None:
    (problem,) = problems(rule_file(tmp_path, f"max({name})"))
    assert problem.location == f"{tmp_path}/rules.yaml:5"
    assert problem.rule == "promql-replaced"
    fixed: Any = yaml.safe_load(problem.fix_text)
    assert all("does not exist" not in str(each) for each in problems(rule_file(tmp_path, fixed["expr"])))


@pytest.mark.parametrize("name", OLD_NAMES)
def test_old_name_is_refused_in_values_with_its_line(name: str, tmp_path: Path) -> None:
    file = tmp_path / "platform.yaml"
    file.write_text(
        f"metrics:\n  services: {{chat: {{namespace: models}}}}\n  rules:\n    q:\n      series: [{name}]\n"
    )
    (problem,) = problems(file)
    assert problem.location == f"{file}:5"
    assert problem.path == "metrics.rules.q.series[0]"


def test_old_names_are_in_the_catalog_with_a_reason() -> None:
    absent = {name for exporter in load_exporters().values() for name in exporter.absent}
    assert set(OLD_NAMES) <= absent


def test_line_of_a_block_is_that_of_the_row(tmp_path: Path) -> None:
    file = tmp_path / "rules.yaml"
    file.write_text("groups:\n  - rules:\n      - expr: |\n          sum(up)\n            > nvidia_gpu_utilization\n")
    (problem,) = problems(file)
    assert (problem.line, "column 5:" in problem.message) == (5, True)


def test_metrics_and_labels_of_others_are_allowed(tmp_path: Path) -> None:
    text = 'sum by (team) (rate(node_cpu_seconds_total{mode="idle"}[5m])) + sum(ray_resources{team="a"})'
    assert problems(rule_file(tmp_path, text)) == []


def test_misspelled_metric_of_ray_is_refused_with_the_nearest_name(tmp_path: Path) -> None:
    (problem,) = problems(rule_file(tmp_path, "sum(ray_vllm_num_requests_run)"))
    assert problem.rule == "promql-metric"
    assert yaml.safe_load(problem.fix_text) == {"expr": "sum(ray_vllm_num_requests_running)"}


@pytest.mark.parametrize(
    "text",
    [
        "sum(rate(ray_vllm_num_requests_running[5m]))",
        "absent(ray_vllm_num_requests_running)",
        "sum(ray_vllm_generation_tokens_total)",
        "sum(rate(ray_vllm_time_to_first_token_seconds_sum[5m]))",
        "max(ray_vllm_engine_sleep_state)",
        "sum by (",
    ],
)
def test_other_fix_is_a_comment_of_yaml(text: str, tmp_path: Path) -> None:
    (problem,) = problems(rule_file(tmp_path, text))
    assert problem.fix_text.startswith("# ")
    assert yaml.safe_load(problem.fix_text) is None


def test_panel_of_a_dashboard_is_refused_with_its_line(tmp_path: Path) -> None:
    file = tmp_path / "dashboard.json"
    panels = [{"targets": [{"expr": 'sum(ray_serve_requests_queued{namespace="$namespace"})'}]}]
    file.write_text(json.dumps({"panels": panels}, indent=1))
    (problem,) = problems(file)
    assert problem.path == "panels[0].targets[0].expr"
    assert "ray_serve_requests_queued" in file.read_text().splitlines()[(problem.line or 0) - 1]


def test_invalid_json_is_refused_with_its_line(tmp_path: Path) -> None:
    (tmp_path / "dashboard.json").write_text('{"panels": [\n}')
    result = CliRunner().invoke(app, ["lint", str(tmp_path)])
    assert result.exit_code == 1
    assert "dashboard.json:2: not valid JSON" in result.stderr


def test_query_of_a_scaled_object_is_checked(tmp_path: Path) -> None:
    trigger = {"type": "prometheus", "metadata": {"query": "rate(ray_vllm_num_requests_waiting[2m])"}}
    item = {"apiVersion": "keda.sh/v1alpha1", "kind": "ScaledObject", "metadata": {"name": "x"}}
    (tmp_path / "scaler.yaml").write_text(yaml.safe_dump({**item, "spec": {"triggers": [trigger]}}, sort_keys=False))
    (problem,) = problems(tmp_path)
    assert problem.rule == "promql-rate"


def test_fleet_and_other_files_have_no_queries(tmp_path: Path) -> None:
    (tmp_path / "fleet.yaml").write_text("fleet: a\nmetrics: {}\n")
    (tmp_path / "other.yaml").write_text("unrelated: 1\n")
    (tmp_path / "package.json").write_text("{}")
    assert find_query_files(tmp_path) == []


def test_command_ends_with_1_for_a_problem_and_0_without(tmp_path: Path) -> None:
    file = rule_file(tmp_path, "sum(ray_serve_requests_queued)")
    result = CliRunner().invoke(app, ["lint", str(file), "--format", "json"])
    assert result.exit_code == 1
    assert json.loads(result.stdout)["problems"][0]["rule"] == "promql-replaced"
    assert CliRunner().invoke(app, ["lint", str(rule_file(tmp_path, "sum(up)"))]).exit_code == 0


def test_option_of_a_fleet_is_refused_for_rules(tmp_path: Path) -> None:
    result = CliRunner().invoke(app, ["lint", str(rule_file(tmp_path, "sum(up)")), "--serve"])
    assert "`--serve` is for a fleet" in result.stderr


@pytest.mark.parametrize("suffix", ["_bucket", "_sum", "_count"])
@pytest.mark.parametrize("name", ["ray_vllm_time_per_output_token_seconds", "vllm:time_per_output_token_seconds"])
def test_old_histogram_is_refused_with_any_suffix_which_the_fix_keeps(name: str, suffix: str, tmp_path: Path) -> None:
    found = problems(rule_file(tmp_path, f"sum(rate({name}{suffix}[5m]))"))
    assert found[0].rule == "promql-replaced"
    now = f"ray_vllm_request_time_per_output_token_seconds{suffix}"
    assert yaml.safe_load(found[0].fix_text) == {"expr": f"sum(rate({now}[5m]))"}


def test_misspelled_histogram_keeps_its_suffix_in_the_fix(tmp_path: Path) -> None:
    (problem,) = problems(rule_file(tmp_path, "sum(rate(ray_vllm_time_to_first_tokens_seconds_bucket[5m]))"))
    assert "ray_vllm_time_to_first_token_seconds_bucket" in problem.fix_text


@pytest.mark.parametrize("name", ["ray_gcs_bogus", "ray_node_bogus", "ray_tasks_bogus", "ray_serve_bogus"])
def test_unknown_metric_of_ray_is_refused_whatever_its_prefix(name: str, tmp_path: Path) -> None:
    assert [problem.rule for problem in problems(rule_file(tmp_path, f"{name} > 1"))] == ["promql-metric"]


@pytest.mark.parametrize("name", ["ray_data_output_rows", "ray_my_counter_total"])
def test_metric_of_an_application_is_allowed(name: str, tmp_path: Path) -> None:
    assert problems(rule_file(tmp_path, f"{name} > 1")) == []


@pytest.mark.parametrize(
    "text",
    [
        "rate(ray_vllm_generation_tokens_total[$interval])",
        "rate(ray_vllm_generation_tokens_total[${window:raw}])",
        "max_over_time(rate(ray_vllm_generation_tokens_total[5m])[$range:$step])",
        "rate(ray_vllm_generation_tokens_total[5m] offset $ago)",
        "topk($top, ray_serve_application_status)",
        'ray_serve_application_status{application="$app"} > $least',
        "ray_serve_application_status{application=~'${app:regex}'}",
    ],
)
def test_variable_of_grafana_is_read_where_it_stands(text: str, tmp_path: Path) -> None:
    assert [problem for problem in problems(rule_file(tmp_path, text)) if problem.rule == "promql-syntax"] == []


OTHERS = {
    "prometheus-adapter": "prometheus: {}\nrules:\n  custom:\n  - metricsQuery: sum(vllm:num_requests_waiting)\n",
    "prometheus": "serverFiles:\n  a.yml: {groups: [{rules: [{expr: sum(vllm:num_requests_waiting)}]}]}\n",
    "stack": "additionalPrometheusRulesMap:\n  a: {groups: [{rules: [{expr: sum(vllm:num_requests_waiting)}]}]}\n",
}


@pytest.mark.parametrize("text", OTHERS.values(), ids=OTHERS)
def test_queries_in_values_of_other_charts_are_checked(text: str, tmp_path: Path) -> None:
    file = tmp_path / "values.yaml"
    file.write_text(text)
    (problem,) = problems(file)
    assert (problem.rule, "ray_vllm_num_requests_waiting" in problem.fix_text) == ("promql-replaced", True)


def test_file_that_lint_does_not_know_is_no_fleet_file(tmp_path: Path) -> None:
    file = tmp_path / "values.yaml"
    file.write_text("operator: {replicas: 2}\nwebhooks: {}\n")
    answer = CliRunner().invoke(app, ["lint", str(file)])
    assert answer.exit_code == 2
    assert "no file that lint knows" in answer.stderr


def adapter(folder: Path, series: str, query: str) -> Path:
    file = folder / "values.yaml"
    rule = {"seriesQuery": series, "metricsQuery": query, "resources": {"template": "<<.Resource>>"}}
    file.write_text(yaml.safe_dump({"rules": {"custom": [rule]}}, sort_keys=False))
    return file


MEAN = "sum(<<.Series>>{<<.LabelMatchers>>}) by (<<.GroupBy>>)"
RATE = "sum(rate(<<.Series>>{<<.LabelMatchers>>}[2m])) by (<<.GroupBy>>)"


@pytest.mark.parametrize(
    ("series", "query"),
    [
        ("ray_vllm_num_requests_waiting", MEAN),
        ('ray_vllm_num_requests_waiting{namespace!=""}', MEAN),
        ("ray_vllm_generation_tokens_total", RATE),
        ("mine_total", RATE),
        ('{__name__=~"^mine_.*"}', MEAN),
    ],
)
def test_rule_of_the_adapter_that_is_right_has_no_problem(series: str, query: str, tmp_path: Path) -> None:
    assert problems(adapter(tmp_path, series, query)) == []


@pytest.mark.parametrize(
    ("series", "query", "rule", "key"),
    [
        ("ray_vllm_num_requests_waiting", RATE, "promql-rate", "metricsQuery"),
        ("ray_vllm_num_request_waiting", MEAN, "promql-metric", "seriesQuery"),
        ('{__name__=~"^vllm:num_requests_waiting$"}', MEAN, "promql-replaced", "seriesQuery"),
        ("mine", "sum(ray_gcs_bogus)", "promql-metric", "metricsQuery"),
        ("mine", "sum(", "promql-syntax", "metricsQuery"),
    ],
)
def test_rule_of_the_adapter_is_checked_with_its_series(
    series: str, query: str, rule: str, key: str, tmp_path: Path
) -> None:
    (problem,) = problems(adapter(tmp_path, series, query))
    assert (problem.rule, problem.path) == (rule, f"rules.custom[0].{key}")


@pytest.mark.parametrize(("kind", "count"), [("prometheus", 1), ("postgresql", 0)])
def test_query_of_a_scaler_is_promql_only_for_prometheus(kind: str, count: int, tmp_path: Path) -> None:
    trigger = {"type": kind, "metadata": {"query": "SELECT count(*) FROM jobs WHERE done = false"}}
    item = {"apiVersion": "keda.sh/v1alpha1", "kind": "ScaledObject", "metadata": {"name": "x"}}
    (tmp_path / "scaler.yaml").write_text(yaml.safe_dump({**item, "spec": {"triggers": [trigger]}}, sort_keys=False))
    assert len(problems(tmp_path)) == count


def test_unknown_files_of_a_folder_are_named(tmp_path: Path) -> None:
    rule_file(tmp_path, "sum(up)")
    (tmp_path / "keda.yaml").write_text("operator: {replicas: 2}\nwebhooks: {}\n")
    (skipped,) = check_queries(tmp_path).not_checked
    assert str(tmp_path / "keda.yaml") in skipped.what
