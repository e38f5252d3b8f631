"""Start a node, if none runs."""

import json
import os
from collections.abc import Callable
from pathlib import Path
from string import Template

import yaml

from rayhelm.errors import MissingError, UsageError
from rayhelm.live.cluster.kubectl import Kubectl
from rayhelm.processes import wait_until
from testbed.control_plane.certificates import CLIENTS, write_certificates
from testbed.control_plane.home import Part, Record
from testbed.control_plane.kubeconfig import with_certificate
from testbed.control_plane.lock import alone
from testbed.control_plane.running import run_of
from testbed.node import cgroups, components, images, namespace, settings
from testbed.node.down import alive, clear
from testbed.node.home import NODE, NodeHome
from testbed.node.host import check
from testbed.node.network import Network
from testbed.node.operator import install_operator
from testbed.node.running import ORDER, Node
from testbed.tools import crd_files, found, missing, program

__all__ = ["CONTROL_PLANE", "Say", "touches", "up"]

Say = Callable[[str], None]

CONTROL_PLANE = ("etcd", "kube-apiserver", "kube-controller-manager", "kube-scheduler")
PLUGINS = ("bridge", "host-local", "loopback", "portmap")
MANIFESTS = Path(__file__).with_name("manifests")
USERS = {
    **CLIENTS,
    "kubelet": (f"system:node:{NODE}", "system:nodes"),
    "kube-proxy": ("system:kube-proxy", None),
    "kube-router": ("kube-router", None),
}
"""User and group by certificate."""


def touches(home: NodeHome, network: Network) -> str:
    """Describe the changes of `up` outside of the node's namespaces."""
    return f"""a node on this computer, as root; `ci/node down` removes all of it:
  interface {home.cable}, with {network.host}, and routes through it to {network.pods} and {network.services}
  cgroups {home.cgroup} in {cgroups.ROOT}
  files in {home.folder}
  everything else (its network with all nftables and iptables rules, mounts, kernel settings, processes) is made in
  Linux namespaces of its own, which end with its processes; the host's interfaces, rules, default route and
  resolv.conf are not touched"""


def up(
    home: NodeHome,
    network: Network,
    *,
    operator: bool = True,
    agree: Callable[[str], None] = lambda text: None,
    say: Say = print,
) -> Node:
    """Return a ready node with DNS, network policies and, if `operator`, the KubeRay operator. A healthy node that
    already runs is reused, and gets the operator if it lacks it.

    `agree` receives a description of the changes, and raises an error to refuse them.

    Raises MissingError with everything that this computer lacks, and the errors of rayhelm.processes if a part does not
    start."""
    _has_tools(operator)
    with alone(home, say):
        if node := _find_running(home, network):
            return _with_operator(node, say) if operator and not node.record.kuberay else node
        if home.folder.exists() or alive(home):
            say("removing the remains of another node")
            clear(home, say)
        check(home, network)
        agree(touches(home, network))
        kept = home.kept.exists()
        try:
            node = _start_new(home, network, say)
            return _with_operator(node, say) if operator else node
        except BaseException:
            clear(home, say, keep_images=kept, logs=True)
            raise


def _has_tools(operator: bool) -> None:
    lacks = [name for name in (*CONTROL_PLANE, "kubectl", "kuberay-operator") if name in missing()]
    if lacks := [*lacks, *missing(group="node")]:
        raise MissingError(f"not built yet: {', '.join(lacks)}", "make node")
    if operator:
        crd_files("kuberay", version=found("kuberay-operator").version)


def _find_running(home: NodeHome, network: Network) -> Node | None:
    record = home.record()
    if record is None or not record.complete:
        return None
    node = Node(home, network)
    if str(network.node) not in record.server:
        raise UsageError(f"a node already runs at {record.server}: `ci/node down` stops it")
    return node if all(node.is_healthy(part) for part in record.parts) else None


