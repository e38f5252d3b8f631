"""Command lines of the programs of a node and its control plane, which run in the node's namespaces."""

from pathlib import Path

from testbed.control_plane import components as bare
from testbed.node.home import NODE, NodeHome
from testbed.node.network import Network
from testbed.node.settings import PORTS

__all__ = ["containerd", "control_plane", "kube_proxy", "kube_router", "kubelet"]


def control_plane(programs: dict[str, Path], home: NodeHome, network: Network) -> dict[str, list[str]]:
    """Return the command lines of testbed.control_plane with additional options; the last value of an option
    applies."""
    certificates, node = home.certificates, network.node
    here = f"--bind-address={node}"
    etcd, peers, controllers, scheduler = 2379, 2380, "kube-controller-manager", "kube-scheduler"
    return {
        "etcd": [
            *bare.etcd(programs["etcd"], certificates, home.data, etcd, peers),
            f"--listen-metrics-urls=http://{node}:{PORTS['etcd']}",
        ],
        "kube-apiserver": [
            *bare.kube_apiserver(programs["kube-apiserver"], certificates, etcd, PORTS["kube-apiserver"]),
            *[here, f"--advertise-address={node}", "--endpoint-reconciler-type=lease"],
            f"--service-cluster-ip-range={network.services}",
            *[f"--kubelet-certificate-authority={certificates}/ca.crt", "--enable-admission-plugins=NodeRestriction"],
            *[
                f"--kubelet-client-certificate={certificates}/admin.crt",
                f"--kubelet-client-key={certificates}/admin.key",
            ],
            "--kubelet-preferred-address-types=InternalIP",
        ],
        controllers: [
            *bare.controller_manager(
                programs[controllers], certificates, _find_kubeconfig(home, controllers), PORTS[controllers]
            ),
            *[here, "--allocate-node-cidrs", f"--cluster-cidr={network.pods}"],
            f"--service-cluster-ip-range={network.services}",
        ],
        scheduler: [
            *bare.kube_scheduler(
                programs[scheduler], certificates, _find_kubeconfig(home, scheduler), PORTS[scheduler]
            ),
            here,
        ],
    }


def containerd(program: Path, home: NodeHome) -> list[str]:
    return [str(program), f"--config={home.config}/containerd.toml", "--log-level=warn"]


def kubelet(program: Path, home: NodeHome, network: Network) -> list[str]:
    return [
        *[str(program), f"--config={home.config}/kubelet.yaml", f"--kubeconfig={_find_kubeconfig(home, 'kubelet')}"],
        *[f"--hostname-override={NODE}", f"--node-ip={network.node}", "--root-dir=/var/lib/kubelet"],
    ]


def kube_proxy(program: Path, home: NodeHome) -> list[str]:
    return [str(program), f"--config={home.config}/kube-proxy.yaml"]


def kube_router(program: Path, home: NodeHome, network: Network) -> list[str]:
    return [
        *[str(program), f"--kubeconfig={_find_kubeconfig(home, 'kube-router')}", f"--hostname-override={NODE}"],
        *["--run-firewall=true", "--run-router=false", "--run-service-proxy=false"],
        *[f"--service-cluster-ip-range={network.services}", f"--health-port={PORTS['kube-router']}"],
    ]


def _find_kubeconfig(home: NodeHome, user: str) -> Path:
    return home.folder / f"{user}.kubeconfig"
