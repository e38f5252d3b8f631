"""Start etcd and the API server, and then the controllers and the scheduler.

CRDs come in between. The controller manager reads the list of kinds once and again only every 30 s. A disruption budget
that it looks at meanwhile reports an owner of unknown kind, and is not looked at again before its pods change.
"""

from collections.abc import Callable, Sequence

from rayhelm.live.cluster.kubectl import Kubectl
from rayhelm.processes import find_free_port, wait_until
from testbed.control_plane import components
from testbed.control_plane.certificates import write_certificates
from testbed.control_plane.home import Part
from testbed.control_plane.kubeconfig import with_certificate
from testbed.control_plane.programs import Programs
from testbed.control_plane.running import PATIENCE, ControlPlane, run_of

__all__ = ["start_api_server", "start_controllers", "wait_for_controllers"]

CONTROLLERS = ("kube-controller-manager", "kube-scheduler")


def start_api_server(plane: ControlPlane, programs: Programs, taken: set[int], say: Callable[[str], None]) -> None:
    """Return when it is ready."""
    home = plane.home
    certificates = home.certificates
    write_certificates(certificates)
    server = plane.record.server
    port = int(server.rpartition(":")[2])
    with_certificate(home.kubeconfig, server, certificates, "admin")

    etcd, peers = find_free_port(taken), find_free_port(taken)
    commands: dict[str, tuple[int, Sequence[str]]] = {
        "etcd": (etcd, components.etcd(programs["etcd"], certificates, home.data, etcd, peers)),
        "kube-apiserver": (
            port,
            components.kube_apiserver(programs["kube-apiserver"], certificates, etcd, port),
        ),
    }
    say(f"Kubernetes {programs.kubernetes}")
    for name, (at, command) in commands.items():
        plane.begin(Part(name=name, run=run_of(home, name), command=tuple(command), port=at))
        plane.wait(name)


def start_controllers(plane: ControlPlane, programs: Programs, taken: set[int]) -> None:
    """Return at once: other parts may start in parallel. The controllers exit if the API server does not answer."""
    certificates = plane.home.certificates
    commands = {
        "kube-controller-manager": components.controller_manager,
        "kube-scheduler": components.kube_scheduler,
    }
    for name, command in commands.items():
        kubeconfig = with_certificate(plane.home.folder / f"{name}.kubeconfig", plane.record.server, certificates, name)
        port = find_free_port(taken)
        words = command(programs[name], certificates, kubeconfig, port)
        plane.begin(Part(name=name, run=run_of(plane.home, name), command=tuple(words), port=port))


def wait_for_controllers(plane: ControlPlane, programs: Programs) -> None:
    """Wait until both are well and work: the account `default` is what the controller manager makes in a namespace."""
    for name in CONTROLLERS:
        plane.wait(name)
    kubectl = Kubectl(programs["kubectl"], plane.home.kubeconfig, run=run_of(plane.home, "kubectl"))
    account = ("get", "serviceaccount", "default", "--namespace=default", "--ignore-not-found", "--output=name")
    wait_until(lambda: kubectl(*account).strip() or None, what="the account default", timeout=PATIENCE)
