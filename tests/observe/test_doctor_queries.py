"""The check `queries` of the doctor against a real Prometheus: each query of a dashboard or an alert returns."""

import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from rayhelm.facts.metrics import load_exporters, load_metrics
from rayhelm.live.cost.client import open_client
from rayhelm.live.doctor.finding import DoctorReport
from rayhelm.live.doctor.queries import list_queries
from shared.doctor_world import World, fleet
from shared.prometheus import serve_samples


def write_samples(without: str = "", labels: str = "") -> Iterator[str]:
    """Yield a sample of now for each metric of the catalog, but not those of an exporter. `labels` are on all."""
    now = time.time()
    left_out = load_exporters()[without].metrics if without else {}
    for name, metric in load_metrics().items():
        if name in left_out:
            continue
        is_histogram = metric.type == "histogram"
        own = ",".join(filter(None, (labels, 'le="+Inf"' if is_histogram else "")))
        yield f"{name}{'_bucket' if is_histogram else ''}{{{own}}} 1 {now:.0f}"


@contextmanager
def report(home: Path, samples: list[str]) -> Iterator[DoctorReport]:
    with serve_samples(home, samples) as url, open_client(url, {}) as client:
        yield World(fleet()).examine("queries", prometheus=client)


def test_real_prometheus_evaluates_each_query_of_the_doctor(tmp_path: Path) -> None:
    assert len(list_queries()) > 100
    with report(tmp_path, list(write_samples())) as found:
        assert found.findings == ()


def test_doctor_names_the_exporter_that_a_real_prometheus_does_not_scrape(tmp_path: Path) -> None:
    with report(tmp_path, list(write_samples(without="kuberay"))) as found:
        assert [finding.cause.partition(",")[0] for finding in found.findings] == ["Prometheus does not scrape kuberay"]


def test_doctor_names_queries_that_a_real_prometheus_refuses(tmp_path: Path) -> None:
    """Two scrapes of the same pods give each series twice, so that no series of a join is unique."""
    twice = [line for job in ("a", "b") for line in write_samples(labels=f'job="{job}",namespace="models"')]
    with report(tmp_path, twice) as found:
        assert found.findings
        for finding in found.findings:
            assert "many-to-many" in finding.evidence or "duplicate" in finding.evidence
            assert "the same labels" in finding.cause
