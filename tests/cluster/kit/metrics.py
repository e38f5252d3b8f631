"""A real Prometheus and the real Prometheus adapter, as processes: started from what the chart platform renders.

Pods are simulated, so the wires of this computer take the place of theirs: a pod's address is that of a process which
exports metrics, and the adapter's Service leads to loopback.
"""

import json
import subprocess
import tempfile
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

import httpx
import yaml

from cluster.kit.cluster import Cluster, Object, condition
from cluster.kit.wait import eventually
from rayhelm.live.cluster.kubectl import KubectlError
from rayhelm.processes import Process, create_run_id, start, stop_run
from testbed.control_plane.kubeconfig import with_token
from testbed.tools import program

__all__ = [
    "Adapter",
    "Exposition",
    "Prometheus",
    "adapter",
    "exposition",
    "find_pods",
    "prometheus",
    "redirect",
    "run_prometheus",
]

APIS = {"Pods": "custom.metrics.k8s.io", "External": "external.metrics.k8s.io"}


# -- what is scraped -------------------------------------------------------------------------------------------------


class Exposition:
    """A metrics port that says what a test wants it to."""

    def __init__(self, port: int) -> None:
        self.port = port
        self.text = ""


@contextmanager
def exposition() -> Iterator[Exposition]:
    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            body = said.text.encode()
            self.send_response(200)
            self.send_header("Content-Type", "text/plain; version=0.0.4")
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, format: str, *args: Any) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    said = Exposition(server.server_address[1])
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield said
    finally:
        server.shutdown()
        thread.join(10)
        server.server_close()


# -- Prometheus ------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Prometheus:
    url: str
    process: Process

    def asks(self, query: str) -> list[Object]:
        """The vector that a query answers."""
        answer = httpx.get(f"{self.url}/api/v1/query", params={"query": query}, trust_env=False, timeout=300)
        found: list[Object] = answer.json()["data"]["result"]
        return found

    def targets(self) -> list[Object]:
        """Active targets: `labels`, and `discoveredLabels` before relabeling."""
        answer = httpx.get(f"{self.url}/api/v1/targets", params={"state": "active"}, trust_env=False, timeout=300)
        found: list[Object] = answer.json()["data"]["activeTargets"]
        return found

    @property
    def said(self) -> str:
        return self.process.log.read_text()


@contextmanager
def prometheus(cluster: Cluster, port: int, scrape_configs: str, ports: Mapping[str, int]) -> Iterator[Prometheus]:
    """Scrapes what the chart's configuration finds on the API server. `ports` has the process behind each pod."""
    with tempfile.TemporaryDirectory(prefix="prometheus-") as name:
        config: Object = yaml.safe_load(scrape_configs)
        redirect(config, cluster, ports)
        (Path(name) / "rayhelm.yaml").write_text(yaml.safe_dump(config))
        with run_prometheus(Path(name), {"scrape_config_files": ["rayhelm.yaml"]}, port) as found:
            yield found


@contextmanager
def run_prometheus(folder: Path, config: Object, port: int) -> Iterator[Prometheus]:
    """A Prometheus with this configuration, once promtool has accepted it."""
    run, file = create_run_id(), folder / "prometheus.yaml"
    file.write_text(yaml.safe_dump(config))
    checked = subprocess.run([program("promtool"), "check", "config", file], capture_output=True, text=True)
    assert checked.returncode == 0, checked.stdout + checked.stderr
    command = [str(program("prometheus")), f"--config.file={file}"]
    command += [f"--storage.tsdb.path={folder}/data", f"--web.listen-address=127.0.0.1:{port}"]
    found = Prometheus(f"http://127.0.0.1:{port}", start(command, run=run, log=folder / "prometheus.log"))
    try:
        eventually(lambda: _is_up(found), "Prometheus being ready", shows=lambda: found.said)
        yield found
    finally:
        stop_run(run, grace=10)


def find_pods(config: Object, cluster: Cluster, interval: str) -> None:
    """Let a configuration of a pod read the API server of the tests."""
    for job in config["scrape_configs"]:
        job["scrape_interval"] = job["scrape_timeout"] = interval
        for discovery in job["kubernetes_sd_configs"]:
            discovery["kubeconfig_file"] = str(cluster.place.kubeconfig)


def redirect(config: Object, cluster: Cluster, ports: Mapping[str, int]) -> None:
    """Let a configuration of a pod read the API server of the tests, and processes of this computer in place of pods.

    `ports` has the process behind each pod; a name is a regular expression."""
    find_pods(config, cluster, "1s")
    for job in config["scrape_configs"]:
        job["relabel_configs"] += [
            {
                "source_labels": ["pod"],
                "regex": pod,
                "target_label": "__address__",
                "replacement": f"127.0.0.1:{port}",
            }
            for pod, port in ports.items()
        ]
        job["relabel_configs"].append({"action": "keep", "source_labels": ["__address__"], "regex": r"127\.0\.0\.1:.+"})


