"""The programs of a control plane and their versions."""

import os
import re
import subprocess
from dataclasses import dataclass
from pathlib import Path

from rayhelm.errors import MissingError, UsageError
from testbed.control_plane.components import CORE
from testbed.control_plane.home import Part
from testbed.tools import crd_files, program

__all__ = ["Programs", "operator_version"]

ADDONS = ("kuberay-operator", "kwok", "kubectl")


@dataclass(frozen=True)
class Programs:
    """Paths and versions of the programs."""

    paths: dict[str, Path]
    kubernetes: str
    """Version of the API server that would be started: `1.36.3`; empty for a joined cluster."""
    kuberay: str
    """Version of the operator: `1.6.2`."""

    @classmethod
    def find(cls, *, join: bool) -> "Programs":
        """Find the programs. Raises MissingError with all missing ones, UsageError for an invalid version."""
        paths: dict[str, Path] = {}
        lacks: list[MissingError] = []
        for name in (*(() if join else CORE), *ADDONS):
            try:
                paths[name] = program(name)
            except MissingError as error:
                lacks.append(error)
        if lacks:
            raise _join_errors(lacks)
        kuberay = operator_version(paths["kuberay-operator"])
        crd_files("kuberay", version=kuberay)  # fail before anything is started
        return cls(paths, "" if join else _read_version(paths["kube-apiserver"]), kuberay)

    def __getitem__(self, name: str) -> Path:
        return self.paths[name]

    def are_other(self, part: Part) -> bool:
        """Return whether a part runs another program file than the one found now, even of the same version."""
        return part.name in self.paths and part.command[0] != str(self.paths[part.name])


def operator_version(path: Path) -> str:
    """Return the version of a KubeRay operator: the module version in the Go binary, or KUBERAY_VERSION if the binary
    was built from a checkout and has none."""
    found = re.search(rb"github\.com/ray-project/kuberay/ray-operator\tv(\d+\.\d+\.\d+)\t", path.read_bytes())
    held, reported = found[1].decode() if found else "", os.environ.get("KUBERAY_VERSION", "").removeprefix("v")
    if reported and not re.fullmatch(r"\d+\.\d+\.\d+", reported):
        raise UsageError(f"KUBERAY_VERSION={reported} is not a version such as 1.7.0")
    if held and reported and held != reported:
        raise UsageError(
            f"{path} is KubeRay {held}, and KUBERAY_VERSION says {reported}: unset it, or KUBERAY_OPERATOR=path"
        )
    if not held and not reported:
        raise MissingError(f"{path} contains no version of KubeRay", "KUBERAY_VERSION=1.7.0    # of your build")
    return held or reported


def _read_version(path: Path) -> str:
    answer = subprocess.run([path, "--version"], capture_output=True, text=True, check=False)
    found = re.search(r"\d+\.\d+\.\d+", answer.stdout)
    if found is None:
        raise MissingError(f"{path} --version printed no version:\n{answer.stdout}{answer.stderr}")
    return found[0]


def _join_errors(lacks: list[MissingError]) -> MissingError:
    """Join the errors to one message, without repeated fixes."""
    fixes = dict.fromkeys(line for error in lacks for line in error.how.splitlines())
    return MissingError("\n".join(error.what for error in lacks), "\n".join(fixes))
