"""Asks an API server through kubectl."""

import os
import subprocess
from pathlib import Path

from rayhelm.errors import RayhelmError
from rayhelm.processes import MARK

__all__ = ["MANAGER", "Kubectl", "KubectlError"]

MANAGER = "rayhelm-testbed"
"""Field manager of everything that the testbed itself applies."""

_APPLY = ("apply", "--server-side", "--force-conflicts", f"--field-manager={MANAGER}")


class KubectlError(RayhelmError):
    """The API server, or kubectl itself, said no; the message carries its words."""

    def __init__(self, arguments: tuple[str, ...], said: str) -> None:
        self.said = said
        """What kubectl said; it tries several times, and complains each time."""
        super().__init__(f"kubectl {' '.join(arguments)}: {said}")


class Kubectl:
    """kubectl against one cluster, as its administrator."""

    def __init__(self, program: Path, kubeconfig: Path, *, run: str = "") -> None:
        """`run` marks its processes: they are found again where whoever started them was killed."""
        # Beside the kubeconfig, for what kubectl remembers of a cluster is worth nothing after its end.
        self._command = [str(program), f"--kubeconfig={kubeconfig}", f"--cache-dir={kubeconfig.parent / 'cache'}"]
        self._environment = {**os.environ, MARK: run} if run else None

    def __call__(self, *arguments: str, text: str = "") -> str:
        """What kubectl prints; `text` is its standard input."""
        answer = subprocess.run(
            [*self._command, *arguments],
            input=text,
            capture_output=True,
            text=True,
            check=False,
            env=self._environment,
        )
        if answer.returncode != 0:
            raise KubectlError(arguments, answer.stderr.strip())
        return answer.stdout

    def apply(self, text: str) -> None:
        """Server-side, as the field manager of the testbed."""
        self(*_APPLY, "--filename=-", text=text)

    def apply_files(self, *files: Path) -> None:
        self(*_APPLY, *(f"--filename={file}" for file in files))
