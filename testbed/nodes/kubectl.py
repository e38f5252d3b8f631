"""Apply manifests to a cluster."""

import json
import subprocess
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from rayhelm.errors import RayhelmError
from testbed.tools import program

__all__ = ["apply", "kubectl"]

MANAGER = "rayhelm-testbed-nodes"


def apply(manifests: Sequence[dict[str, Any]], kubeconfig: Path) -> None:
    """Apply manifests server-side, so that a second call changes nothing. The size of a node is in its status: it is
    set when the node is created, and through the status subresource afterwards.

    Raises RayhelmError with the error of the API server, MissingError without kubectl."""
    there = kubectl(kubeconfig, "get", "nodes", "--output=name").split()
    _apply(manifests, kubeconfig)
    again = [item for item in manifests if item["kind"] == "Node" and f"node/{item['metadata']['name']}" in there]
    _apply(again, kubeconfig, "--subresource=status")


def kubectl(kubeconfig: Path, *arguments: str, text: str = "") -> str:
    """Run kubectl with `text` as standard input, and return its output. Raises RayhelmError with its error output."""
    command = [str(program("kubectl")), f"--kubeconfig={kubeconfig}", *arguments]
    answer = subprocess.run(command, input=text, capture_output=True, text=True, check=False)
    if answer.returncode != 0:
        raise RayhelmError(f"kubectl {' '.join(arguments)}: {answer.stderr.strip()}")
    return answer.stdout


def _apply(manifests: Sequence[dict[str, Any]], kubeconfig: Path, *options: str) -> None:
    if not manifests:
        return
    text = json.dumps({"apiVersion": "v1", "kind": "List", "items": list(manifests)})
    how = ["apply", "--server-side", "--force-conflicts", f"--field-manager={MANAGER}", "--filename=-", *options]
    kubectl(kubeconfig, *how, text=text)
