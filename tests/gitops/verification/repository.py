"""The Git repository of the verification: charts, and what `rayhelm render` writes."""

import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import yaml

from gitops.verification.inputs import FLEET
from rayhelm.deploy.charts.helm import charts_dir
from rayhelm.deploy.render.files import build_files, build_manifests, render_fleet
from rayhelm.deploy.render.folder import compare, write
from testbed.tools.crds import crd_files

__all__ = ["GitRepository"]


class GitRepository:
    """A work tree, and the bare repository that Argo CD reads."""

    def __init__(self, folder: Path) -> None:
        self.tree, self.bare = folder / "tree", folder / "fleets.git"
        self.url = f"file://{self.bare}"
        subprocess.run(["git", "init", "-q", "--bare", "-b", "main", str(self.bare)], check=True)
        subprocess.run(["git", "clone", "-q", str(self.bare), str(self.tree)], check=True, capture_output=True)
        shutil.copytree(charts_dir(), self.tree / "charts")
        self._copy_operator()
        self.fleet: dict[str, Any] = yaml.safe_load(FLEET.read_text().replace("URL", f'"{self.url}"'))

    def edit(self, change: Callable[[dict[str, Any]], None], message: str) -> None:
        """Change the fleet, render, commit and push."""
        change(self.fleet)
        self.render()
        self.commit(message)

    def render(self) -> None:
        folder = self.tree / "acme"
        folder.mkdir(exist_ok=True)
        (folder / "fleet.yaml").write_text(yaml.safe_dump(self.fleet, sort_keys=False))
        rendered = render_fleet(folder / "fleet.yaml")
        files = build_files(rendered) | build_manifests(rendered)
        write(folder, files, compare(folder, files, rendered))
        self._add_operator(folder / "argocd/argocd.yaml")

    def commit(self, message: str) -> None:
        identity = ["-c", "user.name=rayhelm", "-c", "user.email=rayhelm@example.org"]
        self._git("add", "-A")
        self._git(*identity, "commit", "-q", "--allow-empty", "-m", message)
        self._git("push", "-q", "origin", "HEAD:main")

    def _git(self, *arguments: str) -> None:
        subprocess.run(["git", "-C", str(self.tree), *arguments], check=True)

    def _copy_operator(self) -> None:
        """Make a chart with the CRDs of KubeRay, in place of its own chart: the operator is a process here."""
        chart = self.tree / "operators/kuberay"
        (chart / "crds").mkdir(parents=True)
        for path in crd_files("kuberay"):
            shutil.copy(path, chart / "crds")
        (chart / "templates").mkdir()
        about = {"apiVersion": "v2", "name": "kuberay-operator", "version": "1.6.2"}
        (chart / "Chart.yaml").write_text(yaml.safe_dump(about))
        config = {
            "apiVersion": "v1",
            "kind": "ConfigMap",
            "metadata": {"name": "kuberay"},
            "data": {"is": "a stand-in"},
        }
        (chart / "templates/configmap.yaml").write_text(yaml.safe_dump(config))

    def _add_operator(self, path: Path) -> None:
        values = yaml.safe_load(path.read_text())
        values["operators"] = {
            "kuberay": {
                "cluster": "main",
                "url": self.url,
                "path": "operators/kuberay",
                "version": "main",
                "release": "kuberay-operator",
                "namespace": "kuberay-operator",
            }
        }
        path.write_text(yaml.safe_dump(values, sort_keys=False))