def _is_up(found: Prometheus) -> bool:
    assert found.process.is_alive, found.said
    try:
        return httpx.get(f"{found.url}/-/ready", trust_env=False, timeout=5).status_code == 200
    except httpx.HTTPError:
        return False


# -- the adapter -----------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Adapter:
    """The aggregated API, asked through the API server."""

    cluster: Cluster
    process: Process

    def lists(self, api: str) -> set[str]:
        """Names of its numbers; empty without an answer."""
        try:
            found = json.loads(self.cluster.kubectl("get", "--raw", f"/apis/{APIS[api]}/v1beta1"))
        except KubectlError:
            return set()
        return {item["name"].rpartition("/")[2] for item in found["resources"]}

    def of_pods(self, number: str, namespace: str) -> dict[str, float]:
        """By pod."""
        path = f"/apis/{APIS['Pods']}/v1beta1/namespaces/{namespace}/pods/*/{number}"
        return {item["describedObject"]["name"]: _number(item["value"]) for item in self._items(path)}

    def of_service(self, number: str, namespace: str, service: str) -> list[float]:
        """One value, or none."""
        selector = urlencode({"labelSelector": f"rayhelm_dev_service={service}"})
        path = f"/apis/{APIS['External']}/v1beta1/namespaces/{namespace}/{number}?{selector}"
        return [_number(item["value"]) for item in self._items(path)]

    @property
    def said(self) -> str:
        return self.process.log.read_text()

    def _items(self, path: str) -> list[Object]:
        try:
            found: list[Object] = json.loads(self.cluster.kubectl("get", "--raw", path))["items"]
        except KubectlError:
            return []
        return found


@contextmanager
def adapter(cluster: Cluster, namespace: str, release: str) -> Iterator[Adapter]:
    """The managed adapter of a release of the chart platform: its arguments, its rules, and its account's rights."""
    run, name = create_run_id(), f"{release}-metrics"
    with tempfile.TemporaryDirectory(prefix="adapter-") as found:
        folder = Path(found)
        rules = cluster.one("ConfigMap", name, namespace)["data"]["config.yaml"]
        (folder / "config.yaml").write_text(rules)
        token = cluster.kubectl("create", "token", name, f"--namespace={namespace}", "--duration=8760h").strip()
        account = with_token(folder / "kubeconfig", cluster.place.kubeconfig, name, token)
        (container,) = cluster.one("Deployment", name, namespace)["spec"]["template"]["spec"]["containers"]
        places = {"/etc/adapter": found, "/var/run/serving-cert": f"{found}/certificates"}
        arguments = [_moved(argument, places) for argument in container["args"]]
        arguments += [f"--{role}-kubeconfig={account}" for role in ("lister", "authentication", "authorization")]
        command = [str(program("prometheus-adapter")), *arguments, "--bind-address=127.0.0.1"]
        process = start(command, run=run, log=folder / "adapter.log")
        _lead_to_loopback(cluster, namespace, name)
        there = Adapter(cluster, process)
        try:
            eventually(lambda: _is_served(there), "the adapter's APIs being served", shows=lambda: there.said[-3000:])
            yield there
        finally:
            stop_run(run, grace=5)


def _moved(argument: str, places: Mapping[str, str]) -> str:
    for there, here in places.items():
        argument = argument.replace(there, here)
    return argument


def _lead_to_loopback(cluster: Cluster, namespace: str, name: str) -> None:
    """EndpointSlices refuse an address of loopback; a name for it is taken."""
    service = cluster.one("Service", name, namespace)
    ports = [{"name": "https", "port": service["spec"]["ports"][0]["port"]}]
    cluster.kubectl("delete", "service", name, f"--namespace={namespace}")
    cluster.apply(
        {
            "apiVersion": "v1",
            "kind": "Service",
            "metadata": {key: service["metadata"][key] for key in ("name", "namespace", "labels", "annotations")},
            "spec": {"type": "ExternalName", "externalName": "localhost", "ports": ports},
        }
    )


def _is_served(there: Adapter) -> bool:
    assert there.process.is_alive, there.said
    ours = [item for item in there.cluster.all("APIService") if item["spec"].get("group") in APIS.values()]
    return len(ours) == 2 and all(condition(item, "Available") == "True" for item in ours)


def _number(quantity: str) -> float:
    return float(quantity.removesuffix("m")) / 1000 if quantity.endswith("m") else float(quantity)
