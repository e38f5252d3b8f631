"""What makes a control plane a testbed: CRDs, accounts, the KubeRay operator, KWOK and the Ray stand-in.

The three programs run beside the cluster, each under a service account of its own with the rights that it needs:
so they join any cluster, also one whose control plane was not started here.
"""

import sys
from collections.abc import Callable
from pathlib import Path

import yaml

from rayhelm.live.cluster.kubectl import Kubectl
from rayhelm.processes import find_free_port
from testbed.control_plane.definitions import install_crds
from testbed.control_plane.home import Part
from testbed.control_plane.kubeconfig import with_token
from testbed.control_plane.programs import Programs
from testbed.control_plane.running import ControlPlane, run_of
from testbed.nodes import kwok_arguments, kwok_environment

__all__ = ["MANIFESTS", "NAMESPACE", "install", "start"]

NAMESPACE = "rayhelm-testbed"
"""Namespace of the service accounts, and name of the ConfigMap with the facts for tests."""

ACCOUNTS = Path(__file__).with_name("accounts")
STAND_INS_RIGHTS = Path(__file__).parents[1] / "ray_stand_in" / "cluster-role.yaml"
MANIFESTS = tuple(dict.fromkeys((ACCOUNTS / "namespace.yaml", STAND_INS_RIGHTS, *sorted(ACCOUNTS.glob("*.yaml")))))
"""Objects that the three programs need in a cluster; the namespace is the first."""
IMPORTABLE = Path(__file__).resolve().parents[2]
YEAR = "8760h"


def install(plane: ControlPlane, programs: Programs, say: Callable[[str], None]) -> None:
    """Install CRDs and accounts."""
    kubectl = _kubectl(plane, programs)
    install_crds(plane, kubectl, programs.kuberay, say)
    kubectl.apply_files(*MANIFESTS)


def start(plane: ControlPlane, programs: Programs, taken: set[int], say: Callable[[str], None]) -> None:
    """Start the three programs."""
    kubectl = _kubectl(plane, programs)
    stand_in, kwok, operator, metrics = (find_free_port(taken) for _ in range(4))
    proxy = f"http://127.0.0.1:{stand_in}"
    plane.home.write(plane.record.model_copy(update={"stand_in": proxy}))

    say(f"KubeRay {programs.kuberay}, KWOK, and a stand-in for Ray")
    accounts = {name: _create_account(plane, kubectl, name) for name in ("ray-stand-in", "kwok", "kuberay-operator")}
    _begin(
        plane,
        "ray-stand-in",
        stand_in,
        _build_ray_stand_in_command(plane, accounts["ray-stand-in"], stand_in),
        {"PYTHONPATH": str(IMPORTABLE)},
    )
    _begin(
        plane,
        "kwok",
        kwok,
        [str(programs["kwok"]), *kwok_arguments(accounts["kwok"], kwok)],
        kwok_environment(plane.home.folder),
    )
    _begin(
        plane,
        "kuberay-operator",
        operator,
        _build_operator_command(programs["kuberay-operator"], accounts["kuberay-operator"], operator, metrics),
        # The proxy gives access to Ray without DNS. Requests to the API server on loopback bypass it.
        {"HTTP_PROXY": proxy, "http_proxy": proxy, "NO_PROXY": "", "no_proxy": ""},
    )
    for name in accounts:
        plane.wait(name)
    _publish_facts(plane, kubectl)


def _kubectl(plane: ControlPlane, programs: Programs) -> Kubectl:
    return Kubectl(programs["kubectl"], plane.home.kubeconfig, run=run_of(plane.home, "kubectl"))


def _begin(
    plane: ControlPlane, name: str, port: int, command: list[str], environment: dict[str, str] | None = None
) -> None:
    part = Part(
        name=name, run=run_of(plane.home, name), command=tuple(command), port=port, environment=environment or {}
    )
    plane.begin(part)


def _create_account(plane: ControlPlane, kubectl: Kubectl, name: str) -> Path:
    token = kubectl("create", "token", name, f"--namespace={NAMESPACE}", f"--duration={YEAR}").strip()
    return with_token(plane.home.folder / f"{name}.kubeconfig", plane.home.kubeconfig, name, token)


def _build_ray_stand_in_command(plane: ControlPlane, kubeconfig: Path, port: int) -> list[str]:
    state = plane.home.folder / "ray"
    return [
        sys.executable,
        "-m",
        "testbed.ray_stand_in",
        f"--port={port}",
        f"--kubeconfig={kubeconfig}",
        f"--state={state}",
    ]


def _build_operator_command(program: Path, kubeconfig: Path, health: int, metrics: int) -> list[str]:
    return [
        *[str(program), f"--kubeconfig={kubeconfig}", "--enable-leader-election=false"],
        *[f"--health-probe-bind-address=127.0.0.1:{health}", f"--metrics-addr=127.0.0.1:{metrics}"],
        # A reconcile takes milliseconds on loopback; parallel ones keep a slow one from delaying a fleet.
        "--reconcile-concurrency=4",
    ]


def _publish_facts(plane: ControlPlane, kubectl: Kubectl) -> None:
    """Create the ConfigMap that marks the cluster as usable for tests and has the facts that they need."""
    record = plane.record
    data = {"home": str(plane.home.folder), "kuberay": record.kuberay, "left-out": "\n".join(record.left_out)}
    mark = {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {"name": NAMESPACE, "namespace": NAMESPACE},
        "data": data,
    }
    kubectl.apply(yaml.safe_dump(mark))
