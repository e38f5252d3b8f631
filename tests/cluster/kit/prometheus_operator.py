"""The real Prometheus Operator as a process, and the configuration that it makes for a Prometheus object."""

import base64
import gzip
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import yaml

from cluster.kit.cluster import Cluster, Object
from cluster.kit.metrics import Prometheus, find_pods, redirect, run_prometheus
from rayhelm.processes import Process, create_run_id, find_free_port, start, stop_run
from testbed.control_plane.kubeconfig import server_of
from testbed.tools import program

__all__ = ["SELECTED", "Operator", "operator"]

SELECTED = {"release": "stack"}
"""Labels of the objects that the Prometheus object selects."""
NAME = "stack"
VARIABLES = {"SHARD": "0", "POD_NAME": f"prometheus-{NAME}-0"}
"""Variables that the reloader beside Prometheus fills in."""


@dataclass(frozen=True)
class Operator:
    cluster: Cluster
    namespace: str
    """Namespace of its Prometheus object."""
    process: Process
    exported: int
    """Port of the process that answers for every pod; 0 if pods answer for themselves."""

    def config(self) -> Object:
        """What it has made so far; empty before the first time."""
        assert self.process.is_alive, self.said
        secret = self.cluster.find("Secret", f"prometheus-{NAME}", self.namespace)
        text = (secret or {}).get("data", {}).get("prometheus.yaml.gz", "")
        if not text:
            return {}
        config = gzip.decompress(base64.b64decode(text)).decode()
        for variable, value in VARIABLES.items():
            config = config.replace(f"$({variable})", value)
        return dict(yaml.safe_load(config))

    def jobs(self) -> set[str]:
        return {job["job_name"] for job in self.config().get("scrape_configs") or []}

    def rules(self) -> dict[str, str]:
        """Rule files by name."""
        found = self.cluster.find("ConfigMap", f"prometheus-{NAME}-rulefiles-0", self.namespace)
        return dict((found or {}).get("data") or {})

    @property
    def said(self) -> str:
        return self.process.log.read_text()

    @contextmanager
    def prometheus(self) -> Iterator[Prometheus]:
        """A Prometheus with its configuration and its rules."""
        with tempfile.TemporaryDirectory(prefix="prometheus-operator-") as name:
            folder, config = Path(name), self.config()
            (folder / "rules").mkdir()
            for file, text in self.rules().items():
                (folder / "rules" / file).write_text(text)
            config["rule_files"] = [f"{folder}/rules/*.yaml"]
            config["global"]["evaluation_interval"] = "1s"
            if self.exported:
                redirect(config, self.cluster, {".+": self.exported})
            else:
                find_pods(config, self.cluster, "5s")
            with run_prometheus(folder, config, find_free_port(set())) as found:
                yield found


@contextmanager
def operator(cluster: Cluster, namespace: str, exported: int) -> Iterator[Operator]:
    """Runs as administrator, with a Prometheus object that selects objects of all namespaces by their labels."""
    run, everywhere, ours = create_run_id(), {}, {"matchLabels": SELECTED}
    kinds = ("podMonitor", "scrapeConfig", "rule", "serviceMonitor", "probe")
    selectors = {f"{kind}Selector": ours for kind in kinds} | {f"{kind}NamespaceSelector": everywhere for kind in kinds}
    with tempfile.TemporaryDirectory(prefix="prometheus-operator-") as name:
        folder, kubeconfig = Path(name), yaml.safe_load(cluster.place.kubeconfig.read_bytes())
        user, there = kubeconfig["users"][0]["user"], kubeconfig["clusters"][0]["cluster"]
        for file, text in (
            ("ca", there["certificate-authority-data"]),
            ("cert", user["client-certificate-data"]),
            ("key", user["client-key-data"]),
        ):
            (folder / file).write_bytes(base64.b64decode(text))
        command = [str(program("prometheus-operator")), f"--apiserver={server_of(cluster.place.kubeconfig)}"]
        command += [f"--{file}-file={folder / file}" for file in ("ca", "cert", "key")]
        command += [
            f"--web.listen-address=127.0.0.1:{find_free_port(set())}",
            f"--prometheus-instance-namespaces={namespace}",
        ]
        cluster.apply(
            {
                "apiVersion": "monitoring.coreos.com/v1",
                "kind": "Prometheus",
                "metadata": {"name": NAME, "namespace": namespace},
                "spec": {"replicas": 0, "version": "v3.5.0", **selectors},
            }
        )
        try:
            yield Operator(cluster, namespace, start(command, run=run, log=folder / "log"), exported)
        finally:
            stop_run(run, grace=5)
