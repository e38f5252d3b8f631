"""Argo CD on the node: its own controllers as processes, and the Git repositories that they read."""

import os
import subprocess
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from shutil import copy

import yaml

from gitops.verification.components import NAMESPACE, run_argocd
from pods.kit.api_server import connect
from pods.kit.cluster import Cluster
from pods.kit.external_secrets import external_secrets
from rayhelm.deploy.charts.helm import charts_dir
from testbed.control_plane.definitions import wait_until_established
from testbed.tools import crd_files
from testbed.tools.checkout import HERE
from testbed.tools.crds import source

__all__ = ["Delivery", "delivery"]

AUTHOR = {
    f"GIT_{who}_{what}": value
    for who in ("AUTHOR", "COMMITTER")
    for what, value in (("NAME", "rayhelm"), ("EMAIL", "rayhelm@example.org"))
}
OPERATOR = "external-secrets"


@dataclass(frozen=True)
class Delivery:
    """An empty repository that Argo CD reads."""

    tree: Path
    """Work tree."""
    environment: Mapping[str, str]
    """Variables for the commands of a page and for its files."""


@contextmanager
def delivery(cluster: Cluster, folder: Path) -> Iterator[Delivery]:
    """Run Argo CD without our health checks, and the stand-in for the External Secrets operator. At the end, remove
    what Argo CD delivered."""
    bare, tree, entries = folder / "fleets.git", folder / "fleets", folder / "kv.json"
    _git("init", "--quiet", "--bare", "--initial-branch=main", str(bare))
    _git("clone", "--quiet", str(bare), str(tree))
    environment = AUTHOR | {
        "API": str(cluster.node.network.node),
        "FLEETS": f"file://{bare}",
        "OPERATORS": f"file://{_make_operators(folder / 'operators')}",
        "KV": str(entries),
    }
    files = crd_files("argo-cd")
    cluster.kubectl.apply_files(*files)
    wait_until_established(cluster.kubectl, files)
    with run_argocd(connect(cluster), folder / "argocd"), external_secrets(cluster.kubectl, entries):
        _forget_health_checks(cluster)
        try:
            yield Delivery(tree, environment)
        except BaseException as error:
            error.add_note(cluster.kubectl("describe", "applications", f"--namespace={NAMESPACE}"))
            raise
        finally:
            _remove_delivered(cluster)


def _make_operators(folder: Path) -> Path:
    """Make a repository with a chart of the operator's CRDs and service account, in place of its own chart."""
    chart = folder / OPERATOR
    (chart / "crds").mkdir(parents=True)
    (chart / "templates").mkdir()
    for path in crd_files(OPERATOR):
        if "secretstores" in path.name or "_externalsecrets" in path.name:
            copy(path, chart / "crds")
    about = {"apiVersion": "v2", "name": OPERATOR, "version": source(OPERATOR, HERE).version}
    account = {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": OPERATOR}}
    (chart / "Chart.yaml").write_text(yaml.safe_dump(about))
    (chart / "templates/serviceaccount.yaml").write_text(yaml.safe_dump(account))
    _git("init", "--quiet", "--initial-branch=main", str(folder))
    _git("-C", str(folder), "add", ".")
    _git("-C", str(folder), "commit", "--quiet", "--message", "Add the operator")
    return folder


def _forget_health_checks(cluster: Cluster) -> None:
    """Remove the checks that `run_argocd` adds: the page adds them."""
    added = yaml.safe_load((charts_dir() / "argocd/files/argocd-cm.yaml").read_text())["data"]
    patch = yaml.safe_dump({"data": dict.fromkeys(added)})
    cluster.kubectl("patch", "configmap", "argocd-cm", f"--namespace={NAMESPACE}", "--type=merge", f"--patch={patch}")


def _remove_delivered(cluster: Cluster) -> None:
    """Remove the fleet, if a command failed before the page did, and the CRDs."""
    options = ("--ignore-not-found", "--timeout=300s")
    where = f"--namespace={NAMESPACE}"
    cluster.kubectl("delete", "application", "acme", where, *options)
    cluster.kubectl("delete", "applications,appprojects", "--all", where, *options)
    files = [f"--filename={path}" for name in ("argo-cd", OPERATOR) for path in crd_files(name)]
    cluster.kubectl("delete", *options, *files)


def _git(*arguments: str) -> None:
    subprocess.run(["git", *arguments], check=True, capture_output=True, env=os.environ | AUTHOR)
