"""Findings of the doctor as metrics."""

import threading

import httpx
import pytest
from prometheus_client import CollectorRegistry, generate_latest

from rayhelm.errors import MissingError
from rayhelm.live.doctor.finding import CheckResult, CheckState, DoctorReport, Finding, Severity
from rayhelm.live.doctor.metrics import FindingsCollector, serve
from shared.ports import reserve_port

FINDING = Finding(
    check="quota", severity=Severity.warning, object="ResourceQuota lab/lab", evidence="e", cause="c", fix="f"
)
REPORT = DoctorReport(
    cluster="here",
    checks=(
        CheckResult(id="quota", title="quotas", state=CheckState.findings),
        CheckResult(id="nodes", title="nodes", state=CheckState.ok),
    ),
    findings=(FINDING, FINDING.model_copy(update={"evidence": "another"})),
)


def export(collector: FindingsCollector) -> set[str]:
    registry = CollectorRegistry()
    registry.register(collector)
    return {line for line in generate_latest(registry).decode().splitlines() if not line.startswith("#")}


def test_metrics_count_findings_and_name_their_objects() -> None:
    collector = FindingsCollector(500, 600)
    collector.report, collector.ended_at = REPORT, 1000.0
    assert export(collector) == {
        "rayhelm_doctor_failed_runs_total 0.0",
        "rayhelm_doctor_last_run_timestamp_seconds 1000.0",
        "rayhelm_doctor_interval_seconds 600.0",
        'rayhelm_doctor_findings{check="quota",severity="critical"} 0.0',
        'rayhelm_doctor_findings{check="quota",severity="warning"} 2.0',
        'rayhelm_doctor_findings{check="nodes",severity="critical"} 0.0',
        'rayhelm_doctor_findings{check="nodes",severity="warning"} 0.0',
        'rayhelm_doctor_check_state{check="quota",state="findings"} 1.0',
        'rayhelm_doctor_check_state{check="nodes",state="ok"} 1.0',
        'rayhelm_doctor_finding{check="quota",object="ResourceQuota lab/lab",severity="warning"} 1.0',
    }


def test_metrics_before_the_first_run_have_the_start_and_no_health() -> None:
    assert export(FindingsCollector(500, 600)) == {
        "rayhelm_doctor_failed_runs_total 0.0",
        "rayhelm_doctor_last_run_timestamp_seconds 500.0",
        "rayhelm_doctor_interval_seconds 600.0",
    }


def test_server_shows_findings_and_counts_runs_that_failed() -> None:
    answers: list[DoctorReport | None] = [None, REPORT]
    seen: list[str] = []
    stop, said = threading.Event(), []

    def examine(port: int) -> DoctorReport:
        if len(said) > 2:  # after both runs
            seen.append(httpx.get(f"http://127.0.0.1:{port}/metrics", trust_env=False, timeout=60).text)
            stop.set()
            return REPORT
        report = answers.pop(0)
        if report is None:
            raise MissingError("no cluster", "start one")
        return report

    with reserve_port() as port:
        serve(lambda: examine(port), port, 0.01, said.append, stop)
    assert 'rayhelm_doctor_findings{check="quota",severity="warning"} 2.0' in seen[0]
    assert "rayhelm_doctor_failed_runs_total 1.0" in seen[0]
    assert said[1].startswith("the run failed: no cluster")


def test_port_that_is_taken_is_refused() -> None:
    import socket

    with socket.socket() as taken:
        taken.bind(("0.0.0.0", 0))
        taken.listen()
        with pytest.raises(MissingError, match="cannot be opened"):
            serve(lambda: REPORT, taken.getsockname()[1], 1, lambda text: None)
