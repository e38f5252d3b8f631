"""The product scraped by a real Prometheus, whose configuration the Prometheus Operator makes of the PodMonitors."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from cluster.kit.metrics import Prometheus
from cluster.kit.prometheus_operator import SELECTED, operator
from cluster.kit.wait import eventually
from pods.kit.api_server import connect
from pods.kit.product import Product
from rayhelm.run.rehearsal.checks import render_objects
from testbed.control_plane.definitions import wait_until_established
from testbed.tools import crd_files, found

__all__ = ["scrape"]


@contextmanager
def scrape(product: Product) -> Iterator[Prometheus]:
    """A Prometheus on this computer that scrapes the pods of the service and of the gateway."""
    kubectl = product.cluster.kubectl
    files = crd_files("prometheus-operator", version=found("prometheus-operator").version)
    kubectl.apply_files(*files)
    wait_until_established(kubectl, files)
    cluster = connect(product.cluster)
    monitors = _list_monitors(product)
    for item in monitors:
        product.session.wait_for_quota(item["metadata"]["namespace"], "PodMonitor")
    host = f"{product.cluster.node.network.host}/32"
    with product.cluster.namespace() as namespace:
        product.cluster.apply(*monitors, *(_allow(item["metadata"]["namespace"], host) for item in monitors))
        try:
            with operator(cluster, namespace, exported=0) as running:
                jobs = sum(len(item["spec"]["podMetricsEndpoints"]) for item in monitors)
                eventually(lambda: len(running.jobs()) == jobs, f"{jobs} jobs", shows=lambda: running.said)
                with running.prometheus() as server:
                    yield server
        finally:
            for item in monitors:
                where = f"--namespace={item['metadata']['namespace']}"
                kubectl("delete", "podmonitor", item["metadata"]["name"], where)
                kubectl("delete", "networkpolicy", "scrape-from-host", where, "--ignore-not-found")


def _list_monitors(product: Product) -> list[dict[str, Any]]:
    scraping = {"scraping": {"kind": "PodMonitor", "labels": SELECTED}}
    releases = [product.change(product.of(chart), scraping) for chart in ("ray-service", "gateway")]
    return [item for objects in render_objects(releases) for item in objects if item["kind"] == "PodMonitor"]


def _allow(namespace: str, host: str) -> dict[str, Any]:
    """Prometheus is no pod here, so the charts' policy for its namespace does not allow it."""
    return {
        "apiVersion": "networking.k8s.io/v1",
        "kind": "NetworkPolicy",
        "metadata": {"name": "scrape-from-host", "namespace": namespace},
        "spec": {"podSelector": {}, "policyTypes": ["Ingress"], "ingress": [{"from": [{"ipBlock": {"cidr": host}}]}]},
    }
