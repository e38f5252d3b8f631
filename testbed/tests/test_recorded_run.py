"""The recorded run: its file, and the longer runs that tests make of it."""

from pathlib import Path

import pytest

from rayhelm.facts.metrics import load_metrics
from rayhelm.facts.versions import versions
from testbed.live_metrics.recording import Phase, Recorded, load_recorded
from testbed.live_metrics.recording.edit import Run, metric_of, run_of
from testbed.live_metrics.recording.recorded import read_values, write_values
from testbed.live_metrics.recording.run import list_metrics

COUNTER, GAUGE = 'ray_vllm_prompt_tokens_total{model_name="chat"}', 'up{job="ray"}'
OF_AUTOSCALER = {"ray_cluster_active_nodes"}
"""Metrics that need the autoscaler of Ray, which a local endpoint does not have."""
SINCE_THE_RECORDING = {
    "haproxy_backend_backup_servers",
    "haproxy_server_http_responses_total",
    "haproxy_server_status",
    "rayhelm_gateway_keys_read_timestamp_seconds",
    "rayhelm_gateway_maps_for_other_pods",
    "rayhelm_gateway_maps_refused",
}
"""Metrics that are newer than the recorded run; the next recording has them."""


@pytest.mark.parametrize(
    ("values", "text"),
    [
        ([1.0, 1.0, 1.0], "1x2"),
        ([None, None, 2.5], "_x2 2.5"),
        ([1.0, None, None, 3.0, None], "1 stale _x1 3 stale"),
        ([0.0, 1.0], "0 1"),
    ],
)
def test_values_are_written_and_read_again(values: list[float | None], text: str) -> None:
    assert write_values(values) == text
    assert list(read_values(text, len(values))) == values


def test_recorded_run_is_written_and_read_again(tmp_path: Path) -> None:
    phase = Phase(name="start", start=0, end=3, clients=0)
    run = Recorded(versions={"ray": "1"}, start=10.0, step=15, phases=(phase,), series={GAUGE: "_x1 1x1"})
    run.write(tmp_path / "run.json.xz")
    assert load_recorded(tmp_path / "run.json.xz") == run
    assert list(run.samples()) == [f"{GAUGE} 1.0 25.000", f"{GAUGE} 1.0 40.000"]


def run_of_two() -> Run:
    return Run(15, 5, {COUNTER: (None, 10.0, 20.0, 30.0, 40.0), GAUGE: (None, 1.0, 2.0, 3.0, 1.0)})


def test_repeated_phase_goes_on_counting() -> None:
    longer = run_of_two().repeat(2, 4, 3)
    assert longer.steps == 9
    assert longer.series[COUNTER] == (None, 10.0, 20.0, 30.0, 40.0, 50.0, 60.0, 70.0, 80.0)
    assert longer.series[GAUGE] == (None, 1.0, 2.0, 3.0, 2.0, 3.0, 2.0, 3.0, 1.0)


def test_shifted_run_ends_where_it_is_cut() -> None:
    run = run_of_two().shift(2).end_at(5)
    assert run.steps == 5
    assert run.as_promtool() == {COUNTER: "_x3 10 20", GAUGE: "_x3 1 2"}
    assert run.join(run_of_two().hold(1)).steps == 6


def test_labels_are_changed_also_with_quotes_in_their_values() -> None:
    run = Run(15, 1, {'up{job="a\\"b",pod="p"}': (1.0,)})
    changed = run.relabel(lambda label, value: value.upper() if label == "job" else value)
    assert list(changed.series) == ['up{job="A\\"B",pod="p"}']


def test_recorded_run_has_the_versions_of_this_rayhelm() -> None:

    assert load_recorded().versions == {"ray": versions().ray, "vllm": versions().vllm}


def test_recorded_run_has_each_metric_that_rules_and_dashboards_read() -> None:
    """`make metrics-recording` records it again, in half an hour."""
    wanted = {name for name in list_metrics() if load_metrics()[name].seen}
    recorded = {metric_of(series) for series in load_recorded().series}
    assert wanted - recorded - OF_AUTOSCALER == SINCE_THE_RECORDING


def test_recorded_run_scales_up_and_down() -> None:
    recorded = load_recorded()
    name = r'^ray_serve_autoscaling_target_replicas\{.*deployment="LLMServer:chat"'
    (target,) = run_of(recorded).having(name).series.values()
    heavy = recorded.phase("heavy")
    assert max(value or 0 for value in target[heavy.start : heavy.end]) > 1
    assert target[-1] == 1


def test_recorded_run_does_not_name_the_computer() -> None:
    text = "\n".join(load_recorded().series)
    assert "/tmp" not in text
    assert "/home" not in text
    assert 'ip="10.0.0.1"' in text
