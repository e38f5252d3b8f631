"""Findings as metrics. A process serves them, because Prometheus cannot scrape a Job that has ended.

| metric | labels | value |
|---|---|---|
| `rayhelm_doctor_findings` | `check`, `severity` | findings of the last run; 0 without any |
| `rayhelm_doctor_finding` | `check`, `severity`, `object` | 1 while the object has such a finding |
| `rayhelm_doctor_check_state` | `check`, `state` | 1 for the state of each check |
| `rayhelm_doctor_last_run_timestamp_seconds` | | Unix time of the end of the last complete run; until then, start |
| `rayhelm_doctor_interval_seconds` | | time between two runs |
| `rayhelm_doctor_failed_runs_total` | | runs that could not reach the cluster, or read the fleet file |
"""

import threading
from collections import Counter
from collections.abc import Callable, Iterator
from typing import Any

from rayhelm.errors import MissingError, RayhelmError
from rayhelm.live.doctor.failures import locate
from rayhelm.live.doctor.finding import DoctorReport, Severity

__all__ = ["FindingsCollector", "serve"]


class FindingsCollector:
    """Exports the last report. `prometheus_client` calls `collect` for each scrape."""

    def __init__(self, started_at: float, every_s: float) -> None:
        self.report: DoctorReport | None = None
        # Without a first value, a doctor that never reaches the cluster has no age that an alert can compare.
        self.ended_at = started_at
        self.every_s = every_s
        self.failed_runs = 0

    def collect(self) -> "Iterator[Any]":
        """Yield the metrics of the last report."""
        from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily

        yield CounterMetricFamily(
            "rayhelm_doctor_failed_runs", "Runs that could not reach the cluster.", self.failed_runs
        )
        yield GaugeMetricFamily(
            "rayhelm_doctor_last_run_timestamp_seconds", "End of the last run that reached the cluster.", self.ended_at
        )
        yield GaugeMetricFamily("rayhelm_doctor_interval_seconds", "Time between two runs.", self.every_s)
        if self.report is None:
            return
        counts = Counter((each.check, str(each.severity)) for each in self.report.findings)
        findings = GaugeMetricFamily(
            "rayhelm_doctor_findings", "Findings of the last run.", labels=["check", "severity"]
        )
        states = GaugeMetricFamily("rayhelm_doctor_check_state", "State of a check.", labels=["check", "state"])
        for result in self.report.checks:
            states.add_metric([result.id, result.state.value], 1)
            for severity in Severity:
                findings.add_metric([result.id, severity.value], counts[result.id, severity.value])
        objects = GaugeMetricFamily(
            "rayhelm_doctor_finding", "1 while an object has a finding.", labels=["check", "severity", "object"]
        )
        for labels in sorted({(each.check, str(each.severity), each.object) for each in self.report.findings}):
            objects.add_metric(labels, 1)
        yield from (findings, states, objects)


def serve(
    examine: Callable[[], DoctorReport],
    port: int,
    every_s: float,
    say: Callable[[str], None],
    stop: threading.Event | None = None,
) -> None:
    """Run the checks again and again, and serve the findings at `/metrics` until `stop` is set.

    Raises MissingError without the package `prometheus-client`, or if the port is taken."""
    import time

    try:
        from prometheus_client import CollectorRegistry, start_http_server
    except ImportError:
        raise MissingError(
            "the package `prometheus-client` is not installed", "pip install 'rayhelm[cluster]'    # serves metrics"
        ) from None
    collector, registry = FindingsCollector(time.time(), every_s), CollectorRegistry()
    stop = stop or threading.Event()
    registry.register(collector)
    try:
        server, thread = start_http_server(port, registry=registry)
    except OSError as error:
        raise MissingError(f"port {port} cannot be opened: {error.strerror}", "rayhelm doctor --serve 9111") from None
    say(f"metrics at port {port}, path /metrics")
    try:
        while True:
            try:
                collector.report = examine()
                collector.ended_at = time.time()
                say(f"{len(collector.report.findings)} findings")
            except RayhelmError as error:
                # The next run may reach the cluster again; the metric shows how many did not.
                collector.failed_runs += 1
                say(f"the run failed: {error}")
            except Exception as error:
                # Nothing that a run meets may end the process: without it no check runs any more.
                collector.failed_runs += 1
                say(f"the run failed: {locate(error)}")
            if stop.wait(every_s):
                return
    finally:
        server.shutdown()
        server.server_close()
        thread.join(10)
