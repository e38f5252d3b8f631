"""Prometheus beside a local endpoint. It scrapes Ray and the gateway with the labels that a cluster adds."""

import os
import re
import shutil
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx
import yaml

from rayhelm import processes
from rayhelm.deploy.advice import find_built_prometheus, how_to_get_prometheus
from rayhelm.deploy.compose.gateway import RELEASE as GATEWAY
from rayhelm.errors import MissingError
from rayhelm.run.local.state import EndpointState

__all__ = ["LocalMetrics", "LocalService", "ScrapePorts", "build_config", "find_prometheus", "start_prometheus"]

LOOPBACK = "127.0.0.1"
TIMEOUT = 120.0
"""Seconds for Prometheus to start."""
INTERVAL = "10s"
"""Scrape interval: Ray refreshes its metrics every 10 s."""


@dataclass(frozen=True)
class LocalService:
    """A service of the fleet that the endpoint serves."""

    namespace: str
    applications: tuple[str, ...]
    """Names of its Serve applications."""
    models: tuple[str, ...]
    """Names of its models."""


@dataclass(frozen=True)
class LocalMetrics:
    """What Prometheus reads and records."""

    services: Mapping[str, LocalService]
    """Services by name."""
    rules: Mapping[str, str]
    """Files of recording rules by path."""


@dataclass(frozen=True)
class ScrapePorts:
    """Ports of the metrics on 127.0.0.1."""

    ray: int
    """Metrics of Ray, Ray Serve and vLLM."""
    dashboard: int
    """Metrics of Ray's dashboard."""
    gateway: int | None
    """Metrics of HAProxy."""


def find_prometheus() -> Path:
    """Return the Prometheus binary: $PROMETHEUS, else that on PATH, else that of the checkout. Raises MissingError."""
    named = os.environ.get("PROMETHEUS")
    for candidate in (named, shutil.which("prometheus"), find_built_prometheus()):
        if candidate and os.access(candidate, os.X_OK) and Path(candidate).is_file():
            return Path(candidate)
        if candidate and candidate == named:
            raise MissingError(f"$PROMETHEUS is {named}, which is not a program", how_to_get_prometheus())
    raise MissingError("Prometheus was not found: `--metrics` starts it", how_to_get_prometheus())


def build_config(services: Mapping[str, LocalService], ports: ScrapePorts) -> dict[str, Any]:
    """Build the configuration of Prometheus.

    One Ray cluster serves all services here, so the label of the service comes from the application or the model of a
    series. Series without both, such as those of the Ray node, get the first service.
    """
    first = next(iter(services))
    ray = {"namespace": services[first].namespace, "rayhelm_dev_service": first, "pod": "local", "container": "ray"}
    jobs = [
        {
            "job_name": "rayhelm-services",
            "static_configs": [
                {"targets": [f"{LOOPBACK}:{ports.ray}", f"{LOOPBACK}:{ports.dashboard}"], "labels": ray}
            ],
            "metric_relabel_configs": [rule for name, service in services.items() for rule in _relabel(name, service)],
        }
    ]
    if ports.gateway:
        labels = {"namespace": GATEWAY, "rayhelm_dev_gateway": GATEWAY, "pod": "local", "container": "haproxy"}
        target = [{"targets": [f"{LOOPBACK}:{ports.gateway}"], "labels": labels}]
        jobs.append({"job_name": "rayhelm-gateways", "static_configs": target})
        tenants = {"job_name": "rayhelm-gateway-tenants", "metrics_path": "/metrics/tenants"}
        jobs.append({**tenants, "static_configs": target})
    return {"global": {"scrape_interval": INTERVAL, "evaluation_interval": INTERVAL}, "scrape_configs": jobs}


def start_prometheus(metrics: LocalMetrics, ports: ScrapePorts, url: str, state: EndpointState) -> None:
    """Start Prometheus at `url` and wait until it is ready. Its data is in the state folder."""
    folder = state.prometheus
    folder.mkdir(mode=0o700, parents=True)
    for name, text in metrics.rules.items():
        path = folder / "rules" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
    # In the order of the groups: a rule reads what earlier ones have recorded.
    config = {"rule_files": [f"rules/{name}" for name in metrics.rules], **build_config(metrics.services, ports)}
    file = folder / "prometheus.yaml"
    file.write_text(yaml.safe_dump(config, sort_keys=False), encoding="utf-8")
    command = [
        str(find_prometheus()),
        f"--config.file={file}",
        f"--storage.tsdb.path={folder / 'data'}",
        f"--web.listen-address={url.removeprefix('http://')}",
    ]
    process = processes.start(command, run=state.run, log=state.logs / "prometheus.log", cwd=folder)
    processes.wait_until(lambda: _is_ready(url), what="Prometheus", timeout=TIMEOUT, needs=[process])


def _relabel(name: str, service: LocalService) -> list[dict[str, Any]]:
    """Return the rules that give a service the series of its applications and models."""
    labels = {"rayhelm_dev_service": name, "namespace": service.namespace}
    return [
        {
            "source_labels": [source],
            "regex": "|".join(map(re.escape, names)),
            "target_label": label,
            "replacement": value,
        }
        for source, names in (("application", service.applications), ("model_name", service.models))
        for label, value in labels.items()
        if names
    ]


def _is_ready(url: str) -> bool | None:
    try:
        return httpx.get(f"{url}/-/ready", trust_env=False).is_success or None
    except httpx.TransportError:
        return None
