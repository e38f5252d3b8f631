"""Call the API server through kubectl, which supports every authentication method. No other module starts kubectl."""

import json
import os
import shutil
import subprocess
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from rayhelm.deploy.advice import find_pinned_tool, how_to_get_kubectl
from rayhelm.errors import MissingError, RayhelmError
from rayhelm.processes import MARK

__all__ = ["MANAGER", "Kubectl", "KubectlError", "find_kubectl"]

MANAGER = "rayhelm"
"""Field manager of all objects that this module applies."""

_APPLY = ("apply", "--server-side", "--force-conflicts", f"--field-manager={MANAGER}")


class KubectlError(RayhelmError):
    """kubectl failed; the message has its output."""

    def __init__(self, arguments: tuple[str, ...], said: str) -> None:
        self.said = said
        """Standard error of kubectl; it repeats a message for each try."""
        super().__init__(f"kubectl {' '.join(arguments)}: {said}")


class Kubectl:
    """kubectl against one cluster."""

    def __init__(self, program: Path, kubeconfig: Path | None, *, context: str = "", run: str = "") -> None:
        """Prepare the command. Without `kubeconfig`, kubectl finds one itself. `run` marks its processes, so that they
        can be found after the process that started them was killed."""
        self._command = [str(program)]
        if kubeconfig:
            # The cache is beside the kubeconfig, because it is useless after the cluster is removed.
            self._command += [f"--kubeconfig={kubeconfig}", f"--cache-dir={kubeconfig.parent / 'cache'}"]
        if context:
            self._command += [f"--context={context}"]
        self._environment = {**os.environ, MARK: run} if run else None

    def __call__(self, *arguments: str, text: str = "") -> str:
        """Run kubectl with `text` as standard input, and return its standard output. Raises KubectlError."""
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

    def get(self, *what: str, namespace: str = "") -> dict[str, Any]:
        """Get an object, or a list of objects; `namespace` is empty for cluster-scoped ones."""
        where = [f"--namespace={namespace}"] if namespace else []
        found: dict[str, Any] = json.loads(self("get", *what, *where, "--output=json"))
        return found

    def apply(self, text: str) -> None:
        """Apply manifests server-side, as the field manager `rayhelm`."""
        self(*_APPLY, "--filename=-", text=text)

    def apply_objects(self, *objects: Mapping[str, Any]) -> None:
        self.apply(json.dumps({"apiVersion": "v1", "kind": "List", "items": list(objects)}))

    def apply_files(self, *files: Path) -> None:
        self(*_APPLY, *(f"--filename={file}" for file in files))


def find_kubectl() -> Path:
    """Find kubectl: $KUBECTL, else the one of the checkout, else the one on PATH. Raises MissingError."""
    named = os.environ.get("KUBECTL")
    found = Path(named) if named else find_pinned_tool("kubectl") or shutil.which("kubectl")
    if found is None or not Path(found).is_file():
        raise MissingError(f"kubectl was not found{f': $KUBECTL is {named}' if named else ''}", how_to_get_kubectl())
    return Path(found)
