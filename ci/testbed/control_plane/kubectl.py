"""Asks an API server through kubectl."""

import subprocess
from pathlib import Path

from rayhelm.errors import RayhelmError

__all__ = ["Kubectl", "KubectlError"]


class KubectlError(RayhelmError):
    """The API server, or kubectl itself, said no; the message carries its words."""


class Kubectl:
    """kubectl against one cluster, as its administrator."""

    def __init__(self, program: Path, kubeconfig: Path) -> None:
        self._command = [str(program), f"--kubeconfig={kubeconfig}"]

    def __call__(self, *arguments: str, text: str = "") -> str:
        """What kubectl prints; `text` is its standard input."""
        answer = subprocess.run([*self._command, *arguments], input=text, capture_output=True, text=True, check=False)
        if answer.returncode != 0:
            raise KubectlError(f"kubectl {' '.join(arguments)}: {answer.stderr.strip()}")
        return answer.stdout

    def apply(self, text: str) -> None:
        """Server-side, as the field manager of the testbed."""
        self("apply", "--server-side", "--force-conflicts", "--field-manager=rayhelm-testbed", "-f", "-", text=text)

    def apply_files(self, *files: Path) -> None:
        names = [f"--filename={file}" for file in files]
        self("apply", "--server-side", "--force-conflicts", "--field-manager=rayhelm-testbed", *names)
