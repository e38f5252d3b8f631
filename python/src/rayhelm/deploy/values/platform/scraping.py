"""How Prometheus finds what has no chart of ours, and all targets of a Prometheus without the operator."""

from typing import Literal

from rayhelm.deploy.values.common.base import Values
from rayhelm.deploy.values.common.labels import Labels, Namespace
from rayhelm.deploy.values.common.scraping import Interval
from rayhelm.facts.versions import get_kuberay_namespace

__all__ = ["PlatformScraping"]


class PlatformScraping(Values):
    """How Prometheus finds the KubeRay operator and the exporter of NVIDIA's GPU operator. Services and gateways have
    a value `scraping` of their own; use the same kind there, and `None` with `ConfigMap`."""

    kind: Literal["None", "PodMonitor", "ScrapeConfig", "ConfigMap", "Annotations"] = "None"
    """`PodMonitor` and `ScrapeConfig` are objects of the Prometheus operator. `ConfigMap` has a file for
    `scrape_config_files` of a Prometheus without it, with `services` and `gateways` too. `Annotations` renders nothing:
    NOTES has the values of the other charts."""
    labels: Labels = {}
    """Labels by which your Prometheus selects the objects."""
    interval: Interval = "15s"
    """Time between scrapes. Keep it below 20 s: vLLM drops its gauges 20 s after the engine becomes idle."""
    kuberay_namespace: Namespace | Literal[""] = get_kuberay_namespace()
    """Namespace of the KubeRay operator. Empty: not scraped here, for example because its chart has a ServiceMonitor
    (`metrics.serviceMonitor.enabled`)."""
    dcgm_exporter: bool = True
    """Scrape the exporter of NVIDIA's GPU operator in `nvidia.namespace`, if `nvidia.enabled`. False: not scraped here,
    for example because its ClusterPolicy has a ServiceMonitor."""
