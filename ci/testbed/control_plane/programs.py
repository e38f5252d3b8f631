"""The programs of a control plane, and the versions that they are."""

import os
import re
import subprocess
from dataclasses import dataclass
from pathlib import Path

from rayhelm.errors import MissingError
from testbed.control_plane.components import CORE
from testbed.tools import program

__all__ = ["Programs", "operator_version"]

ADDONS = ("kuberay-operator", "kwok", "kubectl")


@dataclass(frozen=True)
class Programs:
    """Where each program is."""

    paths: dict[str, Path]
    kubernetes: str
    """Version of the API server: `1.36.3`; empty where somebody else runs it."""
    kuberay: str
    """Version of the operator: `1.6.2`."""

    @classmethod
    def find(cls, *, join: bool) -> "Programs":
        """Raises MissingError, with all that is missing."""
        paths: dict[str, Path] = {}
        lacks: list[str] = []
        for name in (*(() if join else CORE), *ADDONS):
            try:
                paths[name] = program(name)
            except MissingError as error:
                lacks.append(str(error))
        if lacks:
            raise MissingError("\n".join(lacks))
        kubernetes = "" if join else _says(paths["kube-apiserver"])
        return cls(paths, kubernetes, operator_version(paths["kuberay-operator"]))

    def __getitem__(self, name: str) -> Path:
        return self.paths[name]


def operator_version(path: Path) -> str:
    """Version of a KubeRay operator: what Go wrote into the binary, or KUBERAY_VERSION where it was built from a
    checkout and holds none."""
    if told := os.environ.get("KUBERAY_VERSION"):
        return told
    found = re.search(rb"github\.com/ray-project/kuberay/ray-operator\tv(\d+\.\d+\.\d+)\t", path.read_bytes())
    if found is None:
        raise MissingError(f"{path} does not say which version of KubeRay it is: set KUBERAY_VERSION=1.7.0, say")
    return found[1].decode()


def _says(path: Path) -> str:
    answer = subprocess.run([path, "--version"], capture_output=True, text=True, check=False)
    found = re.search(r"\d+\.\d+\.\d+", answer.stdout)
    if found is None:
        raise MissingError(f"{path} --version says no version:\n{answer.stdout}{answer.stderr}")
    return found[0]
