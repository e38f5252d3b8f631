"""Configuration of the Prometheus of `rayhelm up --metrics`."""

import re
from pathlib import Path

import pytest

from rayhelm.errors import MissingError
from rayhelm.run.local import prometheus
from rayhelm.run.local.prometheus import LocalService, ScrapePorts, build_config, find_prometheus

SERVICES = {
    "chat": LocalService("models", ("chat",), ("llama-8b",)),
    "audio": LocalService("search", ("audio",), ("whisper.v3", "tts")),
}


def labels_of(series: dict[str, str]) -> dict[str, str]:
    """Apply the static labels and the relabel rules of the Ray job to a series."""
    job = build_config(SERVICES, ScrapePorts(ray=1, dashboard=2, gateway=None))["scrape_configs"][0]
    labels = job["static_configs"][0]["labels"] | series
    for rule in job["metric_relabel_configs"]:
        if re.fullmatch(rule["regex"], ";".join(labels.get(name, "") for name in rule["source_labels"])):
            labels[rule["target_label"]] = rule["replacement"]
    return labels


@pytest.mark.parametrize(
    ("series", "service", "namespace"),
    [
        ({"application": "audio"}, "audio", "search"),
        ({"model_name": "whisper.v3"}, "audio", "search"),
        ({"model_name": "whisperXv3"}, "chat", "models"),
        ({"application": "chat"}, "chat", "models"),
        ({}, "chat", "models"),
    ],
)
def test_series_get_the_service_of_their_application_or_model(
    series: dict[str, str], service: str, namespace: str
) -> None:
    labels = labels_of(series)
    assert (labels["rayhelm_dev_service"], labels["namespace"]) == (service, namespace)


def test_gateway_is_scraped_only_where_there_is_one() -> None:
    without, with_gateway = (
        [job["job_name"] for job in build_config(SERVICES, ScrapePorts(1, 2, port))["scrape_configs"]]
        for port in (None, 3)
    )
    assert without == ["rayhelm-services"]
    assert with_gateway == ["rayhelm-services", "rayhelm-gateways", "rayhelm-gateway-tenants"]


def test_missing_prometheus_is_refused_with_how_to_get_it(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.delenv("PROMETHEUS", raising=False)
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setattr(prometheus, "find_built_prometheus", lambda: None)
    with pytest.raises(MissingError, match="Prometheus was not found") as raised:
        find_prometheus()
    assert "PROMETHEUS" in raised.value.how


def test_wrong_variable_is_refused_before_other_programs(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("PROMETHEUS", str(tmp_path))
    with pytest.raises(MissingError, match="not a program"):
        find_prometheus()
