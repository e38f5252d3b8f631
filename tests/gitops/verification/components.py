"""Argo CD as processes: its controllers, repo server and cache, against the test control plane."""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import httpx
from prometheus_client.parser import text_string_to_metric_families

from cluster.kit.cluster import Cluster
from rayhelm import processes
from rayhelm.deploy.charts.helm import charts_dir
from testbed.tools import program
from testbed.tools.crds import crd_files

__all__ = ["NAMESPACE", "Controller", "run_argocd"]

NAMESPACE = "argocd"
POLL = "5s"
"""Time between two looks at the repository."""


@dataclass(frozen=True)
class Controller:
    """The application controller."""

    metrics: int
    """Port of its metrics."""

    def count(self, name: str) -> float:
        """Return a counter, or the number of observations of a histogram, over all labels."""
        text = httpx.get(f"http://127.0.0.1:{self.metrics}/metrics", timeout=60, trust_env=False).text
        samples = [each for family in text_string_to_metric_families(text) for each in family.samples]
        return sum(each.value for each in samples if each.name in (name, f"{name}_count"))


@contextmanager
def run_argocd(cluster: Cluster, folder: Path) -> Iterator[Controller]:
    """Install the CRDs, the configuration and the health checks, and run Argo CD for the block."""
    prepare(cluster)
    run = processes.create_run_id()
    ports: dict[str, int] = {}
    for name in ("redis", "repo", "repo-metrics", "controller", "sets-metrics", "sets-probe", "sets-webhook"):
        ports[name] = processes.find_free_port(set(ports.values()))
    try:
        start(cluster, folder, run, ports)
        yield Controller(ports["controller"])
    finally:
        processes.stop_run(run)


def prepare(cluster: Cluster) -> None:
    for path in crd_files("argo-cd"):
        cluster.kubectl("apply", "--server-side", "--force-conflicts", "-f", str(path))
    labels = {"app.kubernetes.io/part-of": "argocd"}
    config = {
        "timeout.reconciliation": POLL,
        "timeout.reconciliation.jitter": "0s",
        "application.resourceTrackingMethod": "annotation",
    }
    namespace = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": NAMESPACE}}
    objects = [
        {"apiVersion": "v1", "kind": kind, "metadata": {"name": name, "labels": labels}, key: data}
        for kind, name, key, data in (
            ("ConfigMap", "argocd-cm", "data", config),
            ("ConfigMap", "argocd-rbac-cm", "data", {}),
            ("Secret", "argocd-secret", "stringData", {"server.secretkey": "not a secret: a test"}),
        )
    ]
    project = {
        "apiVersion": "argoproj.io/v1alpha1",
        "kind": "AppProject",
        "metadata": {"name": "default"},
        "spec": {
            "sourceRepos": ["*"],
            "destinations": [{"server": "*", "namespace": "*"}],
            "clusterResourceWhitelist": [{"group": "*", "kind": "*"}],
        },
    }
    cluster.apply(namespace)
    cluster.apply(*objects, project, namespace=NAMESPACE)
    # The documented command.
    patch = charts_dir() / "argocd/files/argocd-cm.yaml"
    cluster.kubectl("patch", "configmap", "argocd-cm", f"--namespace={NAMESPACE}", "--patch-file", str(patch))


def start(cluster: Cluster, folder: Path, run: str, ports: dict[str, int]) -> None:
    binary, bin_folder = program("argocd"), folder / "bin"
    bin_folder.mkdir(parents=True, exist_ok=True)
    # argv[0] decides which component runs; the repo server calls `helm`, which is Helm 3 in Argo CD 3.2.
    for name in ("argocd-repo-server", "argocd-application-controller", "argocd-applicationset-controller"):
        (bin_folder / name).symlink_to(binary)
    (bin_folder / "helm").symlink_to(program("helm3"))
    for name in ("tls", "ssh", "gpg", "tmp", "home"):
        (folder / name).mkdir(exist_ok=True)
    (folder / "ssh/ssh_known_hosts").touch()
    env = {
        **os.environ,
        "PATH": f"{bin_folder}:{os.environ['PATH']}",
        "KUBECONFIG": str(cluster.place.kubeconfig),
        "HOME": str(folder / "home"),
        "TMPDIR": str(folder / "tmp"),
        "ARGOCD_FAKE_IN_CLUSTER": "true",
        "ARGOCD_GPG_ENABLED": "false",
        "ARGOCD_TLS_DATA_PATH": str(folder / "tls"),
        "ARGOCD_SSH_DATA_PATH": str(folder / "ssh"),
        "ARGOCD_GNUPGHOME": str(folder / "gpg"),
        "ARGOCD_CONTROLLER_REPLICAS": "1",
        "ARGOCD_RECONCILIATION_JITTER": "0",
        # Argo CD 3 keeps the health of each object out of the Application.
        "ARGOCD_APPLICATION_CONTROLLER_PERSIST_RESOURCE_HEALTH": "true",
        "ARGOCD_RECONCILIATION_TIMEOUT": POLL,
    }
    redis, repo = f"127.0.0.1:{ports['redis']}", f"127.0.0.1:{ports['repo']}"
    processes.start([str(program("argocd-redis")), redis], run=run, log=folder / "redis.log", env=env)
    server = [str(bin_folder / "argocd-repo-server"), "--redis", redis, "--disable-tls", "--port", str(ports["repo"])]
    server += ["--metrics-port", str(ports["repo-metrics"]), "--address", "127.0.0.1", "--metrics-address", "127.0.0.1"]
    processes.start(server, run=run, log=folder / "repo-server.log", env=env)
    controller = [str(bin_folder / "argocd-application-controller"), "--redis", redis, "--repo-server", repo]
    controller += ["--repo-server-plaintext", "--metrics-port", str(ports["controller"]), "--app-resync", "5"]
    controller += ["--namespace", NAMESPACE, "--self-heal-timeout-seconds", "2"]
    # By default it shows for three minutes what it saw before an error of the repository.
    controller += ["--repo-error-grace-period-seconds", "10"]
    processes.start(controller, run=run, log=folder / "controller.log", env=env)
    sets = [
        str(bin_folder / "argocd-applicationset-controller"),
        "--namespace",
        NAMESPACE,
        "--enable-progressive-syncs",
    ]
    sets += ["--argocd-repo-server", repo, "--repo-server-plaintext"]
    for flag in ("metrics", "probe", "webhook"):
        sets += [f"--{flag}-addr", f"127.0.0.1:{ports[f'sets-{flag}']}"]
    processes.start(sets, run=run, log=folder / "applicationset-controller.log", env=env)