def _start_new(home: NodeHome, network: Network, say: Say) -> Node:
    say("images of one program")
    layouts = images.small_ones()

    kubernetes = found("kube-apiserver").version
    server = f"https://{network.node}:{settings.PORTS['kube-apiserver']}"
    home.write(Record(kubernetes=kubernetes, kuberay="", server=server))
    if home.kept.exists():
        say("kept images")
        home.lib.mkdir()
        home.kept.rename(home.lib / "containerd")
    _write_files(home, network, server)
    (home.folder / "switched.json").write_text(json.dumps(cgroups.make(home.cgroup)))

    say("namespaces and a veth pair")
    node = Node(home, network)
    holder, pid = namespace.start(home)
    run = run_of(home, namespace.INIT)
    node.home.write(
        node.record.with_part(
            Part(name=namespace.INIT, run=run, command=(), port=0, pid=holder.pid, created=holder.created)
        )
    )
    (home.folder / "pid").write_text(str(pid))
    namespace.plug(home, network, pid)

    say(f"Kubernetes {kubernetes}")
    for name, command in components.control_plane(
        {name: program(name) for name in CONTROL_PLANE}, home, network
    ).items():
        _begin(node, pid, name, command)
        if name in ("etcd", "kube-apiserver"):
            node.wait(name)
    kubectl = _create_kubectl(home)
    kubectl.apply_files(MANIFESTS / "kube-router.yaml")

    say("containerd, kubelet, kube-proxy, kube-router")
    _begin(node, pid, "containerd", components.containerd(program("containerd"), home), _build_path())
    node.wait("containerd")
    for layout in layouts:
        images.give(home, pid, layout, "node")
    _begin(node, pid, "kubelet", components.kubelet(program("kubelet"), home, network), _build_path())
    _begin(node, pid, "kube-proxy", components.kube_proxy(program("kube-proxy"), home))
    # kube-router exits if the node is not registered.
    _wait_until_registered(kubectl)
    _begin(node, pid, "kube-router", components.kube_router(program("kube-router"), home, network))
    for name in ORDER:
        node.wait(name)

    say("names")
    _start_dns(kubectl, network)
    node.home.write(node.record.model_copy(update={"complete": True}))
    return node


def _with_operator(node: Node, say: Say) -> Node:
    say("KubeRay")
    version = install_operator(_create_kubectl(node.home))
    node.home.write(node.record.model_copy(update={"kuberay": version}))
    return node


def _create_kubectl(home: NodeHome) -> Kubectl:
    return Kubectl(program("kubectl"), home.kubeconfig, run=run_of(home, "kubectl"))


def _begin(node: Node, pid: int, name: str, command: list[str], environment: dict[str, str] | None = None) -> None:
    node.begin(
        Part(
            name=name,
            run=run_of(node.home, name),
            command=tuple(namespace.enter(pid, command)),
            port=settings.PORTS[name],
            environment=environment or {},
        )
    )


def _build_path() -> dict[str, str]:
    """Return PATH with the folders of runc and its shim, where containerd looks for them."""
    ours = {str(program(name).parent): None for name in ("containerd-shim-runc-v2", "runc")}
    return {"PATH": ":".join([*ours, os.environ.get("PATH", ""), "/usr/sbin", "/sbin"])}


def _write_files(home: NodeHome, network: Network, server: str) -> None:
    names = (
        str(network.node),
        str(network.api),
        NODE,
        "127.0.0.1",
        "localhost",
        "kubernetes",
        "kubernetes.default.svc",
    )
    write_certificates(home.certificates, names, USERS)
    with_certificate(home.kubeconfig, server, home.certificates, "admin")
    for user in USERS:
        with_certificate(home.folder / f"{user}.kubeconfig", server, home.certificates, user)

    plugins, networks = home.config / "plugins", home.config / "networks"
    for folder in (plugins, networks):
        folder.mkdir(parents=True)
    for name in PLUGINS:
        (plugins / name).symlink_to(program(name))
    (networks / "pods.conflist").write_text(json.dumps(settings.cni(network), indent=2))
    (home.config / "resolv.conf").touch()
    (home.config / "containerd.toml").write_text(settings.containerd(network, plugins, networks))
    kubelet = settings.kubelet(network, home.certificates, home.cgroup, home.config / "resolv.conf")
    proxy = settings.kube_proxy(network, home.folder / "kube-proxy.kubeconfig")
    for name, content in (("kubelet", kubelet), ("kube-proxy", proxy)):
        (home.config / f"{name}.yaml").write_text(yaml.safe_dump(content, sort_keys=False))


def _wait_until_registered(kubectl: Kubectl) -> None:
    """Wait until the kubelet has registered the node."""
    wait_until(
        lambda: kubectl("get", "node", NODE, "--ignore-not-found", "--output=name") or None,
        what=f"node {NODE}",
        timeout=120,
    )


def _start_dns(kubectl: Kubectl, network: Network) -> None:
    kubectl("wait", "node", NODE, "--for=condition=Ready", "--timeout=180s")
    text = Template((MANIFESTS / "coredns.yaml").read_text()).substitute(
        dns=network.dns, image="rayhelm.local/coredns:node", corefile=json.dumps(settings.corefile())
    )
    kubectl.apply(text)
    kubectl("rollout", "status", "deployment/coredns", "--namespace=kube-system", "--timeout=300s")
