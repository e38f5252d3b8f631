"""Helm against a cluster, as a person would call it."""

import json
import subprocess
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

import testbed.tools
from rayhelm.deploy.charts.helm import charts_dir

__all__ = ["Helm", "Refused"]


class Refused(AssertionError):
    """Helm, or the API server behind it, said no."""


@dataclass(frozen=True)
class Helm:
    """One version of Helm and one cluster."""

    major: str
    program: Path
    kubeconfig: Path

    @classmethod
    def of_major(cls, major: str, kubeconfig: Path) -> "Helm":
        return cls(major, testbed.tools.program("helm" if major == "4" else "helm3"), kubeconfig)

    def install(self, chart: str, release: str, namespace: str, values: Mapping[str, Any] | Path, *options: str) -> str:
        """`helm upgrade --install`, with the values as a file: a person's first call, and every later one."""
        source = str(values) if isinstance(values, Path) else "-"
        text = "" if isinstance(values, Path) else json.dumps(values)
        where = [release, str(charts_dir() / chart), f"--namespace={namespace}", f"--values={source}"]
        return self(["upgrade", "--install", *where, *options], text)

    def manifest(self, release: str, namespace: str) -> list[dict[str, Any]]:
        """Return the objects of a release, without its hooks."""
        text = self(["get", "manifest", release, f"--namespace={namespace}"])
        return [item for item in yaml.safe_load_all(text) if item]

    def rollback(self, release: str, namespace: str, revision: int) -> str:
        return self(["rollback", release, str(revision), f"--namespace={namespace}"])

    def uninstall(self, release: str, namespace: str) -> str:
        return self(["uninstall", release, f"--namespace={namespace}"])

    def revisions(self, release: str, namespace: str) -> list[dict[str, Any]]:
        history: list[dict[str, Any]] = json.loads(
            self(["history", release, f"--namespace={namespace}", "--output=json"])
        )
        return history

    def __call__(self, arguments: Sequence[str], text: str = "") -> str:
        command = [str(self.program), f"--kubeconfig={self.kubeconfig}", *arguments]
        answer = subprocess.run(command, input=text, capture_output=True, text=True, check=False)
        if answer.returncode != 0:
            raise Refused(f"helm {' '.join(arguments)}: {answer.stderr.strip()}")
        return answer.stdout
