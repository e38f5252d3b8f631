"""Command lines of the four programs of a control plane."""

from pathlib import Path

__all__ = ["CORE", "controller_manager", "etcd", "kube_apiserver", "kube_scheduler"]

CORE = ("etcd", "kube-apiserver", "kube-controller-manager", "kube-scheduler")
"""Programs in the order of their start."""

SERVICE_ADDRESSES = "10.96.0.0/16"


def etcd(program: Path, certificates: Path, data: Path, port: int, peers: int) -> list[str]:
    client, peer = f"https://127.0.0.1:{port}", f"https://127.0.0.1:{peers}"
    return [
        *[str(program), f"--data-dir={data}", "--log-level=warn", "--name=etcd"],
        *[f"--listen-client-urls={client}", f"--advertise-client-urls={client}"],
        *[f"--listen-peer-urls={peer}", f"--initial-advertise-peer-urls={peer}", f"--initial-cluster=etcd={peer}"],
        *[f"--cert-file={certificates}/server.crt", f"--key-file={certificates}/server.key"],
        *["--client-cert-auth", f"--trusted-ca-file={certificates}/ca.crt"],
        *[f"--peer-cert-file={certificates}/server.crt", f"--peer-key-file={certificates}/server.key"],
        *["--peer-client-cert-auth", f"--peer-trusted-ca-file={certificates}/ca.crt"],
        "--unsafe-no-fsync",  # test data may be lost; fsync would slow down every write
    ]


def kube_apiserver(program: Path, certificates: Path, etcd_port: int, port: int) -> list[str]:
    return [
        *[str(program), "--bind-address=127.0.0.1", f"--secure-port={port}", f"--cert-dir={certificates}"],
        *[f"--etcd-servers=https://127.0.0.1:{etcd_port}", f"--etcd-cafile={certificates}/ca.crt"],
        *[f"--etcd-certfile={certificates}/server.crt", f"--etcd-keyfile={certificates}/server.key"],
        *[f"--tls-cert-file={certificates}/server.crt", f"--tls-private-key-file={certificates}/server.key"],
        *[f"--client-ca-file={certificates}/ca.crt", "--authorization-mode=Node,RBAC", "--anonymous-auth=false"],
        *[f"--service-account-key-file={certificates}/tokens.crt"],
        *[f"--service-account-signing-key-file={certificates}/tokens.key"],
        "--service-account-issuer=https://kubernetes.default.svc",
        f"--service-cluster-ip-range={SERVICE_ADDRESSES}",
        "--endpoint-reconciler-type=none",  # EndpointSlices refuse an address of loopback
        # For aggregated APIs, such as a metrics adapter.
        *[f"--requestheader-client-ca-file={certificates}/proxy-ca.crt", "--requestheader-allowed-names=front-proxy"],
        *["--requestheader-username-headers=X-Remote-User", "--requestheader-group-headers=X-Remote-Group"],
        "--requestheader-extra-headers-prefix=X-Remote-Extra-",
        *[f"--proxy-client-cert-file={certificates}/proxy.crt", f"--proxy-client-key-file={certificates}/proxy.key"],
        *["--profiling=false", "--allow-privileged=true", "--event-ttl=30m"],
    ]


def controller_manager(program: Path, certificates: Path, kubeconfig: Path, port: int) -> list[str]:
    return [
        *[str(program), *_build_client_options(kubeconfig, port), f"--cert-dir={certificates}"],
        *["--use-service-account-credentials", f"--root-ca-file={certificates}/ca.crt"],
        f"--service-account-private-key-file={certificates}/tokens.key",
        # Many short tests create and delete namespaces.
        *["--kube-api-qps=200", "--kube-api-burst=400", "--horizontal-pod-autoscaler-sync-period=5s"],
        # A quota counts objects of a new CRD after this time; the default is 5 minutes.
        "--resource-quota-sync-period=30s",
    ]


def kube_scheduler(program: Path, certificates: Path, kubeconfig: Path, port: int) -> list[str]:
    return [*[str(program), *_build_client_options(kubeconfig, port), f"--cert-dir={certificates}"]]


def _build_client_options(kubeconfig: Path, port: int) -> list[str]:
    roles = [
        f"--{role}={kubeconfig}" for role in ("kubeconfig", "authentication-kubeconfig", "authorization-kubeconfig")
    ]
    return [*roles, "--bind-address=127.0.0.1", f"--secure-port={port}", "--leader-elect=false", "--profiling=false"]
