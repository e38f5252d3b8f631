"""Asks an API server through kubectl, which knows every way to sign in to one: the one place that does."""

import json
import os
import shutil
import subprocess
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from rayhelm.charts.helm import charts_dir
from rayhelm.errors import MissingError, RayhelmError
from rayhelm.processes import MARK

__all__ = ["MANAGER", "Kubectl", "KubectlError", "find_kubectl"]

MANAGER = "rayhelm"
"""Field manager of everything that is applied here."""

_APPLY = ("apply", "--server-side", "--force-conflicts", f"--field-manager={MANAGER}")


class KubectlError(RayhelmError):
    """The API server, or kubectl itself, said no; the message carries its words."""

    def __init__(self, arguments: tuple[str, ...], said: str) -> None:
        self.said = said
        """What kubectl said; it tries several times, and complains each time."""
        super().__init__(f"kubectl {' '.join(arguments)}: {said}")


class Kubectl:
    """kubectl against one cluster."""

    def __init__(self, program: Path, kubeconfig: Path | None, *, context: str = "", run: str = "") -> None:
        """Without a kubeconfig: the one that kubectl finds by itself. `run` marks its processes: they are found again
        where whoever started them was killed."""
        self._command = [str(program)]
        if kubeconfig:
            # Beside the kubeconfig, for what kubectl remembers of a cluster is worth nothing after its end.
            self._command += [f"--kubeconfig={kubeconfig}", f"--cache-dir={kubeconfig.parent / 'cache'}"]
        if context:
            self._command += [f"--context={context}"]
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

    def get(self, *what: str, namespace: str = "") -> dict[str, Any]:
        """An object, or a list of them; `namespace` is empty for those that have none."""
        where = [f"--namespace={namespace}"] if namespace else []
        found: dict[str, Any] = json.loads(self("get", *what, *where, "--output=json"))
        return found

    def apply(self, text: str) -> None:
        """Server-side, as the field manager `rayhelm`."""
        self(*_APPLY, "--filename=-", text=text)

    def apply_objects(self, *objects: Mapping[str, Any]) -> None:
        self.apply(json.dumps({"apiVersion": "v1", "kind": "List", "items": list(objects)}))

    def apply_files(self, *files: Path) -> None:
        self(*_APPLY, *(f"--filename={file}" for file in files))


def find_kubectl() -> Path:
    """$KUBECTL, the checkout's own, or the one in PATH."""
    pinned = charts_dir().parent / ".tools/bin/kubectl"
    named = os.environ.get("KUBECTL") or (str(pinned) if pinned.is_file() else shutil.which("kubectl"))
    if named is None or not Path(named).is_file():
        raise MissingError(
            f"kubectl is not there{f': $KUBECTL is {named}' if named else ''}",
            "make tools    # fetches a pinned one to .tools/bin; or set $KUBECTL to one of your own",
        )
    return Path(named)
