"""The real operator and metrics server of KEDA, as processes beside the API server."""

import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import trustme

from cluster.kit.cluster import Cluster, condition
from cluster.kit.wait import eventually
from rayhelm.processes import Process, create_run_id, find_free_port, start, stop_run
from testbed.tools import program

__all__ = ["PROGRAMS", "Keda", "keda"]

PROGRAMS = ("keda-operator", "keda-adapter")
API = "v1beta1.external.metrics.k8s.io"
SERVICE = "keda-metrics-apiserver"


@dataclass(frozen=True)
class Keda:
    operator: Process
    adapter: Process

    @property
    def said(self) -> str:
        """The end of both logs."""
        return "\n".join(each.log.read_text()[-4000:] for each in (self.operator, self.adapter))


@contextmanager
def keda(cluster: Cluster, namespace: str) -> Iterator[Keda]:
    """Runs as administrator. Its metrics server is registered as the API of external metrics."""
    run, taken = create_run_id(), set[int]()
    secure, grpc, metrics, probe, plain = (find_free_port(taken) for _ in range(5))
    with tempfile.TemporaryDirectory(prefix="keda-") as name:
        folder = Path(name)
        _write_certificates(folder)
        environment = {**os.environ, "POD_NAMESPACE": namespace, "KEDA_CLUSTER_OBJECT_NAMESPACE": namespace}
        environment |= {"WATCH_NAMESPACE": ""}
        kubeconfig = cluster.place.kubeconfig
        operator = [str(program("keda-operator")), f"--kubeconfig={kubeconfig}", f"--cert-dir={folder}"]
        operator += ["--enable-cert-rotation=false", "--zap-log-level=info"]
        operator += [f"--metrics-service-bind-address=127.0.0.1:{grpc}", f"--metrics-bind-address=127.0.0.1:{metrics}"]
        operator += [f"--health-probe-bind-address=127.0.0.1:{probe}"]
        adapter = [str(program("keda-adapter")), f"--kubeconfig={kubeconfig}", f"--lister-kubeconfig={kubeconfig}"]
        adapter += [f"--{role}-kubeconfig={kubeconfig}" for role in ("authentication", "authorization")]
        adapter += [f"--metrics-service-address=localhost:{grpc}", f"--port={plain}", f"--cert-dir={folder}"]
        adapter += [f"--tls-cert-file={folder}/tls.crt", f"--tls-private-key-file={folder}/tls.key"]
        adapter += [f"--secure-port={secure}", "--bind-address=127.0.0.1"]
        try:
            found = Keda(
                start(operator, run=run, log=folder / "operator.log", env=environment),
                start(adapter, run=run, log=folder / "adapter.log", env=environment),
            )
            _register(cluster, namespace, secure)
            eventually(lambda: _is_served(cluster, found), "KEDA's API being served", shows=lambda: found.said)
            yield found
        finally:
            stop_run(run, grace=5)
            cluster.delete("apiservice", API)


def _write_certificates(folder: Path) -> None:
    authority = trustme.CA()
    leaf = authority.issue_cert("localhost", "127.0.0.1")
    authority.cert_pem.write_to_path(str(folder / "ca.crt"))
    leaf.private_key_pem.write_to_path(str(folder / "tls.key"))
    leaf.cert_chain_pems[0].write_to_path(str(folder / "tls.crt"))


def _register(cluster: Cluster, namespace: str, port: int) -> None:
    """EndpointSlices refuse an address of loopback; a name for it is taken."""
    spec = {"type": "ExternalName", "externalName": "localhost", "ports": [{"name": "https", "port": port}]}
    reference = {"name": SERVICE, "namespace": namespace, "port": port}
    cluster.apply(
        {"apiVersion": "v1", "kind": "Service", "metadata": {"name": SERVICE, "namespace": namespace}, "spec": spec},
        {
            "apiVersion": "apiregistration.k8s.io/v1",
            "kind": "APIService",
            "metadata": {"name": API},
            "spec": {
                **{"group": "external.metrics.k8s.io", "version": "v1beta1", "service": reference},
                **{"groupPriorityMinimum": 100, "versionPriority": 100, "insecureSkipTLSVerify": True},
            },
        },
    )


def _is_served(cluster: Cluster, found: Keda) -> bool:
    assert found.operator.is_alive, found.said
    assert found.adapter.is_alive, found.said
    api = cluster.find("APIService", API)
    return api is not None and condition(api, "Available") == "True"
