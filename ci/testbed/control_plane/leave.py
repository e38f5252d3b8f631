"""Takes out of a joined cluster what a testbed brought for itself."""

from collections.abc import Callable

from rayhelm.errors import RayhelmError
from testbed.control_plane.addons import MANIFESTS, NAMESPACE
from testbed.control_plane.bed import run_of
from testbed.control_plane.definitions import installed_by_us
from testbed.control_plane.home import Home
from testbed.control_plane.kubectl import Kubectl
from testbed.nodes.manifest import SIMULATED
from testbed.tools import program

__all__ = ["leave"]

PATIENCE = "--request-timeout=15s"
SIMULATED_KINDS = "nodes,persistentvolumes,storageclasses"


def leave(home: Home, say: Callable[[str], None]) -> None:
    """Removes accounts, roles, the mark, and simulated nodes and volumes, which are nobody's without KWOK.

    CRDs stay, since every object of theirs would go with them. Where the cluster does not answer, that is said: it may
    be gone, and whoever ends the processes must not be held up by it."""
    try:
        kubectl = Kubectl(program("kubectl"), home.kubeconfig, run=run_of(home, "kubectl"))
        kubectl("get", "namespace", "kube-system", PATIENCE)
        kubectl("delete", SIMULATED_KINDS, f"--selector={SIMULATED}", "--wait=false")
        kubectl("delete", "--ignore-not-found", "--timeout=120s", *(f"--filename={file}" for file in MANIFESTS))
        crds = installed_by_us(kubectl)
    except RayhelmError as error:
        say(
            f"the joined cluster could not be cleaned: {str(error).splitlines()[-1]}\n  where it still is, namespace "
            f"{NAMESPACE}, ClusterRoles rayhelm-testbed-*, ray-stand-in and what has the label {SIMULATED} are in it"
        )
        return
    if crds:
        say(f"{len(crds)} CRDs stay in the joined cluster, with every object of theirs: {crds[0]}, ...")
