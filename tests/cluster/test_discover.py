"""`rayhelm discover` on a real API server, with an account that may only list nodes."""

import json
import subprocess
import sys
from pathlib import Path

from cluster.kit.cluster import Cluster
from shared.fleets import load
from testbed.nodes import simulated

FLEET = Path(__file__).parents[2] / "values/three-tiers/fleet.yaml"
ROLE = {"name": "lists-nodes"}


def test_discover_reads_pools_with_the_right_to_list_nodes(cluster: Cluster, namespace: str, tmp_path: Path) -> None:
    role = {"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRole", "metadata": ROLE}
    cluster.kubectl.apply_objects(role | {"rules": [{"apiGroups": [""], "resources": ["nodes"], "verbs": ["list"]}]})
    try:
        cluster.kubectl("create", "serviceaccount", "reader", f"--namespace={namespace}")
        account = f"--serviceaccount={namespace}:reader"
        cluster.kubectl("create", "clusterrolebinding", namespace, f"--clusterrole={ROLE['name']}", account)
        kubeconfig = tmp_path / "kubeconfig"
        kubeconfig.write_text(json.dumps(config_of(cluster, namespace)))
        with cluster.machines(simulated(load(FLEET.read_text()), "main")):
            command = ["-c", "from rayhelm.cli import main; main()", "discover", "--kubeconfig", str(kubeconfig)]
            ended = subprocess.run(
                [sys.executable, *command, "--format", "json"], capture_output=True, text=True, check=False
            )
    finally:
        cluster.kubectl("delete", "clusterrolebinding", namespace, "--ignore-not-found")
        cluster.kubectl("delete", "clusterrole", ROLE["name"])
    assert ended.returncode == 0, ended.stderr
    found = json.loads(ended.stdout)
    pools = {
        pool["fields"]["gpu"]: (pool["fields"]["nodes"], pool["fields"]["gpusPerNode"])
        for pool in found["pools"].values()
    }
    assert pools == {"H100-SXM-80GB": (3, 8), "RTX-A6000-48GB": (3, 2)}
    assert [note.partition(":")[0] for note in found["notes"]] == ["ResourceSlices", "kuberay", "apiServer.cidrs"]


def config_of(cluster: Cluster, namespace: str) -> dict[str, object]:
    """The kubeconfig of the account `reader`."""
    admin = json.loads(cluster.kubectl("config", "view", "--raw", "--minify", "--output=json"))
    token = cluster.kubectl("create", "token", "reader", f"--namespace={namespace}").strip()
    contexts = [{"name": "reader", "context": {"cluster": admin["clusters"][0]["name"], "user": "reader"}}]
    users = [{"name": "reader", "user": {"token": token}}]
    return admin | {"contexts": contexts, "users": users, "current-context": "reader"}
