"""The configuration files of containerd, CNI, kubelet, kube-proxy and CoreDNS, as data."""

from pathlib import Path
from typing import Any

from testbed.node.home import NODE
from testbed.node.network import Network

__all__ = ["CONTAINERD", "PORTS", "SANDBOX", "cni", "containerd", "corefile", "kube_proxy", "kubelet"]

CONTAINERD = "/run/containerd/containerd.sock"
"""Path in the node."""

SANDBOX = "rayhelm.local/agnhost:node"
"""Image of the pause container of every pod."""

PORTS = {
    "etcd": 2381,
    "kube-apiserver": 6443,
    "kube-controller-manager": 10257,
    "kube-scheduler": 10259,
    "containerd": 1338,
    "kubelet": 10248,
    "kube-proxy": 10256,
    "kube-router": 20244,
}
"""Health ports of the parts on the node's address, where no other process listens."""


def containerd(network: Network, plugins: Path, networks: Path) -> str:
    """`plugins` and `networks` are the folders of CNI."""
    return f"""version = 3
root = "/var/lib/containerd"
state = "/run/containerd"

[grpc]
address = "{CONTAINERD}"

[metrics]
address = "{network.node}:{PORTS["containerd"]}"

[plugins."io.containerd.cri.v1.images".pinned_images]
sandbox = "{SANDBOX}"

# runc fails to lower oom_score_adj without CAP_SYS_RESOURCE.
[plugins."io.containerd.cri.v1.runtime"]
restrict_oom_score_adj = true
# An AppArmor profile would be loaded into the host's kernel and stay there.
disable_apparmor = true

[plugins."io.containerd.cri.v1.runtime".cni]
bin_dirs = ["{plugins}"]
conf_dir = "{networks}"

[plugins."io.containerd.cri.v1.runtime".containerd]
default_runtime_name = "runc"

[plugins."io.containerd.cri.v1.runtime".containerd.runtimes.runc]
runtime_type = "io.containerd.runc.v2"
"""


def cni(network: Network) -> dict[str, Any]:
    """Return the CNI configuration. Without address translation, pods reach only each other and the host."""
    ranges = [[{"subnet": str(network.pods)}]]
    return {
        "cniVersion": "1.0.0",
        "name": "pods",
        "plugins": [
            {
                "type": "bridge",
                "bridge": "cni0",
                "isGateway": True,
                "ipMasq": False,
                "hairpinMode": True,
                "ipam": {"type": "host-local", "ranges": ranges, "routes": [{"dst": "0.0.0.0/0"}]},
            },
            {"type": "portmap", "capabilities": {"portMappings": True}},
        ],
    }


def kubelet(network: Network, certificates: Path, cgroup: str, names: Path) -> dict[str, Any]:
    """Return the configuration of the kubelet. `names`: file that replaces the host's resolv.conf."""
    return {
        "apiVersion": "kubelet.config.k8s.io/v1beta1",
        "kind": "KubeletConfiguration",
        "address": str(network.node),
        "healthzBindAddress": str(network.node),
        "healthzPort": PORTS["kubelet"],
        "tlsCertFile": f"{certificates}/server.crt",
        "tlsPrivateKeyFile": f"{certificates}/server.key",
        "authentication": {
            "anonymous": {"enabled": False},
            "webhook": {"enabled": True},
            "x509": {"clientCAFile": f"{certificates}/ca.crt"},
        },
        "authorization": {"mode": "Webhook"},
        "containerRuntimeEndpoint": f"unix://{CONTAINERD}",
        "cgroupDriver": "cgroupfs",
        "cgroupRoot": f"/{cgroup}",
        "enforceNodeAllocatable": [],
        "failCgroupV1": False,
        "failSwapOn": False,
        "clusterDomain": "cluster.local",
        "clusterDNS": [str(network.dns)],
        "resolvConf": str(names),
        "volumePluginDir": "/var/lib/kubelet/plugins-of-volumes",
        # No image garbage collection: images are large and cannot be pulled again.
        "imageGCHighThresholdPercent": 100,
        "evictionHard": {
            "memory.available": "200Mi",
            "nodefs.available": "1%",
            "nodefs.inodesFree": "1%",
            "imagefs.available": "1%",
        },
        "oomScoreAdj": 0,
        # Tests create and delete pods quickly.
        "nodeStatusReportFrequency": "1m",
        "nodeStatusUpdateFrequency": "5s",
        "serializeImagePulls": False,
    }


def kube_proxy(network: Network, kubeconfig: Path) -> dict[str, Any]:
    return {
        "apiVersion": "kubeproxy.config.k8s.io/v1alpha1",
        "kind": "KubeProxyConfiguration",
        "mode": "nftables",
        "hostnameOverride": NODE,
        "clientConnection": {"kubeconfig": str(kubeconfig)},
        "clusterCIDR": str(network.pods),
        "healthzBindAddress": f"{network.node}:{PORTS['kube-proxy']}",
        "metricsBindAddress": "127.0.0.1:10249",
        # Otherwise kube-proxy sets kernel limits.
        "conntrack": {"maxPerCore": 0, "min": 0, "tcpEstablishedTimeout": "0s", "tcpCloseWaitTimeout": "0s"},
        "oomScoreAdj": 0,
    }


def corefile() -> str:
    """Return the Corefile. External names do not exist. There are two server blocks, because in a single one the
    template would answer before the cluster."""
    return """cluster.local:53 in-addr.arpa:53 ip6.arpa:53 {
    errors
    health
    ready
    kubernetes cluster.local in-addr.arpa ip6.arpa
    cache 5
}
.:53 {
    errors
    template ANY ANY . {
        rcode NXDOMAIN
    }
}
"""
