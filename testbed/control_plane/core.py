"""Start etcd, the API server, the controllers and the scheduler."""

from collections.abc import Callable, Sequence

from rayhelm.processes import find_free_port
from testbed.control_plane import components
from testbed.control_plane.certificates import write_certificates
from testbed.control_plane.home import Part
from testbed.control_plane.kubeconfig import with_certificate
from testbed.control_plane.programs import Programs
from testbed.control_plane.running import ControlPlane, run_of

__all__ = ["start"]


def start(plane: ControlPlane, programs: Programs, taken: set[int], say: Callable[[str], None]) -> None:
    home = plane.home
    certificates = home.certificates
    write_certificates(certificates)
    server = plane.record.server
    port = int(server.rpartition(":")[2])
    users = {user: home.folder / f"{user}.kubeconfig" for user in ("kube-controller-manager", "kube-scheduler")}
    for user, path in users.items():
        with_certificate(path, server, certificates, user)
    with_certificate(home.kubeconfig, server, certificates, "admin")

    etcd, peers, controllers, scheduler = (find_free_port(taken) for _ in range(4))
    commands: dict[str, tuple[int, Sequence[str]]] = {
        "etcd": (etcd, components.etcd(programs["etcd"], certificates, home.data, etcd, peers)),
        "kube-apiserver": (
            port,
            components.kube_apiserver(programs["kube-apiserver"], certificates, etcd, port),
        ),
        "kube-controller-manager": (
            controllers,
            components.controller_manager(
                programs["kube-controller-manager"], certificates, users["kube-controller-manager"], controllers
            ),
        ),
        "kube-scheduler": (
            scheduler,
            components.kube_scheduler(programs["kube-scheduler"], certificates, users["kube-scheduler"], scheduler),
        ),
    }
    say(f"Kubernetes {programs.kubernetes}")
    for name, (at, command) in commands.items():
        plane.begin(Part(name=name, run=run_of(home, name), command=tuple(command), port=at))
        # The controllers exit if the API server does not answer. They may start in parallel.
        if name in ("etcd", "kube-apiserver"):
            plane.wait(name)
